"""The answer of `compare`: which system is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_choice
from trueup.answers.answer import LabelsAnswer
from trueup.answers.by_slice import BySlice
from trueup.answers.gold_alone import estimate_alone
from trueup.answers.paired import Disagreement, PairedEstimates
from trueup.answers.setup import Task, values_on
from trueup.data.encoding import Vocabulary
from trueup.estimators.assumptions import ASSUMPTIONS, Assumption
from trueup.estimators.truth import Basis, TruthEngine
from trueup.estimators.truth_draws import TruthDraws
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import NoiseModel
from trueup.posteriors import Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(LabelsAnswer, PairedEstimates):
    """The metric of every system on the same draws of the truth.

    ``cmp["a"]`` is the `Estimate` of a system's metric; iteration is from the best system to the worst.

    Attributes
    ----------
    task : Task
        What was asked: labels, outputs, metric, positive class, target, level, seed.
    model : NoiseModel
        The noise model behind it: known, fitted, or drawn together with the truth.
    measure : Metric
    draws : array of shape (n_draws, n_systems)
        The metric of each system; a row is of one truth.
    truth : TruthDraws
    warnings : tuple of str
        Sentences a user should read before trusting the numbers.
    engine : TruthEngine or None
        Behind the answers where no noise model was named.
    assumption : {"real", "shared", "independent"} or None
        What answers from votes assume of errors; None where a noise model was named.
    from_votes : bool
        Whether gold that was drawn is left aside: the answers of `assuming`.
    refused : bool
        Whether vetted items contradict the models, so that these give no interval.
    """

    task: Task = field(repr=False)
    model: NoiseModel | None = field(repr=False)
    measure: Metric
    draws: Floats = field(repr=False)
    truth: TruthDraws = field(repr=False)
    warnings: tuple[str, ...]
    engine: TruthEngine | None = field(default=None, repr=False)
    assumption: Assumption | None = None
    from_votes: bool = field(default=False, repr=False)
    refused: bool = False

    # ------------------------------------------------------------------ what it rests on

    @property
    def basis(self) -> Basis:
        """What the answer rests on: "gold" that was drawn at random, or "votes"."""
        return "votes" if self.engine is None or self.from_votes else self.engine.basis(self.measure)

    @property
    def has_assumptions(self) -> bool:
        """Whether there is an answer for each assumption: no noise model was named."""
        return self.engine is not None

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """How the draws of the truth went."""
        return self.truth.diagnostics

    def assuming(self, assumption: Assumption) -> Comparison:
        """The same comparison from votes alone under another assumption.

        Parameters
        ----------
        assumption : {"independent", "shared", "real"}
        """
        check_choice(assumption, ASSUMPTIONS, name="assumption")
        if self.engine is None:
            raise InvalidParameter(
                f"there is one answer here, that of a noise model that was named, and none assuming {assumption!r}; "
                "leave out ⟨noise⟩ to have all three",
                parameter="assumption",
            )
        truth = self.engine.assuming(self.measure, assumption)
        values = values_on(truth, self.task, self.measure, np.random.default_rng(self.seed))
        return replace(self, draws=values, truth=truth, assumption=assumption, from_votes=True)

    @property
    def gold_alone(self) -> dict[Any, Estimate]:
        """What vetted items that were drawn at random say by themselves of each system."""
        if self.engine is None:
            return {}
        places = {name: k for k, name in enumerate(self.systems.tolist())}
        each = {s: estimate_alone(self.engine, self.task, self.measure, system=places[s]) for s in self.ranking}
        return {name: estimate.named(str(name)) for name, estimate in each.items() if estimate is not None}

    @cached_property
    def by(self) -> BySlice[Comparison]:
        """The same for each slice of the items; see ``by`` of `trueup.compare`."""
        if self.task.slices is None:
            raise InvalidParameter("there are no slices here, got a call without ⟨by⟩; name a column of the items")
        return BySlice(self.task.slices, self.on_items)

    def on_items(self, members: Booleans) -> Comparison:
        """The comparison on some of the items, on the same draws of the truth."""
        task = replace(self.task, outputs=self.task.outputs.on_items(members), slices=None)
        values = values_on(self.truth, task, self.measure, np.random.default_rng(self.seed))
        return replace(self, task=task, draws=values)

    # ------------------------------------------------------------------ what was asked

    @property
    def systems(self) -> Vocabulary:
        """The names of the systems, in the order of the columns of `draws`."""
        return self.task.outputs.systems

    @property
    def codes(self) -> Codes | None:
        """The predicted classes of all systems, -1 for none; None where some give scores only."""
        return self.task.outputs.codes

    @cached_property
    def n_items(self) -> int:
        """Items the systems are judged on (any of them)."""
        return int(self.task.outputs_for(self.measure).has_output(self.measure.looks_at).any(axis=0).sum())

    def with_advice(self) -> Comparison:
        """With what some vettings would settle, where a system is called the best from votes alone."""
        has_advice = self.engine is not None and self.basis == "votes" and len(self) > 1
        return super().with_advice() if has_advice else self

    def numbers_apart(self, a: Any, b: Any) -> tuple[int, int]:
        """The number of items that two systems both class, and of those that they class differently."""
        both, different = self._where_apart(a, b)
        return int(both.sum()), int(different.sum())

    def _where_apart(self, a: Any, b: Any) -> tuple[Booleans, Booleans]:
        if self.codes is None:
            raise InvalidParameter(
                "a disagreement needs hard classes, got scores only; name a ⟨threshold⟩, or predict classes"
            )
        mine, other = self.codes[self._at(a)], self.codes[self._at(b)]
        both = (mine >= 0) & (other >= 0)
        return both, both & (mine != other)

    def disagreement(self, a: Any, b: Any) -> Disagreement:
        """Where two systems predict different classes, and who is right there."""
        both, different = self._where_apart(a, b)
        assert self.codes is not None
        at = np.flatnonzero(different)
        truths = self.truth.truths[:, at]
        first, second = ((truths == self.codes[self._at(one)][at]).sum(axis=1).astype(float) for one in (a, b))
        return Disagreement.of_draws(a, b, (int(both.sum()), len(at)), (first, second))

    # ------------------------------------------------------------------ out

    def answer_in_words(self) -> str:
        """What the numbers rest on, in a few words."""
        if self.engine is None:
            return f"noise {self.noise}"
        return "rests on gold" if self.basis == "gold" else f"from votes, assuming {self.assumption} errors"
