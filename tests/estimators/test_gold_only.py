"""Vetted items alone: Jeffreys' posterior where it is known, finite pools, unequal chances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from trueup.data.aligned import AlignedPredictions
from trueup.data.encoding import vocabulary_from
from trueup.estimators.gold_only import GoldSample, gold_only_estimate
from trueup.metrics import Metric, get_metric


def outputs_of(codes, *, n_classes=2, scores=None):
    codes = np.atleast_2d(codes)
    none = np.zeros(len(codes), dtype=np.int64)
    names = vocabulary_from([f"system {k}" for k in range(len(codes))])
    table = None if scores is None else np.atleast_2d(scores)
    return AlignedPredictions(names, codes.astype(np.int32), table, None, 1, none, none, none, n_classes)


def world(seed, *, n=2000, n_classes=2, n_systems=1, n_gold=40):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    wrong = (truth + rng.integers(1, n_classes, size=(n_systems, n))) % n_classes
    codes = np.where(rng.random((n_systems, n)) < 0.75, truth, wrong)
    gold = np.full(n, -1)
    at = rng.choice(n, n_gold, replace=False)
    gold[at] = truth[at]
    return truth, codes, gold, np.full(n, n_gold / n)


def estimate_of(outputs, metric, gold, chance, *, target="sample", **more):
    sample = GoldSample(gold, chance, np.arange(outputs.n_classes), 1, target)
    return gold_only_estimate(outputs, metric, sample, rng=np.random.default_rng(0), **more)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", ["accuracy", "precision:1", "recall:1", "prevalence:1"])
def test_a_share_has_jeffreys_posterior(name, n_classes):
    _, codes, gold, chance = world(1, n_classes=n_classes)
    vetted = gold >= 0
    said, is_true = codes[0, vetted], gold[vetted]
    hits, of = {
        "accuracy": (said == is_true, np.ones_like(said, dtype=bool)),
        "precision:1": (is_true == 1, said == 1),
        "recall:1": (said == 1, is_true == 1),
        "prevalence:1": (is_true == 1, np.ones_like(said, dtype=bool)),
    }[name]
    n_hits, n = int((hits & of).sum()), int(of.sum())
    half = 1.0 if name == "prevalence:1" else 0.5  # the prior of four cells, of which two are of the class
    exact = stats.beta(n_hits + half, n - n_hits + half)
    metric = get_metric(name, list(range(n_classes)))
    outputs = outputs_of(codes, n_classes=n_classes)
    estimate = estimate_of(outputs, metric, gold, chance, target="population")
    assert stats.kstest(estimate.draws(2000, random_state=0), exact.cdf).pvalue > 1e-3


def test_a_pool_that_is_all_vetted_is_known():
    truth, codes, gold, chance = world(2, n=60, n_gold=60)
    metric = get_metric("f1", [0, 1])
    estimate = estimate_of(outputs_of(codes), metric, gold, chance)
    hits = ((truth == 1) & (codes[0] == 1)).sum()
    assert estimate.interval(0.95) == pytest.approx((2 * hits / ((truth == 1).sum() + (codes[0] == 1).sum()),) * 2)


def test_a_finite_pool_is_narrower_than_a_population():
    _, codes, gold, chance = world(3, n=80, n_gold=40)
    metric = get_metric("accuracy", [0, 1])
    pool, population = (
        estimate_of(outputs_of(codes), metric, gold, chance, target=target) for target in ("sample", "population")
    )
    assert pool.std / population.std == pytest.approx(np.sqrt(0.5), abs=0.06)


def test_unequal_chances_are_put_right():
    truth, codes, _, _ = world(4, n=4000)
    is_right = truth == codes[0]
    chance = np.where(is_right, 0.1, 0.9)
    gold = np.where(np.random.default_rng(0).random(4000) < chance, truth, -1)
    for target in ("sample", "population"):
        estimate = estimate_of(outputs_of(codes), get_metric("accuracy", [0, 1]), gold, chance, target=target)
        assert estimate.mean == pytest.approx(is_right.mean(), abs=0.04)


@pytest.mark.parametrize("name", ["accuracy", "recall:1", "macro_f1"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_differences_are_paired(name, n_classes):
    """A system and a copy that errs a little more: the same vetted items say so far more surely than two samples."""
    rng = np.random.default_rng(5)
    truth, codes, gold, chance = world(5, n_classes=n_classes, n_gold=100)
    worse = np.where(rng.random(len(truth)) < 0.05, (codes[0] + 1) % n_classes, codes[0])
    outputs = outputs_of(np.stack([codes[0], worse]), n_classes=n_classes)
    metric = get_metric(name, list(range(n_classes)))
    difference = estimate_of(outputs, metric, gold, chance, minus=1)
    first, second = (estimate_of(outputs, metric, gold, chance, system=system) for system in (0, 1))
    assert difference.std < 0.8 * np.hypot(first.std, second.std)
    assert difference.mean == pytest.approx(first.mean - second.mean, abs=0.03)


def test_intervals_of_the_pool_hold():
    n_held, n_runs = 0, 200
    metric = get_metric("f1", [0, 1])
    for seed in range(n_runs):
        truth, codes, gold, chance = world(100 + seed, n=150, n_gold=30)
        estimate = estimate_of(outputs_of(codes), metric, gold, chance, n_draws=500)
        low, high = estimate.interval(0.95)
        hits = ((truth == 1) & (codes[0] == 1)).sum()
        n_held += low - 1e-9 <= 2 * hits / ((truth == 1).sum() + (codes[0] == 1).sum()) <= high + 1e-9
    assert n_held / n_runs >= 0.91


def test_scores_and_functions_of_names():
    rng = np.random.default_rng(6)
    truth, codes, gold, chance = world(6, n_gold=200)
    scores = truth + rng.normal(size=len(truth))
    outputs = outputs_of(codes, scores=scores)
    auc = estimate_of(outputs, get_metric("auc", [0, 1]), gold, chance, n_draws=500)
    low, high = auc.interval(0.99)
    exact = get_metric("auc", [0, 1]).of_outputs(truth[None], scores, positive=1)[0]
    assert low < exact < high
    assert high - low < 0.3
    agrees = Metric("agrees", lambda y, p: float(np.mean(y == p)), needs="labels", bounds=(0.0, 1.0))
    estimate = estimate_of(outputs, agrees, gold, chance, n_draws=300)
    assert estimate.mean == pytest.approx(0.75, abs=0.1)
