"""SoftTruth: the truth of an item is a distribution over the classes."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import dirichlet_multinomial, kendalltau, rankdata

from trueup import noise, simulate
from trueup.exceptions import InvalidParameter
from trueup.noise.base import as_table
from trueup.noise.soft_truth import _Stage, labeler_spread, learn_shape, polya_weights, simplex_lattice
from trueup.testing.noise import NOISE_CHECKS, example_labels


@pytest.mark.parametrize("check", NOISE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("parameters", [{"shape": 0.01}, {"shape": 1.0, "pooling": 0}], ids=["hard", "even"])
def test_contract_of_variants(check, parameters):
    check(lambda: noise.SoftTruth(**parameters))


@pytest.fixture(scope="module")
def soft():
    return simulate.urkullu(n_items=800, labels_per_item=20, labels_per_labeler=30, case="good", random_state=0)


@pytest.fixture(scope="module")
def hard():
    return simulate.dawid_skene(n_items=600, n_labelers=8, random_state=0)


@pytest.fixture(scope="module")
def fitted(soft):
    return noise.SoftTruth().fit(soft.labels)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8, 10])
def test_lattice_holds_every_multiple_once(n_classes):
    lattice = simplex_lattice(n_classes)
    steps = round(1 / lattice[lattice > 0].min())
    counts = itertools.product(range(steps + 1), repeat=n_classes - 1)
    wanted = {(*c, steps - sum(c)) for c in counts if sum(c) <= steps}
    assert {tuple(np.round(row * steps).astype(int)) for row in lattice} == wanted
    assert len(lattice) == len(wanted) <= 60
    assert steps >= 2
    assert (np.sort(lattice[lattice.max(axis=1) == 1].argmax(axis=1)) == np.arange(n_classes)).all()


def test_weights_are_the_dirichlet_multinomial():
    lattice, shape = simplex_lattice(3), np.array([0.2, 1.0, 3.0])
    wanted = dirichlet_multinomial.pmf(np.round(lattice * 9).astype(int), shape, 9)
    weights = polya_weights(lattice, shape)
    assert np.allclose(weights, wanted)
    assert np.allclose(weights @ lattice, shape / shape.sum())


@pytest.mark.parametrize("shape", [(0.4, 0.9, 0.1), (3.0, 1.0, 2.0)])
def test_shape_is_learned_from_states(shape):
    lattice, truth = simplex_lattice(3), np.array(shape)
    counts = 500 * polya_weights(lattice, truth)
    guess, last = np.ones(3), -np.inf
    for _ in range(400):
        likelihood = counts @ np.log(polya_weights(lattice, guess))
        assert likelihood >= last - 1e-9
        guess, last = learn_shape(lattice, counts, guess), likelihood
    assert np.allclose(guess, truth, rtol=0.02)


def brute_states(model, labels):
    """P(votes, state) item by item and vote by vote, gold left out."""
    joint = np.zeros((labels.n_items, len(model.lattice_)))
    for i, row in enumerate(labels.votes.toarray()):
        for g, rho in enumerate(model.lattice_):
            joint[i, g] = np.log(model.state_prior_[g])
            for column in np.flatnonzero(row):
                labeler, answer = divmod(column, labels.n_answers)
                joint[i, g] += row[column] * np.log(rho @ model.confusion_[labeler, :, answer])
    return joint


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_posteriors_by_enumeration(n_classes, engine, monkeypatch):
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_ENGINE", engine)
    labels, truth = example_labels(n_items=40, n_classes=n_classes)
    labels = labels.with_gold({3: int(truth[3]), 8: int(truth[8])})
    model = noise.SoftTruth().fit(labels)
    joint = brute_states(model, labels)
    states = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    for i in (3, 8):
        states[i] = (model.lattice_ == np.eye(n_classes)[truth[i]]).all(axis=1)
    assert np.allclose(model.state_posterior(labels), states)
    assert np.allclose(model.posterior(labels), states @ model.lattice_)
    # Bayes' rule the other way round, through p(votes | class).
    evidence = logsumexp(model.log_likelihood(labels) + np.log(model.prior_), axis=1)
    assert np.allclose(evidence, logsumexp(joint, axis=1))
    plain = labels.without_gold()
    assert np.allclose(noise.NoiseModel.posterior(model, plain), model.posterior(plain))


def test_the_maximisation_by_loops():
    labels, _ = example_labels(n_items=15, n_labelers=4, n_classes=2)
    lattice, rng = simplex_lattice(2), np.random.default_rng(0)
    table = rng.dirichlet([2, 2], size=(4, 2)).transpose(0, 2, 1)  # labeler, answer, class
    pooled, strength = rng.dirichlet([2, 2], size=2).T, 3.0
    n_votes = np.asarray(labels.votes.sum(axis=0)).reshape(4, 2, 1)
    stage = _Stage(labels, lattice, n_votes, table, pooled, np.ones(2), strength)
    states = rng.dirichlet(np.ones(len(lattice)), size=labels.n_items)
    got, _, log_prior = stage.maximise(np.asarray(labels.votes.T @ states), states.sum(axis=0))
    seen, said = np.zeros((4, 2, 2)), np.zeros((4, 2))
    for i, row in enumerate(labels.votes.toarray()):
        for column in np.flatnonzero(row):
            t, a = divmod(column, 2)
            said[t, a] += 1
            for g, rho in enumerate(lattice):
                share = rho * table[t, a]
                seen[t, :, a] += states[i, g] * share / share.sum()
    wanted = np.zeros((4, 2, 2))
    for t, y in itertools.product(range(4), range(2)):
        row = [seen[t, y, a] * (said[t, a] - 1) / said[t, a] + strength * pooled[a, y] for a in range(2)]
        wanted[t, y] = np.array(row) / sum(row)
    assert np.allclose(got, as_table(wanted) @ lattice.T)
    assert log_prior == pytest.approx((strength * pooled.T * np.log(wanted)).sum())


def test_spread_by_loops_over_pairs():
    data = simulate.urkullu(n_items=40, labels_per_item=4, labels_per_labeler=10, case="good", random_state=1)
    labels = data.labels
    pooled, lattice = np.array([[0.8, 0.2], [0.3, 0.7]]), simplex_lattice(2)
    weights = polya_weights(lattice, np.array([1.0, 2.0]))
    item, labeler, answer, _ = labels.vote_table()
    by_answer = pooled.T @ lattice.T
    expected, x = np.zeros((len(item), 2)), np.zeros((len(item), 2))
    for v in range(len(item)):
        others = [w for w in range(len(item)) if item[w] == item[v] and w != v]
        states = weights * np.prod([by_answer[answer[w]] for w in others], axis=0)
        expected[v] = states @ lattice / states.sum()
        x[v] = expected[v] * ((np.arange(2) == answer[v]) - expected[v] @ pooled)
    found = wanted = 0.0
    for v, w in itertools.permutations(range(len(item)), 2):
        if labeler[v] == labeler[w]:
            found += x[v] @ x[w]
            for y, z in itertools.product(range(2), repeat=2):
                both = expected[v, y] * expected[v, z] * expected[w, y] * expected[w, z]
                wanted += both * pooled[z, y] * (1 - pooled[z, y])
    assert labeler_spread(labels, pooled, lattice, weights) == pytest.approx(max(found, 0) / wanted)


def test_recovers_matrices_shape_and_spread(fitted, soft):
    wanted = soft.parameters["confusion"].mean(axis=0)
    assert np.abs(fitted.pooled_ - wanted).max() < 0.05
    assert np.allclose(fitted.shape_, 1.4, atol=0.4)  # which is uniform, see _EVEN
    assert 5 < fitted.pooling_ < 25  # the Beta(2, 4/3) / 2 of this case has the variance of a Dirichlet row with 10.5
    true_skill = soft.parameters["tpr"] - soft.parameters["fpr"]
    skill = fitted.confusion_[:, 1, 1] - fitted.confusion_[:, 0, 1]
    assert kendalltau(skill, true_skill).statistic > 0.25


def test_mean_probabilities_are_calibrated(fitted, soft):
    p, mean = soft.parameters["probability"], fitted.posterior(soft.labels)[:, 1]
    for low in np.arange(0, 1, 0.2):
        within = (mean >= low) & (mean < low + 0.2)
        assert within.sum() > 50
        assert mean[within].mean() == pytest.approx(p[within].mean(), abs=0.06)
    hard_mean = noise.DawidSkene().fit(soft.labels).posterior(soft.labels)[:, 1]
    assert ((mean - p) ** 2).mean() < 0.4 * ((hard_mean - p) ** 2).mean()


def log_score(posterior, truth):
    return -np.log(np.maximum(posterior[np.arange(len(truth)), truth], 1e-9)).mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hard_classes_are_found_hard(n_classes):
    hard_ones, losses = 0, []
    for seed in range(6):
        data = simulate.dawid_skene(n_items=600, n_labelers=8, n_classes=n_classes, random_state=seed)
        model, peer = noise.SoftTruth().fit(data.labels), noise.DawidSkene().fit(data.labels)
        scores = [log_score(m.posterior(data.labels), data.truth) for m in (model, peer)]
        losses.append(scores[0] - scores[1])
        if model.shape_.mean() < 0.15:
            hard_ones += 1
            assert np.abs(model.confusion_ - peer.confusion_).max() < 0.06
    assert hard_ones >= 5  # now and then votes of eight labelers look soft
    assert np.mean(losses) < 0.04


def test_a_tiny_shape_is_dawid_and_skene(hard):
    model = noise.SoftTruth(shape=1e-3, pooling=2, tol=1e-8, max_iter=500).fit(hard.labels)
    peer = noise.DawidSkene(pooling=2, tol=1e-8, max_iter=500).fit(hard.labels)
    assert np.abs(model.posterior(hard.labels) - peer.posterior(hard.labels)).max() < 0.02
    assert np.abs(model.confusion_ - peer.confusion_).max() < 0.01


def test_gold_items_are_wholly_of_their_class(soft):
    labels = soft.labels.with_gold({i: int(soft.truth[i]) for i in range(50)})
    model = noise.SoftTruth().fit(labels)
    corner = model.lattice_.max(axis=1) == 1
    states = model.state_posterior(labels)
    assert (states[:50][:, ~corner] == 0).all()
    assert (states[50:][:, ~corner] > 0).any(axis=1).all()
    item = np.arange(50)
    predicted = model.predict_votes(labels, item, np.zeros(50, dtype=np.int64))
    assert np.allclose(predicted, model.confusion_[0][soft.truth[:50]])


@pytest.mark.parametrize(
    "parameters",
    [{"shape": 0}, {"shape": "even"}, {"pooling": -1}, {"pooling": "most"}, {"max_iter": 0}],
    ids=lambda parameters: "-".join(f"{k}={v}" for k, v in parameters.items()),
)
def test_checks_its_parameters(parameters, hard):
    with pytest.raises(InvalidParameter, match=next(iter(parameters))):
        noise.SoftTruth(**parameters).fit(hard.labels)


def swap_errors(models, **settings):
    """Normalised Kendall distance to the true ranking of the classifiers: of the paper's PGT, and of each model."""
    data = simulate.urkullu(**settings)
    labels = data.labels
    counts = labels.answer_counts
    shares = (counts[:, 1] + 0.5) / (counts.sum(axis=1) + 1)

    def concordance(values):
        return [kendalltau(score, values).statistic for score in data.scores]

    # The expected AUC when item i is positive with probability m_i is linear in m, with the ranks as weights.
    ranks = np.array([rankdata(score) for score in data.scores])
    estimates = [concordance(shares), *(ranks @ model.fit(labels).posterior(labels)[:, 1] for model in models)]
    true = concordance(data.parameters["probability"])
    return [(1 - kendalltau(estimate, true).statistic) / 2 for estimate in estimates]


def test_ranks_classifiers_far_better_than_hard_classes():
    models = (noise.SoftTruth(), noise.DawidSkene(max_iter=1000))
    settings = {"n_items": 600, "n_classifiers": 40, "labels_per_item": 9, "labels_per_labeler": 9}
    paper, ours, hard_classes = np.mean([swap_errors(models, **settings, random_state=s) for s in range(3)], axis=0)
    assert ours < 0.8 * hard_classes
    assert ours < 1.05 * paper


@pytest.mark.slow
def test_ranks_classifiers_no_worse_than_the_papers_estimate():
    gains, errors = [], []
    for case, per_item, per_labeler in itertools.product(("bad", "average", "good"), (3, 5, 15), (3, 45)):
        settings = {"case": case, "labels_per_item": per_item, "labels_per_labeler": per_labeler}
        swaps = np.array([swap_errors((noise.SoftTruth(),), **settings, random_state=100 + s) for s in range(8)])
        gain = swaps[:, 0] - swaps[:, 1]
        gains.append(gain.mean())
        errors.append(gain.std(ddof=1) / np.sqrt(len(gain)))
        assert gains[-1] > -3 * errors[-1]
    assert np.mean(gains) > 3 * np.sqrt(np.square(errors).sum()) / len(errors)
