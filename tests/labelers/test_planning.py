"""The planner: its half-widths against simulation, its choice against all designs, one by one."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import norm

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.labelers.information import (
    channel_of,
    explained_share,
    item_variance,
    learned_variance,
    list_outcomes,
    votes_channel,
)
from trueup.labelers.planning import plan

Z = norm.ppf(0.975)


def simulate(rng, *, n, k, labeler_error, error, n_sets, prior=0.5, correlation=0.0):
    """Truth, number of votes for class 1 and prediction, each of shape (n_sets, n)."""
    truth = rng.random((n_sets, n)) < prior
    rate = labeler_error
    if correlation:
        s = (1 - correlation) / correlation
        rate = rng.beta(labeler_error * s, (1 - labeler_error) * s, (n_sets, n))
    wrong = rng.binomial(k, rate, (n_sets, n))
    predicted = truth ^ (rng.random((n_sets, n)) < error)
    return truth, np.where(truth, k - wrong, wrong), predicted


def posterior_of_one(votes, k, labeler_error, prior=0.5):
    odds = np.log(prior / (1 - prior)) + (2 * votes - k) * np.log((1 - labeler_error) / labeler_error)
    return 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize(("k", "prior"), [(1, 0.5), (3, 0.5), (3, 0.2)])
def test_known_noise_has_the_variance_of_the_likelihood(k, prior):
    """400 data sets; a standard deviation of 400 is known to 3.5%, and 3.3 times that is asked."""
    rng, n, e, eps = np.random.default_rng(k), 1000, 0.15, 0.25
    _, votes, predicted = simulate(rng, n=n, k=k, labeler_error=eps, error=e, n_sets=400, prior=prior)
    q = posterior_of_one(votes, k, eps, prior)
    q = np.where(predicted, q, 1 - q)  # of the predicted class
    slope = 1 - 2 * q

    def estimate(q, slope):
        low, high = -(q / slope)[slope > 0].min(), (q / -slope)[slope < 0].min()  # where all chances are positive
        return brentq(lambda x: float((slope / (q + x * slope)).sum()), 0.999 * low, 0.999 * high)

    found = np.array([estimate(*pair) for pair in zip(q, slope, strict=True)])
    channel = channel_of(error=eps, n_labelers=k, prior=[1 - prior, prior])
    expected = np.sqrt(item_variance(list_outcomes(channel), e) / n)
    assert found.std(ddof=1) == pytest.approx(expected, rel=0.115)
    assert abs(found.mean() - e) < 4 * expected / np.sqrt(400)


def test_learned_noise_has_the_variance_of_the_joint_likelihood():
    """Error, labelers' error and prior estimated together, from the counts of votes and predictions."""
    rng, n, k, e, eps, n_sets = np.random.default_rng(0), 2000, 3, 0.15, 0.2, 300
    _, votes, predicted = simulate(rng, n=n, k=k, labeler_error=eps, error=e, n_sets=n_sets, prior=0.4)
    cells = 2 * votes + predicted
    counts = np.stack([np.bincount(c, minlength=2 * (k + 1)) for c in cells])
    v = np.arange(k + 1)
    ways = np.array([1, 3, 3, 1])

    def chances(theta):
        e, eps, pi = theta
        of_one, of_zero = ways * (1 - eps) ** v * eps ** (k - v), ways * eps**v * (1 - eps) ** (k - v)
        one = pi * of_one * (1 - e) + (1 - pi) * of_zero * e
        zero = pi * of_one * e + (1 - pi) * of_zero * (1 - e)
        return np.column_stack([zero, one]).ravel()

    found = [
        minimize(
            lambda t, c=c: -(c @ np.log(chances(t))) / n, [e, eps, 0.4], method="L-BFGS-B", bounds=[(1e-3, 0.49)] * 3
        ).x[0]
        for c in counts
    ]
    expected = np.sqrt(learned_variance(n_votes=k, labeler_error=eps, error=e, prior=np.array([0.6, 0.4])) / n)
    known = np.sqrt(item_variance(list_outcomes(channel_of(error=eps, n_labelers=k, prior=[0.6, 0.4])), e) / n)
    assert np.std(found, ddof=1) == pytest.approx(expected, rel=0.135)  # 3.3 deviations of a spread of 300
    assert known < expected


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_votes_and_vettings_have_the_variance_of_the_regression_estimator(correlation):
    rng, n, m, k, e, eps, n_sets = np.random.default_rng(1), 800, 200, 5, 0.2, 0.25, 600
    truth, votes, predicted = simulate(
        rng, n=n, k=k, labeler_error=eps, error=e, n_sets=n_sets, correlation=correlation
    )
    # What votes say of the truth, by the model that is right: counted on many items.
    big_truth, big_votes, _ = simulate(
        rng, n=400_000, k=k, labeler_error=eps, error=e, n_sets=1, correlation=correlation
    )
    q = np.array([big_truth[0][big_votes[0] == v].mean() for v in range(k + 1)])[votes]
    doubt = np.where(predicted, 1 - q, q)
    wrong = (predicted != truth).astype(float)
    f, w = doubt[:, :m], wrong[:, :m]
    covariance = ((f - f.mean(1, keepdims=True)) * (w - w.mean(1, keepdims=True))).mean(1)
    weight = covariance / f.var(1)
    found = w.mean(1) + weight * (doubt.mean(1) - f.mean(1))
    share = explained_share(list_outcomes(votes_channel(k, eps, np.array([0.5, 0.5]), correlation)), e)
    expected = np.sqrt(e * (1 - e) * ((1 - share) / m + share / n))
    assert found.std(ddof=1) == pytest.approx(expected, rel=0.095)
    assert abs(found.mean() - e) < 4 * expected / np.sqrt(n_sets)


def test_plan_predicts_the_half_width_of_what_it_recommends():
    """The plan is carried out 600 times; 95% intervals of its half-width hold the model's error 95% of the time."""
    found = plan(budget=400, vote_price=0.05, expert_price=1, labeler_accuracy=0.8, error=0.2, designs=["both"])
    n, k, m = found.n_items, found.votes_per_item, found.n_vettings
    truth, votes, predicted = simulate(np.random.default_rng(2), n=n, k=k, labeler_error=0.2, error=0.2, n_sets=600)
    q = posterior_of_one(votes, k, 0.2)
    doubt, wrong = np.where(predicted, 1 - q, q), (predicted != truth).astype(float)
    f, w = doubt[:, :m], wrong[:, :m]
    weight = ((f - f.mean(1, keepdims=True)) * (w - w.mean(1, keepdims=True))).mean(1) / f.var(1)
    estimate = w.mean(1) + weight * (doubt.mean(1) - f.mean(1))
    held = np.abs(estimate - 0.2) <= found.half_width
    assert 0.92 <= held.mean() <= 0.98  # 600 at 95%: 3.3 deviations are 0.029


@pytest.mark.slow
def test_learned_noise_gives_the_width_that_evaluate_gives():
    """Labelers with rates of their own, all learned: `evaluate` with one coin each, mean over four data sets."""
    n, k, eps, e = 800, 3, 0.2, 0.15
    widths = []
    for seed in range(4):
        data = tu.simulate.dawid_skene(
            n_items=n, n_labelers=6, votes_per_item=k, accuracy=1 - eps, classifier_accuracy=1 - e, random_state=seed
        )
        found = tu.evaluate(
            data.predictions,
            data.labels,
            noise="one-coin",
            metrics=["accuracy"],
            target="population",
            check_dependence=False,
            random_state=seed,
        )
        low, high = found["accuracy"].interval(0.95)
        widths.append((high - low) / 2)
    expected = Z * np.sqrt(learned_variance(n_votes=k, labeler_error=eps, error=e, prior=np.array([0.5, 0.5])) / n)
    assert np.mean(widths) == pytest.approx(expected, rel=0.1)


def by_hand(budget, vote_price, expert_price, eps, e, share_of, max_votes):
    """The least half-width of a design with both, over all integers."""
    best = np.inf
    for k, m in itertools.product(range(1, max_votes + 1), range(30, int(budget / expert_price) + 1)):
        n = int((budget - m * expert_price) / (k * vote_price) + 1e-9)
        if n >= m:
            best = min(best, Z * np.sqrt(e * (1 - e) * ((1 - share_of[k]) / m + share_of[k] / n)))
    return best


def test_the_recommendation_is_the_best_of_all_designs():
    settings = {"vote_price": 0.5, "expert_price": 3.0}
    found = plan(budget=900, labeler_accuracy=0.85, error=0.15, max_votes=6, designs=["both"], **settings)
    share = {k: explained_share(list_outcomes(channel_of(error=0.15, n_labelers=k)), 0.15) for k in range(1, 7)}
    assert found.half_width == pytest.approx(by_hand(900, 0.5, 3.0, 0.15, 0.15, share, 6), rel=1e-9)
    assert found.cost <= 900
    assert found.cost == pytest.approx(found.n_items * found.votes_per_item * 0.5 + found.n_vettings * 3.0)


def test_designs_at_the_extremes():
    common = {"budget": 1000, "labeler_accuracy": 0.8, "error": 0.1}
    dear_votes = plan(vote_price=10, expert_price=1, **common)
    assert (dear_votes.kind, dear_votes.n_items, dear_votes.n_vettings) == ("vetted", 1000, 1000)
    assert dear_votes.half_width == pytest.approx(Z * np.sqrt(0.09 / 1000))
    no_expert = plan(vote_price=0.1, **common)
    assert (no_expert.kind, no_expert.n_vettings) == ("votes", 0)
    assert no_expert.votes_per_item >= 2  # the rates are learned
    assert "independently" in no_expert.notes[0]
    known = plan(vote_price=0.1, noise_known=True, **common)
    assert known.half_width < no_expert.half_width
    assert known.votes_per_item <= no_expert.votes_per_item
    assert plan(vote_price=0.1, noise_known=True, **{**common, "labeler_accuracy": 0.95}).votes_per_item == 1
    correlated = plan(vote_price=0.1, expert_price=1, correlation=0.2, **common)
    assert correlated.kind != "votes"


GOOD = {"budget": 100, "vote_price": 0.1, "expert_price": 1, "labeler_accuracy": 0.8, "error": 0.1}


@pytest.mark.parametrize(
    "change",
    [
        *({"budget": value} for value in (0, 1)),
        *({name: -1} for name in ("expert_price", "item_price")),
        *({name: 0} for name in ("vote_price", "max_items", "error")),
        *({"labeler_accuracy": value} for value in (0.5, 1.2, [])),
        *({"error": 0.6}, {"n_classes": 1}, {"prior": [0.5, 0.6]}, {"correlation": 1.0}, {"level": 95}),
        *({"designs": ["all"]}, {"designs": ["votes"], "vote_price": None}),
        {"vote_price": None, "expert_price": None},
    ],
)
def test_bad_wishes_are_one_sentence(change):
    with pytest.raises(InvalidParameter):
        plan(**{**GOOD, **change})
