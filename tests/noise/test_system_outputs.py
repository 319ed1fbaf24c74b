"""Systems inside the states of the labelers: exact where they are one witness each, and copies that add nothing."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, softmax

from trueup import Labels, simulate
from trueup.noise import DawidSkene, sample
from trueup.noise.system_outputs import SystemOutputs

VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])
SAID = np.array([[0, 1, 0, -1], [1, 1, 0, 0]])


@pytest.fixture(params=("scipy", "numba"))
def engine(request, monkeypatch):
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_ENGINE", request.param)
    return request.param


def log_dirichlet_multinomial(counts, base):
    return gammaln(base.sum()) - gammaln(base.sum() + counts.sum()) + (gammaln(base + counts) - gammaln(base)).sum()


def outputs_of(codes, power):
    return SystemOutputs(np.asarray(codes, np.int64), np.full(len(codes), 2), np.full(len(codes), power))


def exact_posterior(votes, outputs):
    """P(class 1) of each item, by a sum over all truths, of Dawid and Skene's model with systems of power 1."""
    prior = outputs.row_prior()[:, 0].reshape(-1, 2)
    truths = np.array(list(product((0, 1), repeat=len(votes))))
    logs = np.empty(len(truths))
    for k, truth in enumerate(truths):
        logs[k] = log_dirichlet_multinomial(np.bincount(truth, minlength=2), np.ones(2))
        for y in (0, 1):
            of_class = truth == y
            for column in votes.T:
                counts = np.array([(column[of_class] == a).sum() for a in (0, 1)])
                logs[k] += log_dirichlet_multinomial(counts, np.where(np.arange(2) == y, 3.0, 1.0))
            for codes, base in zip(outputs.codes, prior, strict=True):
                logs[k] += log_dirichlet_multinomial(np.array([(codes[of_class] == a).sum() for a in (0, 1)]), base)
    return softmax(logs) @ truths


def test_systems_of_one_witness_each_are_drawn_exactly(engine):
    outputs = outputs_of(SAID, 1.0)
    n_warmup, n_draws = (1000, 20_000) if engine == "numba" else (50, 600)
    draws = sample(
        Labels.from_matrix(VOTES),
        DawidSkene(),
        outputs=outputs,
        n_warmup=n_warmup,
        n_draws=n_draws,
        random_state=1,
        warn=False,
    )
    tolerance = 0.015 if engine == "numba" else 0.07
    np.testing.assert_allclose(draws.posterior[:, 1], exact_posterior(VOTES, outputs), atol=tolerance)


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


def test_the_engines_draw_shared_witnesses_alike(monkeypatch):
    pytest.importorskip("numba")
    sim = simulate.baseline(n_items=60, random_state=2)
    said = np.asarray(sim.predictions)
    other = np.where(np.arange(60) % 10 == 0, 1 - said, said)
    outputs = outputs_of([said, other, said], 1 / 3)
    posterior = []
    for name in ("scipy", "numba"):
        monkeypatch.setenv("TRUEUP_ENGINE", name)
        few = {"n_warmup": 150, "n_draws": 700}
        draws = sample(sim.labels, DawidSkene(), outputs=outputs, random_state=3, warn=False, **few)
        posterior.append(draws.posterior[:, 1])
    np.testing.assert_allclose(*posterior, atol=0.08)


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
