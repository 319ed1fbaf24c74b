"""Preferences: is the position bias recovered, do win rates hold, and how many pairs of systems are ranked wrongly?

2,000 contests, 5 judges with a position bias of .15. In one world judges see a random order, in one both orders, and
in one all see the first by name first, as where a baseline always comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

import trueup as tu
from benchmarks._answers import row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share_over_runs
from benchmarks._runs import Case, Figure, Row
from trueup._base.types import Floats
from trueup.simulate import PairSimulation

WORLDS = {
    "two systems": (2, "random"),
    "eight systems": (8, "random"),
    "both orders": (8, "both"),
    "one order": (8, "named"),
}
N_CONTESTS, N_JUDGES, BIAS = 2000, 5, 0.15
TOLERANCE = 0.02
SAMPLING: dict[str, Any] = {"n_chains": 4, "n_warmup": 300, "n_draws": 2000}
RANKINGS = ("trueup", "majority", "counting")


def run_preferences(case: Case) -> list[Row]:
    """Win rates, the bias of each judge and the swaps of each ranking."""
    n_systems, orders = WORLDS[case.world]
    sim = tu.simulate.pairs(
        n_contests=N_CONTESTS,
        n_systems=n_systems,
        n_judges=N_JUDGES,
        accuracy=(0.65, 0.8),
        position_bias=BIAS,
        spread=0.7,
        orders=orders,  # type: ignore[arg-type]
        random_state=case.seed,
    )
    answer = tu.preferences(sim.pairs, noise="mirrored", check_dependence=False, random_state=case.seed, **SAMPLING)
    place = {name: k for k, name in enumerate(sim.pairs.systems.tolist())}
    rows = []
    for a, b, _ in answer.met():
        true = float(expit(sim.strengths[place[a]] - sim.strengths[place[b]]))
        rows.append(row_of("trueup", true, answer.win_rate(a, b), quantity="win rate"))
    rows += [row_of("trueup", BIAS, bias, quantity="position bias") for bias in answer.position_bias.values()]
    if n_systems > 2:
        mean = answer.comparison.means
        scores = {"trueup": mean, "majority": _by_majority(sim), "counting": _by_counting(sim)}
        rows += [
            {"quantity": "swaps", "answer": name, "swaps": _swaps(sim.strengths, scores[name])} for name in RANKINGS
        ]
    return rows


def _by_counting(sim: PairSimulation) -> Floats:
    """The share of verdicts that each system wins, as leaderboards count."""
    sides = sim.pairs.sides[sim.pairs.contest]
    winner = np.take_along_axis(sides, sim.pairs.verdict.astype(np.int64)[:, None], axis=1)[:, 0]
    n = len(sim.pairs.systems)
    return np.bincount(winner, minlength=n) / np.bincount(sides.ravel(), minlength=n)


def _by_majority(sim: PairSimulation) -> Floats:
    """The share of contests that each system wins by most verdicts, ties half."""
    pairs = sim.pairs
    votes = np.bincount(pairs.contest, 1.0 - 2.0 * pairs.verdict, pairs.n_contests)
    won = np.stack([votes > 0, votes < 0], axis=1) + 0.5 * (votes == 0)[:, None]
    n = len(pairs.systems)
    return np.bincount(pairs.sides.ravel(), won.ravel(), n) / np.bincount(pairs.sides.ravel(), minlength=n)


def _swaps(strengths: Floats, scores: Floats) -> float:
    """The share of the pairs of systems that scores put in the wrong order; equal scores are half wrong."""
    first, second = np.triu_indices(len(strengths), k=1)
    agree = np.sign(strengths[first] - strengths[second]) * np.sign(scores[first] - scores[second])
    return float((1 - agree).mean() / 2)


def summarise_preferences(rows: Sequence[Row]) -> str:
    """By world: coverage of win rates and of the bias, how far the bias is off, and swaps of each ranking."""
    lines = []
    for world in WORLDS:
        own = select(rows, world=world)
        if not own:
            continue
        won, pulled = (select(own, quantity=name) for name in ("win rate", "position bias"))
        rates, biases = tally_of(won), tally_of(pulled)
        swaps = {
            name: float(np.mean([row["swaps"] for row in select(own, quantity="swaps", answer=name)] or [np.nan]))
            for name in RANKINGS
        }
        holds = [share_over_runs(tally, [row["seed"] for row in of]) for tally, of in ((rates, won), (biases, pulled))]
        cells = [str(len(biases) // N_JUDGES), holds[0], f"{rates.width:.3f}", holds[1], f"{biases.bias:+.4f}"]
        within = f"{100 * np.mean(np.abs(biases.errors) <= TOLERANCE):.0f}"
        lines.append([world, *cells, within, *(f"{100 * swaps[name]:.1f}" for name in RANKINGS)])
    head = ("world", "runs", "win rate %", "width", "bias %", "bias off", f"within {TOLERANCE}", *RANKINGS)
    note = "The last three: pairs of systems in the wrong order, %. ± is the standard error over data sets."
    return f"{as_text(head, lines)}\n{note}"


PREFERENCES_FIGURE = Figure(tuple(WORLDS), run_preferences, summarise_preferences, 400, 1, first_seed=18_600)
