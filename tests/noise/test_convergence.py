"""R-hat and effective draws against theory and against the textbook; how long work is announced."""

import logging

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from trueup.noise.sampling import LongWork, effective_draws, rhat


def textbook_scores(chains):
    half = chains.shape[1] // 2
    split = np.vstack([chains[:, :half], chains[:, chains.shape[1] - half :]])
    ranks = rankdata(split.ravel()).reshape(split.shape)
    return split, norm.ppf((ranks - 3 / 8) / (split.size + 1 / 4))


def textbook_rhat(chains):
    def plain(z):
        m, n = z.shape
        means = [row.mean() for row in z]
        between = n / (m - 1) * sum((x - np.mean(means)) ** 2 for x in means)
        within = np.mean([((row - row.mean()) ** 2).sum() / (n - 1) for row in z])
        return np.sqrt(((n - 1) / n * within + between / n) / within)

    split, scores = textbook_scores(chains)
    folded = np.abs(split - np.median(split))
    ranks = rankdata(folded.ravel()).reshape(folded.shape)
    return max(plain(scores), plain(norm.ppf((ranks - 3 / 8) / (folded.size + 1 / 4))))


def textbook_ess(chains):
    """Gelman et al., Bayesian Data Analysis, 11.5, with Geyer's initial monotone sequence."""
    _, z = textbook_scores(chains)
    m, n = z.shape
    centred = z - z.mean(axis=1, keepdims=True)
    gamma = np.array([[(row[: n - t] * row[t:]).sum() / n for t in range(n)] for row in centred])
    within = np.mean(gamma[:, 0] * n / (n - 1))
    var_plus = within * (n - 1) / n + z.mean(axis=1).var(ddof=1)
    rho = 1 - (within - gamma.mean(axis=0)) / var_plus
    total, before = 0.0, np.inf
    for k in range(n // 2):
        pair = rho[2 * k] + rho[2 * k + 1]
        if pair < 0:
            break
        before = min(before, pair)
        total += before
    return m * n / (2 * total - 1)


def ar1(phi, shape, seed=0):
    rng = np.random.default_rng(seed)
    draws = np.empty(shape)
    draws[:, 0] = rng.normal(size=shape[0]) / np.sqrt(1 - phi**2)
    for k in range(1, shape[1]):
        draws[:, k] = phi * draws[:, k - 1] + rng.normal(size=shape[0])
    return draws


def test_antithetic_draws_are_worth_more_but_not_endlessly():
    draws = ar1(-0.6, (4, 4000))
    assert effective_draws(draws) > 16000
    assert effective_draws(draws) <= 16000 * np.log10(16000)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("shape", [(4, 200), (2, 301), (1, 400)])
def test_both_are_those_of_the_textbook(phi, shape):
    draws = np.exp(ar1(phi, shape, seed=2))
    assert rhat(draws) == pytest.approx(textbook_rhat(draws), rel=1e-9)
    assert effective_draws(draws) == pytest.approx(textbook_ess(draws), rel=1e-6)


def test_chains_that_disagree_are_seen():
    draws = np.random.default_rng(0).normal(size=(4, 500))
    shifted = draws + np.array([0, 0, 0, 1.5])[:, None]
    assert rhat(shifted) > 1.1
    assert effective_draws(shifted) < 200
    wider = draws * np.array([1, 1, 1, 6])[:, None]
    assert rhat(wider) > 1.1
    trend = draws[:1] + np.linspace(-2, 2, 500)
    assert rhat(trend) > 1.1
    stuck = np.repeat([[0.0], [1.0]], 100, axis=1)
    assert rhat(stuck) == np.inf


def test_constant_draws_are_no_alarm():
    assert np.isnan(rhat(np.ones((4, 100))))
    assert effective_draws(np.ones((4, 100))) == 400


def announced(seconds: float, share: float, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    now = [1.0]
    work = LongWork("counting", clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="trueup"):
        work(0.0)
        for k in range(1, 5):
            now[0] = 1.0 + seconds * k
            work(share * k)
    return [record.getMessage() for record in caplog.records]


def test_long_work_is_announced_once(caplog: pytest.LogCaptureFixture) -> None:
    assert announced(10.0, 0.035, caplog) == ["counting will take about 5 more minutes"]
    assert announced(10.0, 0.15, caplog) == ["counting will take about 1 more minute"]


@pytest.mark.parametrize(("seconds", "share"), [(10.0, 0.2), (0.5, 0.001), (10.0, 0.0)])
def test_short_work_and_what_has_just_begun_are_not(
    seconds: float, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert announced(seconds, share, caplog) == []
