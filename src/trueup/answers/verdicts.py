"""Whether a number is on the right side of a bound with a probability, else it is open."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from trueup._base.wording import chance, interval, level_words
from trueup.exceptions import InvalidParameter
from trueup.posteriors import Estimate

Verdict = Literal["passed", "failed", "undecided"]
Side = Literal["at least", "at most", "above", "below"]
ENOUGH_CHECKS = 20  # items drawn at random, where checked items are required
_ROUNDING = 1e-9  # what arithmetic adds to a value that is meant to equal a bound


@dataclass(frozen=True)
class Gate:
    """One condition: the side of a bound that a number must be on."""

    what: str  # the number in words, e.g. "accuracy of 'new'"
    side: Side  # "at least" and "at most" hold on the bound itself, "above" and "below" do not
    bound: float  # in the units of the metric
    candidate: Hashable | None = None  # the system that is judged, and the one that it is held against
    reference: Hashable | None = None  # the system that is judged, and the one that it is held against

    def chances(self, estimate: Estimate) -> tuple[float, float]:
        """P(the condition is met) and P(it is not); where the number has no value, it is neither."""
        upwards = self.side in ("at least", "above")
        # The bound itself belongs to the numbers above it or to those below it.
        belongs_above = self.side in ("at least", "below")
        bound = self.bound - _ROUNDING if belongs_above else self.bound + _ROUNDING
        below = estimate.prob_below(bound) if belongs_above else 1 - estimate.prob_above(bound)
        met = 1 - below if upwards else below
        defined = 1 - estimate.undefined
        return met * defined, (1 - met) * defined

    def __str__(self) -> str:
        return f"{self.what} is {self.side} {self.bound:g}"


@dataclass(frozen=True)
class GateResult:
    """What became of one gate."""

    gate: Gate
    verdict: Verdict
    probability: float  # that the condition is met; NaN where checked items contradict the votes
    probability_failed: float  # that it is not met
    estimate: Estimate = field(repr=False)  # the number the condition is about
    basis: str  # what it rests on: "votes alone", "votes and 7 checked items", "all items checked" or "the truth"
    sentence: str  # the verdict and why, in words

    def to_dict(self, level: float) -> dict[str, Any]:
        """Everything, JSON-able."""
        reference = self.gate.reference
        return {
            "gate": str(self.gate),
            "verdict": self.verdict,
            "probability": self.probability,
            "probability_failed": self.probability_failed,
            "candidate": None if self.gate.candidate is None else str(self.gate.candidate),
            "reference": None if reference is None else str(reference),
            "side": self.gate.side,
            "bound": self.gate.bound,
            "estimate": self.estimate.to_dict(level),
            "basis": self.basis,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class GateReport:
    """What became of all gates of a call; true where all are passed.

    Attributes
    ----------
    results : tuple of GateResult
    required : float
        The probability that is asked for.
    require_gold : bool
        Whether votes alone decide nothing.
    level : float
        Of the intervals that are shown.
    """

    results: tuple[GateResult, ...]
    required: float
    require_gold: bool
    level: float = 0.95

    @property
    def verdict(self) -> Verdict:
        """Of all: "failed" if one gate is, else "undecided" if one is, else "passed"."""
        verdicts = {result.verdict for result in self.results}
        order: tuple[Verdict, ...] = ("failed", "undecided", "passed")
        return next((verdict for verdict in order if verdict in verdicts), "passed")

    def __bool__(self) -> bool:
        return self.verdict == "passed"

    def joined(self, other: GateReport) -> GateReport:
        """With the gates of another answer."""
        return GateReport(self.results + other.results, self.required, self.require_gold, self.level)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "verdict": self.verdict,
            "probability": self.required,
            "require_gold": self.require_gold,
            "gates": [result.to_dict(self.level) for result in self.results],
        }

    def __repr__(self) -> str:
        return "\n".join([f"Gate {self.verdict}", *(f"  {result.sentence}" for result in self.results)])


def decide(
    condition: Gate,
    estimate: Estimate,
    *,
    basis: str,
    probability: float,
    require_gold: bool,
    level: float = 0.95,
    refused: bool = False,
    n_checked: int | None = None,
) -> GateResult:
    """The verdict on one gate."""
    if math.isnan(estimate.mean):
        raise InvalidParameter(
            f"a gate needs a metric that is defined on these items, got {condition.what}, which is a share of nothing; "
            "name another metric, or judge items where it is defined"
        )
    met, missed = condition.chances(estimate)
    if math.isnan(met) and not refused:
        raise InvalidParameter(
            f'a gate needs an interval, got none for {condition.what}; use `method="bayes"`', parameter="method"
        )
    numbers = f"{level_words(level)} interval {interval(*estimate.interval(level))}; rests on {basis}"
    if refused:
        verdict: Verdict = "undecided"
        why = f"checked items contradict the votes, so there is no interval for {condition.what}"
    elif require_gold and n_checked is not None and n_checked < ENOUGH_CHECKS:
        verdict = "undecided"
        why = (
            f"checked items are required, {ENOUGH_CHECKS} or more of those that {condition.what} is about, and there "
            f"are {n_checked or 'none'}; have items checked that are drawn at random (`trueup.labelers.draw_sample`) "
            "and say "
            'so with `drawn="random"`'
        )
    else:
        verdict = "passed" if met >= probability else "failed" if missed >= probability else "undecided"
        asked = "" if verdict == "passed" else f", {level_words(probability)} is asked for"
        why = f"{condition} with probability {chance(met)}{asked} ({numbers})"
    return GateResult(condition, verdict, met, missed, estimate, basis, (f"{verdict}: {why}"))
