"""Where a session stands, in numbers to print: what came in, what counts, what waits, and how well experts agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from trueup._base.types import Codes
from trueup.posteriors import wilson
from trueup.sessions.counting import count_answers
from trueup.sessions.progress import MEASURING, Opinion, Progress, standing_class


@dataclass(frozen=True)
class Rate:
    """A share that was counted, with Wilson's interval.

    Attributes
    ----------
    count, n : int
        How often it happened, and how often it could have.
    low, high : float
        0 and 1 where nothing was counted.
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
        """Plain numbers, None for a share of nothing."""
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
class Standing:
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
    agreement : Rate
        Of the pairs of experts who named a class for the same item, those that named the same.
    steadiness : Rate
        Of the items that the same expert saw again, those that they called the same.
    errors : Rate
        Of the answers whose truth is known beside them, by a settled item, by two who agree or by gold, those that are
        wrong. Without any, half of the answers that an expert did not repeat.
    experts : tuple of ExpertStanding
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
        told = [f"{n:,} {words}" for words, n in parts.items() if n]
        if told:
            lines.append("Of the items " + ", ".join(told) + ".")
        if self.agreement.n:
            lines.append(f"Two experts agree on {_in_words(self.agreement)}.")
        if self.steadiness.n:
            lines.append(f"An expert who saw an item again said the same on {_in_words(self.steadiness)}.")
        if self.errors.n:
            lines.append(f"Experts err on {_in_words(self.errors)}; the interval takes their answers for the truth.")
        return lines


def _in_words(rate: Rate) -> str:
    return f"{rate.share:.1%} of {rate.n} ({rate.low:.1%} to {rate.high:.1%})"


def standing_of(progress: Progress, gold: Codes, *, n_items: int, n_classes: int, level: float) -> Standing:
    """The standing of a session.

    Parameters
    ----------
    progress : Progress
    gold : integer array of shape (n_items,)
        Classes known from the start, -1 elsewhere.
    level : float
        Of the intervals of rates.
    """
    counted = count_answers(progress)
    judged = list(_judged(progress, gold))
    pairs = [same for each in progress.opinions.values() for same in _pairs(each)]
    repeats = [same for each in progress.opinions.values() for same in _repeats(each)]
    sighted = [any(one.is_swayed and not one.is_correction for one in each) for each in progress.opinions.values()]
    corrected = [any(one.is_swayed and one.is_correction for one in each) for each in progress.opinions.values()]
    wrong = [is_wrong for _, is_wrong in judged]
    errors = (
        Rate.of(sum(wrong), len(wrong), level) if wrong else _half(Rate.of(repeats.count(False), len(repeats), level))
    )
    drawn = progress.draw > 0
    return Standing(
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
        sighted=sum(sighted),
        corrected=sum(corrected),
        agreement=Rate.of(sum(pairs), len(pairs), level),
        steadiness=Rate.of(sum(repeats), len(repeats), level),
        errors=errors,
        experts=tuple(_of_expert(progress, who, judged, level) for who in _all_names(progress)),
    )


def _all_names(progress: Progress) -> list[str | None]:
    """Who gave outcomes, those without a name last."""
    nameless = any(one.who is None for each in progress.opinions.values() for one in each)
    return [*progress.experts, *([None] if nameless else [])]


def _of_expert(
    progress: Progress, who: str | None, judged: list[tuple[str | None, bool]], level: float
) -> ExpertStanding:
    mine = [one for each in progress.opinions.values() for one in each if one.who == who]
    wrong = [is_wrong for name, is_wrong in judged if name == who]
    return ExpertStanding(
        who,
        outcomes=len(mine),
        cannot_tell=sum(one.code < 0 for one in mine),
        later=sum(name == who for each in progress.delays.values() for name, _ in each),
        errors=Rate.of(sum(wrong), len(wrong), level),
    )


def _independent(opinions: tuple[Opinion, ...]) -> list[Opinion]:
    """The first class that each expert named for an item without knowing what others said."""
    named: dict[str | None, Opinion] = {}
    for one in opinions:
        if one.code >= 0 and one.purpose not in (*MEASURING, "settle") and not one.is_correction:
            named.setdefault(one.who, one)
    return list(named.values())


def _pairs(opinions: tuple[Opinion, ...]) -> Iterator[bool]:
    """Whether the experts of each pair name the same class."""
    for one, other in combinations(_independent(opinions), 2):
        yield one.code == other.code


def _repeats(opinions: tuple[Opinion, ...]) -> Iterator[bool]:
    first = _independent(opinions)
    for one in opinions:
        if one.purpose == "repeat" and one.code >= 0 and first:
            yield one.code == first[0].code


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


def _half(rate: Rate) -> Rate:
    """Of two answers that differ one is wrong, or both: the rate at which single answers are, at least."""
    return Rate(rate.count, 2 * rate.n, rate.low / 2, rate.high / 2) if rate.n else rate
