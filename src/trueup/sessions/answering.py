"""From what an expert says to new lines of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.types import Codes
from trueup._base.validation import check_number
from trueup.exceptions import InvalidParameter
from trueup.sessions.log import Event, Kind, Names
from trueup.sessions.progress import Progress


@dataclass(frozen=True)
class Circumstances:
    """How an outcome was given: by whom, and what the log keeps of it beside.

    Parameters
    ----------
    who : str, optional
        The expert.
    blind : bool, optional
        Whether no prediction was in sight.
    saw_estimate : bool, optional
        Whether they had seen the estimate.
    seconds : float, optional
        How long the card was in sight.
    """

    who: str | None = None
    blind: bool | None = None
    saw_estimate: bool | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            check_number(self.seconds, name="seconds", low=0.0)


def answer_events(
    truths: Any,
    names: Names,
    progress: Progress,
    known: Codes,
    how: Circumstances,
    *,
    correct: bool = False,
    second: bool = False,
) -> list[Event]:
    """The new lines of the log for what an expert says; all answers are checked before any counts.

    Parameters
    ----------
    truths : mapping from item to class
    known : integer array of shape (n_items,)
        The class of each item, by answers and by gold, -1 where unknown.
    how : Circumstances
    correct : bool
        Allow answers that differ from what is known.
    second : bool
        Keep such answers as second opinions instead, e.g. those that came in late.
    """
    if not isinstance(truths, Mapping):
        raise InvalidParameter(f"truths must map items to classes, got {type(truths).__name__}; pass {{item: class}}")
    new = []
    for item, truth in truths.items():
        at, code = names.position(item), names.code(truth, item)
        before, purpose = int(known[at]), purpose_of_card(progress, at, how.who)
        differs = before not in (-1, code) and purpose is None
        if differs and second and not correct:
            purpose, differs = "overlap", False
        if differs and not correct:
            raise InvalidParameter(
                f"item {item!r} is known to be {_class_name(before, names)}, got {truth!r}; pass ⟨correct=True⟩ to "
                "change it"
            )
        is_said = any((one.who, one.code) == (how.who, code) for one in progress.opinions.get(at, ()))
        if before == code and purpose is None and (how.who is None or is_said):
            continue  # nothing is new, and nobody new says it
        class_name = None if code == names.outside else names.classes[code]
        kind: Kind = "correct" if differs else "tell" if class_name is not None else "none of these"
        new.append(_outcome(kind, at, names, progress, how, truth=class_name, purpose=purpose))
    return new


def skip_events(
    items: Any, names: Names, progress: Progress, known: Codes, how: Circumstances, *, later: bool
) -> list[Event]:
    """The new lines where an expert names no class: later, or they cannot tell. What is known stays known."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidParameter(f"items must be a list of items, got {items!r}; pass [item]")
    new = []
    for at in [names.position(item) for item in items]:
        purpose = purpose_of_card(progress, at, how.who)
        if known[at] >= 0 and purpose is None:
            continue
        if later and purpose is None and not progress.waiting[at]:
            raise InvalidParameter(
                f"only an item that waits for an answer can be put off, got {names.items[at]!r}; leave it out"
            )
        new.append(_outcome("later" if later else "cannot tell", at, names, progress, how, purpose=purpose))
    return new


def _outcome(
    kind: Kind,
    at: int,
    names: Names,
    progress: Progress,
    how: Circumstances,
    *,
    truth: Any = None,
    purpose: str | None = None,
) -> Event:
    """One outcome with all that the log keeps of it."""
    chance, draw = float(progress.propensity[at]), int(progress.draw[at])
    return Event(
        kind,
        names.items[at],
        truth,
        how.who,
        None if np.isnan(chance) else chance,
        seconds=how.seconds,
        blind=how.blind,
        draw=draw or None,
        purpose=purpose,
        saw_estimate=how.saw_estimate,
    )


def purpose_of_card(progress: Progress, at: int, who: str | None) -> str | None:
    """The purpose of the card for an item that is out with an expert; None for a draw.

    A second opinion is not that of who gave the first, so a card that anybody may have is not theirs.
    """
    if who is None:
        return None
    spoke = any(one.who == who for one in progress.opinions.get(at, ()))
    for purpose in ("settle", "overlap", "repeat", "check"):
        is_theirs = (at, purpose) in progress.cards and progress.cards[at, purpose] in (None, who)
        if is_theirs and (purpose == "repeat" or not spoke):
            # Of two cards on a draw that nobody has answered yet, the first answer is that of the draw.
            return None if purpose == "overlap" and progress.waiting[at] else purpose
    return None


def _class_name(code: int, names: Names) -> str:
    return "none of the classes" if code == names.outside else repr(names.classes[code])
