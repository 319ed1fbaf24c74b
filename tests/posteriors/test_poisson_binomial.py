"""Exact counts: against enumeration, against the binomial, and the measured error of the large-sample shortcut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import poisson_binomial as module
from trueup.posteriors import poisson_binomial_estimate, poisson_binomial_pmf, two_counts_estimate
from trueup.posteriors.poisson_binomial import refined_normal_pmf


def _enumerate(p):
    pmf = np.zeros(len(p) + 1)
    for outcome in itertools.product([0, 1], repeat=len(p)):
        pmf[sum(outcome)] += np.prod([q if o else 1 - q for q, o in zip(p, outcome, strict=True)])
    return pmf


@pytest.mark.parametrize("n", range(13))
def test_enumeration(n):
    p = np.random.default_rng(n).random(n)
    if n > 3:
        p[:2] = 0.0, 1.0
    np.testing.assert_allclose(poisson_binomial_pmf(p), _enumerate(p), atol=1e-15)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 100, 1000, 4097, 50_000])
@pytest.mark.parametrize("p", [0.5, 0.03, 0.999])
def test_binomial(n, p):
    pmf = poisson_binomial_pmf(np.full(n, p))
    np.testing.assert_allclose(pmf, stats.binom(n, p).pmf(np.arange(n + 1)), atol=1e-12)
    assert (pmf >= 0).all()
    assert pmf.sum() == pytest.approx(1, abs=1e-12)


def test_mixed_chances_against_direct_convolution():
    p = np.random.default_rng(0).beta(0.3, 0.3, 3000)
    direct = np.ones(1)
    for q in p:
        direct = np.convolve(direct, [1 - q, q])
    np.testing.assert_allclose(poisson_binomial_pmf(p), direct, atol=1e-12)


def test_sure_trials():
    np.testing.assert_array_equal(poisson_binomial_pmf([1, 1, 0]), [0, 0, 1, 0])
    np.testing.assert_array_equal(poisson_binomial_pmf([]), [1])
    tiny = poisson_binomial_pmf([1e-300, 1 - 1e-16, 1])
    assert tiny.sum() == pytest.approx(1)


def test_moments_and_affine_map():
    p = np.random.default_rng(1).random(400)
    e = poisson_binomial_estimate(p, scale=1 / 400, name="accuracy")
    assert e.mean == pytest.approx(p.mean(), abs=1e-12)
    assert e.std == pytest.approx(np.sqrt((p * (1 - p)).sum()) / 400, abs=1e-12)
    assert (e.name, e.bounds) == ("accuracy", (0.0, 1.0))
    flipped = poisson_binomial_estimate(p, scale=-2, offset=3)
    assert flipped.mean == pytest.approx(3 - 2 * p.sum())
    assert flipped.bounds == (-797.0, 3.0)


def _sup_distance(p):
    counts, pmf = refined_normal_pmf(p)
    exact = np.cumsum(poisson_binomial_pmf(p))
    approximate = np.zeros(len(exact))
    approximate[counts] = pmf
    return np.abs(np.cumsum(approximate) - exact).max()


@pytest.mark.parametrize("std", [10, 100])
@pytest.mark.parametrize("kind", ["fair", "rare", "sure", "arcsine", "skewed"])
def test_the_shortcut_is_indistinguishable(std, kind):
    rng = np.random.default_rng(0)
    draw = {
        "fair": lambda n: np.full(n, 0.5),
        "rare": lambda n: np.full(n, 0.02),
        "sure": lambda n: np.full(n, 0.95),
        "arcsine": lambda n: rng.beta(0.5, 0.5, n),
        "skewed": lambda n: rng.beta(0.1, 2, n),
    }[kind]
    sample = draw(2000)
    p = draw(int(std**2 / (sample * (1 - sample)).mean() * 1.05))
    variance = float((p * (1 - p)).sum())
    distance = _sup_distance(p)
    assert distance < 0.022 / variance
    assert std < 100 or distance < 3e-6


def test_the_shortcut_is_taken_only_where_it_is_good(monkeypatch):
    monkeypatch.setattr(module, "_EXACT_SIZE", 100)
    p = np.full(50_000, 0.5)
    short = poisson_binomial_estimate(p, scale=1 / 50_000)
    assert len(short.support) < 5000
    assert short.mean == pytest.approx(0.5, abs=1e-9)
    assert short.std == pytest.approx(np.sqrt(0.25 / 50_000), rel=1e-5)
    # Rare events spread too little for a normal law: exact whatever the size.
    rare = poisson_binomial_estimate(np.full(50_000, 1e-5))
    np.testing.assert_allclose(rare.pdf([0, 1, 2]), stats.binom(50_000, 1e-5).pmf([0, 1, 2]), atol=1e-12)


def test_two_counts_against_enumeration():
    p, q = [0.9, 0.6, 0.2], [0.1, 0.4]
    expected: dict[float, float] = {}
    for outcome in itertools.product([0, 1], repeat=5):
        chance = float(np.prod([c if o else 1 - c for c, o in zip(p + q, outcome, strict=True)]))
        u, v = sum(outcome[:3]), sum(outcome[3:])
        key = round(u / (u + v), 9) if u + v else -1.0
        expected[key] = expected.get(key, 0.0) + chance
    undefined = expected.pop(-1.0)
    e = two_counts_estimate(p, q, lambda u, v: u / (u + v), name="recall")
    np.testing.assert_allclose(e.support.round(9), sorted(expected))
    np.testing.assert_allclose(e.pmf, [expected[k] / (1 - undefined) for k in sorted(expected)], atol=1e-14)
    assert e.undefined == pytest.approx(undefined)


def test_two_counts_against_monte_carlo():
    rng = np.random.default_rng(5)
    p, q = rng.beta(6, 1, 80), rng.beta(1, 6, 60)
    e = two_counts_estimate(p, q, lambda u, v: 2 * u / (u + v + 80), name="f1")
    u = (rng.random((20_000, 80)) < p).sum(axis=1)
    v = (rng.random((20_000, 60)) < q).sum(axis=1)
    draws = 2 * u / (u + v + 80)
    assert e.mean == pytest.approx(draws.mean(), abs=4 * e.std / np.sqrt(20_000))
    assert e.std == pytest.approx(draws.std(), rel=0.03)
    low, high = e.interval(0.9)
    assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(0.9, abs=0.02)


def test_bad_input():
    with pytest.raises(InvalidParameter, match=r"p must hold probabilities in \[0, 1\], got \[1.2\]"):
        poisson_binomial_pmf([0.5, 1.2])
    with pytest.raises(InvalidParameter, match="p must hold probabilities"):
        poisson_binomial_pmf([np.nan])
    with pytest.raises(InvalidParameter, match="scale must be"):
        poisson_binomial_estimate([0.5], scale=np.inf)
    with pytest.raises(InvalidParameter, match="p_v must hold"):
        two_counts_estimate([0.5], [-1], lambda u, v: u)
    with pytest.raises(InvalidParameter, match="use normal_ratio or draws"):
        two_counts_estimate(np.full(50_000, 0.5), np.full(50_000, 0.5), lambda u, v: u / (u + v))
