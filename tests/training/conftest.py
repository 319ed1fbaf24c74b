"""Data that the tests of training share."""

import numpy as np
import pytest

import trueup as tu

# Two good labelers, one who errs more often than not, four who guess.
MATRICES = [
    [[0.9, 0.1], [0.1, 0.9]],
    [[0.8, 0.2], [0.3, 0.7]],
    [[0.2, 0.8], [0.7, 0.3]],
    *[[[0.5, 0.5], [0.5, 0.5]]] * 4,
]


@pytest.fixture(scope="session")
def crowd():
    """600 items with votes to train on, and 600 with the truth to test on."""
    sim = tu.simulate.tars(n_items=1200, n_labelers=7, confusion=MATRICES, means=[[0, 0], [2, 0]], random_state=0)
    return sim.features[:600], sim.labels.select(items=range(600)), sim.features[600:], sim.truth[600:], sim


@pytest.fixture(scope="session")
def three_classes():
    """Three classes, five labelers, some votes missing."""
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=240)
    X = rng.normal(size=(240, 3)) + 2.0 * np.eye(3)[truth]
    votes = np.where(rng.random((240, 5)) < 0.7, truth[:, None], rng.integers(3, size=(240, 5)))
    votes[rng.random(votes.shape) < 0.3] = -1
    votes[:, 0] = np.where(votes[:, 0] < 0, truth, votes[:, 0])
    return X, tu.Labels.from_matrix(votes), truth
