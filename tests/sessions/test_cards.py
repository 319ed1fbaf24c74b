"""Cards that are no new draws: who gets which, and how many of them there are."""

import numpy as np
import pytest

from trueup.exceptions import InvalidParameter
from trueup.sessions.log import Event, Names
from trueup.sessions.progress import Shares, delayed_cards, fold, new_cards, open_cards, overlap_of_draws, status_of

NAMES = Names(list(range(400)), ["no", "yes"])
NO_GOLD = np.full(400, -1)


def drawn(n, *events):
    return fold([*(Event("ask", k, propensity=0.1) for k in range(n)), *events], NAMES)


def answers(n, who, first=0):
    return [Event("tell", k, "no", who, 0.1) for k in range(first, first + n)]


def positions(cards):
    return [card.position for card in cards]


def test_what_one_expert_puts_off_goes_to_another_first():
    put_off = drawn(30, Event("later", 0, who="ann"), Event("ask", 30, propensity=0.1))
    assert positions(delayed_cards(put_off, "bob")) == [0]
    assert positions(delayed_cards(put_off, "ann")) == []
    assert positions(delayed_cards(put_off, "ann", at_last=True)) == [0]
    after = drawn(30, Event("later", 0, who="ann"), *answers(10, "bob", first=1))
    assert positions(delayed_cards(after, "ann")) == [0]


def test_a_disagreement_is_for_a_third():
    events = [*answers(1, "ann"), Event("ask", 0, purpose="overlap"), Event("tell", 0, "yes", "bob", purpose="overlap")]
    disputed = drawn(3, *events)
    (card,) = new_cards(disputed, Shares(repeat=0, checks=0), NO_GOLD, seed=0)
    assert card == (0, "settle", None)
    out = drawn(3, *events, Event("ask", 0, purpose="settle"))
    assert new_cards(out, Shares(repeat=0, checks=0), NO_GOLD, seed=0) == []
    assert [card.purpose for card in open_cards(out, "eve")] == ["settle"]
    assert open_cards(out, "ann") == open_cards(out, "bob") == []


def test_second_opinions_are_by_coin_from_two_experts_on():
    one, two = drawn(5, *answers(5, "ann")), drawn(5, *answers(3, "ann"), *answers(2, "bob", first=3))
    assert not any(overlap_of_draws(one, "ann", 200, Shares(), 0, None))
    assert any(overlap_of_draws(one, "bob", 200, Shares(), 0, None)), "who asks counts too"
    chosen = overlap_of_draws(two, None, 2000, Shares(), 0, None)
    assert abs(np.mean(chosen) - 0.1) < 4 * np.sqrt(0.09 / 2000)
    assert chosen[:50] == overlap_of_draws(two, None, 50, Shares(), 0, None), "a coin falls once"
    assert sum(overlap_of_draws(two, None, 95, Shares(), 0, 100)) >= 30, "a small budget still has thirty"
    assert not any(overlap_of_draws(two, None, 100, Shares(overlap=0), 0, 100))


def test_one_expert_sees_some_again_fifty_cards_later():
    few, many = drawn(200, *answers(50, "ann")), drawn(200, *answers(200, "ann"))
    shares = Shares(checks=0)
    assert new_cards(few, shares, NO_GOLD, seed=1) == []
    repeats = new_cards(many, shares, NO_GOLD, seed=1)
    assert {card[1:] for card in repeats} == {("repeat", "ann")}
    assert max(positions(repeats)) < 150
    assert 1 <= len(repeats) <= 20
    again = Event("tell", repeats[0].position, "yes", "ann", 0.1, purpose="repeat")
    assert repeats[0] not in new_cards(drawn(200, *answers(200, "ann"), again), shares, NO_GOLD, seed=1)
    assert new_cards(drawn(200, *answers(199, "ann"), *answers(1, "bob", first=199)), shares, NO_GOLD, seed=1) == []


def test_known_items_come_as_a_share_of_the_cards():
    gold = NO_GOLD.copy()
    gold[300:] = 1
    log = [Event("ask", k, propensity=0.1) for k in range(200)]
    n_checks = 0
    for k in range(200):
        log += answers(1, "ann", first=k)
        for card in new_cards(fold(log, NAMES), Shares(repeat=0), gold, seed=2):
            n_checks += 1
            assert card[1:] == ("check", "ann")
            log += [Event("ask", card.position, who="ann", purpose="check")]
            log += [Event("tell", card.position, "yes" if n_checks > 3 else "no", "ann", purpose="check")]
    assert 9 <= n_checks <= 12
    errors = status_of(fold(log, NAMES), gold, n_items=400, n_classes=2, level=0.95).errors
    assert (errors.count, errors.n) == (3, n_checks)


@pytest.mark.parametrize("name", ["overlap", "repeat", "checks"])
def test_shares_are_shares(name):
    with pytest.raises(InvalidParameter, match=name):
        Shares(**{name: 1.5})


def test_the_standing_counts_everything_once():
    events = [
        *answers(4, "ann"),
        Event("tell", 0, "no", "bob", purpose="overlap"),
        Event("tell", 1, "yes", "bob", purpose="overlap"),
        Event("tell", 1, "yes", "eve", purpose="settle"),
        Event("tell", 2, "yes", "bob", purpose="overlap"),
        Event("cannot tell", 4, who="bob"),
        Event("later", 5, who="bob"),
        Event("none of these", 6, who="bob"),
        Event("tell", 7, "no", "bob", 0.1, blind=False),
        Event("correct", 3, "yes", "owner", 0.1, saw_estimate=True),
    ]
    status = status_of(drawn(10, *events), NO_GOLD, n_items=400, n_classes=2, level=0.95)
    assert (status.drawn, status.answered, status.counted, status.ahead, status.open) == (10, 6, 3, 2, 3)
    assert (status.cannot_tell, status.none_of_these, status.later, status.disputed) == (1, 1, 1, 1)
    assert (status.sighted, status.corrected) == (1, 1)
    assert (status.agreement.count, status.agreement.n) == (1, 3)
    # Items 0 and 1 are agreed on or settled: of their four answers the first on item 1 is wrong.
    assert (status.errors.count, status.errors.n) == (1, 4)
    assert {one.who: one.errors.count for one in status.experts} == {"ann": 1, "bob": 0, "eve": 0, "owner": 0}
    assert status.to_dict()["experts"][0]["who"] == "ann"
    words = " ".join(status.sentences())
    assert "6 of 400 items answered, 3 of them counted" in words
    assert "2 wait to count" in words
