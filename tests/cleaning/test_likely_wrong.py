"""Labels that are likely wrong: the scores of the strategy, wherever the votes are."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.cleaning import get_cleaning_strategy, likely_wrong
from trueup.exceptions import InvalidLabels, InvalidParameter

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def labels():
    votes = tu.simulate.dawid_skene(n_items=300, n_labelers=6, random_state=2).labels
    return votes.with_gold({3: votes.classes[0], 250: votes.classes[1]})


@pytest.fixture
def scan_of(labels, tmp_path):
    """A function that scans the votes in so many files."""

    def scan(n_files):
        frame, folder = labels.to_frame(backend="polars"), tmp_path / str(n_files)
        folder.mkdir()
        for k in range(n_files):
            frame.filter(pl.col("item") % n_files == k).write_parquet(folder / f"{k}.parquet")
        return tu.Labels.scan(str(folder / "*.parquet")).with_gold(labels.gold)

    return scan


def test_the_scores_are_those_of_the_strategy(labels):
    worst = likely_wrong(labels)
    X = np.random.default_rng(0).normal(size=(labels.n_items, 2))
    advisor = tu.CleaningAdvisor(LogisticRegression(), X, labels, strategy="noise-rate", split=False)
    state = advisor.problem.after(np.full(labels.n_items, -1))
    told = get_cleaning_strategy("noise-rate").scores(state).tolist()
    scores = dict(zip(labels.items[state.train].tolist(), told, strict=True))
    assert len(worst) == sum(np.isfinite(score) for score in scores.values()) == labels.n_items - 2
    np.testing.assert_allclose(worst.chances, [scores[item] for item in worst], atol=1e-10)
    assert (np.diff(worst.chances) <= 1e-12).all()
    assert worst.to_frame(backend="polars").columns == ["item", "label", "chance"]
    assert "is wrong with probability" in repr(worst)


def test_a_scan_gives_the_same(labels, scan_of):
    here = likely_wrong(labels, most=50)
    for scan in (scan_of(2), scan_of(5)):
        there = likely_wrong(scan, most=50)
        assert list(there) == list(here)
        np.testing.assert_allclose(there.chances, here.chances, rtol=0, atol=1e-10)
        assert there.labels.tolist() == here.labels.tolist()
    known = tu.noise.Confusion([[0.8, 0.2], [0.3, 0.7]])
    assert list(likely_wrong(scan, noise=known, most=7)) == list(likely_wrong(labels, noise=known, most=7))


def test_what_cannot_be_had_says_so(labels, scan_of):
    with pytest.raises(InvalidLabels, match=r"labels must be trueup\.Labels, got dict"):
        likely_wrong({})
    with pytest.raises(InvalidParameter, match=r"votes that are scanned can be read by .* got GLAD"):
        likely_wrong(scan_of(2), noise="glad")
    with pytest.raises(InvalidLabels, match=r"got LabelScan; .* scan\.read\(\); .* cleaning\.likely_wrong"):
        tu.CleaningAdvisor(LogisticRegression(), np.zeros((300, 2)), scan_of(3))
