"""How fast is trueup, beside crowd-kit, and how do time and memory grow?

Usage: python -m benchmarks.speed [--quick]

TRUEUP_PEERS names a Python that has crowd-kit (and need not have trueup); without it only trueup is measured. Both get
the same votes in the same run and take turns; the best time of each counts. Not timed on either side: making the data,
the frame or `Labels` (its time is printed), imports, and compiling, which a first small fit does. Each timed fit of
trueup starts from `Labels` without cached properties and includes the labels of all items (argmax of `posterior`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._peers import peak_bytes, seconds

Columns = dict[str, npt.NDArray[np.int64]]
PEERS = Path(__file__).with_name("_peers.py")


@dataclass(frozen=True)
class Size:
    """How many votes of what kind."""

    n_items: int
    n_labelers: int
    n_classes: int
    votes_per_item: int = 5

    @property
    def n_votes(self) -> int:
        """All votes."""
        return self.n_items * self.votes_per_item


@dataclass(frozen=True)
class Row:
    """A line of the table of tasks."""

    task: str
    ours: float
    theirs: float | None = None
    target: float | None = None
    agreement: float | None = None
    our_peak: int | None = None
    their_peak: int | None = None


def make_votes(size: Size, seed: int = 0) -> Columns:
    """Votes of labelers with accuracies between 50% and 90%, errors uniform, distinct labelers for each item."""
    rng = np.random.default_rng(seed)
    shape = (size.n_items, size.votes_per_item)
    truth = rng.integers(size.n_classes, size=size.n_items)
    # Steps that cannot go once round the circle of labelers never meet the same one twice.
    steps = rng.integers(1, size.n_labelers // size.votes_per_item, size=shape, endpoint=True)
    steps[:, 0] = rng.integers(size.n_labelers, size=size.n_items)
    labeler = np.cumsum(steps, axis=1) % size.n_labelers
    right = rng.random(shape) < rng.uniform(0.5, 0.9, size=size.n_labelers)[labeler]
    wrong = (truth[:, None] + rng.integers(1, size.n_classes, size=shape)) % size.n_classes
    return {
        "item": np.repeat(np.arange(size.n_items), size.votes_per_item),
        "labeler": labeler.ravel(),
        "label": np.where(right, truth[:, None], wrong).ravel(),
    }


def save(votes: Columns, path: Path) -> None:
    np.savez(path, item=votes["item"], labeler=votes["labeler"], label=votes["label"])


def fit_and_label(model: tu.noise.NoiseModel, labels: tu.Labels) -> tuple[float, npt.NDArray[Any]]:
    """Seconds for a fit and the labels of all items, and these labels."""
    fresh = replace(labels)  # without cached properties
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        return seconds(lambda: labels.classes[model.fit(fresh).posterior(fresh).argmax(axis=1)])


def ask_peer(task: str, votes: Columns, folder: Path) -> dict[str, Any] | None:
    """What crowd-kit needs for a task, or None where there is no crowd-kit."""
    python = os.environ.get("TRUEUP_PEERS")
    if python is None:
        return None
    save(votes, folder / "votes.npz")
    call = [python, str(PEERS), task, str(folder / "votes.npz"), str(folder / "labels.npy")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"crowd-kit failed at {task}, left out: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return {**json.loads(done.stdout.splitlines()[-1]), "labels": np.load(folder / "labels.npy")}


def found(answer: dict[str, Any] | None, what: str) -> Any:
    return None if answer is None else answer[what]


def take_turns(
    task: str, ours: Callable[[], tuple[float, npt.NDArray[Any]]], votes: Columns, folder: Path, *, turns: int
) -> tuple[float, dict[str, Any] | None, float | None]:
    """Best seconds of trueup, the best answer of the peer, and the share of items with the same label."""
    mine, theirs = [], []
    for _ in range(turns):
        mine += [ours(), ours(), ours()]
        answer = ask_peer(task, votes, folder)
        if answer is not None:
            theirs.append(answer)
    best, labels = min(mine, key=lambda result: result[0])
    if not theirs:
        return best, None, None
    peer = min(theirs, key=lambda answer: answer["seconds"])
    return best, peer, float((peer["labels"] == labels).mean())


def dawid_skene_rows(size: Size, folder: Path, turns: int) -> list[Row]:
    """Dawid–Skene as published against crowd-kit, and the default model."""
    votes = make_votes(size)
    building, labels = seconds(lambda: tu.Labels.from_frame(votes))
    print(f"{labels}: Labels built in {building:.2f} s")
    published = tu.noise.DawidSkene(pooling=0, max_iter=20, tol=0)
    fit_and_label(published, labels)
    best, peer, same = take_turns("dawid_skene", lambda: fit_and_label(published, labels), votes, folder, turns=turns)
    name = f"Dawid–Skene, {size.n_votes:,} votes, {size.n_classes} classes"
    default = min(fit_and_label(tu.noise.DawidSkene(max_iter=20, tol=0), labels)[0] for _ in range(3))
    settled = tu.noise.DawidSkene()
    until = min(fit_and_label(settled, labels)[0] for _ in range(2))
    return [
        Row(f"{name}, 20 iterations", best, found(peer, "seconds"), 40, same),
        Row("  the same with pooling (default), 20 iterations", default, found(peer, "seconds")),
        Row(f"  the same with the default settings, {settled.n_iter_} iterations", until),
    ]


def large_row(size: Size, folder: Path, turns: int) -> Row:
    """Dawid–Skene on many votes, an iteration, each side in processes of its own to see its memory."""
    runs = [in_child(size)]
    votes = make_votes(size)
    peer = ask_peer("dawid_skene_iteration", votes, folder)
    runs += [in_child(size) for _ in range(turns - 1)]
    same = None
    if peer is not None:  # which ran for two iterations
        two = tu.noise.DawidSkene(pooling=0, max_iter=2, tol=0)
        same = float((fit_and_label(two, tu.Labels.from_frame(votes))[1] == peer["labels"]).mean())
    return Row(
        f"Dawid–Skene, {size.n_votes:,} votes, {size.n_classes} classes, an iteration",
        min(run["seconds"] for run in runs) / 20,
        found(peer, "seconds"),
        30,
        same,
        our_peak=max(run["peak"] for run in runs),
        their_peak=found(peer, "peak"),
    )


def glad_row(size: Size, folder: Path, turns: int) -> Row:
    """GLAD, an iteration; labels are compared on fewer votes, where crowd-kit can be run until it settles."""
    votes = make_votes(size)
    labels = tu.Labels.from_frame(votes)
    model = tu.noise.GLAD(max_iter=10, tol=0)
    fit_and_label(model, labels)
    best, peer, _ = take_turns("glad_iteration", lambda: fit_and_label(model, labels), votes, folder, turns=turns)
    few = make_votes(replace(size, n_items=size.n_items // 20))
    settled = ask_peer("glad", few, folder)
    same = None
    if settled is not None:
        same = float((fit_and_label(tu.noise.GLAD(), tu.Labels.from_frame(few))[1] == settled["labels"]).mean())
    return Row(
        f"GLAD, {size.n_votes:,} votes, {size.n_classes} classes, an iteration",
        best / 10,
        found(peer, "seconds"),
        100,
        same,
    )


def in_child(size: Size) -> dict[str, Any]:
    """Seconds and memory of a fit in a process of its own."""
    numbers = [str(n) for n in (size.n_items, size.n_labelers, size.n_classes, size.votes_per_item)]
    call = [sys.executable, "-m", "benchmarks.speed", "--child", *numbers]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def child(size: Size) -> None:
    """The other side of `in_child`: the peak counts everything, the input columns and the imports too."""
    model = tu.noise.DawidSkene(pooling=0, max_iter=20, tol=0)
    fit_and_label(model, tu.Labels.from_frame(make_votes(replace(size, n_items=10_000))))
    with tempfile.TemporaryDirectory() as folder:
        # Made in another process, so that the peak is not that of making the votes.
        path = str(Path(folder) / "votes.npz")
        make = [sys.executable, "-m", "benchmarks.speed", "--make", path, *map(str, vars(size).values())]
        subprocess.run(make, check=True)
        before = peak_bytes()
        with np.load(path) as data:
            columns = {name: data[name] for name in data.files}
    labels = tu.Labels.from_frame(columns)
    read = peak_bytes()
    taken = min(fit_and_label(model, labels)[0] for _ in range(3))
    print(json.dumps({"seconds": taken, "before": before, "read": read, "peak": peak_bytes()}))


def import_ratio(repeats: int = 7) -> tuple[float, float]:
    """Best seconds of ``import trueup`` and ``import sklearn.metrics``, each in fresh interpreters that take turns."""
    best = {"trueup": np.inf, "sklearn.metrics": np.inf}
    for _ in range(repeats):
        for module in best:
            code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            best[module] = min(best[module], float(done.stdout))
    return best["trueup"], best["sklearn.metrics"]


def show(rows: list[Row]) -> None:
    print(f"\n{'task':<66}{'trueup s':>10}{'peer s':>10}{'ratio':>8}{'target':>8}{'same label':>12}{'memory GB':>13}")
    for row in rows:
        theirs = "–" if row.theirs is None else f"{row.theirs:.3f}"
        ratio = "–" if row.theirs is None else f"{row.theirs / row.ours:.0f} ×"
        target = "–" if row.target is None else f"{row.target:.0f} ×"
        same = "–" if row.agreement is None else f"{row.agreement:.3%}"
        peaks = [f"{peak / 1e9:.2f}" for peak in (row.our_peak, row.their_peak) if peak is not None]
        print(f"{row.task:<66}{row.ours:>10.4f}{theirs:>10}{ratio:>8}{target:>8}{same:>12}{' / '.join(peaks):>13}")


def show_growth(sizes: list[Size]) -> None:
    print("\nGrowth: Dawid–Skene, 2 classes, 20 iterations and the labels; memory over that of the imports")
    heads = ("ns / vote / iteration", "bytes / vote, built", "bytes / vote, peak")
    print(f"{'votes':>12}{'seconds':>10}{heads[0]:>24}{heads[1]:>22}{heads[2]:>22}")
    for size in sizes:
        run = in_child(size)
        built, peak = ((run[name] - run["before"]) / size.n_votes for name in ("read", "peak"))
        each = run["seconds"] / 20 / size.n_votes * 1e9
        print(f"{size.n_votes:>12,}{run['seconds']:>10.4f}{each:>24.2f}{built:>22.0f}{peak:>22.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the votes, one turn")
    parser.add_argument("--child", nargs=4, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(Size(*options.child))
    if options.make:
        return save(make_votes(Size(*map(int, options.make[1:]))), Path(options.make[0]))
    if "TRUEUP_PEERS" not in os.environ:
        print("crowd-kit is left out: set TRUEUP_PEERS to a Python that has it")
    part = 10 if options.quick else 1
    turns = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            *dawid_skene_rows(Size(100_000 // part, 200, 10), folder, turns),
            large_row(Size(2_000_000 // part, 1000, 2), folder, min(turns, 2)),
            glad_row(Size(20_000 // part, 200, 4), folder, 1),
        ]
    show(rows)
    show_growth([Size(n // part, 1000, 2) for n in (20_000, 200_000, 2_000_000)])
    ours, sklearns = import_ratio()
    print(
        f"\nimport trueup {ours:.3f} s, import sklearn.metrics {sklearns:.3f} s: {ours / sklearns:.2f} × (target 1.5 ×)"
    )
    return None


if __name__ == "__main__":
    main()
