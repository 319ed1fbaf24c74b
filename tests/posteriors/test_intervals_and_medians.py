"""Textbook intervals and the geometric median."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import geometric_median, jeffreys, jeffreys_estimate, wald, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (480, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_is_scipys(k, n, level):
    expected = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    np.testing.assert_allclose(wilson(k, n, level), (expected.low, expected.high), atol=1e-12)


def test_edges():
    assert wilson(0, 0) == (0.0, 1.0)
    assert np.isnan(wald(0, 0)).all()
    assert wald(0, 5) == (0.0, 0.0)
    assert jeffreys(0, 5)[0] == 0
    assert jeffreys(5, 5)[1] == 1
    assert jeffreys_estimate(7, 9).mean == pytest.approx(7.5 / 10)
    for function in (wald, wilson, jeffreys):
        with pytest.raises(InvalidParameter, match="successes must not exceed n, got 5 of 4"):
            function(5, 4)
        with pytest.raises(InvalidParameter, match="level must be"):
            function(1, 4, 95)


def test_coverage_over_all_outcomes():
    """Exact coverage, averaged over p; Wald is the one that fails."""
    n, k = 30, np.arange(31)
    p = np.linspace(0.02, 0.98, 97)
    mass = stats.binom.pmf(k[None], n, p[:, None])
    covered = {}
    for function in (wald, wilson, jeffreys):
        ends = np.array([function(int(s), n) for s in k])
        inside = (ends[:, 0] <= p[:, None]) & (p[:, None] <= ends[:, 1])
        covered[function.__name__] = float((mass * inside).sum(axis=1).mean())
    assert covered["wilson"] == pytest.approx(0.95, abs=0.01)
    assert covered["jeffreys"] == pytest.approx(0.95, abs=0.01)
    assert covered["wald"] < 0.93


class TestGeometricMedian:
    def test_against_an_optimiser(self):
        points = np.random.default_rng(0).normal(size=(40, 3))
        found = geometric_median(points)
        best = optimize.minimize(
            lambda c: np.linalg.norm(points - c, axis=1).sum(),
            points.mean(axis=0),
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-10},
        )
        np.testing.assert_allclose(found, best.x, atol=1e-5)

    def test_median_on_a_point_and_start_on_a_point(self):
        star = np.array([[0.0, 0.0], [1, 0], [-1, 0], [0, 1], [0, -1]])
        np.testing.assert_array_equal(geometric_median(star), [0, 0])
        heavy = geometric_median([[0, 0], [1, 0], [0, 1]], weights=[5, 1, 1])
        np.testing.assert_array_equal(heavy, [0, 0])
        # The mean is a data point but not the median.
        points = np.array([[0.0, 0.0], [1, 1], [-3, 1], [1, -3], [1, 1]])
        np.testing.assert_array_equal(points.mean(axis=0), [0, 0])
        cost = [np.linalg.norm(points - c, axis=1).sum() for c in (geometric_median(points), np.zeros(2))]
        assert cost[0] < cost[1]

    def test_line_and_single_points(self):
        assert geometric_median([[1.0], [2.0], [10.0]]).tolist() == [2.0]
        assert geometric_median([[1.0], [2.0]]).tolist() == [1.5]
        assert geometric_median([[0.3, 0.4]]).tolist() == [0.3, 0.4]
        assert geometric_median([[0.3, 0.4]] * 5).tolist() == [0.3, 0.4]
        np.testing.assert_allclose(geometric_median([[0.0, 0], [1, 1]], weights=[1, 3]), [1, 1])

    def test_outliers_do_not_move_it(self):
        points = np.random.default_rng(1).normal(size=(101, 2)) * 0.01
        points[:20] += 1e6
        assert np.linalg.norm(geometric_median(points)) < 0.02

    @given(st.integers(2, 12), st.integers(0, 10_000))
    @settings(max_examples=40, deadline=None)
    def test_no_data_point_is_better(self, n, seed):
        points = np.random.default_rng(seed).normal(size=(n, 2))
        cost = np.linalg.norm(points[:, None] - points[None], axis=2).sum(axis=1).min()
        assert np.linalg.norm(points - geometric_median(points), axis=1).sum() <= cost + 1e-6

    def test_bad_input(self):
        with pytest.raises(InvalidParameter, match=r"shape \(n, d\), got shape \(2,\)"):
            geometric_median([1.0, 2.0])
        with pytest.raises(InvalidParameter, match="points must be finite"):
            geometric_median([[math.nan, 1.0]])
        with pytest.raises(InvalidParameter, match="2 positive numbers"):
            geometric_median([[0, 1], [1, 0]], weights=[1, 0])
