"""Unbiased estimation: is it unbiased, do its intervals hold the truth, is consolidation exact and quick?

Run ``python -m benchmarks.unbiased [section ...] [--quick] [--json out.json]``; without names all sections are run.
Everything is simulated and seeded. ``±`` is one standard error. Times are those of this machine.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Tally, as_text, share, tracked
from benchmarks._sections import run_sections
from trueup._base.types import Codes, Floats
from trueup.estimators import Solution, consolidated_confusion, unbiased
from trueup.metrics import Metric, get_metric
from trueup.posteriors import Estimate

Z = 1.959963984540054
METRICS = ("accuracy", "precision", "recall", "f1", "mcc")
# N, labels' error rate, accuracy of the classifier
ACCURACY_SETTINGS = [(n, 0.2, 0.8) for n in (200, 1000, 10_000)]
ACCURACY_SETTINGS += [(200, 0.05, 0.7), (200, 0.4, 0.8), (200, 0.02, 0.98), (200, 0.005, 0.98), (200, 0.1, 0.95)]
ACCURACY_SETTINGS += [(200, 0.3, 0.99), (1000, 0.02, 0.98)]


def brute_force(matrices: Floats, prior: Floats) -> Floats:
    """The consolidated matrix by its definition: one vote of each labeler at a time."""
    n_classes = matrices.shape[1]
    found = np.zeros((n_classes, n_classes))
    for votes in itertools.product(range(matrices.shape[2]), repeat=len(matrices)):
        chances = np.prod([matrix[:, vote] for matrix, vote in zip(matrices, votes, strict=True)], axis=0)
        scores = np.log(prior) + np.log(chances)
        found[:, int(np.argmax(scores >= scores.max() - 1e-9))] += chances
    return found


def two_class_matrices(n: int, rng: np.random.Generator, low: float = 0.55, high: float = 0.95) -> Floats:
    """Different labelers with accuracies in a range, for each class its own."""
    right = rng.uniform(low, high, (n, 2))
    return np.stack([np.stack([right[:, 0], 1 - right[:, 0]], 1), np.stack([1 - right[:, 1], right[:, 1]], 1)], 1)


def consolidation(quick: bool) -> str:
    rng = np.random.default_rng(0)
    rows = []
    for n_classes, most in ((2, 7 if quick else 10), (3, 5 if quick else 7)):
        gap = 0.0
        for k in range(1, most + 1):
            tables = rng.dirichlet(np.ones(n_classes), size=(k, n_classes)) * 0.6 + 0.4 * np.eye(n_classes)
            prior = rng.dirichlet(np.full(n_classes, 5.0))
            found = consolidated_confusion(tables, prior).matrix
            gap = max(gap, float(np.abs(found - brute_force(tables, prior)).max()))
        rows.append([f"{n_classes} classes, 1 to {most} labelers", "largest difference to brute force", f"{gap:.1e}"])
    for k in (10, 25, 35, 100):
        tables, took = two_class_matrices(k, rng), []
        for _ in range(3 if quick else 15):
            started = time.perf_counter()
            found = consolidated_confusion(tables, [0.4, 0.6])
            took.append(time.perf_counter() - started)
        error = f" (error at most {found.error:.0e})" if found.error else ""
        rows.append([f"2 classes, {k} different labelers", f"{found.how}{error}", f"{1e3 * np.median(took):.1f} ms"])
    return as_text(["consolidation", "", ""], rows, left=(0, 1))


def symmetric(accuracy: float) -> Floats:
    return np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])


def simulated(
    n: int, prior: Floats, classifier: Floats, labelers: Floats, rng: np.random.Generator, votes: int | None = None
) -> tuple[tu.Labels, Codes]:
    """Votes, and predictions of a classifier whose confusion matrix is known."""
    sim = tu.simulate.dawid_skene(
        n_items=n,
        n_classes=len(prior),
        n_labelers=len(labelers),
        votes_per_item=votes,
        prior=prior,
        confusion=labelers,
        classifier_confusion=classifier,
        random_state=rng,
    )
    return sim.labels, sim.predictions


def plain_normal(solution: Solution, metric: Metric) -> tuple[float, float]:
    """Value ± 1.96 standard errors by the delta method, as in the paper (eq. 10)."""
    counts = solution.counts
    slope = counts.gradient(metric)
    value, half = float(metric(counts.shares)), Z * math.sqrt(max(counts.covariance(slope, slope), 0.0))
    return value - half, value + half


def equation_15(n: int, beta: float, accuracy: float) -> float:
    """Half the width of the interval for the accuracy (Dolatshah et al. 2018, eq. 15)."""
    ab = -beta * (1 - beta) / (1 - 2 * beta) ** 2
    return Z * math.sqrt((-ab + accuracy - accuracy**2) / n)


def accuracy(quick: bool) -> str:
    rows = []
    half: dict[tuple[int, float, float], float] = {}
    metric = get_metric("accuracy", [0, 1])
    for setting in tracked(ACCURACY_SETTINGS, "accuracy"):
        n, beta, theta = setting
        n_sets = 100 if quick else 2000 if n < 10_000 else 500
        rng = np.random.default_rng([1, n, round(1000 * beta), round(1000 * theta)])
        noise = tu.noise.Confusion(symmetric(1 - beta))
        tested, normal, bootstrap = Tally(), Tally(), Tally()
        for number in range(n_sets):
            labels, predictions = simulated(n, np.array([0.5, 0.5]), symmetric(theta), symmetric(1 - beta)[None], rng)
            solution = unbiased(labels, predictions, noise=noise)
            tested.add(theta, solution.counts.estimate(metric))
            normal.add_interval(theta, tested.errors[-1] + theta, plain_normal(solution, metric))
            if number < n_sets // 4:
                drawn = unbiased(labels, predictions, noise=noise, interval="bootstrap", random_state=number)
                bootstrap.add(theta, drawn.counts.estimate(metric))
        half[setting] = normal.width / 2
        ratio = half[setting] / equation_15(*setting)
        error = f"{1e4 * tested.bias:+.1f} ± {1e4 * tested.bias_error:.1f}"
        told = [f"{n_sets}", f"{n}", f"{beta:g}", f"{theta:g}", error, f"{abs(tested.bias) / tested.bias_error:.1f}"]
        told += [share(tested), share(normal), share(bootstrap)]
        told += [f"{half[setting]:.4f}", f"{ratio:.3f}", f"{tested.width / 2 / equation_15(*setting):.3f}"]
        rows.append(told)
    head = ["sets", "N", "β", "accuracy", "mean error × 10⁴", "in SE", "holds %: tested (default)", "plain normal"]
    head += ["bootstrap", "half-width", "over eq. 15", "tested over eq. 15"]
    shrink = half[(1000, 0.2, 0.8)] / half[(10_000, 0.2, 0.8)]
    text = as_text(head, rows, left=())
    text += f"\nN × 10 shrinks the half-width {shrink:.3f} times (√10 = {math.sqrt(10):.3f})"
    return text


def covered(
    n: int,
    prior: Floats,
    classifier: Floats,
    labelers: Floats,
    *,
    votes: int | None,
    names: Sequence[str],
    n_sets: int,
    seed: int,
) -> dict[str, dict[str, Tally]]:
    """Coverage of each metric by the default interval, the plain normal one and the bootstrap."""
    rng = np.random.default_rng(seed)
    metrics = {name: get_metric(name, list(range(len(prior)))) for name in names}
    true = {name: float(metric(prior[:, None] * classifier)) for name, metric in metrics.items()}
    noise = tu.noise.Confusion(labelers, prior=prior)
    tallies = {name: {how: Tally() for how in ("default", "normal", "bootstrap")} for name in names}
    for number in range(n_sets):
        labels, predictions = simulated(n, prior, classifier, labelers, rng, votes)
        solution = unbiased(labels, predictions, noise=noise, random_state=number)
        drawn = unbiased(labels, predictions, noise=noise, interval="bootstrap", n_bootstrap=1000, random_state=number)
        for name, metric in metrics.items():
            found: Estimate = solution.counts.estimate(metric)
            if math.isnan(found.mean):
                continue
            tallies[name]["default"].add(true[name], found)
            tallies[name]["normal"].add_interval(true[name], found.mean, plain_normal(solution, metric))
            tallies[name]["bootstrap"].add(true[name], drawn.counts.estimate(metric))
    return tallies


def ratios(quick: bool) -> str:
    n_sets = 60 if quick else 600
    rng = np.random.default_rng(2)
    even, rare = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    skew = np.array([[0.95, 0.05], [0.2, 0.8]])
    three = two_class_matrices(6, rng)
    four = 0.5 * rng.dirichlet(np.ones(4), size=(8, 4)) + 0.5 * np.eye(4)
    classifier4 = 0.3 * rng.dirichlet(np.ones(4), size=4) + 0.7 * np.eye(4)
    multi = ("accuracy", "macro_f1", "precision:3", "recall:3", "mcc")
    one = {"prior": even, "classifier": skew, "labelers": symmetric(0.8)[None]}
    some = {"prior": rare, "classifier": skew, "labelers": three, "votes": 3}
    most = {"prior": np.full(4, 0.25), "classifier": classifier4, "labelers": four, "votes": 3, "names": multi}
    settings: list[tuple[str, dict[str, Any]]] = [
        ("N = 200, one vote, β = 0.2", {"n": 200, **one}),
        ("N = 1000, one vote, β = 0.2", {"n": 1000, **one}),
        ("N = 500, 10% positive, 3 of 6 labelers", {"n": 500, **some}),
        ("N = 2000, 10% positive, 3 of 6 labelers", {"n": 2000, **some}),
        ("N = 500, 4 classes, 3 of 8 labelers", {"n": 500, **most}),
    ]
    rows = []
    for seed, (label, setting) in enumerate(tracked(settings, "ratios")):
        found = covered(**{"votes": None, "names": METRICS, "n_sets": n_sets, "seed": seed, **setting})
        for name, tallies in found.items():
            error = f"{tallies['default'].bias:+.4f} ± {tallies['default'].bias_error:.4f}"
            widths = [f"{tally.width:.4f}" for tally in tallies.values()]
            rows.append([label, name, error, *map(share, tallies.values()), *widths])
    head = ["setting", "metric", "mean error", "holds %: default", "plain normal", "bootstrap"]
    head += ["width", "normal", "bootstrap"]
    return as_text(head, rows, left=(0, 1)) + f"\n{n_sets} sets each"


main = partial(
    run_sections, "unbiased", __doc__, {"consolidation": consolidation, "accuracy": accuracy, "ratios": ratios}
)


if __name__ == "__main__":
    main()
