"""One formula of each paper, and often more, against numbers that were worked out by hand from the paper's text."""

import numpy as np
import pytest

import trueup as tu
from trueup import estimators
from trueup.active.influence import expected_average_precision, expected_change, expected_precision_at_k
from trueup.cleaning.flips import true_class_probabilities


def test_su_equation_10():
    # p_D = 0.8, p_FA = 0.3, π(1) = 0.2, p(z | 1) = 0.9, p(z | 0) = 0.4; predicted 1: 0.8·0.9·0.2 against 0.3·0.4·0.8.
    problem = estimators.Problem([1, 0], np.log([[0.4, 0.9], [0.4, 0.9]]), [0.8, 0.2])
    chances = estimators.class_posterior(problem, [[0.7, 0.3], [0.2, 0.8]])[:, 1]
    np.testing.assert_allclose(chances, [0.144 / (0.144 + 0.096), 0.036 / (0.036 + 0.224)])


def test_su_equation_21_is_10_without_the_prediction():
    problem = estimators.Problem([1], np.log([[0.4, 0.9]]), [0.8, 0.2])
    assert estimators.class_posterior(problem)[0, 1] == pytest.approx(0.18 / (0.18 + 0.32))


def test_lam_and_stork_error_and_worth_of_a_label():
    # e = 0.1, ε = 0.05: A = 0.15 − 0.01 = 0.14, and 0.14·0.86 / (0.9²·0.1·0.9) noisy labels for a perfect one.
    assert tu.rates.apparent_error(error=0.1, mislabeling=0.05) == pytest.approx(0.14)
    assert tu.rates.true_error(apparent=0.14, mislabeling=0.05).value == pytest.approx(0.1)
    worth = tu.rates.noisy_labels_per_perfect(error=0.1, mislabeling=0.05)
    assert worth == pytest.approx(0.1204 / (0.81 * 0.09))
    np.testing.assert_allclose(tu.rates.error_bounds(apparent=0.14, mislabeling=0.05), (0.1, 0.19))


def test_lam_and_stork_confusion_matrices():
    # L = (0.9, 0.1; 0.2, 0.8), π = (0.5, 0.5), M = (0.7, 0.3; 0.4, 0.6): J[0, 0] = 0.5·0.9·0.7 + 0.5·0.2·0.4.
    labels, model = [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]]
    joint = tu.rates.joint_distribution(labeler=labels, confusion=model, prior=[0.5, 0.5])
    np.testing.assert_allclose(joint, [[0.355, 0.195], [0.195, 0.255]])
    np.testing.assert_allclose(tu.rates.recover_confusion(joint=joint, labeler=labels).confusion, model)


def test_urkullu_probability_of_an_item_has_half_a_vote_more():
    # (Σl + ½)/(n + 1): one of one vote is 0.75, four of four are 0.9, none of four 0.1; so the first two are a pair.
    votes = np.array([[1, -1, -1, -1], [1, 1, 1, 1], [0, 0, 0, 0]])
    labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
    concordance = estimators.probabilistic(labels, [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [1.0, 1.0, 0.0]]).values
    np.testing.assert_allclose(concordance, [1.0, 2 / 3, 5 / 6])


def test_nguyen_equations_8_and_11():
    # k = 2: one vetted positive and p = 0.5. Vetting the second changes the estimate by 0.25 either way.
    assert expected_precision_at_k([1.0, 0.5, 0.9], [3, 2, 1], k=2) == pytest.approx(0.75)
    np.testing.assert_allclose(expected_change([1.0, 0.5], [0.5, 0.5]), [0.0, 2 / 2 * 0.25])


def test_nguyen_equation_9_put_right():
    # N_p = 1: Σ_k p_k (1 + Σ_{i<k} p_i)/k = 0.5 + 0.5·1.5/2; as printed it would be 0.5² + 0.5·1/2.
    assert expected_average_precision([0.5, 0.5], [2, 1], n_positives=1) == pytest.approx(0.875)


def test_dolatshah_equation_7():
    # r(+1, −1) = 0.2, r(−1, +1) = 0.1; the loss is 1 for a noisy +1: ((1 − 0.1)·1 − 0.2·0) / 0.7, for a −1 −0.1 / 0.7.
    weights = estimators.inverse_weights([[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(weights @ [0.0, 1.0], [-0.1 / 0.7, 0.9 / 0.7])


def test_dolatshah_equation_21():
    # r(−1, +1) = 0.4, P(−1) = 0.5, r(+1, +1) = 0.8: a noisy +1 is a −1 with probability 0.2 / (0.2 + 0.4).
    chances = true_class_probabilities([1], [[0.6, 0.4], [0.2, 0.8]], [0.5, 0.5])
    np.testing.assert_allclose(chances, [[1 / 3, 2 / 3]])
