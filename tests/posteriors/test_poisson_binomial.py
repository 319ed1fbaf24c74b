"""Exact counts: against enumeration and against the binomial."""

import itertools

import numpy as np
import pytest
from scipy import stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import poisson_binomial_estimate, poisson_binomial_pmf


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


def test_bad_input():
    with pytest.raises(InvalidParameter, match=r"p must hold probabilities in \[0, 1\], got \[1.2\]"):
        poisson_binomial_pmf([0.5, 1.2])
    with pytest.raises(InvalidParameter, match="p must hold probabilities"):
        poisson_binomial_pmf([np.nan])
    with pytest.raises(InvalidParameter, match="`scale` must be"):
        poisson_binomial_estimate([0.5], scale=np.inf)
