"""Brodley and Friedl's filter: it finds planted errors, and evaluation is on what it keeps."""

import numpy as np
import pytest

import trueup as tu
from trueup.estimators import mislabeled, noise_removal
from trueup.exceptions import InvalidLabels, InvalidParameter


@pytest.fixture(scope="module")
def planted():
    """Two far clusters with 40 of 400 labels turned around: features, labels, where."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    features = np.column_stack([6.0 * truth, np.zeros(400)]) + rng.normal(size=(400, 2))
    wrong = np.zeros(400, dtype=bool)
    wrong[rng.choice(400, size=40, replace=False)] = True
    return features, np.where(wrong, 1 - truth, truth), wrong


def test_planted_errors_are_found(planted):
    features, codes, wrong = planted
    suspect = mislabeled(features, codes, random_state=0)
    assert suspect[wrong].mean() > 0.95
    assert suspect[~wrong].mean() < 0.05
    np.testing.assert_array_equal(suspect, mislabeled(features, codes, random_state=0))


def test_evaluation_is_on_what_is_kept_and_gold_stays(planted):
    features, codes, wrong = planted
    labels = tu.Labels.from_matrix(codes[:, None])
    truth = np.where(wrong, 1 - codes, codes)
    noise = tu.noise.Confusion([[0.9, 0.1], [0.1, 0.9]])
    ev = tu.evaluate(truth, labels, noise=noise, method="noise-removal", features=features, random_state=0)
    kept = ev.confusion.mean.sum()
    assert 340 <= kept <= 365
    assert ev["accuracy"].mean > 0.98
    assert "were left out because they look mislabeled" in " ".join(ev.warnings)
    assert ev.target == "population"
    told = {int(i): int(codes[i]) for i in np.flatnonzero(wrong)}  # an expert confirms the odd labels
    vetted = noise_removal(labels.with_gold(told), truth, noise=noise, features=features, random_state=0)
    assert vetted.counts.mean_counts.sum() >= kept + 35


def test_a_single_class_leaves_nothing_to_filter():
    assert not mislabeled(np.zeros((10, 1)), np.ones(10, dtype=int), random_state=0).any()


def test_wrong_input_is_refused_in_one_sentence():
    labels = tu.Labels.from_matrix(np.tile([[0], [1]], (5, 1)))
    predictions, noise = np.tile([0, 1], 5), tu.noise.Confusion([[0.9, 0.1], [0.1, 0.9]])
    with pytest.raises(InvalidParameter, match="needs `features=X`"):
        tu.evaluate(predictions, labels, noise=noise, method="noise-removal")
    with pytest.raises(InvalidParameter, match=r"\(10, n_features\)"):
        tu.evaluate(predictions, labels, noise=noise, method="noise-removal", features=np.zeros((9, 2)))
    with pytest.raises(InvalidParameter, match="finite"):
        tu.evaluate(predictions, labels, noise=noise, method="noise-removal", features=np.full((10, 2), np.nan))
    with pytest.raises(InvalidParameter, match="numbers"):
        mislabeled([["a"]] * 4, [0, 1, 0, 1])
    with pytest.raises(InvalidParameter, match="filter"):
        mislabeled(np.zeros((4, 1)), [0, 1, 0, 1], filter="all")
    with pytest.raises(InvalidParameter, match="n_folds"):
        mislabeled(np.zeros((4, 1)), [0, 1, 0, 1], n_folds=5)
    with pytest.raises(InvalidParameter, match="at least one"):
        mislabeled(np.zeros((4, 1)), [0, 1, 0, 1], classifiers=[], n_folds=2)
    with pytest.raises(InvalidLabels, match="missing from the other folds"):
        mislabeled(np.zeros((4, 1)), [0, 0, 0, 1], n_folds=2)
