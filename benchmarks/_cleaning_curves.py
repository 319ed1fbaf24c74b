"""Learning curves of all cleaning strategies on the paper's five sets, paired; and the replay of a long log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import trueup as tu
from benchmarks._coverage_tally import as_text
from experiments.dolatshah2018.cleaning_figures import paired
from experiments.dolatshah2018.cleaning_runs import (
    BASELINES,
    CEILING,
    EMI,
    ORACLE_FREE,
    START,
    STRATEGIES,
    WHOLE,
    Curve,
    Task,
    completed,
    kept_file,
    means,
)
from experiments.dolatshah2018.cleaning_sets import FIVE

# On the five sets a repetition of EMI, the baselines and what needs no oracle takes about 100 s, one of the variants 3
# minutes.
REPETITIONS, VARIANT_REPETITIONS = 30, 10
OFF = "EMI, op1 off"


def level_on(found: dict[Task, Curve], data: Sequence[str], rival: str, own: str = EMI) -> list[str]:
    """The sets where EMI is at least level: not behind by more than one standard error of the paired difference."""
    leads = {name: paired(found, name, own, rival) for name in data}
    return [name for name, (lead, error) in leads.items() if lead >= -error]


def _against(found: dict[Task, Curve], data: Sequence[str], rivals: Sequence[str], own: str = EMI) -> str:
    """A row for each rival: EMI's lead on each set with its standard error, and the average lead."""
    rows = []
    for rival in rivals:
        leads = [paired(found, name, own, rival) for name in data]
        cells = [f"{100 * lead:+.2f} ± {100 * error:.2f}" for lead, error in leads]
        average = 100 * np.mean([lead for lead, _ in leads])
        rows.append([rival, *cells, f"{average:+.2f}", f"{len(level_on(found, data, rival, own))} of {len(data)}"])
    return as_text([f"lead of {own}", *data, "average", "level or ahead"], rows)


def curves(quick: bool, *, file: Path | None = None) -> str:
    """Mean accuracy over the learning curve, in percent."""
    file = file if quick else kept_file()
    data, cleanings = (("gaussian", "gaussian, 3 apart"), 2) if quick else (FIVE, 100)
    n = 2 if quick else int(os.environ.get("TRUEUP_REPETITIONS", REPETITIONS))
    few = min(n, int(os.environ.get("TRUEUP_VARIANT_REPETITIONS", VARIANT_REPETITIONS)))
    single = (START, *ORACLE_FREE, CEILING)

    def curves_of(names: Sequence[str], repetitions: int) -> dict[Task, Curve]:
        """Same data, votes and split for all; finished curves are kept in the file."""
        return completed(
            [Task(name, s, r, cleanings) for r in range(repetitions) for name in data for s in names], file
        )

    main = curves_of([*single, EMI, *BASELINES], n)
    rows = []
    for name in (EMI, *BASELINES, *single):
        values = [100 * means(main, one, name) for one in data]
        rows.append([name, *(f"{v.mean():.2f} ± {v.std(ddof=1) / np.sqrt(n):.2f}" for v in values)])
    level = {name: all(name in level_on(main, data, rival) for rival in BASELINES) for name in data}
    average = {rival: float(np.mean([paired(main, name, EMI, rival)[0] for name in data])) for rival in BASELINES}
    best = {name: max(BASELINES, key=lambda rival, name=name: means(main, name, rival).mean()) for name in data}
    ahead = {
        rival: [name for name in data if means(main, name, rival).mean() > means(main, name, EMI).mean()]
        for rival in ORACLE_FREE
    }
    text = [
        f"{n} repetitions, {cleanings} labels cleaned one by one; accuracy in percent ± standard error.",
        as_text(["mean over the curve", *data], rows),
        "",
        _against(main, data, list(BASELINES)),
        "",
        f"At least level with every baseline on {sum(level.values())} of {len(data)} sets; average lead over baselines "
        f"{100 * np.mean(list(average.values())):+.2f}, over the nearest {100 * min(average.values()):+.2f}.",
        *(f"Behind on {name}: {best[name]} is the best baseline there." for name in data if not level[name]),
        *(
            f"{rival}, without an oracle, is above the mean of EMI's curve on {', '.join(names)}."
            for rival, names in ahead.items()
            if names
        ),
    ]
    variants = [s for s in STRATEGIES if s not in BASELINES and s != EMI]
    other = curves_of([EMI, *variants], few)
    text += [
        "",
        f"Variants, {few} repetitions. Without op1 all items train and validate.",
        _against(other, data, [s for s in variants if s not in WHOLE]),
        "",
        "Baselines without a validation part, so that all items train, against EMI without op1.",
        _against(other, data, list(WHOLE), OFF),
        "",
        "The same against EMI with both optimisations, which trains on 70% of the items.",
        _against(other, data, list(WHOLE)),
    ]
    return "\n".join(text)


def replay(quick: bool) -> str:
    """A long session by log: does the replayed one choose the same next?"""
    n_tells = 40 if quick else 500
    sim = tu.simulate.tars(n_items=4 * n_tells, noise_rates=(0.4, 0.1), random_state=0)
    noise = tu.noise.Confusion([[0.6, 0.4], [0.1, 0.9]])
    rows = []
    for label, options in {"emi": {}, "emi, prune=0.8": {"prune": 0.8}, "hung": {"strategy": "hung"}}.items():
        advisor = tu.CleaningAdvisor(LogisticRegression(), sim.features, sim.labels, noise=noise, **options)
        while advisor.n_cleaned < n_tells:
            advisor.tell({item: int(sim.truth[item]) for item in advisor.ask(5)})
        text = advisor.to_json()
        again = tu.CleaningAdvisor.from_json(text, LogisticRegression(), sim.features, sim.labels, noise=noise)
        fresh = tu.CleaningAdvisor(LogisticRegression(), sim.features, sim.labels, noise=noise, **options)
        replayed = fresh.replay(advisor.log)
        asked = list(advisor.ask(20))
        same = list(again.ask(20)) == asked and list(replayed.ask(20)) == asked
        rows.append([label, str(advisor.n_cleaned), "yes" if same else "NO"])
    return as_text(["strategy", "tells", "same next 20 choices, from JSON and from the log"], rows)
