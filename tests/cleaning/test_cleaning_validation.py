"""The scorer is unbiased, equals the unbiased estimator of the project, and its shortcuts are exact."""

import numpy as np
import pytest

import trueup as tu
from trueup.cleaning import UnbiasedScorer
from trueup.estimators import unbiased
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import get_metric

RNG = np.random.default_rng(0)
MATRICES = 0.4 * RNG.dirichlet(np.ones(3), size=(4, 3)) + 0.6 * np.eye(3)


def noisy(n, rng, c=3):
    truth, kind = rng.integers(0, c, n), rng.integers(0, len(MATRICES), n)
    codes = (rng.random(n)[:, None] > MATRICES[kind, truth].cumsum(axis=1)).sum(axis=1)
    return truth, codes, MATRICES[kind]


def test_accuracy_is_unbiased():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(400):
        truth, codes, matrices = noisy(60, rng)
        predictions = np.where(rng.random(60) < 0.7, truth, rng.integers(0, 3, 60))
        errors.append(UnbiasedScorer(codes, matrices).scores(predictions) - (predictions == truth).mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


@pytest.mark.parametrize("metric", ["accuracy", "error_rate", "macro_f1", "precision:1", "recall:2", "mcc"])
def test_perfect_labels_give_the_metric_itself(metric):
    rng = np.random.default_rng(2)
    truth, predictions = rng.integers(0, 3, 50), rng.integers(0, 3, (4, 50))
    counts = np.zeros((4, 3, 3))
    for m in range(4):
        np.add.at(counts[m], (truth, predictions[m]), 1)
    found = UnbiasedScorer(truth, np.eye(3), metric=metric).scores(predictions)
    assert found == pytest.approx(get_metric(metric, [0, 1, 2])(counts))


@pytest.mark.parametrize("metric", ["accuracy", "f1", "recall"])
def test_agrees_with_the_unbiased_estimator(metric):
    data = tu.simulate.tars(n_items=400, noise_rates=0.2, random_state=0)
    noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    codes = tu.estimators.consolidate(data.labels, noise).codes
    solution = unbiased(data.labels, data.predictions, noise=noise)
    scorer = UnbiasedScorer(codes, [[0.8, 0.2], [0.2, 0.8]], metric=metric)
    shares = scorer.shares(data.predictions)
    assert shares == pytest.approx(solution.counts.shares)
    wanted = get_metric(metric, [0, 1])
    assert scorer.scores(data.predictions) == pytest.approx(np.clip(wanted(solution.counts.shares), 0, 1))
    slope = solution.counts.gradient(wanted)
    assert scorer.standard_error(data.predictions) == pytest.approx(
        np.sqrt(solution.counts.covariance(slope, slope)), rel=1e-5
    )


@pytest.mark.parametrize("metric", ["accuracy", "error_rate"])
def test_gains_add_up_to_the_change(metric):
    rng = np.random.default_rng(4)
    _, codes, matrices = noisy(80, rng)
    scorer = UnbiasedScorer(codes, matrices, metric=metric)
    base, other = rng.integers(0, 3, (2, 80))
    gains = scorer.gains(base)[np.arange(80), other]
    assert gains.mean() == pytest.approx(scorer.scores(other) - scorer.scores(base))


def test_gains_of_other_metrics_are_derivatives():
    rng = np.random.default_rng(5)
    truth, codes, matrices = noisy(5000, rng)
    scorer = UnbiasedScorer(codes, matrices, metric="macro_f1")
    base = np.where(rng.random(5000) < 0.7, truth, rng.integers(0, 3, 5000))
    other = base.copy()
    other[:20] = truth[:20]
    change = scorer.scores(other) - scorer.scores(base)
    assert scorer.gains(base)[np.arange(5000), other].mean() == pytest.approx(change, rel=0.02)


def test_bad_input():
    with pytest.raises(InvalidLabels, match="must have items"):
        UnbiasedScorer(np.empty(0, dtype=int), np.eye(2))
    with pytest.raises(InvalidLabels, match="cannot be inverted"):
        UnbiasedScorer([0, 1], np.full((2, 2), 0.5))
    with pytest.raises(InvalidParameter, match="classes must be 2"):
        UnbiasedScorer([0, 1], np.eye(2), classes=["a", "b", "c"])
    scorer = UnbiasedScorer([0, 1], np.eye(2))
    with pytest.raises(InvalidPredictions, match="each of the 2"):
        scorer.scores([0])
    with pytest.raises(InvalidPredictions, match="integer codes"):
        scorer.scores([0.0, 1.0])
    with pytest.raises(InvalidPredictions, match="got 0 to 2"):
        scorer.scores([0, 2])
