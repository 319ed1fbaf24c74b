"""The course over time: the metric of each batch as `evaluate` sees it, and each judge's errors on vetted items."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from trueup.answers.evaluate import evaluate
from trueup.answers.share import share
from trueup.exceptions import silenced_warnings
from trueup.monitor.batch import Batch
from trueup.monitor.streams import Panel, Stream

Row = dict[str, Any]


def estimate_batch(batch: Batch, settings: Mapping[str, Any]) -> Row:
    """Mean and interval of the metric in the population that a batch came from, and what the interval rests on."""
    level, seed = settings["level"], settings["random_state"]
    with silenced_warnings():
        labels = batch.labels()
        if batch.prediction is None:
            shares = share(labels, of=settings["of"], target="population", level=level, random_state=seed)
            estimate, basis = shares.overall, shares.basis
        else:
            evaluation = evaluate(
                batch.predictions(),
                labels,
                metrics=[settings["metric"]],
                positive=settings["positive"],
                target="population",
                level=level,
                random_state=seed,
            )
            estimate, basis = evaluation[settings["metric"]], evaluation.basis
    low, high = estimate.interval(level)
    return {"mean": float(estimate.mean), "low": float(low), "high": float(high), "basis": basis}


def row_to_json(row: Row) -> str:
    """A row as text."""
    return json.dumps({name: value if value == value else None for name, value in row.items()})


def row_from_json(text: str) -> Row:
    """The row of `row_to_json`."""
    return {name: np.nan if value is None else value for name, value in json.loads(text).items()}


def judge_rows(
    batches: Sequence[Batch],
    counted: Sequence[Mapping[Stream, tuple[int, int]]],
    panels: Sequence[Panel],
    *,
    window: int,
    level: float,
) -> list[Row]:
    """Each judge's share of errors on the vetted items of the last batches, with an interval, after each batch.

    Parameters
    ----------
    batches, counted, panels : sequences of the same length
        With what was counted in each batch, and the judges whose majority is followed there.
    window : int
        How many batches, up to the one in question, the vetted items are of: those of one are few.
    level : float
    """
    rows = []
    for last, batch in enumerate(batches):
        majority = batch.majority(panels[last])
        for judge in batch.judges:
            stream = Stream("judge on gold", (judge,))
            told = [one.get(stream, (0, 0)) for one in counted[max(0, last + 1 - window) : last + 1]]
            wrong, n = (sum(cells) for cells in zip(*told, strict=True))
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
    """How often a judge says something else than most."""
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
