"""Unbiased counts: exact expectations by enumeration, formulas of the paper, coverage by simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import trueup as tu
from trueup.estimators import ScoreEstimate, consolidate, unbiased
from trueup.exceptions import InvalidLabels
from trueup.metrics import confusion_counts, get_metric
from trueup.posteriors import wilson

Z = stats.norm.isf(0.025)
ACCURACY = get_metric("accuracy", [0, 1])


def symmetric(right: float) -> np.ndarray:
    return np.array([[right, 1 - right], [1 - right, right]])


def simulated(n: int, *, beta: float, theta: float, seed: int) -> tuple[tu.Labels, np.ndarray]:
    sim = tu.simulate.dawid_skene(
        n_items=n, n_labelers=1, confusion=symmetric(1 - beta), classifier_confusion=symmetric(theta), random_state=seed
    )
    return sim.labels, sim.predictions


def binomial_range(n: int, p: float = 0.95) -> tuple[float, float]:
    low, high = stats.binom.interval(0.999, n, p)
    return low / n, high / n


@pytest.mark.parametrize(("n_classes", "truth", "predictions"), [(2, [0, 1, 1], [0, 0, 1]), (3, [2, 0], [1, 0])])
def test_expected_counts_are_the_true_ones_by_enumeration(n_classes, truth, predictions):
    """Over all votes that could have been cast, weighted by their chance given the truth."""
    rng = np.random.default_rng(4)
    matrices = 0.5 * rng.dirichlet(np.ones(n_classes), size=(2, n_classes)) + 0.5 * np.eye(n_classes)
    noise = tu.noise.Confusion(matrices, prior=rng.dirichlet(np.full(n_classes, 5.0)))
    expected = np.zeros((n_classes, n_classes))
    for cast in itertools.product(range(n_classes), repeat=2 * len(truth)):
        votes = np.array(cast).reshape(-1, 2)
        chance = np.prod([matrices[t, y, votes[i, t]] for i, y in enumerate(truth) for t in range(2)])
        labels = tu.Labels.from_matrix(votes, classes=range(n_classes))
        expected += chance * unbiased(labels, np.array(predictions), noise=noise).counts.counts
    np.testing.assert_allclose(expected, confusion_counts(np.array(truth), np.array(predictions), n_classes), atol=1e-9)


def brute_sums(labels, predictions, noise):
    """X of each item by a plain loop, shape (n_items, n_classes, n_classes)."""
    found = consolidate(labels, noise)
    x = np.zeros((labels.n_items, labels.n_classes, labels.n_classes))
    for i in range(labels.n_items):
        x[i, :, predictions[i]] = np.linalg.solve(found.matrix_of(i).T, np.eye(labels.n_classes)[found.codes[i]])
    return x


@pytest.fixture(scope="module")
def crowd():
    sim = tu.simulate.dawid_skene(n_items=400, n_classes=3, n_labelers=8, votes_per_item=3, random_state=2)
    return sim, tu.noise.Confusion(sim.parameters["confusion"], prior=sim.parameters["prior"])


@pytest.mark.parametrize("name", ["mcc", "macro_f1", "kappa", "balanced_accuracy"])
def test_delta_method_is_the_infinitesimal_jackknife(crowd, name):
    """The metric of the mean of X, each item left out in turn: a second way to the same standard error."""
    sim, noise = crowd
    metric = get_metric(name, [0, 1, 2])
    found = unbiased(sim.labels, sim.predictions, noise=noise).counts.estimate(metric)
    x = brute_sums(sim.labels, sim.predictions, noise)
    left_out = metric((x.sum(axis=0) - x) / 399)
    jackknife = math.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.std == pytest.approx(jackknife, rel=0.01)
    assert found.mean == pytest.approx(float(metric(x.mean(axis=0))))
    low, high = found.interval(0.95)
    assert (high - low) / 2 == pytest.approx(Z * found.std, rel=0.001)


def test_perfect_labels_give_plain_counts_and_wilson_intervals():
    rng = np.random.default_rng(3)
    truth, predictions = rng.integers(2, size=80), rng.integers(2, size=80)
    labels = tu.Labels.from_matrix(truth[:, None])
    counts = unbiased(labels, predictions, noise=tu.noise.Confusion(np.eye(2))).counts
    table = confusion_counts(truth, predictions, 2)
    np.testing.assert_allclose(counts.counts, table)
    for name, successes, trials in (
        ("accuracy", np.trace(table), 80),
        ("precision", table[1, 1], table[:, 1].sum()),
        ("recall", table[1, 1], table[1].sum()),
        ("specificity", table[0, 0], table[0].sum()),
    ):
        found = counts.estimate(get_metric(name, [0, 1])).interval(0.95)
        np.testing.assert_allclose(found, wilson(successes, trials), atol=1e-4, err_msg=name)


def equation_15(n: int, beta: float, theta: float) -> float:
    ab = -beta * (1 - beta) / (1 - 2 * beta) ** 2
    return Z * math.sqrt((-ab + theta - theta**2) / n)


@pytest.mark.parametrize("beta", [0.05, 0.2, 0.35])
def test_half_width_follows_equation_15_and_shrinks_with_the_root_of_n(beta):
    half = {}
    for n in (2000, 20_000):
        labels, predictions = simulated(n, beta=beta, theta=0.8, seed=n)
        counts = unbiased(labels, predictions, noise=tu.noise.Confusion(symmetric(1 - beta))).counts
        low, high = counts.estimate(ACCURACY).interval(0.95)
        half[n] = (high - low) / 2
        assert half[n] == pytest.approx(equation_15(n, beta, 0.8), rel=0.03)
    assert half[2000] / half[20_000] == pytest.approx(math.sqrt(10), rel=0.03)


def runs(n_sets: int, n: int, beta: float, theta: float, *, interval: str = "delta") -> tuple[np.ndarray, np.ndarray]:
    """Errors of the accuracy and whether its 95% interval held, over seeds 0, 1, …"""
    noise = tu.noise.Confusion(symmetric(1 - beta))
    errors, held = [], []
    for seed in range(n_sets):
        labels, predictions = simulated(n, beta=beta, theta=theta, seed=seed)
        solution = unbiased(labels, predictions, noise=noise, interval=interval, random_state=seed)
        found = solution.counts.estimate(ACCURACY)
        low, high = found.interval(0.95)
        errors.append(found.mean - theta)
        held.append(low <= theta <= high)
    return np.array(errors), np.array(held)


@pytest.mark.parametrize(("beta", "theta"), [(0.2, 0.8), (0.3, 0.98)], ids=["middle", "extreme"])
def test_accuracy_is_unbiased_and_covered(beta, theta):
    errors, held = runs(200, 200, beta, theta)
    assert abs(errors.mean()) < 3.3 * errors.std(ddof=1) / math.sqrt(200)
    low, high = binomial_range(200)
    assert low <= held.mean() <= min(high, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "theta"), [(0.2, 0.8), (0.02, 0.98), (0.1, 0.95), (0.35, 0.9)])
def test_accuracy_of_2000_sets(beta, theta):
    errors, held = runs(2000, 200, beta, theta)
    assert abs(errors.mean()) < 3 * errors.std(ddof=1) / math.sqrt(2000)
    assert abs(held.mean() - 0.95) < 0.015 + 2 * math.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.slow
def test_bootstrap_of_1000_sets():
    _, held = runs(1000, 200, 0.2, 0.8, interval="bootstrap")
    low, high = binomial_range(1000)
    assert low - 0.01 <= held.mean() <= high


@pytest.mark.slow
def test_ratios_of_600_sets_with_different_labelers():
    rng = np.random.default_rng(5)
    right = rng.uniform(0.6, 0.95, (6, 2))
    matrices = np.stack([np.stack([right[:, 0], 1 - right[:, 0]], 1), np.stack([1 - right[:, 1], right[:, 1]], 1)], 1)
    prior, classifier = np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.2, 0.8]])
    noise, joint = tu.noise.Confusion(matrices, prior=prior), prior[:, None] * classifier
    names = ("precision", "recall", "f1", "mcc")
    held = dict.fromkeys(names, 0)
    for seed in range(600):
        sim = tu.simulate.dawid_skene(
            n_items=500,
            n_labelers=6,
            votes_per_item=3,
            prior=prior,
            confusion=matrices,
            classifier_confusion=classifier,
            random_state=seed,
        )
        counts = unbiased(sim.labels, sim.predictions, noise=noise).counts
        for name in names:
            metric = get_metric(name, [0, 1])
            low, high = counts.estimate(metric).interval(0.95)
            held[name] += low <= float(metric(joint)) <= high
    low, high = binomial_range(600)
    for name in names:
        assert low <= held[name] / 600 <= high, name


def test_an_estimate_outside_the_bounds_keeps_its_mean_and_has_an_interval_inside():
    labels = tu.Labels.from_matrix(np.tile([[0], [1]], (30, 1)))
    counts = unbiased(labels, np.tile([0, 1], 30), noise=tu.noise.Confusion(symmetric(0.8))).counts
    found = counts.estimate(ACCURACY)
    assert found.mean == pytest.approx(0.8 / 0.6)
    low, high = found.interval(0.95)
    assert 0 < low < high == 1.0
    assert (found.cdf(0.999), found.mode) == (
        pytest.approx(stats.norm.cdf(0.999, found.mean, found.std), abs=0.01),
        1.0,
    )


def fixed(value: float, sd: float) -> ScoreEstimate:
    return ScoreEstimate(value, lambda x: np.full(np.shape(x), sd), name="recall")


def feldman_cousins(measured: float, level: float) -> tuple[float, float]:
    """A mean not below 0 with deviation 1, by brute force: for each mean collect estimates by likelihood ratio."""
    x = np.linspace(-8, 12, 8001)
    accepted = []
    for mean in np.arange(0, 7, 0.01):
        ratio = np.exp(-((x - mean) ** 2) / 2 + (x - np.maximum(x, 0)) ** 2 / 2)
        order = np.argsort(-ratio, kind="stable")
        mass = np.cumsum(stats.norm.pdf(x[order] - mean)) * (x[1] - x[0])
        least = ratio[order[np.searchsorted(mass, level)]]
        if np.exp(-((measured - mean) ** 2) / 2 + (measured - max(measured, 0)) ** 2 / 2) >= least:
            accepted.append(mean)
    return min(accepted), max(accepted)


@pytest.mark.parametrize("level", [pytest.param(0.68, marks=pytest.mark.slow), 0.95])
@pytest.mark.parametrize("measured", [-1.0, 0.0, 1.0, 2.0])
def test_intervals_near_a_bound_are_those_of_feldman_and_cousins(measured, level):
    found = fixed(0.01 * measured, 0.01).interval(level)
    np.testing.assert_allclose(np.array(found) / 0.01, feldman_cousins(measured, level), atol=0.02)


def test_an_estimate_far_outside_still_has_an_interval():
    assert fixed(5.0, 0.05).interval(0.95)[1] == 1.0  # far outside: still not empty
    assert fixed(5.0, 0.05).interval(0.95)[0] < 1.0


@pytest.mark.parametrize("true", [0.5, 0.96, 1.0])
def test_intervals_near_a_bound_cover_exactly(true):
    """By quadrature over the estimate, not by simulation."""
    sd = 0.04
    t = np.linspace(-5, 5, 201)
    held = [low - 1e-6 <= true <= high + 1e-6 for low, high in (fixed(true + sd * u, sd).interval(0.95) for u in t)]
    weights = stats.norm.pdf(t)
    assert np.average(held, weights=weights) == pytest.approx(0.95, abs=0.008)


@pytest.mark.filterwarnings("ignore::trueup.exceptions.DataWarning")
def test_items_that_say_nothing_are_left_out_and_counted():
    votes = [[0, -1], [-1, 1], [-1, 0], [-1, -1], [1, 1]]
    labels = tu.Labels.from_matrix(votes, labelers=["spammer", "bob"])
    noise = tu.noise.Confusion([[[0.3, 0.7], [0.3, 0.7]], symmetric(0.8)])
    solution = unbiased(labels, np.array([0, 1, 0, 1, 1]), noise=noise)
    assert solution.diagnostics["n_used"] == 3
    text = " ".join(solution.notes)
    assert "1 items cannot be recovered" in text
    assert "'spammer'" in text
    assert "1 items with a prediction have no votes" in text
    assert solution.counts.counts.sum() == pytest.approx(3)
    with pytest.raises(InvalidLabels, match="votes and a prediction"):
        unbiased(labels, np.full(5, -1), noise=noise)


def test_dirty_takes_labels_for_true_and_weighs_labelers_where_majority_does_not():
    labels, predictions = simulated(500, beta=0.2, theta=0.9, seed=3)
    noise = tu.noise.Confusion(symmetric(0.8))
    dirty = tu.evaluate(predictions, labels, noise=noise, method="dirty")
    majority = tu.evaluate(predictions, labels, method="majority")
    assert dirty["accuracy"].interval(0.95) == majority["accuracy"].interval(0.95)  # one vote each: the same
    assert dirty["accuracy"].mean == pytest.approx(0.2 * 0.1 + 0.8 * 0.9, abs=0.07)
    assert dirty.target == "population"
    three = tu.Labels.from_matrix([[1, 0, 0], [0, 1, 1]])
    expert = tu.noise.Confusion([symmetric(0.95), symmetric(0.55), symmetric(0.55)])
    said = tu.evaluate(np.array([1, 0]), three, noise=expert, method="dirty").confusion.mean
    np.testing.assert_array_equal(said, np.eye(2))
