"""Consolidated labels: their confusion matrices against enumeration, closed forms and a second algorithm."""

import itertools

import numpy as np
import pytest

import trueup as tu
from trueup.estimators import consolidate, consolidated_confusion
from trueup.exceptions import InvalidLabels, InvalidParameter, NotFitted


def brute_force(matrices: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """By definition: every combination of votes, the first of the most probable classes."""
    n_classes = matrices.shape[1]
    found = np.zeros((n_classes, n_classes))
    for votes in itertools.product(range(matrices.shape[2]), repeat=len(matrices)):
        chances = np.prod([matrix[:, vote] for matrix, vote in zip(matrices, votes, strict=True)], axis=0)
        scores = np.log(prior) + np.log(chances)
        found[:, int(np.argmax(scores >= scores.max() - 1e-9))] += chances
    return found


def random_matrices(k: int, n_classes: int, seed: int, n_answers: int | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    width = n_classes if n_answers is None else n_answers
    mixed = 0.6 * rng.dirichlet(np.ones(width), size=(k, n_classes)) + 0.4 * np.eye(n_classes, width)
    return mixed / mixed.sum(axis=2, keepdims=True)


def symmetric(right: float) -> np.ndarray:
    return np.array([[right, 1 - right], [1 - right, right]])


@pytest.mark.parametrize("k", range(1, 11))
def test_two_classes_equal_brute_force(k):
    matrices, prior = random_matrices(k, 2, seed=k), np.array([0.35, 0.65])
    found = consolidated_confusion(matrices, prior)
    assert found.how == "exact"
    np.testing.assert_allclose(found.matrix, brute_force(matrices, prior), atol=1e-12)


@pytest.mark.parametrize(("n_classes", "n_answers", "k"), [(3, 3, 5), (4, 4, 4), (3, 4, 4), (2, 3, 6), (2, 4, 5)])
def test_more_classes_and_abstentions_equal_brute_force(n_classes, n_answers, k):
    matrices = random_matrices(k, n_classes, seed=7, n_answers=n_answers)
    prior = np.random.default_rng(1).dirichlet(np.full(n_classes, 4.0))
    np.testing.assert_allclose(consolidated_confusion(matrices, prior).matrix, brute_force(matrices, prior), atol=1e-12)


def test_25_different_labelers_are_exact_and_agree_with_draws():
    matrices, prior = random_matrices(25, 2, seed=5), [0.45, 0.55]
    exact = consolidated_confusion(matrices, prior)
    assert (exact.how, exact.error) == ("exact", 0.0)
    drawn = consolidated_confusion(matrices, prior, max_numbers=64, n_draws=200_000, random_state=6)
    assert drawn.how == "draws"
    assert np.abs(exact.matrix - drawn.matrix).max() < 4 * drawn.error < 0.01


def test_drawn_matrices_are_as_far_off_as_they_say():
    matrices, prior = random_matrices(6, 3, seed=9), [0.3, 0.3, 0.4]
    exact = consolidated_confusion(matrices, prior)
    drawn = [
        consolidated_confusion(matrices, prior, max_numbers=16, n_draws=2000, random_state=seed) for seed in range(60)
    ]
    assert exact.how == "exact"
    assert {one.how for one in drawn} == {"draws"}
    errors = np.array([one.matrix for one in drawn]) - exact.matrix
    stated = np.mean([one.error for one in drawn])
    assert np.abs(errors.mean(axis=0)).max() < 4 * stated / np.sqrt(60)
    assert errors.std(axis=0).max() == pytest.approx(stated, rel=0.3)  # of the entry that is known worst
    assert stated < 0.02
    again = consolidated_confusion(matrices, prior, max_numbers=16, n_draws=2000, random_state=3)
    np.testing.assert_array_equal(drawn[3].matrix, again.matrix)


@pytest.mark.parametrize(("n_classes", "k", "alike"), [(2, 5, False), (2, 4, True), (3, 3, False), (3, 3, True)])
def test_labels_and_matrices_come_from_one_rule(n_classes, k, alike):
    """Every combination of votes is an item: the chances of those labelled c must sum to column c, ties and all."""
    matrices = random_matrices(k, n_classes, seed=11)
    if alike:  # symmetric and alike, so that many combinations tie
        right = 0.7
        one = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
        np.fill_diagonal(one, right)
        matrices = np.tile(one, (k, 1, 1))
    prior = np.full(n_classes, 1 / n_classes)
    votes = np.array(list(itertools.product(range(n_classes), repeat=k)))
    labels = tu.Labels.from_matrix(votes, classes=range(n_classes))
    found = consolidate(labels, tu.noise.Confusion(matrices, prior=prior))
    assert len(found.matrices) == 1
    for y in range(n_classes):
        chances = np.prod([matrices[t, y, votes[:, t]] for t in range(k)], axis=0)
        column_sums = np.bincount(found.codes, chances, n_classes)
        np.testing.assert_allclose(found.matrices[0, y], column_sums, atol=1e-12)


def test_each_item_has_the_matrix_of_its_voters():
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=9, votes_per_item=3, random_state=0)
    noise = tu.noise.Confusion(sim.parameters["confusion"], prior=[0.4, 0.6])
    found = consolidate(sim.labels, noise)
    item, labeler, _, _ = sim.labels.vote_table()
    for i in range(60):
        mine = labeler[item == i]
        expected = brute_force(noise.confusion_[mine], noise.prior_)
        np.testing.assert_allclose(found.matrix_of(i), expected, atol=1e-12)
    # The label is what the noise model finds most probable.
    np.testing.assert_array_equal(found.codes, noise.posterior(sim.labels).argmax(axis=1))


@pytest.mark.filterwarnings("ignore::trueup.exceptions.DataWarning")
def test_gold_is_exact_and_an_item_without_votes_has_no_label():
    labels = tu.Labels.from_matrix([[0, 0], [-1, -1], [1, 1]]).with_gold({2: 0})
    found = consolidate(labels, tu.noise.Confusion(symmetric(0.8)))
    assert found.codes.tolist() == [0, -1, 0]
    np.testing.assert_array_equal(found.matrix_of(2), np.eye(2))
    with pytest.raises(InvalidParameter, match="no votes"):
        found.matrix_of(1)


def test_wrong_input_is_refused_in_one_sentence():
    labels = tu.Labels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InvalidParameter, match="got GLAD; pass `noise="):
        consolidate(labels, tu.noise.GLAD())
    with pytest.raises(NotFitted):
        consolidate(labels, tu.noise.DawidSkene())
    with pytest.raises(InvalidParameter, match="rule"):
        consolidate(labels, tu.noise.Confusion(symmetric(0.8)), rule="max")
    with pytest.raises(InvalidLabels, match="3 matrices but 2 labelers"):
        consolidate(labels, tu.noise.Confusion([symmetric(0.8)] * 3))
    with pytest.raises(InvalidParameter, match="shape"):
        consolidated_confusion(symmetric(0.8), [0.5, 0.5])
    with pytest.raises(InvalidParameter, match="times"):
        consolidated_confusion([symmetric(0.8)], [0.5, 0.5], times=[0])
    with pytest.raises(InvalidParameter, match="sum to 1"):
        consolidated_confusion([symmetric(0.8)], [0.5, 0.6])
