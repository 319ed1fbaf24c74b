"""Every verdict five times: a judge that repeats itself tells nothing new."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Section, as_text
from benchmarks._engine_answers import draw_gold
from benchmarks._engine_runs import Case, Figure, Row
from benchmarks._engine_worlds import make

__all__ = ["COPIES_FIGURE"]

N_ITEMS = 300
N_COPIES = 5
GOLD = 50
WORLDS = ("independent", "families", "difficulty")


def copied(labels: tu.Labels, n_copies: int) -> tuple[tu.Labels, tu.Labels]:
    """The votes once and several times."""
    item, labeler, answer, _ = labels.vote_table()

    def times(n: int) -> tu.Labels:
        columns = {
            "item": np.tile(labels.items[item], n),
            "labeler": np.tile(labels.labelers[labeler], n),
            "label": np.tile(labels.answers[answer], n),
            "run": np.repeat(np.arange(n), len(item)),
        }
        return tu.Labels.from_frame(columns, run="run", classes=labels.classes.tolist())

    return times(1), times(n_copies)


def run_copies(case: Case) -> list[Row]:
    """What is told of the votes once and of five copies of them."""
    world = make(case.world, N_ITEMS, case.seed)
    rows: list[Row] = []
    for name, labels in zip(("once", "copied"), copied(world.labels, N_COPIES), strict=True):
        worth = tu.noise.effective_labelers(labels, random_state=case.seed).effective
        rows.append({"data": name, "what": "effective labelers", "value": float(worth)})
        vetted, _ = draw_gold(labels, world.truth, GOLD, np.random.default_rng([case.seed, 21]))
        for basis, data in (("votes", labels), ("gold", vetted)):
            ev = tu.evaluate(
                world.predictions, data, metrics=["accuracy"], check_dependence=False, random_state=case.seed
            )
            low, high = ev["accuracy"].interval(LEVEL)
            rows += [
                {"data": name, "what": f"low, {basis}", "value": float(low)},
                {"data": name, "what": f"width, {basis}", "value": float(high - low)},
            ]
    return rows


def summarise_copies(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    for world in dict.fromkeys(row["world"] for row in rows):
        for what in dict.fromkeys(row["what"] for row in rows):
            once, again = (
                np.array(
                    [row["value"] for row in rows if (row["world"], row["what"], row["data"]) == (world, what, data)]
                )
                for data in ("once", "copied")
            )
            change = np.abs(again / once - 1)
            numbers[f"{world}, {what}"] = {"mean": float(once.mean()), "change": float(change.max())}
            lines.append([world, what, f"{once.mean():.3f}", f"{again.mean():.3f}", f"{100 * change.max():.2f}%"])
    table = as_text(["world", "what", "once", f"{N_COPIES} copies", "largest change of a run"], lines, left=(0, 1))
    return Section(
        f"Every vote {N_COPIES} times, {N_ITEMS} items; the accuracy of a classifier from votes and with {GOLD} "
        f"vetted.\n\n{table}\n\nTarget: effective labelers unchanged to 1%, intervals within 2%.",
        numbers,
    )


COPIES_FIGURE = Figure(WORLDS, run_copies, summarise_copies, n_runs=20, n_quick=1, first_seed=21_000)
