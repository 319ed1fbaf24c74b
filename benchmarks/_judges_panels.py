"""Panels and biases: are families of judges worth what they are, and do intervals of effects hold?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import trueup as tu
from benchmarks._answers import row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share
from benchmarks._runs import Case, Figure, Row
from trueup.labelers.panels import ErrorMoments, size_sums

# Items, checked items (0: none, from votes), families, correlation within, error rate, share of votes missing.
PANELS: dict[str, tuple[int, int, Sequence[Sequence[int]], float, float, float]] = {
    "two families of three": (100, 100, [[0, 1, 2], [3, 4, 5]], 0.5, 0.2, 0.0),
    "half of the votes": (300, 300, [[0, 1, 2], [3, 4, 5]], 0.5, 0.2, 0.5),
    "a family of four": (100, 100, [[0, 1, 2, 3]], 0.36, 0.2, 0.0),
    "rare errors": (300, 300, [[0, 1, 2], [3, 4, 5]], 0.5, 0.1, 0.0),
    "rare errors, alike": (300, 300, [[0, 1, 2], [3, 4, 5]], 0.81, 0.1, 0.0),
    "independent": (100, 100, [], 0.0, 0.2, 0.0),
    "two families, votes alone": (400, 0, [[0, 1, 2], [3, 4, 5]], 0.5, 0.2, 0.0),
    "a family of four, votes alone": (400, 0, [[0, 1, 2, 3]], 0.36, 0.2, 0.0),
    "independent, votes alone": (400, 0, [], 0.0, 0.2, 0.0),
}
MOST_FROM_VOTES = 40
N_JUDGES = 6
FIRST_PANEL, FIRST_BIAS = 18_600, 18_700
SKILL = np.array([0.7, 0.6, 0.5, 0.6, 0.5, 0.4])
EFFECTS = np.array([0.15, 0.0, 0.0, 0.0, 0.0, 0.0])
# Items and share of votes missing.
WORLDS = {"60 items": (60, 0.0), "150 items": (150, 0.0), "300 items, 4 of 10 votes missing": (300, 0.4)}


def run_panel(case: Case) -> list[Row]:
    """The effective number, without a judge, and the correlation of two of a family."""
    n_items, n_checked, families, correlation, error, missing = PANELS[case.world]
    if not n_checked and case.seed - FIRST_PANEL >= MOST_FROM_VOTES:
        return []
    rng = np.random.default_rng(case.seed)
    truth = rng.integers(2, size=n_items)
    wrong = rng.random((n_items, N_JUDGES)) < error
    expected = np.eye(N_JUDGES)
    for family in families:
        together = rng.random(n_items) < error
        for t in family:
            copies = rng.random(n_items) < np.sqrt(correlation)
            wrong[copies, t] = together[copies]
            expected[t, [s for s in family if s != t]] = correlation
    votes = np.where(wrong, 1 - truth[:, None], truth[:, None]).astype(np.int32)
    votes[rng.random(votes.shape) < missing] = -1
    whole = N_JUDGES**2 / expected.sum()
    others = (N_JUDGES - 1) ** 2 / expected[1:, 1:].sum()
    if not n_checked:
        panel = tu.labelers.panel(tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1]))
        rows = [row_of("panel", whole, panel.effective), row_of("without one", others, panel.without[0].effective)]
        return [*rows, row_of("correlation", expected[0, 1], panel.correlations[0, 1])]
    moments = ErrorMoments.of(votes, truth, 2)  # what `panel` counts with, without fits that gold makes superfluous
    nearest = np.where(np.eye(N_JUDGES, dtype=bool), -1.0, moments.correlation).argmax(axis=1)
    size, without, _ = size_sums(moments, nearest)
    return [row_of("panel", whole, size.effective()), row_of("without one", others, without[0].effective())]


def summarise_panel(rows: Sequence[Row]) -> str:
    """Coverage of the effective number by kind of panel."""
    lines = []
    for world in PANELS:
        of_panel = select(rows, world=world, answer="panel")
        if of_panel:
            tallies = [tally_of(select(rows, world=world, answer=name)) for name in ("panel", "without one")]
            true, mean = of_panel[0]["true"], float(np.mean([row["mean"] for row in of_panel]))
            lines.append((world, str(len(of_panel)), f"{true:.2f}", f"{mean:.2f}", *(share(one) for one in tallies)))
            lines[-1] += (f"{np.mean(tallies[0].widths):.2f}",)
    head = ("six judges", "runs", "worth", "mean", "covers %", "without one, covers %", "width")
    return as_text(head, lines) + "\n\nErrors are counted on all items, but for the last three."


def run_bias(case: Case) -> list[Row]:
    """The effect of a property that good items have more often, on a judge that favours it and on one that does not."""
    n_items, missing = WORLDS[case.world]
    rng = np.random.default_rng(case.seed)
    truth = rng.integers(2, size=n_items)
    has_it = (rng.random(n_items) < np.where(truth, 0.65, 0.35)).astype(float)
    chance = 0.5 + SKILL * (truth[:, None] - 0.5) + EFFECTS * (has_it[:, None] - 0.5)
    votes = (rng.random(chance.shape) < chance).astype(int)
    votes[rng.random(votes.shape) < missing] = -1
    votes[(votes < 0).all(axis=1), 0] = 0
    labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
    labels = labels.with_items({"item": np.arange(n_items), "length": has_it})
    checked = labels.with_gold(dict(enumerate(truth.tolist())), drawn="random")
    rows = []
    for answer, known in (("given gold", checked), ("beside the others", labels)):
        found = tu.labelers.bias(known, on="length")
        rows += [row_of(answer, float(EFFECTS[t]), found[t]["length"], judge=t) for t in (0, 1) if t in found]
    return rows


def summarise_bias(rows: Sequence[Row]) -> str:
    """Coverage of effects by what they rest on."""
    lines = []
    for world in WORLDS:
        for answer in ("given gold", "beside the others"):
            tallies = [tally_of(select(rows, world=world, answer=answer, judge=t)) for t in (0, 1)]
            if len(tallies[0]):
                told = [share(tallies[0]), f"{tallies[0].bias:+.3f}", f"{np.mean(tallies[0].widths):.3f}"]
                lines.append((f"{world}, {answer}", str(len(tallies[0])), *told, share(tallies[1])))
    head = ("effect .15", "runs", "covers %", "mean error", "width", "no effect, covers %")
    return as_text(head, lines)


PANEL_FIGURE = Figure(tuple(PANELS), run_panel, summarise_panel, 400, 1, FIRST_PANEL)
BIAS_FIGURE = Figure(tuple(WORLDS), run_bias, summarise_bias, 400, 1, FIRST_BIAS)
