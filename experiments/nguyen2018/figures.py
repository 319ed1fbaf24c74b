"""Figures 5 and 6, and 8 for tags: each draws a PNG if asked to, and returns a text and the numbers to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.nguyen2018.drawing import draw_panels
from experiments.nguyen2018.report import Answer, table
from experiments.nguyen2018.runs import LEVEL_SHARES, PAIR_SHARES, SHARES, Walk, pair_walks, single_walks
from experiments.nguyen2018.segmentation_figures import figure7, figure8

__all__ = ["FIGURES", "figure5", "figure6", "figure8_tags"]

Array = npt.NDArray[np.float64]

SETS = ("simulated", "strips")
ALONG = "vetted share of the lists"
HALF = 5  # the place of 50% in SHARES
# Strategy and estimator; the last one is the library's default and not in the paper.
COMBINATIONS = (
    ("random", "naive"),
    ("mcm", "naive"),
    ("meec", "naive"),
    ("random", "learned"),
    ("mcm", "learned"),
    ("meec", "learned"),
    ("propensity", "rectified"),
)
RANKERS = (
    ("random", "vetted-only"),
    ("random", "naive"),
    ("random", "learned"),
    ("meec", "learned"),
    ("meec", "learned jointly"),
    ("meec by joint", "learned jointly"),
    ("separate", "learned"),
    ("separate", "rectified"),
)
N_RUNS, QUICK_RUNS = 50, 2
HEAD = ["", *(f"{share:.0%}" for share in SHARES)]


def _errors(which: str, strategy: str, estimator: str, n: int) -> Array:
    """Mean absolute error over tags, shape (n_runs, n_shares)."""
    return np.array([walk.errors(estimator) for walk in single_walks(which, strategy, n)])


def figure5(out: Path | None, *, n_runs: int = N_RUNS) -> Answer:
    """Error of precision@48, mean over tags, by strategy and estimator."""
    n = n_runs
    texts, ours = [], {}
    for which in SETS:
        rows = []
        for strategy, estimator in COMBINATIONS:
            errors = _errors(which, strategy, estimator, n)
            rows.append([f"{estimator} + {strategy}", *(f"{100 * e:.1f}" for e in errors.mean(axis=0))])
            ours[f"{which}: {estimator} + {strategy} at 50%"] = float(errors[:, HALF].mean())
        walks = single_walks(which, "propensity", n)
        ours[f"{which}: learned + random less naive + random at 50%"] = (
            ours[f"{which}: learned + random at 50%"] - ours[f"{which}: naive + random at 50%"]
        )
        true = float(np.mean([walk.true.mean() for walk in walks]))
        ours[f"{which}: rectified + propensity, share of 95% intervals that hold"] = _coverage(walks)
        title = f"{which}: mean absolute error over tags, in points; true precision@48 {true:.3f}; {n} data sets"
        texts.append(f"{title}\n{table(HEAD, rows)}")

    def draw(ax: Any, which: str) -> None:
        for strategy, estimator in COMBINATIONS:
            errors = 100 * _errors(which, strategy, estimator, n)
            ax.errorbar(SHARES, errors.mean(axis=0), errors.std(axis=0), label=f"{estimator} + {strategy}", capsize=2)

    return "\n\n".join(texts) + draw_panels(
        out, "figure5", draw, SETS, along=ALONG, label="error of precision@48, points"
    ), ours


def _coverage(walks: tuple[Walk, ...]) -> float:
    """How often the interval of the mean over tags holds the truth, over data sets and shares."""
    held = [
        low <= walk.true[0].mean() <= high
        for walk in walks
        for low, high in walk.intervals[: len(LEVEL_SHARES)].tolist()
    ]
    return float(np.mean(held))


def _parts(which: str, strategy: str, n: int) -> tuple[Array, Array]:
    """Error of the learned estimator at each share: with the fit of one step before, and fitted anew."""
    walks = single_walks(which, strategy, n)
    stale = np.mean([np.abs(walk.stale - walk.true[0]).mean(axis=1) for walk in walks], axis=0)
    return stale, np.mean([walk.errors("learned") for walk in walks], axis=0)


def figure6(out: Path | None, *, n_runs: int = N_RUNS) -> Answer:
    """How much of each step is due to the labels put right, and how much to the estimator fitted anew."""
    n = n_runs
    texts, ours = [], {}
    for which in SETS:
        rows = []
        for strategy in ("random", "meec"):
            stale, fresh = _parts(which, strategy, n)
            rows.append([f"{strategy}: truths put in, old fit", *(f"{100 * e:.1f}" for e in stale)])
            rows.append([f"{strategy}: and fitted anew", *(f"{100 * e:.1f}" for e in fresh)])
            ours[f"{which}: {strategy}, by fitting anew up to 40%"] = float((stale - fresh)[1:5].sum())
            by_truths, by_fit = float((fresh[4:-1] - stale[5:]).sum()), float((stale - fresh)[5:].sum())
            ours[f"{which}: {strategy}, by truths less by fitting anew, after 40%"] = by_truths - by_fit
        texts.append(f"{which}: error of the learned estimator, in points\n{table(HEAD, rows)}")

    def draw(ax: Any, which: str) -> None:
        for strategy in ("random", "meec"):
            stale, fresh = _parts(which, strategy, n)
            ax.plot(np.repeat(SHARES, 2), 100 * np.stack([stale, fresh], axis=1).ravel(), "o-", ms=3, label=strategy)

    return "\n\n".join(texts) + draw_panels(
        out, "figure6", draw, SETS, along=ALONG, label="error of precision@48, points"
    ), ours


def _gaps(which: str, strategy: str, estimator: str, n: int) -> tuple[Array, Array]:
    """Squared error of the gap between two systems, and how often its sign is wrong; shapes (n_shares,)."""
    found = [walk.gaps(estimator) for walk in pair_walks(which, strategy, n)]
    said, true = np.array([one for one, _ in found]), np.array([gap for _, gap in found])[:, None]
    wrong = (said * true < 0) + 0.5 * ((said == 0) | np.isnan(said))
    return np.asarray(((said - true) ** 2).mean(axis=0)), np.asarray(wrong.mean(axis=0))


def figure8_tags(out: Path | None, *, n_runs: int = N_RUNS) -> Answer:
    """Two close systems: the error of their gap, and how often they are ranked wrongly."""
    n = n_runs
    texts, ours = [], {}
    head = HEAD[: len(PAIR_SHARES) + 1]
    for which in SETS:
        deviations, misranked = [], []
        for strategy, estimator in RANKERS:
            name = f"{estimator} + {strategy}"
            squared, wrong = _gaps(which, strategy, estimator, n)
            deviations.append([name, *(f"{100 * e:.2f}" for e in np.sqrt(squared))])
            misranked.append([name, *(f"{w:.2f}" for w in wrong)])
            ours[f"{which}: {name}, misranked at 50%"] = float(wrong[HALF])
        gap = 100 * float(np.mean([walk.gaps("naive")[1] for walk in pair_walks(which, "random", n)]))
        texts.append(
            f"{which}: root mean square error of the gap, in points; true gap {gap:.2f}; {n} data sets\n"
            f"{table(head, deviations)}\n\n{which}: share of data sets in which the systems are ranked wrongly\n"
            f"{table(head, misranked)}"
        )

    def draw(ax: Any, which: str) -> None:
        for strategy, estimator in RANKERS:
            ax.plot(PAIR_SHARES, _gaps(which, strategy, estimator, n)[1], "o-", ms=3, label=f"{estimator} + {strategy}")

    return "\n\n".join(texts) + draw_panels(
        out, "figure8-tags", draw, SETS, along=ALONG, label="share ranked wrongly"
    ), ours


FIGURES: dict[str, Callable[..., Answer]] = {
    "figure5": figure5,
    "figure6": figure6,
    "figure7": figure7,
    "figure8": figure8,
    "figure8-tags": figure8_tags,
}
