"""Section 5.5: several mediocre labelers against one expert, for training and for testing.

Labelers err on every item with the same probability and vote on all of them, as in Section 4. What a panel tells of the
class of an item is its mutual information with it; the question is whether panels that tell as much as the expert also
train as good a classifier, and test one as well. The pages of the paper with this section were not available: the
settings are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

import trueup as tu
from experiments.su2024.figures import _new as new_figure
from experiments.su2024.figures import _save as save_figure
from experiments.su2024.report import table
from experiments.su2024.runs import tracked
from experiments.su2024.settings import METRICS, asked, measure
from experiments.su2024.tables import Answer
from experiments.su2024.training import Judge, actual_auc, auc_posterior, ionosphere, split_of, trained_scores

__all__ = ["EQUIVALENCE", "Panel", "panels_for", "testing_runs", "training_runs"]

Array = npt.NDArray[np.float64]
EXPERT, MEDIOCRE, FEW = 0.05, 0.3, 5
STRENGTH = 2.0  # λ, the same for all, so that nothing is chosen
TEST_PRIOR = (0.6, 0.4)  # as in Figure 8
FIRST_SEED = 5500


@dataclass(frozen=True)
class Panel:
    """So many labelers, each with this error."""

    name: str
    n_labelers: int
    error: float

    def bits(self, prior: tuple[float, float]) -> float:
        """What their votes tell of the class of an item."""
        return float(tu.labelers.mutual_information(error=self.error, n_labelers=self.n_labelers, prior=prior))


def panels_for(prior: tuple[float, float]) -> tuple[Panel, ...]:
    """The expert; mediocre labelers, fewer and more than equal him; and five whose error makes them equal him."""
    expert = Panel("expert", 1, EXPERT)
    enough = tu.labelers.equivalent_labelers(expert_error=EXPERT, labeler_error=MEDIOCRE, prior=prior)
    few = tu.labelers.equivalent_error(expert.bits(prior), prior, n_labelers=FEW)
    numbers = (1, enough // 4, enough // 2, enough, 2 * enough)
    mediocre = [Panel(f"{n} mediocre" + (", their equal" if n == enough else ""), n, MEDIOCRE) for n in numbers]
    return (expert, *mediocre, Panel(f"{FEW} better, their equal", FEW, few))


def _ionosphere_prior() -> tuple[float, float]:
    ones = float(ionosphere()[1].mean())
    return (1 - ones, ones)


@cache
def training_runs(n: int) -> dict[str, Array]:
    """By panel: actual AUC of ML and MMSE training, and errors of the estimated AUC of the first; shape (n, 4).

    The estimates are Algorithm 1's and the posterior mean of `trueup.auc`, from the panel's votes on the test items.
    """
    X, truth = ionosphere()
    found: dict[str, list[list[float]]] = {}
    for seed in tracked(range(FIRST_SEED, FIRST_SEED + n), "training, panels against an expert"):
        for panel in panels_for(_ionosphere_prior()):
            split = split_of(
                X,
                truth,
                seed,
                fallibility=[2 * panel.error] * panel.n_labelers,
                difficulty=None,
                participation=(1.0, 1.0),
            )
            ml, mmse = (trained_scores(name, split, STRENGTH, split.noise) for name in ("ml", "mmse"))
            actual = actual_auc(split, ml)
            labels = split.test_labels
            row = [actual, actual_auc(split, mmse), Judge(labels, split.noise).auc(ml) - actual]
            found.setdefault(panel.name, []).append([*row, auc_posterior(ml, labels, split.noise)[0] - actual])
    return {name: np.array(rows) for name, rows in found.items()}


@cache
def testing_runs(n: int) -> dict[str, Array]:
    """By panel: error, width and whether the 95% region of accuracy holds it, of Algorithm 1 and `bayes`; (n, 6)."""
    found: dict[str, list[list[float]]] = {}
    at = METRICS.index("accuracy")
    for seed in tracked(range(FIRST_SEED, FIRST_SEED + n), "testing, panels against an expert"):
        for panel in panels_for(TEST_PRIOR):
            sim = tu.simulate.su(
                n_items=1000,
                n_labelers=panel.n_labelers,
                prior=TEST_PRIOR,
                operating_point=(0.8, 0.3),
                difficulty=0.0,
                fallibility=2 * panel.error,
                participation=1.0,
                random_state=seed,
            )
            row = []
            for method in ("ratios", "bayes"):
                said = measure(asked(sim, method, seed=seed), interval=True)
                low, high = said.low[at], said.high[at]
                held = low - 1e-9 <= sim.accuracy <= high + 1e-9
                row += [float(said.mean[at] - sim.accuracy), float(high - low), float(held)]
            found.setdefault(panel.name, []).append(row)
    return {name: np.array(rows) for name, rows in found.items()}


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def equal_training(out: Path, *, quick: bool = False) -> Answer:
    """Classifiers trained, and tested, on the votes of panels and of the expert (Ionosphere)."""
    prior = _ionosphere_prior()
    panels, runs = panels_for(prior), training_runs(4 if quick else 40)
    base, ours, rows = runs["expert"], {}, []
    for panel in panels:
        each = runs[panel.name]
        lead = each[:, :2] - base[:, :2]
        error = lead.std(axis=0, ddof=1) / np.sqrt(len(lead))
        off = [_rms(each[:, k]) for k in (2, 3)]
        rows.append(
            [panel.name, f"{panel.error:.3f}", f"{panel.bits(prior):.3f}"]
            + [f"{each[:, k].mean():.4f} ({lead[:, k].mean():+.4f} ± {error[k]:.4f})" for k in (0, 1)]
            + off
        )
        if panel is not panels[0]:
            ours |= {
                f"{panel.name}: {name} training, AUC against the expert's": float(lead[:, k].mean())
                for k, name in enumerate(("ML", "MMSE"))
            }
            ours[f"{panel.name}: error of the estimated AUC over the expert's"] = off[0] / _rms(base[:, 2])
    head = ["panel", "error", "bits", "AUC, ML (against the expert's)", "AUC, MMSE", "rms error, Algorithm 1", "bayes"]
    text = f"Over {len(base)} splits, λ = {STRENGTH:g}\n{table(head, rows)}"
    values = {p.name: runs[p.name][:, 0] for p in panels}
    off = {p.name: np.abs(runs[p.name][:, 2]) for p in panels}
    labels = ("actual AUC, ML training", "|estimated − actual| AUC, Algorithm 1")
    return f"{text}\n{_drawn(out, 'section5.5-training', panels, prior, (values, off), labels)}", ours


def equal_testing(out: Path, *, quick: bool = False) -> Answer:
    """The accuracy of a classifier estimated from the votes of panels and of the expert (N = 1000)."""
    panels, runs = panels_for(TEST_PRIOR), testing_runs(8 if quick else 200)
    base, ours, rows = runs["expert"], {}, []
    for panel in panels:
        each = runs[panel.name]
        off = [_rms(each[:, k]) for k in (0, 3)]
        width, held = each[:, [1, 4]].mean(axis=0), each[:, [2, 5]].mean(axis=0)
        shown = map(float, (*off, *width, *held))
        rows.append([panel.name, f"{panel.error:.3f}", f"{panel.bits(TEST_PRIOR):.3f}", *shown])
        if panel is not panels[0]:
            ours[f"{panel.name}: error of accuracy over the expert's"] = off[0] / _rms(base[:, 0])
            ours[f"{panel.name}: width of the region over the expert's"] = float(width[0] / base[:, 1].mean())
            ours[f"{panel.name}: width over the expert's, bayes"] = float(width[1] / base[:, 4].mean())
        ours[f"{panel.name}: bayes' region holds"] = float(held[1])
    head = [
        "panel",
        "error",
        "bits",
        "rms error, Algorithm 1",
        "bayes",
        "width, Algorithm 1",
        "bayes",
        "holds",
        "bayes",
    ]
    text = f"Over {len(base)} data sets\n{table(head, rows)}"
    values = {p.name: np.abs(runs[p.name][:, 0]) for p in panels}
    widths = {p.name: runs[p.name][:, 4] for p in panels}
    labels = ("|estimated − actual| accuracy, Algorithm 1", "width of the 95% region, bayes")
    return f"{text}\n{_drawn(out, 'section5.5-testing', panels, TEST_PRIOR, (values, widths), labels)}", ours


def _drawn(
    out: Path,
    name: str,
    panels: tuple[Panel, ...],
    prior: tuple[float, float],
    what: tuple[dict[str, Array], dict[str, Array]],
    labels: tuple[str, str],
) -> str:
    """Mean and standard error against the information of a panel, beside the expert's."""
    figure, axes = new_figure(1, 2, width=11, height=4.5)
    expert = panels[0]
    for ax, values, label in zip(axes.flat, what, labels, strict=True):
        level = values[expert.name].mean()
        ax.axhline(level, color="black", linestyle=":", label=f"one expert, error {EXPERT}")
        ax.axvline(expert.bits(prior), color="black", linestyle=":")
        for panel in panels[1:]:
            each = values[panel.name]
            colour, beside = ("tab:blue", (6, 6)) if panel.error == MEDIOCRE else ("tab:orange", (-62, -14))
            bits = panel.bits(prior)
            ax.errorbar(bits, each.mean(), each.std(ddof=1) / np.sqrt(len(each)), fmt="o", color=colour, capsize=3)
            ax.annotate(
                f"{panel.n_labelers} × {panel.error:.2f}",
                (bits, each.mean()),
                xytext=beside,
                textcoords="offset points",
            )
        ax.set_xlim(0, 1.05)
        ax.set(xlabel="what the votes on an item tell of its class, bits", ylabel=label)
        ax.legend(fontsize=8)
        ax.grid(alpha=0.3)
    return save_figure(figure, out, name)


EQUIVALENCE: dict[str, Callable[..., Answer]] = {
    "section5.5-training": equal_training,
    "section5.5-testing": equal_testing,
}
