"""A population may have what its sample did not show: whole intervals, few clusters, uneven weights."""

import numpy as np
import pytest
from scipy.stats import beta

import trueup as tu
from trueup.estimators.system_values import Population, system_values, unseen_counts
from trueup.metrics import get_metric

CLASSES = np.array([0, 1])


def accuracy_draws(is_right, population=None, *, n_draws=4000, seed=0, copies=1):
    """Draws of the accuracy in the population, of one system whose every answer is known to be right or not."""
    n = len(is_right)
    labels = tu.Labels.from_matrix(np.tile([[0, 1]], (n, 1)), classes=[0, 1])
    one = tu.Predictions.from_classes(np.ones(n, dtype=int)).align(labels)
    aligned = one.of_systems(np.zeros(copies, dtype=int))
    rng = np.random.default_rng(seed)
    truths = np.broadcast_to(np.asarray(is_right, dtype=np.int8), (n_draws, n))
    return system_values(
        truths,
        aligned,
        get_metric("accuracy", CLASSES),
        classes=CLASSES,
        positive=1,
        random_state=rng,
        population=population or Population(),
    )


@pytest.mark.parametrize("n_wrong", [0, 3, 30])
def test_a_share_of_items_has_the_posterior_of_jeffreys(n_wrong):
    draws = accuracy_draws(np.arange(30) >= n_wrong, n_draws=20_000)[:, 0]
    asked = [0.025, 0.25, 0.5, 0.75]
    np.testing.assert_allclose(np.quantile(draws, asked), beta(30.5 - n_wrong, n_wrong + 0.5).ppf(asked), atol=0.01)


def test_a_copy_differs_in_nothing():
    draws = accuracy_draws(np.arange(40) % 5 > 0, Population(np.arange(40) // 4), copies=2)
    np.testing.assert_array_equal(draws[:, 0], draws[:, 1])


def test_a_rare_class_that_was_missed_thrice_may_still_be_found():
    """The recall of a system that names it on one item of forty."""
    codes = np.zeros((1, 40), dtype=int)
    codes[0, -1] = 1
    unseen = unseen_counts(codes, 2, 4000, np.random.default_rng(0))[:, 0]
    found, missed = unseen[:, 1, 1], np.random.default_rng(1).standard_gamma(3.0, 4000) + unseen[:, 1, 0]
    low, high = np.quantile(found / (found + missed), [0.025, 0.975])
    assert low < 0.001
    assert 0.2 < high < 0.5


@pytest.mark.parametrize("n_clusters", [3, 5, 10, 20])
def test_few_clusters_are_known_to_be_few(n_clusters):
    """Without what is unseen the intervals hold 65, 83, 89 and 92% here."""
    rng, size, mean, correlation = np.random.default_rng(n_clusters), 10, 0.7, 0.3
    strength = 1 / correlation - 1
    held = []
    for run in range(300):
        rates = rng.beta(mean * strength, (1 - mean) * strength, n_clusters)
        is_right = (rng.random((n_clusters, size)) < rates[:, None]).ravel()
        population = Population(np.repeat(np.arange(n_clusters), size))
        low, high = np.quantile(accuracy_draws(is_right, population, n_draws=400, seed=run), [0.025, 0.975])
        held.append(low <= mean <= high)
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


def test_the_unit_of_uneven_weights():
    weights = np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    population = Population(weights=weights)
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert population.unit(np.ones(5, dtype=bool)) == pytest.approx(weights.sum() / kish)
    assert population.unit(np.array([False, True, True, True, True])) == pytest.approx(1.0)
    assert Population(np.array([0, 0, 1, 1])).unit(np.ones(4, dtype=bool)) == pytest.approx(2.0)


def test_thirty_vetted_outputs_that_all_pass_do_not_make_a_rate_of_one():
    labels = tu.Labels.from_matrix(np.ones((30, 2), dtype=int), classes=[0, 1])
    labels = labels.with_gold(dict.fromkeys(range(30), 1), drawn="random")
    rate = tu.share(labels, of=1, target="population", check_dependence=False)
    assert rate.overall.interval(0.95)[0] < 0.95
    assert tu.gate(rate, at_least=0.99).verdict != "passed"
