"""What a figure asks of the library, as rows of numbers, and tables of many rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Tally, as_text, share
from benchmarks._runs import Row
from benchmarks._vetting_rivals import Sample, ppi_of_pool, ppi_plus_plus
from trueup._base.types import Codes, Floats
from trueup.answers.prepare import solution_on
from trueup.answers.share import Shares
from trueup.estimators.system_values import Population
from trueup.posteriors import Estimate, wilson

HEAD = ("covers % ± s.e.", "equal tails", "mean error", "mean |error|", "width")


def row_of(answer: str, true: float, estimate: Estimate, **more: Any) -> Row:
    """An estimate beside the truth."""
    return interval_row(
        answer, true, estimate.mean, estimate.interval(LEVEL), equal=estimate.interval(LEVEL, "equal"), **more
    )


def interval_row(
    answer: str,
    true: float,
    mean: float,
    interval: tuple[float, float],
    *,
    equal: tuple[float, float] | None = None,
    **more: Any,
) -> Row:
    """The same in numbers."""
    names = ("true", "mean", "low", "high", "equal_low", "equal_high")
    numbers = (true, mean, *interval, *(interval if equal is None else equal))
    return {"answer": answer, **dict(zip(names, map(float, numbers), strict=True)), **more}


def draw_gold(labels: tu.Labels, truth: Codes, n: int, rng: np.random.Generator) -> tuple[tu.Labels, Codes]:
    """The labels with the truth of so many items drawn at random, and which items these are."""
    at = np.sort(rng.choice(labels.n_items, n, replace=False))
    return with_checks(labels, truth, at), at


def with_checks(labels: tu.Labels, truth: Codes, at: Codes) -> tu.Labels:
    """The labels with the truth of these items, which were drawn at random."""
    truths = dict(zip(labels.items[at].tolist(), labels.classes[truth[at]].tolist(), strict=True))
    return labels.with_gold(truths, drawn="random")


def rows_of_rivals(right: Codes, f: Floats, at: Codes, **more: Any) -> list[Row]:
    """PPI++ for the pool and for the population, and a Wilson interval, from the vetted items at these positions.

    `f` is P(right) of each item by a model that has not seen the vetted items.
    """
    others = np.delete(np.arange(len(right)), at)
    sample = Sample(right[at].astype(float), f[at], f[others])
    true = float(np.mean(right))
    n_right = int(right[at].sum())
    return [
        interval_row("PPI++, pool", true, *ppi_of_pool(sample), **more),
        interval_row("PPI++ as printed", true, *ppi_plus_plus(sample), **more),
        interval_row("Wilson", true, n_right / len(at), wilson(n_right, len(at), level=LEVEL), **more),
    ]


def for_population(shares: Shares) -> Shares:
    """The same draws of the truth for a population of which items are drawn one by one."""
    evaluation = shares.evaluation
    task = replace(evaluation.task, population=Population())
    solution = solution_on(evaluation.draws_for(task.metric), task, np.random.default_rng(task.seed))
    return replace(shares, evaluation=replace(evaluation, task=task, solution=solution))


def select(rows: Sequence[Row], **values: Hashable) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in values.items())]


def tally_of(rows: Sequence[Row]) -> Tally:
    """How often the intervals hold, and how wide they are."""
    tally = Tally()
    for row in rows:
        ends = (row["low"], row["high"]), (row["equal_low"], row["equal_high"])
        tally.add_interval(row["true"], row["mean"], *ends)
    return tally


def coverage_table(
    rows: Sequence[Row],
    groups: Sequence[tuple[str, dict[str, Hashable]]],
    answers: Sequence[str],
    *,
    ratios: dict[str, Callable[[list[Row], Sequence[Row]], float]] | None = None,
) -> str:
    """Coverage, errors and widths by group (title, values of the rows) and answer.

    `ratios` has functions of the answer's rows and all rows of the group, by heading.
    """
    lines = []
    for title, values in groups:
        of_group = select(rows, **values)
        for answer in answers:
            own = select(of_group, answer=answer)
            if not own:
                continue
            tally = tally_of(own)
            cells = [f"{tally.bias:+.4f}", f"{tally.mae:.4f}", f"{tally.width:.4f}"]
            values = [ratio(own, of_group) for ratio in (ratios or {}).values()]
            cells += ["" if np.isnan(value) else f"{value:.2f}" for value in values]
            cells.append(str(len(tally)))
            lines.append([title, answer, share(tally), f"{100 * tally.coverage_equal:.1f}", *cells])
    return as_text(["world", "answer", *HEAD, *(ratios or {}), "runs"], lines, left=(0, 1))


def width_over(answer: str) -> Callable[[list[Row], Sequence[Row]], float]:
    """The mean width relative to that of another answer about the same data."""

    def ratio(own: list[Row], of_group: Sequence[Row]) -> float:
        other = select(of_group, answer=answer)
        return tally_of(own).width / tally_of(other).width if other else float("nan")

    return ratio
