"""Are six judges six? Who errs alike, how many independent labelers a panel is worth, and what each of them adds.

The error of labeler t on an item is 1 if the vote is wrong, less how often t errs in the item's class. Variances v_t
and covariances c_st of errors are taken over the items that both have voted on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from scipy.special import stdtrit

from trueup._base.types import Codes, Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_level,
    check_number,
    did_you_mean,
)
from trueup._base.wording import number, some
from trueup.answers.next_checks import NextChecks, next_checks
from trueup.core.base import MOST_MATRIX_CLASSES, base_of
from trueup.core.truth import TruthModel, drawn_gold, labels_of_base
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.estimators.problem import draw_categories
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.noise import DawidSkene, OneCoin
from trueup.noise.independence import draw_independently
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import new_axes

LEAST_CHECKED = 30  # checked items with two votes, from which errors are counted
_LEAST_SHARED = 8  # items that two labelers share, from which they have a correlation
_MOST_ITEMS = 2000  # that errors are looked at on
_N_TRUTHS = 48  # drawn where nothing is checked
_N_INDEPENDENT = 4  # data sets that tell what correlation independent errors seem to have
_POINTS = 2000  # quantiles of an estimate
_SHOWN_CHECKS = 100  # more checked items for which the sentence says a width
_MOST_ALIKE = 0.999
CHOSEN = (
    "All checked items were chosen by somebody, none drawn at random: what was counted holds for items like these and "
    "can be off for the others. Check items drawn at random (`with_gold(..., drawn='random')`)."
)


def gold_weights(labels: Labels) -> Floats:
    """What each item counts for: the inverse of the chance with which it was drawn, 1 where it was not."""
    return np.asarray(1 / np.where(np.isnan(labels.gold_chance), 1.0, labels.gold_chance))


def student_estimate(
    centre: float,
    spread: float,
    degrees: float,
    *,
    name: str,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    back: Callable[[Floats], Floats] | None = None,
) -> Estimate:
    """An estimate with Student's t distribution, or what `back` makes of its values."""
    even = (np.arange(_POINTS) + 0.5) / _POINTS
    values = centre + spread * np.asarray(stdtrit(max(degrees, 3.0), even), dtype=float)
    return DrawnEstimate(values if back is None else back(values), bounds=bounds, name=name)


def artanh(correlation: Floats) -> Floats:
    """The scale on which correlations vary alike."""
    return np.arctanh(np.clip(correlation, -_MOST_ALIKE, _MOST_ALIKE))


@dataclass(frozen=True, eq=False)
class ErrorMoments:
    """Covariances of the errors of all pairs for one truth, and what each item adds to them."""

    errors: Floats  # (n_items, n_labelers), less their mean in the class of the item; 0 without a vote
    voted: Floats  # (n_items, n_labelers), 1 with a vote, 0 without
    n_shared: Floats  # (n_labelers, n_labelers)
    share: Floats  # (n_labelers, n_labelers), what an item of weight 1 counts for: 0 of pairs that share too few
    covariance: Floats  # (n_labelers, n_labelers)

    @classmethod
    def of(cls, votes: Codes, truth: Codes, n_classes: int, weights: Floats | None = None) -> ErrorMoments:
        """From votes of shape (n_items, n_labelers), -1 for none, the class of each item, and its weight."""
        is_there = (votes >= 0).astype(float)
        root = np.ones(len(votes)) if weights is None else np.sqrt(weights / weights.mean())
        voted = is_there * root[:, None]
        errors = (votes != truth[:, None]) * voted
        for y in range(n_classes):
            of_class = np.flatnonzero(truth == y)
            part, there, times = errors[of_class], voted[of_class], root[of_class, None]
            errors[of_class] = part - there * ((part * times).sum(axis=0) / np.maximum((there**2).sum(axis=0), 1e-9))
        n_shared = is_there.T @ is_there
        is_known = (n_shared >= _LEAST_SHARED) | np.eye(len(n_shared), dtype=bool)  # a labeler with itself always is
        share = np.where(is_known, 1 / np.maximum(voted.T @ voted, 1e-9), 0.0)
        return cls(errors, voted, n_shared, share, (errors.T @ errors) * share)

    @property
    def correlation(self) -> Floats:
        """Of each pair, over the items they share; 0 where these are few or one of them never errs there."""
        squares = (self.errors**2).T @ (self.voted > 0)
        scale = np.sqrt(squares * squares.T) * self.share
        found = np.divide(self.covariance, scale, out=np.zeros_like(scale), where=scale > 1e-12)
        np.fill_diagonal(found, 1.0)
        return np.clip(found, -_MOST_ALIKE, 1.0)

    def correlation_spread(self) -> Floats:
        """Standard errors of artanh r of each pair by the jackknife, at least those of independent errors."""
        found = np.zeros_like(self.covariance)
        second, transformed = self.errors**2, artanh(self.correlation)
        is_there = (self.voted > 0).astype(float)
        squares = second.T @ is_there
        products = np.divide(self.covariance, self.share, out=np.zeros_like(found), where=self.share > 0)
        for s in range(len(found)):
            product = products[s] - self.errors[:, s : s + 1] * self.errors
            own = squares[s] - second[:, s : s + 1] * is_there
            other = squares[:, s] - second * is_there[:, s : s + 1]
            scale = np.sqrt(np.maximum(own * other, 1e-24))
            shift = (
                (artanh(product / scale) - transformed[s])
                * is_there
                * is_there[:, s : s + 1]
                * (scale > 1e-9)
                * (self.share[s] > 0)
            )
            n = np.maximum(self.n_shared[s], 4.0)
            variance = np.maximum((shift**2).sum(axis=0) - shift.sum(axis=0) ** 2 / n, 0.0) * (n - 1) / n
            found[s] = np.sqrt(np.maximum(variance * n / (n - 2), 1 / (n - 3)))
        return found

    def per_item(self) -> tuple[Floats, Floats]:
        """What each item adds to Σ_t c_st, and to v_s, less the mean; both of shape (n_items, n_labelers)."""
        rows = self.errors * (self.errors @ self.share) - self.voted * (self.voted @ (self.covariance * self.share))
        own = (self.errors**2 - self.voted**2 * np.diag(self.covariance)) * np.diag(self.share)
        return rows, own

    def of_pair(self, s: int, t: int) -> Floats:
        """What each item adds to c_st, less the mean."""
        both = self.voted[:, s] * self.voted[:, t]
        product = self.errors[:, s] * self.errors[:, t] - both * self.covariance[s, t]
        return np.asarray(product * self.share[s, t])


@dataclass(frozen=True, eq=False)
class SizeSums:
    """The sums that an effective number is made of, for a panel and what is made of it."""

    n: int
    total: float  # Σ_st c_st
    variance: float  # Σ_t v_t
    of_total: Floats  # what each item adds
    of_variance: Floats

    def effective(self, extra: float = 0.0) -> Estimate:
        """The effective number, between 1 and the number of labelers.

        Its error over items is that of the jackknife, with as many degrees of freedom as what items add has by its
        kurtosis: a few items with many errors make most of it. `extra` is a relative error beside it. Errors that make
        up for one another (Σ c near 0 or below) are worth all n labelers, as far as this ratio to Σ v is known.
        """
        n, items = float(self.n), len(self.of_total)
        if self.n == 1 or self.variance <= 1e-12:
            even = np.linspace(1.0, n, _POINTS) if self.n > 1 else np.ones(1)  # nobody errs: anything is possible
            return DrawnEstimate(even, bounds=(0.0 if self.n == 1 else 1.0, n), name="effective")
        scale = items / max(items - 1, 1)
        totals = self.total - self.of_total * scale
        variances = np.maximum(self.variance - self.of_variance * scale, 1e-12)
        of_ratio = min(self.total, float(totals.min())) <= 1e-3 * self.variance  # where a logarithm tells nothing
        left = totals / variances if of_ratio else np.log(np.maximum(totals, 1e-12)) - np.log(variances)
        shift = left - left.mean()
        variance = float((shift**2).sum()) / scale * items / max(items - 2, 1)
        degrees = 2 / max(float((shift**4).sum()) / max(float((shift**2).sum()) ** 2, 1e-300) - 1 / items, 1e-9)
        spread = float(np.sqrt(variance + extra**2))
        back: Callable[[Floats], Floats]
        if of_ratio:
            centre, back = self.total / self.variance, lambda x: n / np.clip(x, 1.0, n)
        else:
            centre, back = n * self.variance / self.total, lambda x: np.clip(x, 1.0, n)
            spread *= centre
        return student_estimate(centre, spread, degrees, name="effective", bounds=(1.0, n), back=back)


def size_sums(moments: ErrorMoments, nearest: Codes) -> tuple[SizeSums, list[SizeSums], list[SizeSums]]:
    """Of the panel, of the panel without each labeler, and with one more like each."""
    rows, own = moments.per_item()
    c = moments.covariance
    whole = SizeSums(len(c), float(c.sum()), float(np.trace(c)), rows.sum(axis=1), own.sum(axis=1))

    def changed(j: int, sign: int, twice: float, of_twice: Floats) -> SizeSums:
        """The panel with one more or one less like a labeler: its covariances with the others count twice."""
        v = float(c[j, j])
        total, of_total = whole.total + sign * (v + 2 * twice), whole.of_total + sign * (own[:, j] + 2 * of_twice)
        return SizeSums(
            whole.n + sign, total, whole.variance + sign * v, of_total, whole.of_variance + sign * own[:, j]
        )

    without: list[SizeSums] = []
    another: list[SizeSums] = []
    for j, k in enumerate(nearest.tolist()):
        others, of_others = float(c[:, j].sum() - c[j, j]), rows[:, j] - own[:, j]
        without.append(changed(j, -1, others, of_others))
        another.append(changed(j, 1, others + float(c[j, k]), of_others + moments.of_pair(j, k)))
    return whole, without, another


@dataclass(frozen=True, eq=False)
class Correlations(Mapping[tuple[Any, Any], Estimate]):
    """Correlations of the errors of all pairs given the class; ``correlations["a", "b"]`` is an `Estimate`.

    Attributes
    ----------
    matrix : array of shape (n_labelers, n_labelers)
    spread : array of shape (n_labelers, n_labelers). Standard errors on the scale artanh r.
    n_shared : array of shape (n_labelers, n_labelers). Items that both have voted on, of those that were looked at.
    """

    labelers: tuple[Any, ...]
    matrix: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    n_shared: Floats = field(repr=False)

    def __getitem__(self, pair: tuple[Any, Any]) -> Estimate:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidParameter(
                f"correlations are those of pairs, got {pair!r}; name two labelers, as in correlations[a, b]",
                parameter="labeler",
            )
        s, t = (_place(self.labelers, name) for name in pair)
        if s == t:
            raise InvalidParameter(f"a pair is two labelers, got {pair[0]!r} twice; name another", parameter="labeler")
        centre, spread, degrees = float(artanh(self.matrix[s, t])), self.spread[s, t], self.n_shared[s, t] - 3
        return student_estimate(centre, spread, degrees, name="correlation", bounds=(-1.0, 1.0), back=np.tanh)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return iter([(a, b) for k, a in enumerate(self.labelers) for b in self.labelers[k + 1 :]])

    def __len__(self) -> int:
        return len(self.labelers) * (len(self.labelers) - 1) // 2

    def to_frame(self, *, level: float = 0.95, backend: str | None = None) -> Any:
        """One row a pair: first, second, correlation, low, high (with equal tails), shared items."""
        return make_frame(self._columns(level), backend=backend)

    def _columns(self, level: float) -> dict[str, list[Any]]:
        """All pairs at once: the quantiles of Student's t on the scale artanh r."""
        first, second = np.triu_indices(len(self.labelers), 1)
        matrix, n_shared = self.matrix[first, second], self.n_shared[first, second]
        reach = stdtrit(np.maximum(n_shared - 3, 3.0), (1 + check_level(level)) / 2) * self.spread[first, second]
        return {
            "first": [self.labelers[k] for k in first],
            "second": [self.labelers[k] for k in second],
            "correlation": matrix.tolist(),
            "low": np.tanh(artanh(matrix) - reach).tolist(),
            "high": np.tanh(artanh(matrix) + reach).tolist(),
            "items": n_shared.astype(int).tolist(),
        }


@dataclass(frozen=True, eq=False)
class Tree:
    """Who errs alike: labelers joined from the most alike on, by the mean of 1 − correlation.

    Attributes
    ----------
    joins : array of shape (n_labelers − 1, 4). As `scipy.cluster.hierarchy.linkage` has them.
    """

    labelers: tuple[Any, ...]
    joins: Floats = field(repr=False)

    @classmethod
    def of(cls, labelers: tuple[Any, ...], correlation: Floats) -> Tree:
        """From the correlations of all pairs."""
        first, second = np.triu_indices(len(labelers), 1)
        distance = np.maximum(1 - correlation[first, second], 0.0)
        return cls(labelers, scipy.cluster.hierarchy.linkage(distance, method="average"))

    def groups(self, correlation: float = 0.3) -> list[tuple[Any, ...]]:
        """Labelers whose errors correlate at least so much on average, the largest group first."""
        check_number(correlation, name="correlation", low=-1.0, high=1.0)
        of = scipy.cluster.hierarchy.fcluster(self.joins, 1 - correlation, criterion="distance")
        found = [tuple(name for name, k in zip(self.labelers, of, strict=True) if k == group) for group in set(of)]
        return sorted(found, key=lambda group: (-len(group), self.labelers.index(group[0])))

    def plot(self, ax: Any = None) -> Any:
        """The tree; returns the Axes."""
        ax = new_axes(ax, purpose="Tree.plot()", figsize=(6, 0.3 * len(self.labelers) + 1))
        names = [str(name) for name in self.labelers]
        scipy.cluster.hierarchy.dendrogram(self.joins, orientation="right", labels=names, ax=ax)
        ax.set_xlabel("1 − correlation of errors")
        return ax


@dataclass(frozen=True, eq=False)
class PanelSize:
    """What a panel is worth.

    Attributes
    ----------
    effective : Estimate. Independent labelers whose mean error would vary as much.
    checks : NextChecks or None. What decides the width of the interval of a class's share; None where no item is open.
    """

    effective: Estimate
    checks: NextChecks | None = field(repr=False)

    def width(self, n: int, level: float = 0.95) -> float:
        """The expected width of the interval of the class's share with n more items checked at random."""
        check_integer(n, name="n", low=0)
        return 0.0 if self.checks is None else self.checks.width(self.checks.n_drawn + n, check_level(level))


@dataclass(frozen=True, eq=False)
class Panel(PanelSize):
    """What labelers are worth together.

    Attributes
    ----------
    without, with_another : dict from labeler to PanelSize
        The panel without a labeler, and with one more like it: one that errs with the others as it does, and with it as
        the one nearest to it does.
    share_of : class. Whose share `width` is about.
    basis : str. Whether errors were counted on checked items, or truths drawn from votes.
    """

    labelers: tuple[Any, ...]
    correlations: Correlations = field(repr=False)
    tree: Tree = field(repr=False)
    without: dict[Any, PanelSize] = field(repr=False)
    with_another: dict[Any, PanelSize] = field(repr=False)
    share_of: Hashable
    basis: str
    sentence: str = field(repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)

    def nearest(self, labeler: Any) -> tuple[Any, Estimate]:
        """Who errs most like a labeler, and the correlation of their errors."""
        k = _place(self.labelers, labeler)
        other = self.labelers[int(_nearest(self.correlations.matrix)[k])]
        return other, self.correlations[labeler, other]

    def to_frame(self, *, n: int = _SHOWN_CHECKS, backend: str | None = None) -> Any:
        """One row a labeler: the nearest one, the panel without it, and with one more like it, with n more checks."""
        nearest = [self.nearest(name) for name in self.labelers]
        columns: dict[str, list[Any]] = {
            "labeler": list(self.labelers),
            "nearest": [name for name, _ in nearest],
            "correlation": [estimate.mean for _, estimate in nearest],
        }
        for what in ("without", "with_another"):
            sizes = [getattr(self, what)[name] for name in self.labelers]
            columns[f"{what}_effective"] = [size.effective.mean for size in sizes]
            columns[f"{what}_width"] = [size.width(n) for size in sizes]
        return make_frame(columns, backend=backend)

    def to_dict(self, *, n: int = _SHOWN_CHECKS) -> dict[str, Any]:
        """Everything, JSON-able."""

        def of(size: PanelSize) -> dict[str, Any]:
            return {"effective": size.effective.to_dict(), "width": size.width(n)}

        pairs = self.correlations._columns(0.95)
        pairs.update({which: [str(name) for name in pairs[which]] for which in ("first", "second")})
        return {
            "n_labelers": len(self.labelers),
            "basis": self.basis,
            **of(self),
            "n_checks": n,
            "share_of": str(self.share_of),
            "correlations": [dict(zip(pairs, row, strict=True)) for row in zip(*pairs.values(), strict=True)],
            "groups": [[str(name) for name in group] for group in self.tree.groups()],
            "labelers": [
                {
                    "labeler": name,
                    "nearest": nearest,
                    "correlation": correlation.to_dict(),
                    "without": of(self.without[name]),
                    "with_another": of(self.with_another[name]),
                }
                for name in self.labelers
                for nearest, correlation in [self.nearest(name)]
            ],
            "sentence": self.sentence,
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        lines = [f"Panel of {some(len(self.labelers), 'labeler')} ({self.basis})", f"  {self.sentence}"]
        return "\n".join(lines + [f"  ! {sentence}" for sentence in self.warnings])


def panel(
    labels: Labels, *, truth: str | None = None, of: Hashable | None = None, random_state: RandomState = 0
) -> Panel:
    r"""How many independent labelers a panel is worth, who errs alike, and what each of them adds.

    An error is a wrong vote less how often its labeler errs in that class. Where 30 items and more are checked, errors
    are counted on these, each by the inverse of the chance with which it was drawn; items that somebody chose count
    where none was drawn. Otherwise truths are drawn from the base of the core. Votes decide there what is true, so even
    independent errors would seem to correlate: what data sets with independent errors show is taken off. How far votes
    may be off as one is in the width; labelers that are most of the panel and err alike may still pass for right.

    .. math::

        n_\mathrm{eff} = n \frac{\sum_t v_t}{\sum_{s,t} c_{st}}

    with variances v and covariances c of errors is the number of independent labelers whose mean error varies as much.

    Parameters
    ----------
    truth : {"gold", "votes"}, optional
        What errors are errors against; by default gold where 30 items with two votes are checked.
    of : class, optional. Whose share `Panel.width` is about; by default the second of two, else the most frequent.
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    if labels.n_labelers < 2:
        raise InvalidLabels(
            f"a panel must have two labelers or more, got {labels.n_labelers}; add the votes of others to the labels"
        )
    rng = as_generator(random_state)
    labels = one_vote_each(labels, rng)
    asked = _class_asked(labels, of)
    votes = _votes_of(labels)
    shared = (votes >= 0).sum(axis=1) > 1
    if not shared.any():
        raise InvalidLabels("labelers must share items, got none with two votes; collect votes on the same items")
    gold = drawn_gold(labels)
    is_chosen = not (shared & (gold >= 0)).any()
    gold = labels.gold_codes if is_chosen else gold
    checked = np.flatnonzero(shared & (gold >= 0))
    default = "gold" if len(checked) >= LEAST_CHECKED else "votes"
    by_gold = check_choice(truth or default, ("gold", "votes"), name="truth") == "gold"
    if by_gold and len(checked) < 2:
        raise InvalidParameter(
            f"errors against gold need two checked items with two votes, got {len(checked)}; add gold "
            "(`labels.with_gold`), or leave `truth` out",
            parameter="truth",
        )
    with silenced_warnings():
        base = base_of(labels_of_base(labels))
        nobody = np.empty((0, labels.n_items), dtype=np.int32)
        core = TruthModel(labels, base, nobody, may_sample=False, n_draws=1024, seed=int(rng.integers(2**31)))
        if by_gold:
            moments = ErrorMoments.of(votes[checked], gold[checked], labels.n_classes, gold_weights(labels)[checked])
            extra, extra_of_pairs = 0.0, np.zeros_like(moments.covariance)
        else:
            moments, extra, extra_of_pairs = _from_votes(labels, votes, base, core, np.flatnonzero(shared), rng)
        checks = next_checks(core, np.full(labels.n_items, asked, dtype=np.int32))
    names = tuple(labels.labelers.tolist())
    correlation = moments.correlation
    spread = np.hypot(moments.correlation_spread(), extra_of_pairs)
    nearest = _nearest(correlation)
    is_class = base[:, asked]
    if by_gold:
        is_class = np.full(labels.n_items, np.nan)
        is_class[checked] = gold[checked] == asked
    explained = _Explained.of(votes, is_class, asked)
    whole, without, another = size_sums(moments, nearest)
    n_checked = some(len(checked), "checked item")
    found = Panel(
        effective=whole.effective(extra),
        checks=checks,
        labelers=names,
        correlations=Correlations(names, correlation, spread, moments.n_shared),
        tree=Tree.of(names, correlation),
        without={
            name: PanelSize(without[j].effective(extra), explained.without(checks, j)) for j, name in enumerate(names)
        },
        with_another={
            name: PanelSize(another[j].effective(extra), explained.with_another(checks, j, int(nearest[j])))
            for j, name in enumerate(names)
        },
        share_of=labels.classes.tolist()[asked],
        basis=f"errors counted on {n_checked}" if by_gold else "truths drawn from votes, not counted",
        sentence="",
        warnings=_notes(labels, moments, by_gold, is_chosen),
    )
    return replace(found, sentence=_sentence(found))


def _votes_of(labels: Labels) -> Codes:
    """The class that each labeler names for each item, -1 for none, shape (n_items, n_labelers)."""
    item, labeler, answer, _ = labels.vote_table()
    votes = np.full((labels.n_items, labels.n_labelers), -1, dtype=np.int32)
    named = answer < labels.n_classes
    votes[item[named], labeler[named]] = answer[named]
    return votes


def _class_asked(labels: Labels, of: Hashable | None) -> int:
    classes = labels.classes.tolist()
    if of is None:
        return 1 if len(classes) == 2 else int(labels.votes_per_answer[: len(classes)].argmax())
    if of not in classes:
        raise InvalidParameter(f"`of` must be a class, got {of!r}{did_you_mean(of, classes)}")
    return int(classes.index(of))


def _place(names: tuple[Any, ...], name: Any) -> int:
    if name not in names:
        raise InvalidParameter(f"no labeler {name!r} is in the panel{did_you_mean(name, names)}", parameter="labeler")
    return names.index(name)


def _nearest(correlation: Floats) -> Codes:
    """Who errs most like each labeler."""
    others = correlation.copy()
    np.fill_diagonal(others, -np.inf)
    return np.asarray(others.argmax(axis=1))


def _from_votes(
    labels: Labels, votes: Codes, base: Floats, core: TruthModel, shared: Codes, rng: np.random.Generator
) -> tuple[ErrorMoments, float, Floats]:
    """Moments with truths drawn from the base, less those of independent errors; and how far votes may be off.

    That is the standard deviation, over the core's draws, of log n_eff, and of artanh r of each pair.
    """
    items = np.sort(rng.permutation(shared)[:_MOST_ITEMS])
    n_classes = labels.n_classes
    seen, middle = _mean_covariance(votes[items], base[items], n_classes, rng)
    model = (DawidSkene() if n_classes <= MOST_MATRIX_CLASSES else OneCoin()).fit(labels_of_base(labels))
    usual = np.zeros_like(seen)
    for _ in range(_N_INDEPENDENT):
        drawn = draw_independently(labels, model, rng)
        known = base_of(labels_of_base(drawn))
        usual += _mean_covariance(_votes_of(drawn)[items], known[items], n_classes, rng)[0] / _N_INDEPENDENT
    np.fill_diagonal(usual, 0.0)
    truths = core.truth.truths
    drawn_moments = [
        ErrorMoments.of(votes[items], truth[items], n_classes) for truth in truths[:: len(truths) // _N_TRUTHS]
    ]
    designs = [one.covariance for one in drawn_moments]
    logs = [np.log(max(c.sum(), 1e-12) / max(np.trace(c), 1e-12)) for c in designs]
    of_pairs = np.std([np.arctanh(np.minimum(one.correlation, _MOST_ALIKE)) for one in drawn_moments], axis=0)
    return replace(middle, covariance=seen - usual), float(np.std(logs)), of_pairs


def _mean_covariance(
    votes: Codes, chances: Floats, n_classes: int, rng: np.random.Generator
) -> tuple[Floats, ErrorMoments]:
    """The mean covariance of errors over drawn truths, and the moments of one of these."""
    moments = [ErrorMoments.of(votes, truth, n_classes) for truth in draw_categories(chances, _N_TRUTHS, rng)]
    return np.mean([one.covariance for one in moments], axis=0), moments[0]


@dataclass(frozen=True, eq=False)
class _Explained:
    """How much of the variance of a class the votes of a panel explain, by least squares."""

    votes: Floats  # (n_labelers, n_labelers), covariances of the votes for the class
    truth: Floats  # (n_labelers,), their covariances with the class
    variance: float  # of the class

    @classmethod
    def of(cls, votes: Codes, chances: Floats, asked: int) -> _Explained:
        """From the votes and the chance of the class on each item."""
        voted = (votes >= 0).astype(float)
        named = (votes == asked) * voted
        mean = named.sum(axis=0) / np.maximum(voted.sum(axis=0), 1.0)
        apart = (named - mean) * voted
        known = np.flatnonzero(~np.isnan(chances))
        share = float(chances[known].mean())
        with_truth = apart[known].T @ (chances[known] - share) / np.maximum(voted[known].sum(axis=0), 1.0)
        return cls(apart.T @ apart / np.maximum(voted.T @ voted, 1.0), with_truth, max(share * (1 - share), 1e-6))

    def unexplained(self, votes: Floats, truth: Floats) -> float:
        """The share of the variance that is left, at least .02: votes alone prove nothing."""
        ridged = votes + np.diag(0.01 * np.diag(votes) + 1e-9)
        return float(np.clip(1 - truth @ np.linalg.solve(ridged, truth) / self.variance, 0.02, 1.0))

    def without(self, checks: NextChecks | None, j: int) -> NextChecks | None:
        """What checks bring to the panel without a labeler."""
        kept = np.delete(np.arange(len(self.truth)), j)
        return self._rescale(checks, self.votes[kept][:, kept], self.truth[kept], (1.0, np.inf))

    def with_another(self, checks: NextChecks | None, j: int, nearest: int) -> NextChecks | None:
        """What checks bring to the panel with one more like a labeler."""
        row = self.votes[j].copy()
        row[j] = self.votes[j, nearest]
        votes = np.block([[self.votes, row[:, None]], [row, self.votes[j, j]]])
        return self._rescale(checks, votes, np.append(self.truth, self.truth[j]), (0.0, 1.0))

    def _rescale(
        self, checks: NextChecks | None, votes: Floats, truth: Floats, bounds: tuple[float, float]
    ) -> NextChecks | None:
        """Checks that find as much more of the class open as these votes explain less of it."""
        if checks is None:
            return None
        factor = self.unexplained(votes, truth) / self.unexplained(self.votes, self.truth)
        return replace(checks, variances=checks.variances * float(np.clip(factor, *bounds)))


def _notes(labels: Labels, moments: ErrorMoments, by_gold: bool, is_chosen: bool) -> tuple[str, ...]:
    notes = [CHOSEN] if by_gold and is_chosen else []
    if not by_gold:
        notes.append(
            "No errors were counted: labelers that are most of the panel and err alike can pass for right. Check "
            f"{LEAST_CHECKED} items or more, drawn at random, to count them."
        )
    never = [name for name, v in zip(labels.labelers.tolist(), np.diag(moments.covariance), strict=True) if v <= 1e-12]
    if by_gold and never:
        notes.append(f"{some(len(never), 'labeler')} never erred on the checked items, so with whom is not known.")
    few = int((moments.n_shared[np.triu_indices(labels.n_labelers, 1)] < _LEAST_SHARED).sum())
    if few:
        shares = "shares" if few == 1 else "share"
        notes.append(f"{some(few, 'pair')} {shares} fewer than {_LEAST_SHARED} items, taken as uncorrelated.")
    return tuple(notes)


def _sentence(found: Panel) -> str:
    """What the panel is worth, whom to drop and what to add."""
    low, high = found.effective.interval(0.95)
    widths, wider = (
        {name: size.width(_SHOWN_CHECKS) for name, size in sizes.items()}
        for sizes in (found.without, found.with_another)
    )
    drop = min(found.labelers, key=lambda name: (round(widths[name], 4), -found.without[name].effective.mean))
    add = min(found.labelers, key=lambda name: (round(wider[name], 4), -found.with_another[name].effective.mean))
    return (
        f"{len(found.labelers)} labelers are worth {found.effective.mean:.1f} independent ones ({low:.1f} to "
        f"{high:.1f}); dropping {drop} costs least ({found.without[drop].effective.mean:.1f} without it), another one "
        f"like {add} adds most ({found.with_another[add].effective.mean:.1f} with it); after {_SHOWN_CHECKS} more "
        f"checked items the interval of the share of {found.share_of} is about {number(found.width(_SHOWN_CHECKS))} "
        f"wide, {number(widths[drop])} without {drop} and {number(wider[add])} with the other."
    )
