"""Systems inside the states of the labelers: exact sums over all truths, copies add nothing."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from vote_problems import log_dirichlet_multinomial

from trueup import Labels, simulate
from trueup.noise import DawidSkene, sample
from trueup.noise.chain import SystemOutputs

VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])
SAID = np.array([[0, 1, 0, -1], [1, 1, 0, 0]])
THREE = np.array([[0, 1, 0, -1], [2, 0, 1, 1]])  # of two systems, the second with three answers


def outputs_of(codes, power):
    return SystemOutputs(np.asarray(codes, np.int64), np.full(len(codes), 2), np.full(len(codes), power))


@pytest.mark.parametrize("model", [DawidSkene(), DawidSkene(pooling="auto")], ids=["rows apart", "pooled rows"])
@pytest.mark.parametrize("n_copies", [2, 20])
def test_copies_that_share_a_witness_say_what_one_says(model, n_copies):
    pytest.importorskip("numba")
    sim = simulate.baseline(n_items=300, random_state=0)
    said, labels = np.asarray(sim.predictions), sim.labels

    def drawn(n):
        outputs = outputs_of(np.repeat(said[None], n, axis=0), 1 / n)
        return sample(labels, model, outputs=outputs, n_draws=2000, random_state=0, warn=False)

    one, many = drawn(1), drawn(n_copies)
    right = [(draws.truths == said).mean(axis=1) for draws in (one, many)]
    assert abs(right[0].mean() - right[1].mean()) < 0.3 * right[0].std()
    assert 0.85 < right[1].std() / right[0].std() < 1.15


def test_what_is_expected_of_a_system_falls_with_the_distance_of_classes_in_each_state():
    codes = np.array([[0, 0, 1, 2], [2, 2, 2, -1]])
    outputs = SystemOutputs.of_classes(codes, 3, np.ones(2))
    closeness = np.exp(-np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))))
    prior = outputs.row_prior(3, closeness)
    plain = outputs.row_prior(3)
    np.testing.assert_allclose(prior[0] / prior[2], plain[0] / plain[2] * closeness[0] / closeness[2])
    np.testing.assert_allclose(np.add.reduceat(prior, outputs.first[:-1]), [[2.0] * 3, [2.0] * 3])
    np.testing.assert_allclose(SystemOutputs(codes, np.array([3, 3]), np.ones(2)).row_prior(3, closeness), plain[:6])


def test_a_system_that_always_says_the_same_tells_nothing():
    labels = Labels.from_matrix(VOTES)
    constant, varied = np.ones(len(VOTES), np.int64), np.asarray(SAID, np.int64)[:1]
    unsure = np.where(np.arange(len(VOTES)) == 0, -1, constant)
    how = {"n_chains": 1, "n_warmup": 20, "n_draws": 20, "random_state": 0, "warn": False}
    for model in ("dawid-skene", "ordinal"):
        for said, alone in (([constant, unsure], np.empty((0, len(VOTES)), np.int64)), ([*varied, constant], varied)):
            both = SystemOutputs.of_classes(np.array(said), 2, np.ones(2))
            one = SystemOutputs.of_classes(alone, 2, np.ones(len(alone)))
            truths = [sample(labels, model, outputs=outputs, **how).truths for outputs in (both, one)]
            np.testing.assert_array_equal(*truths)


def log_evidence(truth, outputs):
    """Of votes and outputs under independent errors, rows of labelers Dir(1, 3 for the right answer)."""
    total = log_dirichlet_multinomial(np.bincount(truth, minlength=2), np.ones(2))
    edges = outputs.first
    prior = outputs.row_prior()[:, 0]
    for y in range(2):
        base = np.where(np.arange(2) == y, 3.0, 1.0)
        of_class = truth == y
        for said in VOTES.T:
            total += log_dirichlet_multinomial([(said[of_class] == a).sum() for a in range(2)], base)
        for s, said in enumerate(outputs.codes):
            counts = [outputs.power[s] * (said[of_class] == a).sum() for a in range(outputs.n_answers[s])]
            total += log_dirichlet_multinomial(counts, prior[edges[s] : edges[s + 1]])
    return total


def exact_posterior(log_of, n=4):
    truths = [np.array(t) for t in product(range(2), repeat=n)]
    logs = np.array([log_of(t) for t in truths])
    weights = np.exp(logs - logsumexp(logs))
    return sum(w * np.eye(2)[t] for w, t in zip(weights, truths, strict=True))


def test_systems_with_rows_of_their_own_are_drawn_exactly():
    outputs = SystemOutputs(THREE, np.array([2, 3]), np.ones(2))
    posterior = exact_posterior(partial(log_evidence, outputs=outputs))
    draws = sample(
        Labels.from_matrix(VOTES),
        "dawid-skene",
        outputs=outputs,
        n_chains=2,
        n_warmup=200,
        n_draws=40_000,
        random_state=0,
    )
    np.testing.assert_allclose(draws.posterior, posterior, atol=0.01)


def test_repeats_of_a_labeler_count_for_one():
    sim = simulate.dawid_skene(n_items=80, n_labelers=4, random_state=1)
    item, labeler, answer, _ = sim.labels.vote_table()
    columns = {"item": item, "labeler": labeler, "label": answer}
    with pytest.warns(UserWarning, match="repeat"):
        five = Labels.from_frame({name: np.tile(column, 5) for name, column in columns.items()})
    settings = {"n_chains": 2, "n_warmup": 100, "n_draws": 300, "random_state": 0, "warn": False}
    once = sample(sim.labels, "dawid-skene", **settings)
    again = sample(five, "dawid-skene", one_witness=True, **settings)
    printed = sample(five, "dawid-skene", **settings)
    assert np.abs(once.posterior - again.posterior).mean() < 0.02
    assert np.abs(once.posterior - printed.posterior).mean() > 0.03
