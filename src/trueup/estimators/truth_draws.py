"""Draws of the truth: what the engine gives and every metric starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trueup._base.types import Codes, Floats


@dataclass(frozen=True, eq=False)
class TruthDraws:
    """Drawn truths.

    Attributes
    ----------
    truths : integer array of shape (n_draws, n_items)
        A class for each item in each draw; gold items have their own.
    posterior : array of shape (n_items, n_classes)
        P(class) of each item.
    diagnostics : mapping
    converged : bool
    notes : tuple of str
        Sentences a user should read.
    """

    truths: Codes = field(repr=False)
    posterior: Floats = field(repr=False)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    converged: bool = True
    notes: tuple[str, ...] = ()

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.truths)
