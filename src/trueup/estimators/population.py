"""What items stand for: how much each counts, and which of them came together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats


@dataclass(frozen=True, eq=False)
class Population:
    """The population that items are a sample of.

    Attributes
    ----------
    clusters : integer array of shape (n_items,), optional
        Items that came together, as several outputs for one prompt did: a sample of clusters, not of items.
    weights : array of shape (n_items,), optional
        What each item counts for.
    """

    clusters: Codes | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)

    def masses(self, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """What each item counts for in each draw, by the Bayesian bootstrap (Rubin 1981) over clusters or items."""
        n_draws, n_items = shape
        if self.clusters is None:
            masses = rng.standard_exponential((n_draws, n_items), dtype=np.float32)
        else:
            masses = rng.standard_exponential((n_draws, int(self.clusters.max()) + 1), dtype=np.float32)
            masses = masses[:, self.clusters]
        if self.weights is not None:
            masses *= self.weights.astype(np.float32)
        return masses
