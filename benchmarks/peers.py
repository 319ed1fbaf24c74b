"""trueup beside other libraries on the same data: labels, intervals, speed, memory.

Run ``python -m benchmarks.peers [section ...] [--quick] [--json out.json]``. TRUEUP_PEERS names a Python with the other
libraries, in an environment of its own: ``python -m venv .venv-peers && .venv-peers/bin/pip install -r
requirements/peers.txt``, then ``TRUEUP_PEERS=.venv-peers/bin/python``. What does not install there is left out with a
sentence. Real crowd sets are read where TRUEUP_DATA names their folder. Of truths libraries see those of vetted items.

- labels: how many true labels each finds on two simulated and all crowd sets, the seconds it takes and the most memory
  of its process. Defaults; where classes tie for an item they share it.
- intervals: how often a pass rate, from one judge on all items and some vetted ones, is held, and how wide that is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Tally, as_text, say, share
from benchmarks._data import CROWD_SETS, LATER_CROWD_SETS, data_folder, load_crowd
from benchmarks._peer_tasks import INTERVAL_TASKS, LABEL_TASKS
from benchmarks._sections import run_sections

SCRIPT = Path(__file__).with_name("_peer_tasks.py")
LIMIT = 900  # seconds of another library for all sets
REAL_SETS = (*CROWD_SETS, *LATER_CROWD_SETS)
N_ITEMS, N_VETTED, RIGHT = 2000, 60, (0.80, 0.90)
OWN = "trueup"


@dataclass(frozen=True)
class Answer:
    """What a library said, or why it said nothing."""

    arrays: list[np.ndarray]  # one for each set
    seconds: float = float("nan")  # of all sets
    peak: float = float("nan")  # bytes of the whole process
    version: str = ""
    error: str = ""


def ask(task: str, package: str, inputs: Sequence[Mapping[str, Any]], limit: float | None = LIMIT) -> Answer:
    """Have a library answer in a process of its own, which may take so many seconds."""
    python = os.environ.get("TRUEUP_PEERS") if package not in {OWN, "scipy"} else sys.executable
    if not python:
        return Answer([], error="left out: set TRUEUP_PEERS to a Python that has it")
    with tempfile.TemporaryDirectory() as folder:
        for number, arrays in enumerate(inputs):
            np.savez(Path(folder) / f"{number}.npz", **arrays)
        # -P: what lies beside the script must not shadow what a library imports.
        call = [python, "-P", str(SCRIPT), task, folder]
        source = {"PYTHONPATH": str(Path(tu.__file__).parents[1])} if package == OWN else {}
        hidden = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        limit = None if package == OWN else limit
        try:
            done = subprocess.run(call, env=hidden | source, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return Answer([], error=f"took more than {limit} s")
        if done.returncode:
            return Answer([], error=f"failed: {(done.stderr.strip().splitlines() or ['no word'])[-1][:100]}")
        told = json.loads(done.stdout.strip().splitlines()[-1])
        arrays_out = [np.load(Path(folder) / f"{number}.npy") for number in range(len(inputs))]
        return Answer(arrays_out, told["seconds"], told["peak"], told["version"])


def votes_of(votes: tu.Labels) -> dict[str, np.ndarray]:
    table = votes.votes.tocoo()
    labeler, label = np.divmod(table.col, votes.n_answers)
    times = table.data.astype(int)
    shape = np.array([votes.n_items, votes.n_labelers, votes.n_classes])
    keep = label < votes.n_classes  # abstentions are no votes to those who know none
    columns = {"item": table.row, "labeler": labeler, "label": label}
    return {**{name: np.repeat(column[keep], times[keep]) for name, column in columns.items()}, "shape": shape}


def _made_sets(quick: bool) -> dict[str, tuple[tu.Labels, np.ndarray]]:
    """Sets with a known truth: independent errors, and errors of a family of labelers."""
    n = 200 if quick else 2000
    alone = tu.simulate.dawid_skene(n_items=n, n_labelers=10, random_state=1)
    together = tu.simulate.dependent(n_items=n, n_labelers=7, families=[[0, 1, 2]], random_state=1)
    return {name: (sim.labels, np.asarray(sim.truth)) for name, sim in (("made", alone), ("made, family", together))}


def labels(quick: bool) -> str:
    """True labels found on each set, seconds and memory."""
    sets = _made_sets(quick)
    try:
        data_folder()
        sets |= {name: load_crowd(name) for name in (REAL_SETS[2:3] if quick else REAL_SETS)}
        note = ""
    except FileNotFoundError:
        note = "\nOpen crowd sets are left out: set TRUEUP_DATA to their folder."
    inputs = [votes_of(votes) for votes, _ in sets.values()]
    found: dict[str, list[np.ndarray]] = {}
    rows, absent = [], []
    for task, (package, _) in LABEL_TASKS.items():
        say(f"  {task}")
        answer = ask(task, package, inputs)
        if answer.error:
            absent.append(f"{task}: {answer.error}")
            continue
        found[task] = [_right(array, truth) for array, (_, truth) in zip(answer.arrays, sets.values(), strict=True)]
        shares = [float(right.mean()) for right in found[task]]
        cells = [f"{share:.4f}" for share in (*shares, float(np.mean(shares)))]
        cells += [f"{answer.seconds:.2f}", f"{answer.peak / 1e6:.0f}", _lead(found["trueup auto"], found[task])]
        rows.append([f"{task} ({answer.version})", *cells])
    names = [name.removeprefix("crowd-") for name in sets]
    head = ["share of true labels", *names, "mean", "seconds", "MB", '"auto" ahead by']
    place = head.index("mean")
    rows.sort(key=lambda row: -float(row[place]))
    text = (
        "Default settings, ties shared; seconds of all sets, MB of the whole process; ± is the standard error over "
        f"items.{note}\n\n{as_text(head, rows)}"
    )
    ahead = _ahead(rows, place, "finds more", default="trueup auto", highest=True)
    return "\n\n".join([text, ahead, *absent]).strip()


def _right(shares: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """How far the likeliest class of each item with a truth is the true one; classes that tie share the item."""
    known = truth >= 0
    top = shares[known] >= shares[known].max(axis=1, keepdims=True) - 1e-9
    return np.asarray(top[np.arange(known.sum()), truth[known]] / top.sum(axis=1))


def _lead(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> str:
    """The difference of two means over sets, with its standard error; items are the sample, sets are fixed."""
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    error = np.sqrt(sum(gap.var(ddof=1) / len(gap) for gap in gaps)) / len(gaps)
    return f"{np.mean([gap.mean() for gap in gaps]):+.4f} ± {error:.4f}"


def _ahead(rows: Sequence[Sequence[str]], place: int, verb: str, *, default: str, highest: bool) -> str:
    """Which libraries are ahead, in a column, of what trueup does by default."""
    sign = 1 if highest else -1
    ours = next((sign * float(row[place]) for row in rows if row[0].startswith(default)), None)
    if ours is None:
        return f"{default} gave no answer, so none is ahead of it or behind."
    others = [row[0] for row in rows if not row[0].startswith(OWN) and sign * float(row[place]) > ours]
    return f"Ahead of {default} ({verb}): {', '.join(others) if others else 'none'}."


def intervals(quick: bool) -> str:
    """Coverage and width of the interval of a pass rate from one judge and some vetted items."""
    n_runs = 2 if quick else 400
    inputs, rates = [], []
    for seed in range(n_runs):
        rng = np.random.default_rng([seed, 22])
        rate = float(rng.uniform(0.5, 0.8))
        truth = (rng.random(N_ITEMS) < rate).astype(int)
        judge = np.where(rng.random(N_ITEMS) < np.take(RIGHT, truth), truth, 1 - truth)
        at = rng.choice(N_ITEMS, N_VETTED, replace=False)
        inputs.append({"judge": judge, "at": at, "truth": truth[at]})
        rates.append(rate)
    rows, absent = [], []
    for task, (package, _) in INTERVAL_TASKS.items():
        say(f"  {task}")
        answer = ask(task, package, inputs)
        if answer.error:
            absent.append(f"{task}: {answer.error}")
            continue
        tally = Tally()
        for rate, ends in zip(rates, answer.arrays, strict=True):
            tally.add_interval(rate, float(ends.mean()), (float(ends[0]), float(ends[1])))
        seconds, peak = f"{answer.seconds / n_runs:.4f}", f"{answer.peak / 1e6:.0f}"
        rows.append([f"{task} ({answer.version})", share(tally), f"{tally.width:.4f}", seconds, peak])
    head = ["pass rate of the population", "holds %", "mean width", "seconds a run", "MB"]
    text = (
        f"One judge, right on {RIGHT[1]:.0%} of what passes and {RIGHT[0]:.0%} of what fails, on {N_ITEMS:,} items; "
        f"{N_VETTED} vetted at random; nominal {0.95:.0%}, {n_runs} runs\n\n{as_text(head, rows)}"
    )
    verbs = {2: "narrower", 3: "quicker"}
    ahead = [_ahead(rows, k, verb, default="trueup share", highest=False) for k, verb in verbs.items()]
    return "\n\n".join([text, *ahead, *absent]).strip()


main = partial(run_sections, "peers", __doc__, {"labels": labels, "intervals": intervals})


if __name__ == "__main__":
    main()
