"""Joint distributions, and regions that hold what they say."""

import numpy as np
import pytest
from scipy import stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import JointEstimate


class TestFromDraws:
    def test_correlated_draws(self):
        rng = np.random.default_rng(1)
        cov = np.array([[1, 0.95], [0.95, 1]]) * 0.03**2
        draws = rng.multivariate_normal([0.6, 0.5], cov, 20_000)
        joint = JointEstimate.from_draws(*draws.T, names=("recall", "f1"))
        fresh = rng.multivariate_normal([0.6, 0.5], cov, 20_000)
        for level in (0.5, 0.9):
            region = joint.region(level)
            assert region.contains(*fresh.T).mean() == pytest.approx(level, abs=0.03)
            exact = -2 * np.log(1 - level) * np.pi * np.sqrt(np.linalg.det(cov))
            assert region.area == pytest.approx(exact, rel=0.12)
        np.testing.assert_allclose(joint.means, draws.mean(axis=0))
        np.testing.assert_allclose(joint.cov, np.cov(draws.T, bias=True))
        np.testing.assert_allclose(joint.mode, (0.6, 0.5), atol=0.02)
        assert repr(joint) == "JointEstimate(recall: 0.6, f1: 0.5)"
        assert repr(joint.region(0.9)).startswith("HighestDensityRegion(level=0.9")

    def test_undefined_and_constant_draws(self):
        x = np.array([0.5, 0.5, np.nan, 0.5])
        joint = JointEstimate.from_draws(x, [0.2, 0.3, 0.4, np.nan])
        assert joint.undefined == pytest.approx(0.5)
        assert joint.means == (0.5, pytest.approx(0.25))
        assert joint.cov[0, 0] == 0
        constant = JointEstimate.from_draws(np.ones(10), np.ones(10))
        assert bool(constant.region(0.9).contains(1.0, 1.0))
        assert not bool(constant.region(0.9).contains(0.9, 1.0))

    def test_bad_input(self):
        with pytest.raises(InvalidParameter, match="defined for some draws"):
            JointEstimate.from_draws([np.nan], [0.5])
        with pytest.raises(InvalidParameter, match="within the bounds"):
            JointEstimate.from_draws([-0.5, 0.1], [0.5, 0.2])
        with pytest.raises(InvalidParameter, match="weights must be 2 numbers"):
            JointEstimate.from_draws([0.5, 0.1], [0.5, 0.2], weights=[1.0])
        with pytest.raises(InvalidParameter, match="`level` must be"):
            JointEstimate.from_draws([0.5, 0.1], [0.5, 0.2]).region(2)


def test_from_density_has_the_moments_and_regions_of_a_normal_law():
    rng = np.random.default_rng(0)
    mean, cov = np.array([0.6, 0.4]), np.array([[0.0009, 0.0004], [0.0004, 0.0016]])
    x, y = (np.linspace(m - 0.3, m + 0.3, 301) for m in mean)
    law = stats.multivariate_normal(mean, cov)
    joint = JointEstimate.from_density(x, y, 7 * law.pdf(np.dstack(np.meshgrid(x, y, indexing="ij"))))
    np.testing.assert_allclose(joint.means, mean, atol=1e-6)
    np.testing.assert_allclose(joint.cov, cov, rtol=1e-3)
    for level in (0.5, 0.95):
        assert joint.region(level).contains(*law.rvs(60_000, rng).T).mean() == pytest.approx(level, abs=0.01)


class TestRegion:
    joint = JointEstimate.from_density(
        np.linspace(0, 1, 101), np.linspace(0, 1, 101), np.ones((101, 101)), names=("recall", "precision")
    )

    def test_flat_density(self):
        region = self.joint.region(0.25)
        assert region.contains([0.5, 2.0, np.nan], [0.5, 0.5, 0.5]).tolist() == [True, False, False]
        assert region.mask.shape == (101, 101)

    def test_two_separate_parts(self):
        x = np.linspace(0, 1, 201)
        bump = np.exp(-0.5 * ((x - 0.2) / 0.03) ** 2) + np.exp(-0.5 * ((x - 0.8) / 0.03) ** 2)
        region = JointEstimate.from_density(x, x, np.outer(bump, np.exp(-0.5 * ((x - 0.5) / 0.03) ** 2))).region(0.9)
        assert region.contains([0.2, 0.5, 0.8], 0.5).tolist() == [True, False, True]
        pytest.importorskip("matplotlib")
        polygons = region.polygons()
        assert len(polygons) == 2
        area = sum(abs(np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1])) / 2 for p in polygons)
        assert area == pytest.approx(region.area, rel=0.05)

    def test_bad_grids(self):
        with pytest.raises(InvalidParameter, match="x must be at least 2 increasing"):
            JointEstimate.from_density([0, 0], [0, 1], np.ones((2, 2)))
        with pytest.raises(InvalidParameter, match="density must have the shape"):
            JointEstimate.from_density([0, 1], [0, 1], np.ones((2, 3)))
        with pytest.raises(InvalidParameter, match="somewhere positive"):
            JointEstimate.from_density([0, 1], [0, 1], np.zeros((2, 2)))
        with pytest.raises(InvalidParameter, match="axis must be 0 or 1"):
            self.joint.marginal(2)
