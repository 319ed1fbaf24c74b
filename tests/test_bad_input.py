"""Bad input gets one sentence, says what was wrong, what was got and what to do, and nothing is lost."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trueup.adapters import read_gold, read_labels, read_predictions
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions, as_predictions
from trueup.exceptions import DataWarning, InvalidFile, InvalidLabels, InvalidPredictions, MissingFile, TrueupError

GOOD = {"item": [1, 1, 2], "labeler": ["a", "b", "a"], "label": ["x", "y", "y"]}


def labels() -> Labels:
    return Labels.from_frame(GOOD)


def file(folder: Path, text: str, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(**columns: object) -> Labels:
    return Labels.from_frame({**GOOD, **columns})


CASES: dict[str, tuple[Callable[[Path], object], type[TrueupError], str]] = {
    "empty file": (lambda d: read_labels(file(d, "")), InvalidFile, "got no line at all"),
    "no rows": (lambda d: read_labels(file(d, "item,labeler,label\n")), InvalidLabels, "got 0 rows"),
    "missing column of a file": (
        lambda d: read_labels(file(d, "item,who,label\n1,2,3\n")),
        InvalidLabels,
        "got columns 'item', 'who', 'label'",
    ),
    "missing column of a frame": (
        lambda d: Labels.from_frame({"items": [1], "labeler": [1], "label": [1]}),
        InvalidLabels,
        "got columns 'items'",
    ),
    "one class only": (lambda d: table(label=["x", "x", "x"]), InvalidLabels, "got only 'x'"),
    "nan": (lambda d: table(label=[0.0, np.nan, 1.0]), InvalidLabels, "got 1 of 3 rows"),
    "none": (lambda d: table(label=["x", None, "y"]), InvalidLabels, "got 1 of 3 rows"),
    "empty text": (lambda d: table(label=["x", "", "y"]), InvalidLabels, "got 1 of 3 rows"),
    "blank item": (lambda d: table(item=[1, None, 2]), InvalidLabels, "got 1 of 3 rows"),
    "mixed types": (lambda d: table(label=["x", 1, "y"]), InvalidLabels, "got text 'x' and number 1"),
    "names that cannot be hashed": (lambda d: table(label=["x", ["y"], "y"]), InvalidLabels, "got list ['y']"),
    "a tuple that cannot be hashed": (lambda d: table(label=[("x"), ([]), ("y")]), InvalidLabels, "got list"),
    "columns of different lengths": (
        lambda d: table(label=["x", "y"]),
        InvalidLabels,
        "got 3 items, 3 labelers and 2 labels",
    ),
    "no frame": (lambda d: Labels.from_frame([1, 2]), InvalidLabels, "got list"),
    "no column but a text": (lambda d: table(label="xyz"), InvalidLabels, "got str"),
    "no column but a set": (lambda d: table(label={"x", "y", "z"}), InvalidLabels, "got set"),
    "a path that does not exist": (
        lambda d: read_labels("/data/ten-gigabytes.parquet"),
        MissingFile,
        "got no such file",
    ),
    "probabilities that do not sum to one": (
        lambda d: as_predictions(np.array([[0.5, 0.6], [0.5, 0.5]]), labels()),
        InvalidPredictions,
        "got 1.1 in `row 0`",
    ),
    "gold for an unknown item": (lambda d: labels().with_gold({3: "x"}), InvalidLabels, "got [3]"),
    "gold for an unknown class": (
        lambda d: Labels.from_matrix([["x", "y"]], classes=["x", "y"]).with_gold({0: "z"}),
        InvalidLabels,
        "got ['z']",
    ),
    "gold of a file for an unknown item": (
        lambda d: labels().with_gold(read_gold(file(d, "item,label\n9,x\n"))),
        InvalidLabels,
        "got [9]",
    ),
    "classes that differ": (
        lambda d: as_predictions(["x", "z"], labels()).align(labels()),
        InvalidPredictions,
        "got 1 of 2 predictions for other classes: ['z']",
    ),
    "classes that differ in type": (
        lambda d: as_predictions(["0", "1"], Labels.from_matrix([[0, 1], [1, 1]])).align(
            Labels.from_matrix([[0, 1], [1, 1]])
        ),
        InvalidPredictions,
        "of type number (e.g. 0) and these of type text (e.g. '0')",
    ),
    "predictions for an unknown item": (
        lambda d: Predictions.from_classes({1: "x", 2: "y", 3: "y"}).align(labels()),
        InvalidPredictions,
        "got 1 of 3 for others: [3]",
    ),
    "a missing prediction": (
        lambda d: Predictions.from_classes({1: "x"}).align(labels()),
        InvalidPredictions,
        "got none for 1 of 2 items: [2]",
    ),
    "too few predictions": (
        lambda d: as_predictions(["x"], labels()).align(labels()),
        InvalidPredictions,
        "got 1 for 2 items",
    ),
    "scores where classes are needed": (
        lambda d: as_predictions([0.2, 0.7], labels()),
        InvalidPredictions,
        "got [0.2, 0.7]",
    ),
    "an empty file of predictions": (lambda d: read_predictions(file(d, "")), InvalidFile, "got no line at all"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_says_what_got_do(case, tmp_path):
    make, kind, got = CASES[case]
    with pytest.raises(TrueupError) as caught:
        make(tmp_path)
    assert type(caught.value) is kind
    sentence = str(caught.value)
    assert got in sentence
    assert "\n" not in sentence
    assert not re.search(r"\.\s+[A-Z]", sentence.replace(str(tmp_path), ""))
    assert len(sentence.replace(str(tmp_path), "")) < 400


def test_an_item_without_votes_is_kept():
    with pytest.warns(DataWarning, match="1 of 3 items have no votes; they are kept"):
        kept = Labels.from_matrix([[0, 1], [-1, -1], [1, 1]])
    assert kept.n_items == 3
    assert kept.votes_per_item.tolist() == [2, 0, 2]


def test_a_labeler_with_one_vote_is_kept():
    one = labels()
    assert one.votes_per_labeler.tolist() == [2, 1]
    assert one.summary()["labelers_with_one_vote"] == 1
    assert any("1 of 2 labelers gave one vote only" in note for note in one.notes())


def test_one_class_is_fine_where_the_others_are_named():
    assert Labels.from_frame({**GOOD, "label": ["x", "x", "x"]}, classes=["x", "y"]).n_classes == 2
