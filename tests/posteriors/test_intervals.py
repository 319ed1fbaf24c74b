"""Textbook intervals of a share."""

import numpy as np
import pytest
from scipy import stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import wald, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (480, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_is_scipys(k, n, level):
    expected = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    np.testing.assert_allclose(wilson(k, n, level), (expected.low, expected.high), atol=1e-12)


def test_edges():
    assert wilson(0, 0) == (0.0, 1.0)
    assert np.isnan(wald(0, 0)).all()
    assert wald(0, 5) == (0.0, 0.0)
    for function in (wald, wilson):
        with pytest.raises(InvalidParameter, match="successes must not exceed n, got 5 of 4"):
            function(5, 4)
        with pytest.raises(InvalidParameter, match="`level` must be"):
            function(1, 4, 95)


def test_wilson_takes_half_a_success_as_a_split_tie_gives():
    ends = np.array(wilson(2.5, 10))
    np.testing.assert_allclose(np.abs(ends - 0.25), stats.norm.ppf(0.975) * np.sqrt(ends * (1 - ends) / 10))


def test_coverage_over_all_outcomes():
    """Exact coverage, averaged over p; Wald is the one that fails."""
    n, k = 30, np.arange(31)
    p = np.linspace(0.02, 0.98, 97)
    mass = stats.binom.pmf(k[None], n, p[:, None])
    covered = {}
    for function in (wald, wilson):
        ends = np.array([function(int(s), n) for s in k])
        inside = (ends[:, 0] <= p[:, None]) & (p[:, None] <= ends[:, 1])
        covered[function.__name__] = float((mass * inside).sum(axis=1).mean())
    assert covered["wilson"] == pytest.approx(0.95, abs=0.01)
    assert covered["wald"] < 0.93
