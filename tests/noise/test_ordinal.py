"""The model of ratings: against exact sums over all truths, against its own prior, and on what it promises."""

import numpy as np
import pytest
from scipy.stats import chisquare

from trueup import Labels, noise, simulate
from trueup.exceptions import InvalidParameter
from trueup.noise import Ordinal
from trueup.noise.ordinal import draw_matrices

VOTES = np.array([[0, 0, 1], [2, 1, 2], [0, 2, -1], [1, 1, 2], [2, 2, 2]])


def posterior_by_importance(votes, n_classes, *, n_draws, seed):
    """P(class of each item), parameters drawn from the prior and all truths summed over."""
    rng = np.random.default_rng(seed)
    total, posterior = 0.0, np.zeros((len(votes), n_classes))
    for _ in range(n_draws):
        matrices = draw_matrices(votes.shape[1], n_classes, rng)
        joint = np.tile(rng.dirichlet(np.ones(n_classes)), (len(votes), 1))
        for t in range(votes.shape[1]):
            voted = votes[:, t] >= 0
            joint[voted] *= matrices[t][:, votes[voted, t]].T
        evidence = joint.sum(axis=1)
        weight = evidence.prod()
        total += weight
        posterior += weight * joint / evidence[:, None]
    return posterior / total


def test_draws_equal_sums_over_all_truths():
    labels = Labels.from_matrix(VOTES, missing=-1, classes=[0, 1, 2])
    expected = posterior_by_importance(VOTES, 3, n_draws=8000, seed=0)
    draws = noise.sample(labels, Ordinal(), n_chains=2, n_warmup=300, n_draws=4000, random_state=0, warn=False)
    np.testing.assert_allclose(draws.posterior, expected, atol=0.03)


def ranks_in_draws(seed, n_draws):
    """The rank of the true mean rating, share of the top class and accuracy of a labeler among their draws."""
    rng = np.random.default_rng([7, seed])
    sim = simulate.ratings(n_items=30, n_classes=4, n_labelers=3, prior=rng.dirichlet(np.ones(4)), random_state=rng)
    draws = noise.sample(
        sim.labels, Ordinal(), n_chains=1, n_warmup=300, n_draws=5 * n_draws, random_state=seed, warn=False
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
    how = {"n_chains": 2, "n_warmup": 300, "n_draws": 1000, "random_state": 0, "warn": False}
    posterior = noise.sample(sim.labels, Ordinal(), **how).posterior
    again = noise.sample(other, Ordinal(), **how).posterior[np.argsort(other.items.astype(int), kind="stable")]
    assert np.abs(posterior - again).mean() < 0.02


def test_a_seed_gives_the_same_draws_to_the_last_bit():
    """Also where chains run side by side and memory lies elsewhere each time: a rounding is enough for other draws."""
    labels = simulate.ratings(n_items=40, random_state=0).labels

    def drawn():
        return noise.sample(labels, "ordinal", n_warmup=20, n_draws=20, random_state=5, warn=False)

    first = drawn()
    for _ in range(3):
        again = drawn()
        np.testing.assert_array_equal(again.posterior, first.posterior)
        np.testing.assert_array_equal(again.truths, first.truths)


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
