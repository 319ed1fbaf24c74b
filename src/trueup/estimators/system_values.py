"""The metric of every system on every drawn truth, what the items stand for, and what a metric looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Target
from trueup.data.aligned import AlignedPredictions
from trueup.metrics import Metric, confusion_counts

_UNSEEN = 0.5  # units that are right, and as many that are wrong: Jeffreys' prior of a share


@dataclass(frozen=True, eq=False)
class Population:
    """The population that items are a sample of: of items one by one, unless they came in clusters."""

    clusters: Codes | None = field(default=None, repr=False)  # (n_items,)
    weights: Floats | None = field(default=None, repr=False)  # (n_items,): what each item counts for
    spread: Floats | None = field(default=None, repr=False)  # (n_items,)
    times: Floats | None = field(default=None, repr=False)  # (n_items,): how many items each of these stands for

    def at(self, items: Codes | None, times: Floats | None) -> Population:
        """The same of some items, None for all, that stand for many."""
        if items is None:
            return replace(self, times=times)
        return Population(
            None if self.clusters is None else self.clusters[items],
            None if self.weights is None else self.weights[items],
            None if self.spread is None else self.spread[items],
            times,
        )

    @property
    def is_of_items(self) -> bool:
        """Whether its items were drawn one by one and count alike."""
        return self.clusters is None and self.weights is None

    def masses(self, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """What each item counts for in each draw, by the Bayesian bootstrap (Rubin 1981) over clusters or items."""
        n_draws, n_items = shape
        if self.clusters is None and self.times is not None:  # the sum of as many exponential numbers
            return self._weighted(rng.standard_gamma(self.times.astype(np.float32), (n_draws, n_items), np.float32))
        if self.clusters is None:
            masses = rng.standard_exponential((n_draws, n_items), dtype=np.float32)
        else:
            masses = rng.standard_exponential((n_draws, int(self.clusters.max()) + 1), dtype=np.float32)
            masses = masses[:, self.clusters]
        if self.spread is not None:  # those that were drawn stand together for as many items in every draw
            masses /= masses[:, self.spread > 0].mean(axis=1, keepdims=True)
            masses = 1 + self.spread.astype(np.float32) * (masses - 1)
        if self.times is not None:
            masses *= self.times.astype(np.float32)
        return self._weighted(masses)

    def _weighted(self, masses: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return masses if self.weights is None else masses * self.weights.astype(np.float32)

    def unit(self, members: Booleans) -> float:
        """What one independent part of some items counts for: the mass of all by Kish's number of such parts."""
        mass = np.ones(len(members)) if self.weights is None else self.weights
        if self.spread is not None:  # of a finite pool, what was not drawn
            mass = mass * self.spread**2
        mass, times = mass[members], np.ones(int(members.sum())) if self.times is None else self.times[members]
        total = float(times @ mass)
        if self.clusters is None:
            squares = float(times @ mass**2)
        else:
            squares = float((np.bincount(self.clusters[members], times * mass) ** 2).sum())
        return squares / total if total > 0 else 0.0


def population_for(
    target: Target, *, clusters: Codes | None = None, weights: Floats | None = None
) -> Population | None:
    """What the items stand for: nothing but themselves where the target is the sample."""
    return Population(clusters, weights) if target == "population" else None


def unseen_counts(
    codes: Codes, n_classes: int, n_draws: int, rng: np.random.Generator, *, units: Floats | None = None
) -> Floats:
    """What a population may have that these items do not, to be added to confusion counts that stand for it."""
    n_systems = len(codes)
    # All classes that a system names have as much of it, or a rare one that was missed thrice would never be found.
    is_named = np.stack([np.bincount(row[row >= 0], minlength=n_classes) > 0 for row in codes])
    shares = is_named / np.maximum(is_named.sum(axis=1, keepdims=True), 1)
    items, of_system = np.unique(codes >= 0, axis=0, return_inverse=True)
    right, wrong = rng.standard_gamma(_UNSEEN, (2, n_draws, len(items)))[:, :, of_system.reshape(n_systems)]
    others = (1 - np.eye(n_classes)) / max(n_classes - 1, 1)
    worth = shares if units is None else shares * units[:, None]
    return np.asarray(
        np.einsum("ds,sc,yc->dsyc", right, worth, np.eye(n_classes)) + np.einsum("ds,sc,yc->dsyc", wrong, worth, others)
    )


# ------------------ Whether a metric looks at right and wrong alone.

_CLOSE = 1e-9


def counts_right_only(metric: Metric, n_classes: int) -> bool:
    """Whether a metric of counts depends on nothing but how many items are predicted right, as accuracy does."""
    if metric.needs != "counts":
        return False
    is_right = np.eye(n_classes, dtype=bool)
    cells = np.arange(n_classes**2).reshape(n_classes, n_classes)
    first = 20.0 + 10.0 * np.sin(1.0 + 1.7 * cells)
    second = 20.0 + 10.0 * np.sin(2.0 + 2.3 * cells)
    for group in (is_right, ~is_right):
        second[group] *= first[group].sum() / max(second[group].sum(), _CLOSE)
    values = metric(np.stack([first, second]))
    return bool(np.abs(values[0] - values[1]) <= _CLOSE * max(1.0, abs(float(values[0]))))


_BLOCK = 20_000_000  # numbers held at once
_FEW_CLASSES = 12  # up to here matrix products are the fastest way to count
_EXACT = 1 << 24  # whole numbers below it are exact in single precision


def system_values(
    truths: Codes,
    aligned: AlignedPredictions,
    metric: Metric,
    *,
    classes: npt.NDArray[Any],
    positive: int,
    random_state: np.random.Generator,
    population: Population | None = None,
    weights: npt.NDArray[np.float32] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Floats:
    """The values of a metric, shape (n_draws, n_systems); all systems see the same draws.

    In a population the items of each draw are weighted as in the Bayesian bootstrap (Rubin 1981): they are a sample of
    all there could have been; metrics of counts know that there may be more than they show, see `unseen_counts`. In its
    place `weights` may say what each item counts for in each draw. Each system is judged on the items it has a
    prediction for.
    """
    n_draws, n_items = truths.shape
    units = None
    if population is not None and metric.needs == "counts":
        units = np.array([population.unit(row) for row in aligned.has_output(metric.looks_at)])
    values = np.empty((n_draws, aligned.n_systems))
    # Of each draw the items are held, and of metrics of counts a table of classes for each system.
    rows = max(1, _BLOCK // max(n_items, aligned.n_systems * len(classes) ** 2))
    for first in range(0, n_draws, rows):
        block = truths[first : first + rows]
        mass = None if weights is None else weights[first : first + rows]
        if population is not None:
            mass = population.masses(block.shape, random_state)
        unseen = None
        if units is not None and aligned.codes is not None:
            unseen = unseen_counts(aligned.codes, len(classes), len(block), random_state, units=units)
        values[first : first + rows] = _values(block, aligned, metric, classes, positive, mass, unseen)
        if progress is not None:
            progress(min(1.0, (first + rows) / n_draws))
    return values


def _values(
    truths: Codes,
    aligned: AlignedPredictions,
    metric: Metric,
    classes: npt.NDArray[Any],
    positive: int,
    weights: npt.NDArray[np.float32] | None,
    unseen: Floats | None,
) -> Floats:
    if metric.needs == "counts":
        counts = system_counts(truths, aligned.outputs("classes"), len(classes), weights=weights)
        return metric(counts if unseen is None else counts + unseen)
    columns = []
    answered = aligned.has_output(metric.looks_at)
    for name, outputs, has_output in zip(aligned.systems, aligned.outputs(metric.looks_at), answered, strict=True):
        given = slice(None) if has_output.all() else np.flatnonzero(has_output)  # of all items there is no copy
        seen, own_outputs = truths[:, given], outputs[given]
        mass = None if weights is None else weights[:, given]
        if metric.needs != "labels":
            own = metric.for_system(name)
            columns.append(own.of_outputs(seen, own_outputs, positive=positive, weights=mass))
        elif mass is None:
            columns.append(metric.of_labels(seen, own_outputs, classes=classes))
        else:  # a function takes no weights: the items are drawn again instead
            pairs = zip(*_resampled(seen, own_outputs, mass), strict=True)
            columns.append(np.concatenate([metric.of_labels(y[None], p, classes=classes) for y, p in pairs]))
    return np.stack(columns, axis=1)


def _resampled(truths: Codes, codes: Codes, weights: npt.NDArray[np.float32]) -> tuple[Codes, Codes]:
    """Items drawn in proportion to the weights of each draw, evenly spaced so that little is added to their spread."""
    n = truths.shape[1]
    upto = np.cumsum(weights, axis=1, dtype=float)
    points = (np.arange(n) + 0.5) / n
    chosen = np.stack([np.searchsorted(row / row[-1], points) for row in upto]).clip(0, n - 1)
    return np.take_along_axis(truths, chosen, axis=1), codes[chosen]


def system_counts(
    truths: Codes, codes: Codes, n_classes: int, *, weights: npt.NDArray[np.float32] | None = None
) -> Floats:
    """Confusion counts of every system on every draw, shape (n_draws, n_systems, n_classes, n_classes)."""
    counts = np.empty((len(truths), len(codes), n_classes, n_classes))
    rows = max(1, _BLOCK // max(truths.shape[1], 1))
    predicted = [(codes == c).T.astype(np.float32) for c in range(n_classes)] if n_classes <= _FEW_CLASSES else []
    # Of the last class there is what the others leave; sums of whole numbers are exact, those of weights are not.
    n_added = n_classes if weights is not None or truths.shape[1] >= _EXACT else n_classes - 1
    for first in range(0, len(truths), rows):
        block = slice(first, first + rows)
        drawn, mass, part = truths[block], None if weights is None else weights[block], counts[block]
        if not predicted:
            part[:] = np.stack([counts_by_cell(drawn, row, n_classes, mass) for row in codes], axis=1)
            continue
        for y in range(n_added):  # as matrix products: for each pair of classes, draws × items times items × systems
            is_y = (drawn == y).astype(np.float32)
            if mass is not None:
                is_y *= mass
            for c in range(n_classes):
                part[:, :, y, c] = is_y @ predicted[c]
    if predicted and n_added < n_classes:
        totals = np.stack([column.sum(axis=0, dtype=float) for column in predicted], axis=1)
        counts[:, :, -1] = totals - counts[:, :, :-1].sum(axis=2)
    return counts


def counts_by_cell(
    truths: Codes, codes: Codes, n_classes: int, weights: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Confusion counts of one system on every draw, shape (n_draws, n_classes, n_classes)."""
    given = np.flatnonzero(codes >= 0)
    mass = None if weights is None else weights[:, given]
    return confusion_counts(truths[:, given], codes[given], n_classes, weights=mass)
