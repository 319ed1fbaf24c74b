"""What must hold for every table of votes."""

import string
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.adapters import read_labels
from trueup.data.labels import Labels
from trueup.data.reading import write_labels

pytestmark = pytest.mark.filterwarnings("ignore::trueup.exceptions.DataWarning")
SOME = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# letters first, so that no column looks like integers, which a text file would turn into numbers
texts = st.text(alphabet=string.ascii_letters + " ,;\"\t\n'éß漢", min_size=1, max_size=6).map(lambda t: "n" + t)
integers = st.integers(-(2**40), 2**40)
tuples = st.tuples(st.integers(0, 5), texts)
Row = tuple[object, object, object]


def tables(names: st.SearchStrategy[object]) -> st.SearchStrategy[list[Row]]:
    """Rows of votes with at least two classes."""
    return (
        st.tuples(*(st.lists(names, min_size=2, max_size=5, unique=True) for _ in range(3)))
        .flatmap(lambda pools: st.lists(st.tuples(*map(st.sampled_from, pools)), min_size=2, max_size=25))
        .filter(lambda rows: len({row[2] for row in rows}) > 1)
    )


file_tables = st.one_of(tables(texts), tables(integers))
any_tables = st.one_of(file_tables, tables(tuples))


def labels_of(rows: list[Row], **options: object) -> Labels:
    item, labeler, label = (list(column) for column in zip(*rows, strict=True))
    return Labels.from_frame({"item": item, "labeler": labeler, "label": label}, **options)


def assert_same(a: Labels, b: Labels) -> None:
    for name in ("items", "labelers", "classes", "answers", "abstentions", "gold_codes", "held_codes"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
    np.testing.assert_array_equal(a.gold_chance, b.gold_chance)
    np.testing.assert_array_equal(a.votes.toarray(), b.votes.toarray())


@SOME
@given(rows=any_tables)
def test_every_vote_is_counted_once(rows):
    labels = labels_of(rows)
    assert labels.n_votes == len(rows)
    assert labels.n_pairs == len({row[:2] for row in rows})
    item, labeler, answer, times = labels.vote_table()
    found = {
        (labels.items.tolist()[i], labels.labelers.tolist()[t], labels.answers.tolist()[z]): n
        for i, t, z, n in zip(item, labeler, answer, times, strict=True)
    }
    assert found == {row: rows.count(row) for row in rows}


@SOME
@given(rows=file_tables, backend=st.sampled_from(["pandas", "polars", "pyarrow"]))
def test_frames_round_trip(rows, backend):
    labels = labels_of(rows)
    assert_same(Labels.from_frame(labels.to_frame(backend=backend)), labels)


@SOME
@given(rows=file_tables, suffix=st.sampled_from(["csv", "tsv", "csv.gz", "jsonl", "parquet"]))
def test_files_round_trip(rows, suffix):
    labels = labels_of(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"votes.{suffix}"
        write_labels(labels, path)
        assert_same(read_labels(path), labels)


@SOME
@given(rows=any_tables, data=st.data())
def test_the_order_of_rows_does_not_matter(rows, data):
    assert_same(labels_of(data.draw(st.permutations(rows))), labels_of(rows))


@SOME
@given(rows=tables(integers), data=st.data())
def test_names_do_not_matter(rows, data):
    before = labels_of(rows)
    new = [
        dict(zip(names.tolist(), data.draw(st.permutations([f"n{k}" for k in range(len(names))])), strict=True))
        for names in (before.items, before.labelers, before.classes)
    ]
    after = labels_of([tuple(new[k][row[k]] for k in range(3)) for row in rows])
    back = [
        [vocabulary.tolist().index(new[k][name]) for name in names.tolist()]
        for k, (names, vocabulary) in enumerate(
            ((before.items, after.items), (before.labelers, after.labelers), (before.classes, after.classes))
        )
    ]
    shape = (after.n_items, after.n_labelers, after.n_classes)
    moved = after.votes.toarray().reshape(shape)[np.ix_(*back)]
    np.testing.assert_array_equal(moved.reshape(before.votes.shape), before.votes.toarray())


@SOME
@given(rows=any_tables, data=st.data())
def test_parts_merge_to_the_whole(rows, data):
    whole = labels_of(rows)
    some = data.draw(st.lists(st.sampled_from(whole.items.tolist()), min_size=1, unique=True))
    rest = [name for name in whole.items.tolist() if name not in some]
    if rest:
        assert_same(whole.select(items=some).merge(whole.select(items=rest)), whole)


@SOME
@given(rows=tables(texts), data=st.data())
def test_what_is_left_out_is_counted(rows, data):
    classes = sorted({row[2] for row in rows})
    special = data.draw(st.sampled_from(classes))
    n_special = sum(row[2] == special for row in rows)
    rest = {"classes": [*(c for c in classes if c != special), "other", "another"]}
    if n_special == len(rows):
        return
    missing, ignored = labels_of(rows, missing=special, **rest), labels_of(rows, abstain=special, **rest)
    answered = labels_of(rows, abstain=special, abstain_policy="answer", **rest)
    assert missing.n_votes + missing.n_missing == len(rows)
    assert ignored.n_votes + ignored.abstentions.sum() == len(rows)
    assert answered.n_votes == len(rows)
    assert answered.abstentions.tolist() == ignored.abstentions.tolist()
    assert missing.n_items == ignored.n_items == answered.n_items
    half = ignored.items.tolist()[: (ignored.n_items + 1) // 2]
    part = ignored.select(items=half)
    assert part.n_votes + part.abstentions.sum() == sum(row[0] in half for row in rows)
