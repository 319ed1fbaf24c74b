"""What every session of questions and answers shares: a log, and a state that is a function of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.sessions.log import Event, Names, Progress, events_from_json, fold, session_from_json, told

__all__ = ["LoggedSession"]


class LoggedSession:
    """A log of what was asked and answered about the items of some labels.

    Who inherits calls `_begin` once, and overrides `_forget` to drop what was worked out from an older log.
    """

    def _begin(self, labels: Labels) -> None:
        self._labels = labels
        self._names = Names(labels.items.tolist(), labels.classes.tolist())
        self._events: list[Event] = []
        self._folded = 0, fold([], self._names)

    def _forget(self) -> None:
        """The log has changed."""

    def _add(self, events: Iterable[Event]) -> None:
        self._events += events
        self._forget()

    def _tell(self, truths: Mapping[Any, Any], *, who: str | None, correct: bool) -> None:
        progress = self.progress
        known = np.where(progress.vetted, progress.truth, self._labels.gold_codes)
        self._add(told(truths, self._names, self._events, known, progress.propensity, who=who, correct=correct))

    def skip(self, items: Iterable[Any], *, who: str | None = None) -> None:
        """The expert passes on these items; they are not asked again. What is known of an item stays known."""
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InvalidParameter(f"items must be a list of items, got {items!r}; pass [item]")
        at = [self._names.position(item) for item in items]
        known = self._known
        self._add(Event("pass", self._names.items[k], who=who) for k in at if not known[k])

    @property
    def log(self) -> tuple[Event, ...]:
        """Everything that was asked, told, passed and corrected."""
        return tuple(self._events)

    @property
    def progress(self) -> Progress:
        """The answers so far."""
        n_folded, so_far = self._folded
        if n_folded < len(self._events):  # only what is new: a long session stays quick
            so_far = fold(self._events[n_folded:], self._names, since=so_far)
            self._folded = len(self._events), so_far
        return so_far

    @property
    def waiting(self) -> list[Any]:
        """Items asked and not yet answered."""
        return list(self._labels.items[self.progress.waiting].tolist())

    @property
    def _known(self) -> npt.NDArray[np.bool_]:
        """Items whose class is known, from an answer or from the start."""
        return np.asarray(self.progress.vetted | (self._labels.gold_codes >= 0))

    def _copy(self, events: Sequence[Event]) -> Self:
        """The same session after other events; nothing is fitted again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._events = list(events)
        other._folded = len(other._events), fold(other._events, other._names)  # what cannot be replayed is refused
        return other

    def replay(self, log: Iterable[Event] | str) -> Self:
        """The session as it would be after a log: of events, or of JSON as `to_json` gives it."""
        if not isinstance(log, str):
            return self._copy(list(log))
        is_session = not log.lstrip().startswith("[")
        return self._copy(session_from_json(log)[2] if is_session else events_from_json(log))
