"""Systems inside the states of the labelers, against sums over all truths."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from trueup import Labels, noise, simulate
from trueup.noise.system_outputs import SystemOutputs

VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])
SAID = np.array([[0, 1, 0, -1], [2, 0, 1, 1]])  # of two systems, the second with three answers


def log_rows(counts, base):
    """Log of the Dirichlet integral of a row with counts that need not be whole."""
    counts, base = np.asarray(counts, dtype=float), np.asarray(base, dtype=float)
    return float(
        gammaln(base.sum()) - gammaln(base.sum() + counts.sum()) + (gammaln(base + counts) - gammaln(base)).sum()
    )


def log_evidence(truth, outputs):
    """Of votes and outputs under independent errors, rows of labelers Dir(1, 3 for the right answer)."""
    total = log_rows(np.bincount(truth, minlength=2), np.ones(2))
    edges = outputs.first
    prior = outputs.row_prior()[:, 0]
    for y in range(2):
        base = np.where(np.arange(2) == y, 3.0, 1.0)
        of_class = truth == y
        for said in VOTES.T:
            total += log_rows([(said[of_class] == a).sum() for a in range(2)], base)
        for s, said in enumerate(outputs.codes):
            counts = [outputs.power[s] * (said[of_class] == a).sum() for a in range(outputs.n_answers[s])]
            total += log_rows(counts, prior[edges[s] : edges[s + 1]])
    return total


def exact_posterior(log_of, n=4):
    truths = [np.array(t) for t in product(range(2), repeat=n)]
    logs = np.array([log_of(t) for t in truths])
    weights = np.exp(logs - logsumexp(logs))
    return sum(w * np.eye(2)[t] for w, t in zip(weights, truths, strict=True))


def test_systems_with_rows_of_their_own_are_drawn_exactly():
    outputs = SystemOutputs(SAID, np.array([2, 3]), np.ones(2))
    posterior = exact_posterior(partial(log_evidence, outputs=outputs))
    draws = noise.sample(
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
    once = noise.sample(sim.labels, "dawid-skene", **settings)
    again = noise.sample(five, "dawid-skene", one_witness=True, **settings)
    printed = noise.sample(five, "dawid-skene", **settings)
    assert np.abs(once.posterior - again.posterior).mean() < 0.02
    assert np.abs(once.posterior - printed.posterior).mean() > 0.03
