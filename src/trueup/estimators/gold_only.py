"""What vetted items alone say of a metric, with no votes and no model: to stand beside an answer from votes.

A metric of counts gets a Dirichlet posterior of the cells that it tells apart, with Jeffreys' prior for a share: half
an item for right and half an item for wrong. The items that nobody vetted are drawn from it, so a finite pool counts
as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from trueup._base.types import Codes, Floats, Positions, Target
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.metric_scope import counts_right_only, only_class
from trueup.estimators.population import population_for
from trueup.estimators.rectified import check_chances, design_weights, rectified_truths, scale_to_effective
from trueup.estimators.system_values import system_values
from trueup.metrics import Metric
from trueup.posteriors import DrawnEstimate, Estimate

_MOST_CELLS = 20_000  # of a table, or of the cells that a metric tells apart
_BLOCK = 5_000_000  # numbers held at once


@dataclass(frozen=True, eq=False)
class GoldSample:
    """Vetted items that were drawn by chance, and what is asked of them.

    Attributes
    ----------
    gold : integer array of shape (n_items,)
        The class of the vetted items that were drawn, -1 for all others.
    chance : array of shape (n_items,)
        The inclusion probability of each vetted item; not looked at elsewhere.
    classes : array of shape (n_classes,)
        Names, for metrics that are functions of names.
    positive : int
        Code of the positive class.
    target : {"sample", "population"}
        Of these items, or of all there could have been.
    """

    gold: Codes
    chance: Floats
    classes: npt.NDArray[Any]
    positive: int
    target: Target = "sample"

    def __post_init__(self) -> None:
        check_chances(self.gold, self.chance)

    @property
    def finite(self) -> bool:
        """Whether these items are all that is asked about."""
        return self.target == "sample"


def gold_only_estimate(
    outputs: AlignedPredictions,
    metric: Metric,
    sample: GoldSample,
    *,
    system: int = 0,
    minus: int | None = None,
    n_draws: int = 4000,
    rng: np.random.Generator,
) -> Estimate:
    """The metric of one system, or of one less another, from vetted items that were drawn by chance.

    Parameters
    ----------
    outputs : AlignedPredictions
    metric : Metric
    sample : GoldSample
    system : int
        The place of the system.
    minus : int, optional
        The place of another one, whose metric on the same draws is taken away.
    n_draws : int
    rng : Generator
    """
    places = [system] if minus is None else [system, minus]
    values = _draw_values(outputs.of_systems(np.array(places)), metric, sample, n_draws, rng)
    low, high = metric.bounds
    if minus is None:
        return DrawnEstimate(values[:, 0], bounds=metric.bounds, name=metric.name)
    return DrawnEstimate(values[:, 0] - values[:, 1], bounds=(low - high, high - low), name=metric.name)


def _draw_values(
    outputs: AlignedPredictions, metric: Metric, sample: GoldSample, n_draws: int, rng: np.random.Generator
) -> Floats:
    """The metric of one or two systems, shape (n_draws, n_systems)."""
    cells = _choose_cells(metric, outputs.n_classes, outputs.n_systems, sample.positive)
    if cells is not None:
        return _draw_from_cells(cells, outputs, metric, sample, n_draws, rng)
    # Elsewhere the correction of a model that knows the shares of the classes and nothing else.
    gold, chance = sample.gold, sample.chance
    vetted = gold >= 0
    shares = np.bincount(gold[vetted], weights=1 / chance[vetted], minlength=outputs.n_classes)
    shares = shares * (vetted.sum() / max(float(shares.sum()), 1.0)) + 0.5
    posterior = np.broadcast_to(shares / shares.sum(), (len(gold), len(shares)))
    truths = rectified_truths(
        posterior, outputs, metric, gold=gold, chance=chance, positive=sample.positive, n_draws=n_draws, rng=rng
    )
    return system_values(
        truths,
        outputs,
        metric,
        classes=sample.classes,
        positive=sample.positive,
        random_state=rng,
        population=population_for(sample.target),
    )


# ------------------------------------------------------------------ cells


@dataclass(frozen=True, eq=False)
class _RightCells:
    """Which of the systems are right."""

    n_systems: int
    prior_mass = 1.0

    def place(self, truth: Codes, codes: Codes) -> Positions:
        """The cell of each item."""
        return np.asarray(np.ravel_multi_index(tuple((codes == truth).astype(np.int64)), (2,) * self.n_systems))

    def in_table(self) -> Positions:
        """The place of each cell in the table of counts of each system, shape (n_systems, n_cells)."""
        is_right = np.indices((2,) * self.n_systems).reshape(self.n_systems, -1)
        return np.where(is_right == 1, 0, 1)  # a right item of the first class, or a wrong one


@dataclass(frozen=True, eq=False)
class _ClassCells:
    """The truth and what each system says, with classes that the metric does not tell apart as one.

    Attributes
    ----------
    group : integer array of shape (n_classes,)
        The group of each class.
    member : integer array of shape (n_groups,)
        One class of each group.
    """

    group: Codes
    member: Codes
    n_systems: int
    prior_mass = 2.0

    @property
    def _shape(self) -> tuple[int, ...]:
        return (len(self.member),) * (self.n_systems + 1)

    def place(self, truth: Codes, codes: Codes) -> Positions:
        """The cell of each item."""
        return np.asarray(np.ravel_multi_index((self.group[truth], *self.group[codes]), self._shape))

    def in_table(self) -> Positions:
        """The place of each cell in the table of counts of each system, shape (n_systems, n_cells)."""
        truth, *said = np.indices(self._shape).reshape(self.n_systems + 1, -1)
        return np.stack([self.member[truth] * len(self.group) + self.member[one] for one in said])


def _choose_cells(metric: Metric, n_classes: int, n_systems: int, positive: int) -> _RightCells | _ClassCells | None:
    """The cells that the metric tells apart; None where these are too many, or it is no metric of counts."""
    if metric.needs != "counts" or n_classes**2 > _MOST_CELLS:
        return None
    if counts_right_only(metric, n_classes):
        return _RightCells(n_systems)
    one = only_class(metric, n_classes, positive)
    if one is not None:
        group = (np.arange(n_classes) == one).astype(np.int64)
        return _ClassCells(group, np.array([int(one == 0), one]), n_systems)
    every = np.arange(n_classes)
    return _ClassCells(every, every, n_systems) if n_classes ** (n_systems + 1) <= _MOST_CELLS else None


def _draw_from_cells(
    cells: _RightCells | _ClassCells,
    outputs: AlignedPredictions,
    metric: Metric,
    sample: GoldSample,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draws of the shares of the cells, and the metric of the counts that they make."""
    codes = outputs.outputs("classes")
    is_predicted = np.asarray((codes >= 0).all(axis=0))
    vetted = np.flatnonzero((sample.gold >= 0) & is_predicted)
    in_table = cells.in_table()
    n_cells = in_table.shape[1]
    places = cells.place(sample.gold[vetted], codes[:, vetted])
    chance = sample.chance[vetted]
    weights = design_weights(chance) if sample.finite else scale_to_effective(1 / chance)
    mass = np.bincount(places, weights=weights, minlength=n_cells) + cells.prior_mass / n_cells
    known = np.bincount(places, minlength=n_cells)
    n_others = int(is_predicted.sum()) - len(vetted)
    shape = (outputs.n_classes, outputs.n_classes)
    into_tables = [
        csr_array((np.ones(n_cells), (row, np.arange(n_cells))), (shape[0] ** 2, n_cells)) for row in in_table
    ]
    values = np.empty((n_draws, outputs.n_systems))
    rows = max(1, _BLOCK // max(n_cells, shape[0] ** 2))
    for first in range(0, n_draws, rows):
        shares = rng.dirichlet(mass, size=min(rows, n_draws - first))
        counts = known + rng.multinomial(n_others, shares) if sample.finite else shares
        for system, into_table in enumerate(into_tables):
            values[first : first + rows, system] = metric((into_table @ counts.T).T.reshape(-1, *shape))
    return values
