"""Ranking labelers by votes in files: what is drawn has the law of the plain answer in memory."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter

pl = pytest.importorskip("polars")
N_LABELERS = 5


def votes_of(n_classes):
    sim = tu.simulate.dawid_skene(
        n_items=400,
        accuracy=[0.9, 0.85, 0.8, 0.7, 0.5],
        n_labelers=N_LABELERS,
        n_classes=n_classes,
        prior=np.full(n_classes, 1 / n_classes),
        random_state=0,
    )
    return sim.labels.to_frame(backend="polars"), sim.truth


@pytest.fixture(scope="module")
def frame():
    return votes_of(2)[0]


@pytest.fixture
def scan_of(tmp_path):
    """A function that scans votes in so many files."""

    def scan(frame, n_files, **options):
        folder = tmp_path / str(n_files)
        folder.mkdir(exist_ok=True)
        for k in range(n_files):
            frame.filter(pl.col("item") % n_files == k).write_parquet(folder / f"{k}.parquet")
        return tu.Labels.scan(str(folder / "*.parquet"), **options)

    return scan


@pytest.mark.parametrize("n_checked", [0, 40])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labelers_are_as_in_memory(scan_of, n_classes, n_checked):
    votes, truth = votes_of(n_classes)
    labels, scan = tu.Labels.from_frame(votes), scan_of(votes, 3)
    if n_checked:
        gold = {item: labels.classes.tolist()[truth[item]] for item in range(n_checked)}
        labels, scan = labels.with_gold(gold, drawn="random"), scan.with_gold(gold, drawn="random")
    here, there = tu.labelers.rank(labels), tu.labelers.rank(scan)
    assert there.noise == here.noise
    for name in range(N_LABELERS):
        one, other = here[name], there[name]
        assert (other.votes, other.vetted, other.basis) == (one.votes, one.vetted, one.basis)
        assert (other.gold_only is None) == (n_checked == 0)
        for quantity in ("accuracy", "information", "bias", "spam"):
            mine, theirs = getattr(one, quantity), getattr(other, quantity)
            assert theirs.mean == pytest.approx(mine.mean, abs=0.25 * mine.std)
            assert theirs.std == pytest.approx(mine.std, rel=0.25)
        assert other.spam_probability == pytest.approx(one.spam_probability, abs=0.05)
    assert there[0].spam_probability < 0.01


def test_draws_do_not_depend_on_the_files_nor_the_engine(frame, scan_of):
    pytest.importorskip("numba")
    one, other = (
        tu.labelers.rank(scan_of(frame, n_files), engine=engine) for n_files, engine in ((2, "scipy"), (5, "numba"))
    )
    for name in range(N_LABELERS):
        assert one[name].accuracy.interval(0.9) == pytest.approx(other[name].accuracy.interval(0.9), abs=1e-3)
        assert one[name].bias.mean == pytest.approx(other[name].bias.mean, abs=0.3 * one[name].bias.std)


def test_gold_of_other_items_is_refused(frame, scan_of):
    with pytest.raises(InvalidLabels):
        tu.labelers.rank(scan_of(frame, 2).with_gold({0: frame["label"][0], 1000: frame["label"][0]}, drawn="random"))


@pytest.mark.parametrize("noise", [None, "dawid-skene"])
def test_repeated_votes_are_one_vote(frame, scan_of, noise):
    twice = pl.concat([frame, frame.filter(pl.col("labeler") == 4)]).with_columns(
        run=pl.int_range(pl.len()).over("item", "labeler")
    )
    once = tu.labelers.rank(scan_of(frame, 2), noise=noise)
    again = tu.labelers.rank(scan_of(twice, 3, run="run"), noise=noise)
    assert again[4].votes == 2 * once[4].votes
    assert again[4].accuracy.std == pytest.approx(once[4].accuracy.std, rel=0.02)  # not by √2 narrower
    assert again[4].consistency.mean > 0.99
    assert once[4].consistency is None


def test_a_dask_cluster_gives_the_same(frame, scan_of):
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    here = tu.labelers.rank(scan_of(frame, 2))
    place = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **place) as cluster, distributed.Client(cluster):
        there = tu.labelers.rank(scan_of(frame, 3), engine="dask")
    assert here[1].accuracy.mean == pytest.approx(there[1].accuracy.mean, abs=1e-3)


@pytest.mark.parametrize(
    ("keywords", "parameter"), [({"noise": "glad"}, "noise"), ({"by": "topic"}, "by"), ({"engine": "torch"}, "engine")]
)
def test_what_a_scan_cannot_answer_says_so(frame, scan_of, keywords, parameter):
    with pytest.raises(InvalidParameter) as error:
        tu.labelers.rank(scan_of(frame, 2), **keywords)
    assert error.value.parameter == parameter
