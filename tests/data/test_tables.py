"""Tables as people have them: item columns among the votes, items of several columns, a column a labeler, frames."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter

LONG = {
    "prompt": [p for p in (1, 2, 3) for _ in range(4)],
    "system": list("aabb") * 3,
    "judge": list("xy") * 6,
    "verdict": ["pass", "fail", "pass", "pass"] * 3,
    "seconds": list(range(12)),
}
NAMES = {"labeler": "judge", "label": "verdict"}
WIDE = {"item": ["i1", "i2", "i3", "i4"], "j1": [0, 1, 1, 0], "j2": [0, None, 1, 1], "topic": ["law", "art"] * 2}


def as_csv(columns):
    return io.StringIO(pd.DataFrame(columns).to_csv(index=False))


@pytest.mark.parametrize("form", [dict, pd.DataFrame, pl.DataFrame, as_csv])
def test_items_of_several_columns_with_their_columns(form):
    labels = tu.read_labels(form(LONG), item=["prompt", "system"], **NAMES)
    assert labels.items.tolist() == [(p, s) for p in (1, 2, 3) for s in "ab"]
    assert labels.item_column("system").tolist() == ["a", "b"] * 3
    assert labels.item_column("prompt").tolist() == [1, 1, 2, 2, 3, 3]
    assert labels.item_columns == ("prompt", "system")  # the seconds differ within an item
    gold = {"prompt": [1, 3], "system": ["b", "a"], "verdict": ["pass", "fail"]}
    vetted = tu.read_labels(form(LONG), item="prompt,system", **NAMES, gold=form(gold), gold_drawn="random")
    assert vetted.gold == {(1, "b"): "pass", (3, "a"): "fail"}
    assert vetted.drawn_gold == {(1, "b"): 1 / 3, (3, "a"): 1 / 3}
    frame = {"prompt": LONG["prompt"], "system": LONG["system"], "prediction": ["pass"] * 12}
    said = {name: values[::2] for name, values in frame.items()}
    predictions = tu.read_predictions(form(said), item=["prompt", "system"], labels=labels)
    assert tu.evaluate(predictions, vetted, metrics=["accuracy"])["accuracy"].mean > 0.5


def test_columns_that_are_constant_within_an_item():
    columns = {**LONG, "output": [f"{p}{s}" for p, s in zip(LONG["prompt"], LONG["system"], strict=True)]}
    columns["length"] = [None if k % 2 else 10 * k for k in range(12)]  # an empty cell says nothing
    columns["nested"] = [[1]] * 12
    labels = tu.read_labels(columns, item="output", **NAMES)
    assert labels.item_columns == ("prompt", "system", "length")
    assert labels.item_column("length").tolist() == [0, 20, 40, 60, 80, 100]
    shares = tu.share(labels, of="pass", by="system", cluster="prompt")
    assert set(shares) == {"a", "b"}
    assert labels.item_table.given == ()  # experts are not shown what nobody named
    named = labels.with_items({"item": ["1a"], "system": ["other"]})
    assert named.item_table.given == ("system",)
    assert named.item_column("system").tolist() == ["other", *[None] * 5]


@pytest.mark.parametrize("wide", [None, True])
@pytest.mark.parametrize("form", [dict, pd.DataFrame, pl.DataFrame, as_csv])
def test_wide_tables(form, wide):
    labels = tu.read_labels(form(WIDE), wide=wide)
    assert (labels.n_items, labels.n_votes, labels.n_missing) == (4, 7, 0)
    assert (labels.labelers.tolist(), labels.classes.tolist()) == (["j1", "j2"], [0, 1])
    assert labels.item_column("topic").tolist() == ["law", "art"] * 2
    assert len(labels.reading_notes) == (wide is None)
    assert not any("[" in note for note in labels.reading_notes), "names in a sentence"


def test_what_is_no_wide_table():
    systems = {"item": [1, 2, 3], "prediction": ["cat", "dog", "cat"], "score": [0.2, 0.3, 0.4]}
    for wide in (None, False):
        with pytest.raises(InvalidLabels):
            tu.read_labels(systems, wide=wide)
    with pytest.raises(InvalidLabels) as caught:
        tu.read_labels(systems, wide=True)
    assert caught.value.parameter == "wide"
    with pytest.raises(InvalidParameter) as other:
        tu.read_labels(WIDE, wide=True, label="topic")
    assert other.value.parameter == "wide"


def test_the_file_of_votes_names_what_experts_see(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("item,labeler,label,text\n1,a,0,One\n1,b,1,One\n2,a,1,Two\n", encoding="utf-8")
    assert tu.read_labels(file).item_table.given == ()
    labels = tu.read_labels(file, items=file)
    assert labels.item_table.given == ("text",)
    assert labels.item_column("text").tolist() == ["One", "Two"]


def test_columns_by_other_usual_names():
    votes = {"output_id": list("aabb"), "judge": list("xyxy"), "verdict": [1, 1, 0, 1], "system": list("ssrr")}
    labels = tu.read_labels(votes, gold={"id": ["a"], "truth": [1]}, items={"id": ["a", "b"], "topic": ["law", "art"]})
    usual = tu.read_labels({"item": votes["output_id"], "labeler": votes["judge"], "label": votes["verdict"]})
    assert (labels.votes != usual.votes).nnz == 0
    assert (labels.gold, labels.item_columns) == ({"a": 1}, ("system", "topic"))
    (note,) = labels.reading_notes
    assert all(name in note for name in ("'output_id'", "'judge'", "'verdict'"))
    predictions = tu.read_predictions({"id": ["a", "b"], "prediction": [1, 0]}, labels=labels)
    assert predictions.align(labels).codes.tolist() == [[1, 0]]


@pytest.mark.parametrize("item", ["id", "question_id"])
def test_what_may_number_votes_or_name_a_question_is_no_item_by_itself(item):
    votes = {item: [1, 2, 3, 4], "labeler": list("xyxy"), "label": [1, 1, 0, 1]}
    with pytest.raises(InvalidLabels, match="no column 'item'") as caught:
        tu.read_labels(votes)
    assert "did you mean" not in str(caught.value)


def test_two_columns_that_may_be_meant_are_not_chosen_from():
    votes = {"item": list("aabb"), "judge": list("xyxy"), "rater": list("xyxy"), "label": [1, 1, 0, 1]}
    with pytest.raises(InvalidLabels, match="no column 'labeler'"):
        tu.read_labels(votes, wide=False)


def test_frames_wherever_files_are_read():
    frame = pd.DataFrame(LONG).assign(item=[f"{p}{s}" for p, s in zip(LONG["prompt"], LONG["system"], strict=True)])
    labels = tu.Labels(frame, **NAMES)
    assert (labels.votes != tu.read_labels(frame, **NAMES).votes).nnz == 0
    gold = pd.DataFrame({"item": ["1a", "2b", "3a"], "verdict": ["pass", "fail", None]})
    assert labels.with_gold(gold, label="verdict").gold == {"1a": "pass", "2b": "fail"}
    assert labels.with_gold(gold[:2], label="verdict", drawn="random").drawn_gold == {"1a": 1 / 3, "2b": 1 / 3}
    with pytest.raises(InvalidLabels):
        labels.with_gold(gold, label="verdict", drawn="random")  # one that was drawn is not vetted
    read = tu.read_labels(frame, **NAMES, items={"item": ["1a"], "topic": ["law"]}, gold=gold, gold_column="verdict")
    assert (len(read.gold), read.item_table.given) == (2, ("topic",))
    with pytest.raises(InvalidParameter) as caught:
        tu.read_labels(frame, **NAMES, gold_drawn="random")
    assert caught.value.parameter == "gold_drawn"
    pairs = {"item": [1, 2], "judge": ["j", "j"], "first": ["a", "b"], "second": ["b", "a"], "winner": ["a", "tie"]}
    assert tu.read_pairs(pd.DataFrame(pairs)).n_verdicts == 2
    np.testing.assert_array_equal(tu.read_items(pairs, item="item")["judge"], ["j", "j"])
