"""The answer of `compare`: several systems judged on the same draws of the truth."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.html import html_table
from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_level, check_number, did_you_mean, kind_hint, preview
from trueup.answers.answer import Answer, BySlice, frame_of, lines_of
from trueup.answers.prepare import Task, values_given, values_on
from trueup.core.truth import TruthModel
from trueup.data.encoding import Vocabulary
from trueup.estimators.truth import TruthDraws
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import Metric
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate, PointEstimate
from trueup.posteriors.estimate import new_axes

_ROUNDING = 1e-12
_ADVISED = 20  # checks
_MOST_SHOWN = 10  # systems


@dataclass(frozen=True)
class Disagreement:
    """Where two systems differ, as McNemar's test looks at it."""

    a: Hashable
    b: Hashable
    n_items: int  # items with both predictions
    n_different: int  # those where these differ; the others do not distinguish the two
    a_right: Estimate  # of the items where they differ: how many only a has right
    b_right: Estimate  # how many only b has right
    both_wrong: Estimate  # and how many neither
    prob_a_better: float  # P(a has more of them right than b), ties counted half

    def __repr__(self) -> str:
        return (
            f"{self.a!r} and {self.b!r} differ on {self.n_different:,} of {self.n_items:,} items; of these {self.a!r} "
            f"has {self.a_right.mean:.1f} right, {self.b!r} {self.b_right.mean:.1f}, neither {self.both_wrong.mean:.1f}"
        )


@dataclass(frozen=True)
class SignificantPair:
    """Two systems that differ: the metric of the better one minus that of the worse, with a simultaneous interval."""

    better: Any
    worse: Any
    difference: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Answer, Mapping[Any, Estimate]):
    """The metric of every system on the same draws of the truth.

    ``cmp["a"]`` is the `Estimate` of a system's metric; iteration is from the best system to the worst.

    Attributes
    ----------
    task : Task. What was asked: labels, outputs, metric, positive class, target, level, seed.
    model : NoiseModel or None. The noise model that was named.
    draws : array of shape (n_draws, n_systems). The metric of each system; a row is of one truth.
    warnings : tuple of str. Sentences a user should read before trusting the numbers.
    core : TruthModel or None. Behind the plain answer, for which no noise model was named.
    refused : bool. Whether checked items contradict the votes, so that there is no interval.
    """

    task: Task = field(repr=False)
    model: NoiseModel | None = field(repr=False)
    measure: Metric
    draws: Floats = field(repr=False)
    truth: TruthDraws = field(repr=False)
    warnings: tuple[str, ...]
    core: TruthModel | None = field(default=None, repr=False)
    refused: bool = False

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """How the draws of the truth went."""
        return self.truth.diagnostics

    @property
    def gold_alone(self) -> dict[Any, Estimate]:
        """What checked items that were drawn at random say of each system by themselves, without any vote."""
        if self.core is None or not self.n_drawn:
            return {}
        core = self.core.checks_alone()
        alone = replace(self, draws=values_given(core, self.task, self.measure), core=core, refused=False)
        return {name: alone[name] for name in self.ranking}

    @cached_property
    def by(self) -> BySlice[Comparison]:
        """The same for each slice of the items; see ``by`` of `trueup.compare`."""
        if self.task.slices is None:
            raise InvalidParameter("there are no slices here, got a call without `by`; name a column of the items")
        return BySlice(self.task.slices, self.on_items)

    def on_items(self, members: Booleans) -> Comparison:
        """The comparison on some of the items, on the same draws of the truth."""
        task = replace(self.task, outputs=self.task.outputs.on_items(members), slices=None)
        if self.core is None:
            values = values_on(self.truth, task, self.measure, np.random.default_rng(self.seed))
        else:
            values = values_given(self.core, task, self.measure)
        return replace(self, task=task, draws=values)

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

    def numbers_apart(self, a: Any, b: Any) -> tuple[int, int]:
        """The number of items that two systems both class, and of those that they class differently."""
        both, different = self._where_apart(a, b)
        return int(both.sum()), int(different.sum())

    def _where_apart(self, a: Any, b: Any) -> tuple[Booleans, Booleans]:
        if self.codes is None:
            raise InvalidParameter(
                "a disagreement needs classes, got scores only; name a `threshold`, or predict classes"
            )
        mine, other = self.codes[self._at(a)], self.codes[self._at(b)]
        both = (mine >= 0) & (other >= 0)
        return both, both & (mine != other)

    def disagreement(self, a: Any, b: Any) -> Disagreement:
        """Where two systems predict different classes, and which one is right there."""
        both, different = self._where_apart(a, b)
        assert self.codes is not None
        pair = [self._at(a), self._at(b)]
        is_divided = self.core is not None and self.core.is_divided
        truth = self.core.of_systems(pair).truth if self.core is not None and is_divided else self.truth
        at = np.flatnonzero(truth.at_drawn(different))
        times = np.ones(len(at)) if truth.times is None else truth.times[at]
        named = truth.at_drawn(self.codes[pair])[:, at]
        first, second = ((truth.truths[:, at] == row) @ times for row in named)
        n_different = int(different.sum())
        right, bounds = (first, second, n_different - first - second), (0.0, float(max(n_different, 1)))
        a_right, b_right, neither = (DrawnEstimate(numbers, bounds=bounds, name="items") for numbers in right)
        chance = float(_share_above(first, second))
        return Disagreement(a, b, int(both.sum()), n_different, a_right, b_right, neither, chance)

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.measure.name

    @property
    def higher_is_better(self) -> bool:
        """Whether more of the metric is better."""
        return self.measure.higher_is_better is not False

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the metric."""
        return self.measure.bounds

    def __getitem__(self, system: Any) -> Estimate:
        return self._estimate(self.draws[:, self._at(system)], bounds=self.bounds, name=str(system))

    def _estimate(self, values: Floats, *, bounds: tuple[float, float], name: str) -> Estimate:
        """The values as an estimate; without an interval where checked items contradict the votes."""
        if self.refused:
            return PointEstimate(float(np.nanmean(values)), bounds=bounds, name=name)
        return DrawnEstimate(values, bounds=bounds, name=name)

    def __contains__(self, system: object) -> bool:
        return system in self._places

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ranking)

    def __len__(self) -> int:
        return len(self.systems)

    def _at(self, system: Any) -> int:
        if system not in self._places:
            hint = kind_hint(system, self.systems, what="systems")
            hint = hint or did_you_mean(system, self.systems[:1000].tolist())
            raise InvalidParameter(f"there is no system {system!r}, got {preview(self.systems, most=10)}{hint}")
        return self._places[system]

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: k for k, name in enumerate(self.systems.tolist())}

    # ------------------------------------------------------------------ all systems

    @cached_property
    def means(self) -> Floats:
        """The posterior mean of each system, shape (n_systems,); NaN where the metric is never defined."""
        defined = ~np.isnan(self.draws)
        total = np.where(defined, self.draws, 0.0).sum(axis=0)
        n = defined.sum(axis=0)
        return np.asarray(np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0))

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        """Positions from the best system to the worst; never defined ones last, equals in the order given."""
        sign = -1.0 if self.higher_is_better else 1.0
        return np.argsort(np.where(np.isnan(self.means), np.inf, sign * self.means), kind="stable")

    @cached_property
    def _gains(self) -> Floats:
        """The values with more always better, the undefined worst of all."""
        gains = self.draws if self.higher_is_better else -self.draws
        return np.where(np.isnan(gains), -np.inf, gains)

    @property
    def ranking(self) -> list[Any]:
        """The systems from the best to the worst, by posterior mean."""
        names = self.systems.tolist()
        return [names[k] for k in self._order]

    @property
    def best(self) -> Any:
        """The first of the ranking."""
        return self.ranking[0]

    @cached_property
    def prob_best(self) -> dict[Any, float]:
        """P(system is the best), shared out among equals; in the order of the ranking."""
        top = self._gains == self._top[:, None]
        share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
        return {name: float(share[k]) for name, k in zip(self.ranking, self._order, strict=True)}

    @cached_property
    def rank_probabilities(self) -> Floats:
        """P(system has rank r), shape (n_systems, n_systems); rows in the order of `systems`, rank 0 the best."""
        n_draws, n = self.draws.shape
        # Ties are broken by chance: a little noise far below any difference does it, the same each time.
        jitter = np.random.default_rng(0).random(self.draws.shape)
        order = np.lexsort((jitter, -self._gains), axis=1)
        ranks = np.argsort(order, axis=1, kind="stable")
        return np.array([np.bincount(of_system, minlength=n) / n_draws for of_system in ranks.T])

    @cached_property
    def pairwise(self) -> Floats:
        """P(row system is better than column system), ties counted half; in the order of `systems`."""
        return np.array([_share_above(mine[:, None], self._gains) for mine in self._gains.T])

    def prob_better(self, a: Any, b: Any) -> float:
        """P(a is better than b), ties counted half."""
        return float(_share_above(self._gains[:, self._at(a)], self._gains[:, self._at(b)]))

    def difference(self, a: Any, b: Any) -> Estimate:
        """The metric of a minus that of b, paired: both on the same draws of the truth."""
        low, high = self.bounds
        return self._estimate(
            self.draws[:, self._at(a)] - self.draws[:, self._at(b)],
            bounds=(low - high, high - low),
            name=f"{self.metric} of {a} minus {b}",
        )

    def told_apart(self, a: Any, b: Any, level: float | None = None) -> bool:
        """The same as `is_significant`, its name before version 0.3."""
        return self.is_significant(a, b, level)

    def is_significant(self, a: Any, b: Any, level: float | None = None) -> bool:
        """Whether the difference is surely on one side of zero: at 95%, at most 2.5% of its draws reach the other.

        The shortest interval may leave out zero sooner, since it may have all of its 5% on one side.
        """
        wanted = self.level if level is None else check_level(level)
        apart = self.draws[:, self._at(a)] - self.draws[:, self._at(b)]
        # An interval on one side of zero holds that share of the draws. Most pairs fail that, and counting is quick.
        if not np.isnan(apart).any() and max((apart > 0).mean(), (apart < 0).mean()) < wanted:
            return False
        low, high = self.difference(a, b).interval(wanted, "equal")
        return bool(low > 0 or high < 0)

    def significant_pairs(self, error: float = 0.05) -> list[SignificantPair]:
        """The pairs of systems that differ, with a chance of at most `error` that any pair is named in error.

        The largest of all standardised differences is compared with its own draws; pairs that pass are taken out, and
        the others are compared with the largest of those that are left, until none passes (step-down maximum).

        Parameters
        ----------
        error : float. The chance that is allowed of any wrong pair.

        Returns
        -------
        list of SignificantPair
            Those that differ most surely first; intervals hold for all pairs at once.

        Examples
        --------
        >>> import trueup as tu
        >>> sim = tu.simulate.dawid_skene(n_items=300, n_labelers=5, random_state=0)
        >>> labels = sim.labels.with_gold({item: int(sim.truth[item]) for item in range(100)}, drawn="random")
        >>> cmp = tu.compare({"a": sim.predictions, "b": 1 - sim.predictions}, labels)
        >>> [(pair.better, pair.worse) for pair in cmp.significant_pairs()]
        [('a', 'b')]
        """
        check_number(error, low=0, high=1, strict=True, name="error")
        if self.refused or len(self) < 2:
            return []
        first, second = np.triu_indices(len(self), k=1)
        mean, half, certainty = separated(self.draws[:, first] - self.draws[:, second], error)
        names, sign = self.systems.tolist(), 1.0 if self.higher_is_better else -1.0
        found = []
        for k in np.argsort(-certainty, kind="stable")[: int((certainty > 0).sum())].tolist():
            is_first = sign * mean[k] > 0
            a, b = (first[k], second[k]) if is_first else (second[k], first[k])
            middle = float(mean[k] if is_first else -mean[k])
            found.append(SignificantPair(names[a], names[b], middle, middle - float(half[k]), middle + float(half[k])))
        return found

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """Systems that do not differ significantly: longest runs of the ranking, which may overlap.

        A run goes on as long as its first and its next system do not differ at `level`, as `is_significant` has it.
        """
        ranking = self.ranking
        groups: list[tuple[Any, ...]] = []
        reach = 0
        for first in range(len(ranking)):
            last = first + 1
            if reach == len(ranking):
                break
            if last <= reach and self.is_significant(ranking[first], ranking[reach]):
                continue  # it cannot reach further than the run before it: no need to look at each
            while last < len(ranking) and not self.is_significant(ranking[first], ranking[last]):
                last += 1
            if last > reach:  # a run within the run before it says nothing new
                groups.append(tuple(ranking[first:last]))
                reach = last
        return groups

    @property
    def expected_regret(self) -> float:
        """How much worse the first of the ranking is than the truly best one, on average over the draws."""
        return self.regret_of(self.best)

    def regret_of(self, system: Any) -> float:
        """How much of the metric is lost, on average, by picking this system instead of the truly best one."""
        gains = self._gains[:, self._at(system)]
        defined = np.isfinite(gains)
        return float((self._top[defined] - gains[defined]).mean()) if defined.any() else float("nan")

    @cached_property
    def _top(self) -> Floats:
        """The gain of the best system on each draw."""
        return np.asarray(self._gains.max(axis=1))

    def with_advice(self) -> Comparison:
        """With what some checks would settle, where votes alone call a system the best."""
        if self.core is None or self.n_checked or len(self) < 2:
            return self
        first, second = self.ranking[:2]
        if self.prob_best[first] <= 0.9:  # which nobody takes for sure
            return self
        advice = f"That {first!r} is best rests on votes alone. {self._settled_by_checks(first, second)}"
        return replace(self, warnings=(*self.warnings, advice))

    def _settled_by_checks(self, first: Any, second: Any) -> str:
        """What some checked items would say of the difference of two systems."""
        if self.measure.looks_at != "classes":
            return f"Have {_ADVISED} items or more checked that are drawn at random."
        n_both, n_different = self.numbers_apart(first, second)
        half = 1.96 * n_different / max(n_both, 1) / np.sqrt(_ADVISED)
        low, high = self.difference(first, second).interval(self.level)
        words = (
            f"{_ADVISED} checked items among the {n_different:,} where it differs from {second!r} "
            f'(`trueup.ActiveTest` with strategy "separate") would give the difference to about ±{half:.3f}'
        )
        return f"{words}." if half < (high - low) / 2 else f"{words}, which is no narrower: have more checked."

    def __repr__(self) -> str:
        some = self.ranking[:_MOST_SHOWN]
        best = {name: "" if self.refused else f"best with probability {self.prob_best[name]:.2f}" for name in some}
        about = f"by {self.metric} on {self.n_items:,} items ({self.answer_in_words()}, target {self.target})"
        lines = lines_of([(name, self[name], best[name]) for name in some], self.level)
        more = [f"  … and {len(self) - len(some)} more"][: len(self) > len(some)]
        notes = [f"  ! {sentence}" for sentence in self.warnings]
        return "\n".join([f"Comparison of {len(self)} systems {about}", *lines, *more, *notes])

    def _repr_html_(self) -> str:
        """A small table with bars, for notebooks."""
        rows = [(name, self[name].mean, *self[name].interval(self.level)) for name in self.ranking[:_MOST_SHOWN]]
        more = [f"… and {len(self) - len(rows)} more"] if len(self) > len(rows) else []
        title = f"{self.metric} of {len(self)} systems ({self.answer_in_words()})"
        return html_table(title, rows, bounds=self.bounds, notes=(*more, *self.warnings))

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a system, the best first: system, rank, mean, std, low, high, prob_best, regret, undefined."""
        rows = []
        for rank, system in enumerate(self.ranking):
            estimate = self[system]
            numbers = (estimate.mean, estimate.std, *estimate.interval(self.level), self.prob_best[system])
            rows.append((system, rank + 1, *numbers, self.regret_of(system), estimate.undefined))
        columns = ("system", "rank", "mean", "std", "low", "high", "prob_best", "regret", "undefined")
        return frame_of(columns, rows, backend)

    def plot(self, ax: Any = None, *, most: int = 30) -> Any:
        """Mean and interval of each system, the best on top, with its probability to be the best; returns the Axes."""
        rows = [(str(name), self[name], f"{self.prob_best[name]:.0%} best") for name in self.ranking[:most]]
        return plot_intervals(rows, self.level, ax, purpose="Comparison.plot()", what=f"{self.metric}, ")

    def to_dict(self) -> dict[str, Any]:
        """Everything a report needs, JSON-able."""
        return {
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            **self._about(),
            "systems": [
                {"system": str(s), **self[s].to_dict(self.level), "prob_best": self.prob_best[s]} for s in self.ranking
            ],
            "groups": [[str(s) for s in group] for group in self.groups],
            "expected_regret": self.expected_regret,
            "warnings": list(self.warnings),
            "diagnostics": dict(self.diagnostics),
        }

    def save_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report on this comparison as one HTML file; .md and .json work too.

        See `trueup.report.build_report` for reports that evaluate each system as well.
        """
        from trueup.report import build_report, save_report

        return save_report(build_report({}, comparison=self, title=title), path)


def _share_above(values: Floats, others: Floats) -> Floats:
    """How often, over draws in rows, a value is the larger of two; ties counted half."""
    return np.asarray((values > others).mean(axis=0) + 0.5 * (values == others).mean(axis=0))


def plot_intervals(
    rows: Sequence[tuple[str, Estimate, str]], level: float, ax: Any, *, purpose: str, what: str = ""
) -> Any:
    """Mean and interval of each row, the first on top, with words on its right; returns the Axes."""
    ax = new_axes(ax, purpose=purpose, figsize=(6.5, 0.4 * len(rows) + 1))
    style = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": "small"}
    for y, (_, estimate, words) in enumerate(reversed(rows)):
        ax.plot(estimate.interval(level), [y, y], color="tab:blue", linewidth=3, alpha=0.5, solid_capstyle="butt")
        ax.plot(estimate.mean, y, "o", color="tab:blue")
        if words:
            ax.annotate(words, (1.01, y), **style)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)])
    ax.set_xlabel(f"{what}mean and {100 * level:.12g}% interval")
    ax.grid(axis="x", alpha=0.3)
    return ax


def undefined_notes(values: Floats, names: list[Any], metric: Metric) -> list[str]:
    """What to say of draws on which the metric has no value; an error where it never has one."""
    shares = np.isnan(values).mean(axis=0)
    never = np.flatnonzero(shares == 1)
    why = "only one class occurs in the truth or in its predictions"
    if len(never) == len(names):
        raise InvalidPredictions(
            f"{metric.name} is undefined for system {names[0]!r} on every drawn truth, and so for all; most likely "
            f"{why}: add items or votes of another class"
        )
    findings = []
    if len(never):
        some = f"system {names[never[0]]!r}" + (f" and {len(never) - 1:,} more" if len(never) > 1 else "")
        findings.append(
            f"{metric.name} is undefined for {some} on all drawn truths and ranked last; most likely {why}."
        )
    most = int(np.where(shares < 1, shares, -1).argmax())
    if 0 < shares[most] < 1:
        findings.append(
            f"{metric.name} is undefined for system {names[most]!r} on {shares[most]:.1%} of the drawn truths (one "
            "class only); mean and interval are of the others, and in probabilities these count as its worst."
        )
    return findings


def separated(differences: Floats, error: float) -> tuple[Floats, Floats, Floats]:
    """Mean, half-width and size in deviations of differences that are not 0, `error` the chance of any in vain."""
    defined = ~np.isnan(differences)
    n = np.maximum(defined.sum(axis=0), 1)
    mean = np.where(defined, differences, 0.0).sum(axis=0) / n
    away = np.where(defined, np.abs(differences - mean), 0.0)
    scale = np.sqrt((away**2).sum(axis=0) / n)
    is_open = scale > _ROUNDING
    away /= np.where(is_open, scale, 1.0)
    size = np.where(
        is_open, np.abs(mean) / np.where(is_open, scale, 1.0), np.where(np.abs(mean) > _ROUNDING, np.inf, 0.0)
    )
    differs, widest = ~is_open & (size > 0), 0.0
    while (left := np.flatnonzero(is_open & ~differs)).size:
        limit = float(np.quantile(away[:, left].max(axis=1), 1 - error))
        widest = max(widest, limit)
        new = left[size[left] > limit]
        if not new.size:
            break
        differs[new] = True
    return mean, widest * np.where(is_open, scale, 0.0), np.where(differs, size, 0.0)
