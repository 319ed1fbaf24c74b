from types import SimpleNamespace

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels


class Rows:
    """What Hugging Face's Dataset has: column names, columns by name, and features that may name classes."""

    def __init__(self, columns, features):
        self._columns, self.features = columns, features

    @property
    def column_names(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]


SENTIMENT = SimpleNamespace(names=["negative", "positive"])


def votes_of(labels):
    item, labeler, answer, _ = labels.vote_table()
    names = (labels.items[item], labels.labelers[labeler], labels.answers[answer])
    return list(zip(*(values.tolist() for values in names), strict=True))


def test_lists_of_votes_are_taken_apart():
    features = {"votes": SimpleNamespace(feature=SENTIMENT), "who": None}
    rows = Rows({"votes": [[0, 1, 1], [1]], "who": [["x", "y", "z"], ["x"]]}, features)
    labels = tu.Labels.from_dataset(rows, label="votes", labeler="who")
    assert votes_of(labels) == [(0, "x", "negative"), (0, "y", "positive"), (0, "z", "positive"), (1, "x", "positive")]
    rows.features["votes"] = [SENTIMENT]  # as older versions write a list
    assert votes_of(tu.Labels.from_dataset(rows, label="votes", labeler="who")) == votes_of(labels)


@pytest.mark.parametrize("as_list", [True, False])
def test_objects_in_a_column(as_list):
    objects = [[{"label": 0, "by": "x"}, {"label": 1, "by": "y"}], [{"label": 1, "by": "x"}]]
    lists = [{"label": [0, 1], "by": ["x", "y"]}, {"label": [1], "by": ["x"]}]
    features = {"annotations": SimpleNamespace(feature={"label": SENTIMENT, "by": None})}
    rows = Rows({"annotations": objects if as_list else lists}, features)
    labels = tu.Labels.from_dataset(rows, label="annotations.label", labeler="annotations.by")
    assert votes_of(labels) == [(0, "x", "negative"), (0, "y", "positive"), (1, "x", "positive")]


def test_votes_of_nobody_known_are_a_crowd():
    labels = tu.Labels.from_dataset([{"label": ["a", "a", "b"]}, {"label": ["b"]}], labeler=None)
    assert labels.is_crowd.tolist() == [True]
    assert not labels.has_repeats
    assert labels.witnesses_per_item.tolist() == [3, 1]


def test_labeling_functions_that_pass_abstain():
    matrix = np.array([[0, 1, -1], [1, 1, 1], [-1, 0, -1]])
    labels = tu.Labels.from_dataset(matrix, labelers=["f", "g", "h"])
    assert labels.abstentions.tolist() == [1, 0, 2]
    assert labels.n_votes == 6
    kept = tu.Labels.from_dataset(matrix, abstain_policy="answer")
    assert kept.n_answers == 3


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        ([{"label": ["a", "b"], "labeler": ["x"]}], {}),
        ([{"label": "a", "labeler": "x"}], {"label": "votes"}),
        (7, {}),
        (Rows({"label": [5], "labeler": ["x"]}, {"label": SENTIMENT}), {}),
        ([{"a": {"b": 1}, "labeler": "x"}], {"label": "a.label"}),
        ([{"label": "a", "labeler": "x"}], {"labelers": ["x"]}),
    ],
)
def test_what_does_not_fit_is_a_sentence(dataset, options):
    with pytest.raises(InvalidLabels):
        tu.Labels.from_dataset(dataset, **options)
