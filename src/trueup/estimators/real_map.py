"""How far real crowds are from what models make of their votes: learned from sets with truth, shipped as numbers.

On each set, labelers were graded as systems from the votes of the others. `experiments/real_crowds` fits the widening
without each family of sets, to see what it holds there, and ships that of all sets; the floor and what slices have of
their own were set by hand while looking at the same sets, and nothing fits them. The map claims no guarantee: a crowd
that is wrong together in a way no set was is outside of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_number
from trueup.data.labels import Labels
from trueup.exceptions import Sentence

LEVEL_SCALE = 1.959963984540054  # of a 95% interval of the normal law


@dataclass(frozen=True)
class RealMap:
    """An interval of the accuracy is centre ± widening · √(s.d.² + floor²), where s.d. is what models disagree by.

    Attributes
    ----------
    widening : float
        Of 95% intervals; 1.96 where the models' own spread and the floor are all there is.
    floor : float
        A standard deviation that no agreement of models takes away.
    slice_share : float
        The part of that variance by which a slice differs from all items.
    n_sets, n_families : int
        What it was learned from.
    classes, votes_per_item : (float, float)
        The range of the sets; outside of it the map is a guess.
    """

    widening: float
    floor: float
    slice_share: float = 0.6
    n_sets: int = 0
    n_families: int = 0
    classes: tuple[float, float] = (2, 10)
    votes_per_item: tuple[float, float] = (1.0, 1000.0)

    def __post_init__(self) -> None:
        check_number(self.widening, name="widening", low=0.0, strict=True)
        check_number(self.floor, name="floor", low=0.0)

    def deviations(self, spread: Floats, unknown: float = 1.0) -> Floats:
        """Standard deviations of the systems' metrics, from the spread of the models about them.

        Parameters
        ----------
        spread : array of shape (n_systems,)
        unknown : float
            The share of the items that nobody vetted: models are wrong about these alone.
        """
        return np.asarray(self.widening / LEVEL_SCALE * np.sqrt(spread**2 + (self.floor * unknown) ** 2))

    def covariance(self, spread: Floats, blind: Floats, unknown: float = 1.0) -> Floats:
        """Of all that is measured at once: what is wrong about one is wrong about another as far as they are alike.

        Parameters
        ----------
        spread : array of shape (n,)
            What the models disagree by about each.
        blind : array of shape (n, n)
            How much two measures have in common; see `blind_correlations`.
        unknown : float
        """
        deviations = self.deviations(spread, unknown)
        return np.asarray(np.outer(deviations, deviations) * blind)

    def doubts(self, labels: Labels) -> list[Sentence]:
        """What lies outside of the sets that the map was learned from."""
        votes = labels.n_witnessed / max(labels.n_items, 1)
        told = []
        for name, value, (low, high) in (
            ("classes", float(labels.n_classes), self.classes),
            ("votes an item", votes, self.votes_per_item),
        ):
            if not low * 0.8 <= value <= high * 1.25:
                told.append(
                    Sentence(
                        f"These data have {value:.3g} {name}, and the {self.n_sets} sets behind the widening as real "
                        f"crowds do had {low:.3g} to {high:.3g}: it is a guess here; vet some items drawn at random."
                    )
                )
        return told

    def to_dict(self) -> dict[str, float]:
        """The numbers, JSON-able."""
        return asdict(self)


@lru_cache(maxsize=1)
def shipped_map() -> RealMap:
    """The map that comes with the library."""
    record = json.loads(files("trueup.estimators").joinpath("real_map.json").read_text(encoding="utf-8"))
    numbers: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    return RealMap(**numbers)
