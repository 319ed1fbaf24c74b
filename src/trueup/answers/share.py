"""How often is the truth of some class, or how high is its score? Rates of groups, without predictions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from trueup._base.html import html_table
from trueup._base.types import Booleans, Floats, Target
from trueup._base.validation import RandomState, check_choice, check_number, numbers_of, preview, refuse_options
from trueup._base.wording import listed, number, some
from trueup.answers.answer import lines_of
from trueup.answers.comparison import Comparison
from trueup.answers.evaluate import build_evaluation, build_named_evaluation
from trueup.answers.evaluation import Evaluation, Slices
from trueup.answers.next_checks import ASKED, Goal, on_which
from trueup.answers.prepare import Settings, prepare, settle_target
from trueup.core.prior import CrowdPrior
from trueup.core.truth import drawn_gold
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions
from trueup.data.slices import Slicing
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.metrics.registry import order_of
from trueup.metrics.score_groups import ratio
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate

_ALL = "all"
_MOST_NAMED = 6  # groups that advice names


RankCorrelation = Literal["kendall", "spearman"]


def rank_correlations(a: Floats, b: Floats, kind: RankCorrelation) -> Floats:
    """Kendall's τ-b or Spearman's ρ of each row of a with that of b; nan where all of a row are equal."""
    if kind == "kendall":  # the signs of the differences of all pairs
        first, second = np.triu_indices(a.shape[1], k=1)
        x, y = (np.sign(values[:, first] - values[:, second]) for values in (a, b))
    else:
        ranks = (scipy.stats.rankdata(values, axis=1) for values in (a, b))
        x, y = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    return ratio((x * y).sum(axis=1), np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1)))


@dataclass(frozen=True, eq=False, kw_only=True)
class DerivedAnswer:
    """An answer that is read off an evaluation: it rests on what the evaluation rests on."""

    _page: ClassVar[str]  # of the report

    evaluation: Evaluation = field(repr=False)

    @property
    def comparison(self) -> Comparison:
        """The systems or groups side by side, as `compare` has systems."""
        raise NotImplementedError

    @property
    def ranking(self) -> list[Any]:
        """The systems or groups from the highest number to the lowest."""
        return self.comparison.ranking

    @property
    def prob_best(self) -> dict[Any, float]:
        """P(it has the highest number), of each."""
        return self.comparison.prob_best

    def difference(self, a: Any, b: Any) -> Estimate:
        """The number of a minus that of b, on the same draws of the truth."""
        return self.comparison.difference(a, b)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row each, the highest first; see `Comparison.to_frame`."""
        return self.comparison.to_frame(backend=backend)

    def plot(self, ax: Any = None, *, most: int = 30) -> Any:
        """Mean and interval of each; see `Comparison.plot`."""
        return self.comparison.plot(ax, most=most)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        raise NotImplementedError

    def next_steps(self) -> list[str]:
        """What to check next, and what that brings, in words."""
        raise NotImplementedError

    def report(self, *, title: str | None = None, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All that the page of `save_html` says, for `trueup.report.save_report`; `settings` are shown as given."""
        from trueup.report.saving import answer_report

        return answer_report(self, self._page, title=title, settings=settings)

    def save_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write a report as one HTML file; .md and .json work too."""
        from trueup.report import save_report

        return save_report(self.report(title=title), path)

    def _title(self) -> str:
        raise NotImplementedError

    def _text(self, lines: Sequence[str]) -> str:
        notes = [*self.next_steps(), *(f"! {sentence}" for sentence in self.warnings)]
        return "\n".join([self._title(), *lines, *(f"  {sentence}" for sentence in notes)])

    def _html(self, title: str, rows: Iterable[tuple[Any, Estimate]], bounds: tuple[float, float]) -> str:
        numbers = [(name, estimate.mean, *estimate.interval(self.level)) for name, estimate in rows]
        return html_table(title, numbers, bounds=bounds, notes=(*self.next_steps(), *self.warnings))

    @property
    def basis(self) -> str:
        """What it rests on: "votes alone", "votes and 7 checked items" or "all items checked"."""
        return self.evaluation.basis

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences a user should read before trusting the numbers."""
        return self.evaluation.warnings

    @property
    def level(self) -> float:
        """Of the intervals that are shown."""
        return self.evaluation.level


@dataclass(frozen=True, eq=False)
class Shares(DerivedAnswer, Mapping[Any, Estimate]):
    """A rate of each group of items, highest first; ``shares["alpha"]`` is an `Estimate`."""

    _page: ClassVar[str] = "rates"

    slicing: Slicing  # the groups

    @property
    def name(self) -> str:
        """What is measured, e.g. "share of 'pass'"."""
        return self.evaluation.metrics[0]

    def _title(self) -> str:
        return f"{self.name} ({self.evaluation.answer_in_words()})"

    @cached_property
    def _groups(self) -> Slices[Evaluation]:
        return self.evaluation.sliced_by(self.slicing)

    @property
    def comparison(self) -> Comparison:
        """The groups side by side, as `compare` has systems."""
        return self._groups.compared()

    # ------------------------------------------------------------------ the answers

    def __getitem__(self, group: Any) -> Estimate:
        return self.comparison[group]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.comparison.ranking)

    def __len__(self) -> int:
        return self.slicing.n_slices

    @property
    def overall(self) -> Estimate:
        """The rate of all items."""
        return self.evaluation[self.name]

    def rank_correlation(
        self, other: Mapping[Any, float] | Shares | None = None, *, kind: RankCorrelation = "kendall"
    ) -> Estimate:
        """How far another ranking of the groups agrees with that of their true rates."""
        check_choice(kind, ("kendall", "spearman"), name="kind")
        names = self.slicing.names.tolist()
        if len(names) < 3:
            raise InvalidParameter(f"a rank correlation needs three groups, got {len(names)}; name them by `by`")
        scores = self.counted if other is None else other
        lacking = [name for name in names if name not in scores]
        if lacking:
            raise InvalidParameter(
                f"`other` must have a number for each group, got none for {preview(lacking)}; give each one",
            )
        mine = self._draws_of(names)
        if isinstance(scores, Shares):
            theirs = scores._draws_of(names)
            mine, theirs = mine[: len(theirs)], theirs[: len(mine)]
        else:
            theirs = np.broadcast_to([float(scores[name]) for name in names], mine.shape)
        return DrawnEstimate(rank_correlations(mine, theirs, kind), bounds=(-1.0, 1.0), name=f"{kind} correlation")

    def _draws_of(self, names: list[Any]) -> Floats:
        """The rate of each group in each draw, shape (n_draws, n_groups)."""
        compared = self.comparison
        return np.asarray(compared.draws[:, [compared.systems.tolist().index(name) for name in names]])

    @property
    def _scores(self) -> Floats:
        """What an item counts whose truth is a class, shape (n_classes,)."""
        one = np.eye(self.evaluation.labels.n_classes)
        return np.asarray(self.evaluation.metric(self.name)(one[:, :, None] * one[:, None, :]))

    @cached_property
    def counted(self) -> dict[Any, float]:
        """What counting gives: the mean of the votes on the items of each group that has some."""
        found = ((name, self._count(self.slicing.members(name))) for name in self.slicing.names.tolist())
        return {name: mean for name, mean in found if mean is not None}

    def _count(self, members: Booleans) -> float | None:
        labels = self.evaluation.labels
        votes = labels.answer_counts[members, : labels.n_classes].sum(axis=0)
        return float(votes @ self._scores / votes.sum()) if votes.any() else None

    def lower(self, *, false_discoveries: float = 0.05) -> list[Any]:
        """The groups that are lower than the rest; see `Slices.worse`."""
        return self._groups.worse(false_discoveries=false_discoveries)

    # ------------------------------------------------------------------ what it rests on

    @property
    def vettings(self) -> dict[Any, int]:
        """About how many items of each group must be checked in all for an interval `vetting_width` wide.

        Of items drawn at random. Empty where a noise model was named, which checked items do not correct.
        """
        return self._goal.numbers

    @property
    def vetting_width(self) -> float:
        """The width of an interval that `vettings` is about: a tenth of what the number can be, if items are enough."""
        return self._goal.width * self._reach

    @property
    def _reach(self) -> float:
        """How far apart two values of the number can be."""
        return float(np.ptp(self._scores))

    @cached_property
    def _goal(self) -> Goal:
        scores = (self._scores - self._scores.min()) / self._reach
        groups = [] if self.evaluation.core is None else self.slicing.names.tolist()
        return Goal.of(
            {group: self.evaluation.next_checks(self.slicing.members(group), scores) for group in groups}, self.level
        )

    def next_steps(self) -> list[str]:
        """How many more items of which groups must be checked for intervals `vetting_width` wide, in words."""
        drawn = drawn_gold(self.evaluation.labels) >= 0
        missing = {group: n - int(drawn[self.slicing.members(group)].sum()) for group, n in self.vettings.items()}
        more = {group: n for group, n in missing.items() if n > 0}
        if not more:
            return []
        half, where = number(self.vetting_width / 2, 2), on_which(self.evaluation.target)
        if self._goal.width > ASKED:
            where += f"; ±{number(ASKED * self._reach / 2, 2)} takes more items"
        if len(self) == 1:
            return [f"Check {some(max(more.values()), 'more item')} drawn at random: about ±{half} {where}."]
        named = [f"{n:,} of {group!r}" for group, n in list(more.items())[:_MOST_NAMED]]
        others = [f"some of {len(more) - _MOST_NAMED} others"][: len(more) > _MOST_NAMED]
        return [f"Check more items drawn at random, {listed([*named, *others])}: about ±{half} for each {where}."]

    # ------------------------------------------------------------------ out

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        sizes = dict(zip(self.slicing.names.tolist(), self.slicing.sizes.tolist(), strict=True))
        vettings = self.vettings
        return {
            "what": self.name,
            "by": self.slicing.column,
            "target": self.evaluation.target,
            "basis": self.basis,
            "level": self.level,
            "n_items": self.evaluation.n_items,
            "n_votes": self.evaluation.labels.n_votes,
            "overall": self.overall.to_dict(self.level),
            "counted": self._count(np.ones(self.evaluation.labels.n_items, dtype=np.bool_)),
            "vetting_width": self.vetting_width,
            "groups": [
                {
                    "group": str(group),
                    "n_items": sizes[group],
                    **self[group].to_dict(self.level),
                    "prob_best": self.prob_best[group],
                    "counted": self.counted.get(group),
                    "vettings": vettings.get(group),
                }
                for group in self
            ],
            "differences": [
                {"a": str(a), "b": str(b), **self.difference(a, b).to_dict(self.level)}
                for a, b in combinations(self.ranking, 2)
            ],
            "lower": [str(group) for group in self.lower()] if len(self) > 1 else [],
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        groups = list(self) if len(self) > 1 else []
        rows = [(name, self[name], f"highest with probability {self.prob_best[name]:.2f}") for name in groups]
        return self._text(lines_of([("overall", self.overall, "")], self.level) + lines_of(rows, self.level))

    def _repr_html_(self) -> str:
        """A small table with bars, for notebooks."""
        groups = [(group, self[group]) for group in self if len(self) > 1]
        return self._html(self._title(), [("overall", self.overall), *groups], self.overall.bounds)


def share(
    labels: Labels,
    *,
    of: Hashable | None = None,
    at_least: float | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    cluster: str | Mapping[Hashable, Hashable] | None = None,
    weights: str | Mapping[Hashable, float] | None = None,
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    target: Target | None = None,
    level: float = 0.95,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Shares:
    """The share of a true class, for each group of items: how often each system passes in truth.

    No predictions are needed. The answers are those of `evaluate`. Groups borrow from each other.

    Parameters
    ----------
    labels : Labels. The votes, and checked items that were drawn at random (``labels.with_gold(…, drawn="random")``).
    at_least : float, optional. In place of `of`, for ratings: the share of all classes that are at least this number.
    by : str or mapping, optional
        The groups: a column of the items (``labels.with_items``), e.g. "system", or a mapping from item to group.
    cluster, weights : str or mapping, optional
        Which items came together, as several outputs for one prompt did, and what each item counts for. The target is
        then the population.
    noise : str or NoiseModel, optional
        A model that the votes are read by alone, e.g. "ordinal" for ratings; by default none, as in `evaluate`.
    prior, target, level, check_dependence, random_state, progress
        As in `evaluate`.
    **sampling
        n_draws; with a named noise model n_chains and n_warmup too.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.dawid_skene(n_items=90, n_labelers=5, random_state=0)
    >>> items = {"item": sim.labels.items.tolist(), "system": ["alpha", "beta", "gamma"] * 30}
    >>> shares = tu.share(sim.labels.with_items(items), of=1, by="system")
    >>> sorted(shares), 0 < shares["alpha"].mean < 1, shares.basis
    (['alpha', 'beta', 'gamma'], True, 'votes alone')
    """
    settings = Settings.of_call(share, locals())
    _check_labels(labels)
    if (of is None) == (at_least is None):
        raise InvalidParameter(
            "`of` or `at_least` must say which share is asked for, got " + ("neither" if of is None else "both") + "; "
            "name a class, or the least of the ratings that count",
            parameter="of",
        )
    if at_least is None:
        code = labels.class_code(of, parameter="of")
        scores = np.zeros(labels.n_classes)
        scores[code] = 1.0
        metric = mean_of(share_name(of), scores, f"how many of the items are {share_name(of)[9:]} in truth")
    else:
        least = check_number(at_least, name="at_least")
        values = _scores_of(labels, None)
        scores = (values >= least).astype(float)
        if np.ptp(scores) == 0:
            raise InvalidParameter(
                f"`at_least` must part the ratings, which go from {values.min():g} to {values.max():g}, got {least:g}; "
                "name a number among them",
            )
        code = int(values.argmax())
        words = f"how many of the items are {least:g} or more in truth"
        metric = replace(mean_of(f"share of {least:g} or more", scores, words), order=order_of(values.tolist()))
    return _shares(labels, metric, code, settings, prior, progress, sampling)


def mean_score(
    labels: Labels,
    *,
    values: Mapping[Hashable, float] | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    cluster: str | Mapping[Hashable, Hashable] | None = None,
    weights: str | Mapping[Hashable, float] | None = None,
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    target: Target | None = None,
    level: float = 0.95,
    check_dependence: bool = True,
    random_state: RandomState = 0,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> Shares:
    """The mean score of the truth, for each group of items.

    Parameters
    ----------
    values : mapping from class to number, optional
        The score of each class; by default the class itself, where all are numbers.
    by, cluster, weights, noise, prior, target, level, check_dependence, random_state, progress, **sampling
        As in `share`. The classes have an order, that of their scores: votes are read by the model of ratings
        (`trueup.noise.Ordinal`) where it predicts them better than that of Dawid and Skene.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.dawid_skene(n_items=90, n_labelers=5, random_state=0)
    >>> scores = tu.mean_score(sim.labels, values={0: 1, 1: 5})
    >>> scores.name, 1 < scores.overall.mean < 5
    ('mean score', True)
    """
    settings = Settings.of_call(mean_score, locals())
    _check_labels(labels)
    scores = _scores_of(labels, values)
    metric = mean_of("mean score", scores, "the mean score of the items in truth")
    metric = replace(metric, order=order_of(scores.tolist()))
    return _shares(labels, metric, int(scores.argmax()), settings, prior, progress, sampling)


def _shares(
    labels: Labels,
    metric: Metric,
    code: int,
    settings: Settings,
    prior: CrowdPrior | None,
    progress: Callable[[float], None] | None,
    sampling: Mapping[str, Any],
) -> Shares:
    """A rate is the metric of a system that predicts one class for every item, which tells nothing of the truth."""
    asked = settings.arguments
    one_class = labels.classes.tolist()[code]
    noise = asked["noise"]
    refuse_options(sampling, ("n_draws",) if noise is None else ("n_chains", "n_warmup", "n_draws"))
    task = prepare(
        Predictions.from_classes([one_class] * labels.n_items, items=labels.items.tolist(), system=f"{one_class}"),
        labels,
        settings=settings,
        metrics={metric.name: metric},
        noise=noise,
        target=settle_target(asked["target"], cluster=asked["cluster"], weights=asked["weights"]),
    )
    how = {"check_dependence": asked["check_dependence"], "progress": progress, **sampling}
    if noise is None:
        evaluation = build_evaluation(task, prior, **how)
    else:
        evaluation = build_named_evaluation(task, groups=None if task.slices is None else task.slices.codes, **how)
    whole = Slicing("items", vocabulary_from([_ALL]), np.zeros(labels.n_items, dtype=np.int32))
    return Shares(task.slices or whole, evaluation=evaluation)


def share_name(of: Hashable) -> str:
    """The share of a class in words."""
    return f"share of {(of.item() if isinstance(of, np.generic) else of)!r}"


def mean_of(name: str, scores: Floats, description: str) -> Metric:
    """The mean of a score of the truth, from confusion counts, rows the truth."""
    return Metric(
        name,
        partial(_mean_of_truth, scores=scores),
        bounds=(float(scores.min()), float(scores.max())),
        description=description,
    )


def _mean_of_truth(counts: Floats, scores: Floats) -> Floats:
    """Of the scores of the true classes; a function of the module, so that answers can be sent to other processes."""
    of_truth = np.asarray(counts, dtype=float).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(of_truth @ scores / of_truth.sum(axis=-1))


def _scores_of(labels: Labels, values: Mapping[Hashable, float] | None) -> Floats:
    """The score of each class; an error where a class has none, or all have the same."""
    names = labels.classes.tolist()
    # Each by itself: where one class is no number, that one is named.
    as_numbers = {name: of_name[0] for name in names if (of_name := numbers_of([name])) is not None}
    given = as_numbers if values is None else dict(values)
    lacking = [name for name in names if not isinstance(given.get(name), int | float) or given[name] != given[name]]
    if lacking:
        how = "name a number for each with `values`, or say that it is no vote" if values is None else "give each one"
        raise InvalidParameter(
            f"every class needs a number as its score, got none for {preview(lacking)}; {how}", parameter="values"
        )
    scores = np.array([float(given[name]) for name in names])
    if np.ptp(scores) == 0:
        raise InvalidParameter(f"`values` must differ between classes, got {scores[0]:g} for all; give other ones")
    return scores


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, Labels):
        raise InvalidParameter(
            f"`labels` must be Labels, got {type(labels).__name__}; make them with Labels.from_frame or read_labels",
        )
