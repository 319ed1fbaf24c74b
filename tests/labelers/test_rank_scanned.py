"""Ranking labelers by votes in files: sweeps are passes, and the law is that of chains in memory."""

import numpy as np
import pytest

import trueup as tu
from trueup.data.partitions import item_keys, keyed_uniforms
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise import swept

pl = pytest.importorskip("polars")
N_LABELERS = 5
pytestmark = pytest.mark.filterwarnings("ignore::trueup.exceptions.ConvergenceWarning")  # of chains as short as these


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(swept, "_SWEEPS", {"n_warmup": 40, "n_draws": 120})


@pytest.fixture
def few_sweeps(quick, monkeypatch):
    """As few as show whether two ways to draw give the very same numbers."""
    monkeypatch.setattr(swept, "_SWEEPS", {"n_warmup": 10, "n_draws": 30})


@pytest.fixture(scope="module")
def frame():
    sim = tu.simulate.dawid_skene(
        n_items=400, accuracy=[0.9, 0.85, 0.8, 0.7, 0.5], n_labelers=N_LABELERS, random_state=0
    )
    return sim.labels.to_frame(backend="polars")


@pytest.fixture
def scan_of(tmp_path):
    """A function that scans votes in so many files."""

    def scan(frame, n_files, **options):
        folder = tmp_path / str(n_files)
        folder.mkdir()
        for k in range(n_files):
            frame.filter(pl.col("item") % n_files == k).write_parquet(folder / f"{k}.parquet")
        return tu.Labels.scan(str(folder / "*.parquet"), **options)

    return scan


@pytest.mark.parametrize("noise", ["dawid-skene", pytest.param("one-coin", marks=pytest.mark.slow)])
def test_labelers_are_as_in_memory(frame, scan_of, noise):
    here = tu.labelers.rank(tu.Labels.from_frame(frame), noise=noise)
    there = tu.labelers.rank(scan_of(frame, 3), noise=noise)
    assert there.labelers == here.labelers
    assert there.noise == here.noise
    for name in range(N_LABELERS):
        one, other = here[name], there[name]
        assert other.votes == one.votes
        for quantity in ("accuracy", "information", "bias"):
            mine, theirs = getattr(one, quantity), getattr(other, quantity)
            assert theirs.mean == pytest.approx(mine.mean, abs=0.3 * mine.std)
            assert theirs.std == pytest.approx(mine.std, rel=0.3)
        assert other.spam_probability == pytest.approx(one.spam_probability, abs=0.05)


@pytest.mark.usefixtures("few_sweeps")
def test_draws_do_not_depend_on_the_files_nor_the_engine(frame, scan_of):
    pytest.importorskip("numba")
    rankings = []
    for n_files, engine in ((2, "scipy"), (5, "numba")):
        rankings.append(tu.labelers.rank(scan_of(frame, n_files), noise="dawid-skene", engine=engine))
    for name in range(N_LABELERS):
        one, other = (ranking[name].accuracy for ranking in rankings)
        assert one.mean == pytest.approx(other.mean, abs=1e-10)
        assert one.interval(0.9) == pytest.approx(other.interval(0.9), abs=1e-10)


def test_the_default_has_extra_clusters_in_every_second_chain(frame, scan_of):
    ranking = tu.labelers.rank(scan_of(frame, 2))
    assert ranking.noise == "clusters"
    assert set(ranking.labelers[:3]) == {0, 1, 2}
    assert ranking.labelers[-1] == 4


def test_gold_is_told_to_the_chains(frame, scan_of):
    votes = frame.with_columns(label=pl.col("label").cast(pl.Int64))
    turned = {
        item: 1 - label for item, label in votes.filter(pl.col("labeler") == 0).select("item", "label").iter_rows()
    }
    scan = scan_of(votes, 2).with_gold(turned)  # as if the best was always wrong
    assert tu.labelers.rank(scan, noise="dawid-skene")[0].accuracy.mean < 0.02


@pytest.mark.usefixtures("few_sweeps")
def test_repeated_votes_are_one_witness(frame, scan_of):
    twice = pl.concat([frame, frame.filter(pl.col("labeler") == 4)]).with_columns(
        run=pl.int_range(pl.len()).over("item", "labeler")
    )
    once = tu.labelers.rank(scan_of(frame, 2), noise="dawid-skene")
    again = tu.labelers.rank(scan_of(twice, 3, run="run"), noise="dawid-skene")
    assert again[4].votes == 2 * once[4].votes
    assert again[4].accuracy.std == pytest.approx(once[4].accuracy.std, rel=1e-6)  # not by √2 narrower
    assert again[4].consistency.mean > 0.99
    assert once[4].consistency is None


def test_chains_that_do_not_mix_say_so(frame, scan_of, monkeypatch):
    monkeypatch.setattr(swept, "_SWEEPS", {"n_warmup": 0, "n_draws": 8})
    with pytest.warns(ConvergenceWarning, match="the chains have not mixed"):
        tu.labelers.rank(scan_of(frame, 2), noise="dawid-skene")


@pytest.mark.usefixtures("few_sweeps")
def test_a_cluster_gives_the_same(frame, scan_of):
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    here = tu.labelers.rank(scan_of(frame, 2), noise="one-coin")
    place = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **place) as cluster, distributed.Client(cluster):
        there = tu.labelers.rank(scan_of(frame, 3), noise="one-coin", engine="dask")
    assert here[1].accuracy.mean == pytest.approx(there[1].accuracy.mean, abs=1e-10)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"noise": "subtypes"}, "noise of votes that are scanned must be one of 'clusters', 'dawid-skene', 'one-coin'"),
        ({"by": "topic"}, "votes that are scanned are ranked on all items, got by"),
        ({"engine": "torch"}, "engine of labelers.rank must be one of 'scipy', 'numba', 'dask'"),
    ],
)
def test_what_a_scan_cannot_answer_says_so(frame, scan_of, keywords, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        tu.labelers.rank(scan_of(frame, 2), **keywords)


def test_numbers_of_items_are_uniform_and_independent():
    keys = item_keys(np.arange(20_000))
    one, other = keyed_uniforms(keys, 1, 0), keyed_uniforms(keys, 1, 1)
    assert one.min() >= 0
    assert one.max() < 1
    assert one.mean() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.03
