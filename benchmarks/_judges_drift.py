"""Drift: how often alarms are false in 50 batches, how soon a fall is noticed from votes, and how soon it has a name.

Batches of 150 items, or 200 with a change after 30 batches; 10 of them are checked at random. Judges are right 9 times
of 10, the system 85 times of 100. Every batch is a look, by the code that `trueup.Monitor` uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks._coverage_tally import Tally, share
from benchmarks._runs import Case, Figure, Row
from trueup.monitor.batch import Batch, counts, histories, panel_of
from trueup.monitor.change import find_alarms, strata_of

RESTS_ON = ("monitor",)
N_CHECKED, BASELINE, STEADY = 10, 2, 50
FALSE_ALARMS = 0.05
CHANGE, AFTER = 30, 30  # batches before the change, and since
SOON = 3  # batches


@dataclass(frozen=True)
class World:
    """What happens to a system and its judges."""

    n_judges: int = 5
    n_items: int = 150
    accuracy: float = 0.85  # of the system
    judged: float = 0.9  # accuracy of a judge
    fall: float = 0.0  # of the system
    judge_falls: float = 0.0  # the first one
    between: float = 0.0  # standard deviation of the system's accuracy between batches
    # In place of the accuracy: the ends of the share on which the system agrees with most judges, batch by batch; the
    # change comes after four of them.
    agreement: tuple[tuple[float, float], ...] = ()

    @property
    def is_steady(self) -> bool:
        """Whether nothing changes."""
        return self.fall == self.judge_falls == 0 and not self.agreement

    @property
    def change(self) -> int:
        """Batches before the change."""
        return 4 if self.agreement else CHANGE

    @property
    def n_batches(self) -> int:
        """How many batches there are."""
        return STEADY if self.is_steady else len(self.agreement) or CHANGE + AFTER

    def accuracy_at(self, place: int, rng: np.random.Generator) -> float:
        """Of the system in a batch."""
        if self.agreement:
            most_are_wrong = float(binom.sf(self.n_judges // 2, self.n_judges, 1 - self.judged))
            return (rng.uniform(*self.agreement[place]) - most_are_wrong) / (1 - 2 * most_are_wrong)
        falls = not self.is_steady and place >= CHANGE
        return self.accuracy - (self.fall if falls else 0.0) + self.between * float(rng.standard_normal())


WORLDS: dict[str, World] = {
    "steady": World(),
    "steady, batches differ by 2 points": World(between=0.02),
    "steady, batches differ by 5 points": World(between=0.05),
    "agreement .83 to .87 in four batches, then .67 and .71": World(
        agreement=(*[(0.83, 0.87)] * 4, (0.67, 0.67), (0.71, 0.71))
    ),
    "system falls 10 points": World(n_items=200, fall=0.1),
    "system falls 5 points": World(n_items=200, fall=0.05),
    "system falls 10 points, one judge": World(n_judges=1, n_items=200, fall=0.1),
    "a judge falls 10 points": World(n_items=200, judge_falls=0.1),
    "a judge falls 20 points": World(n_items=200, judge_falls=0.2),
}


def draw_batch(world: World, place: int, rng: np.random.Generator) -> Batch:
    """One batch of a world, as the monitor keeps it; two classes, six items of ten of the second."""
    n_items, accuracy = world.n_items, world.accuracy_at(place, rng)
    judged = np.full(world.n_judges, world.judged)
    judged[0] -= world.judge_falls if place >= CHANGE else 0.0
    truth = (rng.random(n_items) < 0.6).astype(np.int32)
    is_wrong = rng.random((n_items, world.n_judges)) >= judged
    answers = truth[:, None] ^ is_wrong
    prediction = truth ^ (rng.random(n_items) >= accuracy)
    gold, chance = np.full(n_items, -1, dtype=np.int32), np.full(n_items, np.nan)
    checked = rng.choice(n_items, N_CHECKED, replace=False)
    gold[checked], chance[checked] = truth[checked], N_CHECKED / n_items
    names = tuple(f"judge {k + 1}" for k in range(world.n_judges))
    item = np.repeat(np.arange(n_items, dtype=np.int32), world.n_judges)
    judge = np.tile(np.arange(world.n_judges, dtype=np.int32), n_items)
    votes = (item, judge, answers.ravel().astype(np.int32), np.ones(len(item), dtype=np.int32))
    return Batch(f"{place:04}", (0, 1), names, *votes, prediction.astype(np.int32), gold, chance, 0, ())


def run_world(case: Case) -> list[Row]:
    """The batch after which each kind of alarm was raised first, counted from 1; None for none."""
    world = WORLDS[case.world]
    rng = np.random.default_rng([case.seed, list(WORLDS).index(case.world)])
    batches = [draw_batch(world, place, rng) for place in range(world.n_batches)]
    panel = panel_of(batches[0])
    # The times are places, so that they compare as times do.
    alarms = find_alarms(
        histories([counts(batch, panel, None) for batch in batches], panel),
        [strata_of(batch, panel, None) for batch in batches],
        [f"{1000 + place}-01-01" for place in range(len(batches))],
        false_alarms=FALSE_ALARMS,
        baseline=BASELINE,
    )
    seen: Row = {"votes": None, "system": None, "judge": None, "other judge": None}
    for alarm in alarms:
        kind = {"something": "votes", "the system": "system"}.get(
            alarm.kind, "judge" if alarm.judge == "judge 1" else "other judge"
        )
        look = int(alarm.when[:4]) - 999
        seen[kind] = look if seen[kind] is None else min(seen[kind], look)
    return [seen]


def summarise(rows: Sequence[Row]) -> str:
    """Shares of runs, and delays in batches."""
    lines = []
    for name, world in WORLDS.items():
        mine = [row for row in rows if row["world"] == name]
        if not mine:
            continue
        told = _steady(mine) if world.is_steady else _changed(mine, world)
        lines += [f"{name} ({len(mine):,} runs)", *(f"    {what}: {value}" for what, value in told.items())]
    return "\n".join(lines)


def _steady(rows: Sequence[Row]) -> dict[str, Any]:
    kinds = ("votes", "system", "judge", "other judge")
    is_false = [any(row[kind] is not None for kind in kinds) for row in rows]
    from_gold = [any(row[kind] is not None for kind in kinds[1:]) for row in rows]
    return {f"false alarms in {STEADY} batches": _percent(is_false), "of these with a name": _percent(from_gold)}


def _changed(rows: Sequence[Row], world: World) -> dict[str, Any]:
    right, wrong = ("system", ("judge", "other judge")) if world.fall else ("judge", ("system", "other judge"))
    early = [row["votes"] is not None and row["votes"] <= world.change for row in rows]
    noticed = [row["votes"] is not None and row["votes"] - world.change for row in rows]
    named = [row[right] is not None and row[right] - world.change for row in rows]
    mistaken = [any(row[kind] is not None for kind in wrong) for row in rows]
    is_noticed, is_named = ([delay > 0 for delay in delays] for delays in (noticed, named))
    if world.agreement:
        return {"an alarm by the sixth batch": _percent(is_noticed), "alarm before the change": _percent(early)}
    return {
        f"noticed from votes within {SOON} batches": _percent([0 < delay <= SOON for delay in noticed]),
        f"noticed within {AFTER} batches": _percent(is_noticed),
        "batches until it is noticed, in the middle": _median(noticed),
        f"named within {AFTER} batches": _percent(is_named),
        "batches until it is named, in the middle": _median(named),
        "named wrongly": _percent(mistaken),
        "alarm before the change": _percent(early),
    }


def _percent(outcomes: Sequence[bool]) -> str:
    """The share of runs with its standard error, in percent."""
    return f"{share(Tally(held=[bool(one) for one in outcomes]))} %"


def _median(delays: Sequence[int | bool]) -> float | None:
    """The delay in the middle of all runs; None where more than half have none."""
    waits = sorted(delay if delay and delay > 0 else np.inf for delay in delays)
    middle = float(np.median(waits))
    return middle if np.isfinite(middle) else None


DRIFT_FIGURE = Figure(tuple(WORLDS), run_world, summarise, n_runs=500, n_quick=20, first_seed=18_000)
