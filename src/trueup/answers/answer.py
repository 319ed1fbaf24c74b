"""What all answers say of how they came about, and an answer by the name of a slice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from trueup._base.types import Booleans, Target
from trueup._base.validation import refuse_assumption
from trueup._base.wording import level_words
from trueup.answers.notes import noise_in_words
from trueup.answers.prepare import Settings, Task
from trueup.core.truth import TruthModel, basis_in_words
from trueup.data.encoding import Vocabulary
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.slices import Slicing
from trueup.estimators import METHODS
from trueup.noise import NoiseModel
from trueup.posteriors import Estimate


class Answer:
    """The base of all answers: the question, read from its task."""

    task: Task
    model: NoiseModel | None
    core: TruthModel | None

    @property
    def settings(self) -> Settings:
        """The call: every argument, as data."""
        return self.task.settings

    @property
    def labels(self) -> Labels:
        """The votes it rests on."""
        return self.task.labels

    @property
    def classes(self) -> Vocabulary:
        """The names of the classes."""
        return self.task.labels.classes

    @property
    def noise(self) -> str:
        """The noise models in words."""
        return "learned from public sets" if self.core is not None else noise_in_words(self.task.noise, self.model)

    @property
    def basis(self) -> str:
        """What the answer rests on: "votes alone", "votes and 7 checked items" or "all items checked"."""
        return basis_in_words(self.n_checked, self.task.labels.n_items)

    def answer_in_words(self) -> str:
        """What the numbers rest on: the basis, and the noise model or method where one was named."""
        method = METHODS.resolve(self.settings.arguments.get("method", "bayes"))  # only `evaluate` takes one
        if method == "ideal":
            return "the truth"
        outputs = self.task.outputs
        judged = outputs.has_output(self.task.metric.looks_at).any(axis=0)
        known = self.labels.gold_codes if self.core is None else self.core.known
        if (known[judged] >= 0).all():
            return "all items checked"
        if self.core is not None:
            return self.basis
        return f"{self.basis}, by " + (f"the noise model {self.noise}" if method == "bayes" else f"the method {method}")

    def assuming(self, assumption: str) -> NoReturn:
        """Gone since version 0.3, which gives one answer; an error that says what to do instead."""
        refuse_assumption("assuming", assumption)

    @property
    def n_checked(self) -> int:
        """Items whose class is known from an expert."""
        return int((self.task.labels.gold_codes >= 0).sum()) if self.core is None else self.core.n_checked

    @property
    def n_drawn(self) -> int:
        """Checked items that were drawn at random."""
        return 0 if self.core is None else int((self.core.drawn >= 0).sum())

    @property
    def target(self) -> Target:
        """What the numbers are about: these items, or the population they came from."""
        return self.task.target

    @property
    def level(self) -> float:
        """Of the intervals that are shown."""
        return self.task.level

    @property
    def positive(self) -> int:
        """The code of the positive class."""
        return self.task.positive

    @property
    def positive_name(self) -> str | None:
        """The positive class in a record; None where there are more than two classes, and so none is."""
        return str(self.classes.tolist()[self.positive]) if len(self.classes) == 2 else None

    @property
    def seed(self) -> int:
        """What gives the same numbers again as `random_state`."""
        return self.task.seed

    def _about(self) -> dict[str, Any]:
        """What the dictionaries of all answers have."""
        names = ("target", "noise", "basis", "n_checked", "level", "seed", "n_items")
        return {name: getattr(self, name) for name in names} | {"positive": self.positive_name}


def frame_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], backend: str | None) -> Any:
    """A frame from rows, each with a value for each column."""
    return make_frame({name: [row[k] for row in rows] for k, name in enumerate(columns)}, backend=backend)


def lines_of(rows: Sequence[tuple[Any, Estimate, str]], level: float) -> list[str]:
    """A line of text for each number: its name, mean and interval, and some words."""
    lines, width = [], max((len(str(name)) for name, _, _ in rows), default=0)
    for name, estimate, words in rows:
        low, high = estimate.interval(level)
        ends = "no interval" if np.isnan(low) else f"{level_words(level)} interval {low:.4f} to {high:.4f}"
        lines.append(f"  {name!s:<{width}}  {estimate.mean:.4f}  {ends}{f'  {words}' if words else ''}")
    return lines


Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class BySlice(Mapping[Any, Part], Generic[Part]):
    """An answer by the name of a slice."""

    slicing: Slicing
    answer_on: Callable[[Booleans], Part] = field(repr=False)  # from which items are in a slice to the answer on these
    _parts: dict[Hashable, Part] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, name: Hashable) -> Part:
        if name not in self._parts:
            self._parts[name] = self.answer_on(self.slicing.members(name))
        return self._parts[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.slicing.names.tolist())

    def __len__(self) -> int:
        return self.slicing.n_slices
