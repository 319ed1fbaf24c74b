"""The published methods and baselines, and the shapes their answers come in."""

import numpy as np
import pytest
from scipy import optimize

from trueup import Labels, noise, simulate
from trueup.estimators import (
    METHODS,
    DrawnCounts,
    NormalCounts,
    PointCounts,
    Problem,
    bayes,
    class_posterior,
    estimated_labels,
    ideal,
    labeler_counts,
    labeler_mean,
    majority,
    mmse,
    prior_average,
)
from trueup.estimators.published.practice import geometric_median
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import confusion_counts, get_metric
from trueup.posteriors import PointEstimate, wilson

NAMES = ("accuracy", "precision", "recall", "false_alarm_rate", "f1")
METRICS = [get_metric(name, [0, 1]) for name in NAMES]

OF_PROBLEMS = {"bayes": bayes, **{name: METHODS[name].solve for name in METHODS if METHODS[name].sees == "problem"}}


def su_problem(n=1000, *, point=(0.8, 0.3), seed=0, **options):
    data = simulate.su(n_items=n, operating_point=point, random_state=seed, **options)
    p = data.parameters
    model = noise.Difficulty(difficulty=p["difficulty"], fallibility=p["fallibility"], prior=p["prior"])
    return Problem(data.predictions, model.log_likelihood(data.labels), p["prior"]), data


@pytest.fixture(scope="module")
def main_example():
    """Section 5.2.1."""
    return su_problem(prior=(0.8, 0.2), difficulty=(1, 5), fallibility=(0, 0.4), seed=3)


def test_main_example_converges(main_example):
    problem, data = main_example
    want = ideal(problem, truth=data.truth).counts
    solution = mmse(problem)
    assert solution.converged
    assert solution.n_iter <= 30
    assert solution.operating_points.shape == (solution.n_iter + 1, 2)
    assert solution.operating_points[0].tolist() == [0.5, 0.5]
    for metric in METRICS:
        assert solution.counts.estimate(metric).mean == pytest.approx(want.estimate(metric).mean, abs=0.05)
    assert solution.operating_point == pytest.approx([want.estimate(m).mean for m in METRICS[2:4]], abs=0.05)


def test_algorithms_agree(main_example):
    problem, _ = main_example
    points = {
        a: mmse(problem, algorithm=a, random_state=0, tol=1e-4).confusion for a in ("ratios", "sampling", "exact")
    }
    np.testing.assert_allclose(points["ratios"], points["exact"], atol=2e-3)
    np.testing.assert_allclose(points["sampling"], points["exact"], atol=3e-3)
    np.testing.assert_allclose(mmse(problem, mean="marsaglia").confusion, points["exact"], atol=0.02)


def test_normal_counts_match_exact_ones_given_the_operating_point(main_example):
    problem, _ = main_example
    counts = mmse(problem).counts
    assert isinstance(counts, NormalCounts)
    truths = counts.draw_truths(4000, 0)
    drawn = DrawnCounts(confusion_counts(truths, problem.predictions, 2))
    more = [
        get_metric(name, [0, 1])
        for name in ("mcc", "kappa", "f2", "recall:0", "precision:0", "specificity", "f1:0", "error_rate", "prevalence")
    ]
    for metric in [*METRICS, *more]:
        a, b = counts.estimate(metric), drawn.estimate(metric)
        assert a.mean == pytest.approx(b.mean, abs=0.12 * b.std), metric.name
        assert a.std == pytest.approx(b.std, rel=0.1), metric.name
    np.testing.assert_allclose(counts.draw_counts(4000, 0).mean(axis=0), counts.mean_counts, rtol=0.02)
    assert counts.cell(1, 1).mean == pytest.approx(counts.mean_counts[1, 1], rel=1e-3)
    assert counts.joint(METRICS[1], METRICS[2]).means == pytest.approx(
        [counts.estimate(m).mean for m in METRICS[1:3]], abs=1e-3
    )


def test_estimated_labels(main_example):
    problem, data = main_example
    solution = estimated_labels(problem)
    assert isinstance(solution.counts, PointCounts)
    estimate = solution.counts.estimate(METRICS[0])
    assert isinstance(estimate, PointEstimate)
    assert estimate.mean == pytest.approx(data.accuracy, abs=0.06)
    assert solution.counts.mean_counts.sum() == 1000
    assert solution.counts.joint(METRICS[1], METRICS[2]).means[0] == pytest.approx(
        solution.counts.estimate(METRICS[1]).mean
    )
    assert solution.counts.draw_truths(2).shape == (2, 1000)
    with pytest.raises(InvalidParameter, match="without uncertainty"):
        solution.counts.draw_counts(3)


def test_prior_average_integrates_over_the_square():
    problem, _ = su_problem(30, seed=2)
    axis = (np.arange(60) + 0.5) / 60
    want = np.mean(
        [
            (class_posterior(problem, [[1 - f, f], [1 - d, d]])[np.arange(30), problem.predictions]).mean()
            for d in axis
            for f in axis
        ]
    )
    assert prior_average(problem, random_state=0).counts.estimate(METRICS[0]).mean == pytest.approx(want, abs=0.01)


def test_known_truths_enter_every_method(main_example):
    problem, data = main_example
    known = Problem(problem.predictions, problem.log_likelihood, problem.prior, data.truth)
    want = ideal(problem, truth=data.truth).counts.mean_counts
    for name, method in OF_PROBLEMS.items():
        options = {"truth": data.truth} if name == "ideal" else {}
        np.testing.assert_allclose(
            method(known, random_state=0, **options).counts.mean_counts, want, atol=1e-6, err_msg=name
        )


def test_labeler_counts_by_hand():
    labels = Labels.from_matrix([[0, 1], [1, -1], [1, 1]])
    counts = labeler_counts(labels, [0, 1, 0])
    assert counts.tolist() == [[[1, 0], [1, 1]], [[0, 0], [2, 0]]]
    accuracy = METRICS[0]
    assert labeler_mean(labels, np.array([0, 1, 0])).counts.estimate(accuracy).mean == pytest.approx((2 / 3 + 0) / 2)
    scaled = labeler_mean(labels, np.array([0, 1, 0])).counts.mean_counts
    assert scaled.sum() == pytest.approx(3)


def test_majority_has_wilsons_interval():
    labels = Labels.from_matrix(np.repeat([[0], [1]], 500, axis=0))
    predictions = np.repeat([0, 1, 0], [500, 270, 230])
    accuracy = majority(labels, predictions, random_state=0).counts.estimate(METRICS[0])
    np.testing.assert_allclose(accuracy.interval(), wilson(770, 1000), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([0], [[0.0, 0.0], [0.0, 0.0]], [0.5, 0.5]), InvalidPredictions),
        (([0, 2], [[0.0, 0.0], [0.0, 0.0]], [0.5, 0.5]), InvalidPredictions),
        (([0, 1], [[0.0, np.nan], [0.0, 0.0]], [0.5, 0.5]), InvalidLabels),
        (([0, 1], [[-np.inf, -np.inf], [0.0, 0.0]], [0.5, 0.5]), InvalidLabels),
        (([0, 1], [[0.0, 0.0], [0.0, 0.0]], [0.5, 0.6]), InvalidParameter),
        (([0, 1], [[0.0, 0.0], [0.0, 0.0]], [0.5, 0.5], [0, 5]), InvalidLabels),
        (([0, 1], [0.0, 0.0], [0.5, 0.5]), InvalidParameter),
    ],
)
def test_bad_problems(arguments, error):
    with pytest.raises(error):
        Problem(*arguments)


def test_bad_options(main_example):
    problem, data = main_example
    for call in (
        lambda: bayes(problem, target="universe"),
        lambda: mmse(problem, algorithm="magic"),
        lambda: mmse(problem, start=[0.5, 0.5]),
        lambda: ideal(problem, truth=data.truth[:3]),
        lambda: labeler_mean(data.labels, data.predictions[:5]),
        lambda: bayes(problem).counts.cell(2, 0),
        lambda: DrawnCounts(np.zeros((3, 2))),
        lambda: DrawnCounts(np.zeros((3, 2, 2)), weights=[1, -1, 1]),
        lambda: DrawnCounts(np.ones((3, 2, 2))).draw_truths(2),
    ):
        with pytest.raises(ValueError, match=r"must|no truths"):
            call()


def test_the_geometric_median_against_an_optimiser():
    points = np.random.default_rng(0).normal(size=(40, 3))
    median = geometric_median(points)
    best = optimize.minimize(
        lambda c: np.linalg.norm(points - c, axis=1).sum(),
        points.mean(axis=0),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10},
    )
    np.testing.assert_allclose(median, best.x, atol=1e-5)


def test_a_geometric_median_on_a_point_and_start_on_a_point():
    star = np.array([[0.0, 0.0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    np.testing.assert_array_equal(geometric_median(star), [0, 0])
    heavy = geometric_median(np.array([[0.0, 0.0]] * 5 + [[1, 0], [0, 1]]))
    np.testing.assert_array_equal(heavy, [0, 0])
    # The mean is a data point but not the median.
    points = np.array([[0.0, 0.0], [1, 1], [-3, 1], [1, -3], [1, 1]])
    np.testing.assert_array_equal(points.mean(axis=0), [0, 0])
    cost = [np.linalg.norm(points - c, axis=1).sum() for c in (geometric_median(points), np.zeros(2))]
    assert cost[0] < cost[1]
