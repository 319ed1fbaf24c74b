"""The answer of `compare`: which system is better, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
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
from trueup.estimators.readings import ASSUMPTIONS, Assumption
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
        has_advice = self.engine is not None and self.basis == "votes" and len(self) > 1 and self.codes is not None
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

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, JSON-able."""
        return {
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            "target": self.target,
            "noise": self.noise,
            "basis": self.basis,
            "assumption": self.assumption,
            "assuming": self._all_assumptions(),
            "level": self.level,
            "seed": self.seed,
            "n_items": self.n_items,
            "positive": self.positive_name,
            "systems": [
                {"system": str(s), **self[s].to_dict(self.level), "prob_best": self.prob_best[s]} for s in self.ranking
            ],
            "groups": [[str(s) for s in group] for group in self.groups],
            "expected_regret": self.expected_regret,
            "warnings": list(self.warnings),
            "diagnostics": dict(self.truth.diagnostics),
        }

    def _all_assumptions(self) -> dict[str, Any]:
        """How the first two differ in each answer from votes, JSON-able; none where a model was named."""
        if self.engine is None or len(self) < 2:
            return {}
        first, second = self.ranking[:2]
        answers = {name: self.assuming(name) for name in ASSUMPTIONS}
        return {
            name: {
                "a": str(first),
                "b": str(second),
                "difference": answer.difference(first, second).to_dict(self.level),
                "prob_a_better": answer.prob_better(first, second),
            }
            for name, answer in answers.items()
        }

    def save_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report on this comparison as one HTML file; .md and .json work too.

        See `trueup.report.build_report` for reports that evaluate each system as well.
        """
        from trueup.report import build_report, save_report

        return save_report(build_report({}, comparison=self, title=title), path)
