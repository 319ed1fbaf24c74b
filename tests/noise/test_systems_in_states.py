"""Systems inside the states of the labelers, and clusters with priors of items, against sums over all truths."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma

from trueup import Labels, noise, simulate
from trueup.noise.item_prior import CoefficientState, LogLinearPrior
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


def test_systems_with_rows_of_their_own_are_drawn_exactly(engine):
    outputs = SystemOutputs(SAID, np.array([2, 3]), np.ones(2))
    posterior = exact_posterior(partial(log_evidence, outputs=outputs))
    n_draws, tolerance = (600, 0.07) if engine == "scipy" else (40_000, 0.01)
    draws = noise.sample(
        Labels.from_matrix(VOTES),
        "dawid-skene",
        outputs=outputs,
        n_chains=2,
        n_warmup=200,
        n_draws=n_draws,
        random_state=0,
    )
    np.testing.assert_allclose(draws.posterior, posterior, atol=tolerance)


class KnownPrior(LogLinearPrior):
    """P(class) of each item that is known, so that nothing of it is drawn."""

    def __init__(self, table):
        self.table = np.asarray(table)

    def start(self):
        return CoefficientState(np.zeros(0), np.zeros(0))

    def redraw(self, state, truth, rng):
        return state

    def probabilities(self, coefficients):
        return self.table


MEANS = (np.arange(100) + 0.5) / 100  # of the answer 1 in a pooled row
STRENGTHS = np.geomspace(0.05, 60, 60)
STRENGTH_MASS = gamma.pdf(STRENGTHS, 2.0, scale=2.0) * STRENGTHS  # on a geometric grid


@cache
def log_cluster_rows(counts, label, diagonal):
    """The rows of all labelers in a cluster, pooled row and strength integrated out on a grid."""
    s, m = STRENGTHS[None, :], MEANS[:, None]
    log = np.zeros((len(MEANS), len(STRENGTHS)))
    for zeros, ones in counts:
        log += gammaln(s) - gammaln(s + zeros + ones)
        log += gammaln(s * m + ones) - gammaln(s * m) + gammaln(s * (1 - m) + zeros) - gammaln(s * (1 - m))
    row = MEANS if label == 1 else 1 - MEANS
    mass = (row ** (diagonal - 1))[:, None] * STRENGTH_MASS
    return float(np.log((np.exp(log) * mass).sum() / mass.sum()))


def test_clusters_take_priors_of_items_exactly(engine):
    """The class of an extra cluster is drawn from its votes, from what is known of its items, and from their number."""
    table = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
    logs, truths = [], []
    for states in product(range(3), repeat=4):
        z = np.array(states)
        sizes = np.bincount(z, minlength=3)
        counts = [
            tuple(((VOTES[z == g, t] == 0).sum(), (VOTES[z == g, t] == 1).sum()) for t in range(3)) for g in range(3)
        ]
        for label in (0, 1):
            of_state = np.array([0, 1, label])
            truth = of_state[z]
            log = np.log(table[np.arange(4), truth]).sum()
            for y in (0, 1):
                own = sizes[of_state == y]
                log += gammaln(len(own)) + gammaln(1 + own).sum() - gammaln(len(own) + own.sum())
            log += sum(log_cluster_rows(counts[g], g, 4.0) for g in (0, 1)) + log_cluster_rows(counts[2], label, 3.0)
            logs.append(log)
            truths.append(truth)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    posterior = sum(w * np.eye(2)[t] for w, t in zip(weights, truths, strict=True))
    n_draws, tolerance = (900, 0.08) if engine == "scipy" else (60_000, 0.015)
    draws = noise.sample(
        Labels.from_matrix(VOTES),
        noise.Clusters(n_extra=1, averaged=False),
        item_prior=KnownPrior(table),
        n_chains=2,
        n_warmup=300,
        n_draws=n_draws,
        random_state=0,
        warn=False,
    )
    np.testing.assert_allclose(draws.posterior, posterior, atol=tolerance)


def test_scores_are_leave_one_out_densities(engine):
    """Of one labeler and one state nothing is learned from others, so each density is that of a Dirichlet row."""
    sim = simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    draws = noise.sample(sim.labels, "dawid-skene", n_chains=2, n_warmup=100, n_draws=200, random_state=0, warn=False)
    assert draws.scores.shape == (60,)
    assert (draws.scores < 0).all()
    # A vote of an item is at best certain and at worst as likely as guessing among two, less what is unsure.
    assert -4 * np.log(2) * 1.6 < draws.scores.mean() < 0


def test_repeats_of_a_labeler_count_for_one(engine):
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
