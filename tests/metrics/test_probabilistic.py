"""Metrics of class probabilities on drawn truths: against scikit-learn, by hand, and by simulation."""

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import brier, calibration_error, calibration_floor, log_loss

N_DRAWS, N_ITEMS = 8, 40
ALL = {"log_loss": log_loss, "brier": brier, "calibration_error": calibration_error}
THEIRS = {"log_loss": (log_loss, sk.log_loss), "brier": (brier, sk.brier_score_loss)}


def data(seed, n_classes):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(n_classes, 0.7), N_ITEMS)
    probabilities[:3] = np.eye(n_classes)[[0, 1, 0]]  # certain, and sometimes wrong
    truths = rng.integers(0, n_classes, (N_DRAWS, N_ITEMS))
    return truths, probabilities, rng


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", list(THEIRS))
def test_as_scikit_learn(name, n_classes):
    ours, theirs = THEIRS[name]
    truths, probabilities, rng = data(0, n_classes)
    weights = rng.exponential(size=truths.shape)
    outputs = probabilities[:, 1] if name == "brier" and n_classes == 2 else probabilities
    labels = list(range(n_classes))
    expected = [theirs(y, outputs, labels=labels) for y in truths]
    np.testing.assert_allclose(ours(truths, probabilities), expected, rtol=1e-10)
    expected = [theirs(y, outputs, labels=labels, sample_weight=w) for y, w in zip(truths, weights, strict=True)]
    np.testing.assert_allclose(ours(truths, probabilities, weights), expected, rtol=1e-10)


def calibration_by_hand(truth, probabilities, n_bins, weights):
    """Bins of items sorted by confidence, by a loop; confidences are distinct and fill the bins evenly."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    total = 0.0
    for part in np.array_split(np.argsort(confidence), n_bins):
        total += abs(np.sum(weights[part] * (right[part] - confidence[part])))
    return total / weights.sum()


@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_calibration_error_by_hand(n_bins):
    rng = np.random.default_rng(3)
    probabilities = rng.dirichlet(np.ones(3), N_ITEMS)
    truths = rng.integers(0, 3, (N_DRAWS, N_ITEMS))
    for weights in (np.ones(truths.shape), rng.exponential(size=truths.shape)):
        expected = [calibration_by_hand(y, probabilities, n_bins, w) for y, w in zip(truths, weights, strict=True)]
        np.testing.assert_allclose(calibration_error(truths, probabilities, weights, n_bins=n_bins), expected)
    np.testing.assert_allclose(
        calibration_error(truths, probabilities, n_bins=n_bins),
        calibration_error(truths, probabilities, np.ones(truths.shape), n_bins=n_bins),
    )


@pytest.mark.parametrize("n_items", [200, 2000])
def test_bias_of_the_plug_in_is_what_the_floor_says(n_items):
    """A perfectly calibrated model; the mean over 600 truths is within 2% and five standard errors of the floor."""
    rng = np.random.default_rng(4)
    probabilities = rng.dirichlet([2.0, 2.0, 2.0], n_items)
    truths = (rng.random((600, n_items, 1)) > np.cumsum(probabilities, axis=1)).sum(axis=2)
    values = calibration_error(truths, probabilities)
    floor = calibration_floor(probabilities)
    assert floor > 0.2 / np.sqrt(n_items)
    assert abs(values.mean() - floor) < 5 * values.std() / np.sqrt(600) + 0.02 * floor


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize(
    ("truths", "probabilities", "error", "words"),
    [
        ([[0, 3]], [[0.5, 0.5]] * 2, InvalidParameter, "between 0 and 1"),
        ([[0, 1]], [[0.5, np.inf]] * 2, InvalidPredictions, "must be finite"),
        ([[0, 1]], [[1.2, -0.2]] * 2, InvalidPredictions, "must not be negative"),
        ([[0, 1]], [[0.5, 0.5]], InvalidPredictions, "one row for each of 2 items"),
    ],
    ids=["codes", "infinite", "negative", "rows"],
)
def test_bad_input_is_one_sentence(name, truths, probabilities, error, words):
    with pytest.raises(error, match=words) as caught:
        ALL[name](truths, probabilities)
    assert "\n" not in str(caught.value)


def test_bins_must_be_a_number():
    with pytest.raises(InvalidParameter, match="n_bins"):
        calibration_error([[0, 1]], [[0.5, 0.5]] * 2, n_bins=0)
