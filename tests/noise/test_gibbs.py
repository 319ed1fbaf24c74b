"""The sampler against exact sums over all truths; Python runs the same loops."""

import warnings
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from vote_problems import log_dirichlet_multinomial

from trueup import Labels, noise, simulate
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise.chain import SystemOutputs
from trueup.noise.dawid_skene import RowSampler

MODELS = ("one-coin", "dawid-skene")
VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])
RATER = np.array([0, 1, 0, -1])  # the last item has no prediction


def row_counts(votes, in_state, n_answers):
    """Answers of each rater on the items of a state."""
    return np.array([[(votes[in_state, t] == a).sum() for a in range(n_answers)] for t in range(votes.shape[1])])


def dawid_skene_evidence(votes, truth, *, n_answers, diagonal, n_classes):
    total = log_dirichlet_multinomial(np.bincount(truth, minlength=n_classes), np.ones(n_classes))
    for y in range(n_classes):
        base = np.ones(n_answers)
        base[y] = diagonal
        total += sum(log_dirichlet_multinomial(c, base) for c in row_counts(votes, truth == y, n_answers))
    return total


def one_coin_evidence(votes, truth, *, n_classes):
    total = log_dirichlet_multinomial(np.bincount(truth, minlength=n_classes), np.ones(n_classes))
    for said in votes.T:
        decided = (said >= 0) & (said < n_classes)
        right = int((said == truth)[decided].sum())
        wrong = int(decided.sum()) - right
        total += log_dirichlet_multinomial([right, wrong], [2.0, 1.0]) - wrong * np.log(n_classes - 1)
    return total


def exact(votes, evidence, n_classes, gold=None):
    """P(class of each item) and P(number of right predictions of the last rater), by enumeration."""
    n, codes = len(votes), np.full(len(votes), -1) if gold is None else gold
    truths = [
        np.array(t)
        for t in product(range(n_classes), repeat=n)
        if all(g in (-1, y) for g, y in zip(codes, t, strict=True))
    ]
    logs = np.array([evidence(t) for t in truths])
    weights = np.exp(logs - logsumexp(logs))
    posterior, right = np.zeros((n, n_classes)), np.zeros(n + 1)
    for truth, weight in zip(truths, weights, strict=True):
        posterior[np.arange(n), truth] += weight
        right[int((votes[:, -1] == truth).sum())] += weight
    return posterior, right


def assert_draws_agree(draws, posterior, right, tolerance, n_votes=3):
    np.testing.assert_allclose(draws.posterior, posterior, atol=tolerance)
    n_right = np.rint(draws.labeler_accuracy[:, -1] * n_votes).astype(int)
    shares = np.bincount(n_right, minlength=len(right)) / len(n_right)
    np.testing.assert_allclose(shares, right, atol=tolerance)


@pytest.mark.parametrize("model", [noise.DawidSkene(diagonal=4.0), noise.OneCoin()])
def test_draws_have_the_exact_posterior_also_of_three_classes_and_abstentions(model):
    said = np.array([["a", "a", "u"], ["b", "c", "b"], ["c", "u", "a"], ["a", "b", "b"]], dtype=object)
    said = np.column_stack([said, ["a", "b", "c", "c"]])
    labels = Labels.from_matrix(said, classes=["a", "b", "c"], abstain="u", abstain_policy="answer")
    votes = np.array([["abcu".index(v) for v in row] for row in said])
    if isinstance(model, noise.DawidSkene):
        evidence = partial(dawid_skene_evidence, votes, n_answers=4, diagonal=4.0, n_classes=3)
    else:
        evidence = partial(one_coin_evidence, votes, n_classes=3)
    posterior, right = exact(votes, evidence, 3)
    draws = noise.sample(labels, model, n_chains=2, n_warmup=100, n_draws=40_000, random_state=2)
    assert_draws_agree(draws, posterior, right, 0.015, n_votes=4)


def test_gold_enters_exactly():
    votes = np.column_stack([VOTES, RATER])
    evidence = partial(dawid_skene_evidence, votes, n_answers=2, diagonal=3.0, n_classes=2)
    posterior, right = exact(votes, evidence, 2, np.array([1, -1, -1, -1]))
    labels = Labels.from_matrix(votes).with_gold({0: 1})
    draws = noise.sample(labels, "dawid-skene", n_chains=2, n_warmup=100, n_draws=40_000, random_state=3)
    assert_draws_agree(draws, posterior, right, 0.015)
    assert draws.posterior[0, 1] == 1.0
    assert (draws.truths[:, 0] == 1).all()


MEANS = (np.arange(200) + 0.5) / 200  # as exact as four decimals, in a third of the time of twice as many


@cache
def log_cluster_evidence(counts, label, diagonal, strength):
    """Answers (rater by rater) of one cluster of two answers, its pooled row integrated out on a grid."""
    m, s = MEANS, strength
    log = np.zeros(len(m))
    for zeros, ones in counts:
        if zeros + ones:
            log += gammaln(s) - gammaln(s + zeros + ones)
            log += gammaln(s * m + ones) - gammaln(s * m) + gammaln(s * (1 - m) + zeros) - gammaln(s * (1 - m))
    mass = (m if label == 1 else 1 - m) ** (diagonal - 1)
    return float(np.log((np.exp(log) * mass).sum() / mass.sum()))


def exact_states(votes, state_class, gold, *, strength, diagonal=3.0):
    """As `exact`, for states of fixed classes whose rows are pooled with a fixed strength."""
    n, n_states = len(votes), len(state_class)
    posterior, right, logs = np.zeros((n, 2)), np.zeros(n + 1), {}
    for states in product(range(n_states), repeat=n):
        z = np.array(states)
        truth = state_class[z]
        if ((gold >= 0) & (gold != truth)).any():
            continue
        log = log_dirichlet_multinomial(np.bincount(z, minlength=n_states), np.ones(n_states))
        for g in range(n_states):
            counts = tuple(map(tuple, row_counts(votes, z == g, 2).tolist()))
            log += log_cluster_evidence(counts, int(state_class[g]), diagonal, strength)
        logs[states] = log
    total = logsumexp(list(logs.values()))
    for states, log in logs.items():
        truth = state_class[np.array(states)]
        posterior[np.arange(n), truth] += np.exp(log - total)
        right[int((votes[:, -1] == truth).sum())] += np.exp(log - total)
    return posterior, right


def test_pooled_states_draw_the_exact_posterior():
    votes, gold = np.column_stack([VOTES, RATER]), np.array([-1, 0, -1, -1])  # gold against the votes
    posterior, right = exact_states(votes, np.array([0, 1]), gold, strength=8.0)
    labels, model = Labels.from_matrix(votes).with_gold({1: 0}), noise.DawidSkene(pooling=8.0, diagonal=3.0)
    draws = noise.sample(labels, model, n_chains=2, n_warmup=300, n_draws=40_000, random_state=4)
    assert_draws_agree(draws, posterior, right, 0.012)


PARAMETERS = {
    "pooling": (noise.DawidSkene(), noise.DawidSkene(pooling=30.0)),
    "learned pooling": (noise.DawidSkene(pooling=30.0), noise.DawidSkene(pooling="auto")),
    "diagonal": (noise.DawidSkene(), noise.DawidSkene(diagonal=30.0)),
    "right": (noise.OneCoin(), noise.OneCoin(right=60.0)),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_parameters_of_a_model_count_and_its_fit_does_not(name):
    data = simulate.dependent(n_items=80, n_labelers=4, random_state=0)
    options = {"n_chains": 2, "n_warmup": 50, "n_draws": 100, "random_state": 0, "warn": False}
    plain, other = (noise.sample(data.labels, model, **options) for model in PARAMETERS[name])
    assert np.abs(plain.posterior - other.posterior).mean() > 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = noise.fit(data.labels, PARAMETERS[name][1])
    np.testing.assert_array_equal(noise.sample(data.labels, fitted, **options).truths, other.truths)


def test_a_model_from_outside_brings_its_sampler():
    class KnownSampler(noise.Sampler):
        def draw(self, counts, state_counts, gold, rng):
            self.table = np.tile([[0.9, 0.1], [0.1, 0.9]], (self.n_raters, 1))
            self.weights = np.array([0.5, 0.5])

    class Fixed(noise.Majority):
        def samplers(self, labels, n_raters, n_chains):
            return [KnownSampler(n_raters, labels.n_classes, labels.n_answers) for _ in range(n_chains)]

    labels = Labels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 0]])
    known = noise.Confusion([[[0.9, 0.1], [0.1, 0.9]]] * 3)
    assert Fixed().can_be_drawn
    assert not noise.Majority().can_be_drawn
    draws = noise.sample(labels, Fixed(), n_chains=2, n_warmup=10, n_draws=2000, random_state=0)
    np.testing.assert_allclose(draws.posterior, known.posterior(labels), atol=0.03)


@pytest.mark.parametrize("model", [*MODELS, "ordinal", noise.DawidSkene(pooling="auto")], ids=str)
def test_python_runs_the_same_loops(model, monkeypatch):
    """The draws are those of compiled code."""
    pytest.importorskip("numba")
    data = simulate.ratings(n_items=12, n_classes=3, n_labelers=4, random_state=0)
    outputs = SystemOutputs.of_classes(data.truth[None].astype(np.int64), 3, np.ones(1))
    found = []
    for engine in ("scipy", "numba"):
        monkeypatch.setenv("TRUEUP_ENGINE", engine)
        how = {"n_chains": 2, "n_warmup": 10, "n_draws": 10, "random_state": 0, "warn": False}
        found.append(noise.sample(data.labels, model, outputs=outputs, **how))
    for name in ("posterior", "prior", "labeler_accuracy", "log_likelihood"):
        np.testing.assert_allclose(getattr(found[0], name), getattr(found[1], name), rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def strong():
    """Votes that leave little doubt."""
    return simulate.dawid_skene(
        n_items=150, n_classes=3, n_labelers=6, prior=(0.5, 0.3, 0.2), accuracy=(0.8, 0.95), random_state=0
    )


def draw(data, model, **options):
    outputs = SystemOutputs.of_classes(data.predictions[None].astype(np.int64), data.labels.n_classes, np.ones(1))
    chosen = {"outputs": outputs, "n_warmup": 200, "n_draws": 300, "random_state": 0, "warn": False, **options}
    return noise.sample(data.labels, model, **chosen)


@pytest.mark.parametrize("model", MODELS)
def test_shapes_sums_and_seeds(strong, model):
    n = 100  # of each chain
    sweeps = {"n_chains": 2, "n_warmup": 40, "n_draws": n}
    draws = draw(strong, model, **sweeps)
    assert draws.n_draws == 2 * n
    np.testing.assert_allclose(draws.prior.sum(axis=1), 1.0)
    np.testing.assert_allclose(draws.posterior.sum(axis=1), 1.0)
    # All draws are few enough here to be kept: the truths are the counts, and near the posterior of their chances.
    assert draws.truths.shape == (2 * n, 150)
    shares = (draws.truths[:, :, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(shares, draws.posterior, atol=0.15)
    item, labeler, answer, _ = strong.labels.vote_table()
    right = (draws.truths[:, item] == answer)[:, labeler == 2].mean(axis=1)
    np.testing.assert_allclose(right, draws.labeler_accuracy[:, 2])
    again = draw(strong, model, **sweeps)
    np.testing.assert_array_equal(draws.truths, again.truths)
    np.testing.assert_array_equal(draws.prior, again.prior)
    other = draw(strong, model, **sweeps, random_state=1)
    assert not np.array_equal(draws.truths, other.truths)


@pytest.mark.parametrize("n_raters", [2, 5])
def test_a_chain_that_starts_with_classes_exchanged_finds_them(n_raters):
    """Exchanges given pooled rows alone were never made with ten classes: rows drawn for a class held it back."""
    sampler = RowSampler(n_raters, 10, 10, diagonal=20.0, are_pooled=True)
    sampler.state_class[[0, 1]] = 1, 0
    counts = np.repeat(20.0 * np.eye(10)[None], n_raters, axis=0)  # raters, answers, states: all agree
    rng, gold = np.random.default_rng(0), np.zeros((10, 10))
    for _ in range(50):
        sampler.draw(counts.reshape(n_raters * 10, 10), np.full(10, 20.0), gold, rng)
    np.testing.assert_array_equal(sampler.state_class, np.arange(10))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"model": "dawid-skeen"}, InvalidParameter, "did you mean 'dawid-skene'"),
        ({"model": "glad"}, InvalidParameter, "can be drawn together with the truth, got GLAD"),
        ({"model": noise.OneCoin(wrong=0)}, InvalidParameter, "`wrong` must be a number in"),
        ({"model": noise.DawidSkene(diagonal=0)}, InvalidParameter, "`diagonal` must be a number in"),
        ({"n_chains": 0}, InvalidParameter, "n_chains"),
        ({"n_draws": 2}, InvalidParameter, "n_draws"),
        ({"n_warmup": -1}, InvalidParameter, "n_warmup"),
    ],
)
def test_bad_arguments_get_a_sentence(strong, options, error, words):
    with pytest.raises(error, match=words):
        noise.sample(strong.labels, **options)
