"""Cards that are no new draws: items put off, second opinions, disagreements to settle, repeats and known items.

All are functions of where the session stands, so that a session in memory, in a file and in a database ask the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trueup._base.types import Codes
from trueup._base.validation import check_number
from trueup.sessions.progress import Progress

LEAST_SECOND_OPINIONS = 30
CARDS_BEFORE_A_REPEAT = 50
CARDS_BEFORE_AN_OWN_DELAY = 10  # of anybody, before an item comes back to the expert who put it off
_ANYBODY = ("settle", "overlap")  # the most urgent first
_RESERVED = ("repeat", "check")


@dataclass(frozen=True)
class Shares:
    """How much of the experts' work measures the experts.

    Parameters
    ----------
    overlap : float
        Of the draws, those that a second expert sees too, from two experts on; with a budget at least 30 of them.
    repeat : float
        Of the draws, those that a single expert sees again, at least 50 cards later.
    checks : float
        Of the cards of each expert, those with an item whose class is known, where there is gold.
    """

    overlap: float = 0.1
    repeat: float = 0.05
    checks: float = 0.05

    def __post_init__(self) -> None:
        for name in ("overlap", "repeat", "checks"):
            check_number(getattr(self, name), name=name, low=0.0, high=1.0)


class Card(NamedTuple):
    """An item to hand out: why, None for a draw that was put off, and the only expert who may have it, if any."""

    position: int
    purpose: str | None
    reserved_for: str | None = None


def delayed_cards(progress: Progress, who: str | None, *, at_last: bool = False) -> list[Card]:
    """Items that someone put off, in the order of the draws.

    Other experts get them at once. Who put one off gets it when some other cards were answered, or `at_last`, when
    nothing else is left.
    """
    positions = np.flatnonzero(progress.put_off & progress.waiting)
    in_order = positions[np.argsort(progress.draw[positions], kind="stable")].tolist()
    return [Card(at, None) for at in in_order if at_last or not _was_just_put_off(progress, at, who)]


def _was_just_put_off(progress: Progress, at: int, who: str | None) -> bool:
    since = [progress.n_cards - card for name, card in progress.delays[at] if name == who]
    return bool(since) and min(since) < CARDS_BEFORE_AN_OWN_DELAY


def open_cards(progress: Progress, who: str) -> list[Card]:
    """Cards with a purpose that are in the log already and that this expert may answer, most urgent first."""
    cards = []
    for purpose in (*_ANYBODY, *_RESERVED):
        positions = [at for (at, why), name in progress.cards.items() if why == purpose and name in (None, who)]
        for at in positions:
            spoke = any(one.who == who for one in progress.opinions.get(at, ()))
            is_first = purpose == "overlap" and not progress.outcome[at]  # the draw itself is still out
            if spoke == (purpose == "repeat") and not is_first:
                cards.append(Card(at, purpose, who))
    return cards


def new_cards(progress: Progress, shares: Shares, gold: Codes, seed: int) -> list[Card]:
    """Cards that have become due and are not in the log yet: disagreements, repeats and known items."""
    cards = [Card(at, "settle") for at in np.flatnonzero(progress.disputed).tolist()]
    experts = progress.experts
    if len(experts) == 1 and shares.repeat > 0:
        cards += [Card(at, "repeat", experts[0]) for at in _repeats(progress, experts[0], shares.repeat, seed)]
    if shares.checks > 0 and (gold >= 0).any():
        for number, who in enumerate(experts):
            cards += _checks(progress, who, shares.checks, gold, [seed, 5, number])
    return [card for card in cards if card[:2] not in progress.cards]


def _repeats(progress: Progress, who: str, share: float, seed: int) -> list[int]:
    """Draws whose coin asks for the same expert again, and that they answered long enough ago."""
    answered = [
        at
        for at, opinions in progress.opinions.items()
        if len(opinions) == 1
        and opinions[0].who == who
        and opinions[0].code >= 0
        and progress.n_cards - opinions[0].card >= CARDS_BEFORE_A_REPEAT
    ]
    places = [int(progress.draw[at]) for at in answered]
    return [at for at, draw in zip(answered, places, strict=True) if draw > 0 and coin(seed, "repeat", draw) < share]


def _checks(progress: Progress, who: str, share: float, gold: Codes, seed: list[int]) -> list[Card]:
    """At most one known item for an expert, so that these are the share of their cards, from a random place on."""
    mine = [(at, one.purpose) for at, each in progress.opinions.items() for one in each if one.who == who]
    out = {at for (at, purpose), name in progress.cards.items() if name == who and purpose == "check"}
    n_checks = len(out) + sum(purpose == "check" for _, purpose in mine)
    rng = np.random.default_rng([*seed, n_checks])
    begin = np.random.default_rng(seed).random()
    seen = {at for at, _ in mine} | out
    left = [at for at in np.flatnonzero((gold >= 0) & ~progress.vetted).tolist() if at not in seen]
    if not left or n_checks >= int(share * len(mine) + begin):
        return []
    return [Card(left[int(rng.integers(len(left)))], "check", who)]


def coin(seed: int, use: str, draw: int) -> float:
    """The coin thrown with a draw: even between 0 and 1, and the same whenever it is looked at."""
    return float(np.random.default_rng([seed, 3 if use == "repeat" else 4, draw]).random())


def overlap_of_draws(
    progress: Progress, who: str | None, n: int, shares: Shares, seed: int, budget: int | None
) -> list[bool]:
    """Whether each of the next n draws is to be seen by two experts, decided before anybody has seen the item.

    From two experts on. With a budget the chance is raised where the share would leave fewer than 30.
    """
    experts = {*progress.experts, *([] if who is None else [who])}
    if len(experts) < 2 or shares.overlap == 0:
        return [False] * n
    n_drawn = int(progress.draw.max(initial=0))
    with_card = {at for at, purpose in progress.cards if purpose == "overlap"}
    with_answer = {at for at, each in progress.opinions.items() if any(one.purpose == "overlap" for one in each)}
    n_second, chosen = len(with_card | with_answer), []
    for k in range(1, n + 1):
        chance = shares.overlap
        if budget is not None:
            chance = max(chance, (LEAST_SECOND_OPINIONS - n_second) / max(budget - (n_drawn + k - 1), 1))
        chosen.append(coin(seed, "overlap", n_drawn + k) < chance)
        n_second += chosen[-1]
    return chosen
