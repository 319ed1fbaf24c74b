"""Which of several systems is preferred in truth? From judges of pairs who err, and may prefer a place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from trueup._base.types import Booleans, Codes, Floats, Target
from trueup._base.validation import RandomState, check_choice, did_you_mean, preview, refuse_options
from trueup._base.wording import interval, number, percent, signed, some
from trueup.answers.answer import frame_of
from trueup.answers.comparison import Comparison
from trueup.answers.evaluate import build_evaluation, build_named_evaluation, truth_model_of
from trueup.answers.prepare import Settings, of_other_systems, prepare
from trueup.answers.share import DerivedAnswer, mean_of
from trueup.core.prior import CrowdPrior
from trueup.data.frames import is_frame
from trueup.data.pairs import FIRST, ROLES, UNKNOWN, Pairs, read_pairs
from trueup.data.predictions import Predictions
from trueup.estimators.pairs import (
    MirroredConfusion,
    draw_biases,
    leverages_of,
    strengths_of,
    weights_of_repeats,
)
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import NoiseModel, identifiability_problem
from trueup.posteriors import DrawnEstimate, Estimate, PointEstimate

Ties = Literal["half", "class"]
_NAMED = MirroredConfusion.alias
_MEASURE = Metric("strength", np.sum, description="how strong a system is, in log-odds of a win over an average one")


@dataclass(frozen=True)
class Separation:
    """What would separate two systems whose order is open."""

    a: Hashable
    b: Hashable
    n_contests: int  # between the two
    n_checks: int | None  # of these, drawn at random, that are to be checked yet; None where all would be too few
    n_needed: int | None  # contests in all, all checked, where those that there are would not do

    def __str__(self) -> str:
        two, contests = f"{self.a!r} and {self.b!r}", some(self.n_contests, "contest")
        if self.n_checks is not None:
            return f"To separate {two}, check about {self.n_checks:,} of their {contests}, drawn at random."
        if self.n_needed is None:
            return f"No contest between {two} was decided; have judges compare them."
        needed = f"add contests: about {float(f'{self.n_needed:.2g}'):,.0f} checked ones would separate them"
        if self.n_needed > 10_000:  # more than anybody checks
            needed = "they win about equally often"
        return f"{two} cannot be separated by their {contests}, even if all were checked; {needed}."


@dataclass(frozen=True, eq=False)
class Preferences(DerivedAnswer):
    """Win rates, a ranking and the judges' position bias, all on the same draws of the true preferences.

    Attributes
    ----------
    evaluation : Evaluation. Of how often the first of two wins; what the numbers rest on.
    ties : {"half", "class"}. Whether a true tie is half a win for each of the two, or neither's.
    """

    _page: ClassVar[str] = "preferences"

    pairs: Pairs
    ties: Ties = "half"

    # ------------------------------------------------------------------ two systems

    def win_rate(self, a: Hashable, b: Hashable) -> Estimate:
        """How often a is truly preferred to b, in contests between the two."""
        return DrawnEstimate(self._rate(a, b), bounds=(0.0, 1.0), name=f"win rate of {a} over {b}")

    def tie_rate(self, a: Hashable, b: Hashable) -> Estimate:
        """How often neither of two is truly preferred."""
        won, lost = self._shares(a, b)
        return DrawnEstimate(np.maximum(1.0 - won - lost, 0.0), bounds=(0.0, 1.0), name=f"ties of {a} and {b}")

    def _rate(self, a: Hashable, b: Hashable) -> Floats:
        won, lost = self._shares(a, b)
        return won if self.ties == "class" else won + 0.5 * (1.0 - won - lost)

    def _shares(self, a: Hashable, b: Hashable) -> tuple[Floats, Floats]:
        """The shares of their contests that a and b win, in each draw."""
        at, other = self._at(a), self._at(b)
        wins, ties = self._tallies
        won, lost, tied = wins[:, at, other], wins[:, other, at], ties[:, at, other] + ties[:, other, at]
        if at == other or not (won + lost + tied).any():
            raise InvalidParameter(
                f"{a!r} and {b!r} never met, so they have no win rate; ask for two that did, or compare their strengths"
            )
        if self.evaluation.target == "population":
            # What was never seen in these contests may still happen in others.
            unseen = self._unseen(*sorted((at, other)))
            first, second = unseen[:2] if at < other else unseen[1::-1]
            won, lost, tied = won + first, lost + second, tied + unseen[2:].sum(axis=0)
        total = won + lost + tied
        return won / total, lost / total

    def _unseen(self, first: int, second: int, part: float = 1.0) -> Floats:
        """What contests of two systems that were not seen count for each outcome, or a part of it, in each draw."""
        rng = np.random.default_rng([self.evaluation.seed, 7, first, second])
        # Half a contest of each outcome is expected beforehand, as Jeffreys has it.
        return rng.standard_gamma(part * 0.5, (self.evaluation.labels.n_classes, len(self._truths)))

    # ------------------------------------------------------------------ all systems

    @property
    def groups(self) -> list[tuple[Any, ...]]:
        """Systems that cannot be distinguished; see `Comparison.groups`."""
        return self.comparison.groups

    def strength(self, system: Hashable) -> Estimate:
        """The strength of a system: its log-odds of a win over one of average strength."""
        return self.comparison[system]

    def wins(self, system: Hashable) -> Estimate:
        """The share of its contests that a system wins against an average opponent: its strength as a share."""
        compared = self.comparison
        shares = scipy.special.expit(compared.draws[:, self._at(system)])
        if compared.refused:
            return PointEstimate(float(shares.mean()), bounds=(0.0, 1.0), name=f"wins of {system}")
        return DrawnEstimate(shares, bounds=(0.0, 1.0), name=f"wins of {system}")

    def to_separate(self) -> list[Separation]:
        """What would separate neighbours in the ranking whose order is open, if their win rate stays what it is."""
        if self.evaluation.core is None or self.evaluation.refused:
            return []
        pairs = pairwise(self.ranking)
        return [self._separation(a, b) for a, b in pairs if not self.comparison.is_significant(a, b)]

    def _separation(self, a: Hashable, b: Hashable) -> Separation:
        members, core = self.contests_of(a, b), self.evaluation.core
        worth = np.array([1.0, 0.0, 0.5])[: self.evaluation.labels.n_classes]
        checks = self.evaluation.next_checks(members, worth) if members.any() else None
        if checks is None or core is None:
            return Separation(a, b, int(members.sum()), None, None)
        gap = 2 * abs(checks.mean - 0.5)
        n = checks.number_for(gap, self.level)
        if checks.width(n, self.level) <= gap:
            n_drawn = int((core.drawn[members] >= 0).sum())
            further = min(max(n - n_drawn, 10), int(members.sum()) - n_drawn)  # fewer move the answer as chance has it
            return Separation(a, b, int(members.sum()), further, None)
        reach = 2 * scipy.special.ndtri((1 + self.level) / 2) / max(gap, 1e-3)
        return Separation(a, b, int(members.sum()), None, int(np.ceil(checks.mean * (1 - checks.mean) * reach**2)))

    def next_steps(self) -> list[str]:
        """What would separate neighbours in the ranking whose order is open, in words."""
        return [str(pair) for pair in self.to_separate()[:3]]

    @cached_property
    def comparison(self) -> Comparison:
        """The strengths side by side, as `compare` has systems."""
        wins, ties = self._tallies
        if self.evaluation.target == "population":
            wins, ties = self._with_unseen(wins, ties)
        if self.ties == "half":
            wins = wins + 0.5 * (ties + ties.transpose(0, 2, 1))
        return replace(
            self.evaluation.compare_outputs(self._metric_name, self._sides_as_outputs),
            measure=_MEASURE,
            draws=strengths_of(wins),
        )

    def _with_unseen(self, wins: Floats, ties: Floats) -> tuple[Floats, Floats]:
        """Wins and ties with those that were not seen, so that strengths are no surer than their win rates."""
        wins, ties = wins.copy(), ties.copy()
        pair, times = np.unique(self.pairs.sides[self._contests], axis=0, return_counts=True)
        contests = np.zeros(wins.shape[1:])
        contests[tuple(pair.T)] = times
        parts = leverages_of(contests)
        for first, second in pair:
            unseen = self._unseen(first, second, parts[first, second])
            wins[:, first, second] += unseen[0]
            wins[:, second, first] += unseen[1]
            ties[:, first, second] += unseen[2:].sum(axis=0)
        return wins, ties

    # ------------------------------------------------------------------ judges

    @cached_property
    def position_bias(self) -> dict[Any, Estimate]:
        """How much more often than half each judge chooses what is shown first, where either side is as often right.

        Half the difference between the chances to say "first" and "second", the two truths averaged. Contests whose
        verdicts cancel each other out count as all others do, and what a judge says of one contest in one order counts
        once, however often it was asked. Judges without a known order are left out.
        """
        rng = np.random.default_rng([self.evaluation.seed, 5])
        truths = self._truths_of_all_contests(rng)
        n_classes = self.evaluation.labels.n_classes
        estimates: dict[Any, Estimate] = {}
        for j, name in enumerate(self.pairs.judges.tolist()):
            own = (self.pairs.judge == j) & (self.pairs.shown != UNKNOWN)
            if own.any():
                contest, verdict, shown = self.pairs.contest[own], self.pairs.verdict[own], self.pairs.shown[own]
                weights = weights_of_repeats(contest, shown)
                bias = draw_biases(truths[:, contest], verdict, shown, weights, n_classes=n_classes, rng=rng)
                estimates[name] = DrawnEstimate(bias, bounds=(-0.5, 0.5), name=f"position bias of {name}")
        return estimates

    def _truths_of_all_contests(self, rng: np.random.Generator) -> Codes:
        """Who wins each contest in some of the draws, also where the verdicts cancel each other out."""
        step = max(1, len(self._truths) // 500)  # 500 draws are enough for a bias
        drawn, (wins, _) = self._truths[::step], self._tallies
        truths = np.empty((len(drawn), self.pairs.n_contests), dtype=drawn.dtype)
        truths[:, self._contests] = drawn
        cancelled = np.setdiff1d(np.arange(self.pairs.n_contests), self._contests)
        pair, place = np.unique(self.pairs.sides[cancelled], axis=0, return_inverse=True)
        for k, (first, second) in enumerate(pair):
            members = cancelled[place.ravel() == k]
            unseen = self._unseen(first, second)
            won, lost = wins[:, first, second] + unseen[0], wins[:, second, first] + unseen[1]
            chance = (won / (won + lost))[::step, None]
            truths[:, members] = rng.random((len(drawn), len(members))) >= chance
        return truths

    @property
    def consistency(self) -> dict[Any, float]:
        """Of each judge who saw contests in both orders: how often the same system won in both."""
        return self.pairs.consistency()

    # ------------------------------------------------------------------ what it rests on

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences a user should read before trusting the numbers."""
        return (*self._notes(), *super().warnings)

    def _notes(self) -> list[str]:
        left_out = self.pairs.n_contests - len(self._contests)
        labels = self.evaluation.labels
        notes = []
        if identifiability_problem(labels) is not None:
            n_judged = int((labels.votes_per_item >= 3).sum())
            of_both = " (both orders shown to a judge count as one verdict)" if self.consistency else ""
            notes.append(
                f"{f'{n_judged:,}' if n_judged else 'None'} of {some(len(self._contests), 'contest')} "
                f"{'have' if n_judged > 1 else 'has'} verdicts of three judges or more{of_both}, so verdicts cannot "
                "tell how often judges err; check contests drawn at random (`pairs.with_gold`), or ask more judges."
            )
        if left_out:
            notes.append(
                f"The verdicts on {some(left_out, 'contest')} cancel each other out and do not tell who wins; "
                "they count for the position bias only."
            )
        wins, ties = self._tallies
        met = np.asarray(wins.any(axis=0) | ties.any(axis=0))
        n_parts, part = scipy.sparse.csgraph.connected_components(met, directed=False)
        if n_parts > 1:
            groups = "; ".join(preview(self.pairs.systems[part == k]) for k in range(min(n_parts, 3)))
            notes.append(
                f"The systems fall into {n_parts} parts that never met ({groups}), so their strengths cannot be "
                "compared across parts; add contests between them."
            )
        return notes

    # ------------------------------------------------------------------ draws

    @property
    def _metric_name(self) -> str:
        return self.evaluation.metrics[0]

    @cached_property
    def _contests(self) -> Codes:
        """The contests that the verdicts say something of, in the order of the draws."""
        return np.asarray(self.evaluation.labels.items.tolist(), dtype=np.int64)

    @cached_property
    def _truths(self) -> Codes:
        return self.evaluation.draws_for(self.evaluation.metric(self._metric_name)).truths

    @cached_property
    def _tallies(self) -> tuple[Floats, Floats]:
        """Wins (row over column) and ties (upper triangle) in each draw, what contests stand for counted."""
        truths, n = self._truths, len(self.pairs.systems)
        population = self.evaluation.task.population
        masses = None
        if population is not None and not population.is_of_items:
            masses = population.masses(truths.shape, np.random.default_rng([self.evaluation.seed, 3]))
        wins, ties = np.zeros((len(truths), n, n)), np.zeros((len(truths), n, n))
        sides = self.pairs.sides[self._contests]
        pair, place = np.unique(sides, axis=0, return_inverse=True)
        for k, (first, second) in enumerate(pair):
            members = np.flatnonzero(place.ravel() == k)
            winner = truths[:, members]
            mass = 1.0 if masses is None else masses[:, members]
            wins[:, first, second] = (mass * (winner == 0)).sum(axis=1)
            wins[:, second, first] = (mass * (winner == 1)).sum(axis=1)
            ties[:, first, second] = (mass * (winner == 2)).sum(axis=1)
        return wins, ties

    @cached_property
    def _sides_as_outputs(self) -> Any:
        """Each system as one that says of its contests that it wins them."""
        codes = _sides(self.pairs, self._contests)
        return of_other_systems(self.evaluation.task.outputs, self.pairs.systems, codes=codes)

    def _at(self, system: Hashable) -> int:
        names = self.pairs.systems.tolist()
        if system not in names:
            raise InvalidParameter(
                f"there is no system {system!r}, got {preview(names, most=10)}{did_you_mean(system, names)}"
            )
        return int(names.index(system))

    # ------------------------------------------------------------------ out

    def win_rates(self, *, backend: str | None = None) -> Any:
        """One row for each two systems that met, the stronger first: a, b, n_contests, mean, low, high."""
        rows = []
        for a, b, n_contests in self.met():
            rate = self.win_rate(a, b)
            rows.append((a, b, n_contests, rate.mean, *rate.interval(self.level)))
        return frame_of(("a", "b", "n_contests", "mean", "low", "high"), rows, backend)

    def contests_of(self, a: Hashable, b: Hashable) -> Booleans:
        """Which items of the labels are contests between two systems."""
        two = sorted((self._at(a), self._at(b)))
        return np.asarray((np.sort(self.pairs.sides[self._contests], axis=1) == two).all(axis=1))

    def met(self) -> list[tuple[Any, Any, int]]:
        """The systems that met and how often, the stronger of two first, in the order of the ranking."""
        place = {name: k for k, name in enumerate(self.ranking)}
        names = self.pairs.systems
        pair, times = np.unique(self.pairs.sides[self._contests], axis=0, return_counts=True)
        rows = []
        for two, n_contests in zip(pair, times.tolist(), strict=True):
            stronger, weaker = sorted(names[two].tolist(), key=place.__getitem__)
            rows.append((stronger, weaker, n_contests))
        return sorted(rows, key=lambda row: (place[row[0]], place[row[1]]))

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "n_contests": self.pairs.n_contests,
            "n_verdicts": self.pairs.n_verdicts,
            "ties": self.ties,
            "target": self.evaluation.target,
            "basis": self.basis,
            "level": self.level,
            "systems": [
                {
                    "system": str(name),
                    **self.strength(name).to_dict(self.level),
                    "wins": self.wins(name).to_dict(self.level),
                    "prob_best": self.prob_best[name],
                }
                for name in self.ranking
            ],
            "groups": [[str(name) for name in group] for group in self.groups],
            "win_rates": [
                {"a": str(a), "b": str(b), "n_contests": n, **self.win_rate(a, b).to_dict(self.level)}
                for a, b, n in self.met()
            ],
            "position_bias": {str(name): bias.to_dict(self.level) for name, bias in self.position_bias.items()},
            "consistency": {str(name): share for name, share in self.consistency.items()},
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        lines, width = [], max(len(str(name)) for name in self.ranking)
        for name in self.ranking:
            wins, strength = self.wins(name), self.strength(name)
            lines.append(
                f"  {name!s:<{width}}  wins {number(wins.mean)}, {self.level:.0%} interval "
                f"{interval(*wins.interval(self.level))} against an average opponent; log-odds "
                f"{signed(strength.mean)}; best with probability {percent(self.prob_best[name])}"
            )
        return self._text(lines)

    def _title(self) -> str:
        return f"Preferences among {len(self.ranking)} systems ({self.evaluation.answer_in_words()})"

    def _repr_html_(self) -> str:
        """A small table with bars, for notebooks."""
        title = f"Wins against an average opponent ({self.evaluation.answer_in_words()})"
        return self._html(title, [(name, self.wins(name)) for name in self.ranking], (0.0, 1.0))


def preferences(
    pairs: Pairs | Any,
    *,
    ties: Ties = "half",
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    target: Target = "population",
    level: float = 0.95,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> Preferences:
    """Which system is preferred in truth: win rates, a ranking, and the position bias of each judge.

    Each contest, an item with two systems, has a true preference. Judges see it in some order and err, each with a
    matrix of their own in which a preference for a place shows; a judge who saw both orders is one witness. All answers
    are functions of the drawn true preferences, so the judges' errors are in the intervals: how often each system wins
    may be as far from what verdicts say as on real sets. Checked contests that were drawn at random
    (``pairs.with_gold(…, drawn="random")``) correct it.

    Parameters
    ----------
    pairs : Pairs, frame or dict of columns
        From `read_pairs` or `Pairs.from_frame`, or the frame with a row a verdict that these take.
    ties : {"half", "class"}
        A true tie is half a win for each of the two; or it is neither's, and strengths come from the other contests.
    noise : str or NoiseModel, optional
        A model that the verdicts are read by alone; "mirrored" is that of judges with a position bias. By default none,
        as in `evaluate`, and verdicts are read by that model where it predicts them better than one without.
    prior, level, check_dependence, random_state, progress
        As in `evaluate`.
    target : {"population", "sample"}
        Items like these, of which these are a sample: the default, since a ranking is about more than these contests.
        Outcomes that were never seen may then still happen, so a system that won its only contest may be the weaker
        one. Or exactly these contests: win rates, strengths and P(best) are then about who won these.
    **options
        n_draws; with a named noise model n_chains and n_warmup too. Of a frame the names of its columns, as in
        `Pairs.from_frame`: item, judge, first, second, winner.

    Examples
    --------
    >>> import trueup as tu
    >>> pairs = tu.simulate.pairs(n_contests=150, n_systems=3, random_state=0).pairs
    >>> answer = tu.preferences(pairs, n_draws=1024)
    >>> len(answer.ranking), sorted(answer.position_bias) == pairs.judges.tolist()
    (3, True)
    """
    settings = Settings.of_call(preferences, locals())
    if isinstance(pairs, Mapping) or is_frame(pairs):
        pairs = read_pairs(pairs, **{role: options.pop(role, role) for role in ROLES})
    if not isinstance(pairs, Pairs):
        raise InvalidParameter(
            f"`pairs` must be Pairs or a frame, got {type(pairs).__name__}; read a file with read_pairs",
        )
    check_choice(ties, ("half", "class"), name="ties")
    refuse_options(options, ("n_draws",) if noise is None else ("n_chains", "n_warmup", "n_draws"))
    labels = pairs.labels
    contests = labels.items.tolist()
    mirrors = MirroredConfusion(*pairs.presentation)
    model = mirrors if noise == _NAMED else noise
    shares = np.eye(labels.n_classes)[0]
    metric = mean_of("wins of the first", shares, "how many contests the first of two wins in truth")
    task = prepare(
        Predictions.from_classes([FIRST] * len(contests), items=contests, system=FIRST),
        labels,
        settings=settings,
        metrics={metric.name: metric},
        noise=model,
        target=target,
        # Contests on one item came together.
        cluster={contest: pairs.items[contest] for contest in contests} if target == "population" else None,
    )
    if noise is not None:
        _, pair = np.unique(pairs.sides[contests], axis=0, return_inverse=True)
        how = {"check_dependence": check_dependence, "progress": progress, **options}
        named = build_named_evaluation(task, groups=pair.ravel(), **how)
        return Preferences(pairs, ties, evaluation=named)
    sides = _sides(pairs, np.asarray(contests, dtype=np.int64))
    core = truth_model_of(task, prior, candidates=(mirrors,), outputs=sides, may_sample=False, **options)
    evaluation = build_evaluation(task, check_dependence=check_dependence, core=core, progress=progress)
    return Preferences(pairs, ties, evaluation=evaluation)


def _sides(pairs: Pairs, contests: Codes) -> Codes:
    """Of each system the side it has in each contest, -1 where it is not in it; shape (n_systems, n_contests)."""
    sides = pairs.sides[contests]
    codes = np.full((len(pairs.systems), len(sides)), -1, dtype=np.int32)
    for side in (0, 1):
        codes[sides[:, side], np.arange(len(sides))] = side
    return codes
