"""Where a session stands: a pure function of its log, whether that lies in memory, in a file or in a database."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Floats, Positions
from trueup.sessions.log import Event, Names, check_event

MEASURING = ("repeat", "check")  # purposes of answers that measure the expert and say nothing new of the item
UNKNOWN = -1


@dataclass(frozen=True)
class Opinion:
    """One outcome that an expert gave for an item.

    Attributes
    ----------
    who : str or None
    code : int
        The class, -1 where the expert cannot tell, and one more than the last class for none of these.
    purpose : str or None
        That of the card.
    is_correction : bool
        Whether it takes the place of an outcome that was there.
    is_swayed : bool
        Given with the prediction in sight, or as a correction with the estimate in sight.
    card : int
        How many outcomes the session had with this one.
    """

    who: str | None
    code: int
    purpose: str | None
    is_correction: bool
    is_swayed: bool
    card: int


@dataclass(frozen=True, eq=False)
class Progress:
    """Where a session stands after a log.

    Attributes
    ----------
    truth : integer array of shape (n_items,)
        The class that stands for each item, with every answer; -1 where unknown, and one more than the last class
        where it is none of these.
    unswayed : integer array of shape (n_items,)
        The same without answers given with a prediction in sight, and without corrections by someone who had seen the
        estimate.
    waiting, cannot_tell, put_off, disputed : boolean arrays of shape (n_items,)
        Items asked and not yet answered; those of which no expert could tell the class; those that wait because an
        expert put them off; those on which experts differ and nobody has settled it.
    propensity : array of shape (n_items,)
        The probability with which an item was drawn; NaN where it was not drawn by chance.
    draw : integer array of shape (n_items,)
        The place of the item among all draws, from 1 on; 0 where it was never asked.
    told_after : integer array of shape (n_items,)
        Of an item that has an outcome and was never asked, the number of draws before it: it was still among the items
        that these were drawn from. 0 for all others.
    n_tells : int
        Answered items; a correction or a second opinion is not a new one.
    n_cards : int
        Outcomes of all kinds.
    opinions : mapping from position to opinions
        What each expert said of an item, in order.
    cards : mapping from (position, purpose) to experts
        Who has a card that is no new draw; None for anybody.
    delays : mapping from position to pairs
        Who put an item off, and the number of outcomes at that time.
    """

    truth: Positions
    unswayed: Positions
    waiting: Booleans
    cannot_tell: Booleans
    put_off: Booleans
    disputed: Booleans
    propensity: Floats
    draw: Positions
    told_after: Positions
    n_tells: int = 0
    n_cards: int = 0
    opinions: Mapping[int, tuple[Opinion, ...]] = field(default_factory=dict, repr=False)
    cards: Mapping[tuple[int, str], str | None] = field(default_factory=dict, repr=False)
    delays: Mapping[int, tuple[tuple[str | None, int], ...]] = field(default_factory=dict, repr=False)

    @property
    def vetted(self) -> Booleans:
        """Items with an answer."""
        return np.asarray(self.truth >= 0)

    @property
    def outcome(self) -> Booleans:
        """Items with an answer, and those of which nobody can tell the class."""
        return np.asarray(self.vetted | self.cannot_tell)

    @property
    def experts(self) -> tuple[str, ...]:
        """The names of those who gave outcomes, in the order they came in."""
        named = sorted((one.card, one.who) for each in self.opinions.values() for one in each if one.who is not None)
        return tuple(dict.fromkeys(who for _, who in named))


def no_progress(n_items: int) -> Progress:
    """Before the first question."""
    no = np.zeros(n_items, dtype=bool)
    unknown, places = np.full(n_items, UNKNOWN, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
    return Progress(unknown, unknown, no, no, no, no, np.full(n_items, np.nan), places, places)


def fold(events: Iterable[Event], names: Names, *, since: Progress | None = None) -> Progress:
    """The state after the events, from item and class names to positions and codes.

    Parameters
    ----------
    since : Progress, optional
        Where earlier events had led: folding a log in parts is folding it at once.
    """
    state = _copied(no_progress(len(names.items)) if since is None else since)
    n_tells, n_cards, n_draws = state.n_tells, state.n_cards, int(state.draw.max(initial=0))
    opinions, cards, delays = dict(state.opinions), dict(state.cards), dict(state.delays)
    for event in events:
        check_event(event, names)
        if event.kind == "comment":
            continue
        at = names.positions[event.item]
        if event.purpose is not None:
            if event.kind == "ask":
                cards[at, event.purpose] = event.who
                continue
            cards.pop((at, event.purpose), None)
        elif state.draw[at] == 0 and (event.kind == "ask" or event.propensity is not None):
            # A log of answers alone still says with which chance each item was drawn, in the order of the draws.
            n_draws = n_draws + 1 if event.draw is None else max(n_draws, event.draw)
            state.draw[at] = n_draws if event.draw is None else event.draw
            state.waiting[at] = True
            state.propensity[at] = math.nan if event.propensity is None else event.propensity
        if event.kind == "ask":
            state.put_off[at] = False
        elif event.kind == "later":
            delays[at] = (*delays.get(at, ()), (event.who, n_cards))
            state.put_off[at] = state.waiting[at]
        else:
            n_cards += 1
            before = opinions.get(at, ())
            if not before and state.draw[at] == 0:
                state.told_after[at] = n_draws
            opinions[at] = (*before, opinion_of(event, names, before, n_cards))
            if event.purpose not in MEASURING:
                was_open = state.truth[at] < 0
                _settle(state, at, opinions[at])
                n_tells += int(was_open and state.truth[at] >= 0 and event.kind != "correct")
    return replace(state, n_tells=n_tells, n_cards=n_cards, opinions=opinions, cards=cards, delays=delays)


def _copied(progress: Progress) -> Progress:
    arrays: dict[str, Any] = {name: v.copy() for name, v in vars(progress).items() if isinstance(v, np.ndarray)}
    return replace(progress, **arrays)


def _settle(state: Progress, at: int, opinions: tuple[Opinion, ...]) -> None:
    """Write what the opinions on an item come to into the arrays of a state that is being built."""
    state.truth[at], state.disputed[at] = standing_class(opinions)
    state.unswayed[at], _ = standing_class([one for one in opinions if not one.is_swayed])
    state.cannot_tell[at] = state.truth[at] < 0  # an answer outlives the doubts of another expert
    state.waiting[at] = state.put_off[at] = False


def opinion_of(event: Event, names: Names, before: Iterable[Opinion], card: int) -> Opinion:
    """What an event says of its item, after the opinions `before`; it is outcome number `card` of the session."""
    if event.kind in ("tell", "correct") and event.truth is not None:
        code = names.codes[event.truth]
    else:
        code = names.outside if event.kind in ("none of these", "correct") else UNKNOWN
    again = event.purpose is None and any(one.who == event.who and one.purpose not in MEASURING for one in before)
    is_correction = event.kind == "correct" or again
    is_swayed = event.blind is False or (is_correction and bool(event.saw_estimate))
    return Opinion(event.who, code, event.purpose, is_correction, is_swayed, card)


def standing_class(opinions: Iterable[Opinion]) -> tuple[int, bool]:
    """The class that stands, and whether experts differ on it and nobody has settled it.

    The first class that an expert named stands, until a third settles what two dispute. An expert who corrects what
    they said replaces it; a correction by anybody else settles the item.

    Examples
    --------
    >>> first, second = Opinion("ann", 0, None, False, False, 1), Opinion("bob", 1, "overlap", False, False, 2)
    >>> third = Opinion("eve", 1, "settle", False, False, 3)
    >>> standing_class([first, second]), standing_class([first, second, third])
    ((0, True), (1, False))
    """
    latest: dict[str | None, int] = {}
    settled = UNKNOWN
    for one in opinions:
        if one.purpose in MEASURING:
            continue
        if one.code >= 0 and (one.purpose == "settle" or (one.is_correction and one.who not in latest)):
            settled = one.code
        else:
            latest[one.who] = one.code
            settled = one.code if one.is_correction and settled >= 0 else settled
    if settled >= 0:
        return settled, False
    named = [code for code in latest.values() if code >= 0]
    return (named[0] if named else UNKNOWN), len(set(named)) > 1
