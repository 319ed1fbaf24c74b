"""True and apparent error: exact identities, enumeration, and what is said where the estimate is negative."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from trueup import rates
from trueup.exceptions import InvalidParameter

below_half = st.floats(0.0, 0.49)
shares = st.floats(0.0, 1.0)


def by_enumeration(error, mislabeling, n_classes):
    """P(ŷ ≠ z) with the truth 0 and errors spread evenly over the other classes."""
    wrong = (n_classes - 1) or 1
    total = 0.0
    for z, p in itertools.product(range(n_classes), repeat=2):
        chance_z = 1 - mislabeling if z == 0 else mislabeling / wrong
        chance_p = 1 - error if p == 0 else error / wrong
        total += chance_z * chance_p * (z != p)
    return total


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("error", [0.0, 0.07, 0.9])
def test_apparent_error_is_that_of_enumeration(error, n_classes):
    ours = rates.apparent_error(error=error, mislabeling=0.2, n_classes=n_classes)
    assert ours == pytest.approx(by_enumeration(error, 0.2, n_classes), abs=1e-12)


@given(error=shares, mislabeling=below_half, n_classes=st.integers(2, 12))
def test_true_error_undoes_apparent_error(error, mislabeling, n_classes):
    apparent = rates.apparent_error(error=error, mislabeling=mislabeling, n_classes=n_classes)
    found = rates.true_error(apparent=apparent, mislabeling=mislabeling, n_classes=n_classes)
    assert found.value == pytest.approx(error, abs=1e-12 / (1 - 2 * mislabeling))


def test_estimate_is_unbiased_and_its_standard_error_is_right():
    # Exactly, over all counts: Â is a share of n = 40, ε is known.
    n, error, mislabeling = 40, 0.1, 0.15
    apparent = rates.apparent_error(error=error, mislabeling=mislabeling)
    counts = np.arange(n + 1)
    weight = stats.binom.pmf(counts, n, apparent)
    raw = rates.true_error(apparent=counts / n, mislabeling=mislabeling, n=n).raw
    assert weight @ raw == pytest.approx(error)
    variance = weight @ (raw - error) ** 2
    assert variance == pytest.approx(apparent * (1 - apparent) / (n * (1 - 2 * mislabeling) ** 2))
    assert rates.true_error(apparent=apparent, mislabeling=mislabeling, n=n).std ** 2 == pytest.approx(variance)


def test_standard_error_carries_the_uncertainty_of_mislabeling():
    found = rates.true_error(apparent=0.2, mislabeling=0.1, n=400, n_checked=250)
    rng = np.random.default_rng(0)
    a, eps = rng.binomial(400, 0.2, 400_000) / 400, rng.binomial(250, 0.1, 400_000) / 250
    assert found.std == pytest.approx(np.std((a - eps) / (1 - 2 * eps)), rel=0.01)
    assert found.std > rates.true_error(apparent=0.2, mislabeling=0.1, n=400).std


def test_score_ends_are_where_a_brute_force_test_stops_rejecting():
    found = rates.true_error(apparent=0.15, mislabeling=0.04, n=100, n_checked=50)
    grid = np.linspace(1e-6, 0.5 - 1e-6, 200_001)

    def statistic(e):
        a = e + grid * (1 - 2 * e)
        likelihood = stats.binom.logpmf(15, 100, a) + stats.binom.logpmf(2, 50, grid)
        best = np.argmax(likelihood)
        variance = a[best] * (1 - a[best]) / 100 + (1 - 2 * e) ** 2 * grid[best] * (1 - grid[best]) / 50
        return (0.15 - 0.04 - e * 0.92) / np.sqrt(variance)

    low, high = found.interval(0.95, "score")
    assert statistic(low) == pytest.approx(1.959964, abs=1e-3)
    assert statistic(high) == pytest.approx(-1.959964, abs=1e-3)


def test_bootstrap_percentiles_are_those_of_draws():
    found = rates.true_error(apparent=0.2, mislabeling=0.06, n=150, n_checked=50, n_classes=4)
    rng = np.random.default_rng(1)
    a, eps = rng.beta(30.5, 120.5, 1_000_000), rng.beta(3.5, 47.5, 1_000_000)
    drawn = (a - eps) / (1 - 4 / 3 * eps)
    assert found.interval(0.9, "bootstrap") == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=5e-4)
    assert found.prob_negative == pytest.approx((drawn < 0).mean(), abs=5e-4)
    posterior = found.estimate()
    kept = drawn[(drawn >= 0) & (drawn <= 1)]
    assert posterior.mean == pytest.approx(kept.mean(), abs=3e-4)
    assert posterior.std == pytest.approx(kept.std(), rel=0.01)


@pytest.mark.parametrize("method", ["score", "fieller", "delta", "bootstrap"])
def test_counts_of_zero_leave_uncertainty(method):
    none = rates.true_error(apparent=0.0, mislabeling=0.0, n=100, n_checked=50)
    low, high = none.interval(method=method)
    assert low == 0
    assert 0.01 < high < 0.1
    assert none.std > 0
    checked = rates.true_error(apparent=0.1, mislabeling=0.0, n=1000, n_checked=50).interval(method=method)
    known = rates.true_error(apparent=0.1, mislabeling=0.0, n=1000).interval(method=method)
    assert checked[0] < known[0] - 0.005


def test_a_negative_estimate_is_reported_with_its_truncation_and_its_probability():
    found = rates.true_error(apparent=0.03, mislabeling=0.05, n=200)
    assert found.raw == pytest.approx(-0.02 / 0.9)
    assert found.value == found.mean == float(found) == 0
    assert found.truncated is True
    assert found.prob_negative == pytest.approx(stats.beta.cdf(0.05, 6.5, 194.5))
    assert found.interval()[0] == 0 < found.interval()[1]
    assert "raw -0.0222, truncated" in repr(found)
    assert len(found.notes) == 1
    hopeless = rates.true_error(apparent=0.01, mislabeling=0.05, n=5000, n_checked=5000)
    assert hopeless.prob_negative > 0.999
    assert hopeless.interval() == (0.0, 0.0)
    assert "err together" in hopeless.notes[1]
    assert not rates.true_error(apparent=0.12, mislabeling=0.05, n=1000).notes


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"apparent": 1.2}, "apparent must be a rate"),
        ({"apparent": "a"}, "apparent must be a rate"),
        ({"apparent": float("nan")}, "apparent must be a rate"),
        ({"mislabeling": -0.1}, "mislabeling must be a rate"),
        ({"n": 0}, "n must be at least 1"),
        ({"n_checked": 0}, "n_checked must be at least 1"),
        ({"n_classes": 1}, "`n_classes` must be an integer of at least 2"),
    ],
    ids=["above-one", "text", "nan", "negative", "no-items", "none-checked", "one-class"],
)
def test_what_makes_no_sense_is_refused(given, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        rates.true_error(**{"apparent": 0.1, "mislabeling": 0.05, **given})


def test_options_are_checked():
    found = rates.true_error(apparent=0.1, mislabeling=0.05, n=10)
    with pytest.raises(InvalidParameter, match="`method` must be one of"):
        found.interval(method="wald")
    with pytest.raises(InvalidParameter, match="level"):
        found.interval(95)
    many = rates.true_error(apparent=[0.1, 0.2], mislabeling=0.05, n=10)
    with pytest.raises(InvalidParameter, match="for one rate"):
        many.estimate()
    with pytest.raises(TypeError, match="not a number"):
        float(many)
    assert repr(many) == "TrueError(2 rates, 0 truncated)"


@pytest.mark.parametrize(("wrong", "n"), [(0, 100), (0, 5), (2, 100), (50, 50), (0, 100_000), (80_000, 1_000_000)])
def test_the_posterior_with_perfect_labels_is_jeffreys(wrong, n):
    """To one in a hundred and better, also where its density has no bound."""
    exact = stats.beta(wrong + 0.5, n - wrong + 0.5)
    found = rates.true_error(apparent=wrong / n, mislabeling=0.0, n=n).estimate()
    assert found.mean == pytest.approx(exact.mean(), rel=5e-3)
    assert found.std == pytest.approx(exact.std(), rel=5e-3)
    for share in (0.025, 0.2, 0.5, 0.8, 0.975):
        assert found.ppf(share) == pytest.approx(exact.ppf(share), rel=0.01)
        assert found.cdf(exact.ppf(share)) == pytest.approx(share, rel=0.01)
    assert found.interval(0.95, kind="equal") == pytest.approx(exact.interval(0.95), rel=0.01)


@pytest.mark.parametrize(("apparent", "mislabeling", "n_checked"), [(0, 0.1, None), (0, 0, 50), (0.12, 0.05, 100)])
def test_the_posterior_is_that_of_draws_within_the_bounds(apparent, mislabeling, n_checked):
    """Also where most draws are negative and left out, and where both counts are zero."""
    rng, n = np.random.default_rng(0), 100
    if n_checked is None:  # so rare that the upper tail of A is drawn by its quantiles
        least = stats.beta.sf(mislabeling, 0.5, n + 0.5)
        a, eps = stats.beta.isf(least * rng.random(400_000), 0.5, n + 0.5), mislabeling
    else:
        a = rng.beta(n * apparent + 0.5, n * (1 - apparent) + 0.5, 400_000)
        eps = rng.beta(n_checked * mislabeling + 0.5, n_checked * (1 - mislabeling) + 0.5, 400_000)
    e = (a - eps) / (1 - 2 * eps)
    e = e[(e >= 0) & (e <= 1)]
    found = rates.true_error(apparent=apparent, mislabeling=mislabeling, n=n, n_checked=n_checked).estimate()
    assert found.mean == pytest.approx(e.mean(), rel=0.01)
    assert found.interval(0.95, kind="equal")[1] == pytest.approx(np.quantile(e, 0.975), rel=0.02)
    np.testing.assert_allclose(found.cdf(np.quantile(e, [0.1, 0.5, 0.9])), [0.1, 0.5, 0.9], atol=0.005)
