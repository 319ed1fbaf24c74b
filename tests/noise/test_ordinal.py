"""The model of ratings: against exact sums over all truths, against its own prior, and on what it promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from trueup import Labels, noise, simulate
from trueup.exceptions import InvalidParameter
from trueup.noise import Ordinal
from trueup.noise.kernels import rating_loops
from trueup.noise.ordinal import OrdinalSampler, draw_parameters
from trueup.noise.system_outputs import SystemOutputs
from trueup.testing.noise import NOISE_CHECKS

VOTES = np.array([[0, 0, 1], [2, 1, 2], [0, 2, -1], [1, 1, 2], [2, 2, 2]])


@pytest.mark.parametrize("check", NOISE_CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check(Ordinal)


def posterior_by_importance(votes, n_classes, *, n_draws, seed, outputs=None):
    """P(class of each item), parameters drawn from the prior and all truths summed over."""
    rng = np.random.default_rng(seed)
    total, posterior = 0.0, np.zeros((len(votes), n_classes))
    for _ in range(n_draws):
        matrices = draw_parameters(votes.shape[1], n_classes, rng).matrices()
        joint = np.tile(rng.dirichlet(np.ones(n_classes)), (len(votes), 1))
        for t in range(votes.shape[1]):
            voted = votes[:, t] >= 0
            joint[voted] *= matrices[t][:, votes[voted, t]].T
        if outputs is not None:
            steps = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
            pseudo_counts = (np.bincount(outputs, minlength=n_classes) + 1.0) * np.exp(-steps)
            rows = np.array([rng.dirichlet(2.0 * row / row.sum()) for row in pseudo_counts])
            joint *= rows[:, outputs].T
        evidence = joint.sum(axis=1)
        weight = evidence.prod()
        total += weight
        posterior += weight * joint / evidence[:, None]
    return posterior / total


def test_draws_equal_sums_over_all_truths():
    labels = Labels.from_matrix(VOTES, missing=-1, classes=[0, 1, 2])
    expected = posterior_by_importance(VOTES, 3, n_draws=8000, seed=0)
    draws = noise.sample(labels, Ordinal(), n_chains=2, n_warmup=300, n_draws=15_000, random_state=0, warn=False)
    np.testing.assert_allclose(draws.posterior, expected, atol=0.03)


def ranks_in_draws(seed, n_draws):
    """The rank of the true mean rating, share of the top class and accuracy of a labeler among their draws."""
    rng = np.random.default_rng([7, seed])
    sim = simulate.ratings(n_items=30, n_classes=4, n_labelers=3, prior=rng.dirichlet(np.ones(4)), random_state=rng)
    draws = noise.sample(
        sim.labels, Ordinal(), n_chains=1, n_warmup=300, n_draws=20 * n_draws, random_state=seed, warn=False
    )
    truths = draws.truths[:: max(1, len(draws.truths) // n_draws)][:n_draws]
    first = sim.labels.votes[:, :4].toarray().argmax(axis=1)
    quantities = [lambda y: y.mean(axis=-1), lambda y: (y == 3).mean(axis=-1), lambda y: (y == first).mean(axis=-1)]
    return [
        int((q(truths) < q(sim.truth)).sum() + rng.integers((q(truths) == q(sim.truth)).sum() + 1)) for q in quantities
    ]


@pytest.mark.parametrize(("n_sets", "n_draws"), [(40, 19), pytest.param(600, 19, marks=pytest.mark.slow)])
def test_truths_drawn_from_the_prior_have_even_ranks(n_sets, n_draws):
    pytest.importorskip("numba")
    ranks = np.array([ranks_in_draws(seed, n_draws) for seed in range(n_sets)])
    for column in ranks.T:
        counts = np.bincount(column * 5 // (n_draws + 1), minlength=5)
        assert chisquare(counts).pvalue > 0.002


def test_orders_of_labelers_and_items_do_not_matter():
    pytest.importorskip("numba")
    sim = simulate.ratings(n_items=60, n_labelers=4, random_state=2)
    item, labeler, answer, _ = sim.labels.vote_table()
    shuffled = np.random.default_rng(0).permutation(len(item))
    other = Labels.from_frame(
        {"item": item[shuffled], "labeler": 3 - labeler[shuffled], "label": answer[shuffled]}, classes=range(5)
    )
    how = {"n_chains": 2, "n_warmup": 300, "n_draws": 4000, "random_state": 0, "warn": False}
    posterior = noise.sample(sim.labels, Ordinal(), **how).posterior
    again = noise.sample(other, Ordinal(), **how).posterior[np.argsort(other.items.astype(int), kind="stable")]
    assert np.abs(posterior - again).mean() < 0.02


def test_densities_of_steps_have_their_gradients_and_are_those_of_the_model():
    rng = np.random.default_rng(0)
    n, n_raters, n_classes, n_answers = 40, 3, 4, 5
    ranks = np.array([1, 2, 0, 3])
    said = rng.integers(n_answers, size=(n, n_raters))
    gold = np.where(np.arange(n) % 9 == 0, rng.integers(n_classes, size=n), -1)
    outputs = SystemOutputs.of_classes(rng.integers(n_classes, size=(1, n)), n_classes, np.ones(1))
    sampler = OrdinalSampler(n_raters, n_classes, n_answers, ranks=ranks)
    row_prior = outputs.row_prior(n_classes, sampler.closeness)
    columns = (said + n_answers * np.arange(n_raters)).ravel()
    votes = (np.arange(0, n * n_raters + 1, n_raters), columns, np.ones(n * n_raters), np.full(n, -1))
    systems = (outputs.codes, outputs.first, outputs.power, row_prior)
    parameters = draw_parameters(n_raters, n_classes, rng)
    own = np.column_stack([parameters.bias, parameters.discrimination, parameters.stretch, parameters.lapse])
    rates = rng.dirichlet([5, 1], n_raters)
    scales = np.array([0.8, 0.5, 0.4, 0.9])
    laws = np.append(parameters.lapse_mean, np.log(scales))
    hyper = np.array([np.log(1.5), 0.7, -3.0, 1.0, 1.0, 0.5, 0.5, 1.0])
    distinct = rating_loops.distinct_items(votes, systems, gold)
    known = (np.argsort(ranks), rates, laws, hyper, distinct)
    table = np.empty((n_raters * n_answers, n_classes))
    square = np.empty((n_classes, n_classes))
    work = (np.empty_like(table), np.empty(n_classes), square, np.empty(n_classes))

    def density(q, rows):
        gradient = np.empty(len(q))
        parts = (np.empty_like(parameters.gaps), np.empty_like(own), np.empty(n_classes), table, rows)
        still = np.zeros((1, n_classes), dtype=bool)
        return rating_loops.evaluate(q, still, known, work, parts, gradient), gradient

    def expected(own, shares, rows):
        told = replace(parameters, bias=own[:, 0], discrimination=own[:, 1], stretch=own[:, 2:-1], lapse=own[:, -1])
        matrices = told.matrices()[:, ranks][:, :, ranks]
        full = np.concatenate([matrices * rates[:, :1, None], np.tile(rates[:, 1:, None], (1, n_classes, 1))], axis=2)
        joint = np.tile(shares, (n, 1))
        for t in range(n_raters):
            joint *= full[t][:, said[:, t]].T
        joint *= rows[outputs.codes[0]]
        joint = np.where((gold >= 0)[:, None] & (gold[:, None] != np.arange(n_classes)), 0.0, joint)
        away = own - np.array([0, 0, 0, 0, laws[0]])
        law = -(away**2 / (2 * scales[[0, 1, 2, 2, 3]] ** 2)).sum() + (row_prior * np.log(rows)).sum()
        return np.log(joint.sum(axis=1)).sum() + law + np.log(shares).sum()

    found, told = [], []
    for _ in range(2):  # densities are known up to a constant
        own = own + 0.1 * rng.standard_normal(own.shape)
        shares, rows = rng.dirichlet(np.full(n_classes, 3)), rng.dirichlet(np.full(n_classes, 3), n_classes).T.copy()
        ratios = [np.log(shares[1:] / shares[0]), np.log(rows[1:] / rows[0]).ravel()]
        q = np.concatenate([parameters.gaps, own.ravel(), *ratios])
        value, gradient = density(q, rows.copy())
        found.append(value)
        told.append(expected(own, shares, rows))
        for j in range(len(q)):
            shift = 1e-5 * (np.arange(len(q)) == j)
            slope = (density(q + shift, rows.copy())[0] - density(q - shift, rows.copy())[0]) / 2e-5
            assert slope == pytest.approx(gradient[j], abs=1e-5), j
    assert found[1] - found[0] == pytest.approx(told[1] - told[0], abs=1e-8)


def test_names_in_an_order_of_their_own():
    sim = simulate.ratings(n_items=150, n_classes=3, random_state=2)
    names = np.array(["poor", "fair", "good"], dtype=object)
    item, labeler, answer, _ = sim.labels.vote_table()
    named = Labels.from_frame({"item": item, "labeler": labeler, "label": names[answer]})
    assert named.classes.tolist() == ["fair", "good", "poor"]
    by_name = Ordinal(order=["poor", "fair", "good"]).fit(named).posterior(named)
    assert np.abs(by_name[:, [2, 0, 1]] - Ordinal().fit(sim.labels).posterior(sim.labels)).mean() < 0.02
    with pytest.raises(InvalidParameter, match="`order` must name each of the classes once"):
        Ordinal(order=["poor", "good"]).fit(named)
