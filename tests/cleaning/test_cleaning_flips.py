"""Chances of true classes are Bayes' rule, and candidates are what can be learned from."""

import numpy as np
import pytest

from trueup.cleaning import flip_candidates, true_class_probabilities


def test_chances_are_the_rule_of_bayes():
    r01, r10, prior = 0.4, 0.1, np.array([0.3, 0.7])
    matrix = np.array([[1 - r01, r01], [r10, 1 - r10]])
    found = true_class_probabilities([1, 0], matrix, prior)
    flipped = r01 * prior[0] / (r01 * prior[0] + (1 - r10) * prior[1])  # Equation 21
    assert found[0, 0] == pytest.approx(flipped)
    assert found[1, 1] == pytest.approx(r10 * prior[1] / (r10 * prior[1] + (1 - r01) * prior[0]))
    rng = np.random.default_rng(0)
    matrices, prior, codes = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3)), [2, 0, 1, 1]
    joint = np.array([prior * matrix[:, code] for matrix, code in zip(matrices, codes, strict=True)])
    found = true_class_probabilities(codes, matrices, prior)
    assert found == pytest.approx(joint / joint.sum(axis=1, keepdims=True))


def test_clean_items_are_certain_and_impossible_labels_are_taken_as_they_are():
    matrices = np.array([np.eye(2), [[1.0, 0.0], [1.0, 0.0]]])
    assert true_class_probabilities([0, 1], matrices, [0.5, 0.5]).tolist() == [[1, 0], [0, 1]]


def test_candidates_by_enumeration():
    rng = np.random.default_rng(1)
    codes = np.array([0, 0, 1, 1, 1, 2])  # class 2 has one label, class 3 none
    chances = rng.dirichlet(np.ones(4), size=6)
    chances[0, 1] = 0
    found = flip_candidates(codes, chances, items=[0, 1, 2, 5])
    wanted = [
        (i, c)
        for i in range(6)
        for c in range(4)
        if i in (0, 1, 2, 5) and c != codes[i] and c != 3 and chances[i, c] > 0 and codes[i] != 2
    ]
    assert list(zip(found.item.tolist(), found.to.tolist(), strict=True)) == wanted
    assert found.of([1]).tolist() == [k for k, (i, _) in enumerate(wanted) if i == 1]
    assert len(found.select([0, 1])) == 2
