"""May a release go out? The conditions that an answer must meet."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from trueup._base.types import Booleans
from trueup._base.validation import check_number, did_you_mean, preview
from trueup._base.wording import chance, interval, level_words
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.preferences import Preferences
from trueup.answers.share import Shares, share_name
from trueup.core.truth import drawn_gold
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
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
    candidate: Hashable | None = None  # the system that is judged
    reference: Hashable | None = None  # the one that it is compared with

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
        systems = {"candidate": self.gate.candidate, "reference": self.gate.reference}
        return {
            "gate": str(self.gate),
            "verdict": self.verdict,
            "probability": self.probability,
            "probability_failed": self.probability_failed,
            **{role: None if name is None else str(name) for role, name in systems.items()},
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
    required : float. The probability that is asked for.
    require_gold : bool. Whether votes alone decide nothing.
    level : float. Of the intervals that are shown.
    next_steps : tuple of str. Where it is undecided, what to check.
    """

    results: tuple[GateResult, ...]
    required: float
    require_gold: bool
    level: float = 0.95
    next_steps: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Of all: "failed" if one gate is, else "undecided" if one is, else "passed"."""
        found = {result.verdict for result in self.results}
        order: tuple[Verdict, ...] = ("failed", "undecided", "passed")
        return next((verdict for verdict in order if verdict in found), "passed")

    @property
    def sentence(self) -> str:
        """The verdict and why: the sentences of the gates that decide it."""
        return "; ".join(result.sentence for result in self.results if result.verdict == self.verdict)

    def __bool__(self) -> bool:
        return self.verdict == "passed"

    def joined(self, other: GateReport) -> GateReport:
        """With the gates of another answer."""
        return replace(self, results=self.results + other.results, next_steps=self.next_steps + other.next_steps)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "probability": self.required,
            "require_gold": self.require_gold,
            "next_steps": list(self.next_steps),
            "gates": [result.to_dict(self.level) for result in self.results],
        }

    def __repr__(self) -> str:
        sentences = [*(result.sentence for result in self.results), *self.next_steps]
        return "\n".join([f"Gate {self.verdict}", *(f"  {sentence}" for sentence in sentences)])


def judge_gate(
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
            f"a gate needs a metric that is defined on these items, got {condition.what}, which is undefined here; "
            "name another metric, or judge items where it is defined"
        )
    met, missed = condition.chances(estimate)
    if math.isnan(met) and not refused:
        raise InvalidParameter('a gate needs an interval, got none; use `method="bayes"`', parameter="method")
    numbers = f"{level_words(level)} interval {interval(*estimate.interval(level))}; rests on {basis}"
    if refused:
        verdict: Verdict = "undecided"
        why = f"checked items contradict the votes, so there is no interval for {condition.what}"
    elif require_gold and n_checked is not None and n_checked < ENOUGH_CHECKS:
        verdict = "undecided"
        why = (
            f"checked items are required, {ENOUGH_CHECKS} or more of those that {condition.what} is about, and there "
            f"are {n_checked or 'none'}; have items checked that are drawn at random (`trueup.labelers.draw_sample`) "
            'and say so with `drawn="random"`'
        )
    else:
        verdict = "passed" if met >= probability else "failed" if missed >= probability else "undecided"
        asked = "" if verdict == "passed" else f", {level_words(probability)} is asked for"
        why = f"{condition} with probability {chance(met)}{asked} ({numbers})"
    return GateResult(condition, verdict, met, missed, estimate, basis, f"{verdict}: {why}")


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
    not_worse_than : system or group, optional. The candidate must not be worse than it by more than the `margin`.
    margin : float
        In the units of the metric. For preferences the metric is the win rate of the candidate over the other, in which
        a tie is half a win and 0.5 is no better and no worse.
    better_than : system or group, optional. The candidate must be better than it.
    candidate : system or group, optional
        Whom the gates are about; by default everyone but those named in `not_worse_than` and `better_than`.
    probability : float. That the condition is met, for a pass; that it is missed, for a failure.
    require_gold : bool
        Whether a gate is undecided that rests on votes alone, or is about a group or a pair of systems with fewer than
        20 vetted items of its own.

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
    subject = Subject(answer)
    asked = subject.conditions(at_least, at_most, not_worse_than, margin, better_than, candidate)
    results = tuple(
        judge_gate(
            condition,
            estimate,
            basis=subject.evaluation.answer_in_words(),
            probability=probability,
            require_gold=require_gold,
            level=subject.level,
            refused=subject.evaluation.refused,
            n_checked=subject.n_checked(condition),
        )
        for condition, estimate, _ in asked
    )
    report = GateReport(results, probability, require_gold, subject.level)
    return replace(report, next_steps=tuple(subject.next_steps())) if report.verdict == "undecided" else report


class Asked(NamedTuple):
    """A gate with the number it is about, and the metric of that."""

    gate: Gate
    estimate: Estimate
    metric: str


@dataclass(frozen=True)
class Subject:
    """What gates are about: the numbers of an answer of any kind, by system or group."""

    answer: Evaluation | Comparison | Shares | Preferences

    def __post_init__(self) -> None:
        if not isinstance(self.answer, Evaluation | Comparison | Shares | Preferences):
            raise InvalidParameter(
                "`answer` must be what evaluate, compare, share, mean_score or preferences returned, got "
                f"{type(self.answer).__name__}; pass that, with bounds by metric: "
                '`tu.gate(ev, at_least={"accuracy": .9})`',
            )

    @property
    def evaluation(self) -> Evaluation | Comparison:
        """What has the votes, the systems and the model behind the answer."""
        return self.answer.evaluation if isinstance(self.answer, Shares | Preferences) else self.answer

    @property
    def level(self) -> float:
        """Of the intervals that are shown."""
        return self.answer.level

    @property
    def _metric_name(self) -> str:
        """The first or only metric."""
        answer = self.evaluation
        return answer.metric if isinstance(answer, Comparison) else answer.metrics[0]

    @property
    def _comparison(self) -> Comparison:
        assert not isinstance(self.answer, Evaluation)
        return self.answer if isinstance(self.answer, Comparison) else self.answer.comparison

    def measure(self, metric: str) -> Metric:
        """A metric by its name."""
        return self.answer.metric(metric) if isinstance(self.answer, Evaluation) else self._comparison.measure

    def conditions(
        self,
        at_least: float | Mapping[str, float] | None = None,
        at_most: float | Mapping[str, float] | None = None,
        not_worse_than: Hashable | None = None,
        margin: float = 0.0,
        better_than: Hashable | None = None,
        candidate: Hashable | None = None,
    ) -> list[Asked]:
        """What is asked for, as `gate` has it; an error where that makes no sense."""
        references = [name for name in (not_worse_than, better_than) if name is not None]
        if margin and not_worse_than is None:
            raise InvalidParameter(
                f"`margin` is how much worse is allowed, got {margin!r} without `not_worse_than`; name the other "
                "system",
            )
        check_number(margin, name="margin", low=0.0)
        if references and isinstance(self.answer, Evaluation):
            given = "not_worse_than" if not_worse_than is not None else "better_than"
            raise InvalidParameter(
                f"an evaluation is of one system, got `{given}` {references[0]!r}; compare the two with trueup.compare",
                parameter="better_than",
            )
        candidates = candidates_among(self._systems(), candidate, references)
        least, most = self._by_metric(at_least), self._by_metric(at_most)
        for metric in least.keys() & most.keys():
            if least[metric] > most[metric]:
                raise InvalidParameter(
                    f"`at_least` must not be above `at_most`, got {least[metric]:g} and {most[metric]:g} for {metric}, "
                    "which no number meets; change one of them",
                )
        asked = [
            *self._bounds_on(least, "at least", candidates),
            *self._bounds_on(most, "at most", candidates),
            *(self._against(name, not_worse_than, margin) for name in candidates if not_worse_than is not None),
            *(self._against(name, better_than, None) for name in candidates if better_than is not None),
        ]
        if not asked:
            raise InvalidParameter(
                "a gate needs a condition, got none; name one of `at_least`, `at_most`, `not_worse_than` and "
                "`better_than`"
            )
        return asked

    def _systems(self) -> list[Any]:
        """Systems or groups; None for all items together."""
        if isinstance(self.answer, Evaluation):
            return list(self.answer.task.outputs.systems.tolist())
        if isinstance(self.answer, Preferences):
            return list(self.answer.pairs.systems.tolist())
        return [None] if isinstance(self.answer, Shares) and len(self.answer) == 1 else list(self.answer)

    def _by_metric(self, bounds: float | Mapping[str, float] | None) -> dict[str, float]:
        """Bounds by the name of the metric: a bare number is about the first one, a class stands for its share."""
        if bounds is None:
            return {}
        first = self._metric_name
        if not isinstance(bounds, Mapping):
            return {first: bounds}
        is_share = isinstance(self.answer, Shares)
        return {first if is_share and first == share_name(name) else name: bound for name, bound in bounds.items()}

    def _bounds_on(self, bounds: Mapping[str, float], side: Side, candidates: list[Any]) -> list[Asked]:
        """A gate for each metric with a bound and each candidate."""
        given = side.replace(" ", "_")
        if bounds and isinstance(self.answer, Preferences):
            raise InvalidParameter(
                f"a preference is between two systems, got `{given}` {next(iter(bounds.values()))!r}; name the other "
                "one by `not_worse_than`, with `margin`, or `better_than`",
                parameter=given,
            )
        first = self._metric_name
        if bounds and not isinstance(self.answer, Evaluation) and set(bounds) != {first}:
            raise InvalidParameter(
                f"this answer is about {first!r}, got a bound on {preview(list(bounds))}; name that one, or pass "
                "the number alone"
            )
        asked = []
        for metric, bound in bounds.items():
            check_bound(self.measure(metric), bound, name=given)
            for candidate in candidates:
                condition = Gate(self._number_of(metric, candidate), side, float(bound), candidate)
                asked.append(Asked(condition, self._estimate(metric, candidate), metric))
        return asked

    def _number_of(self, metric: str, candidate: Hashable | None) -> str:
        """A metric of a candidate in words."""
        joint = "for" if isinstance(self.answer, Shares) else "of"
        return metric if candidate is None else f"{metric} {joint} {candidate!r}"

    def _estimate(self, metric: str, candidate: Hashable | None) -> Estimate:
        if isinstance(self.answer, Evaluation):
            return self.answer[metric]
        assert not isinstance(self.answer, Preferences)
        if isinstance(self.answer, Shares) and candidate is None:
            return self.answer.overall
        return self.answer[candidate]

    def _against(self, candidate: Hashable, reference: Hashable, margin: float | None) -> Asked:
        """That a candidate is not worse than another by more than a margin; without one, that it is better."""
        metric, answer = self._metric_name, self.answer
        if isinstance(answer, Preferences):  # a tie is no loss: the question is which one is preferred
            number = replace(answer, ties="half").win_rate(candidate, reference)
            halved = ", ties as half" if answer.ties == "class" else ""
            what, is_up, middle = f"win rate of {candidate!r} over {reference!r}{halved}", True, 0.5
            (low, high), most = (0.0, 1.0), 0.5
        else:
            number = self._comparison.difference(candidate, reference)
            what = f"{self._number_of(metric, candidate)} minus {reference!r}"
            is_up, middle = self._comparison.higher_is_better, 0.0
            low, high = self._comparison.measure.bounds
            most = high - low
        if margin is None:
            return Asked(Gate(what, "above" if is_up else "below", middle, candidate, reference), number, metric)
        if margin >= most:
            raise InvalidParameter(
                f"`margin` is in the units of the metric, which goes from {low:g} to {high:g}, got {margin:g}, which "
                "allows everything; two points of a share are 0.02",
            )
        bound = middle - margin if is_up else middle + margin
        return Asked(Gate(what, "at least" if is_up else "at most", bound + 0.0, candidate, reference), number, metric)

    def n_checked(self, condition: Gate) -> int | None:
        """How many items drawn at random were checked of those that a condition is about, the fewest of its groups.

        None where all of them are checked, or where the truth was passed.
        """
        answer = self.evaluation
        labels = answer.labels
        if isinstance(answer, Evaluation) and answer.method == "ideal":
            return None
        judged = np.asarray(answer.task.outputs.has_output(answer.task.metric.looks_at).any(axis=0))
        groups = [inside & judged for inside in self.groups_of(condition)]
        is_drawn = drawn_gold(labels) >= 0
        left = [inside for inside in groups if (labels.gold_codes[inside] < 0).any()]
        return min((int(is_drawn[inside].sum()) for inside in left), default=None)

    def groups_of(self, condition: Gate) -> list[Booleans]:
        """Which items are of each group that a condition compares; all items where it compares systems."""
        names = [name for name in (condition.candidate, condition.reference) if name is not None]
        if isinstance(self.answer, Preferences):
            return [self.answer.contests_of(*names)]
        if isinstance(self.answer, Shares) and names:
            return [self.answer.slicing.members(name) for name in names]
        return [np.ones(self.evaluation.labels.n_items, dtype=np.bool_)]

    def next_steps(self) -> list[str]:
        """What to check next, in words."""
        if isinstance(self.answer, Shares | Preferences):
            return self.answer.next_steps()
        step = self.answer.next_step() if isinstance(self.answer, Evaluation) else None
        return [] if step is None else [step]


def candidates_among(systems: Sequence[Any], named: Hashable | None, references: Sequence[Hashable]) -> list[Any]:
    """The systems that gates are about: the one that is named, or all but those they are compared with."""
    known = [system for system in systems if system is not None]
    for name in [*references, *([] if named is None else [named])]:
        if name not in known:
            hint = did_you_mean(name, known) or "; name one of these"
            raise InvalidParameter(
                f"there is no system or group {name!r} to judge here, got {preview(known, most=10)}{hint}"
                if known
                else f"there are no groups to judge here, got {name!r}; name their column by `by`",
                parameter="candidate",
            )
    if named in references and named is not None:
        raise InvalidParameter(
            f"`candidate` must be another than the system it is compared with, got {named!r} for both; name another",
        )
    return [system for system in systems if system not in references] if named is None else [named]


def check_bound(metric: Metric, bound: float, *, name: str) -> None:
    """Stop a bound that a metric cannot have."""
    check_number(bound, name=name)
    low, high = metric.bounds
    if not low <= bound <= high:
        raise InvalidParameter(
            f"`{name}` must be a value that {metric.name} can have, {low:g} to {high:g}, got {bound:g}; name such a "
            "one",
        )
