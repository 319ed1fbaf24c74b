"""What is counted in a batch, and who may use which part of the permitted false alarms."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import DataWarning
from trueup.monitor.batch import Batch, Stream, counts, histories, make_batch, panel_of, parts_of
from trueup.monitor.change import Strata, strata_of

VOTES = [[1, 1, 0], [0, 0, 0], [1, 0, -1], [1, 1, 1], [0, 1, 0]]
SAID = [1, 1, 1, 1, 0]


def batch(votes=VOTES, said=SAID, judges=("a", "b", "c"), gold=None, when="2026-01-01", **how):
    labels = tu.Labels.from_matrix(votes, labelers=list(judges), classes=[0, 1])
    labels = labels if gold is None else labels.with_gold(gold, drawn="random")
    return make_batch(labels, said, when, None, has_system=None, **how)


def test_counts_of_a_small_batch_by_hand():
    one = batch(gold={0: 1, 1: 1, 4: 1})
    counted = counts(one, panel_of(one), None)
    assert counted[Stream("agreement")] == (3, 4)  # item 2 is a tie
    assert counted[Stream("system says", named=1)] == (4, 5)
    assert counted[Stream("judge says", ("c",), 1)] == (1, 4)
    assert counted[Stream("judges agree", ("a", "b"))] == (3, 5)
    assert counted[Stream("judges agree", ("a", "c"))] == (3, 4)
    assert counted[Stream("system on gold")] == (2, 3)
    assert counted[Stream("judge on gold", ("b",))] == (1, 3)
    assert len(counted) == 1 + 1 + 3 + 3 + 1 + 3


def test_strata_of_a_small_batch_by_hand():
    one = batch(gold={0: 1, 1: 1, 4: 1})
    strata = strata_of(one, panel_of(one), None)
    # Item 2 is a tie, with which nobody agrees; the judge c says nothing of it.
    assert strata[Stream("system on gold")] == Strata(3, 2, 2, 1, 1, 1)
    assert strata[Stream("judge on gold", ("b",))] == Strata(3, 2, 2, 1, 1, 1)
    assert strata[Stream("judge on gold", ("c",))] == Strata(3, 1, 2, 1, 0, 0)


def repeated(n_judges=3):
    """The first judge says one thing three times, the others the other thing once each."""
    names = ["a", *(f"b{k}" for k in range(n_judges - 1))]
    votes = [(item, who, 3 if who == "a" else 1) for item in range(20) for who in names]
    rows = [(item, who, (item + (who == "a")) % 2) for item, who, times in votes for _ in range(times)]
    with pytest.warns(DataWarning):
        labels = tu.Labels.from_frame(
            dict(zip(("item", "labeler", "label"), zip(*rows, strict=True), strict=True)), classes=[0, 1]
        )
    return labels, [item % 2 for item in range(20)]


def test_each_judge_has_one_voice_in_every_majority():
    watch = tu.Monitor()
    watch.add(*repeated(), when="2026-01-01")
    (one,) = watch._batches
    for majority in (one.majority(one.judges), one.majority(None)):
        np.testing.assert_array_equal(majority, one.answers_of["b0"])
    assert [row["disagreement"] for row in watch.judge_rows()] == [1.0, 0.0, 0.0]
    many = make_batch(*repeated(20), "2026-01-01", None, has_system=None)
    assert panel_of(many) is None
    np.testing.assert_array_equal(many.majority(None), many.answers_of["b0"])


def test_judges_are_held_against_those_whom_the_alarms_follow():
    """A newcomer is no part of the majority that others are held against."""
    watch = tu.Monitor()
    for k, judges in enumerate((("a", "b"), ("a", "b", "c"))):
        votes = [[1, 0, 0][: len(judges)] if item % 2 else [1, 1, 0][: len(judges)] for item in range(40)]
        watch.add(
            tu.Labels.from_matrix(votes, labelers=list(judges), classes=[0, 1]), [1] * 40, when=f"2026-01-0{k + 1}"
        )
    rows = {(row["when"], row["judge"]): row["disagreement"] for row in watch.judge_rows()}
    assert rows["2026-01-02", "a"] == rows["2026-01-01", "a"] == 0.0
    assert rows["2026-01-02", "c"] == 1.0


def test_without_predictions_the_share_of_a_class_is_followed():
    one = batch(said=None, gold={0: 1, 3: 0})
    counted = counts(one, panel_of(one), 1)
    assert counted[Stream("agreement", named=1)] == (2, 4)
    assert counted[Stream("system on gold", named=1)] == (1, 2)
    assert strata_of(one, panel_of(one), 1)[Stream("system on gold", named=1)] == Strata(2, 3, 2, 0, 1, 0)


def test_a_batch_comes_back_from_json_as_it_was():
    one = batch(gold={0: 1, 1: 1})
    again = Batch.from_json(one.when, one.to_json())
    panel = panel_of(one)
    assert counts(again, panel, None) == counts(one, panel, None)
    assert again.labels().gold == {0: 1, 1: 1}
    assert again.labels().drawn_gold == {0: 0.4, 1: 0.4}
    assert (again.labels().votes.toarray() == one.labels().votes.toarray()).all()
    assert again.predictions() == SAID


def test_repeated_votes_and_crowds():
    crowd = tu.Labels.from_counts([[3, 1], [1, 4], [2, 2]], classes=["no", "yes"])
    one = make_batch(crowd, ["no", "no", "yes"], "2026-01-01", None, has_system=None)
    assert panel_of(one) is None
    assert counts(one, None, None)[Stream("agreement")] == (1, 2)
    again = Batch.from_json(one.when, one.to_json())
    assert again.labels().n_votes == 13
    assert again.labels().crowds == {"crowd"}
    many = batch(votes=np.ones((4, 12), dtype=int), said=[1, 1, 0, 1], judges=range(12))
    assert set(counts(many, panel_of(many), None)) == {
        Stream("agreement"),
        Stream("system says", named=1),
        Stream("system on gold"),
    }


def test_parts_are_together_at_most_one_whoever_joins_later():
    first = batch(gold={0: 1})
    streams = list(counts(first, panel_of(first), None))
    newcomers = [
        stream
        for k in range(50)
        for stream in (Stream("judge says", (f"new {k}",), 1), Stream("judge on gold", (f"new {k}",)))
    ]
    parts = parts_of([*streams, *newcomers], streams, panel_of(first))
    assert 0.95 < sum(parts.values()) <= 1
    assert parts[Stream("agreement")] > 0.5
    early = parts_of(streams, streams, panel_of(first))
    assert all(parts[stream] == part for stream, part in early.items())


def test_histories_skip_batches_that_do_not_tell():
    whole, other = batch(), batch(votes=[[1, 1], [0, 0]], said=[1, 1], judges=("a", "d"))
    panel = panel_of(whole)
    watched = histories([counts(one, panel, None) for one in (whole, other, whole)], panel)
    assert watched[Stream("agreement")].places.tolist() == [0, 2]
    assert watched[Stream("judge says", ("a",), 1)].places.tolist() == [0, 1, 2]
    assert watched[Stream("judge says", ("d",), 1)].places.tolist() == [1]
    assert Stream("system on gold") not in watched
    assert pytest.approx(0.1 * 0.2 / 2) == watched[Stream("judge says", ("d",), 1)].part
