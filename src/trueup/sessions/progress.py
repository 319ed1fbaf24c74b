"""Where a session stands: a pure function of its log, whether that lies in memory, in a file or in a database.

Easy items are answered first. Where several experts work at once, or one of them leaves the hard items for later, the
answers that are there are no random sample of the items that were drawn. The first k draws of which all have an outcome
are: which items these are was decided by chance before anybody looked. Answers to later draws are kept, and wait.

All are functions of where the session stands, so that a session in memory, in a file and in a database ask the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_number
from trueup.posteriors import wilson
from trueup.sessions.log import Event, Names, check_event

CARDS_BEFORE_A_REPEAT = 50
CARDS_BEFORE_AN_OWN_DELAY = 10  # of anybody, before an item comes back to the expert who put it off
MEASURING = ("repeat", "check")  # purposes of answers that measure the expert and say nothing new of the item
_PURPOSES = ("settle", "overlap", *MEASURING)  # the most urgent first
UNKNOWN = -1


@dataclass(frozen=True)
class Shares:
    """How much of the experts' work measures the experts."""

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
    """Items that someone put off, in the order of the draws; theirs later, or `at_last` when nothing else is left."""
    positions = np.flatnonzero(progress.put_off & progress.waiting)
    in_order = positions[np.argsort(progress.draw[positions], kind="stable")].tolist()
    latest = progress.n_cards - CARDS_BEFORE_AN_OWN_DELAY
    return [
        Card(at, None)
        for at in in_order
        if at_last or not any(name == who and card > latest for name, card in progress.delays[at])
    ]


def has_answered(progress: Progress, at: int, who: str | None) -> bool:
    """Whether an expert gave an outcome for the item at this position."""
    return any(opinion.who == who for opinion in progress.opinions.get(at, ()))


def open_cards(progress: Progress, who: str) -> list[Card]:
    """Cards with a purpose that are in the log already and that this expert may answer, most urgent first."""
    outcome = progress.outcome
    return [
        Card(at, purpose, who)
        for purpose in _PURPOSES
        for (at, why), name in progress.cards.items()
        if why == purpose and name in (None, who) and has_answered(progress, at, who) == (purpose == "repeat")
        if purpose != "overlap" or outcome[at]  # else the draw itself is still out
    ]


def purpose_of_card(progress: Progress, at: int, who: str | None) -> str | None:
    """The purpose of the card for an item that is out with an expert; None for a draw."""
    if who is None:
        return None
    for purpose in _PURPOSES:
        is_theirs = (at, purpose) in progress.cards and progress.cards[at, purpose] in (None, who)
        if is_theirs and (purpose == "repeat" or not has_answered(progress, at, who)):
            # Of two cards on a draw that nobody has answered yet, the first answer is that of the draw.
            return None if purpose == "overlap" and progress.waiting[at] else purpose
    return None


def new_cards(progress: Progress, shares: Shares, gold: Codes, seed: int) -> list[Card]:
    """Cards that have become due and are not in the log yet: disagreements, repeats and known items."""
    cards = [Card(at, "settle") for at in np.flatnonzero(progress.disputed).tolist()]
    experts = progress.experts
    if len(experts) == 1 and shares.repeat > 0:  # draws that they answered long enough ago, by the coin of each
        for at, opinions in progress.opinions.items():
            first, draw = opinions[0], int(progress.draw[at])
            is_theirs = len(opinions) == 1 and first.who == experts[0] and first.code >= 0 and draw > 0
            is_long_ago = progress.n_cards - first.card >= CARDS_BEFORE_A_REPEAT
            if is_theirs and is_long_ago and coin(seed, "repeat", draw) < shares.repeat:
                cards.append(Card(at, "repeat", experts[0]))
    if shares.checks > 0 and (gold >= 0).any():
        for number, who in enumerate(experts):
            cards += _checks(progress, who, shares.checks, gold, [seed, 5, number])
    return [card for card in cards if card[:2] not in progress.cards]


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
    """Whether each of the next n draws is to be seen by two experts, decided before anybody has seen the item."""
    experts = {*progress.experts, *([] if who is None else [who])}
    if len(experts) < 2 or shares.overlap == 0:
        return [False] * n
    n_drawn = int(progress.draw.max(initial=0))
    seen_twice = {at for at, purpose in progress.cards if purpose == "overlap"}
    seen_twice |= {at for at, each in progress.opinions.items() if any(one.purpose == "overlap" for one in each)}
    n_second, chosen = len(seen_twice), []
    for k in range(1, n + 1):
        chance = shares.overlap
        if budget is not None:
            # With a budget thirty second opinions at least.
            chance = max(chance, (30 - n_second) / max(budget - (n_drawn + k - 1), 1))
        chosen.append(coin(seed, "overlap", n_drawn + k) < chance)
        n_second += chosen[-1]
    return chosen


@dataclass(frozen=True)
class Rate:
    """A share that was counted, with Wilson's interval.

    Attributes
    ----------
    count, n : int. How often it happened, and how often it could have.
    low, high : float. 0 and 1 where nothing was counted.
    """

    count: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, count: int, n: int, level: float) -> Rate:
        """The rate with its interval."""
        low, high = wilson(count, n, level)
        return cls(count, n, float(low), float(high))

    @property
    def share(self) -> float:
        """The share; nan where nothing was counted."""
        return self.count / self.n if self.n else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, None for a share that is undefined."""
        share = self.share if self.n else None
        return {"count": self.count, "n": self.n, "share": share, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class ExpertStanding:
    """What one expert did: outcomes of all kinds, those that say "cannot tell", items put off, and their errors."""

    who: str | None
    outcomes: int
    cannot_tell: int
    later: int
    errors: Rate


@dataclass(frozen=True)
class SessionStatus:
    """Where a session stands.

    Attributes
    ----------
    items, drawn, answered, counted, ahead, open : int
        Items of the pool; those drawn; those with an answer; answers that the estimate rests on; answers and other
        outcomes that wait to count; draws without an outcome.
    cannot_tell, none_of_these, later, disputed, sighted, corrected : int
        Items that nobody could tell; that are none of the classes; that wait because they were put off; on which
        experts differ and nobody has settled it; whose answer was given with the prediction in sight; that someone
        corrected who had seen the estimate.
    agreement : Rate. Of the pairs of experts who named a class for the same item, those that named the same.
    steadiness : Rate. Of the items that the same expert saw again, those that they called the same.
    errors : Rate
        Of the answers whose truth is known beside them, by a settled item, by two who agree or by gold, those that are
        wrong. Without any, half of the answers that an expert did not repeat.
    """

    items: int
    drawn: int
    answered: int
    counted: int
    ahead: int
    open: int
    cannot_tell: int
    none_of_these: int
    later: int
    disputed: int
    sighted: int
    corrected: int
    agreement: Rate
    steadiness: Rate
    errors: Rate
    experts: tuple[ExpertStanding, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers, for JSON."""
        rates = {name: getattr(self, name).to_dict() for name in ("agreement", "steadiness", "errors")}
        experts = [{**vars(one), "errors": one.errors.to_dict()} for one in self.experts]
        return {**vars(self), **rates, "experts": experts}

    def sentences(self) -> list[str]:
        """The same in plain words."""
        lines = [f"{self.answered:,} of {self.items:,} items answered, {self.counted:,} of them counted."]
        parts = {
            "wait to count": self.ahead,
            "are out or open": self.open,
            "were put off": self.later,
            "nobody could tell": self.cannot_tell,
            "are none of the classes": self.none_of_these,
            "are disputed": self.disputed,
            "were answered with the prediction in sight": self.sighted,
            "were corrected by someone who had seen the estimate": self.corrected,
        }
        counts = [f"{n:,} {words}" for words, n in parts.items() if n]
        if counts:
            lines.append("Of the items " + ", ".join(counts) + ".")
        rates = {
            "Two experts agree on {}.": self.agreement,
            "An expert who saw an item again said the same on {}.": self.steadiness,
            "Experts err on {}; the interval takes their answers for the truth.": self.errors,
        }
        for sentence, rate in rates.items():
            if rate.n:
                lines.append(sentence.format(f"{rate.share:.1%} of {rate.n} ({rate.low:.1%} to {rate.high:.1%})"))
        return lines


def status_of(progress: Progress, gold: Codes, *, n_items: int, n_classes: int, level: float) -> SessionStatus:
    """The standing of a session."""
    counted = count_answers(progress)
    all_opinions = progress.opinions.values()
    pairs = [a.code == b.code for each in all_opinions for a, b in combinations(_independent(each), 2)]
    repeats = [
        opinion.code == first[0].code
        for each in all_opinions
        if (first := _independent(each))
        for opinion in each
        if opinion.purpose == "repeat" and opinion.code >= 0
    ]
    wrong = [is_wrong for _, is_wrong in _judged(progress, gold)]
    errors = Rate.of(sum(wrong), len(wrong), level)
    if not wrong and repeats:  # of two answers that differ one is wrong, or both: so often at least
        rate = Rate.of(repeats.count(False), len(repeats), level)
        errors = Rate(rate.count, 2 * rate.n, rate.low / 2, rate.high / 2)
    experts = []
    for who, rate in rates_of_experts(progress, gold, level).items():
        codes = [opinion.code for each in all_opinions for opinion in each if opinion.who == who]
        n_later = sum(name == who for each in progress.delays.values() for name, _ in each)
        experts.append(ExpertStanding(who, len(codes), sum(code < 0 for code in codes), n_later, rate))
    drawn = progress.draw > 0
    return SessionStatus(
        items=n_items,
        drawn=int(drawn.sum()),
        answered=progress.n_tells,
        counted=int(counted.progress.vetted.sum()),
        ahead=int(counted.ahead.sum()),
        open=int((drawn & ~progress.outcome).sum()),
        cannot_tell=int(progress.cannot_tell.sum()),
        none_of_these=int((progress.truth == n_classes).sum()),
        later=int(progress.put_off.sum()),
        disputed=int(progress.disputed.sum()),
        sighted=sum(any(one.is_swayed and not one.is_correction for one in each) for each in all_opinions),
        corrected=sum(any(one.is_swayed and one.is_correction for one in each) for each in all_opinions),
        agreement=Rate.of(sum(pairs), len(pairs), level),
        steadiness=Rate.of(sum(repeats), len(repeats), level),
        errors=errors,
        experts=tuple(experts),
    )


def rates_of_experts(progress: Progress, gold: Codes, level: float = 0.95) -> dict[str | None, Rate]:
    """Of each who gave outcomes, how many of their answers are wrong among those whose truth is known beside them."""
    is_nameless = any(one.who is None for each in progress.opinions.values() for one in each)
    wrong: dict[str | None, list[bool]] = {who: [] for who in (*progress.experts, *([None] if is_nameless else []))}
    for who, is_wrong in _judged(progress, gold):
        wrong[who].append(is_wrong)
    return {who: Rate.of(sum(own), len(own), level) for who, own in wrong.items()}


def _independent(opinions: tuple[Opinion, ...]) -> list[Opinion]:
    """The first class that each expert named for an item without knowing what others said."""
    named: dict[str | None, Opinion] = {}
    for one in opinions:
        if one.code >= 0 and one.purpose not in (*MEASURING, "settle") and not one.is_correction:
            named.setdefault(one.who, one)
    return list(named.values())


def _judged(progress: Progress, gold: Codes) -> Iterator[tuple[str | None, bool]]:
    """Each answer whose truth is known beside it: who gave it, and whether it is wrong."""
    for at, opinions in progress.opinions.items():
        for one in opinions:
            if one.purpose == "check" and one.code >= 0:
                yield one.who, one.code != int(gold[at])
        both = _independent(opinions)
        code, is_disputed = standing_class(opinions)
        if len(both) >= 2 and not is_disputed:
            yield from ((one.who, one.code != code) for one in both)


Answers = Literal["valid", "all"]
ANSWERS: tuple[Answers, ...] = get_args(Answers)


@dataclass(frozen=True, eq=False)
class Counted:
    """What an estimate may use."""

    progress: Progress  # With the truth of the items that count, and -1 for all others
    # shape (n_items,); draws that count although nothing valid says their class: nobody could tell, experts differ and
    # nobody has settled it, or the only answer was given with the prediction in sight
    undecided: Booleans
    ahead: Booleans  # shape (n_items,); items with an outcome that waits to count, since an earlier draw has none
    n_draws: int  # The length of the completed prefix


def count_answers(progress: Progress, answers: Answers = "valid") -> Counted:
    """The answers that count, and what is undecided among the draws that do."""
    places = np.sort(progress.draw[(progress.draw > 0) & progress.outcome])
    n_draws = int(np.count_nonzero(places == np.arange(1, len(places) + 1)))
    ahead = progress.outcome & (progress.draw > n_draws)
    truth = np.where(progress.disputed, UNKNOWN, progress.unswayed if answers == "valid" else progress.truth)
    undecided = progress.outcome & (progress.draw > 0) & ~ahead & (truth < 0)
    return Counted(replace(progress, truth=np.where(ahead, UNKNOWN, truth)), undecided, ahead, n_draws)


@dataclass(frozen=True)
class Opinion:
    """One outcome that an expert gave for an item."""

    who: str | None
    code: int  # The class, -1 where the expert cannot tell, and one more than the last class for none of these
    purpose: str | None  # That of the card
    is_correction: bool  # Whether it takes the place of an outcome that was there
    is_swayed: bool  # Given with the prediction in sight, or as a correction with the estimate in sight
    card: int  # How many outcomes the session had with this one


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
    n_tells : int. Answered items; a correction or a second opinion is not a new one.
    n_cards : int. Outcomes of all kinds.
    opinions : mapping from position to opinions. What each expert said of an item, in order.
    cards : mapping from (position, purpose) to experts. Who has a card that is no new draw; None for anybody.
    delays : mapping from position to pairs. Who put an item off, and the number of outcomes at that time.
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
    """The state after the events, from item and class names to positions and codes."""
    before_them = no_progress(len(names.items)) if since is None else since
    arrays: dict[str, Any] = {name: v.copy() for name, v in vars(before_them).items() if isinstance(v, np.ndarray)}
    state = replace(before_them, **arrays)
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
                state.truth[at], state.disputed[at] = standing_class(opinions[at])
                state.unswayed[at], _ = standing_class([one for one in opinions[at] if not one.is_swayed])
                state.cannot_tell[at] = state.truth[at] < 0  # an answer outlives the doubts of another expert
                state.waiting[at] = state.put_off[at] = False
                n_tells += int(was_open and state.truth[at] >= 0 and event.kind != "correct")
    return replace(state, n_tells=n_tells, n_cards=n_cards, opinions=opinions, cards=cards, delays=delays)


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
    """The class that stands, and whether experts differ on it and nobody has settled it."""
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
