"""CIFAR-10H: networks judged by a few anonymous human votes on each image."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._answers import interval_row, select, tally_of
from benchmarks._coverage_tally import LEVEL, Section, as_text
from benchmarks._data import data_folder
from benchmarks._runs import MOST_PROCESSES, RUNS, Case, Row, run_cases
from trueup.exceptions import TrueupWarning

__all__ = ["cifar", "draw_votes", "drawn_labels", "load_cifar", "run_network"]

SEED = 7
_ASKED = ((3, "dawid-skene"), (2, "dawid-skene"), (1, "dawid-skene"))
_INTERVAL, _BOUNDS = "interval", "bounds"


@dataclass(frozen=True)
class _World:
    """So many votes an image, how they are read, and whose error is asked for."""

    n_votes: int
    noise: str
    network: str
    n_images: int

    @property
    def name(self) -> str:
        return " / ".join(str(part) for part in (self.n_votes, self.noise, self.network, self.n_images))

    @classmethod
    def named(cls, name: str) -> _World:
        n_votes, noise, network, n_images = name.split(" / ")
        return cls(int(n_votes), noise, network, int(n_images))


@lru_cache(maxsize=1)
def load_cifar() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Counts of human votes (10000, 10), the true classes, and what each network predicts."""
    import pyarrow.parquet as pq

    folder = data_folder() / "cifar10h"

    def table(path: Any) -> npt.NDArray[Any]:
        columns = pq.read_table(path)
        names = [c for c in columns.column_names if c != "item"]
        return np.column_stack([columns[c].to_numpy() for c in names])

    nets = {p.stem.removeprefix("pred_"): table(p).argmax(axis=1) for p in sorted(folder.glob("pred_*.parquet"))}
    return (
        table(folder / "human_counts.parquet").astype(np.int64),
        table(folder / "truth.parquet")[:, -1].astype(int),
        nets,
    )


def draw_votes(counts: npt.NDArray[np.int64], n_votes: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Some of the votes on each image, drawn without replacement."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multivariate_hypergeometric(row, n_votes) for row in counts])


def cifar(quick: bool) -> Section:
    """The error of five networks from one, two and three anonymous human votes an image."""
    n_images, repetitions = (2000, 1) if quick else (10_000, 3)
    worlds = [_World(n_votes, noise, name, n_images) for n_votes, noise in _ASKED for name in load_cifar()[2]]
    cases = [Case(world.name, repetition) for repetition in range(repetitions) for world in worlds]
    kept = {"processes": 1, "folder": None} if quick else {"processes": MOST_PROCESSES, "folder": RUNS}
    found = run_cases("coverage-cifar", run_network, cases, **kept)  # type: ignore[arg-type]
    rows, summary, numbers = [], [], {}
    for n_votes, noise in _ASKED:
        own = select(found, n_votes=n_votes, noise=noise)
        tally, bounds = (tally_of(select(own, answer=answer)) for answer in (_INTERVAL, _BOUNDS))
        rows += [
            [str(n_votes), noise, *_cells(*pair)]
            for pair in zip(select(own, answer=_INTERVAL, seed=0), select(own, answer=_BOUNDS, seed=0), strict=True)
        ]
        held = [f"{sum(t.held)} of {len(t)}" for t in (tally, bounds)]
        numbers_of = [
            f"{tally.mae:.3f}",
            f"{tally.bias:+.3f}",
            f"{tally.width:.2f}",
            held[0],
            f"{bounds.width:.2f}",
            held[1],
        ]
        summary.append([str(n_votes), noise, *numbers_of])
        numbers[f"{n_votes}, {noise}"] = {**tally.numbers(), "bounds": bounds.numbers()}
    how = ", ".join(f"{k}={v}" for k, v in _sampling(n_images).items())
    text = "\n\n".join(
        [
            f"CIFAR-10H: error of five networks on {n_images} images from anonymous human votes ({how})\n"
            f"Of {repetitions} draws of the votes, the first:",
            as_text(_NETWORK_HEAD, rows, left=(0, 1, 2)),
            f"All {repetitions} draws:",
            as_text(_VOTES_HEAD, summary, left=(0, 1)),
            "Target: mean error at most 0.1 points from three votes and 0.3 from two; from one vote an interval that "
            "holds\nat least four of five.",
        ]
    )
    return Section(text, numbers)


_NETWORK_HEAD = [
    "votes",
    "noise",
    "network",
    "true error %",
    "estimate",
    "95% interval",
    "holds",
    "sensitivity",
    "holds",
    "R-hat",
]
_VOTES_HEAD = ["votes", "noise", "mean |error|, points", "mean error", "width", "hold", "sensitivity: width", "hold"]


def drawn_labels(counts: npt.NDArray[np.int64], n_votes: int, *, seed: int) -> tu.Labels:
    """Labels of an anonymous crowd: some of the votes on each image."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        return tu.Labels.from_counts(draw_votes(counts, n_votes, seed=seed), classes=range(counts.shape[1]))


def _sampling(n_images: int) -> dict[str, int]:
    return {"n_chains": 2, "n_warmup": 200, "n_draws": 400} if n_images < 10_000 else {"n_warmup": 300, "n_draws": 700}


def run_network(case: Case) -> list[Row]:
    """The error of one network in percent: the interval, and the bounds if errors may depend on each other."""
    world = _World.named(case.world)
    counts, truth, nets = load_cifar()
    counts, truth, predicted = (x[: world.n_images] for x in (counts, truth, nets[world.network]))
    ev = tu.evaluate(
        predicted,
        drawn_labels(counts, world.n_votes, seed=10 * world.n_votes + case.seed),
        noise=world.noise,
        metrics=["accuracy"],
        check_dependence=False,
        random_state=SEED,
        **_sampling(world.n_images),
    )
    true = 100 * float((predicted != truth).mean())
    low, high = (100 * (1 - end) for end in ev["accuracy"].interval(LEVEL)[::-1])
    least, most = (100 * bound for bound in ev.sensitivity().bounds)
    about = {"n_votes": world.n_votes, "noise": world.noise, "network": world.network}
    return [
        interval_row(
            _INTERVAL,
            true,
            100 * (1 - ev["accuracy"].mean),
            (low, high),
            r_hat=float(ev.solution.diagnostics["r_hat"]),
            **about,
        ),
        interval_row(_BOUNDS, true, (least + most) / 2, (least, most), **about),
    ]


def _cells(interval: Row, bounds: Row) -> list[str]:
    held = [_yes(tally_of([row]).held[0]) for row in (interval, bounds)]
    ends = [f"{row['low']:.2f} to {row['high']:.2f}" for row in (interval, bounds)]
    numbers = [interval["network"], f"{interval['true']:.2f}", f"{interval['mean']:.2f}"]
    return [*numbers, ends[0], held[0], ends[1], held[1], f"{interval['r_hat']:.2f}"]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
