"""The core against formulas, enumeration and a second implementation."""

import numpy as np
import pytest
import scipy
from scipy.special import expit, logit

from trueup.core.base import SURE, clip_base
from trueup.core.checks import check_weights, design_effect
from trueup.core.features import build_features, effect_scales
from trueup.core.posterior import (
    Checks,
    Recalibration,
    ThetaDraws,
    draw_theta,
    draw_truths,
    flatten,
    latin_hypercube,
)
from trueup.core.prior import CrowdPrior, from_angle, to_angle
from trueup.core.rows import Rows

PRIOR = CrowdPrior()
# The scale in common at which levels deviate as normal numbers would.
USUAL = scipy.special.ndtri(scipy.special.gammainc(PRIOR.degrees / 2, PRIOR.degrees / 2))


def two_class_pool(n_items: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A base, what one system says, and the truth."""
    rng = np.random.default_rng(seed)
    p = clip_base(np.column_stack([1 - (p := rng.beta(0.7, 0.7, n_items)), p]))
    truth = (rng.random(n_items) < p[:, 1]).astype(np.int64)
    codes = np.where(rng.random(n_items) < 0.8, truth, 1 - truth)
    return p, codes, truth


def system_alone(base: np.ndarray, codes: np.ndarray, prior: CrowdPrior = PRIOR) -> Recalibration:
    """One system without effects of classes: the formula on paper."""
    features = build_features(base, codes[None], with_classes=False)
    return Recalibration(features.rows(base), features, prior)


def checks_of(recalibration_rows, truth: np.ndarray, at: np.ndarray) -> Checks:
    """Items drawn evenly."""
    return Checks(recalibration_rows.at(at), truth[at], np.ones(len(at)))


def shift_for(x: np.ndarray, level: float, slope: float) -> float:
    """The a with this mean of expit(a + slope (x − x̄))."""
    return scipy.optimize.brentq(lambda a: expit(a + slope * (x - x.mean())).mean() - level, -90, 90)


class TestFormula:
    """logit P(right) = a + b (x − x̄), with a such that the mean of P(right) is the level."""

    @pytest.mark.parametrize("n_items", [3, 50, 120])
    def test_probabilities_of_levels_and_slopes(self, n_items: int) -> None:
        base, codes, _ = two_class_pool(n_items)
        model = system_alone(base, codes)
        rows = build_features(base, codes[None], with_classes=False).rows(base)
        x = logit(base[np.arange(n_items), codes])
        centre = to_angle(base[np.arange(n_items), codes].mean())
        for level in (0.2, 0.5, 0.9):
            for slope in (0.4, 0.8, 1.6):
                point = np.array(
                    [(slope - PRIOR.slope) / PRIOR.slope_scale, (to_angle(level) - centre) / PRIOR.level_scale, USUAL]
                )
                beta, gamma = model.coefficients(point[None])
                shift = shift_for(x, level, slope)
                expected = expit(shift + slope * (x - x.mean()))
                got = rows.probabilities(beta, gamma)[np.arange(n_items), codes, 0]
                np.testing.assert_allclose(got, expected, atol=1e-6)

    def test_levels_of_prior_draws_are_those_of_real_sets(self) -> None:
        base, codes, _ = two_class_pool(300)
        for with_classes in (False, True):
            features = build_features(base, codes[None], with_classes=with_classes)
            rows = features.rows(base)
            theta = draw_theta(Recalibration(rows, features, PRIOR), None, rng=np.random.default_rng(1))
            levels = rows.levels(rows.named(rows.probabilities(theta.beta, theta.gamma)))[:, 0]
            student = scipy.stats.t(PRIOR.degrees).ppf([0.05, 0.5, 0.95])
            centre = to_angle(base[np.arange(300), codes].mean())
            expected = from_angle(centre + PRIOR.level_scale * student)
            np.testing.assert_allclose(np.quantile(levels, [0.05, 0.5, 0.95]), expected, atol=0.02)


def posterior_on_grid(base: np.ndarray, codes: np.ndarray, truth: np.ndarray, at: np.ndarray) -> np.ndarray:
    """P(number of right items) of the formula, by a grid of levels and slopes: the second implementation."""
    n = len(codes)
    x = logit(base[np.arange(n), codes])
    angles = np.linspace(0.01, np.pi / 2 - 0.01, 50)
    slopes = PRIOR.slope + PRIOR.slope_scale * scipy.stats.norm.ppf((np.arange(7) + 0.5) / 7)
    centre = to_angle(base[np.arange(n), codes].mean())
    right = codes == truth
    rest = np.setdiff1d(np.arange(n), at)
    total, weight = np.zeros(n + 1), 0.0
    for angle in angles:
        for slope in slopes:
            level = float(np.sin(angle) ** 2)
            shift = shift_for(x, level, slope)
            p = expit(shift + slope * (x - x.mean()))
            mass = scipy.stats.t(PRIOR.degrees).pdf((angle - centre) / PRIOR.level_scale)
            mass *= np.prod(np.where(right[at], p[at], 1 - p[at]))
            counts = np.zeros(n + 1)
            counts[int(right[at].sum())] = 1.0
            for k in rest:  # the number of right items is a sum of coins
                counts = counts * (1 - p[k]) + np.concatenate([[0.0], counts[:-1]]) * p[k]
            total += mass * counts
            weight += mass
    return total / weight


class TestEnumeration:
    @pytest.mark.parametrize(("n_items", "n_checked"), [(5, 0), (8, 2), (8, 5), (8, 8)])
    def test_small_pools(self, n_items: int, n_checked: int) -> None:
        base, codes, truth = two_class_pool(n_items, seed=3)
        at = np.random.default_rng(5).choice(n_items, n_checked, replace=False)
        features = build_features(base, codes[None], with_classes=False)
        rows = features.rows(base)
        model = Recalibration(rows, features, PRIOR)
        known = np.full(n_items, -1)
        known[at] = truth[at]
        expected = posterior_on_grid(base, codes, truth, at)
        got = np.zeros(n_items + 1)
        for seed in range(8):
            rng = np.random.default_rng(seed)
            theta = draw_theta(model, checks_of(rows, truth, at), rng=rng)
            truths, _ = draw_truths(rows, theta, known, each=4, rng=rng)
            got += np.bincount((truths == codes).sum(axis=1), minlength=n_items + 1)
        np.testing.assert_allclose(got / got.sum(), expected, atol=0.02)


class TestChecks:
    def test_more_checks_move_the_level_to_what_they_say(self) -> None:
        base, codes, truth = two_class_pool(400)
        features = build_features(base, codes[None])
        rows = features.rows(base)
        model = Recalibration(rows, features, PRIOR)
        widths = []
        for n in (0, 5, 19, 20, 200):
            rng = np.random.default_rng(0)
            at = rng.choice(400, n, replace=False)
            theta = draw_theta(model, checks_of(rows, truth, at), rng=rng)
            levels = rows.levels(rows.named(rows.probabilities(theta.beta, theta.gamma)))[:, 0]
            widths.append(np.ptp(np.quantile(levels, [0.025, 0.975])))
            assert theta.effective >= 50
        assert np.all(np.diff(widths) < 0.02)
        assert widths[-1] < 0.15 < 0.3 < widths[0]

    def test_another_look_after_few_checks_solves_for_no_coefficients(self, monkeypatch) -> None:
        base, codes, truth = two_class_pool(300)
        features = build_features(base, codes[None])
        rows = features.rows(base)
        model = Recalibration(rows, features, PRIOR)

        def levels(n_checked: int) -> np.ndarray:
            rng = np.random.default_rng(n_checked)
            at = rng.choice(300, n_checked, replace=False)
            theta = draw_theta(model, checks_of(rows, truth, at), rng=rng)
            return rows.levels(rows.named(rows.probabilities(theta.beta, theta.gamma)))[:, 0]

        weighted = levels(10)
        monkeypatch.setattr("trueup.core.posterior._MOST_KEPT_DIMENSIONS", 0)
        around_the_mode = np.concatenate([levels(10) for _ in range(4)])
        np.testing.assert_allclose(weighted.mean(), around_the_mode.mean(), atol=0.01)
        np.testing.assert_allclose(weighted.std(), around_the_mode.std(), rtol=0.2)
        monkeypatch.undo()
        monkeypatch.setattr(Recalibration, "coefficients", lambda *_: pytest.fail("coefficients were solved for again"))
        levels(12)

    def test_weights_of_unequal_chances_sum_to_the_effective_number(self) -> None:
        weights = check_weights(np.array([0.5, 0.25, 0.25]))
        stands_for = np.array([1.0, 3.0, 3.0])
        assert weights.sum() == pytest.approx(stands_for.sum() ** 2 / (stands_for**2).sum())
        np.testing.assert_allclose(weights / weights[0], stands_for)

    def test_design_effect_counts_what_clusters_share(self) -> None:
        base = np.full((40, 2), 0.5)
        clusters = np.repeat(np.arange(10), 4)
        alike = np.repeat(np.arange(10) % 2, 4)
        nobody = np.empty((0, 40), dtype=int)
        assert design_effect(base, nobody, alike, clusters) == pytest.approx(4.0)
        assert design_effect(base, nobody, np.arange(40) % 2, clusters) == pytest.approx(1.0)
        assert design_effect(base, nobody, alike, np.arange(40)) == 1.0
        mixed = np.arange(40) % 2
        right_together = np.where(alike, mixed, 1 - mixed)[None]  # a system that is right on whole clusters
        assert design_effect(base, right_together, mixed, clusters) == pytest.approx(4.0)


class TestManyClasses:
    def test_class_shares_of_the_prior_deviate_as_levels_do(self) -> None:
        rng = np.random.default_rng(0)
        base = clip_base(rng.dirichlet(np.full(5, 0.6), 300))
        features = build_features(base, base.argmax(axis=1)[None])
        rows = features.rows(base)
        theta = draw_theta(Recalibration(rows, features, PRIOR), None, rng=rng)
        shares = np.einsum("ncp,n->pc", rows.probabilities(theta.beta, theta.gamma), rows.weights)
        spread = (np.quantile(to_angle(shares), 0.84, axis=0) - np.quantile(to_angle(shares), 0.16, axis=0)) / 2
        one_sigma = PRIOR.level_scale * scipy.stats.t(PRIOR.degrees).ppf(0.84)
        assert 0.7 * one_sigma < spread.mean() < 1.4 * one_sigma

    def test_names_of_classes_and_order_of_items_do_not_matter(self) -> None:
        rng = np.random.default_rng(0)
        base = clip_base(rng.dirichlet(np.full(4, 0.6), 60))
        codes = rng.integers(4, size=(1, 60))
        renamed, order = np.array([2, 0, 3, 1]), rng.permutation(60)
        scales = [
            np.sort(effect_scales(features.rows(f), features, PRIOR))
            for f, features in (
                (base, build_features(base, codes)),
                (base[order], build_features(base[order], codes[:, order])),
                (base[:, np.argsort(renamed)], build_features(base[:, np.argsort(renamed)], renamed[codes])),
            )
        ]
        np.testing.assert_allclose(scales[0], scales[1])
        np.testing.assert_allclose(scales[0], scales[2])


def test_copies_of_a_system_are_one() -> None:
    base, codes, _ = two_class_pool(30)
    assert build_features(base, np.stack([codes, codes])).n_levels == build_features(base, codes[None]).n_levels


def test_base_is_never_sure() -> None:
    clipped = clip_base(np.array([[1.0, 0.0, 0.0], [0.4, 0.3, 0.3]]))
    assert clipped.max() <= SURE + 1e-12
    assert clipped.min() >= (1 - SURE) / 2 * 0.99
    np.testing.assert_allclose(clipped.sum(axis=1), 1.0)


def test_flattened_weights_are_worth_a_share_of_the_points() -> None:
    weights, power = flatten(np.linspace(0, 400, 100), 20.0)
    assert 1 / (weights**2).sum() >= 19
    assert power < 1
    weights, power = flatten(np.zeros(10), 2.0)
    np.testing.assert_allclose(weights, 0.1)
    assert power == 1


def test_points_that_are_chosen_again_are_worth_no_more_than_there_are() -> None:
    base, codes, truth = two_class_pool(300)
    features = build_features(base, codes[None])
    rows = features.rows(base)
    checks = checks_of(rows, truth, np.arange(3))
    for n_points in (64, 512):
        theta = draw_theta(
            Recalibration(rows, features, PRIOR), checks, n_points=n_points, rng=np.random.default_rng(0)
        )
        assert theta.effective <= len(theta.beta) == n_points


@pytest.mark.parametrize("rare", [1e-6, 1e-5, 1e-4])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("times", [None, 300.0])
def test_a_rare_class_is_drawn_as_often_as_it_is_likely(rare: float, place: int, times: float | None) -> None:
    n_items, chances = 4000, np.full(3, (1 - rare) / 2)
    chances[place] = rare
    rows = Rows(
        np.log(np.tile(chances, (n_items, 1))), np.zeros((1, n_items), int), np.ones((1, n_items)), np.ones(n_items)
    )
    theta = ThetaDraws(np.ones(500), np.zeros((500, 1)), 500.0)
    stands_for = None if times is None else np.full(n_items, times)
    rng = np.random.default_rng(0)
    truths, _ = draw_truths(rows, theta, np.full(n_items, -1), each=4, rng=rng, times=stands_for)
    expected = rare * truths.size
    assert (truths == place).sum() == pytest.approx(expected, abs=5 * np.sqrt(expected) + 0.01 * expected)


def test_latin_hypercube_has_one_point_in_each_part() -> None:
    uniform = latin_hypercube(50, 3, np.random.default_rng(0))
    for column in uniform.T:
        assert sorted((column * 50).astype(int).tolist()) == list(range(50))
