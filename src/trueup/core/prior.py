"""What real sets taught: how far levels are from what votes say, and how much votes are to be believed.

The level of a system is its accuracy; that of a class is its share. On the scale arcsin √level, the true level is that
of the base plus a deviation with a Student t distribution of scale τ. `experiments/real_crowds` fits τ to open sets
with truth, each family of sets left out in turn; `trueup.calibrate` fits it to a user's own sets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_number


@dataclass(frozen=True)
class CrowdPrior:
    """How far the truth of real sets was from what their votes said.

    Attributes
    ----------
    level_scale : float. τ, the scale of arcsin √level.
    slope, slope_scale : float. Mean and standard deviation of β, the power to which the base is believed.
    part_share : float
        The part of the variance of a level that is the own of a slice of the items, or of one predicted class.
    degrees : float. Degrees of freedom of the Student t.
    n_sets, n_families : int. What it was fitted to.
    """

    level_scale: float = 0.095
    slope: float = 0.8
    slope_scale: float = 0.4
    part_share: float = 0.5
    degrees: float = 4.0
    n_sets: int = 0
    n_families: int = 0

    def __post_init__(self) -> None:
        for name in ("level_scale", "slope_scale", "degrees"):
            check_number(getattr(self, name), name=name, low=0.0, strict=True)
        check_number(self.part_share, name="part_share", low=0.0, high=1.0)

    def to_dict(self) -> dict[str, float]:
        """The numbers, JSON-able."""
        return asdict(self)


def to_angle(level: Floats) -> Floats:
    """The angle arcsin √level."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(level, 0.0, 1.0))))


def from_angle(angle: Floats) -> Floats:
    """The level of an angle; an angle beyond 0 or π/2 is moved there."""
    return np.asarray(np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2)


def angle_slope(level: Floats) -> Floats:
    """How fast a level grows with its angle, kept away from 0 at the ends."""
    return np.asarray(2 * np.sqrt(np.maximum(level * (1 - level), 1e-4)))
