"""The geometric median that the labelers' pairs and matrices are summed up by."""

import numpy as np
from scipy import optimize

from trueup.estimators.published.practice import geometric_median


class TestGeometricMedian:
    def test_against_an_optimiser(self):
        points = np.random.default_rng(0).normal(size=(40, 3))
        median = geometric_median(points)
        best = optimize.minimize(
            lambda c: np.linalg.norm(points - c, axis=1).sum(),
            points.mean(axis=0),
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-10},
        )
        np.testing.assert_allclose(median, best.x, atol=1e-5)

    def test_median_on_a_point_and_start_on_a_point(self):
        star = np.array([[0.0, 0.0], [1, 0], [-1, 0], [0, 1], [0, -1]])
        np.testing.assert_array_equal(geometric_median(star), [0, 0])
        heavy = geometric_median(np.array([[0.0, 0.0]] * 5 + [[1, 0], [0, 1]]))
        np.testing.assert_array_equal(heavy, [0, 0])
        # The mean is a data point but not the median.
        points = np.array([[0.0, 0.0], [1, 1], [-3, 1], [1, -3], [1, 1]])
        np.testing.assert_array_equal(points.mean(axis=0), [0, 0])
        cost = [np.linalg.norm(points - c, axis=1).sum() for c in (geometric_median(points), np.zeros(2))]
        assert cost[0] < cost[1]
