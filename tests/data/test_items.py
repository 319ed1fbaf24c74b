"""The item table: what is known of the items travels with the labels."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from trueup.data.items import text_as_values
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter

TABLE = {"item": ["b", "a", "b"], "topic": ["sport", "law", None], "weight": [0.5, 2.0, 0.5], "turns": [3, 1, 3]}


@pytest.fixture
def labels() -> Labels:
    return Labels.from_frame(
        {"item": ["a", "a", "b", "c"], "labeler": [1, 2, 1, 1], "label": ["cat", "dog", "dog", "cat"]}
    )


@pytest.mark.parametrize(
    "frame", [TABLE, pd.DataFrame(TABLE), pl.DataFrame(TABLE), pa.table(TABLE)], ids=lambda f: type(f).__module__
)
def test_every_kind_of_frame(frame, labels):
    known = labels.with_items(frame)
    assert known.item_columns == ("topic", "weight", "turns")
    assert known.item_column("topic").tolist() == ["law", "sport", None]
    np.testing.assert_array_equal(known.item_column("weight"), [2.0, 0.5, np.nan])
    assert "3 item columns" in repr(known)
    assert labels.item_columns == ()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "int64"),
        ([1, None, 3], "object"),
        ([True, False, True], "bool"),
        ([True, None, True], "object"),
        ([1, 0.5, 2], "float64"),
        (["x", "y", "z"], "object"),
        ([["x"], {"y": 1}, None], "object"),
        ([date(2024, 1, 1), None, date(2024, 2, 1)], "datetime64[us]"),
        ([10**30, 1, 2], "object"),
    ],
)
def test_columns_have_the_kind_of_their_values(values, kind, labels):
    column = labels.with_items({"item": ["a", "b", "c"], "x": values}).item_column("x")
    assert column.dtype == kind
    assert not column.flags.writeable


def test_merging_joins_what_both_know(labels):
    other = Labels.from_frame({"item": ["c", "d"], "labeler": [3, 3], "label": ["cat", "dog"]})
    both = labels.with_items(TABLE).merge(other.with_items({"item": ["c", "d"], "turns": [7, 8], "lang": ["nl", "de"]}))
    assert both.item_column("turns").tolist() == [1, 3, 7, 8]
    assert both.item_column("lang").tolist() == [None, None, "nl", "de"]
    assert both.item_column("topic").tolist() == ["law", "sport", None, None]
    with pytest.raises(InvalidLabels):
        labels.with_items(TABLE).merge(labels.with_items({"item": ["b"], "turns": [4]}), duplicates="first")


def test_some_columns_of_a_table_of_votes(labels):
    votes = {"item": ["a", "a", "b"], "labeler": [1, 2, 1], "label": ["cat", "dog", "dog"], "topic": ["x", "x", "y"]}
    assert labels.with_items(votes, columns=["topic"]).item_column("topic").tolist() == ["x", "y", None]


@pytest.mark.parametrize(
    ("frame", "options", "error"),
    [
        ({"item": ["a", "z"], "x": [1, 2]}, {}, InvalidLabels),
        ({"item": ["y", "z"], "x": [1, 2]}, {"unknown": "ignore"}, InvalidLabels),
        ({"item": [1], "x": [1]}, {}, InvalidLabels),
        ({"item": ["a", "a"], "x": [1, 2]}, {}, InvalidLabels),
        ({"item": ["a", None], "x": [1, 2]}, {}, InvalidLabels),
        ({"item": [], "x": []}, {}, InvalidLabels),
        ({"item": ["a"], "x": [1, 2]}, {}, InvalidLabels),
        ({"item": ["a"]}, {}, InvalidLabels),
        ({"item": ["a"], "label": [1]}, {}, InvalidLabels),
        ({"name": ["a"], "x": [1]}, {}, InvalidLabels),
        ({"item": ["a"], "topic": [1]}, {"columns": ["topik"]}, InvalidLabels),
        ({"item": ["a"], "x": [1]}, {"unknown": "drop"}, InvalidParameter),
        ([["a", 1]], {}, InvalidLabels),
    ],
)
def test_bad_tables(frame, options, error, labels):
    with pytest.raises(error):
        labels.with_items(frame, **options)


def test_an_unknown_column_is_an_error_with_a_suggestion(labels):
    with pytest.raises(InvalidLabels):
        labels.with_items(TABLE).item_column("topics")
    with pytest.raises(InvalidLabels, match=r"labels\.with_items"):
        labels.item_column("topic")


def test_long_text_is_left_out_unless_asked_for(labels):
    table = {"item": ["a", "b"], "prompt": ["hi", "ho"], "remark": ["x" * 100, "y"], "topic": ["law", "art"]}
    known = labels.with_items({**table, "text": [1, 2]})
    assert known.text_columns == ("prompt", "remark")  # a column of numbers is no text, whatever its name
    votes = ["item", "labeler", "label"]
    assert list(known.to_frame()) == [*votes, "topic", "text"]
    assert list(known.to_frame(with_items=False)) == votes
    whole = known.to_frame(with_text=True, backend="polars")
    assert whole.columns == [*votes, "prompt", "remark", "topic", "text"]
    assert whole["prompt"].to_list() == ["hi", "hi", "ho", None]
    assert Labels.from_frame(whole).n_votes == labels.n_votes


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "", "-3.0"], [1, None, -3]),
        (["1", "0.5", "1e3", ".5"], [1.0, 0.5, 1000.0, 0.5]),
        (["1", "007"], ["1", "007"]),
        (["1", "nan", ""], ["1", "nan", None]),
        (["2024-01-02", "2024-01-02T03:04"], [datetime(2024, 1, 2), datetime(2024, 1, 2, 3, 4)]),
        (["2024-13-45", "2024-01-01"], ["2024-13-45", "2024-01-01"]),
        (["-", "."], ["-", "."]),
        (["", ""], [None, None]),
    ],
)
def test_cells_of_text_files(cells, values):
    assert text_as_values(cells) == values


def test_columns_of_a_frame_need_different_names_of_text():
    labels = Labels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InvalidLabels):
        labels.with_items(pd.DataFrame([[0, 2, 3]], columns=["item", "x", "x"]))
    with pytest.raises(InvalidLabels):
        labels.with_items(pd.DataFrame({"item": [0, 1], 5: [1, 2]}))
    with pytest.raises(InvalidLabels):
        Labels.from_frame(pd.DataFrame([[0, "ann", 1, 1]], columns=["item", "labeler", "label", "label"]))


JUDGES = Labels.from_matrix([[0, 1, 1], [1, 1, 0]], labelers=["gpt", "ann", "bob"])
KINDS = {"labeler": ["bob", "gpt", "ann"], "kind": ["human", "llm", "human"], "age": [3, 1, 2]}


class TestLabelers:
    def test_they_travel_with_the_labels(self):
        known = JUDGES.with_labelers(KINDS)
        assert known.select(labelers=["bob", "gpt"]).labeler_column("age").tolist() == [1, 3]
        assert known.select(items=[0]).with_gold({0: 2}).labeler_column("age").tolist() == [1, 2, 3]
        other = Labels.from_matrix([[0], [1]], labelers=["zoe"]).with_labelers({"labeler": ["zoe"], "age": [9]})
        merged = known.merge(other)
        ages = dict(zip(merged.labelers.tolist(), merged.labeler_column("age").tolist(), strict=True))
        assert ages == {"gpt": 1, "ann": 2, "bob": 3, "zoe": 9}

    @pytest.mark.parametrize(
        "table", [{"labeler": ["eve"], "kind": ["llm"]}, {"labeler": ["gpt"]}, {"labeler": [None], "kind": ["llm"]}]
    )
    def test_wrong_tables(self, table):
        with pytest.raises(InvalidLabels):
            JUDGES.with_labelers(table)
