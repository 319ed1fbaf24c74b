"""The benchmark of the core: worlds as they are described, runs that go on, rivals by formula, tables by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config

from benchmarks import _runs as runs
from benchmarks._answers import coverage_table, draw_gold, interval_row, width_over
from benchmarks._coverage_tally import Section
from benchmarks._vetting_crowd import run_crowd
from benchmarks._vetting_rivals import Sample, ppi_of_pool, ppi_plus_plus, ppi_ratio_of_pool
from benchmarks._worlds import WORLDS, make
from benchmarks.core import FIGURES, N_CHECKED, N_CLOSE, OURS, RIVAL


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


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "independent"])
def test_the_classifier_errs_with_the_crowd_where_it_should(name: str) -> None:
    def joint(world_name: str) -> float:
        world = make(world_name, 4000, 3)
        crowd_errs = world.labels.answer_counts.argmax(axis=1) != world.truth
        errs = world.predictions != world.truth
        return float(np.mean(errs & crowd_errs) / (errs.mean() * crowd_errs.mean()))

    assert joint(name) > 1.3
    assert 0.7 < joint("independent") < 1.3


def test_random_gold_is_the_truth_of_so_many_items() -> None:
    world = make("families", 200, 4)
    labels, at = draw_gold(world.labels, world.truth, 20, np.random.default_rng(0))
    assert labels.gold == {int(k): int(world.truth[k]) for k in at}
    assert len(labels.drawn_gold) == 20


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


def test_a_table_of_coverage_has_the_widths_relative_to_another_answer() -> None:
    rows = [{"world": "w", **interval_row("wide", 0.5, 0.6, (0.4, 0.8))}]
    rows += [{"world": "w", **interval_row("narrow", 0.5, 0.6, (0.55, 0.65))}]
    groups = [("w", {"world": "w"})]
    text, numbers = coverage_table(rows, groups, ("wide", "narrow"), ratios={"×": width_over("narrow")})
    assert numbers["w, wide"]["×"] == pytest.approx(4)
    assert numbers["w, wide"]["coverage"] == 1
    assert numbers["w, narrow"]["coverage"] == 0
    assert "mean |error|" in text


# ------------------------------------------------------------------ tables


def answered(seed: int, **more: Any) -> runs.Row:
    """An interval about a truth of .02 that lies between −.1 and −.03 once, and then between 0 and .06."""
    interval = (-0.1, -0.03) if seed == 0 else (0.0, 0.06)
    answer = more.pop("answer", OURS)
    return {"seed": seed, **interval_row(answer, 0.02, float(np.mean(interval)), interval), **more}


def test_pairs_say_how_often_the_wrong_side_is_claimed() -> None:
    rows = [
        answered(seed, world="families", pair=pair, n=n)
        for seed in range(4)
        for pair in ("better", "equal")
        for n in (0, N_CLOSE)
    ]
    section = FIGURES["pairs"].summarise(rows)
    numbers = section.numbers["families, better, 0 checked"]
    assert (numbers["wrong side"], numbers["called different"], numbers["coverage"]) == (0.25, 0.25, 0.75)
    first = section.text.split("\n\n")[1].splitlines()[2]
    assert " ".join(first.split()) == "families, better, 0 checked 75.0 ± 22.9 25.0 25.0 -0.0138 0.062 4"


def test_checks_are_compared_with_the_rival_on_the_same_items() -> None:
    rows = [answered(k, world="independent", n=n) for k in range(3) for n in N_CHECKED]
    rows += [answered(1, world="independent", n=n, answer=RIVAL) for n in N_CHECKED]
    numbers = FIGURES["checks"].summarise(rows).numbers
    assert numbers[f"independent, 40 checked, {OURS}"]["× PPI++"] == pytest.approx((0.07 + 2 * 0.06) / 3 / 0.06)


def test_every_section_has_runs_and_quick_ones() -> None:
    assert all(figure.n_quick < figure.n_runs for figure in FIGURES.values())
