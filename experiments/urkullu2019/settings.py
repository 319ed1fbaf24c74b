"""What is simulated: Section 4 of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trueup as tu

__all__ = ["CASES", "FULL", "LEVELS", "QUICK", "REFERENCE", "SHOWN", "VIEWS", "Array", "Design", "Plan"]

Array = npt.NDArray[np.float64]

CASES = tuple(tu.simulate.URKULLU_CASES)
LEVELS = (3, 5, 9, 15, 27, 45)  # expected labels per item, and per labeler
SHOWN = (5, 15, 45)  # the levels in the paper's Figures 11–15

# DGT is Algorithm 1 to the letter, which votes anew, ties and all, for each classifier. "DGT once" solves ties once.
VIEWS = ("DGT", "SGT", "PGT", "bayes", "DGT once")


@dataclass(frozen=True)
class Design:
    """One run holds all pairs of levels in all cases; without cases it is the supervised reference alone."""

    cases: tuple[str, ...] = CASES
    levels: tuple[int, ...] = LEVELS
    n_items: int = 1000
    n_classifiers: int = 100
    seed: int = 2019

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Cases, labels per item, labels per labeler, views."""
        return len(self.cases), len(self.levels), len(self.levels), len(VIEWS)


@dataclass(frozen=True)
class Plan:
    """A design, how often it is run, and how often the supervised reference is."""

    name: str
    design: Design
    n_runs: int
    n_reference: int


REFERENCE = Design(cases=())
FULL = Plan("full", Design(), n_runs=100, n_reference=1000)
QUICK = Plan("quick", Design(levels=SHOWN), n_runs=3, n_reference=60)
