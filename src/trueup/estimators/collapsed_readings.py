"""p(truth | votes, systems) of a scan: draws hold, of each pattern of predictions, how many items are of each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Target
from trueup.data.labels import Labels
from trueup.data.rated import RatedReader
from trueup.data.scanning import LabelScan
from trueup.estimators.collapsed import Patterns, collapse, sample_items
from trueup.estimators.kinds import draw_kinds, witness_weights
from trueup.estimators.readings import (
    FEW_SWEEPS,
    LEAST_DRAWS,
    MOST_SHARES,
    MOST_SYSTEMS,
    Readings,
    class_distances,
    drawing_covariance,
)
from trueup.estimators.real_map import RealMap
from trueup.estimators.tilt import (
    MOST_TILTS,
    Directions,
    TiltedTruths,
    log_chances,
    solve_tilts,
    standard_moves,
    tilted_chances,
)
from trueup.noise.chain import SystemOutputs

_SAMPLE = 5_000  # items that tilts are found on
_MOST_NUMBERS = 4_000_000  # held at once
_MOST_COUNTS = 50_000_000  # kept of all draws together, but for the least number of draws


def class_features(codes: Codes, times: Floats, n_classes: int) -> Floats:
    """Features whose means are the accuracies of systems and the shares of the classes; (n_features, n, n_classes).

    Parameters
    ----------
    codes : integer array of shape (n_systems, n)
    times : array of shape (n,)
        The number of items that each row stands for.
    """
    given = (codes >= 0) @ times / times.sum()
    accuracies = (codes[:, :, None] == np.arange(n_classes)) / np.maximum(given, 1e-12)[:, None, None]
    shares = np.eye(n_classes if n_classes <= MOST_SHARES else 0, n_classes)
    spread = np.broadcast_to(shares[:, None, :], (len(shares), codes.shape[1], n_classes))
    return np.concatenate([accuracies, spread])


@dataclass(frozen=True, eq=False)
class CollapsedReadings(Readings):
    """Readings of which each row stands for several items; draws hold counts in place of truths.

    The counts of a draw have the shape (n_patterns, n_classes).

    Attributes
    ----------
    times : array of shape (n_rows,)
        The number of items of each row.
    codes : integer array of shape (n_systems, n_rows)
        What the systems say of them; rows of which they say the same lie together.
    n_drawn : int
        The number of items that the models were drawn on.
    """

    times: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    codes: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32), repr=False)
    n_drawn: int = 0

    @property
    def drawn_share(self) -> float:
        """The share of the items that the models were drawn on."""
        return float(self.n_drawn / self.times.sum())

    @property
    def unknown_share(self) -> float:
        """The share of the items whose class the models were not told."""
        return float(self.times[self.known < 0].sum() / self.times.sum())

    @cached_property
    def _first_rows(self) -> npt.NDArray[np.int64]:
        """The first row of each pattern."""
        is_new = (self.codes[:, 1:] != self.codes[:, :-1]).any(axis=0)
        return np.concatenate([[0], np.flatnonzero(is_new) + 1])

    @cached_property
    def patterns(self) -> Patterns:
        """What systems say together."""
        return Patterns(self.codes[:, self._first_rows], np.add.reduceat(self.times, self._first_rows))

    def _chance_covariance(self) -> Floats:
        return drawing_covariance(self.posterior, self.features, self.times)

    def _along(self, directions: Directions, shift: Floats) -> Floats:
        flat = self.features.reshape(len(self.features), -1)
        heavy = flat * np.repeat(self.times, self.features.shape[2])
        own = directions.features.reshape(directions.n, -1)
        return np.asarray(np.linalg.lstsq(heavy @ flat.T, heavy @ own.T, rcond=None)[0].T @ shift)

    def _tilted(self, directions: Directions, shift: Floats | None, rng: np.random.Generator) -> TiltedTruths:
        most = _MOST_COUNTS // (len(self._first_rows) * self.posterior.shape[1])
        n_draws = int(np.clip(most, min(LEAST_DRAWS, self.n_draws), self.n_draws))
        n_tilts = min(n_draws, MOST_TILTS)
        moves = standard_moves(n_tilts, directions.n, rng) * directions.scales
        some = np.sort(rng.choice(len(self.times), size=_SAMPLE, p=self.times / self.times.sum()))
        moved = moves if shift is None else moves + shift
        tilts = solve_tilts(self.posterior[some], directions.features[:, some], moved, rng)
        counts = self._counts(directions.features, tilts[np.arange(n_draws) % n_tilts], rng)
        return TiltedTruths(counts, float(n_tilts))

    def _counts(self, features: Floats, tilts: Floats, rng: np.random.Generator) -> Codes:
        """How many items of each pattern are of each class, for each tilt."""
        n_rows, n_classes = self.posterior.shape
        logs, times = log_chances(self.posterior), self.times.astype(np.int64)
        counts = np.empty((len(tilts), len(self._first_rows), n_classes), dtype=np.int64)
        rows = max(1, _MOST_NUMBERS // (n_rows * n_classes))
        for first in range(0, len(tilts), rows):
            chances = tilted_chances(logs, features, tilts[first : first + rows])
            drawn = rng.multinomial(times, chances / chances.sum(axis=2, keepdims=True))
            counts[first : first + rows] = np.add.reduceat(drawn, self._first_rows, axis=1)
        return counts


def counts_of_systems(truths: npt.NDArray[Any], patterns: Patterns) -> Floats:
    """Confusion counts of each system, shape (n_draws, n_systems, n_classes, n_classes).

    Parameters
    ----------
    truths : array of shape (n_draws, n_patterns, n_classes)
        How many items of each pattern are of each class, or their masses.
    """
    named = patterns.codes[:, :, None] == np.arange(truths.shape[2])
    return np.stack([np.einsum("dpy,pc->dyc", truths.astype(float), one.astype(float)) for one in named], axis=1)


def masses_of(truths: npt.NDArray[Any], target: Target, seed: int) -> npt.NDArray[Any]:
    """What each pattern and class counts for in each draw: its items, or its mass in the population they came from.

    The masses are those of Rubin's Bayesian bootstrap, summed over items.
    """
    return truths if target == "sample" else np.random.default_rng(seed).standard_gamma(truths)


def read_scan(
    scan: LabelScan[Labels], real_map: RealMap, *, n_draws: int, seed: int, patterns: Patterns | None = None
) -> CollapsedReadings:
    """What the votes of a rated scan say of its systems, under every assumption.

    Parameters
    ----------
    scan : LabelScan
        Of which those systems are labelers that help to read the votes.
    patterns : Patterns, optional
        What systems say together, where there are several.
    """
    reader = scan.reader
    assert isinstance(reader, RatedReader)
    rng = np.random.default_rng(seed)
    labels, said = sample_items(scan, seed)
    n_classes, n_systems = scan.n_classes, len(said)
    weights = (
        np.ones(n_systems) if patterns is None else witness_weights(patterns.codes.astype(np.int64), patterns.times)
    )
    outputs = SystemOutputs(said.astype(np.int64), np.full(n_systems, n_classes), weights)
    sweeps: dict[str, Any] = dict(FEW_SWEEPS)
    kinds = draw_kinds(labels, outputs, said[list(reader.raters)], rng=rng, **sweeps)
    cells = collapse(scan)
    judged = slice(MOST_SYSTEMS)
    return CollapsedReadings(
        kinds,
        np.zeros(len(cells.times), dtype=bool),
        class_features(said[judged], np.ones(labels.n_items), n_classes),
        cells.posterior,
        class_features(cells.codes[judged], cells.times, n_classes),
        np.zeros((1, 1)) if patterns is None else class_distances(patterns.codes[judged], patterns.times),
        cells.known,
        np.full(len(cells.times), -1, dtype=np.int32),
        real_map,
        n_draws,
        seed,
        times=cells.times,
        codes=cells.codes,
        n_drawn=labels.n_items,
    )
