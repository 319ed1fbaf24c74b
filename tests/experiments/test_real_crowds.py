"""The experiment on real crowds: whom it grades on which votes, and how intervals are judged."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from benchmarks._engine_runs import Case
from experiments.real_crowds.figures import FIGURES, FOLDER, scale_interval
from experiments.real_crowds.fitting import widenings_left_out
from experiments.real_crowds.grading import PPI, graded_class, pairs_of, rival_intervals, true_values
from experiments.real_crowds.judging import Grade, by_set, over_sets, ratio_of_widths
from experiments.real_crowds.scoring import has_scores, run_scores, two_systems
from experiments.real_crowds.sets import (
    CrowdSet,
    choose_graded,
    family_of,
    load_set,
    load_sets,
    set_names,
    thin_votes,
    vote_codes,
)
from trueup import simulate


def write_set(
    folder: Path, name: str, *, n_items: int = 120, n_truths: int = 120, votes_per_item: int | None = 4
) -> None:
    """A simulated crowd as a folder of the collection."""
    data = simulate.dawid_skene(n_items=n_items, n_labelers=9, votes_per_item=votes_per_item, random_state=len(name))
    item, labeler, answer, _ = data.labels.vote_table()
    rows = [f"i{i},w{t},{a}" for i, t, a in zip(item, labeler, answer, strict=True)]
    truths = [f"i{i},{c}" for i, c in enumerate(data.truth[:n_truths])]
    (folder / name).mkdir()
    for file, head, lines in (("labels", "item,labeler,label", rows), ("truth", "item,label", truths)):
        with gzip.open(folder / name / f"{file}.csv.gz", "wt", encoding="utf-8") as out:
            out.write("\n".join([head, *lines]) + "\n")
    (folder / name / "meta.json").write_text(json.dumps({"source": "made", "license": "none"}), encoding="utf-8")


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_set(tmp_path, "crowd-sparse", n_truths=100)
    write_set(tmp_path, "judge-complete", votes_per_item=None)
    (tmp_path / "crowd-untold").mkdir()
    monkeypatch.setenv("TRUEUP_DATA", str(tmp_path))
    return tmp_path


def test_sets_without_truth_are_left_out(collection: Path) -> None:
    assert set_names() == ["crowd-sparse", "judge-complete"]
    sets = load_sets()
    assert [s.name for s in sets] == set_names()
    assert (sets[0].truth >= 0).sum() == len(sets[0].truths) == 100
    assert sets[0].source == "made"


def test_items_with_truth_come_first_in_a_smaller_set(collection: Path) -> None:
    crowd = load_set("crowd-sparse", 105)
    assert crowd.labels.n_items == 105
    assert (crowd.truth >= 0).sum() == 100
    again = load_set("crowd-sparse", 105)
    assert crowd.labels.items.tolist() == again.labels.items.tolist()
    assert crowd.graded == again.graded
    assert crowd.truths.items() <= load_set("crowd-sparse").truths.items()


def test_a_graded_labeler_is_absent_from_the_votes_they_are_graded_by(collection: Path) -> None:
    crowd = load_set("crowd-sparse")
    labeler = crowd.graded[0]
    assert labeler not in crowd.others_of(labeler).labelers.tolist()
    predicted = crowd.predictions_of(labeler)
    assert predicted.keys() <= crowd.truths.keys()
    codes = vote_codes(crowd.labels, labeler)
    at = crowd.labels.item_codes(predicted)
    assert crowd.labels.classes[codes[at]].tolist() == list(predicted.values())


def test_graded_are_the_most_prolific_with_enough_items_of_known_truth(collection: Path) -> None:
    crowd = load_set("crowd-sparse")
    item, labeler, _, _ = crowd.labels.vote_table()
    known = np.bincount(labeler[crowd.truth[item] >= 0], minlength=crowd.labels.n_labelers)
    chosen = choose_graded(crowd.labels, crowd.truth, seed=0, n_graded=3, min_items=10)
    assert sorted(known[crowd.labels.labeler_codes(chosen)]) == sorted(known)[-3:]
    least = int(known.max())
    assert all(
        known[crowd.labels.labeler_codes([t])[0]] >= least
        for t in choose_graded(crowd.labels, crowd.truth, seed=0, min_items=least)
    )


@pytest.mark.parametrize(("name", "n_labelers"), [("crowd-sparse", 8), ("judge-complete", 3)])
def test_thinned_votes(collection: Path, name: str, n_labelers: int) -> None:
    """A sparse crowd keeps its labelers and loses votes; a complete one loses labelers."""
    crowd: CrowdSet = load_set(name)
    thinned = thin_votes(crowd, 3, labeler=crowd.graded[0])
    assert thinned.votes_per_item.max() == 3
    assert thinned.n_labelers == n_labelers
    assert thinned.items.tolist() == crowd.labels.items.tolist()
    full = crowd.others_of(crowd.graded[0]).select(labelers=thinned.labelers.tolist())
    assert ((full.votes - thinned.votes).toarray() >= 0).all()


def test_sets_of_one_collection_are_one_family() -> None:
    assert family_of("judge-llmbar") == family_of("judge-llmbar-casestudy")
    assert family_of("crowd-snow-rte") == family_of("crowd-snow-temp")
    assert family_of("crowd-face") == "crowd-face"


# ------------------------------------------------------------------ judging


def grade(crowd: str, *, error: float = 0.0, width: float = 0.2, sd: float = 0.05, **more: Any) -> Grade:
    fields = {"family": crowd, "system": "s", "metric": "accuracy", "condition": "c", "answer": "a", "true": 0.5}
    mean = 0.5 + error
    numbers = {"mean": mean, "sd": sd, "low": mean - width / 2, "high": mean + width / 2}
    return Grade(crowd=crowd, **{**fields, **numbers, **more})


def test_sets_weigh_alike_whatever_their_size() -> None:
    grades = [grade("large") for _ in range(9)] + [grade("small", error=0.3, width=0.4)]
    overall = over_sets(grades)
    assert overall.coverage == 0.5
    assert overall.coverage_error == pytest.approx(0.5)
    assert overall.width == pytest.approx(0.3)
    assert overall.least_coverage == 0
    assert overall.mean_error == pytest.approx(0.15)
    assert by_set(grades)["large"].n == 9


def test_the_map_is_fitted_without_the_family_it_is_judged_on() -> None:
    def a_set(family: str, needed: float) -> Any:
        crowd = SimpleNamespace(family=family)
        return SimpleNamespace(crowd=crowd, true=np.zeros(4), expected=np.full(4, needed * 0.05), spread=np.zeros(4))

    sets = [a_set("x", 3.0), a_set("x", 1.0), a_set("y", 2.0), a_set("z", 1.5)]
    assert widenings_left_out(sets, floor=0.05) == pytest.approx({"x": 2.0, "y": 3.0, "z": 3.0})


def test_an_interval_is_scaled_about_its_mean_and_stays_in_its_bounds() -> None:
    wider = scale_interval(replace(grade("set"), mean=0.9, low=0.8, high=0.98), 1.5)
    assert (wider.low, wider.high) == pytest.approx((0.75, 1.0))
    apart = scale_interval(replace(grade("set"), metric="difference", mean=0.1, low=-0.1, high=0.2), 2.0)
    assert (apart.low, apart.high) == pytest.approx((-0.3, 0.3))


def test_widths_are_compared_on_the_cases_of_both() -> None:
    mine = [grade("x", width=0.1, repetition=k) for k in range(3)] + [grade("y", width=0.4)]
    theirs = [grade("x", width=0.2, repetition=k) for k in (0, 1)]
    assert ratio_of_widths(mine, theirs) == pytest.approx(0.5)
    assert np.isnan(ratio_of_widths(mine, []))


def test_true_values_by_hand() -> None:
    said, truth = np.array(["a", "a", "b", "b"]), np.array(["a", "b", "b", "a"])
    values = true_values(said, truth, "b")
    assert values == {"accuracy": 0.5, "prevalence": 0.5, "recall": 0.5, "precision": 0.5, "f1": 0.5}
    assert np.isnan(true_values(said, truth, "c")["precision"])


def test_rivals_know_the_metric_where_everything_is_vetted() -> None:
    rng = np.random.default_rng(1)
    classes = np.array(["a", "b", "c"])
    said, truth = classes[rng.integers(0, 3, 60)], classes[rng.integers(0, 3, 60)]
    intervals = rival_intervals(said, truth, rng.dirichlet(np.ones(3), 60), classes, "b", np.arange(60))
    true = true_values(said, truth, "b")
    for name in ("accuracy", "precision", "recall", "f1"):
        mean, (low, high) = intervals[name, PPI]
        assert mean == low == high == pytest.approx(true[name])
    assert intervals["accuracy", "Wilson"][0] == pytest.approx(true["accuracy"])


def test_pairs_have_enough_items_in_common(collection: Path) -> None:
    crowd = load_set("judge-complete")
    pairs = pairs_of(crowd)
    assert len(pairs) == 6
    assert len({frozenset(pair) for pair in pairs}) == 6
    assert pairs == pairs_of(load_set("judge-complete"))
    assert graded_class(crowd) == crowd.labels.classes.tolist()[1]


def test_scores_are_shares_of_the_votes_of_labelers_whose_votes_are_then_gone(collection: Path) -> None:
    crowd = load_set("judge-complete")
    assert has_scores(crowd)
    by_item, others = two_systems(crowd, 3)
    assert others.n_labelers == 9 - 2 * 2
    gone = [labeler for labeler in crowd.labels.labelers.tolist() if labeler not in others.labelers.tolist()]
    codes = {labeler: vote_codes(crowd.labels, labeler) for labeler in gone}
    at = {item: k for k, item in enumerate(crowd.labels.items.tolist())}
    assert len(by_item) == 120
    for item, scores in by_item.items():
        assert 2 * (scores["a"] + scores["b"]) == sum(own[at[item]] for own in codes.values())
    assert two_systems(crowd, 4)[0] != by_item


def test_scores_are_graded_beside_the_auc_by_scikit_learn(collection: Path) -> None:
    crowd = load_set("judge-complete")
    rows = run_scores(Case("judge-complete", 0))
    by_item, _ = two_systems(crowd, 0)
    truths = [int(crowd.truths[item]) for item in by_item]
    of_a = roc_auc_score(truths, [scores["a"] for scores in by_item.values()])
    assert [row["true"] for row in rows if row["system"] == "a"] == pytest.approx([of_a] * 3)
    assert [row["metric"] for row in rows] == ["auc", "auc", "difference"] * 3
    for row in rows:
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["mean"] == pytest.approx(row["true"], abs=0.15)


def test_what_is_asked_names_what_is_measured() -> None:
    asked = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    assert asked.keys() == FIGURES.keys()


def test_every_set_of_the_readme_has_a_source_and_a_licence() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith(("| `crowd-", "| `judge-"))]
    assert len(rows) == 20
    assert all(len([cell for cell in row.split(" | ") if cell.strip(" |")]) == 4 for row in rows)


def test_the_command_can_be_called() -> None:
    from experiments.real_crowds.__main__ import main

    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
