"""CIFAR-10H: networks judged by a few anonymous human votes on each image."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Section, Tally, as_text, say
from benchmarks._data import data_folder
from trueup.exceptions import TrueupWarning

__all__ = ["cifar", "draw_votes", "drawn_labels", "load_cifar"]

SEED = 7


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
    counts, truth, nets = load_cifar()
    if quick:
        counts, truth, nets = counts[:2000], truth[:2000], {k: v[:2000] for k, v in nets.items()}
    repetitions = 1 if quick else 3
    sampling = {"n_chains": 2, "n_warmup": 200, "n_draws": 400} if quick else {"n_warmup": 300, "n_draws": 700}
    rows, summary, numbers = [], [], {}
    for n_votes, noise in ((3, "dawid-skene"), (2, "dawid-skene"), (1, "dawid-skene"), (1, "clusters")):
        tally, bounds = Tally(), Tally()
        for repetition in range(repetitions):
            labels = drawn_labels(counts, n_votes, seed=10 * n_votes + repetition)
            for name, predicted in nets.items():
                row = _network(labels, predicted, truth, noise, (tally, bounds), **sampling)
                if repetition == 0:
                    rows.append([str(n_votes), noise, name, *row])
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
        say(f"  {n_votes} votes, {noise}: mean |error| {tally.mae:.3f} points, held {held[0]}")
    how = ", ".join(f"{k}={v}" for k, v in sampling.items())
    text = "\n\n".join(
        [
            f"CIFAR-10H: error of five networks on {len(truth)} images from anonymous human votes ({how})\n"
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


def _network(
    labels: tu.Labels,
    predicted: npt.NDArray[np.int64],
    truth: npt.NDArray[np.int64],
    noise: str,
    tallies: tuple[Tally, Tally],
    **sampling: Any,
) -> list[str]:
    """Tally the error of one network in percent: the interval, and the bounds if errors may depend on each other."""
    ev = tu.evaluate(
        predicted,
        labels,
        noise=noise,
        metrics=["accuracy"],
        check_dependence=False,
        random_state=SEED,
        **sampling,
    )
    true = 100 * float((predicted != truth).mean())
    error = 100 * (1 - ev["accuracy"].mean)
    low, high = (100 * (1 - end) for end in ev["accuracy"].interval(LEVEL)[::-1])
    least, most = (100 * bound for bound in ev.sensitivity().bounds)
    tallies[0].add_interval(true, error, (low, high))
    tallies[1].add_interval(true, (least + most) / 2, (least, most))
    held = [_yes(tally.held[-1]) for tally in tallies]
    shown = [f"{low:.2f} to {high:.2f}", held[0], f"{least:.2f} to {most:.2f}", held[1]]
    return [f"{true:.2f}", f"{error:.2f}", *shown, f"{ev.solution.diagnostics['r_hat']:.2f}"]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
