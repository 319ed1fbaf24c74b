"""Models without iteration: votes are counted, or the matrices are known."""

from itertools import product

import numpy as np
import pytest

from trueup import Labels, noise
from trueup.exceptions import InvalidLabels, InvalidParameter, TrueupError

VOTES = [[0, 0, 1], [1, -1, -1], [0, 1, -1], [2, 2, 2]]


@pytest.fixture
def labels():
    return Labels.from_matrix(VOTES, classes=[0, 1, 2])


def test_soft_majority_is_the_jeffreys_perks_estimate(labels):
    got = noise.Majority().fit(labels).posterior(labels)
    expected = [
        [2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5],
        [0.5 / 2.5, 1.5 / 2.5, 0.5 / 2.5],
        [1.5 / 3.5, 1.5 / 3.5, 0.5 / 3.5],
        [0.5 / 4.5, 0.5 / 4.5, 3.5 / 4.5],
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_majority_knows_gold_and_leaves_silent_items_open(labels, kind):
    with pytest.warns(UserWarning, match="no votes"):
        some = Labels.from_matrix([*VOTES, [-1, -1, -1]], classes=[0, 1, 2]).with_gold({0: 2})
    got = noise.Majority(kind=kind).fit(some).posterior(some)
    np.testing.assert_array_equal(got[0], [0, 0, 1])
    np.testing.assert_allclose(got[4], np.full(3, 1 / 3))


PRIOR = np.array([0.5, 0.3, 0.2])
MATRICES = np.array(
    [
        [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.0, 0.1, 0.9]],
        [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]],
        [[0.34, 0.33, 0.33], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]],
    ]
)


def enumerated(votes, matrices, prior, n_classes=3):
    """P(class of each item | votes) by summing over the truths of all items together."""
    total = np.zeros((len(votes), n_classes))
    for truth in product(range(n_classes), repeat=len(votes)):
        weight = 1.0
        for y, row in zip(truth, votes, strict=True):
            weight *= prior[y]
            for t, said in enumerate(row):
                weight *= matrices[t][y][said] if said >= 0 else 1.0
        for i, y in enumerate(truth):
            total[i, y] += weight
    return total / total.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_both_engines_give_the_enumerated_posterior(labels, engine, monkeypatch):
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_ENGINE", engine)
    got = noise.Confusion(MATRICES, prior=PRIOR).posterior(labels)
    np.testing.assert_allclose(got, enumerated(VOTES, MATRICES, PRIOR), atol=1e-8)


def test_a_mapping_follows_names_and_strangers_are_average():
    labels = Labels.from_matrix(VOTES, classes=[0, 1, 2], labelers=["ann", "bob", "cid"])
    shuffled = {"cid": MATRICES[2], "ann": MATRICES[0], "bob": MATRICES[1]}
    expected = enumerated(VOTES, MATRICES, PRIOR)
    np.testing.assert_allclose(noise.Confusion(shuffled, prior=PRIOR).posterior(labels), expected, atol=1e-8)
    known = {"ann": MATRICES[0], "bob": MATRICES[1]}
    average = [MATRICES[0], MATRICES[1], (MATRICES[0] + MATRICES[1]) / 2]
    got = noise.Confusion(known, prior=PRIOR).posterior(labels)
    np.testing.assert_allclose(got, enumerated(VOTES, average, PRIOR), atol=1e-8)


@pytest.mark.parametrize(
    ("matrices", "prior", "words"),
    [
        ([0.9, 0.1], None, "shape"),
        ([[0.9, 0.1]], None, "shape"),
        ([[0.9], [0.1]], None, "shape"),
        ({}, None, "shape"),
        ({"a": np.eye(2), "b": np.eye(3)}, None, "shape"),
        ([np.eye(2), np.eye(3)], None, "shape"),
        ([[0.9, 0.2], [0.5, 0.5]], None, "sum to 1"),
        ([[1.1, -0.1], [0.5, 0.5]], None, "probabilities"),
        ([[np.nan, 1.0], [0.5, 0.5]], None, "probabilities"),
        (np.eye(2), [0.2, 0.3, 0.5], "prior must have 2"),
        (np.eye(2), [0.2, 0.3], "prior must sum to 1"),
    ],
)
def test_wrong_matrices_get_one_sentence(matrices, prior, words):
    with pytest.raises(TrueupError, match=words) as caught:
        noise.Confusion(matrices, prior=prior)
    assert isinstance(caught.value, InvalidParameter)
    assert "\n" not in str(caught.value)


def test_matrices_must_fit_the_labels(labels):
    with pytest.raises(InvalidLabels, match="2 classes × 2 answers but the labels have 3 × 3"):
        noise.Confusion(np.eye(2)).posterior(labels)
    with pytest.raises(InvalidLabels, match="2 matrices but 3 labelers"):
        noise.Confusion(MATRICES[:2]).fit(labels)


def test_an_answer_that_was_held_impossible_does_not_break():
    labels = Labels.from_matrix([[0, 1]])
    got = noise.Confusion([np.eye(2), np.eye(2)]).posterior(labels)
    np.testing.assert_allclose(got, [[0.5, 0.5]])
