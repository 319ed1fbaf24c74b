"""Metrics of confusion counts against scikit-learn, with undefined values, and their invariants."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter
from trueup.metrics import (
    accuracy,
    balanced_accuracy,
    confusion_counts,
    error_rate,
    false_alarm_rate,
    fbeta,
    kappa,
    mcc,
    precision,
    prevalence,
    recall,
    specificity,
)

OF_CLASS = {
    "precision": (precision, sk.precision_score),
    "recall": (recall, sk.recall_score),
    "f1": (fbeta, sk.f1_score),
    "f2": (lambda c, of: fbeta(c, of=of, beta=2), lambda y, p, **k: sk.fbeta_score(y, p, beta=2, **k)),
    "f0.5": (lambda c, of: fbeta(c, of=of, beta=0.5), lambda y, p, **k: sk.fbeta_score(y, p, beta=0.5, **k)),
}


def _data(seed, n_classes, n=60, missing=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    p = np.where(rng.random(n) < 0.6, y, rng.integers(0, n_classes, n))
    if missing == "truth":
        y = np.where(y == 0, 1, y)
    if missing == "prediction":
        p = np.where(p == 0, 1, p)
    if missing == "both":
        y, p = np.where(y == 0, 1, y), np.where(p == 0, 1, p)
    return y, p, confusion_counts(y, p, n_classes)


@pytest.mark.parametrize("missing", [None, "truth", "prediction", "both"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("name", list(OF_CLASS))
def test_one_class_and_averages(name, n_classes, missing):
    ours, theirs = OF_CLASS[name]
    for seed in range(4):
        y, p, counts = _data(seed, n_classes, missing=missing)
        labels = np.arange(n_classes)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="sklearn")  # of classes that are absent on purpose
            each = theirs(y, p, labels=labels, average=None, zero_division=np.nan)
            np.testing.assert_allclose(ours(counts, of="each"), each, atol=1e-12)
            for k in labels:
                np.testing.assert_allclose(ours(counts, of=int(k)), each[k], atol=1e-12)
            for how in ("macro", "micro", "weighted"):
                expected = theirs(y, p, labels=labels, average=how, zero_division=np.nan)
                np.testing.assert_allclose(ours(counts, of=how), expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_whole_matrix_metrics(n_classes):
    for seed in range(6):
        y, p, counts = _data(seed, n_classes)
        assert accuracy(counts) == pytest.approx(sk.accuracy_score(y, p))
        assert balanced_accuracy(counts) == pytest.approx(sk.balanced_accuracy_score(y, p))
        assert mcc(counts) == pytest.approx(sk.matthews_corrcoef(y, p))
        assert kappa(counts) == pytest.approx(sk.cohen_kappa_score(y, p))


def test_undefined_is_nan_and_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing = np.zeros((2, 2))
        for value in (accuracy, error_rate, mcc, kappa, balanced_accuracy):
            assert np.isnan(value(nothing))
        only_negatives = np.array([[7, 0], [0, 0]])
        assert np.isnan(recall(only_negatives, of=1))
        assert np.isnan(precision(only_negatives, of=1))
        assert np.isnan(fbeta(only_negatives, of=1))
        assert specificity(only_negatives, of=1) == 1
        assert np.isnan(specificity(only_negatives, of=0))
        assert np.isnan(mcc(only_negatives))
        assert np.isnan(kappa(only_negatives))
        # Positives exist but none is predicted: the F-score is zero, not undefined, as in scikit-learn.
        assert fbeta(np.array([[5, 0], [2, 0]]), of=1) == 0
        assert np.isnan(mcc(np.array([[5, 0], [2, 0]])))


MATRICES = hnp.arrays(
    float, st.integers(2, 5).map(lambda c: (c, c)), elements=st.floats(0, 100).map(lambda v: round(v, 3))
)


@given(MATRICES, st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_invariants(counts, seed):
    order = np.random.default_rng(seed).permutation(len(counts))
    shuffled = counts[np.ix_(order, order)]
    for function in (accuracy, mcc, kappa, balanced_accuracy):
        np.testing.assert_allclose(function(shuffled), function(counts), atol=1e-9)
    for function in (precision, recall, specificity, false_alarm_rate, fbeta):
        for how in ("macro", "micro", "weighted"):
            np.testing.assert_allclose(function(shuffled, of=how), function(counts, of=how), atol=1e-9)
        np.testing.assert_allclose(function(shuffled, of="each"), function(counts, of="each")[order], atol=1e-9)
        values = function(counts, of="each")
        assert ((values >= -1e-9) & (values <= 1 + 1e-9) | np.isnan(values)).all()
    np.testing.assert_allclose(accuracy(counts) + error_rate(counts), 1 if counts.sum() else np.nan)
    np.testing.assert_allclose(
        specificity(counts, of="each") + false_alarm_rate(counts, of="each") - 1,
        0 * specificity(counts, of="each"),
        atol=1e-9,
    )
    np.testing.assert_allclose(mcc(counts.T), mcc(counts), atol=1e-9)
    np.testing.assert_allclose(recall(counts.T, of="each"), precision(counts, of="each"), atol=1e-9)
    np.testing.assert_allclose(recall(counts, of="micro"), accuracy(counts), atol=1e-9)
    np.testing.assert_allclose(mcc(7 * counts), mcc(counts), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: accuracy(np.ones((2, 3))), r"shape \(..., classes, classes\), got \(2, 3\)"),
        (lambda: recall(np.ones((2, 2)), of=2), "of must be a class below 2, got 2"),
        (lambda: recall(np.ones((2, 2)), of="makro"), "did you mean 'macro'"),
        (lambda: fbeta(np.ones((2, 2)), of=1, beta=0), "`beta` must be"),
        (lambda: prevalence(np.ones((2, 2)), of=5), "of must be a class below 2"),
        (lambda: confusion_counts([0, -1], [0, 1], 2), r"truth_codes must lie between 0 and 1, got \[-1\]"),
        (lambda: confusion_counts([0, 1], [0, 2], 2), r"pred_codes must lie between 0 and 1, got \[2\]"),
        (lambda: confusion_counts([0, 1], [0], 2), "same items"),
        (lambda: confusion_counts(np.zeros((3, 2), int), np.zeros((4, 2), int), 2), "same items"),
        (lambda: confusion_counts([0.0, 1.0], [0, 1], 2), "must be class codes, integers"),
        (lambda: confusion_counts([0, 1], [0, 1], 2, weights=[1]), "weights must be one for each of 2 items"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        call()


@pytest.mark.parametrize("n_classes", [4, 150])  # more cells than items are counted in another way
def test_counts_against_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, n_classes, (2, 500))
    classes, w = range(n_classes), rng.random(500)
    counts = confusion_counts(np.stack([y, p]), p, n_classes)
    np.testing.assert_array_equal(counts[0], sk.confusion_matrix(y, p, labels=classes))
    np.testing.assert_array_equal(counts[1], sk.confusion_matrix(p, p, labels=classes))
    expected = sk.confusion_matrix(y, p, labels=classes, sample_weight=w)
    np.testing.assert_allclose(confusion_counts(y, p, n_classes, weights=w), expected)
