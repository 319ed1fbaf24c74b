"""Bounds hold for every joint distribution of truth, label and prediction, and are reached."""

import numpy as np
import pytest

from trueup import rates
from trueup.exceptions import InvalidParameter


def drawn_tables(n_classes, n_tables, seed):
    """Joint distributions of (right or which wrong class) of label and prediction, the truth being class 0."""
    rng = np.random.default_rng(seed)
    concentration = rng.choice([0.05, 0.3, 1.0], size=(n_tables, 1))
    return rng.dirichlet(np.ones(n_classes**2), n_tables) ** (1 / concentration)


def measured(tables, n_classes):
    """e, ε, A and P(both err) of each table, rows the label."""
    p = (tables / tables.sum(axis=1, keepdims=True)).reshape(-1, n_classes, n_classes)
    error, mislabeling = 1 - p[:, :, 0].sum(axis=1), 1 - p[:, 0].sum(axis=1)
    apparent = 1 - np.trace(p, axis1=1, axis2=2)
    return error, mislabeling, apparent, p[:, 1:, 1:].sum(axis=(1, 2))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_bounds_hold_whatever_the_dependence(n_classes):
    error, mislabeling, apparent, _ = measured(drawn_tables(n_classes, 20_000, 0), n_classes)
    low, high = rates.error_bounds(apparent=apparent, mislabeling=mislabeling, n_classes=n_classes, dependence="any")
    assert (low <= error + 1e-9).all()
    assert (error <= high + 1e-9).all()
    # The bounds are reached by some of them, up to what 20,000 tables come near to.
    assert (error - low).min() < 0.01
    assert (high - error).min() < 0.01


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_bounds_hold_where_errors_come_together(n_classes):
    error, mislabeling, apparent, both = measured(drawn_tables(n_classes, 40_000, 1), n_classes)
    together = (both >= error * mislabeling) & (mislabeling < 1 - 1 / n_classes)
    together &= apparent <= 1 - mislabeling
    assert together.sum() > 500
    given = {"apparent": apparent[together], "mislabeling": mislabeling[together], "n_classes": n_classes}
    low, high = rates.error_bounds(**given)
    assert (low <= error[together] + 1e-9).all()
    assert (error[together] <= high + 1e-9).all()
    assert (low >= rates.error_bounds(**given, dependence="any")[0]).all()
    # The assumption matters: where errors avoid each other the lower bound fails now and then.
    apart = (both < error * mislabeling) & (mislabeling < 1 - 1 / n_classes) & (apparent <= 1 - mislabeling)
    low, _ = rates.error_bounds(apparent=apparent[apart], mislabeling=mislabeling[apart], n_classes=n_classes)
    assert (low > error[apart] + 1e-6).any()


def test_bounds_are_the_papers():
    low, high = rates.error_bounds(apparent=0.12, mislabeling=0.05)
    assert (low, high) == pytest.approx((0.07 / 0.9, 0.17))
    assert low == pytest.approx(rates.true_error(apparent=0.12, mislabeling=0.05).value)
    assert rates.error_bounds(apparent=0.12, mislabeling=0.05, dependence="any") == pytest.approx((0.07, 0.17))
    assert rates.error_bounds(apparent=0.12, mislabeling=0.0) == pytest.approx((0.12, 0.12))
    assert rates.error_bounds(apparent=0.0, mislabeling=0.05) == pytest.approx((0.05, 0.05))


def test_impossible_rates_are_refused():
    with pytest.raises(InvalidParameter, match="cannot be identified"):
        rates.error_bounds(apparent=0.1, mislabeling=0.5)
    with pytest.raises(InvalidParameter, match="must not exceed 1 − mislabeling"):
        rates.error_bounds(apparent=0.97, mislabeling=0.1)
    with pytest.raises(InvalidParameter, match="did you mean 'non-negative'"):
        rates.error_bounds(apparent=0.1, mislabeling=0.1, dependence="nonnegative")
    assert rates.error_bounds(apparent=0.1, mislabeling=0.5, dependence="any") == pytest.approx((0.4, 0.6))
