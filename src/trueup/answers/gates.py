"""May a release go out? A number must be on the right side of a bound with a probability, else it is open."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trueup._base.types import Booleans
from trueup._base.validation import check_number, preview
from trueup._base.wording import chance, interval, level_words
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.gate_checks import candidates_among, check_bound, check_margin, check_together
from trueup.answers.preferences import Preferences
from trueup.answers.share import Shares, share_name
from trueup.answers.telling import basis_words
from trueup.estimators.truth import ENOUGH_GOLD, Basis, drawn_gold
from trueup.exceptions import InvalidParameter, Sentence
from trueup.metrics import Metric
from trueup.posteriors import Estimate

Verdict = Literal["passed", "failed", "undecided"]
Side = Literal["at least", "at most", "above", "below"]
_ROUNDING = 1e-9  # what arithmetic adds to a value that is meant to equal a bound


@dataclass(frozen=True)
class Gate:
    """One condition: the side of a bound that a number must be on.

    Attributes
    ----------
    what : str
        The number in words, e.g. "accuracy of 'new'".
    side : {"at least", "at most", "above", "below"}
        "at least" and "at most" hold on the bound itself, "above" and "below" do not.
    bound : float
        In the units of the metric.
    candidate, reference : hashable, optional
        The system that is judged, and the one that it is held against.
    """

    what: str
    side: Side
    bound: float
    candidate: Hashable | None = None
    reference: Hashable | None = None

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
    """What became of one gate.

    Attributes
    ----------
    gate : Gate
    verdict : {"passed", "failed", "undecided"}
    probability : float
        That the condition is met; NaN where vetted items contradict the models.
    probability_failed : float
        That it is not met.
    estimate : Estimate
        The number the condition is about.
    basis : {"gold", "votes"}
        What it rests on.
    sentence : str
        The verdict and why, in words.
    """

    gate: Gate
    verdict: Verdict
    probability: float
    probability_failed: float
    estimate: Estimate = field(repr=False)
    basis: Basis
    sentence: Sentence

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


def gate(
    answer: Evaluation | Comparison | Shares | Preferences,
    *,
    at_least: float | Mapping[str, float] | None = None,
    at_most: float | Mapping[str, float] | None = None,
    not_worse_than: Hashable | None = None,
    margin: float = 0.0,
    better_than: Hashable | None = None,
    candidate: Hashable | None = None,
    probability: float = 0.95,
    require_gold: bool = False,
) -> GateReport:
    """Whether systems may go out: passed, failed, or undecided where the data do not tell.

    A gate is passed where its condition is met with the probability that is asked for, failed where it is missed with
    that probability, and undecided in between.

    Parameters
    ----------
    answer : Evaluation, Comparison, Shares or Preferences
        Of `evaluate`, `compare`, `share`, `mean_score` or `preferences`.
    at_least, at_most : float or mapping from metric to float, optional
        What the metric must reach, or must not exceed; a bare number is about the first metric.
    not_worse_than : system or group, optional
        The candidate must not be worse than it by more than the `margin`.
    margin : float
        In the units of the metric. For preferences the metric is the win rate of the candidate over the other, in which
        a tie is half a win and 0.5 is no better and no worse.
    better_than : system or group, optional
        The candidate must be better than it.
    candidate : system or group, optional
        Whom the gates are about; by default everyone but those named in `not_worse_than` and `better_than`.
    probability : float
        That the condition is met, for a pass; that it is missed, for a failure.
    require_gold : bool
        Whether a gate is undecided that rests on votes alone, or is about a group or a pair of systems with fewer than
        20 vetted items of its own.

    Returns
    -------
    GateReport

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> tu.gate(ev, at_least={"accuracy": 0.5}).verdict, tu.gate(ev, at_least={"accuracy": 0.999}).verdict
    ('passed', 'failed')
    >>> tu.gate(ev, at_least={"accuracy": 0.5}, require_gold=True).verdict
    'undecided'
    """
    check_number(probability, name="probability", low=0.5, high=1.0, strict=True)
    subject = _Subject(answer)
    references = [name for name in (not_worse_than, better_than) if name is not None]
    if margin and not_worse_than is None:
        raise InvalidParameter(
            f"⟨margin⟩ is how much worse is allowed, got {margin!r} without ⟨not_worse_than⟩; name the other system",
            parameter="margin",
        )
    check_number(margin, name="margin", low=0.0)
    if references and isinstance(answer, Evaluation):
        raise InvalidParameter(
            f"an evaluation is of one system, got ⟨{'not_worse_than' if not_worse_than is not None else 'better_than'}⟩"
            f" {references[0]!r}; compare the two with trueup.compare",
            parameter="better_than",
        )
    candidates = candidates_among(subject.systems, candidate, references)
    check_together(subject.by_metric(at_least), subject.by_metric(at_most))
    asked = [
        *subject.bounds_on(at_least, "at least", candidates),
        *subject.bounds_on(at_most, "at most", candidates),
        *(subject.not_worse(name, not_worse_than, margin) for name in candidates if not_worse_than is not None),
        *(subject.better(name, better_than) for name in candidates if better_than is not None),
    ]
    if not asked:
        raise InvalidParameter(
            "a gate needs a condition, got none; name one of ⟨at_least⟩, ⟨at_most⟩, ⟨not_worse_than⟩ and ⟨better_than⟩"
        )
    results = tuple(
        decide(
            condition,
            estimate,
            basis=subject.basis(metric),
            rests_on=subject.rests_on(metric),
            probability=probability,
            require_gold=require_gold,
            level=subject.level,
            refused=subject.refused and subject.basis(metric) == "votes",
            of_group=subject.vetted_of_group(condition),
        )
        for condition, estimate, metric in asked
    )
    return GateReport(results, probability, require_gold, subject.level)


def decide(
    condition: Gate,
    estimate: Estimate,
    *,
    basis: Basis,
    rests_on: str,
    probability: float,
    require_gold: bool,
    level: float = 0.95,
    refused: bool = False,
    of_group: int | None = None,
) -> GateResult:
    """The verdict on one gate.

    Parameters
    ----------
    condition : Gate
    estimate : Estimate
        The number that the condition is about.
    basis : {"gold", "votes"}
    rests_on : str
        The same in words, to follow "rests on".
    probability : float
    require_gold : bool
    level : float
        Of the interval that is told.
    refused : bool
        Whether the number has no interval since vetted items contradict the models.
    of_group : int, optional
        How many vetted items drawn at random the group has that the number is about; None where it is about all items,
        or where all of the group is vetted.
    """
    if math.isnan(estimate.mean):
        raise InvalidParameter(
            f"a gate needs a metric that is defined on these items, got {condition.what}, which is a share of nothing; "
            "name another metric, or judge items where it is defined"
        )
    met, missed = condition.chances(estimate)
    if math.isnan(met) and not refused:
        raise InvalidParameter(
            f'a gate needs an interval, got none for {condition.what}; use ⟨method="bayes"⟩', parameter="method"
        )
    few = of_group is not None and of_group < ENOUGH_GOLD
    own = f", {of_group or 'none'} of them of its own" if few and basis == "gold" else ""
    numbers = f"{level_words(level)} interval {interval(*estimate.interval(level))}; rests on {rests_on}{own}"
    if refused:
        verdict: Verdict = "undecided"
        why = f"vetted items contradict the models, so there is no interval for {condition.what}"
    elif require_gold and basis == "votes":
        verdict = "undecided"
        why = (
            f"gold is required and {condition.what} rests on votes alone; have {ENOUGH_GOLD} or more items vetted that "
            'were drawn at random (⟨trueup.labelers.draw_sample⟩) and say so with ⟨drawn="random"⟩'
        )
    elif require_gold and few:
        # What judges get wrong about one system, the vetted items of others do not show.
        verdict = "undecided"
        why = (
            f"gold is required and {condition.what} rests on {rests_on}{own}: that judges err about it as about others "
            f"is not checked; have {ENOUGH_GOLD} or more of its own vetted that were drawn at random"
        )
    else:
        verdict = "passed" if met >= probability else "failed" if missed >= probability else "undecided"
        asked = "" if verdict == "passed" else f", {level_words(probability)} is asked for"
        why = f"{condition} with probability {chance(met)}{asked} ({numbers})"
    return GateResult(condition, verdict, met, missed, estimate, basis, Sentence(f"{verdict}: {why}"))


_Asked = tuple[Gate, Estimate, str]


@dataclass(frozen=True)
class _Subject:
    """The numbers of an answer by whom they are about: the one place that knows the kinds of answers apart."""

    answer: Evaluation | Comparison | Shares | Preferences

    @property
    def systems(self) -> list[Any]:
        """Systems or groups; None for all items together."""
        if isinstance(self.answer, Evaluation):
            return list(self.answer.task.outputs.systems.tolist())
        if isinstance(self.answer, Preferences):
            return list(self.answer.pairs.systems.tolist())
        return [None] if isinstance(self.answer, Shares) and len(self.answer) == 1 else list(self.answer)

    def bounds_on(self, bounds: float | Mapping[str, float] | None, side: Side, candidates: list[Any]) -> list[_Asked]:
        """A gate for each metric with a bound and each candidate."""
        if bounds is None:
            return []
        if isinstance(self.answer, Preferences):
            given = "at_least" if side == "at least" else "at_most"
            raise InvalidParameter(
                f"a preference is between two systems, got ⟨{given}⟩ {bounds!r}; name the other one by "
                "⟨not_worse_than⟩, with ⟨margin⟩, or ⟨better_than⟩",
                parameter=given,
            )
        first = self._metric_name
        by_metric = self.by_metric(bounds)
        if not isinstance(self.answer, Evaluation) and set(by_metric) != {first}:
            raise InvalidParameter(
                f"this answer is about {first!r}, got a bound on {preview(list(by_metric))}; name that one, or pass "
                "the number alone"
            )
        asked = []
        for metric, bound in by_metric.items():
            check_bound(self._measure(metric), bound, name="at_least" if side == "at least" else "at_most")
            for candidate in candidates:
                condition = Gate(self._number_of(metric, candidate), side, float(bound), candidate)
                asked.append((condition, self._estimate(metric, candidate), metric))
        return asked

    def by_metric(self, bounds: float | Mapping[str, float] | None) -> Mapping[str, float]:
        """Bounds by the name of the metric; a bare number is about the first one."""
        if bounds is None:
            return {}
        if not isinstance(bounds, Mapping):
            return {self._metric_name: bounds}
        return {self._full_name(name): bound for name, bound in bounds.items()}

    def _full_name(self, name: str) -> str:
        """The name of a metric; the class alone stands for its share."""
        return self._metric_name if isinstance(self.answer, Shares) and self._metric_name == share_name(name) else name

    def not_worse(self, candidate: Hashable, reference: Hashable, margin: float) -> _Asked:
        """That a candidate is not worse than another by more than a margin."""
        if isinstance(self.answer, Preferences):
            check_margin(margin, (0.0, 1.0), largest=0.5)  # below one half
            return self._contest(candidate, reference, "at least", 0.5 - margin)
        check_margin(margin, self._comparison.measure.bounds)
        side: Side = "at least" if self._comparison.higher_is_better else "at most"
        return self._pair(candidate, reference, side, -margin if side == "at least" else margin)

    def better(self, candidate: Hashable, reference: Hashable | None) -> _Asked:
        """That a candidate is better than another."""
        if isinstance(self.answer, Preferences):
            return self._contest(candidate, reference, "above", 0.5)
        return self._pair(candidate, reference, "above" if self._comparison.higher_is_better else "below", 0.0)

    def _pair(self, candidate: Hashable, reference: Hashable | None, side: Side, bound: float) -> _Asked:
        what = f"{self._number_of(self._metric_name, candidate)} minus {reference!r}"
        difference = self._comparison.difference(candidate, reference)
        return Gate(what, side, bound + 0.0, candidate, reference), difference, self._metric_name

    def _contest(self, candidate: Hashable, reference: Hashable | None, side: Side, bound: float) -> _Asked:
        assert isinstance(self.answer, Preferences)
        wins = replace(self.answer, ties="half").win_rate(candidate, reference)
        # A tie is no loss: what is asked is who is preferred.
        halved = ", ties as half" if self.answer.ties == "class" else ""
        what = f"win rate of {candidate!r} over {reference!r}{halved}"
        return Gate(what, side, bound, candidate, reference), wins, self._metric_name

    def _number_of(self, metric: str, candidate: Hashable | None) -> str:
        """A metric of a candidate in words."""
        joint = "for" if isinstance(self.answer, Shares) else "of"
        return metric if candidate is None else f"{metric} {joint} {candidate!r}"

    @property
    def _comparison(self) -> Comparison:
        assert not isinstance(self.answer, Evaluation)
        return self.answer if isinstance(self.answer, Comparison) else self.answer.comparison

    @property
    def _evaluation(self) -> Evaluation | Comparison:
        return self.answer.evaluation if isinstance(self.answer, Shares | Preferences) else self.answer

    @property
    def _metric_name(self) -> str:
        """The first or only metric."""
        if isinstance(self.answer, Evaluation | Preferences):
            evaluation = self.answer.evaluation if isinstance(self.answer, Preferences) else self.answer
            return evaluation.metrics[0]
        return self.answer.name if isinstance(self.answer, Shares) else self.answer.metric

    def _measure(self, metric: str) -> Metric:
        return self.answer.metric(metric) if isinstance(self.answer, Evaluation) else self._comparison.measure

    def _estimate(self, metric: str, candidate: Hashable | None) -> Estimate:
        if isinstance(self.answer, Evaluation):
            return self.answer[metric]
        assert not isinstance(self.answer, Preferences)
        if isinstance(self.answer, Shares) and candidate is None:
            return self.answer.overall
        return self.answer[candidate]

    def basis(self, metric: str) -> Basis:
        """What a number rests on; where every item that is judged was vetted, or the truth was passed, on gold."""
        answer = self._evaluation
        if isinstance(answer, Evaluation) and answer.method == "ideal":
            return "gold"
        if _all_vetted(answer):
            return "gold"
        return answer.basis_of(metric) if isinstance(answer, Evaluation) else answer.basis

    def vetted_of_group(self, condition: Gate) -> int | None:
        """How many items drawn at random were vetted of the groups that a condition is about, the fewest of them.

        None where it is about all items, or where everything of a group is vetted.
        """
        labels = self._evaluation.labels
        is_drawn = drawn_gold(labels) >= 0
        left = [inside for inside in self._groups_of(condition) if (labels.gold_codes[inside] < 0).any()]
        return min((int(is_drawn[inside].sum()) for inside in left), default=None)

    def _groups_of(self, condition: Gate) -> list[Booleans]:
        """Which items are of each group that a condition is about; none where it is about all items."""
        if isinstance(self.answer, Preferences):
            return [self.answer.contests_of(condition.candidate, condition.reference)]
        if isinstance(self.answer, Shares):
            names = [name for name in (condition.candidate, condition.reference) if name is not None]
            return [self.answer.slicing.members(name) for name in names]
        return []

    def rests_on(self, metric: str) -> str:
        """The same in words."""
        answer = self._evaluation
        if _all_vetted(answer):
            return "items that are all vetted"
        return basis_words(answer, metric if isinstance(answer, Evaluation) else None, alone=True)

    @property
    def level(self) -> float:
        """Of the intervals that are shown."""
        return self.answer.level

    @property
    def refused(self) -> bool:
        """Whether vetted items contradict the models."""
        return self._evaluation.refused


def _all_vetted(answer: Evaluation | Comparison) -> bool:
    """Whether the truth of every item that is judged is known."""
    outputs = answer.task.outputs
    judged = outputs.has_output(answer.task.metric.looks_at).any(axis=0)
    return bool((answer.labels.gold_codes[judged] >= 0).all())
