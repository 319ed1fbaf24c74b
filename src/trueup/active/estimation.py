"""From the answers that count to draws of the metric: what `ActiveTest.estimate` rests on, without a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trueup._base.types import Target
from trueup.active.estimators import Estimated, MetricEstimator, Request, estimate_metric
from trueup.active.pool import Pool
from trueup.active.rectified import PoolModel, model_of
from trueup.active.undecided import pool_with_outside, two_worlds
from trueup.noise import NoiseModel
from trueup.sessions.counting import Counted
from trueup.sessions.progress import Progress

_N_DRAWS = 1024


@dataclass(frozen=True, eq=False)
class Estimation:
    """How a metric is estimated on a pool; what does not depend on the answers is worked out once.

    Attributes
    ----------
    pool : Pool
    estimator : MetricEstimator
    noise : str or NoiseModel
    target : {"sample", "population"}
    """

    pool: Pool
    estimator: MetricEstimator
    noise: str | NoiseModel
    target: Target = "sample"

    @cached_property
    def model(self) -> PoolModel:
        """How answers correct what the votes say."""
        return model_of(self.pool)

    @cached_property
    def _with_outside(self) -> Estimation:
        """The same with one more class, for sessions with items that are none of the classes."""
        return replace(self, pool=pool_with_outside(self.pool))

    def after(
        self, counted: Counted, *, systems: Sequence[int] = (0,), category: int | None = None, seed: int = 0
    ) -> Estimated:
        """Draws for all systems, given the answers that count.

        Parameters
        ----------
        counted : Counted
        systems : sequence of int
            A system, or two whose difference is asked for. Where draws are undecided, half of the values have these at
            worst and half at best for it; those of other systems mean nothing then.
        category : int, optional
            One only, in place of the mean over all.
        seed : int
            The same answers and the same seed give the same numbers.
        """
        has_outside = bool((counted.progress.truth == self.pool.n_classes).any())
        setting = self._with_outside if has_outside else self
        if not counted.undecided.any():
            return self._estimate(setting, counted.progress, category, seed)
        worlds = two_worlds(setting.pool, counted, systems)
        lowest, highest = (self._estimate(setting, world, category, seed) for world in worlds)
        if len(lowest.values) == 1:  # two numbers without a spread are no interval either
            return replace(lowest, values=(lowest.values + highest.values) / 2)
        return replace(lowest, values=np.concatenate([lowest.values, highest.values]), n_worlds=2)

    def _estimate(self, setting: Estimation, progress: Progress, category: int | None, seed: int) -> Estimated:
        rng = np.random.default_rng([seed, int(progress.vetted.sum()), 1])  # no news, no other number
        return estimate_metric(
            self.estimator,
            Request(setting.pool, progress, setting.model, self.noise, self.target, _N_DRAWS, rng, category, self.pool),
        )
