"""Files: every format gives the same labels, and every failure names the path."""

import gzip
import io
import sys

import numpy as np
import polars as pl
import pytest

import trueup as tu
from trueup.data import reading as tio
from trueup.data.labels import Labels
from trueup.exceptions import DataWarning, InvalidFile, InvalidLabels, InvalidParameter, InvalidPredictions, MissingFile

VOTES = "item,labeler,label\n1,ann,cat\n1,bob,dog\n2,ann,dog\n"
SUFFIXES = ["csv", "csv.gz", "tsv", "tsv.gz", "jsonl", "jsonl.gz", "ndjson", "parquet", "pq", "CSV"]


@pytest.fixture
def labels() -> Labels:
    return Labels.from_frame({"item": [1, 1, 2], "labeler": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]})


def votes(labels: Labels) -> list[tuple[object, ...]]:
    frame = labels.to_frame(backend="pandas", with_items=False)
    return list(frame.itertuples(index=False, name=None))


def write(path, text: str):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        VOTES,
        VOTES.replace(",", ";"),
        VOTES.replace(",", "\t"),
        "\ufeff" + VOTES,
        VOTES.replace("\n", "\r\n"),
        VOTES.replace("\n", "\n\n"),
        "\n" + VOTES,
        VOTES.rstrip(),
        'label,extra,item,labeler\ncat,"x, y",1,ann\n"dog","a ""q""\nb",1,bob\ndog,,2,ann',
        VOTES.replace("item,labeler,label", "item, labeler, label"),
    ],
)
def test_csv_as_people_write_it(text, labels, tmp_path, monkeypatch):
    path = tmp_path / "v.csv"
    path.write_bytes(text.encode())
    expected = votes(labels)
    assert votes(tu.read_labels(path)) == expected
    assert votes(tu.read_labels(io.StringIO(text))) == expected
    stream = io.BytesIO(text.encode())
    assert votes(tu.read_labels(stream)) == expected
    assert not stream.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="ascii"))
    assert votes(tu.read_labels("-")) == expected


def test_names_in_text_files_become_integers_only_if_all_are(tmp_path):
    path = write(tmp_path / "v.csv", "item,labeler,label\n007,1,1\n8,2.0,0\n8,3,x\n")
    labels = tu.read_labels(path)
    assert labels.items.tolist() == ["007", "8"]
    assert labels.labelers.tolist() == [1, 2, 3]
    assert labels.classes.tolist() == ["0", "1", "x"]
    assert tu.read_labels(path, missing="x").classes.tolist() == [0, 1]
    text = tu.read_labels(path, missing="x", classes=["1", "0"])
    assert text.classes.tolist() == ["1", "0"]


@pytest.mark.parametrize("missing", [-1, "-1", [-1], [None, -1]])
def test_special_values_of_a_text_file_are_declared_as_numbers_or_text(tmp_path, missing):
    path = write(tmp_path / "v.csv", "item,labeler,label\n1,1,1\n2,1,0\n2,2,-1\n")
    labels = tu.read_labels(path, missing=missing)
    assert labels.classes.tolist() == [0, 1]
    assert labels.n_missing == 1


@pytest.mark.parametrize("declared", [None, "", np.nan])
def test_blank_cells_are_nulls(tmp_path, declared):
    path = write(tmp_path / "v.csv", "item,labeler,label\n1,1,1\n2,1,0\n2,2,\n")
    with pytest.raises(InvalidLabels):
        tu.read_labels(path)
    assert tu.read_labels(path, missing=declared).n_missing == 1
    answers = tu.read_labels(path, abstain=declared, abstain_policy="answer").answers
    assert answers.tolist() == [0, 1, None]
    blank = write(tmp_path / "w.csv", "item,labeler,label\n1,,1\n2,1,0\n")
    with pytest.raises(InvalidLabels):
        tu.read_labels(blank)


def test_json_lines_keep_types_and_may_leave_nulls_out(tmp_path):
    path = write(tmp_path / "v.jsonl", '{"item":1,"labeler":"a","label":true}\n\n{"item":2,"labeler":"a"}\n')
    with pytest.raises(InvalidLabels):
        tu.read_labels(path)
    with pytest.warns(DataWarning, match="no votes"):
        labels = tu.read_labels(path, missing=None, classes=[False, True])
    assert labels.classes.tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.csv", b""),
        ("v.csv", b"\n\n"),
        ("v.csv.gz", b"no gzip"),
        ("v.csv.gz", gzip.compress(VOTES.encode(), mtime=0)[:-10]),
        ("v.csv", b"item,labeler,label\n1,\xff,x\n"),
        ("v.csv", b"item,labeler,label\n1,2\n"),
        ("v.csv", b"item,labeler,label\n1,2,3,4\n"),
        ("v.csv", b'item,labeler,label\n1,"2,3\n'),
        ("v.csv", b"item,labeler,label,item\n1,2,3,4\n"),
        ("v.jsonl", b""),
        ("v.jsonl", b"[1]\n"),
        ("v.jsonl", b'{"item":1}\n{"item"\n'),
        ("v.parquet", b"PAR1 not really"),
        ("v.parquet", b""),
        ("v.xlsx", b"x"),
        ("votes", b"x"),
    ],
)
def test_bad_files(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidFile) as caught:
        tu.read_labels(path)
    assert str(path) in str(caught.value)


def test_bad_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for read in (tu.read_labels, tu.read_predictions, tu.read_gold):
        with pytest.raises(MissingFile):
            read("nowhere.csv")
        with pytest.raises(InvalidFile, match="folder with nothing"):
            read(tmp_path)
    with pytest.raises(InvalidFile, match="cannot"):
        tu.read_labels("a" * 5000 + ".csv")
    with pytest.raises(InvalidFile, match="parquet needs a path"):
        tu.read_labels("-", file_format="parquet")
    with pytest.raises(InvalidParameter, match="file_format"):
        tu.read_labels(write(tmp_path / "v.csv", VOTES), file_format="xlsx")


class TestWrite:
    @pytest.mark.parametrize("name", ["v.csv", "v.jsonl"])
    def test_names_a_file_cannot_hold(self, tmp_path, name):
        labels = Labels.from_matrix([[0, 1], [1, 0]], items=[(1, 2), (3, 4)])
        with pytest.raises(InvalidLabels, match="pickle"):
            tio.write_labels(labels, tmp_path / name)

    def test_repeated_votes_and_null_answers(self, tmp_path):
        with pytest.warns(DataWarning):
            labels = Labels.from_frame(
                {"item": [1, 1, 2], "labeler": [1, 1, 1], "label": ["x", None, "y"]},
                abstain=None,
                abstain_policy="answer",
            )
        tio.write_labels(labels, tmp_path / "v.csv")
        with pytest.warns(DataWarning):
            again = tu.read_labels(tmp_path / "v.csv", abstain=None, abstain_policy="answer")
        assert (again.votes != labels.votes).nnz == 0

    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
    def test_a_file_is_replaced_whole_or_stays(self, labels, tmp_path, suffix, monkeypatch):
        path = tmp_path / f"v.{suffix}"
        tio.write_labels(labels, path)
        before = path.read_bytes()

        def fail(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("trueup._base.writing.os.fsync", fail)
        with pytest.raises(InvalidFile, match="disk full"):
            tio.write_labels(labels.select(labelers=labels.labelers[:1]), path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == [path.name]


class TestItems:
    TEXT = "item,topic,weight,day,code\n1,law,0.5,2024-03-01,007\n2,,2,2024-03-02,1\n9,art,1,2024-03-03,2\n"

    def test_a_file_beside_the_votes(self, labels, tmp_path):
        tio.write_labels(labels, tmp_path / "v.csv")
        both = tu.read_labels(tmp_path / "v.csv", items=write(tmp_path / "i.csv", self.TEXT))
        assert both.item_columns == ("topic", "weight", "day", "code")
        assert both.item_column("topic").tolist() == ["law", None]
        assert both.item_column("weight").tolist() == [0.5, 2.0]
        assert both.item_column("day").astype("datetime64[D]").astype(str).tolist() == ["2024-03-01", "2024-03-02"]
        assert both.item_column("code").tolist() == ["007", "1"]  # text where one is no plain number

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_what_is_written_is_read_back(self, labels, tmp_path, suffix):
        known = labels.with_items(
            {"item": [1, 2], "text": ["a, b\n", None], "n": [1, 2], "weight": [0.25, None], "of": [True, False]},
            columns=["text", "n", "weight"],
        )
        tio.write_labels(known, tmp_path / f"v.{suffix}", items=tmp_path / f"i.{suffix}")
        again = tu.read_labels(str(tmp_path / f"v.{suffix}"), items=tmp_path / f"i.{suffix}")
        assert votes(again) == votes(labels)
        assert again.items.dtype == np.int64
        for name in known.item_columns:
            np.testing.assert_array_equal(again.item_column(name), known.item_column(name))


class TestPredictions:
    TEXT = "item,prediction,score\n1,dog,0.7\n2,cat,\n"

    @pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
    def test_every_format(self, labels, tmp_path, suffix):
        frame = pl.DataFrame({"item": [1, 2], "prediction": ["dog", "cat"], "score": [0.7, None]})
        path = tmp_path / f"p.{suffix}"
        {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[suffix](path)
        aligned = tu.read_predictions(path).align(labels, missing="ignore")
        assert aligned.codes.tolist() == [[1, 0]]
        assert np.isnan(aligned.scores).tolist() == [[False, True]]

    def test_names_are_read_as_those_of_the_labels(self, tmp_path):
        text = Labels.from_frame({"item": ["1", "x", "1"], "labeler": [1, 1, 2], "label": ["0", "1", "?"]})
        path = write(tmp_path / "p.csv", "item,prediction\n1,0\n")
        with pytest.raises(InvalidPredictions):
            tu.read_predictions(path).align(text, missing="ignore")
        aligned = tu.read_predictions(path, labels=text).align(text, missing="ignore")
        assert aligned.codes.tolist() == [[0, -1]]
        flags = Labels.from_matrix([[True, False], [False, False]])
        path = write(tmp_path / "q.csv", "item,prediction\n0.0,True\n1,False\n")
        assert tu.read_predictions(path, labels=flags).align(flags).codes.tolist() == [[1, 0]]

    @pytest.mark.parametrize(
        "text", ["item,guess\n1,a\n", "item,prediction\n", "item,prediction\n1,a\n1,b\n", "item,score\n1,0.5\n2,high\n"]
    )
    def test_bad_content_names_the_path(self, tmp_path, text):
        path = write(tmp_path / "p.csv", text)
        with pytest.raises(InvalidPredictions) as caught:
            tu.read_predictions(path)
        assert str(path) in str(caught.value)


class TestGold:
    @pytest.mark.parametrize("column", ["chance", "inclusion_probability"])
    def test_chances_are_read_and_kept(self, labels, tmp_path, column):
        path = write(tmp_path / "g.csv", f"item,label,{column}\n1,cat,0.25\n2,dog,\n")
        gold = tu.read_gold(path)
        assert gold == {1: "cat", 2: "dog"}
        told = labels.with_gold(gold)
        assert (told.drawn_gold, told.gold) == ({1: 0.25}, gold)

    def test_what_was_drawn_must_be_vetted_unless_the_draw_is_passed_over(self, tmp_path):
        path = write(tmp_path / "g.csv", "item,label,chance\n1,cat,0.5\n2,,0.5\n3,NA,0.5\n4,,\n")
        with pytest.raises(InvalidLabels):
            tu.read_gold(path, missing=[None, "NA"])
        assert tu.read_gold(path, missing=[None, "NA"], drawn="chosen") == {1: "cat"}

    @pytest.mark.parametrize(
        "text",
        [
            "item,label\n1,cat\n1,dog\n",
            "item,label,chance\n1,cat,0.5\n2,dog,1.5\n",
            "item,label,chance\n1,cat,often\n",
            "item,label,chance\n1,cat,nan\n",
            "item,label,chance\n1,cat,random\n",
            "item,label,drawn\n1,cat,maybe\n",
            "item,label,drawn,chance\n1,cat,chosen,0.5\n",
            "item,label,chance\n1,cat,0.5\n1,cat,0.25\n",
            "item,label,chance\n1,cat,0.5\n2,,0.5\n3,,0.5\n",
            "item,label\n,cat\n",
            "item,opinion\n1,cat\n",
        ],
    )
    def test_bad_gold(self, tmp_path, text):
        path = write(tmp_path / "g.csv", text)
        with pytest.raises(InvalidLabels) as caught:
            tu.read_gold(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_anonymous_crowd_stays_one(tmp_path, suffix):
    labels = tu.Labels.from_counts([[3, 1], [0, 2]], classes=["a", "b"])
    path = tmp_path / f"votes.{suffix}"
    tu.write_labels(labels, path)
    back = tu.read_labels(path)
    assert back.crowds == labels.crowds == {"crowd"}
    assert not back.has_repeats
    assert back.witnesses_per_item.tolist() == [4, 2]
    plain = tu.Labels.from_matrix([[0, 1], [1, 1]])
    tu.write_labels(plain, path)
    assert tu.read_labels(path).crowds == frozenset()
