"""The bets: exact on small cases, and false no more often than allowed."""

from itertools import permutations, product

import numpy as np
import pytest

from trueup.decisions.sequential import (
    STAKES,
    Sides,
    Standing,
    View,
    advance,
    bet,
    draws_until,
    learn,
    make_view,
    stake_weights,
)


def make_case(n_items=5, seed=0):
    rng = np.random.default_rng(seed)
    terms = np.stack([rng.choice([0.5, 1.0], n_items), rng.choice([-1.0, -0.5], n_items)], axis=1)
    sides = Sides.of([terms], [True])
    chances = rng.dirichlet([1.0, 1.0], n_items)
    is_open = np.ones(n_items, dtype=bool)
    view = make_view(sides, chances, is_open, np.zeros(2), np.zeros(2))
    return sides, view, is_open


def first_standing(sides, is_open):
    n = len(sides.terms)
    return Standing(np.zeros(n), is_open, np.full((n, len(STAKES)), -np.log(len(STAKES))), np.zeros(n))


def play(sides, view, order, truth):
    """The standing after draws in an order, and the chance of that order."""
    standing, chance = first_standing(sides, np.ones(len(truth), dtype=bool)), 1.0
    for item in order:
        q = view.pull[item] / view.pull[standing.is_open].sum()
        chance *= q
        standing = bet(sides, standing, item, int(truth[item]), q, view, view)
    return standing, chance


@pytest.mark.parametrize("seed", range(2))
def test_the_mean_wealth_is_one_where_the_sum_is_zero_over_all_orders(seed):
    sides, view, _ = make_case(seed=seed)
    for truth in product([0, 1], repeat=5):
        total = sides.terms[0, np.arange(5), truth].sum()
        shifted = View(view.expected, view.pull, np.array([total, -total]))  # so that both sums are zero
        played = [play(sides, shifted, order, truth) for order in permutations(range(5), 3)]
        assert sum(chance for _, chance in played) == pytest.approx(1.0)
        wealth = sum(chance * np.exp(standing.log_wealth) for standing, chance in played)
        assert wealth == pytest.approx([1.0, 1.0])


def test_a_bet_never_loses_all():
    """In any order: what is left of a wealth depends on the order, so all of four items are played."""
    sides, view, _ = make_case(n_items=4, seed=7)
    worst = min(
        play(sides, view, order, truth)[0].wealth.min()
        for order in permutations(range(4))
        for truth in product([0, 1], repeat=4)
    )
    assert worst > -np.inf


def test_a_chance_that_is_not_that_of_the_view_bets_nothing():
    sides, view, is_open = make_case()
    before = first_standing(sides, is_open)
    after = bet(sides, before, 2, 1, 0.0123, view, view)
    assert np.array_equal(after.wealth, before.wealth)
    assert not after.is_open[2]


def test_what_nobody_can_tell_counts_as_little_as_it_can_for_either_side():
    sides, _, is_open = make_case()
    after = learn(sides, first_standing(sides, is_open), 3, -1, np.zeros(2))
    assert after.known == pytest.approx([sides.terms[0, 3].min(), -sides.terms[0, 3].max()])


def test_all_items_checked_decide_for_sure():
    sides, view, _ = make_case()
    truth = np.argmax(sides.terms[0], axis=1)
    standing, _ = play(sides, view, range(5), truth)
    assert np.isinf(standing.most[0])
    assert not np.isinf(standing.most[1])


def test_on_the_bound_itself_the_side_that_includes_it_is_sure():
    terms = np.array([[1.0, -1.0], [1.0, -1.0]])
    for inside in (True, False):
        sides = Sides.of([terms], [inside])
        standing = Standing(np.zeros(2), np.zeros(2, dtype=bool), np.zeros((2, 1)), np.zeros(2))
        assert np.isinf(advance(sides, standing, np.zeros(2)).most).tolist() == [inside, not inside]


def test_futures_are_what_playing_them_gives():
    rng = np.random.default_rng(0)
    n = 40
    terms = np.tile([[0.3, -0.7]], (n, 1)) / n
    sides, is_open = Sides.of([terms], [True]), np.ones(n, dtype=bool)
    view = make_view(sides, np.tile([[0.8, 0.2]], (n, 1)), is_open, np.zeros(2), np.zeros(2))
    limits = np.log([20.0, 20.0])
    truths = (rng.random((30, n)) > 0.9).astype(int)
    standing = first_standing(sides, is_open)
    number, verdict = draws_until(sides, standing, view, truths, limits, most=n, rng=np.random.default_rng(1))
    order = np.argsort(np.random.default_rng(1).standard_exponential((30, n)) / view.pull, axis=1, kind="stable")
    for world in range(30):
        played = standing
        for k, item in enumerate(order[world]):
            q = view.pull[item] / view.pull[played.is_open].sum()
            played = bet(sides, played, item, int(truths[world, item]), q, view, view)
            proved = played.most >= limits
            if proved.any():
                assert (number[world], verdict[world]) == (k + 1, 1 if proved[0] else -1)
                break


def test_at_the_bound_hardly_more_runs_than_allowed_are_false_at_any_look():
    """A small version of the table of false verdicts, which are few; that a bet is fair is the test of all orders."""
    rng = np.random.default_rng(3)
    n, runs = 300, 600
    base = rng.beta(4, 2, n)
    truth = np.zeros(n, dtype=int)
    truth[rng.permutation(n)[:100]] = 1  # a mean of 2/3, on the bound itself
    terms = np.tile([[1 / 3, -2 / 3]], (n, 1)) / n
    sides, is_open = Sides.of([terms], [False]), np.ones(n, dtype=bool)
    view = make_view(sides, np.stack([base, 1 - base], axis=1), is_open, np.zeros(2), np.zeros(2))
    sums = rng.normal(0, 0.1, (2, 200))
    standing = Standing(np.zeros(2), is_open, stake_weights(sides, view, is_open, sums), np.zeros(2))
    _, verdict = draws_until(sides, standing, view, np.tile(truth, (runs, 1)), np.log([20.0, 20.0]), most=250, rng=rng)
    assert (verdict > 0).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)
    assert (verdict < 0).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)
    looser = draws_until(sides, standing, view, np.tile(truth, (runs, 1)), np.log([3.0, 3.0]), most=250, rng=rng)[1]
    assert (looser != 0).mean() > 0.1
