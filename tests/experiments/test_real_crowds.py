"""The crowd sets of the experiment: whom it grades, on which votes, and which sets go together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

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
