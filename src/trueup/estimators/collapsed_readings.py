"""p(truth | votes, systems) of a scan: draws hold, of each pattern of predictions, how many items are of each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Target
from trueup.data.aligned import AlignedPredictions
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.assumptions import Assumption
from trueup.estimators.collapsed import Patterns, collapse, sample_items
from trueup.estimators.gold_only import GoldSample, gold_only_estimate
from trueup.estimators.kinds import different_systems, draw_kinds, first_of_equals, means_of, witness_weights
from trueup.estimators.metric_scope import gold_in_denominator
from trueup.estimators.population import unseen_counts
from trueup.estimators.readings import FEW_SWEEPS, MOST_SYSTEMS, Readings, n_moved_shares
from trueup.estimators.real_map import RealMap
from trueup.estimators.rectified import rectified_counts
from trueup.estimators.system_evidence import fitted_posterior, with_doubt, with_systems
from trueup.estimators.tilt import Directions, draw_tilts, log_chances, tilted_chances
from trueup.estimators.truth import Basis, gold_share
from trueup.estimators.truth_draws import mixed_draws
from trueup.metrics import Metric
from trueup.noise.system_outputs import SystemOutputs
from trueup.posteriors import Estimate

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
    shares = np.eye(n_moved_shares(n_classes), n_classes)
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
    vetted : integer array of shape (n_rows,)
        The class of vetted items that were drawn by chance and that the models were not told, -1 for all other rows.
    chances : array of shape (n_rows,)
        With which vetted items were drawn; NaN for all other rows.
    positive : int
        Code of the positive class.
    """

    times: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    codes: Codes = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32), repr=False)
    vetted: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    chances: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    positive: int = 1

    @property
    def row_times(self) -> Floats:
        """How many items each row stands for."""
        return self.times

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

    @property
    def _n_tilted(self) -> int:
        return self._n_within(_MOST_COUNTS // (len(self._first_rows) * self.posterior.shape[1]))

    def _tilted(self, directions: Directions, moves: Floats | None, n_draws: int, rng: np.random.Generator) -> Codes:
        tilts = draw_tilts(self.posterior, directions, n_draws, rng, moves=moves, times=self.times)
        return self._counts(directions.features, tilts, rng)

    def _counts(self, features: Floats, tilts: Floats, rng: np.random.Generator) -> Codes:
        """How many items of each pattern are of each class, for each tilt."""
        n_rows, n_classes = self.posterior.shape
        logs, times = log_chances(self.posterior), self.times.astype(np.int64)
        counts = np.empty((len(tilts), len(self._first_rows), n_classes), dtype=np.int64)
        told = np.flatnonzero(self.vetted >= 0)
        rows = max(1, _MOST_NUMBERS // (n_rows * n_classes))
        for first in range(0, len(tilts), rows):
            chances = tilted_chances(logs, features, tilts[first : first + rows])
            drawn = rng.multinomial(times, chances / chances.sum(axis=2, keepdims=True))
            drawn[:, told] = np.eye(n_classes, dtype=np.int64)[self.vetted[told]]
            counts[first : first + rows] = np.add.reduceat(drawn, self._first_rows, axis=1)
        return counts

    @cached_property
    def _outputs(self) -> AlignedPredictions:
        """What systems say of the rows."""
        nothing = np.zeros(len(self.codes), dtype=np.int64)
        names = vocabulary_from(list(range(len(self.codes))))
        n_classes = self.posterior.shape[1]
        return AlignedPredictions(names, self.codes, None, None, self.positive, nothing, nothing, nothing, n_classes)

    @property
    def n_vetted(self) -> int:
        """Number of items that were drawn by chance and vetted."""
        return int((self.vetted >= 0).sum())

    def gold_seen(self, metric: Metric) -> int:
        """Vetted items drawn by chance that a metric looks at."""
        if not self.n_vetted:
            return 0
        return gold_in_denominator(metric, self._outputs, self.vetted, self.positive)

    def basis(self, metric: Metric) -> Basis:
        """What the headline of a metric rests on."""
        return "gold" if gold_share(self.gold_seen(metric)) == 1 else "votes"

    def alone(self, metric: Metric, classes: npt.NDArray[Any]) -> Estimate | None:
        """What vetted items drawn by chance say by themselves of the first system; None where it looks at none."""
        if not self.n_vetted or not self.gold_seen(metric):
            return None
        told = np.flatnonzero(self.vetted >= 0)
        # Next to all items of the files they are so few that it does not matter that there is an end to these.
        sample = GoldSample(self.vetted[told], self.chances[told], classes, self.positive, "population")
        rng = np.random.default_rng(self.seed)
        return gold_only_estimate(self._outputs.at_items(told), metric, sample, rng=rng)

    @cached_property
    def _rectified(self) -> dict[tuple[str, int], Codes]:
        return {}

    def counts_for(self, metric: Metric, assumption: Assumption) -> Codes:
        """Draws of counts for the headline of a metric: gold first, then the votes under an assumption.

        As in memory, vetted items have their share of the draws below what is enough.
        """
        share = gold_share(self.gold_seen(metric))
        if share == 1:
            return self._counts_from_gold(metric)
        votes = self.assuming(assumption).truths
        if share == 0:
            return votes
        return mixed_draws(votes, self._counts_from_gold(metric), share, np.random.default_rng([self.seed, 18]))

    def _counts_from_gold(self, metric: Metric) -> Codes:
        key = (metric.name, id(metric.function))
        if key not in self._rectified:
            most = _MOST_COUNTS // (len(self._first_rows) * self.posterior.shape[1])
            self._rectified[key] = rectified_counts(
                self.posterior,
                self._outputs.of_systems(first_of_equals(self.codes)),
                metric,
                gold=self.vetted,
                chance=self.chances,
                known=self.known,
                positive=self.positive,
                n_draws=self._n_within(most),
                rng=np.random.default_rng([self.seed, 17]),
                times=self.times,
                first_rows=self._first_rows,
            )
        return self._rectified[key]


def counts_of_systems(truths: npt.NDArray[Any], patterns: Patterns, target: Target, seed: int) -> Floats:
    """Confusion counts of each system, shape (n_draws, n_systems, n_classes, n_classes).

    Those of the items, or for a population the masses of Rubin's Bayesian bootstrap, summed over items, and what none
    of the items showed.

    Parameters
    ----------
    truths : array of shape (n_draws, n_patterns, n_classes)
        How many items of each pattern are of each class.
    """
    rng, n_classes = np.random.default_rng(seed), truths.shape[2]
    masses = truths.astype(float) if target == "sample" else rng.standard_gamma(truths)
    named = patterns.codes[:, :, None] == np.arange(n_classes)
    counts = np.stack([np.einsum("dpy,pc->dyc", masses, one.astype(float)) for one in named], axis=1)
    if target == "sample":
        return counts
    return counts + unseen_counts(patterns.codes, n_classes, len(truths), rng)


def read_scan(
    scan: LabelScan[Labels],
    real_map: RealMap,
    *,
    n_draws: int,
    seed: int,
    positive: int,
    patterns: Patterns | None = None,
) -> CollapsedReadings:
    """What the votes of a rated scan say of its systems, under every assumption.

    Parameters
    ----------
    scan : LabelScan
        With what the systems say.
    patterns : Patterns, optional
        What systems say together, where there are several.
    """
    rng = np.random.default_rng(seed)
    labels, said = sample_items(scan, seed)
    n_classes, n_systems = scan.n_classes, len(said)
    weights = (
        np.ones(n_systems) if patterns is None else witness_weights(patterns.codes.astype(np.int64), patterns.times)
    )
    outputs = SystemOutputs.of_classes(said.astype(np.int64), n_classes, weights)
    sweeps: dict[str, Any] = dict(FEW_SWEEPS)
    kinds = draw_kinds(labels, outputs, different_systems(said), rng=rng, **sweeps)
    cells, vetted = collapse(scan)
    n_cells = len(cells.times)
    codes = np.concatenate([cells.codes, vetted.codes], axis=1)
    order = np.lexsort(codes[::-1])  # rows of which systems say the same lie together
    codes, times = codes[:, order], np.append(cells.times, np.ones(len(vetted)))[order]
    known = np.append(cells.known, np.full(len(vetted), -1))[order]
    posterior = np.concatenate([cells.posterior, vetted.posterior])[order]
    posterior = with_systems(posterior, SystemOutputs.of_classes(codes.astype(np.int64), n_classes, weights), times)
    posterior = with_doubt(posterior, known)
    judged = slice(MOST_SYSTEMS)
    part = class_features(said[judged], np.ones(labels.n_items), n_classes)
    return CollapsedReadings(
        kinds,
        np.zeros(len(times), dtype=bool),
        part,
        means_of(part, fitted_posterior(labels, outputs)),
        posterior,
        class_features(codes[judged], times, n_classes),
        known.astype(np.int32),
        real_map,
        n_draws,
        seed,
        times=times,
        codes=codes,
        vetted=np.append(np.full(n_cells, -1), vetted.truths)[order].astype(np.int32),
        chances=np.append(np.full(n_cells, np.nan), vetted.chances)[order],
        positive=positive,
    )
