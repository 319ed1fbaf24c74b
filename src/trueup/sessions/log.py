"""The log of a session: what was asked, answered, passed and corrected. The state is a function of it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np

from trueup._base.optional import require
from trueup._base.validation import check_integer, check_number, preview
from trueup.exceptions import InvalidParameter

Answering = Literal["ask", "tell", "pass", "correct", "later", "cannot tell", "none of these", "comment"]
Kind = Answering | Literal["batch", "restart", "estimate"]  # the latter of a monitor
KINDS: tuple[Kind, ...] = tuple(kind for part in get_args(Kind) for kind in get_args(part))
_FORMAT = 1


class _NoneOfThese:
    """The answer of an expert where an item is of a class that the labels do not have."""

    def __repr__(self) -> str:
        return "NONE_OF_THESE"


NONE_OF_THESE = _NoneOfThese()


@dataclass(frozen=True)
class Event:
    """One line of the log.

    Attributes
    ----------
    kind : {"ask", "tell", "pass", "correct", "later", "cannot tell", "none of these", "comment"}
        Of a monitor "batch", "restart" and "estimate".
    item : hashable. Of a monitor the time of the batch.
    truth : hashable, optional
        The class the expert named, for "tell" and "correct"; a correction without one says none of these.
    who : str, optional. The expert; for "ask" the only one who may answer, if there is such a one.
    propensity : float, optional
        The probability with which the item was drawn among those that could be; None where it was not drawn by chance.
    at : float, optional. When, in seconds since 1970, by the clock of the database that keeps the log.
    seconds : float, optional. How long the expert saw the item.
    blind : bool, optional. Whether the expert answered without a suggestion in sight.
    draw : int, optional. The place of the item among all draws, from 1 on.
    key : str, optional. Of the request that brought the event; the same key again is the same event.
    card : int, optional. The number of the "ask" in a stored log that this is an answer to.
    opinion : int, optional. 1 for the first expert who answered for the item, 2 for the next, …
    purpose : str, optional. Why an item is asked for apart from being drawn, such as "overlap", "repeat" or "check".
    text : str, optional. Of a comment; of a monitor the batch or the estimate as JSON.
    why : str, optional. The reason of the strategy, for "ask".
    shown : tuple, optional. The answers in the order in which they were shown.
    saw_estimate : bool, optional. Whether the expert had the estimate in sight.
    """

    kind: Kind
    item: Hashable
    truth: Hashable | None = None
    who: str | None = None
    propensity: float | None = None
    at: float | None = None
    seconds: float | None = None
    blind: bool | None = None
    draw: int | None = None
    key: str | None = None
    card: int | None = None
    opinion: int | None = None
    purpose: str | None = None
    text: str | None = None
    why: str | None = None
    shown: tuple[Hashable, ...] | None = None
    saw_estimate: bool | None = None


_FIELDS = {field.name for field in fields(Event)}


class EventLog(Protocol):
    """A log that is kept elsewhere and that several processes write to."""

    def read(self, since: int) -> list[Event]:
        """The events after the first `since`."""

    def append(self, events: Sequence[Event], after: int) -> list[Event] | None:
        """Add events to the first `after` and return them as they are kept; None if others have written since."""


@dataclass(frozen=True)
class Names:
    """Items and classes by name and by place."""

    items: list[Any]
    classes: list[Any]

    @cached_property
    def positions(self) -> dict[Hashable, int]:
        """The place of each item."""
        return {item: k for k, item in enumerate(self.items)}

    @cached_property
    def codes(self) -> dict[Hashable, int]:
        """The code of each class."""
        return {name: k for k, name in enumerate(self.classes)}

    @property
    def outside(self) -> int:
        """The code that stands for none of the classes: one more than the last."""
        return len(self.classes)

    def position(self, item: Any) -> int:
        """The place of an item that a user names."""
        if not isinstance(item, Hashable) or item not in self.positions:
            raise InvalidParameter(
                f"there is no item {item!r}, there are {preview(self.items)}; use names in labels.items"
            )
        return self.positions[item]

    def code(self, truth: Any, item: Any) -> int:
        """The code of the class that a user names for an item; `outside` for none of these."""
        if truth is NONE_OF_THESE:
            return self.outside
        if not isinstance(truth, Hashable) or truth not in self.codes:
            raise InvalidParameter(
                f"the truth of item {item!r} must be one of the classes {preview(self.classes, most=10)}, got {truth!r}"
            )
        return self.codes[truth]


def check_event(event: Event, names: Names) -> None:
    """Refuse an event that no session of these items and classes can have."""
    if not isinstance(event, Event) or event.kind not in KINDS:
        raise InvalidParameter(f"a log must hold events of the kinds {', '.join(KINDS)}, got {event!r}")
    if not isinstance(event.item, Hashable) or event.item not in names.positions:
        raise InvalidParameter(f"the log names item {event.item!r}, which the labels do not have")
    is_none = event.kind == "correct" and event.truth is None
    is_class = isinstance(event.truth, Hashable) and event.truth in names.codes
    if event.kind in ("tell", "correct") and not (is_none or is_class):
        raise InvalidParameter(f"the log names class {event.truth!r}, got classes {preview(names.classes)}")
    if event.propensity is not None:
        check_number(event.propensity, name=f"the propensity of item {event.item!r}", low=1e-300, high=1.0)
    if event.draw is not None:
        check_integer(event.draw, name=f"the draw of item {event.item!r}", low=1)


def events_to_json(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The log as plain records, without what is not there."""
    return [{k: plain_name(v) for k, v in vars(event).items() if v is not None} for event in events]


def events_from_json(records: Any) -> list[Event]:
    """The log from records or from their JSON text."""
    log = _loaded(records) if isinstance(records, str | bytes) else records
    if not isinstance(log, list) or not all(isinstance(record, dict) for record in log):
        raise InvalidParameter(f"a log must be a list of records, got {type(log).__name__}; pass what to_json gave")
    for record in log:
        if record.get("kind") not in KINDS or "item" not in record or set(record) - _FIELDS:
            raise InvalidParameter(f"a record of a log must have kind and item, got {preview(list(record.items()))}")
    return [Event(**{k: read_name(v) for k, v in record.items()}) for record in log]


def session_to_json(settings: Mapping[str, Any], options: Mapping[str, Any], events: Iterable[Event]) -> str:
    """Settings of a session, options of its strategy and its log as JSON text."""
    record = {"format": _FORMAT, "settings": dict(settings), "options": dict(options), "log": events_to_json(events)}
    return json.dumps(record, indent=1, default=plain_name)


def session_from_json(text: str | bytes) -> tuple[dict[str, Any], dict[str, Any], list[Event]]:
    """Settings, options and log from what `session_to_json` gave."""
    record = _loaded(text)
    whole = isinstance(record, dict) and all(isinstance(record.get(k), dict) for k in ("settings", "options"))
    if not whole or "log" not in record:
        raise InvalidParameter("this is no session, got no settings or no log; pass the text that to_json gave")
    if record.get("format") != _FORMAT:
        raise InvalidParameter(f"a session must be of format {_FORMAT}, got {record.get('format')!r}")
    return record["settings"], record["options"], events_from_json(record["log"])


def _loaded(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidParameter(f"this is no JSON, got {error}; pass the text that to_json gave") from error


def read_name(value: Any) -> Any:
    """A name as JSON has it, which makes lists of tuples."""
    return tuple(read_name(v) for v in value) if isinstance(value, list) else value


def plain_name(value: Any) -> Any:
    """A name or number of numpy as JSON takes it."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def plot_history(rows: Sequence[dict[str, float]], ax: Any = None, *, metric: str, level: float) -> Any:
    """Mean and interval against the number of vetted items; returns the Axes."""
    if ax is None:
        _, ax = require("matplotlib.pyplot", purpose="a session's plot()").subplots(layout="constrained")
    n, mean, low, high = ([row[name] for row in rows] for name in ("n", "mean", "low", "high"))
    ax.fill_between(n, low, high, alpha=0.25)
    ax.plot(n, mean)
    ax.set_xlabel("vetted items")
    ax.set_ylabel(f"{metric}, mean and {level:.0%} interval")
    return ax
