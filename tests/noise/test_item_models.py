"""Models in which items differ: GLAD, Difficulty."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import spearmanr

from trueup import Labels, noise, simulate
from trueup.exceptions import InvalidLabels, InvalidParameter, NotFitted

# ---------------------------------------------------------------------- GLAD


def glad_data(n_items=400, n_labelers=25, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    ability, easiness = rng.uniform(-0.2, 2.5, n_labelers), np.exp(rng.normal(0, 1, n_items))
    p = 1 / (1 + np.exp(-easiness[:, None] * ability))
    wrong = (truth[:, None] + rng.integers(1, n_classes, size=p.shape)) % n_classes
    votes = np.where(rng.random(p.shape) < p, truth[:, None], wrong)
    return votes, truth, ability, easiness


def glad_loss(votes, ability, easiness, gold, n_classes=3):
    """Negative log-joint a vote, item by item."""
    total = 0.0
    for i, row in enumerate(votes):
        p = 1 / (1 + np.exp(-ability * easiness[i]))
        joint = [
            sum(np.log(p[t]) if a == y else np.log((1 - p[t]) / (n_classes - 1)) for t, a in enumerate(row))
            - np.log(n_classes)
            for y in range(n_classes)
        ]
        total += joint[gold[i]] if i in gold else logsumexp(joint)
    total -= 0.5 * ((ability - 1) ** 2).sum() + 0.5 * ((np.log(easiness) - 1) ** 2).sum()
    return -total / votes.size


@pytest.mark.parametrize("n_gold", [0, 30])
def test_glad_ends_where_its_objective_has_no_slope(n_gold):
    votes, truth, _, _ = glad_data(n_items=60, n_labelers=6)
    gold = {i: int(truth[i]) for i in range(n_gold)}
    labels = Labels.from_matrix(votes, classes=[0, 1, 2]).with_gold(gold)
    model = noise.GLAD(tol=1e-10, max_iter=2000).fit(labels)
    best = glad_loss(votes, model.ability_, model.easiness_, gold)
    assert model.loss_history_[-1] == pytest.approx(best, rel=1e-9)
    for k in range(6):
        for step in (-0.05, 0.05):
            ability, easiness = model.ability_.copy(), model.easiness_.copy()
            ability[k] += step
            assert glad_loss(votes, ability, easiness, gold) > best
            easiness[7 * k] *= np.exp(step)
            assert glad_loss(votes, model.ability_, easiness, gold) > best


def test_glad_finds_able_labelers_and_easy_items():
    votes, truth, ability, easiness = glad_data()
    labels = Labels.from_matrix(votes)
    model = noise.GLAD().fit(labels)
    assert spearmanr(model.ability_, ability).statistic > 0.95
    assert spearmanr(model.easiness_, easiness).statistic > 0.6
    assert np.diff(model.loss_history_).max() < 1e-6
    found = (model.posterior(labels).argmax(axis=1) == truth).mean()
    majority = (noise.Majority().fit(labels).posterior(labels).argmax(axis=1) == truth).mean()
    assert found >= majority


@pytest.mark.parametrize("n_classes", [2, 4])
def test_likelihood_of_known_difficulty_by_hand(n_classes):
    rng = np.random.default_rng(0)
    votes = rng.integers(n_classes, size=(6, 3))
    votes[2, 1] = -1
    delta, phi = rng.random(6), rng.random(3)
    labels = Labels.from_matrix(votes, classes=list(range(n_classes)))
    expected = np.zeros((6, n_classes))
    for i in range(6):
        for t in range(3):
            if votes[i, t] < 0:
                continue
            error = (delta[i] - delta[i] * phi[t] + phi[t]) * (n_classes - 1) / n_classes
            for y in range(n_classes):
                expected[i, y] += np.log(1 - error if votes[i, t] == y else error / (n_classes - 1))
    prior = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    model = noise.Difficulty(difficulty=delta, fallibility=phi, prior=prior)
    np.testing.assert_allclose(model.log_likelihood(labels), expected, rtol=1e-9)
    joint = prior * np.exp(expected)
    np.testing.assert_allclose(model.posterior(labels), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    named = noise.Difficulty(
        difficulty=dict(zip(range(5, -1, -1), delta[::-1], strict=True)),
        fallibility={2: phi[2], 0: phi[0], 1: phi[1]},
        prior=prior,
    )
    np.testing.assert_allclose(named.log_likelihood(labels), expected, rtol=1e-9)


def test_difficulty_checks_its_parameters():
    labels = Labels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InvalidParameter, match="both or neither"):
        noise.Difficulty(difficulty=[0.1])
    with pytest.raises(InvalidParameter, match=r"difficulty must be numbers in \[0, 1\]"):
        noise.Difficulty(difficulty=[1.2, 0], fallibility=[0, 0])
    with pytest.raises(InvalidParameter, match="prior must be positive for every class"):
        noise.Difficulty(difficulty=[0, 0], fallibility=[0, 0], prior=[1, 0])
    with pytest.raises(InvalidLabels, match="difficulty must have 2 values"):
        noise.Difficulty(difficulty=[0.1], fallibility=[0, 0]).posterior(labels)
    with pytest.raises(InvalidLabels, match="not for 1"):
        noise.Difficulty(difficulty={0: 0.1}, fallibility=[0, 0]).fit(labels)
    with pytest.raises(NotFitted):
        noise.Difficulty().posterior(labels)


@pytest.mark.parametrize("n_gold", [0, 80])
def test_the_loss_of_difficulty_by_hand(n_gold):
    data = simulate.su(n_items=100, n_labelers=6, participation=1.0, random_state=1)
    gold = {i: int(data.truth[i]) for i in range(n_gold)}
    labels = data.labels.with_gold(gold)
    model = noise.Difficulty(tol=1e-9, max_iter=3000).fit(labels)
    joint = model.log_likelihood(labels) + np.log(model.prior_)
    evidence = logsumexp(joint, axis=1)
    for i, y in gold.items():
        evidence[i] = joint[i, y]
    parameters = np.concatenate([model.difficulty_, model.fallibility_])
    log_prior = (0.2 * np.log(parameters) + 1.0 * np.log1p(-parameters)).sum()
    assert model.loss_history_[-1] == pytest.approx(-(evidence.sum() + log_prior) / labels.n_votes, rel=1e-6)
