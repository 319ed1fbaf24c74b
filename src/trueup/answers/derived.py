"""Answers that are read off an evaluation: rates of groups, preferences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from trueup.answers.evaluation import Evaluation
from trueup.estimators.assumptions import Assumption
from trueup.estimators.truth import Basis


@dataclass(frozen=True, eq=False, kw_only=True)
class DerivedAnswer:
    """What such an answer rests on is what its evaluation rests on.

    Attributes
    ----------
    evaluation : Evaluation
    """

    evaluation: Evaluation = field(repr=False)

    @property
    def basis(self) -> Basis:
        """What it rests on: "gold" that was drawn at random, or "votes"."""
        return self.evaluation.basis

    def assuming(self, assumption: Assumption) -> Self:
        """The same from votes alone under another assumption: "independent", "shared" or "real"."""
        return replace(self, evaluation=self.evaluation.assuming(assumption))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences a user should read before trusting the numbers."""
        return self.evaluation.warnings

    @property
    def level(self) -> float:
        """Of the intervals that are shown."""
        return self.evaluation.level
