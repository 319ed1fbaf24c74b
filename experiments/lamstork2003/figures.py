"""Figures 1 and 2, and the curves of true against apparent error; each saves a PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lamstork2003.arithmetic import POLICIES
from trueup import rates

__all__ = ["FIGURES"]


def _axes(n: int) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(1, n, figsize=(5.5 * n, 4), layout="constrained", squeeze=False)


def _save(figure: Any, out: Path, name: str) -> str:
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.png", dpi=120)
    plt.close(figure)
    return f"saved {out / f'{name}.png'}"


def curves(out: Path) -> str:
    """True against apparent error for some mislabeling rates, with independence and between the bounds."""
    figure, axes = _axes(1)
    ax = axes[0, 0]
    for eps, colour in ((0.0, "black"), (0.02, "C0"), (0.05, "C1"), (0.1, "C2")):
        apparent = np.linspace(eps, 0.3, 200)
        low, high = rates.error_bounds(apparent=apparent, mislabeling=eps)
        ax.plot(
            apparent,
            np.asarray(rates.true_error(apparent=apparent, mislabeling=eps).value),
            color=colour,
            label=f"ε = {eps:g}",
        )
        if eps:
            ax.fill_between(apparent, np.asarray(low), np.asarray(high), color=colour, alpha=0.12)
    ax.set(xlabel="apparent error A", ylabel="true error e", title="lines: independent; bands: non-negative dependence")
    ax.legend()
    return _save(figure, out, "curves")


def figure1(out: Path) -> str:
    """Noisy labels that are worth a perfect one."""
    figure, axes = _axes(1)
    eps = np.linspace(0, 0.2, 200)
    for error in (0.01, 0.02, 0.05, 0.1, 0.2):
        axes[0, 0].plot(
            eps, np.asarray(rates.noisy_labels_per_perfect(error=error, mislabeling=eps)), label=f"e = {error:g}"
        )
    axes[0, 0].set(xlabel="mislabeling rate ε", ylabel="noisy labels per perfect label", ylim=(1, 10))
    axes[0, 0].legend()
    return _save(figure, out, "figure1")


def figure2(out: Path) -> str:
    """The region in which each labeling policy is best."""
    figure, axes = _axes(len(POLICIES))
    eps = np.linspace(0.001, 0.49, 400)
    for ax, (k, combine) in zip(axes[0], POLICIES, strict=True):
        boundary = np.asarray(rates.policy_boundary(mislabeling=eps, n_labelers=k, combine=combine))  # type: ignore[arg-type]
        ax.fill_between(eps, 0, boundary, alpha=0.3, label="same items")
        ax.fill_between(eps, boundary, 0.5, alpha=0.15, label="different items")
        ax.set(
            xlabel="mislabeling rate ε",
            ylabel="true error e",
            title=f"K = {k}, {combine}",
            xlim=(0, 0.49),
            ylim=(0, 0.5),
        )
        ax.legend()
    return _save(figure, out, "figure2")


FIGURES: dict[str, Callable[[Path], str]] = {"curves": curves, "figure1": figure1, "figure2": figure2}
