"""The harness of the engine's figures: worlds as they are described, runs that go on, rivals and ranks by formula."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import chisquare

import trueup as tu
from benchmarks import _engine_runs as runs
from benchmarks._coverage_tally import Section
from benchmarks._engine_answers import DrawnClasses, coverage_table, draw_gold, interval_row, scaled_width, width_over
from benchmarks._engine_classes import CLASSES_FIGURE, KINDS, prior_of
from benchmarks._engine_compare import AUC_FIGURE, COPIES_FIGURE, PAIRS_FIGURE
from benchmarks._engine_sbc import MODELS, N_CLASSES, N_LABELERS, draw_data, quantities_of, ranks_of, summarise_sbc
from benchmarks._engine_worlds import WORLDS, better_system, equal_system, family_of_systems, make, scored_systems
from benchmarks._vetting_crowd import run_crowd
from benchmarks._vetting_rivals import Sample, ppi_of_pool, ppi_plus_plus, ppi_ratio_of_pool


def rows_for(case: runs.Case) -> list[runs.Row]:
    return [{"value": case.seed * 10}]


def on_a_worker(case: runs.Case) -> list[runs.Row]:
    from distributed import get_worker

    return [{"on_a_worker": get_worker() is not None}]


def as_section(rows: Sequence[runs.Row]) -> Section:
    return Section(str(sum(row["value"] for row in rows)))


FIGURE = runs.Figure(("x", "y"), rows_for, as_section, n_runs=3, n_quick=1, first_seed=5, quick_worlds=("y",))


def test_cases_take_turns_and_a_quick_run_has_few_worlds() -> None:
    assert FIGURE.cases(2) == [runs.Case("x", 5), runs.Case("y", 5), runs.Case("x", 6), runs.Case("y", 6)]
    assert FIGURE.cases(1, quick=True) == [runs.Case("y", 5)]


def test_kept_runs_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runs.run_cases("a", FIGURE.run, FIGURE.cases(2), processes=1, folder=tmp_path)
    measured = []

    def count(case: runs.Case) -> list[runs.Row]:
        measured.append(case)
        return rows_for(case)

    counted = runs.Figure(FIGURE.worlds, count, as_section, 3, 1, 5)
    rows = runs.run_cases("a", counted.run, counted.cases(3), processes=1, folder=tmp_path)
    assert measured == [runs.Case("x", 7), runs.Case("y", 7)]
    assert rows[: len(first)] == first
    assert rows[-1] == {"world": "y", "seed": 7, "value": 70}
    monkeypatch.setattr(runs, "fingerprint", lambda run: "other code")
    runs.run_cases("a", counted.run, counted.cases(1), processes=1, folder=tmp_path)
    assert measured[-2:] == counted.cases(1)


def test_runs_are_known_by_all_code_of_benchmarks_that_they_rest_on(monkeypatch):
    """What a run imports decides its numbers too: how often a case is repeated was in another file than the run."""
    known = runs.fingerprint(run_crowd)
    read = Path.read_bytes
    for name in ("_vetting_crowd.py", "_vetting_pools.py", "_vetting_rivals.py", "_data.py"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda path, name=name: read(path) + b"#" * (path.name == name))
            assert runs.fingerprint(run_crowd) != known, name
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path.name == "_aggregation_ebcc.py"))
        assert runs.fingerprint(run_crowd) == known


def test_two_processes_give_the_rows_of_one(tmp_path: Path) -> None:
    alone = runs.run_cases("a", FIGURE.run, FIGURE.cases(3), processes=1, folder=None)
    assert runs.run_cases("a", FIGURE.run, FIGURE.cases(3), processes=2, folder=tmp_path) == alone


def test_a_cluster_that_joblib_was_told_of_gives_them_too(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    place: dict[str, Any] = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **place) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask", client=client),
    ):
        rows = runs.run_cases("a", on_a_worker, FIGURE.cases(3), processes=2, folder=tmp_path)
    assert [(row["world"], row["seed"]) for row in rows] == [(case.world, case.seed) for case in FIGURE.cases(3)]
    assert all(row["on_a_worker"] for row in rows)


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_have_five_labelers_and_a_classifier(name: str) -> None:
    world = make(name, 400, 1)
    assert (world.labels.n_items, world.labels.n_labelers, world.labels.n_votes) == (400, 5, 2000)
    assert world.predictions.shape == world.truth.shape == (400,)
    assert 0.6 < world.accuracy < 0.95


@pytest.mark.parametrize("case", CLASSES_FIGURE.cases(1))
def test_worlds_of_many_classes_have_their_classes(case: runs.Case) -> None:
    kind, n_classes = case.world.split(", ")
    world = KINDS[kind](400, case.seed, prior_of(int(n_classes)))
    assert (world.labels.n_classes, world.labels.n_labelers) == (int(n_classes), 5)
    assert np.unique(world.truth).tolist() == list(range(int(n_classes)))
    assert 0.6 < world.accuracy < 0.95


def test_errors_on_lookalikes_are_mostly_the_class_that_follows() -> None:
    world = KINDS["lookalikes"](20_000, 1, prior_of(5))
    wrong = world.predictions != world.truth
    to_next = world.predictions[wrong] == (world.truth[wrong] + 1) % 5
    assert wrong.mean() == pytest.approx(0.75 * 0.1 + 0.25 * 0.4, abs=0.03)
    assert to_next.mean() == pytest.approx((0.75 * 0.1 / 4 + 0.25 * 0.3) / 0.175, abs=0.06)


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "independent"])
def test_the_classifier_errs_with_the_crowd_where_it_should(name: str) -> None:
    def joint(world_name: str) -> float:
        world = make(world_name, 4000, 3)
        crowd_errs = world.labels.answer_counts.argmax(axis=1) != world.truth
        errs = world.predictions != world.truth
        return float(np.mean(errs & crowd_errs) / (errs.mean() * crowd_errs.mean()))

    assert joint(name) > 1.3
    assert 0.7 < joint("independent") < 1.3


def test_systems_made_from_the_classifier() -> None:
    world, rng = make("difficulty", 300, 3), np.random.default_rng(0)
    better = better_system(world, 0.03, rng)
    assert float(np.mean(better == world.truth)) == pytest.approx(world.accuracy + 0.03)
    equal = equal_system(world, 10, rng)
    assert np.mean(equal == world.truth) == pytest.approx(world.accuracy)
    assert (equal != world.predictions).sum() == 20
    family = family_of_systems(world.predictions, 20, 0.05, rng)
    assert len(family) == 20
    assert {int((codes != world.predictions).sum()) for codes in list(family.values())[1:]} == {15}
    scores = scored_systems(world, 5, rng)
    assert all(scores[a][world.truth == 1].mean() > scores[a][world.truth == 0].mean() for a in scores)


def test_random_gold_is_the_truth_of_so_many_items() -> None:
    world = make("kinds", 200, 4)
    labels, at = draw_gold(world.labels, world.truth, 20, np.random.default_rng(0))
    assert labels.gold == {int(k): int(world.truth[k]) for k in at}
    assert len(labels.drawn_gold) == 20


def test_the_drawn_classes_are_kept() -> None:
    drawn = DrawnClasses(np.array([0, 1]))
    with pytest.raises(ValueError, match="must have seen a draw"):
        _ = drawn.probabilities
    predicted = np.array([0, 1, 1])
    assert drawn(np.array([0, 1, 0]), predicted) == pytest.approx(2 / 3)
    drawn(np.array([0, 0, 0]), predicted)
    assert drawn.probabilities.tolist() == [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]


def test_the_metric_sees_the_draws_that_the_library_answers_from() -> None:
    world = make("independent", 100, 1)
    drawn = DrawnClasses(world.labels.classes)
    options = {"noise": "dawid-skene", "n_warmup": 100, "n_draws": 400, "check_dependence": False}
    ev = tu.evaluate(world.predictions, world.labels, metrics={"right": drawn, "accuracy": "accuracy"}, **options)
    mean = ev["right"].mean
    assert drawn.probabilities[np.arange(100), world.predictions].mean() == pytest.approx(mean)
    assert mean == pytest.approx(ev["accuracy"].mean, abs=0.02)


def test_a_pool_that_is_vetted_whole_has_no_interval() -> None:
    rng = np.random.default_rng(1)
    y, f = rng.random(30), rng.random(30)
    mean, (low, high) = ppi_of_pool(Sample(y, f, np.empty(0)))
    assert mean == low == high == pytest.approx(y.mean())


def test_prediction_powered_intervals_hold() -> None:
    rng = np.random.default_rng(2)
    held_pool, held_population = [], []
    for _ in range(600):
        f = rng.beta(2, 1, 300)
        y = (rng.random(300) < f).astype(float)
        sample = Sample(y[:60], f[:60], f[60:])
        (_, pool), (_, population) = ppi_of_pool(sample), ppi_plus_plus(sample)
        held_pool.append(pool[0] <= y.mean() <= pool[1])
        held_population.append(population[0] <= 2 / 3 <= population[1])
    assert np.mean(held_pool) == pytest.approx(0.94, abs=0.03)
    assert np.mean(held_population) == pytest.approx(0.94, abs=0.03)


def test_prediction_powered_ratios_hold() -> None:
    """Recall of a system: a ratio of two means that are both unknown."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(400):
        f = rng.beta(1, 1, 1000)
        y = (rng.random(1000) < f).astype(float)
        said = (rng.random(1000) < 0.2 + 0.6 * y).astype(float)
        above, below = (Sample((v * y)[:200], (v * f)[:200], (v * f)[200:]) for v in (said, np.ones(1000)))
        interval = ppi_ratio_of_pool(above, below)
        assert interval is not None
        held.append(interval[1][0] <= (said * y).sum() / y.sum() <= interval[1][1])
    assert np.mean(held) == pytest.approx(0.94, abs=0.035)
    nothing = Sample(np.zeros(3), np.zeros(3), np.zeros(5))
    assert ppi_ratio_of_pool(nothing, nothing) is None


def test_a_scaled_interval_holds_as_often_as_asked() -> None:
    rows = [interval_row("r", 0.0, error, (error - 0.1, error + 0.1)) for error in (0.05, 0.1, 0.2, 0.4)]
    assert scaled_width(rows, 0.5) == pytest.approx(0.2 * 2)
    assert scaled_width(rows, 1.0) == pytest.approx(0.2 * 4)
    assert scaled_width([interval_row("r", 0.0, 0.1, (0.1, 0.1))], 1.0) == float("inf")


def test_a_table_of_coverage_has_the_widths_relative_to_another_answer() -> None:
    rows = [{"world": "w", **interval_row("wide", 0.5, 0.6, (0.4, 0.8))}]
    rows += [{"world": "w", **interval_row("narrow", 0.5, 0.6, (0.55, 0.65))}]
    groups = [("w", {"world": "w"})]
    text, numbers = coverage_table(rows, groups, ("wide", "narrow"), ratios={"×": width_over("narrow")})
    assert numbers["w, wide"]["×"] == pytest.approx(4)
    assert numbers["w, wide"]["coverage"] == 1
    assert numbers["w, narrow"]["coverage"] == 0
    assert "mean |error|" in text


# ------------------------------------------------------------------ simulation-based calibration


def test_ranks_of_the_truth_among_its_likes_are_uniform() -> None:
    rng = np.random.default_rng(0)
    ranks = [ranks_of(x[0], x[1:], rng)[0] for x in rng.integers(0, 4, (4000, 10, 1)).astype(float)]
    assert chisquare(np.bincount(ranks, minlength=10)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("name", "power", "verdict"), [("good", 1.0, "uniform"), ("low", 1.3, "NOT UNIFORM"), ("sure", 0.0, "NOT UNIFORM")]
)
def test_ranks_that_are_not_uniform_are_told(name: str, power: float, verdict: str) -> None:
    """Uniform ranks, ranks that are too low, and ranks that keep to both ends."""
    u = np.random.default_rng(4).random(1000)
    places = u**power if power else np.where(u < 0.5, u**1.3, 1 - (1 - u) ** 1.3)
    rows = [{"world": name, "quantity": "q", "rank": int(100 * place)} for place in places]
    assert f"  {verdict}\n\n{int(verdict == 'uniform')} of 1 rows are uniform" in summarise_sbc(rows).text


def test_quantities_do_not_depend_on_the_names_of_classes() -> None:
    rng = np.random.default_rng(0)
    truths, votes = rng.integers(0, 2, (5, 12)), rng.integers(0, 2, (12, 4))
    here, there = quantities_of(truths, votes), quantities_of(1 - truths, votes)
    assert np.array_equal(here[:, :2], there[:, :2])
    by_hand = sum(truths[0, a] == truths[0, b] for a, b in itertools.combinations(range(12), 2))
    assert here[0, 0] == by_hand


@pytest.mark.parametrize("name", MODELS)
def test_priors_of_samplers_are_distributions(name: str) -> None:
    rng = np.random.default_rng(0)
    right = []
    for _ in range(200):
        states = MODELS[name][0](rng)
        assert states.weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(states.rows.sum(axis=2), 1)
        assert states.rows.shape == (N_LABELERS, len(states.state_class), N_CLASSES)
        right.append(states.rows[:, np.arange(len(states.state_class)), states.state_class].mean())
    assert np.mean(right) > 0.6  # the prior pins the names of classes down
    labels, truth = draw_data(states, None, rng)
    assert labels.n_items == len(truth)


def compared(answer: str, seed: int, **more: Any) -> runs.Row:
    """A difference of .02 that is said to lie between −.1 and −.03 once, and then between 0 and .06."""
    interval = (-0.1, -0.03) if seed == 0 else (0.0, 0.06)
    return {"world": "families", "seed": seed, **interval_row(answer, 0.02, np.mean(interval), interval, **more)}


def test_pairs_say_how_often_the_wrong_side_is_claimed() -> None:
    answers = ("real", "shared", "independent", "headline, 20 vetted")
    rows = [
        compared(answer, seed, pair=pair, first_is_best=0.5)
        for seed in range(4)
        for pair in ("better", "equal")
        for answer in answers
    ]
    section = PAIRS_FIGURE.summarise(rows)
    assert section.numbers["families, better, real"]["wrong_side"] == 0.25
    head, _, first, *_ = section.text.split("\n\n")[1].splitlines()
    assert head.count("P(first is best)") == 1
    assert " ".join(first.split()) == "families, better real 75.0 ± 22.9 25.0 25.0 0.50 -0.0138 0.0287 0.062 4"


def test_copies_and_scores_have_a_table_each() -> None:
    for_scores = [compared(answer, seed) for seed in range(3) for answer in ("real", "shared", "independent")]
    assert AUC_FIGURE.summarise(for_scores).numbers["families, real"]["coverage"] == pytest.approx(2 / 3)
    for_copies = [
        compared(answer, seed, assumption=name)
        for seed in range(3)
        for name in ("real", "shared", "independent")
        for answer in ("alone", "with a copy")
    ]
    assert COPIES_FIGURE.summarise(for_copies).numbers["families, real, with a copy"]["ratio"] == 1.0
