"""Verdicts on pairs of systems, by judges who may prefer a place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import expit

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_number
from trueup.data.pairs import Pairs, mirrored
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import Values, draw_categories, draw_values


@dataclass(frozen=True, eq=False, repr=False)
class PairSimulation:
    """Verdicts with their truth.

    Attributes
    ----------
    pairs : Pairs
    truth : integer array of shape (n_contests,)
        Who wins each contest in truth: 0 the first, 1 the second, 2 nobody.
    strengths : array of shape (n_systems,)
        In log-odds, in the order of the systems.
    confusion : array of shape (n_judges, n_verdicts, n_verdicts)
        P(verdict | truth) of each judge, about the places that are shown.
    """

    pairs: Pairs
    truth: Codes = field(repr=False)
    strengths: Floats
    confusion: Floats = field(repr=False)

    def __repr__(self) -> str:
        return f"PairSimulation({self.pairs!r}, truth)"


def pairs(
    *,
    n_contests: int = 500,
    n_systems: int = 4,
    n_judges: int = 5,
    accuracy: Values = (0.7, 0.85),
    position_bias: Values = 0.1,
    spread: float = 1.0,
    ties: float = 0.0,
    orders: Literal["random", "both", "named"] = "random",
    random_state: RandomState = None,
) -> PairSimulation:
    """Each item is a contest of two systems at random, won as Bradley and Terry say, and all judges see all of them.

    Parameters
    ----------
    n_contests, n_systems, n_judges : int
    accuracy : number, (low, high) tuple or array
        How often a judge names the side that wins in truth, both places averaged.
    position_bias : number, (low, high) tuple or array
        By how much more often than half a judge names what is shown first.
    spread : float
        Standard deviation of the strengths, in log-odds.
    ties : float
        The share of true ties, of which half are called so.
    orders : {"random", "both", "named"}
        Each judge sees a contest in one order by chance, or in both; or all see the first by name first.
    random_state : int, Generator or None

    Examples
    --------
    >>> from trueup.simulate import pairs
    >>> pairs(n_contests=100, n_judges=2, random_state=0)
    PairSimulation(Pairs(100 contests of 4 systems, 2 judges, 200 verdicts), truth)
    """
    n = check_integer(n_contests, name="n_contests", low=1)
    n_systems = check_integer(n_systems, name="n_systems", low=2)
    n_judges = check_integer(n_judges, name="n_judges", low=1)
    check_number(spread, name="spread", low=0.0)
    share = check_number(ties, name="ties", low=0.0, high=1.0)
    check_choice(orders, ("random", "both", "named"), name="orders")
    rng = as_generator(random_state)
    right = draw_values(accuracy, n_judges, name="accuracy", rng=rng)
    bias = draw_values(position_bias, n_judges, name="position_bias", rng=rng)
    if (right + bias > 1).any():
        raise InvalidParameter(
            f"⟨accuracy⟩ and ⟨position_bias⟩ must add up to at most 1, got {(right + bias).max():.2f}; lower one",
            parameter="position_bias",
        )
    confusion = _matrices(right, bias, share)
    strengths = spread * rng.standard_normal(n_systems)
    names = [f"system-{k:0{len(str(n_systems))}d}" for k in range(1, n_systems + 1)]
    sides = np.sort(rng.permuted(np.tile(np.arange(n_systems), (n, 1)), axis=1)[:, :2], axis=1)
    truth = (rng.random(n) >= expit(strengths[sides[:, 0]] - strengths[sides[:, 1]])).astype(np.int64)
    truth[rng.random(n) < share] = 2
    rows = []
    for judge in range(n_judges):
        shown = np.zeros(n, dtype=np.int64) if orders == "named" else rng.integers(2, size=n)
        for order in (shown, 1 - shown) if orders == "both" else (shown,):
            seen = np.where(order == 1, mirrored(truth), truth)
            said = draw_categories(confusion[judge], seen, rng)
            verdict = np.where(order == 1, mirrored(said), said)
            rows += [
                (k, f"judge-{judge + 1}", names[sides[k, 0]], names[sides[k, 1]], int(order[k]), int(verdict[k]))
                for k in range(n)
            ]
    rows.sort(key=lambda row: row[0])
    return PairSimulation(Pairs.from_rows(rows), truth, strengths, confusion)


def _matrices(right: Floats, bias: Floats, ties: float) -> Floats:
    """P(verdict | truth) of each judge; without ties nobody calls one."""
    n_classes = 3 if ties else 2
    called = np.array([0.1, 0.1, 0.5]) * (ties > 0)
    matrices = np.zeros((len(right), n_classes, n_classes))
    said_first = np.stack([right + bias, 1 - right + bias, 0.5 + bias], axis=1)
    for truth in range(n_classes):
        matrices[:, truth, 0] = (1 - called[truth]) * said_first[:, truth]
        matrices[:, truth, 1] = (1 - called[truth]) * (1 - said_first[:, truth])
        matrices[:, truth, 2:] = called[truth]
    return matrices
