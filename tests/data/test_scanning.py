"""Votes in files that are read one after another: the same votes as in memory, and bad files named with their place."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.data import partitions, scanning
from trueup.exceptions import DataWarning, InvalidFile, InvalidLabels, InvalidParameter

pl = pytest.importorskip("polars")
N_ITEMS, N_FILES = 240, 4


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=N_ITEMS)
    item = np.repeat(np.arange(N_ITEMS), 3)
    labeler = np.concatenate([rng.permutation(7)[:3] for _ in range(N_ITEMS)])
    wrong = rng.random(len(item)) < 0.25
    label = np.where(wrong, rng.integers(3, size=len(item)), truth[item])
    return pl.DataFrame(
        {
            "item": [f"i{k:03d}" for k in item],
            "labeler": [f"w{k}" for k in labeler],
            "label": np.array(["cat", "dog", "eel"])[label],
        }
    )


@pytest.fixture
def files(frame, tmp_path):
    """A function that writes the votes to files, all votes of an item to one."""

    def write(suffix: str = "parquet", table=frame) -> str:
        for k, part in enumerate(np.array_split(table["item"].unique().sort().to_numpy(), N_FILES)):
            rows = table.filter(pl.col("item").is_in(part.tolist()))
            path = tmp_path / f"votes-{k}.{suffix}"
            rows.write_parquet(path) if suffix == "parquet" else rows.write_csv(path)
        return str(tmp_path / f"votes-*.{suffix}")

    return write


def same_votes(one, other):
    assert one.items.tolist() == other.items.tolist()
    assert one.labelers.tolist() == other.labelers.tolist()
    assert one.classes.tolist() == other.classes.tolist()
    assert (one.votes != other.votes).nnz == 0


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_scan_holds_the_votes_of_its_files(frame, files, suffix):
    labels, scan = tu.Labels.from_frame(frame), tu.Labels.scan(files(suffix))
    assert repr(scan) == "LabelScan(4 files, 7 labelers, 3 classes)"  # nothing but names is read yet
    same_votes(scan.read(), labels)
    assert (scan.n_items, scan.n_votes, scan.n_answers) == (labels.n_items, labels.n_votes, labels.n_answers)
    assert scan.vote_histogram.tolist() == labels.vote_histogram.tolist()
    parts = list(scan.partitions())
    assert [part.n_items for part in parts] == [60] * N_FILES
    assert all(part.labelers.tolist() == labels.labelers.tolist() for part in parts)
    assert repr(scan) == "LabelScan(4 files, 7 labelers, 3 classes, 240 items, 720 votes)"


def test_text_is_numbers_only_if_that_of_all_files_is(tmp_path):
    (tmp_path / "a.csv").write_text("item,labeler,label\n1,1,0\n1,2,1\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("item,labeler,label\nx2,ann,1\n", encoding="utf-8")
    scan = tu.Labels.scan([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert scan.labelers.tolist() == ["1", "2", "ann"]
    assert scan.classes.tolist() == [0, 1]
    assert scan.read().items.tolist() == ["1", "x2"]


def test_missing_votes_abstentions_and_duplicates_are_read_as_in_memory(tmp_path):
    rows = {
        "item": [1, 1, 2, 2, 3, 3, 3],
        "labeler": ["a", "b", "a", "b", "a", "a", "b"],
        "label": ["x", "y", "?", "x", "y", "x", "unsure"],
    }
    table = pl.DataFrame(rows)
    table[:2].write_parquet(tmp_path / "0.parquet")
    table[2:].write_parquet(tmp_path / "1.parquet")
    how = {"missing": "?", "abstain": "unsure", "abstain_policy": "answer", "duplicates": "first"}
    scan, labels = tu.Labels.scan(str(tmp_path / "*.parquet"), **how), tu.Labels.from_frame(table, **how)
    assert scan.answers.tolist() == labels.answers.tolist() == ["x", "y", "unsure"]
    assert scan.n_missing == 1
    same = [part.vote_table() for part in scan.partitions()]
    assert sum(len(item) for item, *_ in same) == labels.n_votes


def test_repeated_votes_are_told_once(frame, files):
    scan = tu.Labels.scan(files(table=pl.concat([frame, frame[:5]])))
    with pytest.warns(DataWarning, match="5 votes repeat one of the same labeler on the same item"):
        assert scan.n_repeats == 5


def test_gold_is_of_items_of_the_files(files):
    scan = tu.Labels.scan(files()).with_gold({"i007": "eel", "i230": "cat"})
    assert scan.gold == {"i007": "eel", "i230": "cat"}
    assert [list(part.gold) for part in scan.partitions()] == [["i007"], [], [], ["i230"]]
    with pytest.raises(InvalidLabels):
        _ = tu.Labels.scan(files()).with_gold({"nobody": "cat"}).n_items
    with pytest.raises(InvalidLabels):
        scan.with_gold({"i001": "cow"})


def test_many_votes_go_to_temporary_files(files, monkeypatch):
    pattern = files()
    here = tu.noise.fit(tu.Labels.scan(pattern), "dawid-skene")
    monkeypatch.setattr(scanning, "_MOST_HELD", 1000)
    scan = tu.Labels.scan(pattern)
    spilled = tu.noise.fit(scan, "dawid-skene")
    assert np.array_equal(here.confusion_, spilled.confusion_)
    folder = scan.encoded.blocks.folder
    assert len(list(folder.glob("*-indices.npy"))) >= 3
    del scan, spilled
    assert not folder.exists()


class TestItemsInSeveralFiles:
    @pytest.fixture
    def spread(self, frame, tmp_path):
        for k in range(3):
            frame[k::3].write_csv(tmp_path / f"spread-{k}.csv")
        return str(tmp_path / "spread-*.csv")

    def test_they_are_noticed(self, spread):
        scan = tu.Labels.scan(spread)
        with pytest.raises(InvalidLabels):
            tu.noise.fit(scan, "majority")

    def test_they_are_regrouped_once(self, frame, spread, tmp_path, monkeypatch):
        folder = tmp_path / "by-item"
        same_votes(tu.Labels.scan(spread, regroup=folder).read(), tu.Labels.from_frame(frame))
        assert sorted(path.name for path in folder.iterdir())[-1] == "sources.json"
        monkeypatch.setattr("trueup.data.partitions._write_by_item", None)  # it is not written again
        same_votes(tu.Labels.scan(spread, regroup=folder).read(), tu.Labels.from_frame(frame))

    def test_a_folder_of_other_votes_is_refused(self, spread, tmp_path):
        folder = tmp_path / "by-item"
        folder.mkdir()
        (folder / "sources.json").write_text(json.dumps({"files": "other"}), encoding="utf-8")
        with pytest.raises(InvalidFile):
            _ = tu.Labels.scan(spread, regroup=folder).n_items

    def test_nothing_is_half_written(self, spread, tmp_path, monkeypatch):

        real = partitions._rows_of

        def fail_in_the_last(path, reader):
            if path.endswith("spread-2.csv"):
                raise InvalidFile("the disk is full")
            return real(path, reader)

        monkeypatch.setattr(partitions, "_rows_of", fail_in_the_last)
        with pytest.raises(InvalidFile):
            _ = tu.Labels.scan(spread, regroup=tmp_path / "by-item").n_items
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def rename_the_labelers(frame, folder):
    frame[:6].rename({"labeler": "worker"}).write_parquet(folder / "votes-7.parquet")


def number_the_labelers(frame, folder):
    other = frame[:6].with_columns(labeler=pl.Series([1, 2, 3, 1, 2, 3]), item=pl.Series(["z"] * 6))
    other.write_parquet(folder / "votes-8.parquet")


BAD_FILES = {
    "another column": rename_the_labelers,
    "empty": lambda frame, folder: frame[:0].write_parquet(folder / "votes-1.parquet"),
    "corrupt": lambda frame, folder: (folder / "votes-2.parquet").write_bytes(b"PAR1 and then nothing"),
    "labelers of another type": number_the_labelers,
    **{
        f"classes {names}": lambda frame, folder, names=names: (
            frame[:6].with_columns(label=pl.Series(names * 3)).write_parquet(folder / "votes-9.parquet")
        )
        for names in (["Cat", "dog"], ["0", "1"])
    },
}


@pytest.mark.parametrize("spoil", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(frame, files, tmp_path, spoil):
    pattern = files()
    spoil(frame, tmp_path)
    with pytest.raises((InvalidLabels, InvalidFile)):
        tu.Labels.scan(pattern)


def test_votes_are_not_in_memory(files):
    scan = tu.Labels.scan(files())
    with pytest.raises(InvalidLabels):
        tu.noise.GLAD().fit(scan)
    for options in ({"model": "dawid-skene", "engine": "torch"}, {"model": "glad"}):
        with pytest.raises(InvalidParameter):
            tu.noise.fit(scan, **options)
