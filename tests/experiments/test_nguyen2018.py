"""Parts of the experiments of Nguyen et al. (2018): the data, the estimators against the session's own, the command."""

import numpy as np
import pytest

import trueup as tu
from experiments.nguyen2018 import figures, runs
from experiments.nguyen2018.report import checks, expected
from experiments.nguyen2018.settings import TAG_IF_ABSENT, TAG_IF_PRESENT, K, Tagging, noisy_tags, simulated


def small(seed: int = 0, *, gap: float = 0.0) -> Tagging:
    return simulated(seed, gap=gap, n_images=600, n_tags=6)


def session(tagging: Tagging, estimator: str, strategy: str = "stratified") -> tu.ActiveTest:
    scores = tagging.scores if len(tagging.scores) > 1 else tagging.scores["a"]
    return tu.ActiveTest(
        scores,
        tagging.labels,
        metric=f"precision@{K}",
        categories=tagging.tags.tolist(),
        strategy=strategy,
        estimator=estimator,
        noise="majority",
    )


def test_tags_have_the_rates_of_nus_wide():
    rng = np.random.default_rng(0)
    truth = rng.random(100_000) < 0.5
    tags = noisy_tags(truth, rng)
    for fits, rate in ((True, TAG_IF_PRESENT), (False, TAG_IF_ABSENT)):
        n = (truth == fits).sum()
        assert abs(tags[truth == fits].mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / n)


@pytest.mark.parametrize("estimator", ["naive", "learned"])
def test_estimates_of_tags_have_the_mean_of_the_session(estimator):
    data = small()
    test = session(data, estimator)
    test.tell({pair: int(data.truth[pair]) for pair in test.ask(100)})
    said, _ = runs.estimates(data, test, "a")
    whole = test.estimate()
    error = 0.0 if estimator == "naive" else 5 * whole.std / np.sqrt(400)
    assert whole.mean == pytest.approx(said[estimator].mean(), abs=1e-9 + error)


@pytest.mark.parametrize("strategy", list(runs.STRATEGIES))
def test_all_estimators_end_at_the_truth(strategy):
    walk = runs.walk(small(gap=0.5), strategy)
    for name in runs.ESTIMATORS:
        assert walk.said[name].shape == (2, len(runs.SHARES), 6)
        assert walk.said[name][:, -1] == pytest.approx(walk.true)
        assert walk.errors(name)[-1] == pytest.approx(0, abs=1e-12)
    assert walk.stale[0] == pytest.approx(walk.said["learned"][0, 0])


def test_learned_beats_naive_on_missing_tags():
    walk = runs.walk(simulated(0), "random")  # six tags are too few to tell: the error of each is some 0.03 either way
    assert walk.errors("learned")[5] < 0.75 * walk.errors("naive")[5]


def made_up(wrong: float, n: int = 50, n_shares: int = len(runs.SHARES)) -> tuple[runs.Walk, ...]:
    """Walks of two systems with a gap of 0.01, of which a share `wrong` is estimated with the wrong sign."""
    shape = (2, n_shares, 3)
    found = []
    for k in range(n):
        said = np.full(shape, 0.2)
        said[0] += -0.01 if k < wrong * n else 0.01
        true = np.stack([np.full(3, 0.21), np.full(3, 0.2)])
        found.append(runs.Walk(dict.fromkeys(runs.ESTIMATORS, said), true, said[0], np.array([[0.1, 0.3]] * 3)))
    return tuple(found)


def put_made_up(monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    monkeypatch.setattr(figures, "single_walks", lambda which, strategy, n: made_up(wrong, n))
    pair_shares = len(runs.PAIR_SHARES)
    monkeypatch.setattr(figures, "pair_walks", lambda which, strategy, n: made_up(wrong, n, pair_shares))


def test_everything_expected_is_measured_and_can_fail(monkeypatch):
    put_made_up(monkeypatch, 0.2)
    for name in ("figure5", "figure6", "figure8-tags"):
        figure = figures.FIGURES[name]
        _, ours = figure(None, n_runs=10)
        entry = expected()[name]
        assert set(entry["values"]) | set(entry["limits"]) <= set(ours)
        assert entry["where"]
        assert entry["tolerance_is"]
    _, ours = figures.figure8_tags(None, n_runs=10)
    assert ours["strips: learned + meec, misranked at 50%"] == pytest.approx(0.2)
    verdicts = {c.label: c.ok for c in checks("figure8-tags", ours)}
    assert verdicts["simulated: vetted-only + random, misranked at 50%"]
    assert not verdicts["simulated: learned + separate, misranked at 50%"]
