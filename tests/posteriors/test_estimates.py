"""What every Estimate promises, and what each kind of distribution adds."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid

from trueup.exceptions import InvalidParameter
from trueup.posteriors import (
    ContinuousEstimate,
    DiscreteEstimate,
    DrawnEstimate,
    Estimate,
    GridEstimate,
    PointEstimate,
    normal_estimate,
)

GRID = np.linspace(0, 1, 4001)


def _beta_like() -> dict[str, Estimate]:
    """The same Beta(18, 5) in every shape an answer comes in."""
    beta = stats.beta(18, 5)
    rng = np.random.default_rng(3)
    cells = np.linspace(0, 1, 2001)
    middle = (cells[1:] + cells[:-1]) / 2
    return {
        "drawn": DrawnEstimate(beta.rvs(200_000, random_state=rng), name="m"),
        "weighted": DrawnEstimate((u := rng.random(400_000)), weights=beta.pdf(u), name="m"),
        "discrete": DiscreteEstimate(middle, np.diff(beta.cdf(cells)), name="m"),
        "continuous": ContinuousEstimate(beta, name="m"),
        "grid": GridEstimate(GRID, beta.pdf(GRID), name="m"),
    }


SAME = _beta_like()


@pytest.fixture(params=list(SAME))
def same(request: pytest.FixtureRequest) -> Estimate:
    return SAME[request.param]


class TestEveryKindAgreesWithBeta:
    beta = stats.beta(18, 5)

    def test_moments(self, same):
        assert same.mean == pytest.approx(self.beta.mean(), abs=2e-3)
        assert same.std == pytest.approx(self.beta.std(), rel=0.01)
        assert same.median == pytest.approx(self.beta.median(), abs=2e-3)
        assert same.mode == pytest.approx(17 / 21, abs=0.02)

    def test_cdf_ppf_probabilities(self, same):
        x = np.array([0.5, 0.7, 0.8, 0.9])
        np.testing.assert_allclose(same.cdf(x), self.beta.cdf(x), atol=5e-3)
        np.testing.assert_allclose(same.ppf([0.05, 0.5, 0.95]), self.beta.ppf([0.05, 0.5, 0.95]), atol=3e-3)
        assert same.prob_above(0.8) == pytest.approx(self.beta.sf(0.8), abs=5e-3)
        assert same.prob_below(0.8) == pytest.approx(self.beta.cdf(0.8), abs=5e-3)
        assert same.prob_below(-1) == 0
        assert same.prob_above(2) == 0

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
    def test_intervals(self, same, level):
        low, high = same.interval(level)
        q_low, q_high = same.interval(level, kind="equal")
        assert self.beta.cdf(high) - self.beta.cdf(low) == pytest.approx(level, abs=0.01)
        assert high - low <= q_high - q_low + 1e-9
        expected = self.beta.ppf([(1 - level) / 2, (1 + level) / 2])
        np.testing.assert_allclose((q_low, q_high), expected, atol=3e-3)
        # At the ends of a highest-density interval the density is the same.
        assert self.beta.pdf(low) == pytest.approx(self.beta.pdf(high), abs=0.75)

    def test_draws_are_seeded_and_distributed(self, same):
        a, b = same.draws(20_000, random_state=1), same.draws(20_000, random_state=1)
        np.testing.assert_array_equal(a, b)
        assert a.shape == (20_000,)
        assert stats.kstest(a, self.beta.cdf).statistic < 0.02
        assert same.draws(0, random_state=1).shape == (0,)

    def test_dict_is_json(self, same):
        summary = json.loads(json.dumps(same.to_dict(0.9)))
        assert summary["name"] == "m"
        assert summary["level"] == 0.9
        assert (summary["low"], summary["high"]) == same.interval(0.9)

    def test_is_frozen_and_travels(self, same):
        with pytest.raises(AttributeError, match="does not change"):
            same.name = "x"
        with pytest.raises(AttributeError, match="does not change"):
            del same.name
        for twin in (copy.copy(same), pickle.loads(pickle.dumps(same))):
            assert twin.interval() == same.interval()

    def test_scalars_in_scalars_out(self, same):
        assert type(same.cdf(0.5)) is type(same.ppf(0.5)) is type(same.pdf(0.5)) is type(same.mean) is float

    def test_bad_input_is_one_sentence(self, same):
        for level in (0, 1, 95, math.nan, "0.9"):
            with pytest.raises(InvalidParameter, match="`level` must be"):
                same.interval(level)
        with pytest.raises(InvalidParameter, match="did you mean 'hdi'"):
            same.interval(0.9, kind="hdii")
        with pytest.raises(InvalidParameter, match="q must lie in"):
            same.ppf([0.5, 1.1])
        with pytest.raises(InvalidParameter, match="`n` must be"):
            same.draws(-1)
        with pytest.raises(InvalidParameter, match="random_state"):
            same.draws(3, random_state="x")


class TestDrawn:
    def test_undefined_draws_are_conditioned_away(self):
        e = DrawnEstimate([0.2, math.nan, 0.4, math.nan], weights=[1, 1, 1, 5])
        assert e.mean == pytest.approx(0.3)
        assert e.undefined == pytest.approx(6 / 8)
        assert "undefined for 0.75" in repr(e)
        assert DrawnEstimate([0.2, math.nan], undefined=0.5).undefined == pytest.approx(0.75)

    def test_nothing_defined_is_nan_not_a_crash(self):
        e = DrawnEstimate([math.nan, math.nan], name="recall")
        assert repr(e) == "Estimate(recall: undefined)"
        assert e.undefined == 1
        numbers = [e.mean, e.median, e.mode, e.std, *e.interval(), e.prob_above(0.5), e.prob_below(0.5), e.pdf(0.5)]
        assert np.isnan(numbers).all()
        assert np.isnan(e.draws(3, random_state=0)).all()
        assert e.to_dict()["mean"] is None
        json.dumps(e.to_dict(), allow_nan=False)

    @pytest.mark.parametrize("c", [0.0, 0.37, 1.0])
    def test_constant_draws(self, c):
        e = DrawnEstimate(np.full(1000, c))
        assert (e.mean, e.median, e.mode, e.std) == (c, c, c, 0.0)
        assert e.interval() == e.interval(kind="equal") == (c, c)
        assert e.prob_above(c) == e.prob_below(c) == 0
        assert e.pdf(c) == math.inf
        assert "0.000" in repr(e) or f"{c:.3f}" in repr(e)

    @pytest.mark.parametrize(
        ("draws", "options", "sentence"),
        [
            ([0.1, 0.2], {"weights": [1, 1, 1]}, "one weight for each value, got 2 values, 3 weights"),
            ([0.1, 0.2], {"weights": [1, -1]}, "not negative"),
            ([], {}, "some positive weight"),
            ([0.1, -0.2], {}, r"within the bounds \(0, 1\), got \[-0.2\]; pass bounds"),
            ([0.1, math.inf], {"bounds": (-math.inf, math.inf)}, "infinity"),
            ([0.1], {"bounds": (1, 0)}, "bounds must be a pair"),
        ],
    )
    def test_weights_and_draws_must_fit(self, draws, options, sentence):
        with pytest.raises(InvalidParameter, match=sentence):
            DrawnEstimate(draws, **options)

    def test_the_mean_of_draws_that_are_nearly_all_equal_is_in_their_interval(self):
        assert DrawnEstimate([0.8] * 97 + [0.79, 0.79, 0.5]).interval(0.95) == (0.79, 0.8)
        assert DrawnEstimate([0.8] * 97 + [0.81, 0.81, 0.9]).interval(0.95) == (0.8, 0.81)
        assert DrawnEstimate([0.8] * 100).interval(0.95) == (0.8, 0.8)
        assert DrawnEstimate([0.8] * 96 + [0.7, 0.7, 0.9, 0.9]).interval(0.95) == (0.8, 0.8), "the mean itself"


class TestDiscrete:
    @given(
        st.lists(st.floats(0.01, 1), min_size=1, max_size=30), st.floats(0.05, 0.99), st.sampled_from(["hdi", "equal"])
    )
    @settings(max_examples=200, deadline=None)
    def test_intervals_hold_at_least_their_level(self, mass, level, kind):
        pmf = np.array(mass) / np.sum(mass)
        e = DiscreteEstimate(np.arange(len(pmf)) / len(pmf), pmf)
        low, high = e.interval(level, kind=kind)
        inside = e.pmf[(e.support >= low) & (e.support <= high)].sum()
        assert inside >= level - 1e-9
        if kind == "hdi":
            shortest = min(
                e.support[j] - e.support[i]
                for i in range(len(pmf))
                for j in range(i, len(pmf))
                if e.pmf[i : j + 1].sum() >= level - 1e-12
                # Where one value has almost all of the mass, an interval has the mean in it as well.
                and (e.pmf.max() <= 0.9 or level <= 1 - 0.9 or e.support[i] - 1e-12 <= e.mean <= e.support[j] + 1e-12)
            )
            assert high - low == pytest.approx(shortest, abs=1e-9)

    def test_equal_values_are_merged_and_nan_is_undefined(self):
        e = DiscreteEstimate([0.5, 1.0, math.nan, 0.5], [0.2, 0.2, 0.2, 0.4])
        np.testing.assert_allclose(e.support, [0.5, 1.0])
        np.testing.assert_allclose(e.pmf, [0.75, 0.25])
        assert e.undefined == pytest.approx(0.2)
        assert e.mode == 0.5


class TestContinuous:
    @pytest.mark.parametrize(("mean", "sd"), [(0.5, 0.1), (0.99, 0.05), (1.3, 0.05), (-0.4, 0.02), (0.5, 3.0)])
    def test_truncated_normal_moments(self, mean, sd):
        e = normal_estimate(mean, sd)
        exact = stats.truncnorm(-mean / sd, (1 - mean) / sd, mean, sd)
        assert e.mean == pytest.approx(exact.mean(), abs=1e-9)
        assert e.std == pytest.approx(exact.std(), rel=1e-6)
        assert 0 <= e.interval()[0] < e.interval()[1] <= 1
        # The same by cutting an untruncated normal numerically, where it has mass inside.
        if -3 < (mean - 0.5) / sd < 3:
            cut = ContinuousEstimate(stats.norm(mean, sd))
            assert cut.mean == pytest.approx(exact.mean(), abs=1e-9)
            assert cut.std == pytest.approx(exact.std(), rel=1e-7)
            assert cut.cdf(0.7) == pytest.approx(float(exact.cdf(0.7)), abs=1e-12)

    def test_upper_tail_keeps_its_digits(self):
        cut = ContinuousEstimate(stats.norm(-0.9, 0.1))
        exact = stats.truncnorm(9, 19, -0.9, 0.1)
        assert cut.mean == pytest.approx(exact.mean(), rel=1e-8)
        np.testing.assert_allclose(cut.ppf([0.1, 0.9]), exact.ppf([0.1, 0.9]), rtol=1e-8)


class TestGrid:
    def test_broken_line_is_consistent(self):
        rng = np.random.default_rng(0)
        x = np.sort(rng.random(30))
        e = GridEstimate(x, rng.random(30))
        q = np.linspace(0, 1, 101)
        np.testing.assert_allclose(e.cdf(e.ppf(q)), q, atol=1e-12)
        fine = np.unique(np.concatenate([np.linspace(x[0], x[-1], 200_001), x]))
        assert trapezoid(e.pdf(fine), fine) == pytest.approx(1, abs=1e-9)
        assert e.mean == pytest.approx(trapezoid(fine * e.pdf(fine), fine), abs=1e-8)
        assert e.std**2 == pytest.approx(trapezoid((fine - e.mean) ** 2 * e.pdf(fine), fine), abs=1e-8)


@pytest.mark.parametrize(
    ("std", "text"),
    [
        (0.014, "Estimate(accuracy: 0.871, 95% interval 0.844 to 0.898)"),
        (0.0014, "Estimate(accuracy: 0.8710, 95% interval 0.8683 to 0.8737)"),
        (0.14, "Estimate(accuracy: 0.83, 95% interval 0.63 to 1.00)"),
    ],
)
def test_rounding_follows_the_standard_deviation(std, text):
    assert repr(normal_estimate(0.871, std, name="accuracy")) == text


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40), st.floats(0.1, 0.99))
@settings(max_examples=150, deadline=None)
def test_drawn_invariants(values, level):
    e = DrawnEstimate(values)
    low, high = e.interval(level)
    assert min(values) <= low <= high <= max(values)
    assert np.mean([low <= v <= high for v in values]) >= level - 1e-9
    assert e.prob_above(0.5) + e.prob_below(0.5) <= 1 + 1e-12
    mirrored = DrawnEstimate(1 - np.array(values))
    assert mirrored.mean == pytest.approx(1 - e.mean, abs=1e-9)
    m_low, m_high = mirrored.interval(level)
    assert m_high - m_low == pytest.approx(high - low, abs=1e-9)


class TestPoint:
    def test_has_a_value_and_nothing_else(self):
        e = PointEstimate(0.871, name="accuracy")
        assert e.mean == e.median == e.mode == 0.871
        unknown = [e.std, *e.interval(), *e.interval(kind="equal"), e.prob_above(0.5), e.prob_below(0.5)]
        assert np.isnan([*unknown, e.pdf(0.871), e.cdf(0.871), e.ppf(0.5), *e.draws(3)]).all()
        assert repr(e) == "Estimate(accuracy: 0.871, no interval)"
        summary = json.loads(json.dumps(e.to_dict(), allow_nan=False))
        assert (summary["mean"], summary["low"]) == (0.871, None)
