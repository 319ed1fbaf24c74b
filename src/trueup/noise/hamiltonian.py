"""What chains with Hamiltonian steps share: how steps are set, and what a chain learns of their scale.

Given the states of the items, parameters move little. So some also move by Hamiltonian steps on their own posterior,
the states summed over (Neal 2011, MCMC using Hamiltonian dynamics). Right after it the states are drawn anew from their
law given the parameters, so the chain keeps the joint posterior. Step and scale are learned in the warm-up, and stay as
they are after it. The steps themselves are compiled (`kernels.compiled_rating_steps`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup._base.types import Floats

N_LEAPFROG = 24  # of a step, about
BURN_IN = 50  # sweeps before the first step: from a start far off, it would fall into any reading
MOST_JOINT = 64  # numbers up to which their covariance is learned, and not their variances alone
MOST_NUMBERS = 100  # up to which there are steps: of many raters, they cost more than they move
JITTER = 0.6  # of the logarithm of a step
LEAST_ROW = 1e-4  # a row of a system with a rarer answer stays as it is
SWEEPS_A_STEP = 24  # where nothing is compiled, and at most
_FIRST_VARIANCE = 0.04
_FIRST_STEP = 0.5
LEARNED_EVERY = 25
ACCEPTED = 0.7
WORST = -1000.0  # change of the energy at which a path is given up
FURTHEST = 9.0  # value that a free number counts for at most, where its variance is learned


class StepScale(NamedTuple):
    """What a chain has learned of the scale of its steps; changed in place.

    Attributes
    ----------
    mean : array of shape (n,)
        Of the free numbers, over the warm-up; earlier ones count for less.
    covariance, root : array of shape (n, n) or (n, 1)
        Their covariance and its Cholesky root, or their variances and the roots of these.
    progress : array of shape (2,)
        Steps of the warm-up, and the logarithm of the step.
    """

    mean: Floats
    covariance: Floats
    root: Floats
    progress: Floats

    @classmethod
    def start(cls, n: int) -> StepScale:
        """Before the first step."""
        covariance = np.eye(n) if n <= MOST_JOINT else np.ones((n, 1))
        root = np.sqrt(_FIRST_VARIANCE) * covariance
        return cls(np.zeros(n), _FIRST_VARIANCE * covariance, root, np.array([0.0, np.log(_FIRST_STEP)]))
