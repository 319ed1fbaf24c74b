"""The simulations of Sections 5.2 and 5.3, and what every method says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu

__all__ = [
    "AXIS",
    "CLASSIFIER",
    "METHODS",
    "METRICS",
    "Measured",
    "asked",
    "at_point",
    "known_noise",
    "main_example",
    "measure",
    "multiclass_example",
    "single_labeler",
    "small_sample",
]

Array = npt.NDArray[np.float64]

METRICS = ("accuracy", "precision", "recall", "false_alarm_rate", "f1")
AXIS = tuple(round(0.05 + 0.1 * k, 2) for k in range(10))  # of the grids of operating points

# Our names of the methods, and what `evaluate` is asked for. "ratios" and "sampling" are Algorithms 1 and 2.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ratios": ("mmse", {"algorithm": "ratios", "mean": "marsaglia"}),
    "sampling": ("mmse", {"algorithm": "sampling"}),
    "estimated-labels": ("estimated-labels", {}),
    "labeler-mean": ("labeler-mean", {}),
    "labeler-median": ("labeler-median", {}),
    "prior-average": ("prior-average", {}),
    "no-predictions": ("no-predictions", {}),
    "no-predictions, labels": ("no-predictions", {"estimated": True}),
    "bayes": ("bayes", {}),
}
CLASSIFIER = (
    (0.75, 0.08, 0.10, 0.07),
    (0.10, 0.65, 0.12, 0.13),
    (0.04, 0.06, 0.80, 0.10),
    (0.10, 0.05, 0.05, 0.80),
)


def main_example(seed: int) -> tu.simulate.Simulation:
    """Section 5.2.1, with the φ and η that the paper prints; difficulties, truths and votes are drawn."""
    return tu.simulate.su(
        n_items=1000,
        prior=(0.8, 0.2),
        operating_point=(0.8, 0.3),
        difficulty=(1, 5),
        fallibility=[0.249, 0.030, 0.387, 0.244, 0.154],
        participation=[0.727, 0.873, 0.286, 0.657, 0.232],
        random_state=seed,
    )


def at_point(point: tuple[float, float], seed: int) -> tu.simulate.Simulation:
    """Section 5.2.3, second experiment.

    With the same seed, two operating points share truths, labelers, votes and the random numbers that the
    predictions are made from.
    """
    return tu.simulate.su(
        n_items=1000,
        n_labelers=5,
        prior=(0.5, 0.5),
        operating_point=point,
        difficulty="uniform",
        fallibility=(0.0, 0.5),
        participation=(0.0, 1.0),
        random_state=seed,
    )


def single_labeler(seed: int) -> tu.simulate.Simulation:
    """Section 5.2.5: one labeler who errs on every tenth item, ε₀ = 0.1."""
    return tu.simulate.su(
        n_items=1000,
        n_labelers=1,
        prior=(0.4, 0.6),
        operating_point=(0.9, 0.1),
        difficulty=0.0,
        fallibility=0.2,
        participation=1.0,
        random_state=seed,
    )


def small_sample(seed: int) -> tu.simulate.Simulation:
    """Section 5.2.6: 70 items."""
    return tu.simulate.su(
        n_items=70,
        n_labelers=3,
        prior=(0.5, 0.5),
        operating_point=(0.85, 0.2),
        difficulty=(1, 2),
        fallibility=(0.2, 0.5),
        participation=(0.0, 1.0),
        random_state=seed,
    )


def multiclass_example(seed: int) -> tu.simulate.Simulation:
    """Section 5.3: four classes."""
    return tu.simulate.su(
        n_items=2000,
        n_labelers=5,
        prior=(0.2, 0.3, 0.1, 0.4),
        classifier_confusion=CLASSIFIER,
        difficulty=0.0,
        fallibility=(0.0, 0.4),
        participation=(0.0, 1.0),
        random_state=seed,
    )


def known_noise(sim: tu.simulate.Simulation) -> tu.noise.Difficulty:
    """The noise model with its true parameters: the paper takes ψ and π as known."""
    p = sim.parameters
    return tu.noise.Difficulty(difficulty=p["difficulty"], fallibility=p["fallibility"], prior=p["prior"])


def asked(sim: tu.simulate.Simulation, name: str, *, seed: int = 0, **options: Any) -> tu.Evaluation:
    """What a method says, "ideal" being the truth itself."""
    method, own = ("ideal", {"truth": sim.truth}) if name == "ideal" else METHODS[name]
    return tu.evaluate(
        sim.predictions,
        sim.labels,
        noise=known_noise(sim),
        metrics=METRICS if sim.labels.n_classes == 2 else ("accuracy",),
        method=method,
        check_dependence=False,
        random_state=seed,
        **own,
        **options,
    )


@dataclass(frozen=True)
class Measured:
    """The five metrics as a method sees them, each an array in the order of `METRICS`; nan where not asked for."""

    mean: Array
    mode: Array
    low: Array
    high: Array
    operating_point: tuple[float, float]
    n_iter: int
    converged: bool


def measure(ev: tu.Evaluation, *, mode: bool = False, interval: bool = False) -> Measured:
    """The numbers of an evaluation; modes and intervals cost some time."""
    estimates = [ev[name] for name in METRICS]
    nothing = np.full(len(METRICS), np.nan)
    ends = np.array([e.interval(0.95) for e in estimates]).T if interval else (nothing, nothing)
    solution = ev.solution
    return Measured(
        mean=np.array([e.mean for e in estimates]),
        mode=np.array([e.mode for e in estimates]) if mode else nothing,
        low=ends[0],
        high=ends[1],
        operating_point=(np.nan, np.nan) if solution.confusion is None else solution.operating_point,
        n_iter=solution.n_iter,
        converged=solution.converged,
    )
