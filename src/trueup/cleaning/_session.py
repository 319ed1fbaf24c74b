"""The part of an advisor that is the same for every strategy: the log, what follows from it, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup.active.log import Event, Names, Progress, events_from_json, fold, session_from_json, told
from trueup.cleaning.exact import predicted_codes
from trueup.cleaning.problem import CleaningProblem, CleaningState
from trueup.exceptions import InvalidParameter
from trueup.posteriors import Estimate
from trueup.posteriors.continuous import normal_estimate

__all__ = ["CleaningSession"]

_KEPT = 2  # states: the one now and, if scores are older, theirs


class CleaningSession:
    """A log of questions and answers about the labels of a problem. Its state is a function of the log."""

    problem: CleaningProblem

    def _start(self, problem: CleaningProblem) -> None:
        self.problem = problem
        self._names = Names(problem.labels.items.tolist(), problem.labels.classes.tolist())
        self._events: list[Event] = []
        self._folded = 0, fold([], self._names)
        self._states: dict[bytes, CleaningState] = {}

    def tell(self, truths: Mapping[Any, Any], *, who: str | None = None, correct: bool = False) -> None:
        """What the oracle found: a mapping from item to its true class.

        An item that was never asked is accepted. A label of the validation part that becomes known makes the metric
        more certain.

        Parameters
        ----------
        who : str, optional
            The oracle.
        correct : bool
            Allow answers that differ from earlier ones.
        """
        progress = self.progress
        known = np.where(progress.vetted, progress.truth, self.problem.labels.gold_codes)
        self._events += told(truths, self._names, self._events, known, progress.propensity, who=who, correct=correct)

    def skip(self, items: Iterable[Any], *, who: str | None = None) -> None:
        """The oracle passes on these items; they are not asked again."""
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InvalidParameter(f"items must be a list of items, got {items!r}; pass [item]")
        at = [self._names.position(item) for item in items]
        clean = self.state.clean
        self._events += [Event("pass", self._names.items[k], who=who) for k in at if not clean[k]]

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
    def state(self) -> CleaningState:
        """What is known now."""
        return self._state_of(len(self._events))

    @property
    def n_cleaned(self) -> int:
        """Number of answers."""
        return self.progress.n_tells

    @property
    def spent(self) -> float:
        """The cost of the answers."""
        return float(self.problem.costs[self.progress.vetted].sum())

    @property
    def waiting(self) -> list[Any]:
        """Items asked and not yet answered."""
        return list(self.problem.labels.items[self.progress.waiting].tolist())

    @property
    def model_(self) -> Any:
        """The classifier, trained on the labels as they are now."""
        return self.state.model

    @property
    def labels_(self) -> npt.NDArray[Any]:
        """The label of each item now, None where it has none; shape (n_items,)."""
        codes = self.state.codes
        return np.array([self._names.classes[k] if k >= 0 else None for k in codes.tolist()], dtype=object)

    @property
    def score_(self) -> Estimate:
        """The metric of the model, from the noisy labels of the validation part, without bias.

        Without a split these are the labels it was trained on, and it comes out too high.
        """
        state = self.state
        codes = predicted_codes(state.model, state.validation_features, state.scorer.classes)
        metric = state.scorer.metric
        value, error = float(state.scorer.scores(codes)), state.scorer.standard_error(codes)
        return normal_estimate(value, error, bounds=metric.bounds, name=metric.name)

    @property
    def _available(self) -> npt.NDArray[np.bool_]:
        """Items that are neither waiting nor passed nor clean."""
        progress = self.progress
        return np.asarray(~(progress.waiting | progress.passed | self.state.clean))

    def _state_of(self, n_events: int) -> CleaningState:
        """The state after the first events of the log."""
        progress = self.progress if n_events == len(self._events) else fold(self._events[:n_events], self._names)
        key = progress.truth.tobytes()
        if key not in self._states:
            same = None
            for other in self._states.values():  # answers in the training part leave the validation as it was
                if np.array_equal(other.truth[self.problem.validates], progress.truth[self.problem.validates]):
                    same = other.scorer
            while len(self._states) >= _KEPT:
                self._states.pop(next(iter(self._states)))
            self._states[key] = self.problem.after(progress.truth, same)
        self._states[key] = self._states.pop(key)  # the last one used is the last one dropped
        return self._states[key]

    def _copy(self, events: Sequence[Event]) -> Self:
        """The same session after other events; nothing is fitted again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._events, other._states = list(events), dict(self._states)
        other._folded = len(other._events), fold(other._events, other._names)  # what cannot be replayed is refused
        return other

    def replay(self, log: Iterable[Event] | str) -> Self:
        """The session as it would be after a log: of events, or of JSON as `to_json` gives it."""
        if not isinstance(log, str):
            return self._copy(list(log))
        is_session = not log.lstrip().startswith("[")
        return self._copy(session_from_json(log)[2] if is_session else events_from_json(log))
