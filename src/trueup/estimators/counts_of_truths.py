"""Confusion counts that are made from drawn truths as they are asked for: tables of thousands of classes are large."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.estimators.counts import CountsPosterior, DrawnRates
from trueup.estimators.system_values import counts_by_cell
from trueup.metrics import Metric
from trueup.posteriors import DrawnEstimate, Estimate, JointEstimate

_BLOCK = 20_000_000  # cells held at once


class CountsOfTruths(CountsPosterior):
    """The counts of one system on every drawn truth.

    Parameters
    ----------
    truths : integer array of shape (n_draws, n_items)
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    n_classes : int
    masses : array of shape (n_draws, n_items), optional
        What each item counts for in each draw: then these are the rates of a population, and sum to 1.
    """

    def __init__(
        self, truths: Codes, codes: Codes, n_classes: int, masses: npt.NDArray[np.float32] | None = None
    ) -> None:
        given = np.asarray(codes) >= 0
        self._all_truths = truths
        self._truths, self._codes, self._n_classes = truths[:, given], np.asarray(codes)[given], n_classes
        self._masses = masses
        if masses is not None:
            kept = np.asarray(masses, dtype=float)[:, given]
            self._masses = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._n_classes

    @property
    def mean_counts(self) -> Floats:
        """The expected counts, shape (n_classes, n_classes), rows the truth."""
        cells = self._truths.astype(np.int64) * self._n_classes + self._codes
        mass = None if self._masses is None else self._masses.ravel()
        sums = np.bincount(cells.ravel(), weights=mass, minlength=self._n_classes**2)
        return np.asarray(sums.reshape(self._n_classes, self._n_classes) / len(self._truths))

    def _tables(self, draws: npt.NDArray[np.intp]) -> Floats:
        mass = None if self._masses is None else self._masses[draws]
        return counts_by_cell(self._truths[draws], self._codes, self._n_classes, mass)

    def _blocks(self) -> Iterator[Floats]:
        rows = max(1, _BLOCK // self._n_classes**2)
        for first in range(0, len(self._truths), rows):
            yield self._tables(np.arange(first, min(first + rows, len(self._truths))))

    def estimate(self, metric: Metric) -> Estimate:
        """The distribution of a metric, as draws."""
        values = np.concatenate([metric(tables) for tables in self._blocks()])
        return DrawnEstimate(values, bounds=metric.bounds, name=metric.name)

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        """The joint distribution of two metrics, smoothed from the draws."""
        pairs = [(a(tables), b(tables)) for tables in self._blocks()]
        x, y = (np.concatenate(values) for values in zip(*pairs, strict=True))
        return JointEstimate.from_draws(x, y, bounds=(a.bounds, b.bounds), names=(a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        """The distribution of one count, as draws."""
        y, yhat = self._check_cell(truth, prediction)
        is_there = (self._truths == y) & (self._codes == yhat)
        counts = is_there.sum(axis=1) if self._masses is None else (is_there * self._masses).sum(axis=1)
        most = float(self._truths.shape[1]) if self._masses is None else 1.0
        return DrawnEstimate(counts.astype(float), bounds=(0.0, max(most, 1.0)), name="count")

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        """`n` of the draws, with replacement."""
        return self._tables(as_generator(random_state).integers(len(self._truths), size=n))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """`n` draws of the truth of all items, shape (n, n_items)."""
        if self._masses is not None:
            return DrawnRates.draw_truths(self, n, random_state)  # type: ignore[arg-type]
        return choose_truths(self._all_truths, check_integer(n, name="n", low=0), as_generator(random_state))


def choose_truths(kept: Codes, n: int, rng: np.random.Generator) -> Codes:
    """Some of the draws that the chains kept: all different where there are enough."""
    order = rng.permutation(len(kept))[:n] if n <= len(kept) else rng.integers(len(kept), size=n)
    return kept[order]
