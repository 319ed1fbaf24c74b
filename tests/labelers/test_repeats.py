"""Several verdicts of a labeler on an item: one witness who wavers."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import DataWarning, InvalidLabels
from trueup.labelers import rank, self_consistency


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(1)
    truth = (rng.random(150) < 0.6).astype(int)
    return truth, np.where(rng.random((150, 5)) < [0.9, 0.85, 0.8, 0.8, 0.75], truth[:, None], 1 - truth[:, None])


def verdicts(votes, n_runs):
    """The same votes once for each run."""
    item, labeler = (np.tile(axis.ravel(), n_runs) for axis in np.indices(votes.shape))
    run = np.repeat(np.arange(n_runs), votes.size)
    return {"item": item, "labeler": labeler, "label": np.tile(votes.ravel(), n_runs), "run": run}


def test_five_copies_change_nothing(panel):
    truth, votes = panel
    once, five = (tu.Labels.from_frame(verdicts(votes, n), run="run") for n in (1, 5))
    assert five.n_votes == 5 * once.n_votes
    worth = [tu.noise.effective_labelers(labels).effective for labels in (once, five)]
    assert worth[1] == pytest.approx(worth[0], rel=0.01)
    gold = {int(item): int(truth[item]) for item in range(0, 150, 4)}
    for more in ({}, gold):
        answers = [
            tu.share(labels.with_gold(more, drawn="random") if more else labels, of=1, check_dependence=False)
            for labels in (once, five)
        ]
        assert answers[0].basis == answers[1].basis == ("votes and 38 checked items" if more else "votes alone")
        ends = [answer.overall.interval(0.95) for answer in answers]
        assert ends[1] == pytest.approx(ends[0], abs=0.02 * (ends[0][1] - ends[0][0]))
    skills = [rank(labels, noise="dawid-skene", n_draws=200, random_state=0) for labels in (once, five)]
    for of_once, of_five in zip(*skills, strict=True):
        assert of_five.accuracy.interval(0.95) == pytest.approx(of_once.accuracy.interval(0.95))
        assert of_once.consistency is None
        assert of_five.consistency.mean > 0.99


def test_five_copies_in_files_change_nothing(panel, tmp_path):
    pl = pytest.importorskip("polars")
    truth, votes = panel
    said = {item: int(truth[item]) for item in range(150)}
    ends = []
    for n in (1, 5):
        pl.DataFrame(verdicts(votes, n)).write_parquet(tmp_path / f"{n}.parquet")
        scan = tu.Labels.scan(str(tmp_path / f"{n}.parquet"), run="run")
        ends.append(tu.evaluate(said, scan)["accuracy"].interval(0.95))
    assert ends[1] == pytest.approx(ends[0], abs=1.01 / 150)  # sums in another order can move one item


def test_a_run_makes_repeats_expected_and_its_rows_unique(panel):
    _, votes = panel
    twice = verdicts(votes, 2)
    with pytest.warns(DataWarning, match="repeat a labeler's vote"):
        tu.Labels.from_frame(twice)
    labels = tu.Labels.from_frame(twice, run="run", duplicates="error")
    assert labels.n_repeats == votes.size
    again = {name: np.append(column, column[-1]) for name, column in twice.items()}
    with pytest.raises(InvalidLabels):
        tu.Labels.from_frame(again, run="run", duplicates="error")
    kept = tu.Labels.from_frame(again, run="run", duplicates="first")
    assert kept.n_votes == labels.n_votes


def test_the_consistency_of_each_judge():
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=400)
    second = np.where(rng.random(400) < 0.8, first, 1 - first)
    steady, once = rng.integers(2, size=400), rng.integers(2, size=400)
    columns = [("wavers", first, 1), ("wavers", second, 2), ("steady", steady, 1), ("steady", steady, 2)]
    columns.append(("once", once, 1))
    frame = {
        "item": np.tile(np.arange(400), 5),
        "labeler": np.repeat([name for name, _, _ in columns], 400),
        "label": np.concatenate([labels for _, labels, _ in columns]),
        "run": np.repeat([run for _, _, run in columns], 400),
    }
    told = self_consistency(tu.Labels.from_frame(frame, run="run"))
    assert set(told) == {"wavers", "steady"}
    assert told["wavers"].mean == pytest.approx((first == second).mean(), abs=0.002)
    low, high = told["wavers"].interval(0.95)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 400), rel=0.05)
    assert told["steady"].interval(0.95)[0] > 0.99


def test_a_crowd_does_not_waver():
    assert self_consistency(tu.Labels.from_counts([[3, 1], [0, 2]])) == {}
