"""Nguyen's learned estimator: equation 13 by hand, recovery of known rates, and what is said before any fit."""

import numpy as np
import pytest
from scipy.special import expit

from trueup.active.estimators import flip_rates, learned_probabilities
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

HIT, FALSE_ALARM = 0.38, 0.01  # of tags on NUS-WIDE, as the paper cites them


def tagging(seed, n=4000, n_vetted=2000):
    """Items whose truth depends on the score, and whose labels are flipped at known rates."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    chance = expit(2 * scores - 1)
    truth = (rng.random(n) < chance).astype(int)
    noisy = (rng.random(n) < np.where(truth == 1, HIT, FALSE_ALARM)).astype(int)
    vetted = np.zeros(n, dtype=bool)
    vetted[rng.permutation(n)[:n_vetted]] = True
    return noisy, scores, vetted, truth, chance


def bayes(noisy, chance):
    """P(positive) with the rates and the chance known."""
    likelihood = np.where(noisy[:, None] == 1, [FALSE_ALARM, HIT], [1 - FALSE_ALARM, 1 - HIT])
    joint = likelihood * np.stack([1 - chance, chance], axis=1)
    return joint[:, 1] / joint.sum(axis=1)


class Fixed:
    """A classifier that says what it was told."""

    def __init__(self, chance=0.3):
        self.chance = chance

    def get_params(self, deep=True):
        return {"chance": self.chance}

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.chance, self.chance], (X.shape[0], 1))


def test_equation_13_by_hand():
    noisy = np.array([1, 1, 0, 0, 0, 1, 0])
    truth = np.array([1, 0, 1, 0, 0, -1, -1])
    vetted = truth >= 0
    found = learned_probabilities(noisy, np.arange(7.0), vetted, truth, classifier=Fixed(0.3), smoothing=0)
    # counted: p(y=1|z=1) = 1/2, p(y=1|z=0) = 1/3
    labeled = 0.5 * 0.3 / (0.5 * 0.3 + 1 / 3 * 0.7)
    unlabeled = 0.5 * 0.3 / (0.5 * 0.3 + 2 / 3 * 0.7)
    assert found == pytest.approx([1, 0, 1, 0, 0, labeled, unlabeled])


def test_known_rates_and_probabilities_are_recovered():
    noisy, scores, vetted, truth, chance = tagging(0)
    rates = flip_rates(noisy, vetted, truth, np.zeros(len(noisy), dtype=int), smoothing=1.0)[0]
    n_positive = truth[vetted].sum()
    assert abs(rates[1, 1] - HIT) < 4 * np.sqrt(HIT * (1 - HIT) / n_positive)
    assert abs(rates[0, 1] - FALSE_ALARM) < 4 * np.sqrt(FALSE_ALARM / (vetted.sum() - n_positive))
    found = learned_probabilities(noisy, scores, vetted, truth)
    assert np.abs(found - bayes(noisy, chance))[~vetted].mean() < 0.02
    assert found[vetted].tolist() == truth[vetted].tolist()


def test_categories_have_rates_of_their_own_and_lean_on_each_other():
    noisy = np.array([1] * 8 + [0] * 8 + [1])
    truth = np.array([1] * 8 + [1] * 8 + [1])
    categories = np.array([0] * 8 + [1] * 8 + [2])
    rates = flip_rates(noisy, np.ones(17, dtype=bool), truth, categories, smoothing=2)
    pooled = (9 + 2 * 0.75) / (17 + 2)
    assert rates[:, 1, 1] == pytest.approx([(8 + 2 * pooled) / 10, 2 * pooled / 10, (1 + 2 * pooled) / 3])
    assert rates.sum(axis=2) == pytest.approx(np.ones((3, 2)))


@pytest.mark.parametrize("case", ["nothing vetted", "one class vetted", "one class at all"])
def test_there_is_an_answer_from_the_start(case):
    noisy, scores, vetted, truth, _ = tagging(5, n=200, n_vetted=20)
    if case == "nothing vetted":
        vetted[:] = False
    elif case == "one class vetted":
        truth[vetted] = 0
    else:
        truth[vetted], noisy = 0, np.zeros_like(noisy)
    found = learned_probabilities(noisy, scores, vetted, truth)
    rest = ~vetted
    assert np.isfinite(found).all()
    assert found[rest].min() > 0
    assert found[rest].max() < 1
    if case != "one class at all":
        assert found[rest & (noisy == 1)].min() > found[rest & (noisy == 0)].mean()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"noisy": [0, 2]}, InvalidLabels, "noisy must be 1"),
        ({"truth": [3, 0]}, InvalidLabels, "truth must be 1"),
        ({"vetted": [True]}, InvalidParameter, "one for each item"),
        ({"scores": [0.1]}, InvalidPredictions, "one for each of 2"),
        ({"scores": [0.1, np.inf]}, InvalidPredictions, "finite"),
        ({"classifier": "svm"}, InvalidParameter, "predict_proba"),
        ({"categories": [0, -1]}, InvalidParameter, "categories must be codes"),
        ({"smoothing": -1}, InvalidParameter, "smoothing"),
    ],
    ids=["noisy", "truth", "vetted", "length", "infinite", "classifier", "categories", "smoothing"],
)
def test_bad_input(change, error, words):
    given = {"noisy": [0, 1], "scores": [0.1, 0.9], "vetted": [True, False], "truth": [0, 0], **change}
    with pytest.raises(error, match=words):
        learned_probabilities(given.pop("noisy"), given.pop("scores"), given.pop("vetted"), given.pop("truth"), **given)
