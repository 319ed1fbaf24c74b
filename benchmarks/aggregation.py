"""Who is right? Accuracy of the inferred truth on open crowds and LLM judges, beside other libraries.

Run ``python -m benchmarks.aggregation [--quick] [--sets a,b] [--json out.json]``. The sets are found through
TRUEUP_DATA (see `benchmarks._data`); the peers, crowd-kit and cleanlab, are run by the Python that TRUEUP_PEERS names
and left out where it is not set. The truth is used for counting right answers only. All models have their default
settings unless their name says otherwise; where classes tie for an item they share it. Times are informational:
whatever else the machine does is in them. But for a quick run each set is kept as it ends, so that an interrupted
measurement goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._aggregation_ebcc import EnhancedCombination
from benchmarks._aggregation_peers import PEERS, winners
from benchmarks._coverage_tally import as_text
from benchmarks._data import CROWD_SETS, JUDGE_SETS, LATER_CROWD_SETS, PUBLISHED, PUBLISHED_MODELS, load_crowd
from benchmarks._runs import RUNS, Case, Row, run_cases
from trueup import Labels, noise
from trueup.exceptions import TrueupWarning

Floats = npt.NDArray[np.float64]

QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
ALL_CROWD_SETS = (*CROWD_SETS, *LATER_CROWD_SETS)
ALL_SETS = (*ALL_CROWD_SETS, *JUDGE_SETS)
PEER_SECONDS = 300  # for each model and set at most
SHORT = {
    "crowd-d-sentiment": "d-sent",
    "crowd-labelme-feat": "labelme",
    "crowd-product-er": "product",
    "crowd-restaurant-er": "restaur",
    "crowd-sentiment-text": "s-text",
    "crowd-snow-rte": "rte",
    "crowd-snow-temp": "temp",
    "crowd-weather-cf-amt": "weather",
    "crowd-zencrowd-in": "zencrowd",
}
MODELS: dict[str, Callable[[], noise.NoiseModel]] = {
    "Majority": noise.Majority,
    "OneCoin": noise.OneCoin,
    "DawidSkene": noise.DawidSkene,
    "DawidSkene(pooling=0)": lambda: noise.DawidSkene(pooling=0),
    "GLAD": noise.GLAD,
    "Difficulty": noise.Difficulty,
    "SoftTruth": noise.SoftTruth,
    "EBCC": EnhancedCombination,
}
AUTO = "auto"


@dataclass
class SetResult:
    """What was measured on one set.

    `correct` has, by model, the share of each item's answer that is right, for the items with truth.
    """

    name: str
    correct: dict[str, Floats] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    chosen: list[tuple[str, float, float]] = field(default_factory=list)
    reason: str = ""

    def as_row(self) -> Row:
        """In plain numbers, to be kept."""
        return {k: _in_lists(value) for k, value in vars(self).items()}

    @classmethod
    def of_row(cls, row: Row) -> SetResult:
        """The same from what was kept."""
        correct = {model: np.asarray(values) for model, values in row["correct"].items()}
        chosen = [(model, weight, score) for model, weight, score in row["chosen"]]
        plain = {name: row[name] for name in ("name", "seconds", "missing", "reason")}
        return cls(**plain, correct=correct, chosen=chosen)

    @property
    def short(self) -> str:
        """The name of the column."""
        return SHORT.get(self.name, self.name.split("-", 1)[1])

    def accuracy(self, model: str) -> float:
        """Share of right answers; NaN if the model gave none."""
        return float(self.correct[model].mean()) if model in self.correct else float("nan")


# -------------------------------------------------------------------------------------------------------- measuring


def measure(name: str, *, peers: str | None, seeds: int, limit: int) -> SetResult:
    """All models and peers on one set."""
    labels, truth = load_crowd(name)
    result = SetResult(name)
    known = np.flatnonzero(truth >= 0)

    def count(model: str, share: Floats, seconds: float) -> None:
        result.correct[model] = share[known, truth[known]]
        result.seconds[model] = seconds

    say(f"{name}: {labels!r}")
    for model, make in MODELS.items():
        say(f"  {model}")
        fitted, seconds = timed(make().fit, labels)
        count(model, winners(fitted.posterior(labels)), seconds)
    say(f"  {AUTO}")
    stack, seconds = timed(noise.fit, labels, "auto")
    count(AUTO, winners(stack.posterior(labels)), seconds)
    result.reason = stack.reason_
    result.chosen = [(repr(c.model), c.weight, c.score) for c in stack.candidates_]
    if peers is not None:
        for model, (share, seconds, error) in run_peers(peers, labels, seeds=seeds, limit=limit).items():
            if share is None:
                result.missing[model] = error
                say(f"  {model} gave no answer: {error}")
            else:
                count(model, share, seconds)
    return result


def run_set(case: Case) -> list[Row]:
    """One set, with so many seeds of the peers as the number says, 0 for no peers."""
    peers = peers_python()[0] if case.seed else None
    return [measure(case.world, peers=peers, seeds=case.seed, limit=PEER_SECONDS).as_row()]


def _in_lists(value: Any) -> Any:
    """Arrays as lists, at any depth of dictionaries."""
    if isinstance(value, dict):
        return {k: _in_lists(v) for k, v in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result and the seconds it took; trueup's warnings go to stderr as a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrueupWarning)
        started = time.perf_counter()
        value = call(*arguments)
        seconds = time.perf_counter() - started
    for warning in caught:
        say(f"    warning: {warning.message}")
    return value, seconds


def run_peers(python: str, labels: Labels, *, seeds: int, limit: int) -> dict[str, tuple[Floats | None, float, str]]:
    """Answers of the peers by name: the shares of each item's answer, seconds, and why there is no answer."""
    *codes, times = labels.vote_table()
    item, labeler, label = (np.repeat(c, times).astype(np.int64) for c in codes)
    found: dict[str, tuple[Floats | None, float, str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shape = (labels.n_items, labels.n_labelers, labels.n_classes)
        np.savez(folder / "votes.npz", item=item, labeler=labeler, label=label, shape=shape)
        (folder / "settings.json").write_text(json.dumps({"seeds": seeds, "limit": limit}), encoding="utf-8")
        script = Path(__file__).with_name("_aggregation_peers.py")
        run = subprocess.run([python, str(script), name], stdout=subprocess.DEVNULL, check=False)
        done = folder / "done.jsonl"
        lines = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
        names = list(PEERS)
        for line in map(json.loads, lines):
            share = None if line["error"] else np.load(folder / f"{line['number']}.npy")
            found[names[line["number"]]] = (share, line["seconds"], line["error"] or "")
    for peer in PEERS:
        found.setdefault(peer, (None, float("nan"), f"the peers' process ended with code {run.returncode}"))
    return found


def peers_python() -> tuple[str | None, str]:
    """The Python that has the peers, or None and why."""
    python = os.environ.get("TRUEUP_PEERS")
    if not python:
        return None, "crowd-kit and cleanlab are left out: set TRUEUP_PEERS to a Python that has them"
    try:
        command = "import crowdkit, cleanlab; print(crowdkit.__version__, cleanlab.__version__)"
        run = subprocess.run([python, "-c", command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return None, f"crowd-kit and cleanlab are left out: the Python in TRUEUP_PEERS cannot import them ({error})"
    crowdkit, cleanlab = run.stdout.split()
    return python, f"Peers: crowd-kit {crowdkit}, cleanlab {cleanlab}."


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------------------- tables


def accuracy_table(results: Sequence[SetResult]) -> str:
    """Models × sets; the best of each column is starred."""
    first, later, judges = (
        [r for r in results if r.name in names] for names in (CROWD_SETS, LATER_CROWD_SETS, JUDGE_SETS)
    )
    crowd = [*first, *later]
    with_peers = any(set(PEERS) & {*r.correct, *r.missing} for r in results)
    models = [*MODELS, AUTO, *PEERS] if with_peers else [*MODELS, AUTO]
    groups = [([r], r.short) for r in first] + ([(first, "mean")] if first else [])
    groups += [([r], r.short) for r in later] + ([(later, "mean later"), (crowd, "mean all")] if later else [])
    groups += [([r], r.short) for r in judges] + ([([*crowd, *judges], "mean+judge")] if judges and crowd else [])
    # A model without an answer on some set has no mean either: one over fewer sets would not compare.
    table = np.array([[np.mean([r.accuracy(model) for r in group]) for group, _ in groups] for model in models])
    best = np.nanmax(table, axis=0)

    def cell(value: float, most: float) -> str:
        return "- " if np.isnan(value) else f"{value:.4f}{'*' if value >= most - 5e-5 else ' '}"

    rows = [[model, *map(cell, row, best)] for model, row in zip(models, table, strict=True)]
    return as_text(["accuracy", *(f"{title} " for _, title in groups)], rows)


@dataclass(frozen=True)
class Duel:
    """How "auto" does against one other model, over the sets that both have an answer for."""

    other: str
    difference: float
    error: float  # standard error with items as the chance; the sets are taken as they are
    wins: list[str]
    losses: list[str]
    n_sets: int


def duel(results: Sequence[SetResult], other: str) -> Duel | None:
    both = [r for r in results if other in r.correct]
    if not both:
        return None
    gaps = [r.correct[AUTO] - r.correct[other] for r in both]
    means = np.array([g.mean() for g in gaps])
    variance = sum(g.var(ddof=1) / len(g) for g in gaps) / len(gaps) ** 2
    wins = [r.short for r, m in zip(both, means, strict=True) if m > 1e-12]
    losses = [f"{r.short} {m:+.3f}" for r, m in zip(both, means, strict=True) if m < -1e-12]
    return Duel(other, float(means.mean()), float(np.sqrt(variance)), wins, losses, len(both))


def duel_table(results: Sequence[SetResult]) -> str:
    rows = []
    for other in (*PEERS, *MODELS):
        found = duel(results, other)
        if found is not None:
            score = f"{len(found.wins)}-{found.n_sets - len(found.wins) - len(found.losses)}-{len(found.losses)}"
            gap = f"{found.difference:+.4f} ± {found.error:.4f}"
            rows.append([other, gap, score, ", ".join(found.losses) or "none"])
    return as_text(["auto less", "mean ± s.e.", "won-even-lost", "lost sets"], rows, left=(0, 3))


def published_table(results: Sequence[SetResult]) -> str:
    shown = [r for r in results if r.name in PUBLISHED]
    if not shown:
        return "No set here has published values."
    measured = ("Majority", "OneCoin", "DawidSkene(pooling=0)", AUTO)
    values = np.array([[*PUBLISHED[r.name], *(r.accuracy(m) for m in measured)] for r in shown])
    rows = [[r.short, *(f"{x:.3f}" for x in row)] for r, row in zip(shown, values, strict=True)]
    rows.append(["mean", *(f"{x:.4f}" for x in values.mean(axis=0))])
    return as_text(["set", *(f"published {m}" for m in PUBLISHED_MODELS), *(f"trueup {m}" for m in measured)], rows)


def seconds_table(results: Sequence[SetResult]) -> str:
    models = [m for m in (*MODELS, AUTO, *PEERS) if any(m in r.seconds for r in results)]
    rows = [[m, *(f"{r.seconds[m]:.2f}" if m in r.seconds else "-" for r in results)] for m in models]
    return as_text(["seconds", *(r.short for r in results)], rows)


def report(results: Sequence[SetResult], peers: str, seeds: int) -> str:
    """All tables."""
    crowd = [r for r in results if r.name in ALL_CROWD_SETS]
    parts = [
        "1. Accuracy of the inferred truth (* best of the column; ties in the arg max are split)",
        f"{peers}\nDefault settings; MACE and cleanlab's last ties are random and averaged over {seeds} seeds."
        "\ncleanlab's consensus needs class probabilities. Without features these are smoothed shares of votes: on all"
        "\nother items, or on the same item without one vote, averaged over the votes. Its majority needs none.",
        accuracy_table(results),
    ]
    if crowd:
        parts += ['"auto" less each other model, mean over the crowd sets', duel_table(crowd)]
    if len(results) > len(crowd):
        parts += ["The same with the judge set", duel_table(results)]
    parts += ["Values that were published, beside what is measured here", published_table(results)]
    total = sum(r.seconds[AUTO] for r in crowd)
    parts += [
        f'2. What "auto" chose ({total:.1f} s for the {len(crowd)} crowd sets together)',
        "\n".join(f"{r.short} ({r.seconds[AUTO]:.1f} s): {r.reason}" for r in results),
        "Seconds of a fit on all votes (informational; peers without starting Python)",
        seconds_table(results),
    ]
    absent = [f"{r.short}: {model}: {why}" for r in results for model, why in r.missing.items()]
    if absent:
        parts += ["No answer from", "\n".join(absent)]
    return "\n\n".join(parts)


def as_json(results: Sequence[SetResult]) -> dict[str, Any]:
    return {
        "sets": {
            r.name: {
                "n_items_with_truth": len(r.correct[AUTO]),
                "accuracy": {m: r.accuracy(m) for m in r.correct},
                "seconds": r.seconds,
                "missing": r.missing,
                "auto": {
                    "reason": r.reason,
                    "candidates": [dict(zip(("model", "weight", "score"), c, strict=True)) for c in r.chosen],
                },
            }
            for r in results
        },
        "published": {name: dict(zip(PUBLISHED_MODELS, values, strict=True)) for name, values in PUBLISHED.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aggregation", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small sets, one seed, 30 s for a peer")
    parser.add_argument("--sets", help="names of sets with commas between")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args(arguments)
    names = options.sets.split(",") if options.sets else QUICK_SETS if options.quick else ALL_SETS
    unknown = sorted(set(names) - set(ALL_SETS))
    if unknown:
        parser.error(f"unknown sets {', '.join(unknown)}; there are {', '.join(ALL_SETS)}")
    seeds = 1 if options.quick else 3
    peers, said = peers_python()
    say(said)
    try:
        if options.quick:
            results = [measure(name, peers=peers, seeds=seeds, limit=30) for name in names]
        else:  # one at a time, since times are measured
            cases = [Case(name, 0 if peers is None else seeds) for name in names]
            rows = run_cases("aggregation", run_set, cases, processes=1, folder=RUNS)
            results = [SetResult.of_row(row) for row in rows]
    except FileNotFoundError as error:
        parser.exit(1, f"{error}\n")
    print(report(results, said, seeds))
    if options.json:
        options.json.write_text(json.dumps(as_json(results), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
