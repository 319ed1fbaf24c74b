"""Strategies against their definitions, worked out the long way, and what they achieve."""

import numpy as np
import pytest
from scipy import special
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.cleaning import UnbiasedScorer, expected_improvement, get_cleaning_strategy, noise_aware_probabilities
from trueup.cleaning.strategies import STRATEGIES
from trueup.noise.base import from_table, normalise

MATRICES = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.7, 0.3], [0.4, 0.6]]])


def mixed(n=240, seed=0, gap=2.0):
    """Two thirds of the labels from one labeler and the rest from a worse one, as in Section 6.3 of the paper."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += gap * truth
    who = (rng.random(n) > 2 / 3).astype(int)
    votes = np.full((n, 2), -1)
    votes[np.arange(n), who] = rng.random(n) < MATRICES[who, truth, 1]
    return X, truth, tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])


def session(X, labels, **options):
    return tu.CleaningAdvisor(LogisticRegression(), X, labels, noise=tu.noise.Confusion(MATRICES), **options)


def state_and_scores(name, **options):
    X, _, labels = mixed()
    state = session(X, labels).state
    return state, get_cleaning_strategy(name, **options).scores(state)


def test_noise_rate_by_the_theorem_of_bayes():
    state, scores = state_and_scores("noise-rate")
    for at, item in enumerate(state.train):
        who = int(state.problem.labels.votes[[item]].indices[0] // 2)
        y = state.y[at]
        wrong, right = MATRICES[who][1 - y, y], MATRICES[who][y, y]
        assert scores[at] == pytest.approx(wrong / (wrong + right))


def test_uncertainty_and_activeclean_by_their_formulas():
    state, scores = state_and_scores("uncertainty")
    p = state.model.predict_proba(state.features)
    assert scores == pytest.approx(1 - p.max(axis=1))
    _, scores = state_and_scores("activeclean")
    for at, x in enumerate(state.features):
        one = np.append(x, 1.0)
        before = np.outer(p[at] - np.eye(2)[state.y[at]], one)  # the gradient of the loss by the coefficients
        change = sum(p[at, c] * np.linalg.norm(np.outer(p[at] - np.eye(2)[c], one) - before) for c in range(2))
        assert scores[at] == pytest.approx(change)


def test_expected_error_by_retraining():
    state, scores = state_and_scores("expected-error")
    p = state.model.predict_proba(state.features)
    noisy = state.codes[state.validation]
    base = (state.model.predict(state.validation_features) == noisy).mean()
    for at in range(0, len(state.train), 9):
        y = state.y.copy()
        y[at] = 1 - y[at]
        other = LogisticRegression(tol=1e-8).fit(state.features, y)
        now = (other.predict(state.validation_features) == noisy).mean()
        assert scores[at] == pytest.approx(p[at, y[at]] * (now - base), abs=1e-9)


def test_hung_with_learned_noise_by_counting_again():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=60)
    votes = np.where(rng.random((60, 4)) < 0.75, truth[:, None], 1 - truth[:, None])
    votes[rng.random((60, 4)) < 0.3] = -1
    votes[(votes < 0).all(axis=1), 0] = 1
    labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
    X = rng.normal(size=(60, 2)) + truth[:, None]
    advisor = tu.CleaningAdvisor(LogisticRegression(), X, labels, strategy="hung", shortlist=8)
    told = {int(item): int(truth[item]) for item in advisor.ask(3)}
    advisor.tell(told)
    state = advisor.state
    scores = get_cleaning_strategy("hung").scores(state)
    gold = labels.with_gold(told)
    noise = tu.noise.DawidSkene().fit(gold)
    posterior = noise.posterior(gold)
    unknown = np.array([item not in told for item in range(60)])

    def total(table):
        confusion = normalise(from_table(gold.votes.T @ table, 2) + 0.01)
        logs = gold.votes @ np.log(confusion).transpose(0, 2, 1).reshape(-1, 2) + np.log(noise.prior_)
        return entropy(special.softmax(logs, axis=1), axis=1)

    before = total(posterior)[unknown].sum()
    best = np.argsort(-scores)[:8]
    for at in best:
        item = state.train[at]
        fall = 0.0
        for c in range(2):
            table = posterior.copy()
            table[item] = np.eye(2)[c]
            after = total(table)
            after[item] = 0.0
            fall += posterior[item, c] * (before - after[unknown].sum())
        assert scores[at] == pytest.approx(fall, abs=1e-9)
    rest = np.setdiff1d(np.flatnonzero(np.isfinite(scores)), best)
    assert scores[rest].max() < scores[best].min()


def test_emi_as_published():
    X, _, labels = mixed()
    state = session(X, labels).state
    chances = state.chances
    own = expected_improvement(
        LogisticRegression(), state.features, state.y, state.validation_features, state.scorer, chances, weigh=False
    )
    found = get_cleaning_strategy("emi", belief="votes").scores(state)
    u = 1 - state.model.predict_proba(state.features).max(axis=1)
    assert found[own.items] == pytest.approx(u[own.items] * special.expit(own.improvement))
    assert get_cleaning_strategy("emi", belief="votes", weigh=False).scores(state)[own.items] == pytest.approx(
        own.improvement
    )


def test_emi_with_features():
    X, _, labels = mixed()
    state = session(X, labels).state
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    believed = noise_aware_probabilities(scaled, state.codes, state.problem.matrices[state.group])
    scorer = UnbiasedScorer(state.codes[state.validation], np.eye(2))
    scorer.weights = believed[state.validation]
    own = expected_improvement(
        LogisticRegression(),
        state.features,
        state.y,
        state.validation_features,
        scorer,
        believed[state.train],
        weigh=False,
    )
    flips = 1 - believed[state.train, state.y]
    for scale in (1.0, 300.0):
        expected = flips[own.items] * own.uncertainty * special.expit(scale * own.improvement)
        found = get_cleaning_strategy("emi", scale=scale).scores(state)[own.items]
        assert found == pytest.approx(expected, rel=1e-6)
    half = get_cleaning_strategy("emi", scale=0.0).scores(state)[own.items]
    assert half == pytest.approx(flips[own.items] * own.uncertainty / 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_no_loss_is_ranked_before_a_gain(seed):
    """Losses that are more than noise come last, and a sentence names no change that is noise."""
    X, _, labels = mixed(seed=seed, gap=1.0)
    advisor = session(X, labels)
    state, found = advisor.state, get_cleaning_strategy("emi").improvement(advisor.state)
    asked = advisor.ask(len(found.items))
    place = {int(item): k for k, item in enumerate(found.items)}
    at = [place[int(np.searchsorted(state.train, item))] for item in asked]
    is_loss = (found.improvement < -2 * found.standard_error)[at]
    assert is_loss.any() or seed != 1
    assert (np.diff(is_loss.astype(int)) >= 0).all()
    scores = np.array([one.score for one in asked.details])
    assert (np.diff(scores) <= 1e-12).all()
    assert ((scores < 0) == is_loss).all()
    is_clear = (np.abs(found.improvement) > 2 * found.standard_error)[at]
    named = np.array(["expected to change the accuracy by" in one.why for one in asked.details])
    assert (named == is_clear).all()
    assert not any("by -" in one.why for one in asked.details[:10])


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_what_is_clean_is_never_wanted(name):
    X, truth, labels = mixed(120)
    advisor = session(X, labels, strategy=name)
    told = {item: int(truth[item]) for item in advisor.ask(10)}
    advisor.tell(told)
    scores = get_cleaning_strategy(name).scores(advisor.state)
    clean = np.isin(advisor.state.train, list(told))
    assert (scores[clean] == -np.inf).all()
    assert np.isfinite(scores[~clean]).all()


@pytest.mark.parametrize("name", ["emi", "noise-rate", "uncertainty", "activeclean", "expected-error"])
def test_order_of_items_does_not_matter(name):
    X, _, labels = mixed(90)
    order = np.random.default_rng(0).permutation(90)
    mask = np.arange(90) % 3 == 0
    here = session(X, labels, validation=mask, strategy=name)
    votes = np.full((90, 2), -1)
    item, who, answer, _ = labels.vote_table()
    votes[item, who] = answer
    moved = tu.Labels.from_matrix(votes[order], missing=-1, classes=[0, 1])
    there = session(X[order], moved, validation=mask[order], strategy=name)
    back = np.argsort(order)
    mine, theirs = np.full(90, -np.inf), np.full(90, -np.inf)
    strategy = get_cleaning_strategy(name)
    mine[here.state.train] = strategy.scores(here.state)
    theirs[there.state.train] = strategy.scores(there.state)
    assert theirs[back][~mask] == pytest.approx(mine[~mask], rel=1e-4, abs=1e-6)


def learning_curve(strategy, seed, n_clean, **options):
    X, truth, labels = mixed(400, seed=seed)
    fresh, target, _ = mixed(1000, seed=seed + 500)
    advisor = session(X, labels, strategy=strategy, random_state=seed, **options)
    found = [advisor.model_.score(fresh, target)]
    while advisor.n_cleaned < n_clean:
        advisor.tell({item: int(truth[item]) for item in advisor.ask(5)})
        found.append(advisor.model_.score(fresh, target))
    return np.mean(found)


@pytest.mark.slow
def test_emi_is_at_least_level_with_every_other_strategy():
    curves = {name: np.array([learning_curve(name, seed, 100) for seed in range(15)]) for name in STRATEGIES}
    for name in sorted(set(STRATEGIES) - {"emi"}):
        apart = curves["emi"] - curves[name]
        assert apart.mean() > -1.7 * apart.std(ddof=1) / np.sqrt(len(apart)), name
    assert curves["emi"].mean() > np.mean([values.mean() for name, values in curves.items() if name != "emi"])
