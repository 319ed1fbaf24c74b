"""Learning curves: how good the model is after each answer of the oracle; each finished one is kept on disk."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._runs import RUNS, fingerprint
from experiments.dolatshah2018.cleaning_sets import CROWDS, CleaningSet, cleaning_set, gaussian_set

__all__ = [
    "BASELINES",
    "CEILING",
    "EMI",
    "ORACLE_FREE",
    "START",
    "STRATEGIES",
    "WHOLE",
    "Curve",
    "Task",
    "completed",
    "kept_file",
    "learning_curve",
    "means",
    "stored",
    "timed_curve",
]

Array = npt.NDArray[np.float64]
RESTS_ON = ("cleaning", "training", "sessions")  # beside what all figures rest on
EMI = "EMI"
_PLAIN = {
    "Random": "random",
    "SortNoise": "noise-rate",
    "ActiveClean": "activeclean",
    "USample": "uncertainty",
    "ExpectError": "expected-error",
    "Hung": "hung",
}
# The paper's baselines, which get the same two parts as EMI.
BASELINES: dict[str, dict[str, Any]] = {name: {"strategy": strategy} for name, strategy in _PLAIN.items()}
_EMI: dict[str, dict[str, Any]] = {
    EMI: {},
    "EMI, op1 off": {"split": False},
    "EMI, op2 off": {"weigh": False},
    "EMI, both off": {"split": False, "weigh": False},
    "TARS as published": {"belief": "votes"},
    "TARS, op2 off": {"belief": "votes", "weigh": False},
    "TARS, both off": {"belief": "votes", "split": False, "weigh": False},
}
# Without a validation part all items train. Baselines need none, except for ExpectError.
WHOLE: dict[str, dict[str, Any]] = {
    f"{name}, all train": {"strategy": strategy, "split": False}
    for name, strategy in _PLAIN.items()
    if name != "ExpectError"
}
ORACLE_FREE = {"NoiseRemove": "noise-removal", "NoiseTolerate": "noise-tolerant"}
CEILING, START = "truth", "noisy labels"
STRATEGIES = {**_EMI, **BASELINES, **WHOLE}


@dataclass(frozen=True)
class Task:
    """One learning curve to make; what is not in `STRATEGIES` has no oracle and is a curve of one point.

    Attributes
    ----------
    prune : float
        As for `CleaningAdvisor`.
    n_items : int, optional
        The size of a big Gaussian set with noise rates (0.4, 0), whatever `data` is called.
    batch : int
        Labels for a decision.
    """

    data: str
    strategy: str
    repetition: int
    cleanings: int
    prune: float = 0.0
    n_items: int | None = None
    batch: int = 1


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy and F-score (macro for several classes) on the test items, before and after each answer."""

    accuracy: Array
    f1: Array
    seconds: float  # for a decision, on average


def learning_curve(data: CleaningSet, options: dict[str, Any], cleanings: int, seed: int, batch: int = 1) -> Curve:
    """Ask for a batch of labels, tell the truth, test the model; until `cleanings` labels are clean."""
    classes = data.labels.classes
    advisor = tu.CleaningAdvisor(_model(), data.X, data.labels, noise=data.noise, random_state=seed, **options)
    truths = dict(zip(data.labels.items.tolist(), classes[data.truth].tolist(), strict=True))
    values = [_tested(advisor.model_, data)]
    took = 0.0
    decisions = cleanings // batch
    for _ in range(decisions):
        started = time.perf_counter()
        asked = list(advisor.ask(batch))
        took += time.perf_counter() - started
        if asked:  # a small set may be clean by now
            advisor.tell({item: truths[item] for item in asked})
            values.append(_tested(advisor.model_, data))
        else:
            values.append(values[-1])
    table = np.array(values)
    return Curve(table[:, 0], table[:, 1], took / max(decisions, 1))


def _model() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _tested(model: Any, data: CleaningSet) -> tuple[float, float]:
    n_classes = data.labels.n_classes
    codes = np.searchsorted(data.labels.classes, model.predict(data.X_test))
    counts = tu.metrics.confusion_counts(data.y_test, codes, n_classes)
    f1 = tu.metrics.get_metric("f1" if n_classes == 2 else "macro_f1", list(range(n_classes)))(counts)
    return float(np.trace(counts) / counts.sum()), float(np.nan_to_num(f1))


def _without_oracle(data: CleaningSet, name: str, seed: int) -> Curve:
    """One point: all items train, as no validation part is needed."""
    if name == CEILING:
        model = _model().fit(data.X, data.labels.classes[data.truth])
    else:
        advisor = tu.CleaningAdvisor(
            _model(), data.X, data.labels, noise=data.noise, strategy="random", split=False, random_state=seed
        )
        model = advisor.model_ if name == START else advisor.oracle_free(ORACLE_FREE[name])
    accuracy, f1 = _tested(model, data)
    return Curve(np.array([accuracy]), np.array([f1]), 0.0)


def one(task: Task) -> Curve:
    """The curve of a task; seeds follow from its set and repetition alone."""
    if task.n_items is not None:
        return timed_curve(task)
    data = cleaning_set(task.data, task.repetition)
    if task.strategy not in STRATEGIES:
        return _without_oracle(data, task.strategy, task.repetition)
    options = STRATEGIES[task.strategy] | {"prune": task.prune}
    if task.data in CROWDS and "strategy" not in options:
        options |= {"refine": 0}  # the first-order step: with 8 classes × 51 coefficients a refined one takes minutes
    return learning_curve(data, options, task.cleanings, task.repetition, task.batch)


def timed_curve(task: Task) -> Curve:
    """Figure 12: a big Gaussian set with noise rates (0.4, 0)."""
    assert task.n_items is not None
    rng = np.random.default_rng([12, task.n_items, task.repetition])
    data = gaussian_set(rng, n=task.n_items, mix=((1.0, (0.4, 0.0)),))
    return learning_curve(data, STRATEGIES[task.strategy] | {"prune": task.prune}, task.cleanings, task.repetition)


def kept_file() -> Path:
    """Where finished curves are kept, so that an interrupted run goes on; another file for other code."""
    return RUNS / f"curves-{fingerprint(one)}.jsonl"


def stored(path: Path | None) -> dict[Task, Curve]:
    """The curves in a file; a line that an interrupt cut short, or of another version, is left out."""
    found: dict[Task, Curve] = {}
    if path is None or not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["trueup"] == tu.__version__:
            found[Task(**row["task"])] = Curve(np.array(row["accuracy"]), np.array(row["f1"]), row["seconds"])
    return found


def completed(tasks: Sequence[Task], path: Path | None = None) -> dict[Task, Curve]:
    """The curves of all tasks. Those in the file are not made again; new ones are added to it one by one."""
    kept = stored(path)
    missing = [task for task in dict.fromkeys(tasks) if task not in kept]
    started = last = time.monotonic()
    for number, task in enumerate(missing):
        kept[task] = one(task)
        if path is not None:
            _append(path, task, kept[task])
        now = time.monotonic()
        if now - last > 15 or number + 1 == len(missing):
            last = now
            print(f"  {number + 1} of {len(missing)} curves after {now - started:.0f} s", file=sys.stderr, flush=True)
    return {task: kept[task] for task in tasks}


def _append(path: Path, task: Task, curve: Curve) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "trueup": tu.__version__,
        "task": asdict(task),
        "accuracy": curve.accuracy.tolist(),
        "f1": curve.f1.tolist(),
        "seconds": curve.seconds,
    }
    cut_short = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut_short else "") + json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


def means(curves: dict[Task, Curve], data: str, strategy: str, what: str = "accuracy") -> Array:
    """The mean over the learning curve, one number for each repetition in their order."""
    mine = sorted(
        (task for task in curves if (task.data, task.strategy) == (data, strategy)), key=lambda t: t.repetition
    )
    return np.array([getattr(curves[task], what).mean() for task in mine])
