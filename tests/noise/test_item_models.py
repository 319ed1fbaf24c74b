"""Models in which items differ: GLAD, Difficulty, Subtypes."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import spearmanr

from trueup import Labels, noise, simulate
from trueup.exceptions import InvalidLabels, InvalidParameter, NotFitted
from trueup.noise.subtypes import kinds_of_classes
from trueup.testing.noise import example_labels

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


def test_glad_gives_a_fixed_prior_back():
    labels = Labels.from_matrix(glad_data(n_items=60)[0])
    np.testing.assert_allclose(noise.GLAD(prior=[0.2, 0.5, 0.3], tol=1e-3).fit(labels).prior_, [0.2, 0.5, 0.3])
    np.testing.assert_allclose(noise.GLAD(tol=1e-3).fit(labels).prior_, np.full(3, 1 / 3))
    with pytest.raises(InvalidParameter, match="did you mean 'learn'"):
        noise.GLAD(prior="laern").fit(labels)
    with pytest.raises(InvalidParameter, match="prior must have 3"):
        noise.GLAD(prior=[0.5, 0.5]).fit(labels)


# ---------------------------------------------------------------------- Difficulty


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


def test_an_infallible_labeler_on_an_easy_item_is_believed():
    labels = Labels.from_matrix([[0, 1], [1, 1]])
    got = noise.Difficulty(difficulty=[0, 0], fallibility=[0, 1]).posterior(labels)
    np.testing.assert_allclose(got, [[1, 0], [0, 1]], atol=1e-12)


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


def test_difficulty_is_learned_in_order():
    data = simulate.su(n_items=500, n_labelers=20, fallibility=(0.0, 0.9), participation=1.0, random_state=0)
    model = noise.Difficulty().fit(data.labels)
    assert model.converged_
    assert spearmanr(model.fallibility_, data.parameters["fallibility"]).statistic > 0.9
    assert spearmanr(model.difficulty_, data.parameters["difficulty"]).statistic > 0.5
    assert np.diff(model.loss_history_).max() < 1e-10


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


# ---------------------------------------------------------------------- Subtypes


@pytest.fixture(scope="module")
def dependent():
    return simulate.dependent(
        n_items=800, n_labelers=7, subtype_weights=(0.6, 0.4), subtype_accuracy=(0.95, 0.55), random_state=0
    )


def test_subtypes_predict_votes_better_where_labelers_err_together(dependent):
    scores = [
        noise.heldout_scores(model, dependent.labels) for model in (noise.Subtypes(n_subtypes=2), noise.DawidSkene())
    ]
    gain = scores[0] - scores[1]
    assert np.mean(gain) > 4 * np.std(gain) / np.sqrt(len(gain))


def test_subtypes_are_distributions(dependent):
    model = noise.Subtypes(n_subtypes=3).fit(dependent.labels)
    assert model.n_subtypes_ == 3
    assert model.state_class_.shape == (6, 2)
    assert model.state_confusion_.shape == (7, 6, 2)
    for table in (model.state_class_, model.state_confusion_, model.confusion_, model.pooled_):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    assert model.state_prior_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.prior_, model.state_prior_ @ model.state_class_)


def test_votes_are_as_likely_by_classes_as_by_states(dependent):
    model = noise.Subtypes(n_subtypes=2).fit(dependent.labels)
    by_class = logsumexp(model.log_likelihood(dependent.labels) + np.log(model.prior_), axis=1)
    by_state = logsumexp(model.state_log_likelihood(dependent.labels) + np.log(model.state_prior_), axis=1)
    np.testing.assert_allclose(by_class, by_state, rtol=1e-9)


@pytest.mark.parametrize("pooling", [0.5, 2.0, 10.0])
def test_one_subtype_is_dawid_skene(pooling):
    labels = simulate.dawid_skene(n_items=600, n_classes=3, n_labelers=6, random_state=4).labels
    one = noise.Subtypes(n_subtypes=1, pooling=pooling).fit(labels)
    other = noise.DawidSkene(pooling=pooling).fit(labels)
    np.testing.assert_allclose(one.confusion_, other.confusion_, atol=5e-3)
    np.testing.assert_allclose(one.posterior(labels), other.posterior(labels), atol=1e-2)
    np.testing.assert_allclose(one.prior_, other.prior_, atol=5e-3)


def test_the_number_of_subtypes_is_chosen(dependent):
    independent = simulate.dawid_skene(n_items=800, n_labelers=7, random_state=0)
    assert noise.Subtypes().fit(dependent.labels).n_subtypes_ > 1
    assert noise.Subtypes().fit(independent.labels).n_subtypes_ == 1
    assert noise.Clusters().fit(dependent.labels).n_extra_ == 2
    assert noise.Clusters().fit(independent.labels).n_extra_ == 0


def test_extra_clusters_need_not_be_as_many_as_classes():
    assert kinds_of_classes(3, 4).tolist() == [3, 2, 2]
    labels, truth = example_labels()
    model = noise.Clusters(n_extra=4)
    model._choose_extra = lambda _: 4
    model.fit(labels)
    assert model.state_confusion_.shape == (7, 7, 3)
    np.testing.assert_allclose(model.state_class_.sum(axis=1), 1.0)
    assert (model.posterior(labels).argmax(axis=1) == truth).mean() > 0.8


def test_gold_turns_a_contrary_crowd_around_with_subtypes_too():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    labels = Labels.from_matrix(np.where(rng.random((400, 5)) < 0.2, truth[:, None], 1 - truth[:, None]))
    gold = labels.with_gold({i: int(truth[i]) for i in range(200)})
    found = noise.Subtypes(n_subtypes=2).fit(gold).posterior(gold)[200:].argmax(axis=1)
    assert (found == truth[200:]).mean() > 0.9


@pytest.mark.parametrize("parameters", [{"n_subtypes": 0}, {"pooling": -1}, {"n_starts": 0}, {"max_iter": 0}])
def test_subtypes_checks_its_parameters(parameters, dependent):
    with pytest.raises(InvalidParameter, match=next(iter(parameters))):
        noise.Subtypes(**{"n_subtypes": 2, **parameters}).fit(dependent.labels)
