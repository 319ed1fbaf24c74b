"""Figures 7 and 8: boxes for masks, the error of average precision, and how often two systems are misranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._detection_data import coco_set
from experiments.nguyen2018.drawing import draw_panels
from experiments.nguyen2018.report import Answer, table
from experiments.nguyen2018.runs import tracked
from experiments.nguyen2018.segmentation import Array, Segmentation, make_segmentation, replace_masks
from experiments.nguyen2018.segmentation_walks import BY_THRESHOLD, SHARES, SegmentationWalk, segmentation_walk
from experiments.nguyen2018.simulated_masks import draw_masks, shapes_in_boxes, yolact_masks

__all__ = ["figure7", "figure8", "walks"]

COCO, TRAFFIC, SIMULATED = "coco-val2014-100", "seg-traffic51", "simulated masks"
ALONG = "vetted share of the objects"
HEAD = ["", *(f"{share:.0%}" for share in SHARES)]
SOME, HALF = SHARES.index(0.3), SHARES.index(0.5)
# Strategy and estimator.
COMBINATIONS = (
    ("random image", "vetted-only"),
    ("random image", "naive"),
    ("random image", "learned"),
    ("random", "naive"),
    ("random", BY_THRESHOLD),
    ("random", "learned"),
    ("meec", "naive"),
    ("meec", BY_THRESHOLD),
    ("meec", "learned"),
    ("meec", "learned, stretched"),
)
SYSTEMS = {COCO: ("demo",), TRAFFIC: ("a", "b"), SIMULATED: ("base", "darknet53", "im700", "resnet50")}


def _coco(_: int) -> Segmentation:
    detections, objects, *_ = coco_set("coco-val2014-100, masks")
    return make_segmentation({"demo": detections}, objects)


def _traffic(_: int) -> Segmentation:
    parts = {name: coco_set(f"seg-traffic51 {name}, masks")[:2] for name in SYSTEMS[TRAFFIC]}
    return make_segmentation({name: detections for name, (detections, _) in parts.items()}, parts["a"][1])


@cache
def _yolact() -> tuple[Segmentation, Any]:
    detections, objects = yolact_masks()
    simulation = shapes_in_boxes(detections, objects)
    return make_segmentation(detections, draw_masks(simulation, np.random.default_rng(0)), stretched=False), simulation


def _simulated(seed: int) -> Segmentation:
    """Masks of its own for each run."""
    data, simulation = _yolact()
    return replace_masks(data, draw_masks(simulation, np.random.default_rng([17, seed])))


MAKERS: dict[str, Callable[[int], Segmentation]] = {
    COCO: cache(_coco),
    TRAFFIC: cache(_traffic),
    SIMULATED: cache(_simulated),
}


@cache
def walks(which: str, strategy: str, n_runs: int) -> tuple[SegmentationWalk, ...]:
    """Runs of one strategy on one set."""
    is_real = which != SIMULATED
    return tuple(
        segmentation_walk(
            MAKERS[which](seed if not is_real else 0),
            strategy,
            seed=seed,
            kinds=("fill", "stretched") if is_real and strategy == "meec" else ("fill",),
            with_paper=strategy != "random image",
        )
        for seed in tracked(range(n_runs), f"{which}, {strategy}")
    )


def _combinations(which: str) -> list[tuple[str, str]]:
    return [one for one in COMBINATIONS if which != SIMULATED or one[1] != "learned, stretched"]


def _errors(which: str, strategy: str, estimator: str, n: int) -> tuple[Array, Array]:
    """Mean error of classes, and absolute error of their mean; shapes (n_runs, n_shares), means over systems."""
    systems = range(len(SYSTEMS[which]))
    runs = walks(which, strategy, n)
    of_classes = [np.mean([run.class_errors(estimator, k) for k in systems], axis=0) for run in runs]
    of_means = [np.mean([np.abs(run.errors(estimator, k)) for k in systems], axis=0) for run in runs]
    return np.array(of_classes), np.array(of_means)


def figure7(out: Path | None, *, n_runs: int) -> Answer:
    """Error of COCO's average precision at each share of vetted objects, by strategy and estimator."""
    texts, ours = [], {}
    for which in SYSTEMS:
        by_class, of_mean = [], []
        for strategy, estimator in _combinations(which):
            name = f"{estimator} + {strategy}"
            classes, means = _errors(which, strategy, estimator, n_runs)
            by_class.append([name, *_cells(classes)])
            of_mean.append([name, *_cells(means)])
            for place, share in ((SOME, "30%"), (HALF, "50%")):
                key = f"{which}: {name} at {share}"
                ours[f"{key}, error of classes"] = float(classes[:, place].mean())
                ours[f"{key}, error of classes, sd"] = float(classes[:, place].std())
                ours[f"{key}, error of AP"] = float(means[:, place].mean())
                ours[f"{key}, error of AP, sd"] = _signed_spread(which, strategy, estimator, n_runs, place)
        true = np.mean([run.true.mean(axis=1) for run in walks(which, "random", n_runs)], axis=0)
        told = ", ".join(f"{name} {value:.3f}" for name, value in zip(SYSTEMS[which], true, strict=True))
        texts.append(
            f"{which}: true AP {told}; {n_runs} runs, mean and (sd), in points\n"
            f"mean over classes of the absolute error, as in the paper\n{table(HEAD, by_class)}\n\n"
            f"absolute error of AP, the mean over classes\n{table(HEAD, of_mean)}"
        )

    def draw(ax: Any, which: str) -> None:
        for strategy, estimator in _combinations(which):
            errors = 100 * _errors(which, strategy, estimator, n_runs)[0]
            ax.errorbar(SHARES, errors.mean(axis=0), errors.std(axis=0), label=f"{estimator} + {strategy}", capsize=2)
        ax.set_ylim(0, 20)

    return "\n\n".join(texts) + draw_panels(
        out, "figure7", draw, tuple(SYSTEMS), along=ALONG, label="error of AP by class, points"
    ), ours


def _signed_spread(which: str, strategy: str, estimator: str, n: int, place: int) -> float:
    """The standard deviation of the error of AP over runs, mean over systems."""
    runs = walks(which, strategy, n)
    return float(
        np.mean([np.std([run.errors(estimator, k)[place] for run in runs]) for k in range(len(SYSTEMS[which]))])
    )


def _cells(errors: Array) -> list[str]:
    """Mean and deviation over runs in points; a dash where an estimator has no say yet."""
    return [
        "–" if np.isnan(values).any() else f"{100 * values.mean():.1f} ({100 * values.std():.1f})"
        for values in errors.T
    ]


def _misranked(which: str, strategy: str, estimator: str, n: int) -> tuple[Array, Array]:
    """Errors of the gap, and whether its sign is wrong (half if there is none), shape (n_runs, n_pairs, n_shares)."""
    pairs = list(combinations(range(len(SYSTEMS[which])), 2))
    gaps = [[run.gaps(estimator, *pair) for pair in pairs] for run in walks(which, strategy, n)]
    said = np.array([[one for one, _ in of_run] for of_run in gaps])
    true = np.array([[gap for _, gap in of_run] for of_run in gaps])[:, :, None]
    wrong = (said * true < 0) + 0.5 * ((said == 0) | np.isnan(said))
    return said - true, wrong


def figure8(out: Path | None, *, n_runs: int) -> Answer:
    """Pairs of systems: the error of their gap, and how often they are ranked wrongly."""
    texts, ours = [], {}
    several = (TRAFFIC, SIMULATED)
    for which in several:
        pairs = list(combinations(SYSTEMS[which], 2))
        deviations, misranked, of_pairs = [], [], []
        for strategy, estimator in _combinations(which):
            name = f"{estimator} + {strategy}"
            errors, wrong = _misranked(which, strategy, estimator, n_runs)
            spread = np.sqrt((errors**2).mean(axis=(0, 1)))
            deviations.append([name, *("–" if np.isnan(one) else f"{100 * one:.2f}" for one in spread)])
            misranked.append([name, *(f"{one:.3f}" for one in wrong.mean(axis=(0, 1)))])
            of_pairs.append(
                [name, *(f"{one:.2f}" for one in wrong.mean(axis=0)[:, HALF]), f"{wrong[..., HALF].mean():.3f}"]
            )
            ours[f"{which}: {name}, misranked at 50%"] = float(wrong[..., HALF].mean())
        gaps = _gaps_in_words(which, pairs, n_runs)
        texts.append(
            f"{which}: true gaps in points: {gaps}; {n_runs} runs\n"
            f"root mean square error of the gap, in points\n{table(HEAD, deviations)}\n\n"
            f"share of runs and pairs in which the systems are ranked wrongly\n{table(HEAD, misranked)}\n\n"
            f"each pair at 50%\n{table(['', *(f'{a}–{b}' for a, b in pairs), 'mean'], of_pairs)}"
        )

    def draw(ax: Any, which: str) -> None:
        for strategy, estimator in _combinations(which):
            wrong = _misranked(which, strategy, estimator, n_runs)[1]
            ax.plot(SHARES, wrong.mean(axis=(0, 1)), "o-", ms=3, label=f"{estimator} + {strategy}")

    return "\n\n".join(texts) + draw_panels(
        out, "figure8", draw, several, along=ALONG, label="share ranked wrongly"
    ), ours


def _gaps_in_words(which: str, pairs: Sequence[tuple[str, str]], n: int) -> str:
    true = np.array([run.true.mean(axis=1) for run in walks(which, "random", n)])
    places = combinations(range(true.shape[1]), 2)
    gaps = 100 * np.abs(np.stack([true[:, a] - true[:, b] for a, b in places], axis=1))
    return ", ".join(
        f"{a}–{b} {gaps[:, k].mean():.2f} (least {gaps[:, k].min():.2f})" for k, (a, b) in enumerate(pairs)
    )
