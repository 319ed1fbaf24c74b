"""Ways to spend a labeling budget, and how narrow an interval each would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np

from trueup.labelers.channel import Floats
from trueup.labelers.outcomes import list_outcomes
from trueup.labelers.precision import explained_share, item_variance, learned_variance, votes_channel

__all__ = ["KINDS", "LEAST_VETTED", "Candidate", "Design", "DesignKind", "Setting", "best_of", "candidates_of"]

DesignKind = Literal["votes", "vetted", "both"]
KINDS: tuple[DesignKind, ...] = ("votes", "vetted", "both")
LEAST_VETTED = 30  # below that neither the regression on the votes nor a normal interval can be relied on
_MOST_COUNTS = 20_000  # outcomes of the votes on an item that are worth looking through


@dataclass(frozen=True)
class Design:
    """One way to spend a budget.

    Attributes
    ----------
    kind : {"votes", "vetted", "both"}
    n_items : int
        Items with a prediction that are looked at, by the crowd or by the expert.
    votes_per_item : int
    n_vettings : int
        Of the items, those that the expert looks at.
    half_width : float
        Expected half-width of the interval of the model's accuracy.
    cost : float
    """

    kind: DesignKind
    n_items: int
    votes_per_item: int
    n_vettings: int
    half_width: float
    cost: float


@dataclass(frozen=True, eq=False)
class Setting:
    """What was told, checked."""

    vote_price: float | None
    expert_price: float | None
    item_price: float
    labeler_error: float
    error: float
    prior: Floats
    correlation: float
    noise_known: bool
    max_items: float
    z: float


@dataclass(frozen=True)
class Candidate:
    """A kind of design and a number of votes; `factor` is v_k for votes and ρ² for both; see `trueup.plan`."""

    kind: DesignKind
    n_votes: int
    factor: float

    def design(self, budget: float, s: Setting) -> Design | None:
        """The narrowest such design that the budget pays for, or None."""
        each = s.item_price + self.n_votes * (s.vote_price or 0.0)
        vetting = s.expert_price or 0.0
        spread = s.error * (1 - s.error)
        if self.kind == "votes":
            n = min(np.floor(budget / each + 1e-9), s.max_items)
            return self._made(n, 0, s.z * np.sqrt(self.factor / n), n * each) if n >= LEAST_VETTED else None
        if self.kind == "vetted":
            m = min(np.floor(budget / (each + vetting) + 1e-9), s.max_items)
            cost = m * (each + vetting)
            return self._made(m, m, s.z * np.sqrt(spread / m), cost) if m >= LEAST_VETTED else None
        most = int(min(budget / (each + vetting) + 1e-9, s.max_items))  # then all items are vetted
        if most < LEAST_VETTED:
            return None
        m = np.unique(np.linspace(LEAST_VETTED, most, 4001).astype(np.int64))
        n = np.minimum(np.floor((budget - m * vetting) / each + 1e-9), s.max_items)
        variance = spread * ((1 - self.factor) / m + self.factor / n)
        k = int(np.argmin(variance))
        return self._made(n[k], m[k], s.z * np.sqrt(variance[k]), n[k] * each + m[k] * vetting)

    def _made(self, n: float, m: float, half_width: float, cost: float) -> Design:
        return Design(self.kind, int(n), self.n_votes, int(m), float(half_width), float(cost))


def candidates_of(kinds: Sequence[DesignKind], s: Setting, max_votes: int) -> list[Candidate]:
    """All kinds with all numbers of votes up to `max_votes`."""
    found = [Candidate("vetted", 0, 1.0)] if "vetted" in kinds else []
    for k in range(1, max_votes + 1) if {"votes", "both"} & set(kinds) else ():
        if comb(k + len(s.prior) - 1, k) > _MOST_COUNTS:
            break
        outcomes = list_outcomes(votes_channel(k, s.labeler_error, s.prior, s.correlation))
        if "votes" in kinds:
            variance = item_variance(outcomes, s.error) if s.noise_known else _learned(k, s)
            if np.isfinite(variance):
                found.append(Candidate("votes", k, variance))
        if "both" in kinds:
            found.append(Candidate("both", k, explained_share(outcomes, s.error)))
    return found


def _learned(n_votes: int, s: Setting) -> float:
    # A rate of 0 lies at the edge, where there is no Fisher information; a tiny one tells what is meant.
    rate = max(s.labeler_error, 1e-6)
    return learned_variance(n_votes=n_votes, labeler_error=rate, error=s.error, prior=s.prior)


def best_of(candidates: list[Candidate], budget: float, s: Setting) -> Design | None:
    """The narrowest design that the budget pays for, the cheaper one of equals."""
    found = [d for c in candidates if (d := c.design(budget, s))]
    return min(found, key=lambda d: (d.half_width, d.cost)) if found else None
