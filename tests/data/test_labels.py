"""`Labels`: what comes in, what is counted, what comes out."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from trueup.data.items import ItemTable
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.exceptions import DataWarning, InvalidLabels

TABLE = {
    "item": ["a", "a", "b", "b", "c"],
    "labeler": ["ann", "bob", "ann", "bob", "ann"],
    "label": ["cat", "dog", "dog", "dog", "cat"],
}


def same(a: Labels, b: Labels) -> bool:
    for field in fields(Labels):
        mine, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(mine, sparse.csr_array):
            mine, other = mine.toarray(), other.toarray()
        if isinstance(mine, ItemTable):
            mine, other = ([list(table.columns), *table.columns.values()] for table in (mine, other))
        if field.name == "gold_chance":  # NaN where there is none
            mine, other = np.nan_to_num(mine), np.nan_to_num(other)
        if not np.array_equal(np.asarray(mine, dtype=object), np.asarray(other, dtype=object)):
            return False
    return True


@pytest.fixture
def labels() -> Labels:
    return Labels.from_frame(TABLE)


@pytest.mark.parametrize(
    "frame",
    [
        TABLE,
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE).astype("category"),
        pd.DataFrame(TABLE, index=[9, 8, 7, 6, 5]),
        pl.DataFrame(TABLE),
        pl.DataFrame(TABLE).cast(pl.Categorical),
        pa.table(TABLE),
        pa.table({k: pa.array(v).dictionary_encode() for k, v in TABLE.items()}),
        {k: np.array(v) for k, v in TABLE.items()},
        {k: np.array(v, dtype=object) for k, v in TABLE.items()},
        {k: tuple(v) for k, v in TABLE.items()},
        {k: pd.Series(v, index=[4.0, 3.0, 2.0, 1.0, 0.0]) for k, v in TABLE.items()},
        {k: pl.Series(v) for k, v in TABLE.items()},
    ],
    ids=lambda f: type(f).__name__,
)
def test_every_kind_of_frame_gives_the_same_labels(frame, labels):
    assert same(Labels.from_frame(frame), labels)


def test_the_vote_matrix_counts_who_said_what(labels):
    assert labels.items.tolist() == ["a", "b", "c"]
    assert labels.votes.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 0]]
    assert labels.answer_counts.tolist() == [[1, 1], [0, 2], [1, 0]]
    assert labels.votes_per_item.tolist() == [2, 2, 1]
    assert labels.votes_per_labeler.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        ([0, 1, 1], [0, 1]),
        (np.array([0, 1, 1], dtype=np.uint8), [0, 1]),
        (np.array([-128, 127, 0], dtype=np.int8), [-128, 0, 127]),
        (np.array([2**63 + 5, 7, 7], dtype=np.uint64), [7, 2**63 + 5]),
        (np.array([10**12, -(10**12), 0]), [-(10**12), 0, 10**12]),
        ([10**400, 1, 1], [1, 10**400]),
        ([0.0, 1.0, 1.0], [0, 1]),
        ([0.5, 1.5, 1.5], [0.5, 1.5]),
        ([True, False, True], [False, True]),
        (np.array([True, False, True]), [False, True]),
        ([(1, "x"), (0, "y"), (0, "y")], [(0, "y"), (1, "x")]),
        ([(1, 2), ("a", 2), ("a", 2)], [("a", 2), (1, 2)]),
        ([frozenset("ab"), frozenset("c"), frozenset("c")], [frozenset("ab"), frozenset("c")]),
        (pd.array([1, 0, 0], dtype="Int64"), [0, 1]),
        (pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-01"])), None),
    ],
)
def test_names_of_any_hashable_type(names, classes):
    labels = Labels.from_frame({"item": names, "labeler": names, "label": names}, duplicates="first")
    if classes is not None:
        assert labels.classes.tolist() == labels.items.tolist() == labels.labelers.tolist() == classes
    assert labels.select(items=[labels.items[1]]).items.tolist() == [labels.items[1]]
    assert labels.without_labeler(labels.labelers[0]).n_labelers == labels.n_labelers - 1
    assert labels.with_gold({labels.items[0]: labels.classes[0]}).gold == {labels.items[0]: labels.classes[0]}


class TestMatrix:
    def test_what_a_mask_hides_is_no_vote(self):
        matrix = np.ma.masked_array([[0, 1], [1, 9]], mask=[[0, 0], [0, 1]])
        assert Labels.from_matrix(matrix).classes.tolist() == [0, 1]

    def test_a_class_is_never_dropped_for_what_marks_no_vote(self):
        with pytest.raises(InvalidLabels):
            Labels.from_matrix([[-1, 0], [1, 0]], classes=[-1, 0, 1])
        assert Labels.from_matrix([[-1, 0], [1, 0]], classes=[-1, 0, 1], missing=None).n_votes == 4
        with pytest.raises(InvalidLabels):
            Labels.from_matrix([[-1, 1], [1, 1]])
        assert Labels.from_matrix([[-1, 1], [1, 1]], missing=None).classes.tolist() == [-1, 1]

    @pytest.mark.parametrize(
        ("matrix", "options"),
        [
            ([[0, 1], [1]], {}),
            ([0, 1], {}),
            ([[0, 1]], {"items": ["a", "b"]}),
            ([[0, 1], [1, 0]], {"items": ["a", "a"]}),
            ([[0, 1], [1, 0]], {"items": ["a", None]}),
            ([[0, 1], [1, 0]], {"classes": "ab"}),
            ([[0, 1], [1, 0]], {"classes": [-1, 0, 1]}),
            ([[0, 1], [1, 0]], {"classes": ["0", "1"]}),
            ([[-1, -1]], {"classes": [0, 1]}),
            ([[0, 1]], {"abstain": -1}),
            ([[0, 1]], {"missing": [{}]}),
        ],
    )
    def test_bad_matrices(self, matrix, options):
        with pytest.raises(InvalidLabels):
            Labels.from_matrix(matrix, **options)


class TestCounts:
    def test_an_item_without_votes_is_kept_with_a_warning(self):
        with pytest.warns(DataWarning, match="1 of 2 items have no votes"):
            assert Labels.from_counts([[3, 1], [0, 0]]).n_items == 2

    @pytest.mark.parametrize(
        "counts", [[1, 2], [[1], [2]], [[-1, 2]], [[0.5, 1]], [[np.nan, 1]], [["a", "b"]], [[0, 0]]]
    )
    def test_bad_counts(self, counts):
        with pytest.raises(InvalidLabels):
            Labels.from_counts(counts)


ABSTAINING = {"item": [1, 1, 2, 2, 3], "labeler": [1, 2, 1, 2, 1], "label": ["x", "?", "y", "x", "?"]}


class TestWitnesses:
    """Several votes under one name are of different people in a crowd, and else of one person."""

    def test_a_crowd_is_many(self):
        labels = Labels.from_counts([[3, 1], [0, 2]], classes=["cat", "dog"])
        assert labels.is_crowd.tolist() == [True]
        assert labels.witnesses_per_item.tolist() == [4, 2]
        assert (labels.n_repeats, labels.has_repeats) == (0, False)
        assert one_vote_each(labels, np.random.default_rng(0)) is labels
        assert not any("repeat" in note for note in labels.notes())

    def test_a_labeler_is_one(self):
        with pytest.warns(DataWarning, match="repeat"):
            labels = Labels.from_frame(REPEATED)
        assert labels.is_crowd.tolist() == [False, False]
        assert labels.witnesses_per_item.tolist() == [2, 1]
        assert (labels.n_repeats, labels.has_repeats) == (1, True)
        one_each = one_vote_each(labels, np.random.default_rng(0))
        assert one_each.votes_per_item.tolist() == [2, 1]
        assert not one_each.has_repeats


class TestAbstentions:
    def test_as_an_answer_that_is_no_class(self):
        labels = Labels.from_frame(ABSTAINING, abstain="?", abstain_policy="answer")
        assert labels.classes.tolist() == ["x", "y"]
        assert labels.answers.tolist() == ["x", "y", "?"]
        assert labels.n_votes == 5
        assert labels.abstentions.tolist() == [1, 1]
        assert labels.answer_counts[:, 2].tolist() == [1, 0, 1]

    def test_false_is_not_the_number_zero(self):
        table = {"item": [1, 2], "labeler": [1, 1], "label": [True, False]}
        assert Labels.from_frame(table, missing=0).n_votes == 2


REPEATED = {"item": [1, 1, 1, 2], "labeler": [1, 1, 2, 1], "label": ["x", "y", "x", "y"]}


class TestDuplicates:
    def test_kept_with_a_warning_that_counts_them(self):
        with pytest.warns(DataWarning, match="1 of 4 votes repeat") as caught:
            labels = Labels.from_frame(REPEATED)
        assert caught[0].filename == __file__
        assert (labels.n_votes, labels.n_pairs) == (4, 3)
        assert labels.summary()["repeated_votes"] == 1

    @pytest.mark.parametrize(("rule", "kept"), [("first", "x"), ("last", "y")])
    def test_a_choice(self, rule, kept):
        labels = Labels.from_frame(REPEATED, duplicates=rule)
        assert labels.n_votes == 3
        column = labels.classes.tolist().index(kept)
        assert labels.votes.toarray()[0, column] == 1

    def test_an_error_names_the_first(self):
        with pytest.raises(InvalidLabels, match="labeler 1 on item 1"):
            Labels.from_frame(REPEATED, duplicates="error")


class TestGold:
    def test_roles(self, labels):
        both = labels.with_gold({"a": "cat"}).with_gold({"b": "dog"}, role="check")
        assert (both.gold, both.held_gold) == ({"a": "cat"}, {"b": "dog"})
        moved = both.with_gold({"a": "cat"}, role="check")
        assert (moved.gold, moved.held_gold) == ({}, {"a": "cat", "b": "dog"})
        assert both.without_gold().gold == {}
        assert "1 gold, 1 held-out gold" in repr(both)

    @pytest.mark.parametrize(
        "truths", [{"z": "cat"}, {"a": None}, {"a": 1}, {1: "cat"}, {"a": ["cat"]}, [("a", "cat")]]
    )
    def test_bad_gold(self, labels, truths):
        with pytest.raises(InvalidLabels):
            labels.with_gold(truths)

    def test_gold_may_name_a_class_that_nobody_voted_for(self, labels):
        more = labels.with_gold({"b": "dog"}, role="check").with_gold({"a": "bird", "c": "cat"})
        assert more.classes.tolist() == ["bird", "cat", "dog"]
        assert (more.gold, more.held_gold) == ({"a": "bird", "c": "cat"}, {"b": "dog"})
        assert more.answer_counts.tolist() == [[0, 1, 1], [0, 0, 2], [0, 1, 0]]
        assert more.vote_table()[1].tolist() == labels.vote_table()[1].tolist()
        assert more.notes()[-1].startswith("Nobody voted for ['bird'], which gold names; every vote on those items")
        assert more.summary()["classes_without_votes"] == ["bird"]
        assert not any("Nobody" in note for note in labels.with_gold({"a": "dog"}).notes())


SCALE = ["low", "mid", "high", "top"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(["high", "low", "mid"], categories=SCALE, ordered=True)),
        pl.Series(["high", "low", "mid"], dtype=pl.Enum(SCALE)),
    ],
    ids=["pandas", "polars"],
)
class TestScales:
    """Ordered categoricals bring the order of their classes along."""

    def test_in_a_long_table(self, column):
        frame = {"item": [1, 2, 3], "labeler": [1, 1, 1], "label": column}
        assert Labels.from_frame(frame).classes.tolist() == SCALE
        assert Labels.from_frame(frame, missing="top").classes.tolist() == SCALE[:3]
        assert Labels.from_frame(frame, classes=SCALE[::-1]).classes.tolist() == SCALE[::-1]
        with pytest.raises(InvalidLabels):
            Labels.from_frame(frame).with_gold({1: "zero"})


class TestSelect:
    @pytest.mark.parametrize(
        "options",
        [
            {"items": ["d"]},
            {"items": []},
            {"labelers": ["anne"]},
            {"labelers": [["ann"]]},
            {"items": np.array([True, False, True])},
        ],
    )
    def test_bad_selections(self, labels, options):
        with pytest.raises(InvalidLabels):
            labels.select(**options)


class TestMerge:
    def test_common_votes(self, labels):
        with pytest.warns(DataWarning, match="5 pairs"):
            assert labels.merge(labels).n_votes == 10
        flipped = Labels.from_frame({**TABLE, "label": ["dog", "cat", "cat", "cat", "dog"]})
        assert same(labels.merge(flipped, duplicates="first"), labels)
        assert same(labels.merge(flipped, duplicates="last"), flipped)
        with pytest.raises(InvalidLabels, match="5 pairs"):
            labels.merge(flipped, duplicates="error")

    def test_abstentions_add_up(self):
        one = Labels.from_frame(ABSTAINING, abstain="?", abstain_policy="answer")
        two = Labels.from_frame(
            {**ABSTAINING, "labeler": [3, 4, 3, 4, 3], "label": ["z", "!", "y", "x", None]},
            abstain=["!", None],
            abstain_policy="answer",
        )
        both = one.merge(two)
        assert both.answers.tolist() == ["x", "y", "z", "?", "!", None]
        assert both.abstentions.tolist() == [1, 1, 1, 1]
        assert both.n_votes == 10
        assert both.select(items=[1]).abstentions.tolist() == [0, 1, 0, 1]


class TestOut:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_copies(self, labels, copied):
        gold = labels.with_gold({"a": "cat"}, drawn="random")
        gold.item_codes(["a"])
        again = copied(gold)
        assert same(again, gold)
        assert again.item_codes(["b"]).tolist() == [1]
        assert "_item_position" not in pickle.loads(pickle.dumps(gold)).__dict__

    def test_names_cannot_be_changed(self, labels):
        with pytest.raises(ValueError, match="read-only"):
            labels.items[0] = "z"


@pytest.mark.parametrize("typed", ["Yes", "yes ", "YES", "yess"])
def test_gold_that_misspells_a_class_is_refused(typed):
    labels = Labels.from_matrix([["no", "yes"], ["yes", "yes"]], missing=None)
    with pytest.raises(InvalidLabels):
        labels.with_gold({0: typed})
