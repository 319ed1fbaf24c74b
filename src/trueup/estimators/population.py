"""What items stand for: how much each counts, which of them came together, and what none of them showed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Target

_UNSEEN = 0.5  # units that are right, and as many that are wrong: Jeffreys' prior of a share


@dataclass(frozen=True, eq=False)
class Population:
    """The population that items are a sample of: of items one by one, unless they came in clusters.

    Attributes
    ----------
    clusters : integer array of shape (n_items,), optional
        Items that came together, as several outputs for one prompt did: a sample of clusters, not of items.
    weights : array of shape (n_items,), optional
        What each item counts for.
    spread : array of shape (n_items,), optional
        How uncertain that is: 1 for items of a sample of endlessly many, the root of the share that was not drawn for
        those of a finite pool, and 0 for items that stand for themselves. Without clusters.
    times : array of shape (n_items,), optional
        How many items each of these stands for.
    """

    clusters: Codes | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    spread: Floats | None = field(default=None, repr=False)
    times: Floats | None = field(default=None, repr=False)

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
    codes: Codes,
    n_classes: int,
    n_draws: int,
    rng: np.random.Generator,
    *,
    units: Floats | None = None,
) -> Floats:
    """What a population may have that these items do not, to be added to confusion counts that stand for it.

    Half an item on which a system is right, and half one on which it is wrong. Without them what was not seen in a
    sample could not happen at all, and few clusters would look alike by chance. Systems that answer the same items
    share these, so that a copy differs in nothing.

    Parameters
    ----------
    codes : integer array of shape (n_systems, n_items)
        The predicted classes, -1 for none.
    units : array of shape (n_systems,), optional
        What an item counts for, or a whole cluster; by default 1.

    Returns
    -------
    array of shape (n_draws, n_systems, n_classes, n_classes)
        Rows the truth, columns the classes that the system names.
    """
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
