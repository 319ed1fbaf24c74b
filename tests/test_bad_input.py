"""Bad input gets one sentence, says what was wrong, what was got and what to do, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trueup.adapters import read_gold, read_labels, read_predictions
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions, as_predictions
from trueup.exceptions import (
    DataWarning,
    InvalidFile,
    InvalidLabels,
    InvalidPredictions,
    MissingFile,
    TrueupError,
)

GOOD = {"item": [1, 1, 2], "labeler": ["a", "b", "a"], "label": ["x", "y", "y"]}


def labels() -> Labels:
    return Labels.from_frame(GOOD)


def file(folder: Path, text: str, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(**columns: object) -> Labels:
    return Labels.from_frame({**GOOD, **columns})


CASES: dict[str, tuple[Callable[[Path], object], type[TrueupError], str, str, str]] = {
    "empty file": (
        lambda d: read_labels(file(d, "")),
        InvalidFile,
        "is empty",
        "got no line at all",
        "write the names of the columns",
    ),
    "no rows": (
        lambda d: read_labels(file(d, "item,labeler,label\n")),
        InvalidLabels,
        "there are no votes",
        "got 0 rows",
        "pass a table",
    ),
    "missing column of a file": (
        lambda d: read_labels(file(d, "item,worker,label\n1,2,3\n")),
        InvalidLabels,
        "there is no column 'labeler'",
        "got columns 'item', 'worker', 'label'",
        "name it with `labeler=",
    ),
    "missing column of a frame": (
        lambda d: Labels.from_frame({"items": [1], "labeler": [1], "label": [1]}),
        InvalidLabels,
        "there is no column 'item'",
        "got columns 'items'",
        "did you mean 'items'",
    ),
    "one class only": (
        lambda d: table(label=["x", "x", "x"]),
        InvalidLabels,
        "at least two classes",
        "got only 'x'",
        "pass `classes=",
    ),
    "nan": (
        lambda d: table(label=[0.0, np.nan, 1.0]),
        InvalidLabels,
        "must not be empty",
        "got 1 of 3 rows",
        "missing=None",
    ),
    "none": (
        lambda d: table(label=["x", None, "y"]),
        InvalidLabels,
        "must not be empty",
        "got 1 of 3 rows",
        "missing=None",
    ),
    "empty text": (
        lambda d: table(label=["x", "", "y"]),
        InvalidLabels,
        "must not be blank text",
        "got 1 of 3 rows",
        "missing=''",
    ),
    "blank item": (
        lambda d: table(item=[1, None, 2]),
        InvalidLabels,
        "item must be named",
        "got 1 of 3 rows",
        "drop the rows",
    ),
    "mixed types": (
        lambda d: table(label=["x", 1, "y"]),
        InvalidLabels,
        "label mixes types",
        "got text 'x' and number 1",
        "convert the column",
    ),
    "names that cannot be hashed": (
        lambda d: table(label=["x", ["y"], "y"]),
        InvalidLabels,
        "can be hashed",
        "got list ['y']",
        "convert the column",
    ),
    "a tuple that cannot be hashed": (
        lambda d: table(label=[("x",), ([],), ("y",)]),
        InvalidLabels,
        "can be hashed",
        "got tuple",
        "convert the column",
    ),
    "columns of different lengths": (
        lambda d: table(label=["x", "y"]),
        InvalidLabels,
        "one length",
        "got 3 items, 3 labelers and 2 labels",
        "pass one row for each vote",
    ),
    "no frame": (
        lambda d: Labels.from_frame([1, 2]),
        InvalidLabels,
        "a frame",
        "got list",
        "use Labels.from_matrix",
    ),
    "no column but a text": (
        lambda d: table(label="xyz"),
        InvalidLabels,
        "must be a sequence",
        "got str",
        "pass a list",
    ),
    "no column but a set": (
        lambda d: table(label={"x", "y", "z"}),
        InvalidLabels,
        "must be a sequence",
        "got set",
        "pass a list",
    ),
    "a path that does not exist": (
        lambda d: read_labels("/data/ten-gigabytes.parquet"),
        MissingFile,
        "'/data/ten-gigabytes.parquet' does not exist",
        "got no such file",
        "check the path",
    ),
    "probabilities that do not sum to one": (
        lambda d: as_predictions(np.array([[0.5, 0.6], [0.5, 0.5]]), labels()),
        InvalidPredictions,
        "must sum to 1",
        "got 1.1 in `row 0`",
        "divide each row by its sum",
    ),
    "gold for an unknown item": (
        lambda d: labels().with_gold({3: "x"}),
        InvalidLabels,
        "items are not in the labels",
        "got [3]",
        "see `labels.items`",
    ),
    "gold for an unknown class": (
        lambda d: Labels.from_matrix([["x", "y"]], classes=["x", "y"]).with_gold({0: "z"}),
        InvalidLabels,
        "gold must name classes",
        "got ['z']",
        "with `classes=",
    ),
    "gold of a file for an unknown item": (
        lambda d: labels().with_gold(read_gold(file(d, "item,label\n9,x\n"))),
        InvalidLabels,
        "items are not in the labels",
        "got [9]",
        "see `labels.items`",
    ),
    "classes that differ": (
        lambda d: as_predictions(["x", "z"], labels()).align(labels()),
        InvalidPredictions,
        "must be classes of the labels",
        "got 1 of 2 predictions for other classes: ['z']",
        "rename them",
    ),
    "classes that differ in type": (
        lambda d: as_predictions(["0", "1"], Labels.from_matrix([[0, 1], [1, 1]])).align(
            Labels.from_matrix([[0, 1], [1, 1]])
        ),
        InvalidPredictions,
        "must be classes of the labels",
        "of type number (e.g. 0) and these of type text (e.g. '0')",
        "name them alike, in Python e.g. with int(…)",
    ),
    "predictions for an unknown item": (
        lambda d: Predictions.from_classes({1: "x", 2: "y", 3: "y"}).align(labels()),
        InvalidPredictions,
        "must be for items of the labels",
        "got 1 of 3 for others: [3]",
        'unknown="ignore"',
    ),
    "a missing prediction": (
        lambda d: Predictions.from_classes({1: "x"}).align(labels()),
        InvalidPredictions,
        "every item needs a prediction",
        "got none for 1 of 2 items: [2]",
        'missing="ignore"',
    ),
    "too few predictions": (
        lambda d: as_predictions(["x"], labels()).align(labels()),
        InvalidPredictions,
        "must follow labels.items",
        "got 1 for 2 items",
        "pass one for each",
    ),
    "scores where classes are needed": (
        lambda d: as_predictions([0.2, 0.7], labels()),
        InvalidPredictions,
        "scores where classes are needed",
        "got [0.2, 0.7]",
        "use Predictions.from_scores",
    ),
    "an empty file of predictions": (
        lambda d: read_predictions(file(d, "")),
        InvalidFile,
        "is empty",
        "got no line at all",
        "write the names",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_says_what_got_do(case, tmp_path):
    make, kind, what, got, do = CASES[case]
    with pytest.raises(TrueupError) as caught:
        make(tmp_path)
    assert type(caught.value) is kind
    sentence = str(caught.value)
    for part in (what, got, do):
        assert part in sentence
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
