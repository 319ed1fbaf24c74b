"""Do intervals hold where the experts who check err, too?

Run ``python -m benchmarks.experts [--runs N] [--quick] [--processes 1] [--folder DIR] [--json out.json]``. Three
experts check 100 items of 600 that are drawn at random; each answer is wrong with the same chance. The same answers are
taken for right, and for those of fallible experts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import trueup as tu
from benchmarks._answers import row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share
from benchmarks._runs import Case, Figure, Row, run_figures
from benchmarks._worlds import WORLDS, make

RESTS_ON = ("active", "sessions")  # what numbers rest on beside the packages that _runs names
N_ITEMS, N_ANSWERS = 600, 100
RATES = (0.0, 0.05, 0.1)
EXPERTS = ("ann", "bob", "eve")
AT_ONCE = 6  # items that an expert is given
MODES = ("right", "fallible")


def run_errors(case: Case) -> list[Row]:
    """The estimate after a session, for each rate of wrong answers, and both ways to take them."""
    world = make(case.world, N_ITEMS, case.seed)
    items = world.labels.items.tolist()
    place = {item: k for k, item in enumerate(items)}
    classes = world.labels.classes.tolist()
    data = (dict(zip(items, (classes[code] for code in world.predictions), strict=True)), world.labels)
    rows = []
    for rate in RATES:
        rng = np.random.default_rng([case.seed, round(100 * rate)])
        test = tu.ActiveTest(*data, strategy="random", budget=N_ANSWERS, random_state=case.seed)
        turn = 0
        while test.finished is None:
            who = EXPERTS[turn % len(EXPERTS)]
            turn += 1
            codes = {item: int(world.truth[place[item]]) for item in test.ask(AT_ONCE, who=who)}
            said = {item: 1 - code if rng.random() < rate else code for item, code in codes.items()}
            test.tell({item: classes[code] for item, code in said.items()}, who=who)
        for mode in MODES:
            one = tu.ActiveTest.from_json(test.to_json(), *data, experts=mode)
            rows.append(row_of(f"{100 * rate:g}, {mode}", world.accuracy, one.estimate()))
    return rows


def summarise_errors(rows: Sequence[Row]) -> str:
    lines = []
    for world in [*dict.fromkeys(row["world"] for row in rows), "all"]:
        for answer in dict.fromkeys(row["answer"] for row in rows):
            own = select(rows if world == "all" else select(rows, world=world), answer=answer)
            tally = tally_of(own)
            rate, mode = answer.split(", ")
            lines.append([world, rate, mode, share(tally), f"{tally.bias:+.3f}", f"{tally.width:.3f}", str(len(own))])
    head = ["world", "wrong answers %", "taken as", "holds % ± s.e.", "mean error", "width", "runs"]
    return (
        f"Accuracy of a system, {N_ANSWERS} answers of three experts on {N_ITEMS} items, second opinions among them: "
        f"95% intervals\n\n{as_text(head, lines)}\n\nTarget: at least 93% with 5% wrong answers of fallible experts."
    )


ERRORS_FIGURE = Figure(tuple(WORLDS), run_errors, summarise_errors, n_runs=80, n_quick=1, first_seed=175_000)
main = partial(run_figures, "experts", __doc__, {"errors": ERRORS_FIGURE})


if __name__ == "__main__":
    from benchmarks import experts  # by this name other processes find what is sent to them

    experts.main()
