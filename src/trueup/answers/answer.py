"""What all answers tell of how they came about."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from trueup._base.types import Target
from trueup.answers.findings import noise_in_words
from trueup.answers.scanned_setup import ScannedTask
from trueup.answers.settings import Settings
from trueup.answers.setup import Task
from trueup.data.encoding import Vocabulary
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import Assumption, all_kinds_in_words
from trueup.estimators.truth import TruthEngine
from trueup.noise import NoiseModel


class Answer:
    """The base of all answers: the question, read from its task."""

    task: Task | ScannedTask
    assumption: Assumption | None

    @property
    def settings(self) -> Settings:
        """The call: every argument, as data."""
        return self.task.settings

    @property
    def labels(self) -> Labels | LabelScan[Labels]:
        """The votes it rests on."""
        return self.task.labels

    @property
    def classes(self) -> Vocabulary:
        """The names of the classes."""
        return self.task.labels.classes

    @property
    def noise(self) -> str:
        """The noise models in words."""
        assert self.assumption is not None
        return all_kinds_in_words(self.assumption)

    @property
    @abstractmethod
    def has_assumptions(self) -> bool:
        """Whether there is an answer for each assumption: no noise model and no other method was named."""

    @property
    @abstractmethod
    def n_drawn(self) -> int:
        """Vetted items that were drawn at random."""

    @property
    @abstractmethod
    def diagnostics(self) -> Mapping[str, float]:
        """How the draws went, where that is known."""

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


class LabelsAnswer(Answer):
    """An answer from votes in memory: the base of `Evaluation` and `Comparison`."""

    task: Task
    model: NoiseModel | None
    engine: TruthEngine | None

    @property
    def labels(self) -> Labels:
        """The votes it rests on."""
        return self.task.labels

    @property
    def noise(self) -> str:
        """The noise model in words."""
        if self.task.noise is None and self.assumption is not None:
            return super().noise
        return noise_in_words(self.task.noise, self.model)

    @property
    def n_drawn(self) -> int:
        """Vetted items that were drawn at random."""
        return 0 if self.engine is None else int((self.engine.drawn_gold >= 0).sum())
