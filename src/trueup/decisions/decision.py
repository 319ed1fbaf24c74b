"""`decide`: which items to check until a condition is sure to be met, or not to be."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, check_integer, check_number, seed_of
from trueup._base.wording import chance as chance_words
from trueup._base.wording import interval, number, some
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.gates import GateReport, GateResult, Subject, Verdict
from trueup.answers.preferences import Preferences
from trueup.answers.share import Shares
from trueup.core.truth import TruthModel, basis_in_words
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.decisions.conditions import Condition, conditions_of
from trueup.decisions.sequential import (
    STAKES,
    Sides,
    Standing,
    View,
    advance,
    bet,
    draws_until,
    learn,
    make_view,
    stake_weights,
)
from trueup.exceptions import InvalidParameter
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.sessions.progress import Shares as CardShares
from trueup.sessions.session import Batch, DrawnSession, draw_in_turn
from trueup.storage import Storage
from trueup.storage.joining import StoredLog, fingerprint, of_votes

STOPPING = ("budget",)  # what may change while a decision goes on
_OF_POPULATION = 0.2  # of the error, for how far the items may be off the population they come from
_WORLDS = 200


@dataclass(frozen=True)
class Needed:
    """How many more checks a decision is expected to take.

    Attributes
    ----------
    checks : int or None. By then it is decided with probability 80%; None where it may never be.
    low, high : int or None. With 10% it takes no more than the one, with 90% no more than the other.
    minutes : float or None. What `checks` take at the median pace so far; None before anybody's time was kept.
    passed, failed : float. How probable each verdict is in the end.
    """

    checks: int | None
    low: int | None
    high: int | None
    minutes: float | None
    passed: float
    failed: float

    def __str__(self) -> str:
        if self.checks == 0:
            return "It is decided."
        ends = f"{chance_words(self.passed)} passed, {chance_words(self.failed)} failed"
        if self.checks is None:
            return f"No number of checks is sure to decide (in the end: {ends})."
        spent = "" if self.minutes is None else f", about {max(1, round(self.minutes)):,} minutes at your pace"
        upto = "more than all" if self.high is None else f"{self.high:,}"
        return (
            f"{some(self.checks, 'more check')} decide with probability 80% (from {self.low:,} to {upto}{spent}); "
            f"in the end: {ends}."
        )


class _Draw(NamedTuple):
    """One step of a decision: an item that was drawn, or answered without having been."""

    item: int
    code: int  # of its class, -1 where nobody could tell
    chance: float  # of the draw; 0 of an item that was not drawn
    after: int  # how many draws counted when it was drawn


class Decision(DrawnSession):
    """A decision that goes on until it is safe; `trueup.decide` makes it.

    Attributes
    ----------
    answer : Evaluation, Comparison, Shares or Preferences. What it is about.
    conditions : list of Condition
    error : float. The chance of a false verdict, over all looks together.
    """

    level: float

    def __init__(
        self,
        answer: Evaluation | Comparison | Shares | Preferences,
        *,
        at_least: float | Mapping[str, float] | None = None,
        at_most: float | Mapping[str, float] | None = None,
        not_worse_than: Hashable | None = None,
        margin: float = 0.0,
        better_than: Hashable | None = None,
        candidate: Hashable | None = None,
        error: float = 0.05,
        budget: int | None = None,
        blind: bool = True,
        overlap: float = 0.0,
        repeat: float = 0.0,
        checks: float = 0.0,
        random_state: RandomState = 0,
        storage: str | Storage | None = None,
        name: str | None = None,
    ) -> None:
        subject = Subject(answer)
        self.asked: dict[str, Any] = {"at_least": at_least, "at_most": at_most, "not_worse_than": not_worse_than}
        self.asked |= {"margin": margin, "better_than": better_than, "candidate": candidate}
        conditions = subject.conditions(**self.asked)
        if subject.evaluation.core is None:
            raise InvalidParameter(
                "a decision needs the plain answer, got one of a noise model or method that is named; leave out "
                "`noise` and `method`",
                parameter="answer",
            )
        self.answer, self.level = answer, subject.level
        self.error = check_number(error, name="error", low=0.0, high=0.5, strict=True)
        self.conditions = conditions_of(subject, conditions)
        labels = _labels_of(answer)
        self._core = _core_about(subject.evaluation, self.conditions)
        terms, includes = [part.terms for part in self.conditions], [part.includes_bound for part in self.conditions]
        self._sides = Sides.of(terms, includes)
        known = self._core.known
        matters = np.ptp(self._sides.terms, axis=2).max(axis=0) > 0
        self._open = matters & (known < 0)
        self.budget = None if budget is None else check_integer(budget, name="budget", low=1)
        self.blind = self._blind = bool(blind)
        self.shares = CardShares(overlap, repeat, checks)
        self._views: dict[tuple[int, bytes], View] = {}
        self._replayed: list[_Draw] = []
        self._standings: list[Standing] = []
        kept = None if storage is None and name is None else StoredLog(storage, name)
        self.seed = seed_of(random_state) if kept is None else kept.seed(random_state)
        self._begin(labels, "decision", {})
        if kept is not None:
            tables = [part.numerator for part in self.conditions] + [part.denominator for part in self.conditions]
            marks = {"votes": of_votes(labels), "predictions": fingerprint(*(t.round(12) for t in tables))}
            kept.join(self, "decision", marks, stopping=STOPPING)

    # ------------------------------------------------------------------ where it stands

    @property
    def verdict(self) -> Verdict:
        """Of all conditions: "passed", "failed" or "undecided". A verdict stays, however many checks follow."""
        verdicts = self.verdicts
        return "failed" if "failed" in verdicts else "undecided" if "undecided" in verdicts else "passed"

    @property
    def verdicts(self) -> list[Verdict]:
        """Of each condition."""
        passed, failed = (self._standing.most >= self._limits).reshape(2, -1).tolist()
        return [
            "failed" if bad else "passed" if good else "undecided" for good, bad in zip(passed, failed, strict=True)
        ]

    @property
    def probability(self) -> float:
        """P(all conditions are met), given the votes and the checks; says nothing of how often one looked."""
        pairs = zip(self.conditions, self._numbers, strict=True)
        return float(np.all([condition.is_met(numbers) for condition, numbers in pairs], axis=0).mean())

    @property
    def estimates(self) -> list[Estimate]:
        """The number that each condition is about, given the votes and the checks."""
        return [result.estimate for result in self._results]

    @cached_property
    def _limits(self) -> Floats:
        """The logarithm of the wealth that proves each side: all conditions must be met, one missed is enough."""
        n = len(self.conditions)
        of_draws = self.error * (1.0 if self._is_of_items else 1 - _OF_POPULATION)  # the error that is left to them
        return np.log(np.repeat([1.0, float(n)], n) / of_draws)

    @property
    def _is_of_items(self) -> bool:
        return Subject(self.answer).evaluation.target == "sample"

    @property
    def needed(self) -> Needed:
        """How many more checks until it is decided, in data simulated from votes and checks."""
        return self._once("needed", self._work_out_needed)

    def _work_out_needed(self) -> Needed:
        verdict = self.verdict
        if verdict != "undecided":
            return Needed(0, 0, 0, 0.0, float(verdict == "passed"), float(verdict == "failed"))
        truths = self._truths[:: max(1, len(self._truths) // _WORLDS)][:_WORLDS]
        most = min(int(self._standing.is_open.sum()), 5_000)
        number, ends = draws_until(
            self._sides,
            self._standing,
            self._view(self.n_draws),
            truths,
            self._limits,
            most=most,
            rng=np.random.default_rng([self.seed, self.n_draws, 7]),
        )
        low, checks, high = (
            None if n > most else int(n) for n in np.quantile(number, [0.1, 0.8, 0.9], method="higher")
        )
        seconds = [event.seconds for event in self._events if event.seconds is not None and event.truth is not None]
        minutes = None if checks is None or not seconds else float(np.median(seconds)) * checks / 60
        return Needed(checks, low, high, minutes, float((ends > 0).mean()), float((ends < 0).mean()))

    # ------------------------------------------------------------------ asking

    def _choose(self, n: int) -> Batch:
        """The next items to check, drawn with chances that serve the decision; none once it is decided."""
        free = self._available & self._open & (self.progress.draw == 0)
        pull = np.where(free, self._view(self.n_draws).pull, 0.0)
        if not pull.any() or self.verdict != "undecided":
            return Batch([])
        chosen, chances = draw_in_turn(pull, n, np.random.default_rng([self.seed, len(self._events)]))
        reason = "It was drawn at random, with a chance that grows with how much its class matters to the decision."
        return self._batch(chosen, pull[chosen], [reason] * len(chosen), chances)

    @property
    def finished(self) -> str | None:
        """Why it can stop, in one sentence; None while it should go on."""
        if self.verdict != "undecided":
            return f"It is decided: {self.verdict}."
        if not (self._available & self._open).any() and not self.progress.waiting.any():
            return "Every item that matters is checked, and the answer is still open."
        if self._room() == 0 and not self.progress.waiting.any():
            return f"The budget of {self.budget} answers is spent."
        return None

    @property
    def n_draws(self) -> int:
        """How many draws count: the first ones that all have an outcome."""
        return self._counted().n_draws

    def draw_of(self, item: Hashable) -> tuple[int, int, float]:
        """Of an item that was drawn: its place among all draws, how many counted then, and its chance."""
        at = self._names.position(item)
        return int(self.progress.draw[at]), self._afters[at], float(self.progress.propensity[at])

    @property
    def n_strange(self) -> int:
        """Draws whose chance is not what these votes and settings give, so that they decide nothing."""
        return self._standing.n_strange

    @property
    def checked(self) -> dict[Any, Any]:
        """The class of each item that was checked here and has one."""
        truth, classes = self.progress.truth, self._names.classes
        return {
            self._names.items[at]: classes[truth[at]]
            for at in np.flatnonzero(self.progress.vetted)
            if truth[at] < len(classes)
        }

    @property
    def checked_labels(self) -> Labels:
        """The votes with the answers as checked items, each with about the chance to have been drawn by now."""
        return self._checked_core.labels

    # ------------------------------------------------------------------ what follows from the log

    @property
    def _standing(self) -> Standing:
        """Where the bets stand after all answers that count."""
        return self._once("standing", self._replay)

    def _replay(self) -> Standing:
        draws = self._draws
        pairs = enumerate(zip(self._replayed, draws, strict=False))
        same = next((k for k, (before, now) in pairs if before != now), min(len(self._replayed), len(draws)))
        standings = self._standings[: same + 1] or [self._first_standing]
        counted = sum(1 for draw in draws[:same] if draw.chance)
        for draw in draws[same:]:
            last, view = standings[-1], self._view(counted)
            if draw.chance:
                after = min(draw.after, counted)
                standings.append(bet(self._sides, last, draw.item, draw.code, draw.chance, view, self._view(after)))
                counted += 1
            else:
                standings.append(learn(self._sides, last, draw.item, draw.code, view.shift))
        self._replayed, self._standings = draws, standings
        return standings[-1]

    @cached_property
    def _first_standing(self) -> Standing:
        """Before any draw."""
        view, n_sides = self._view(0), len(self._sides.terms)
        truths = replace(self._core, n_draws=256).truth.truths  # drawn before any answer
        items = np.arange(truths.shape[1])
        sums = np.stack([self._sides.terms[:, items, row].sum(axis=1) for row in truths], axis=1)
        even = np.full((n_sides, len(STAKES)), -math.log(len(STAKES)))
        wealth = stake_weights(self._sides, view, self._open, sums) if self._open.any() else even
        standing = Standing(self._known_sums(self._core.known), self._open, wealth, np.zeros(n_sides))
        return advance(self._sides, standing, view.shift)

    def _known_sums(self, codes: Codes) -> Floats:
        """The sum of each side over items whose class is known; those that matter to nothing are counted too."""
        fixed = np.where(codes < 0, 0, codes)
        counts = (codes >= 0) | ~self._open
        return np.asarray(self._sides.terms[:, counts, fixed[counts]].sum(axis=1))

    @property
    def _draws(self) -> list[_Draw]:
        """The steps in order: draws that count, and items answered between them."""
        progress, codes = self._counted().progress, self._counted().progress.truth
        n_classes, n_draws = self._labels.n_classes, self._counted().n_draws
        codes = np.where(codes < n_classes, codes, -1)
        drawn = np.flatnonzero((progress.draw > 0) & (progress.draw <= n_draws) & self._open)
        others = np.flatnonzero((progress.draw == 0) & (codes >= 0) & self._open)
        afters = self._afters
        chances = np.nan_to_num(progress.propensity, nan=1e-300)  # nothing is bet on a draw of unknown chance
        rows = [
            (int(progress.draw[at]), 1, _Draw(int(at), int(codes[at]), float(chances[at]), afters[at]))
            for at in drawn.tolist()
        ]
        rows += [(int(progress.told_after[at]), 2, _Draw(int(at), int(codes[at]), 0.0, 0)) for at in others.tolist()]
        return [draw for *_, draw in sorted(rows)]

    @property
    def _afters(self) -> dict[int, int]:
        """How many draws counted when each item was drawn, by its place."""
        order: list[int] = []
        done: set[int] = set()
        afters: dict[int, int] = {}
        n_done = 0
        for event in self._events:
            if event.purpose is not None or event.kind == "comment":
                continue
            at = self._names.positions[event.item]
            if at not in afters and (event.kind == "ask" or event.propensity is not None):
                afters[at] = int(event.text) if event.text is not None and event.text.isdigit() else n_done
                order.append(at)
            if event.kind not in ("ask", "later"):
                done.add(at)
            while n_done < len(order) and order[n_done] in done:
                n_done += 1
        return afters

    def _view(self, n: int) -> View:
        """What is expected after the last fit at or before n answers."""
        at = _last_refit(n)
        codes = self._first_codes(at)
        key = at, codes[codes >= 0].tobytes() + np.flatnonzero(codes >= 0).tobytes()
        if key not in self._views:
            self._views[key] = self._fit(codes)
        return self._views[key]

    def _first_codes(self, n: int) -> Codes:
        """The class of each known item after n draws, by the first answer: later ones change no chance of a draw."""
        return self._once(("first", n), lambda: self._work_out_first_codes(n))

    def _work_out_first_codes(self, n: int) -> Codes:
        progress, codes = self.progress, self._core.known.astype(np.int64)
        is_early = np.where(progress.draw > 0, progress.draw <= n, progress.told_after < n)
        for at in np.flatnonzero(progress.outcome & (codes < 0) & is_early).tolist():
            code = progress.opinions[at][0].code
            codes[at] = code if code < self._labels.n_classes else -1
        return codes

    def _fit(self, codes: Codes) -> View:
        core = _with_checks(self._core, codes)
        chances = core.mean_chances()
        n_sides = len(self._sides.terms)
        shift = np.zeros(n_sides)
        if not self._is_of_items:
            shift = np.tile(self._sampling_deviation(chances), 2) * float(-ndtri(self.error * _OF_POPULATION))
        is_open = self._open & (codes < 0)
        if not is_open.any():
            expected = np.einsum("sic,ic->si", self._sides.terms, chances)
            return View(expected, np.zeros(len(codes)), shift)
        return make_view(self._sides, chances, is_open, self._known_sums(codes), shift)

    def _sampling_deviation(self, chances: Floats) -> Floats:
        """How far the sums are off those of the population that the items come from, of each condition."""
        terms = self._sides.terms[: len(self.conditions)]
        expected = np.einsum("sic,ic->si", terms, chances)
        variance = np.einsum("sic,ic->si", terms**2, chances) - expected**2
        clusters = self._core.clusters
        found = []
        for condition, row, own in zip(self.conditions, expected, variance, strict=True):
            residual = row.copy()
            for members in condition.groups:
                residual[members] -= row[members].mean()
            parts = residual if clusters is None else np.bincount(clusters, residual)
            found.append((parts**2).sum() + own.sum())
        return np.asarray(np.sqrt(found))

    # ------------------------------------------------------------------ numbers

    @property
    def _truths(self) -> Codes:
        core = self._checked_core
        return self._once("truths", lambda: core.with_labels(core.labels, n_draws=2048).truth.truths)

    @property
    def _checked_core(self) -> TruthModel:
        return _with_checks(self._core, self._all_codes, self._chances_by_now)

    @property
    def _all_codes(self) -> Codes:
        """The class of each known item, -1 for the others, also for those that are none of the classes."""
        codes = np.where(self._known_codes < self._labels.n_classes, self._known_codes, -1)
        return np.where(self._core.known >= 0, self._core.known, codes)

    @property
    def _chances_by_now(self) -> Floats:
        """About the chance of each item to have been drawn by now; NaN of those that were not drawn."""
        progress = self.progress
        chances = -np.expm1(-np.nan_to_num(progress.propensity) * int((progress.draw > 0).sum()))
        return np.where(chances > 0, np.minimum(chances, 1.0), np.nan)

    @property
    def _numbers(self) -> list[Floats]:
        """The number of each condition in each draw."""
        return self._once("numbers", self._work_out_numbers)

    def _work_out_numbers(self) -> list[Floats]:
        numbers = [condition.numbers(self._truths) for condition in self.conditions]
        if self._is_of_items:
            return numbers
        deviation, rng = self._sampling_deviation(self._core.mean_chances()), np.random.default_rng([self.seed, 8])
        pairs = zip(numbers, deviation, strict=True)
        return [drawn + far * rng.standard_normal(len(drawn)) for drawn, far in pairs]

    # ------------------------------------------------------------------ out

    @property
    def _results(self) -> tuple[GateResult, ...]:
        return self._once("results", self._work_out_results)

    def _work_out_results(self) -> tuple[GateResult, ...]:
        """What became of each condition."""
        basis = basis_in_words(int((self._all_codes >= 0).sum()), self._labels.n_items)
        n = self.progress.n_tells
        rests = f"after {some(n, 'check')}; false at any look with a chance of at most {self.error:.0%}"
        results = []
        for condition, verdict, numbers in zip(self.conditions, self.verdicts, self._numbers, strict=True):
            gate, bounds, met = condition.gate, condition.bounds, float(condition.is_met(numbers).mean())
            estimate = DrawnEstimate(np.clip(numbers, *bounds), bounds=bounds, name=gate.what)
            ends = interval(*estimate.interval(self.level))
            sentence = f"{verdict}: {gate}; it is {number(estimate.mean)}, {ends} ({rests})"
            results.append(GateResult(gate, verdict, met, 1 - met, estimate, basis, sentence))
        return tuple(results)

    @property
    def sentences(self) -> list[str]:
        """Of each condition: the verdict and what it rests on, in words."""
        return [result.sentence for result in self._results]

    @property
    def sentence(self) -> str:
        """The verdict and why: the conditions that decide it."""
        return "; ".join(result.sentence for result in self._results if result.verdict == self.verdict)

    def report(self) -> GateReport:
        """What became of the conditions, as `gate` says it: for JUnit, summaries and the command line."""
        steps = (str(self.needed),) if self.verdict == "undecided" else ()
        return GateReport(self._results, 1 - self.error, require_gold=True, level=self.level, next_steps=steps)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "error": self.error,
            "probability": self.probability,
            "n_checks": self.progress.n_tells,
            "needed": asdict(self.needed),
            "conditions": [
                {
                    "condition": str(result.gate),
                    "verdict": result.verdict,
                    "side": result.gate.side,
                    "bound": result.gate.bound,
                    "estimate": result.estimate.to_dict(self.level),
                    "sentence": result.sentence,
                }
                for result in self._results
            ],
        }

    def save_html(self, path: str | PathLike[str]) -> Path:
        """Write a page with the verdict, the conditions and how it came about; by its suffix HTML, Markdown or JSON."""
        from trueup.report import save_report
        from trueup.report.saving import decision_report

        every = max(1, math.ceil(self.progress.n_tells / 20))  # for 20 points on a page
        course = self.history(every=every) if self.progress.n_tells else []
        return save_report(decision_report(self.to_dict(), course=course, level=self.level), path)

    def history(self, *, every: int = 10) -> list[dict[str, float]]:
        """The number of the first condition after each `every` answers, and P(all are met): n, mean, low, high, met."""
        return [
            {**then._row(then.estimates[0]), "met": then.probability}
            for then in self._after_answers(every, first=every)
        ]

    def _history(self, every: int) -> tuple[list[dict[str, float]], str]:
        return self.history(every=every), self.conditions[0].gate.what

    def __repr__(self) -> str:
        report = self.report()
        return "\n".join([f"Decision {self.verdict}", *(f"  {line}" for line in (*self.sentences, *report.next_steps))])

    def _settings(self) -> dict[str, Any]:
        return {
            **self.asked,
            "error": self.error,
            "budget": self.budget,
            "blind": self.blind,
            **vars(self.shares),
            "random_state": self.seed,
        }

    def settings_as_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What it was made with, as it comes back from JSON; there is no strategy to name."""
        settings, options = super().settings_as_json()
        return {name: value for name, value in settings.items() if name != "strategy"}, options

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], options: Mapping[str, Any], *data: Any, **changed: Any) -> Any:
        """A decision as it was made at first; see `from_json`."""
        return super().from_settings({k: v for k, v in settings.items() if k != "strategy"}, options, *data, **changed)


def _last_refit(n: int) -> int:
    """The last number of answers, up to n, after which what is expected was worked out anew."""
    at = 0
    following = 4
    while following <= n:
        at, following = following, max(following + 1, math.ceil(following * 1.2))  # 20% more answers
    return at


def _labels_of(answer: Evaluation | Comparison | Shares | Preferences) -> Labels:
    """The items to ask for; contests by item, first system and second system."""
    labels = Subject(answer).evaluation.labels
    if not isinstance(answer, Preferences):
        return labels
    names = [answer.pairs.contests[int(at)] for at in labels.items.tolist()]
    return replace(labels, items=vocabulary_from(names))


def _core_about(evaluation: Evaluation | Comparison, conditions: Sequence[Condition]) -> TruthModel:
    """The model of the systems that conditions are about, or of some of them."""
    core = evaluation.core
    assert core is not None
    core = replace(core, may_sample=False, n_draws=64)  # enough where a look needs chances alone
    if not isinstance(evaluation, Comparison):
        return core
    names = evaluation.task.outputs.systems.tolist()
    systems = (system for part in conditions for system in (part.gate.reference, part.gate.candidate))
    named = list(dict.fromkeys(system for system in systems if system in names))
    places = sorted(names.index(system) for system in named[:4])
    return core.of_systems(places)


def _with_checks(core: TruthModel, codes: Codes, chances: Floats | None = None) -> TruthModel:
    """The model that knows the class of some items, with the chance of each to be drawn; by default all have one."""
    labels = core.labels
    fresh = (codes >= 0) & (core.known < 0)
    if not fresh.any():
        return core
    drawn_before = (core.drawn >= 0).mean()
    now = max(fresh.mean(), 1e-9) if chances is None else chances
    chance = np.where(fresh, 1 - (1 - drawn_before) * (1 - now), labels.gold_chance)
    gold = np.where(fresh, codes, labels.gold_codes).astype(labels.gold_codes.dtype)
    return core.with_labels(replace(labels, gold_codes=gold, gold_chance=chance))


def decide(
    answer: Evaluation | Comparison | Shares | Preferences,
    *,
    at_least: float | Mapping[str, float] | None = None,
    at_most: float | Mapping[str, float] | None = None,
    not_worse_than: Hashable | None = None,
    margin: float = 0.0,
    better_than: Hashable | None = None,
    candidate: Hashable | None = None,
    error: float = 0.05,
    budget: int | None = None,
    blind: bool = True,
    random_state: RandomState = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
) -> Decision:
    """Check items until a condition is sure to be met, or sure to be missed.

    ``ask`` names items, drawn with chances that serve this decision: where systems differ, where votes leave most open.
    ``tell`` takes their true classes. The verdict may be looked at after every answer: over all looks together it is
    false with a chance of at most `error`, whatever the votes are worth.

    Parameters
    ----------
    answer : Evaluation, Comparison, Shares or Preferences
        The plain answer of `evaluate`, `compare`, `share`, `mean_score` or `preferences`; its checked items count.
    at_least, at_most, not_worse_than, margin, better_than, candidate
        The conditions, as in `gate`. Metrics are means, or quotients of counts such as recall.
    error : float. The chance of a false verdict, over all looks.
    budget : int, optional. Answers that can be paid for.
    blind : bool. Whether experts answer without a prediction in sight.
    storage, name : optional. Where the answers are kept, as in `ActiveTest`, so that `trueup serve` can ask for them.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> decision = tu.decide(tu.evaluate(sim.predictions, sim.labels), at_least={"accuracy": 0.5})
    >>> while decision.verdict == "undecided":
    ...     decision.tell({item: int(sim.truth[item]) for item in decision.ask(5)})
    >>> decision.verdict
    'passed'
    """
    arguments = {name_: value for name_, value in locals().items() if name_ != "answer"}
    return Decision(answer, **arguments)
