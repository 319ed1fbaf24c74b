"""Figures 6–8 of Section 4: what combinations of labelers tell, and how many mediocre ones equal an expert.

Nothing is simulated here: all values are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.su2024.figures import _new as new_figure
from experiments.su2024.figures import _save as save_figure
from experiments.su2024.report import table
from experiments.su2024.tables import Answer
from trueup import labelers

__all__ = ["INFORMATION_FIGURES"]

Array = npt.NDArray[np.float64]
EXPERTS = (0.10, 0.05, 0.02, 0.01)  # the curves of Figure 8
SKEWED, MIXED = (0.9, 0.1), (0.6, 0.4)  # π(1) = 0.1 in Figure 6 and 0.4 in Figure 8


def bits(error: float, n_labelers: int, prior: tuple[float, float]) -> float:
    """I(Z; Y | T, ε) of the binary symmetric broadcast channel."""
    return float(labelers.mutual_information(error=error, n_labelers=n_labelers, prior=prior))


def entropy(prior: tuple[float, float]) -> float:
    """H(π): what a labeler who never errs tells."""
    return bits(0.0, 1, prior)


def figure6(out: Path, *, quick: bool = False) -> Answer:
    """Information of T labelers of error ε, π(1) = 0.1."""
    numbers = np.arange(1, 51, 7 if quick else 1)
    errors = np.linspace(0.0, 1.0, 21 if quick else 101)
    surface = np.array([[bits(e, int(n), SKEWED) for e in errors] for n in numbers])
    figure, axes = new_figure(1, 1, width=7, height=5)
    drawn = axes[0, 0].contourf(errors, numbers, surface, levels=np.linspace(0, entropy(SKEWED), 11))
    figure.colorbar(drawn, ax=axes[0, 0], label="I(Z; Y | T, ε), bits")
    axes[0, 0].set(xlabel="error probability ε of each labeler", ylabel="number of labelers T", title="π(1) = 0.1")
    shown = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    rows = [[f"T = {n}", *(bits(e, n, SKEWED) for e in shown)] for n in (1, 3, 5, 10, 20, 50)]
    ours = {
        "bits at ε = 0": float(surface[:, 0].min()),
        "bits at ε = 1/2": float(surface[:, len(errors) // 2].max()),
        "largest difference between ε and 1 − ε": float(np.abs(surface - surface[:, ::-1]).max()),
        "least gain of a labeler": float(np.diff(surface, axis=0).min()),
        "least fall from ε to the next, ε < 1/2": float(-np.diff(surface[:, : len(errors) // 2 + 1], axis=1).max()),
    }
    text = table(["bits, π(1) = 0.1", *(f"ε = {e}" for e in shown)], rows)
    return f"{text}\n{save_figure(figure, out, 'figure6')}", ours


def figure7(out: Path, *, quick: bool = False) -> Answer:
    """Information of one labeler as a function of the prior and of their error: the way to an equivalent labeler."""
    n = 21 if quick else 101
    priors, errors = np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n)
    surface = np.array([[bits(e, 1, (1 - p, p)) for e in errors] for p in priors])
    figure, axes = new_figure(1, 1, width=7, height=5)
    drawn = axes[0, 0].contourf(errors, priors, surface, levels=np.linspace(0, 1, 11))
    figure.colorbar(drawn, ax=axes[0, 0], label="I(Z; Y | ε′), bits")
    axes[0, 0].set(xlabel="error probability ε′", ylabel="class prior π(1)")
    shown, panels = (0.1, 0.2, 0.3, 0.4), (1, 3, 5, 10, 20)
    rows, off = [], []
    for t in panels:
        same = [labelers.equivalent_error(bits(e, t, SKEWED), SKEWED) for e in shown]
        off += [abs(bits(same_e, 1, SKEWED) - bits(e, t, SKEWED)) for e, same_e in zip(shown, same, strict=True)]
        rows.append([f"T = {t}", *same])
    ours = {
        "bits at π(1) = 1/2, ε′ = 0": float(surface[n // 2, 0]),
        "largest difference between π and 1 − π": float(np.abs(surface - surface[::-1]).max()),
        "largest difference between ε′ and 1 − ε′": float(np.abs(surface - surface[:, ::-1]).max()),
        "largest difference of a panel and its equivalent labeler, bits": max(off),
    }
    text = table(["ε′ of the equivalent labeler, π(1) = 0.1", *(f"ε = {e}" for e in shown)], rows)
    return f"{text}\n{save_figure(figure, out, 'figure7')}", ours


def figure8(out: Path, *, quick: bool = False) -> Answer:
    """The error that each of T labelers may have to equal one expert, π(1) = 0.4."""
    numbers = np.array([1, 2, 5, 10, 20, 50]) if quick else np.arange(1, 51)
    figure, axes = new_figure(1, 1, width=7, height=5)
    ours, rows = {}, []
    for expert in EXPERTS:
        told = bits(expert, 1, MIXED)
        each = np.array([labelers.equivalent_error(told, MIXED, n_labelers=int(n)) for n in numbers])
        label = f"single-labeler error {expert:.2f}, I = {told:.3f} bits"
        axes[0, 0].plot(numbers, each, label=label)
        ours[f"expert {expert:.2f}: bits"] = told
        ours[f"expert {expert:.2f}: error of each of 50"] = float(each[-1])
        ours[f"expert {expert:.2f}: least rise of the curve"] = float(np.diff(each).min())
        needed = [
            labelers.equivalent_labelers(expert_error=expert, labeler_error=e, prior=MIXED) for e in (0.2, 0.3, 0.4)
        ]
        at = {int(n): float(e) for n, e in zip(numbers, each, strict=True)}
        rows.append([f"expert {expert:.2f}", told, *(at[n] for n in (2, 5, 10, 20, 50)), *needed])
    axes[0, 0].set(xlabel="number of labelers T", ylabel="error probability of each", ylim=(0, 0.5), title="π(1) = 0.4")
    axes[0, 0].legend(fontsize=8)
    head = ["", "bits", *(f"ε, T = {n}" for n in (2, 5, 10, 20, 50)), *(f"T, ε = {e}" for e in (0.2, 0.3, 0.4))]
    return f"{table(head, rows)}\n{save_figure(figure, out, 'figure8')}", ours


INFORMATION_FIGURES: dict[str, Callable[..., Answer]] = {"figure6": figure6, "figure7": figure7, "figure8": figure8}
