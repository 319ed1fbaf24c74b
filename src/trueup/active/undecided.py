r"""Draws that count without a class: what the metric would be if all of them were against the system, and all for it.

Nobody can tell the class of some items, and these are not like the others, so no model of the others says what they
are. Each is given the class that lowers the metric most, then the one that raises it most. Half of the draws of the
estimate come from either world. The ends of an interval of such draws with as much on either side solve

.. math:: \Phi(-c) + \Phi(-c - \Delta/\sigma) = 1 - \text{level},

where :math:`\Delta` is what lies between the two worlds: the interval of Imbens and Manski (2004) for a number that is
known up to bounds. It holds the truth whatever the undecided items are. The shortest interval does not: it takes from
the end where draws lie farther apart.

References
----------
G. Imbens, C. Manski, "Confidence intervals for partially identified parameters", Econometrica 72, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._base.types import Positions
from trueup.active.influence import influence
from trueup.active.pool import Pool
from trueup.data.encoding import vocabulary_from
from trueup.data.votes import recoded
from trueup.posteriors import DrawnEstimate, IntervalKind
from trueup.sessions.counting import Counted
from trueup.sessions.progress import Progress

_OUTSIDE = "none of these"


class UndecidedEstimate(DrawnEstimate):
    """Draws of which half have the undecided items at worst, and half at best."""

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal") -> tuple[float, float]:
        """An interval that holds whatever the undecided items are, by default with as much on either side.

        Parameters
        ----------
        level : float
        kind : {"hdi", "equal"}
            The shortest one may not hold as often as it says.
        """
        return super().interval(level, kind)


def two_worlds(pool: Pool, counted: Counted, systems: Sequence[int]) -> tuple[Progress, Progress]:
    """The answers with the undecided draws at worst and at best.

    Parameters
    ----------
    pool : Pool
    counted : Counted
    systems : sequence of int
        A system, or two whose difference is asked for, the first minus the second.
    """
    effect = influence(pool, pool.prior, system=systems[0])
    for other in systems[1:]:
        effect = effect.minus(influence(pool, pool.prior, system=other))
    effects = effect.effects[counted.undecided]
    lowest, highest = (_filled(counted, of_items) for of_items in (effects.argmin(axis=1), effects.argmax(axis=1)))
    return lowest, highest


def _filled(counted: Counted, codes: Positions) -> Progress:
    truth = counted.progress.truth.copy()
    truth[counted.undecided] = codes
    return replace(counted.progress, truth=truth)


def pool_with_outside(pool: Pool) -> Pool:
    """The pool with one more class, for items that are none of the classes; no vote and no system names it."""
    name = _outside_name(pool.labels.classes.tolist())
    classes = vocabulary_from([*pool.labels.classes.tolist(), name])
    labels = recoded(
        pool.labels,
        pool.labels.items,
        pool.labels.labelers,
        classes,
        pool.labels.answers[pool.labels.n_classes :].tolist(),
    )
    tables = pool.aligned.probabilities
    aligned = replace(
        pool.aligned,
        n_classes=labels.n_classes,
        probabilities=None if tables is None else np.pad(tables, [(0, 0), (0, 0), (0, 1)]),
    )
    return replace(pool, labels=labels, aligned=aligned, prior=np.pad(pool.prior, [(0, 0), (0, 1)]))


def _outside_name(classes: list[Any]) -> Any:
    """A name of the kind of the others, so that functions of users can compare them."""
    if all(isinstance(name, int) for name in classes):
        return max(classes) + 1
    name = _OUTSIDE
    while name in classes:
        name += "_"
    return name
