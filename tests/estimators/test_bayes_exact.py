"""The exact posterior of two classes, against enumeration and against draws."""

import itertools

import numpy as np
import pytest

from trueup.estimators import Problem, bayes, bayes_multiclass, class_posterior, ideal
from trueup.metrics import confusion_counts, get_metric

NAMES = ("accuracy", "precision", "recall", "false_alarm_rate", "f1", "mcc")
METRICS = [get_metric(name, [0, 1]) for name in NAMES]


def make_problem(n, *, strength=1.5, prior=(0.6, 0.4), point=(0.8, 0.3), seed=0, gold=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < prior[1]).astype(int)
    predictions = (rng.random(n) < np.where(truth == 1, *point)).astype(int)
    sign = 2 * truth - 1
    table = np.zeros((n, 2))
    table[:, 1] = strength * (sign * strength + rng.normal(size=n))  # a true log-likelihood ratio up to scale
    codes = np.full(n, -1)
    codes[:gold] = truth[:gold]
    return Problem(predictions, table, prior, codes), truth


def enumerate_counts(problem):
    """P(u, v) by all truths × a quadrature of operating points that is exact for these polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    d, f = np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2, indexing="ij")
    area = np.outer(weights, weights)
    counted = problem.predictions >= 0
    predictions = problem.predictions[counted]
    chances = class_posterior(problem)[counted]
    table = {}
    for truth in itertools.product((0, 1), repeat=len(predictions)):
        y = np.array(truth)
        c = confusion_counts(y, predictions, 2)
        evidence = np.prod(chances[np.arange(len(y)), y])
        mass = evidence * (area * d ** c[1, 1] * (1 - d) ** c[1, 0] * f ** c[0, 1] * (1 - f) ** c[0, 0]).sum()
        key = (c[1, 1], c[1, 0])
        table[key] = table.get(key, 0.0) + mass
    total = sum(table.values())
    return {key: mass / total for key, mass in table.items() if mass / total > 1e-15}


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("gold", [0, 1])
def test_lattice_equals_enumeration(n, strength, gold):
    problem, _ = make_problem(n, strength=strength, seed=n, gold=gold)
    lattice = bayes(problem).counts
    want = enumerate_counts(problem)
    got = dict(zip(zip(lattice.u, lattice.v, strict=True), lattice.pmf, strict=True))
    for key in want.keys() | got.keys():
        assert got.get(key, 0.0) == pytest.approx(want.get(key, 0.0), abs=1e-10)


@pytest.mark.parametrize("point", [(0.8, 0.3), (0.99, 0.01), (0.5, 0.5), (0.0, 0.0)])
@pytest.mark.parametrize("strength", [0.5, 1.5])
def test_draws_for_many_items_have_the_exact_law(point, strength):
    problem, _ = make_problem(600, strength=strength, point=point, seed=1)
    exact, drawn = bayes(problem).counts, bayes_multiclass(problem, random_state=0).counts
    for metric in METRICS:
        a, b = exact.estimate(metric), drawn.estimate(metric)
        if np.isnan(a.mean):
            assert np.isnan(b.mean)
            continue
        tolerance = 0.15 * a.std + 1 / 600
        assert b.mean == pytest.approx(a.mean, abs=tolerance), metric.name
        for got, want in zip(b.interval(kind="equal"), a.interval(kind="equal"), strict=True):
            assert got == pytest.approx(want, abs=2 * tolerance), metric.name


def test_gold_is_exact():
    problem, truth = make_problem(300, seed=4)
    known = Problem(problem.predictions, problem.log_likelihood, problem.prior, truth)
    want = ideal(problem, truth=truth).counts
    got = bayes(known).counts
    np.testing.assert_allclose(got.mean_counts, want.mean_counts)
    for metric in METRICS:
        estimate = got.estimate(metric)
        assert estimate.interval() == pytest.approx((want.estimate(metric).mean,) * 2)


@pytest.mark.parametrize("value", [0, 1])
def test_one_predicted_class(value):
    problem, _ = make_problem(50, seed=8)
    constant = Problem(np.full(50, value), problem.log_likelihood, problem.prior)
    counts = bayes(constant).counts
    assert counts.mean_counts.sum() == pytest.approx(50)
    precision = counts.estimate(METRICS[1])
    assert precision.undefined == (0.0 if value else 1.0)
    assert 0 < counts.estimate(METRICS[0]).mean < 1


def test_draws_of_truths_and_counts_have_the_exact_law():
    problem, _ = make_problem(120, seed=10)
    counts = bayes(problem).counts
    truths = counts.draw_truths(4000, 0)
    assert truths.shape == (4000, 120)
    drawn = confusion_counts(truths, problem.predictions, 2)
    accuracy = METRICS[0]
    estimate = counts.estimate(accuracy)
    for values in (accuracy(drawn), accuracy(counts.draw_counts(4000, 1))):
        assert values.mean() == pytest.approx(estimate.mean, abs=4 * estimate.std / np.sqrt(4000))
        assert values.std() == pytest.approx(estimate.std, rel=0.06)


def test_population_is_wider_than_sample():
    problem, _ = make_problem(400, strength=3.0, seed=12)
    sample, population = bayes(problem), bayes(problem, target="population", random_state=0)
    for metric in METRICS[:5]:
        a, b = sample.counts.estimate(metric), population.counts.estimate(metric)
        assert b.std > 1.5 * a.std
    np.testing.assert_allclose(population.counts.mean_counts.sum(axis=1), problem.prior)
    with pytest.raises(ValueError, match="population"):
        population.counts.draw_truths(3)
