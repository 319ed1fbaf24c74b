"""The course over time: the metric of each batch from the votes and checked items of all, and each judge's errors.

Batches are the slices of one answer of the core: how far the crowd is off is common to all of them, each deviates by
itself beside that, and every checked item corrects all batches, its own the most.
"""

from __future__ import annotations

import json
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from trueup.answers.evaluate import evaluate
from trueup.answers.share import share
from trueup.exceptions import silenced_warnings
from trueup.monitor.batch import Batch, join_batches
from trueup.monitor.streams import Panel, Stream

Row = dict[str, Any]

# Estimated together, the newest ones: a look then takes less than a second, and more would hardly know more.
MOST_BATCHES = 24
MOST_ITEMS = 12_000


def estimate_batches(batches: Sequence[Batch], settings: Mapping[str, Any]) -> dict[str, Row]:
    """Mean and interval of the metric in the population of each batch, and what they rest on, by the batch's time."""
    level = settings["level"]
    joined = join_batches(batches)
    which = np.repeat(np.arange(len(batches)), [batch.n_items for batch in batches])
    asked: dict[str, Any] = {
        "by": dict(enumerate(which.tolist())) if len(batches) > 1 else None,
        "target": "population",
        "level": level,
        "check_dependence": False,
        "random_state": settings["random_state"],
    }
    estimates: Any
    with silenced_warnings():
        if joined.prediction is None:
            shares = share(joined.labels(), of=settings["of"], **asked)
            estimates, basis = shares if len(batches) > 1 else [shares.overall], shares.basis
        else:
            metrics = [settings["metric"]]
            evaluation = evaluate(
                joined.predictions(), joined.labels(), metrics=metrics, positive=settings["positive"], **asked
            )
            estimates = evaluation.by.compared(metrics[0]) if len(batches) > 1 else [evaluation[metrics[0]]]
            basis = evaluation.basis
    if joined.n_gold and len(batches) > 1:
        basis = f"{basis} of {len(batches)} batches"
    rows = {}
    for k, batch in enumerate(batches):
        low, high = estimates[k].interval(level)
        rows[batch.when] = {"mean": float(estimates[k].mean), "low": float(low), "high": float(high), "basis": basis}
    return rows


def blocks_to_estimate(batches: Sequence[Batch], starts: Sequence[int], estimated: Container[str]) -> list[range]:
    """The places of batches to estimate together: the newest of each baseline, and older ones never done."""
    blocks = []
    for start, last in zip(starts, [*starts[1:], len(batches)], strict=True):
        while any(batch.when not in estimated for batch in batches[start:last]):
            n_items = np.cumsum([batch.n_items for batch in batches[start:last]][::-1])
            n_batches = int(np.clip((n_items <= MOST_ITEMS).sum(), 1, MOST_BATCHES))
            first = max(last - n_batches, start)
            blocks.append(range(first, last))
            last = first
    return blocks[::-1]


def rows_to_json(rows: Mapping[str, Row]) -> str:
    """Rows of batches as text."""
    plain = {when: {name: None if v != v else v for name, v in row.items()} for when, row in rows.items()}
    return json.dumps({"batches": plain})


def rows_from_json(text: str) -> dict[str, Row]:
    """The rows of `rows_to_json`; version 0.2 wrote one batch by itself, which gives none."""
    rows = json.loads(text).get("batches", {})
    return {when: {name: np.nan if v is None else v for name, v in row.items()} for when, row in rows.items()}


def judge_rows(
    batches: Sequence[Batch],
    counted: Sequence[Mapping[Stream, tuple[int, int]]],
    panels: Sequence[Panel],
    *,
    window: int,
    level: float,
) -> list[Row]:
    """Each judge's share of errors on the checked items of the last batches, with an interval, after each batch.

    Checked items are of `window` batches up to the one in question, since those of one are few; `panels` are the
    judges whose majority is followed.
    """
    rows = []
    for last, batch in enumerate(batches):
        majority = batch.majority(panels[last])
        for judge in batch.judges:
            stream = Stream("judge on gold", (judge,))
            counts = [of_batch.get(stream, (0, 0)) for of_batch in counted[max(0, last + 1 - window) : last + 1]]
            wrong, n = (sum(cells) for cells in zip(*counts, strict=True))
            low, high = share_interval(wrong, n, level)
            rows.append(
                {
                    "when": batch.when,
                    "judge": judge,
                    "error": wrong / n if n else np.nan,
                    "low": low,
                    "high": high,
                    "n_gold": n,
                    "disagreement": _disagreement(batch, judge, majority),
                    "n": int((batch.answers_of[judge] >= 0).sum()),
                }
            )
    return rows


def _disagreement(batch: Batch, judge: Hashable, majority: Any) -> float:
    """How often a judge names another class than most."""
    answers = batch.answers_of[judge]
    both = (answers >= 0) & (majority >= 0)
    return float((answers != majority)[both].mean()) if both.any() else np.nan


def share_interval(hits: int, n: int, level: float) -> tuple[float, float]:
    """The interval of Jeffreys for a share, which reaches 0 or 1 where nothing or all was hit.

    Examples
    --------
    >>> [round(end, 3) for end in share_interval(3, 30, 0.95)], share_interval(0, 0, 0.95)
    ([0.029, 0.243], (nan, nan))
    """
    if not n:
        return np.nan, np.nan
    tail = (1 - level) / 2
    low, high = (float(scipy.stats.beta.ppf(share, hits + 0.5, n - hits + 0.5)) for share in (tail, 1 - tail))
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)
