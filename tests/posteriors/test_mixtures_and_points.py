"""Mixtures of distributions, and values without one."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from trueup.exceptions import InvalidParameter
from trueup.posteriors import (
    DiscreteEstimate,
    DrawnEstimate,
    MixtureEstimate,
    PointEstimate,
    beta_estimate,
    mixture_estimate,
    normal_estimate,
)


class TestMixture:
    def test_two_peaks(self):
        e = MixtureEstimate([normal_estimate(0.2, 0.01), normal_estimate(0.8, 0.02)], [3, 1], name="m")
        assert e.mean == pytest.approx(0.35)
        assert e.std == pytest.approx(math.sqrt(0.75 * (0.01**2 + 0.15**2) + 0.25 * (0.02**2 + 0.45**2)))
        assert e.mode == pytest.approx(0.2, abs=1e-4)
        assert e.prob_above(0.5) == pytest.approx(0.25)
        np.testing.assert_allclose(e.cdf(e.ppf([0.1, 0.5, 0.9])), [0.1, 0.5, 0.9], atol=1e-9)
        assert e.interval(0.7)[1] < 0.3

    def test_discrete_components_collapse(self):
        parts = [DiscreteEstimate(np.arange(11) / 10, stats.binom(10, p).pmf(np.arange(11))) for p in (0.2, 0.6)]
        e = mixture_estimate(parts, [0.25, 0.75], name="accuracy")
        assert isinstance(e, DiscreteEstimate)
        expected = 0.25 * parts[0].pmf + 0.75 * parts[1].pmf
        np.testing.assert_allclose(e.pmf, expected, atol=1e-15)
        slow = MixtureEstimate(parts, [0.25, 0.75])
        assert slow.mean == pytest.approx(e.mean)
        assert slow.std == pytest.approx(e.std)
        np.testing.assert_allclose(slow.ppf([0.05, 0.5, 0.95]), e.ppf([0.05, 0.5, 0.95]), atol=1e-9)
        assert slow.prob_below(0.5) == pytest.approx(e.prob_below(0.5))
        np.testing.assert_allclose(slow.interval(0.9, kind="equal"), e.interval(0.9, kind="equal"), atol=1e-9)

    @pytest.mark.parametrize("build", [mixture_estimate, MixtureEstimate])
    def test_undefined_mass_reweights(self, build):
        never = DiscreteEstimate([math.nan], [1.0])
        half = DiscreteEstimate([0.2, math.nan], [0.5, 0.5])
        full = DiscreteEstimate([0.8], [1.0])
        e = build([never, half, full], [1, 1, 1])
        # Given that the metric is defined, the half-defined component has half the weight of the full one.
        assert e.mean == pytest.approx((0.5 * 0.2 + 0.8) / 1.5)
        assert e.undefined == pytest.approx(0.5)
        assert math.isnan(build([never]).mean)
        assert np.isnan(build([never]).interval()).all()
        assert np.isnan(build([never]).draws(2, random_state=0)).all()

    def test_mixture_estimate_falls_back(self):
        e = mixture_estimate([DiscreteEstimate([0.5], [1.0]), beta_estimate(2, 2)])
        assert isinstance(e, MixtureEstimate)
        assert e.prob_above(0.5) == pytest.approx(0.25)
        assert e.prob_below(0.5) == pytest.approx(0.25)
        assert e.ppf(0.5) == pytest.approx(0.5)

    def test_drawn_components(self):
        rng = np.random.default_rng(0)
        a, b = rng.beta(8, 3, 1000), rng.beta(3, 8, 1000)
        e = MixtureEstimate([DrawnEstimate(a), DrawnEstimate(b)])
        pooled = DrawnEstimate(np.concatenate([a, b]))
        assert e.mean == pytest.approx(pooled.mean)
        for kind in ("hdi", "equal"):
            low, high = e.interval(0.9, kind=kind)
            assert high - low == pytest.approx(np.subtract(*pooled.interval(0.9, kind=kind)[::-1]), abs=0.01)
            assert pooled.cdf(high) - pooled.cdf(low - 1e-9) >= 0.9 - 1e-9

    def test_unbounded_components(self):
        wide = (-math.inf, math.inf)
        e = MixtureEstimate([normal_estimate(0, 1, bounds=wide), normal_estimate(4, 1, bounds=wide)])
        assert e.median == pytest.approx(2, abs=1e-9)
        assert e.ppf([0.0, 1.0]).tolist() == [-math.inf, math.inf]
        low, high = e.interval()
        assert (low, high) == (pytest.approx(-1.64, abs=0.1), pytest.approx(5.64, abs=0.1))

    def test_bad_input(self):
        with pytest.raises(InvalidParameter, match="no spread to mix"):
            MixtureEstimate([PointEstimate(0.3)])
        with pytest.raises(InvalidParameter, match="weights must be one for each"):
            MixtureEstimate([beta_estimate(1, 1)], [1, 2])
        with pytest.raises(InvalidParameter, match="at least one component"):
            MixtureEstimate([])
        with pytest.raises(InvalidParameter, match="somewhere positive"):
            MixtureEstimate([beta_estimate(1, 1)], [0])


class TestPoint:
    def test_has_a_value_and_nothing_else(self):
        e = PointEstimate(0.871, name="accuracy")
        assert e.mean == e.median == e.mode == 0.871
        unknown = [e.std, *e.interval(), *e.interval(kind="equal"), e.prob_above(0.5), e.prob_below(0.5)]
        assert np.isnan([*unknown, e.pdf(0.871), e.cdf(0.871), e.ppf(0.5), *e.draws(3)]).all()
        assert repr(e) == "Estimate(accuracy: 0.871, no interval)"
        summary = json.loads(json.dumps(e.to_dict(), allow_nan=False))
        assert (summary["mean"], summary["low"]) == (0.871, None)
