"""The part of an advisor that is the same for every strategy: the log, what follows from it, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup.cleaning.exact import predicted_codes
from trueup.cleaning.problem import CleaningProblem, CleaningState
from trueup.posteriors import Estimate
from trueup.posteriors.continuous import normal_estimate
from trueup.sessions.log import Event, fold
from trueup.sessions.session import LoggedSession

__all__ = ["CleaningSession"]

_KEPT = 3  # states: the one now, the one before, and theirs if scores are older


class CleaningSession(LoggedSession):
    """A log of questions and answers about the labels of a problem. Its state is a function of the log."""

    problem: CleaningProblem

    def _start(self, problem: CleaningProblem) -> None:
        self.problem = problem
        self._begin(problem.labels)
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
        self._tell(truths, who=who, correct=correct)

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
        other = super()._copy(events)
        other._states = dict(self._states)
        return other
