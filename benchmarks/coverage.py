"""Do the intervals hold the truth? Coverage on simulated and real data, beside what is common today.

Run ``python -m benchmarks.coverage [section ...] [--quick] [--json out.json]``; without names all sections are run.
Simulations and samplers are seeded. Truth is used for measuring only. ``±`` is one
binomial standard error.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Tally, as_text, share, tracked, wald
from benchmarks._sections import run_sections
from trueup._base.types import Floats
from trueup.metrics import confusion_counts, get_metric
from trueup.simulate import Simulation

# ---- Coverage where the noise of the labelers is known: Su's simulations, small samples, four classes


METRICS = ("accuracy", "precision", "recall", "false_alarm_rate", "f1")
METHODS = ("mmse", "bayes")
# Section 5.3, rows are the truth.
FOUR_CLASSES = ((0.75, 0.08, 0.10, 0.07), (0.10, 0.65, 0.12, 0.13), (0.04, 0.06, 0.80, 0.10), (0.10, 0.05, 0.05, 0.80))
Tallies = dict[tuple[str, str], Tally]


def grid_points(step: int = 1) -> list[tuple[float, float]]:
    """Su's 10 × 10 operating points (p_D, p_FA), every `step`-th along each axis."""
    axis = [0.05 + 0.1 * k for k in range(0, 10, step)]
    return [(d, f) for d in axis for f in axis]


def known_noise(sim: Simulation) -> tu.noise.Difficulty:
    """The noise model with its true parameters."""
    p = sim.parameters
    return tu.noise.Difficulty(difficulty=p["difficulty"], fallibility=p["fallibility"], prior=p["prior"])


def true_counts(sim: Simulation) -> Floats:
    """The confusion counts with the truth known."""
    assert sim.predictions is not None
    return confusion_counts(sim.truth, sim.predictions, sim.labels.n_classes)


def true_values(sim: Simulation) -> dict[str, float]:
    """The metrics on this sample with the truth known; nan where they are undefined."""
    counts = true_counts(sim)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: float(get_metric(name, [0, 1], positive=1)(counts)) for name in METRICS}


def tally_known(sim: Simulation, tallies: Tallies, *, seed: int) -> dict[str, Any]:
    """Hold each method's metrics against the truth; returns the evaluations."""
    true, found = true_values(sim), {}
    for method in METHODS:
        ev = tu.evaluate(
            sim.predictions, sim.labels, noise=known_noise(sim), metrics=METRICS, method=method, random_state=seed
        )
        for name in METRICS:
            tallies.setdefault((method, name), Tally()).add(true[name], ev[name])
        found[method] = ev
    return found


def su(quick: bool) -> str:
    """Section 5.2.3: operating points over the unit square, N = 1000, five labelers."""
    points, seeds = (grid_points(3), 2) if quick else (grid_points(), 10)
    tallies: Tallies = {}
    off: list[tuple[float, float]] = []
    iterations, converged = [], []
    cases = [(k, s) for s in range(seeds) for k in range(len(points))]
    for k, s in tracked(cases, "su"):
        seed = 52_300 + 1000 * s + k
        sim = tu.simulate.su(operating_point=points[k], random_state=seed)
        ev = tally_known(sim, tallies, seed=seed)
        true, solution = true_values(sim), ev["mmse"].solution
        d, f = solution.operating_point
        off.append((true["recall"] - d, true["false_alarm_rate"] - f))
        iterations.append(solution.n_iter)
        converged.append(solution.converged)
    better = [name for name in METRICS if tallies["bayes", name].mae > tallies["mmse", name].mae + 5e-4]
    return "\n\n".join(
        [
            f"Su, Section 5.2.3: {len(points)} operating points × {seeds} seeds, N = 1000, noise known",
            "Table 12, errors of the operating point found by mmse (true on the sample, less estimate)\n"
            + _table_12(np.array(off), iterations, converged),
            "Target: mean absolute error at most 0.02 for both, all runs converged.",
            _metric_table(tallies),
            'Target: "mmse" covers about 75%, "bayes" 95 ± 1.5 for each metric, with a mean error no larger.\n'
            f"Mean absolute error of bayes above that of mmse by more than 0.0005: {', '.join(better) or 'no metric'}.",
        ]
    )


def _table_12(off: Floats, iterations: list[int], converged: list[bool]) -> str:
    paper = {"p_D": (-0.0113, 0.0104, 0.0314), "p_FA": (0.0120, 0.0136, 0.0442)}
    rows: list[list[str]] = []
    for k, name in enumerate(("p_D", "p_FA")):
        error = off[:, k][~np.isnan(off[:, k])]
        mean_absolute = float(np.abs(error).mean())
        measured = (float(error.mean()), float(error.std()), float(np.abs(error).max()))
        rows.append(
            [name, f"{mean_absolute:.4f}", *(f"{a:.4f} ({b:.4f})" for a, b in zip(measured, paper[name], strict=True))]
        )
    table = as_text(["", "mean |error|", "mean (paper)", "std (paper)", "max |error| (paper)"], rows)
    count = f"Iterations: mean {np.mean(iterations):.1f} (10.9), most {max(iterations)} (17); "
    count += f"converged {sum(converged)} of {len(converged)} (all). The paper's are one draw of votes for all points."
    return f"{table}\n{count}"


def _metric_table(tallies: Tallies) -> str:
    rows = []
    for (method, name), t in sorted(tallies.items(), key=lambda x: -METHODS.index(x[0][0])):
        errors = [f"{t.bias:+.4f}", f"{t.mae:.4f}", f"{t.width:.4f}", str(len(t))]
        rows.append([method, name, share(t), f"{100 * t.coverage_equal:.1f}", *errors])
    head = ["method", "metric", "covers % ± s.e.", "equal tails", "mean error", "mean |error|", "width", "cases"]
    return as_text(head, rows, left=(0, 1))


def small(quick: bool) -> str:
    """Few items: Su's Section 5.2.6 with its operating point, and with points over the unit square."""
    grid = grid_points(3) if quick else grid_points()
    seeds = 3 if quick else 5
    rows = []
    for n in (20, 40, 70):
        for design, points in (("unit square", grid), ("(0.85, 0.2)", [(0.85, 0.2)] * len(grid))):
            tallies: Tallies = {}
            cases = [(k, s) for s in range(seeds) for k in range(len(points))]
            for k, s in tracked(cases, f"small {n}, {design}"):
                seed = 52_600 + 100_000 * n + 1000 * s + k
                labelers = {"n_labelers": 3, "difficulty": (1, 2), "fallibility": (0.2, 0.5)}
                sim = tu.simulate.su(n_items=n, operating_point=points[k], **labelers, random_state=seed)
                tally_known(sim, tallies, seed=seed)
            for method in METHODS[::-1]:
                of = [tallies[method, name] for name in METRICS]
                cells = [*(share(t) for t in of), f"{np.mean([t.mae for t in of]):.3f}", str(len(of[0]))]
                rows.append([str(n), design, method, *cells])
                rows.append(["", "", "  equal tails", *(f"{100 * t.coverage_equal:.1f}" for t in of), "", ""])
    return "\n\n".join(
        [
            "Small samples: 3 labelers, δ ~ Beta(1, 2), φ ~ U(0.2, 0.5), η ~ U(0, 1), noise known; coverage % ± s.e.",
            as_text(["N", "operating point", "method", *METRICS, "mean |error|", "cases"], rows, left=(0, 1, 2)),
            'Target: "bayes" covers 95 ± 2.5. With so few items a metric takes few values, and the shortest set of '
            "values that holds 95%\nholds more than that; over the unit square, which is the prior of the method, "
            "it may not cover less.",
        ]
    )


def multiclass(quick: bool) -> str:
    """Section 5.3: four classes, 2000 items, five labelers."""
    repetitions = 10 if quick else 100
    quantities = ["accuracy", *(f"{y} as {p}" for y in range(4) for p in range(4))]
    tallies: Tallies = {}
    everything: dict[str, list[bool]] = {method: [] for method in METHODS}
    for seed in tracked(range(530, 530 + repetitions), "multiclass"):
        classes = {"prior": (0.2, 0.3, 0.1, 0.4), "classifier_confusion": FOUR_CLASSES}
        sim = tu.simulate.su(n_items=2000, **classes, difficulty=0.0, fallibility=(0.0, 0.4), random_state=seed)
        true = [sim.accuracy, *true_counts(sim).ravel().tolist()]
        for method in METHODS:
            # Of 10⁴ draws: fewer change digits, not coverage.
            options = {"method": method, "random_state": seed, **({"n_draws": 2500} if method == "mmse" else {})}
            ev = tu.evaluate(sim.predictions, sim.labels, noise=known_noise(sim), metrics=["accuracy"], **options)
            estimates = [ev["accuracy"], *(ev.confusion.cell(y, p) for y in range(4) for p in range(4))]
            mine = [tallies.setdefault((method, name), Tally()) for name in quantities]
            for tally, value, estimate in zip(mine, true, estimates, strict=True):
                tally.add(value, estimate)
            everything[method].append(all(tally.held[-1] for tally in mine))
    rows = []
    for name in quantities:
        both = [tallies[method, name] for method in METHODS]
        rows.append(
            [name, *(share(t) for t in both), *(f"{t.mae:.4g}" for t in both), *(f"{t.width:.4g}" for t in both)]
        )
    heads = [f"{method}: {what}" for what in ("covers % ± s.e.", "mean |error|", "width") for method in METHODS]
    summary = []
    for method in METHODS:
        of = [tallies[method, name].coverage for name in quantities]
        enough = sum(c >= 0.9 for c in of)
        at_once = float(np.mean(everything[method]))
        summary.append(
            f"{method}: {enough} of 17 quantities inside in at least 90% of {repetitions} repetitions (least "
            f"{100 * min(of):.0f}%, mean {100 * np.mean(of):.1f}%); all 17 at once in {100 * at_once:.0f}%"
        )
    return "\n\n".join(
        [
            f"Su, Section 5.3: four classes, N = 2000, noise known, {repetitions} repetitions; counts are of items",
            as_text(["truth as prediction", *heads], rows),
            "\n".join(summary) + '\nTarget: "bayes" has each of the 17 inside in at least 90%. '
            f"Independent 95% intervals would hold all 17 at once in {100 * math.pow(0.95, 17):.0f}%.",
        ]
    )


# ---- Coverage where the noise is learned from the same votes, beside what is done today


# A third of the default number of sweeps, in as many chains: what coverage needs, not what one evaluation deserves.
SHORT = {"n_warmup": 300, "n_draws": 700}
# Three mediocre labelers leave much open, and the chains mix slowly.
LONGER = {"n_warmup": 500, "n_draws": 1500}


def draw_setting(seed: int, classifier: float | None = 0.8) -> Simulation:
    """Votes from the model class: sizes, labelers and, if None, the classifier drawn for each seed."""
    rng = np.random.default_rng(seed)
    return tu.simulate.dawid_skene(
        n_classes=int(rng.integers(2, 6)),
        n_items=int(rng.integers(200, 1001)),
        n_labelers=int(rng.integers(5, 21)),
        votes_per_item=3,
        accuracy=(0.55, 0.95),
        classifier_accuracy=float(rng.uniform(0.55, 0.95)) if classifier is None else classifier,
        random_state=rng,
    )


def tally_learned(sim: Simulation, tally: Tally, *, seed: int, **sampling: Any) -> tu.Evaluation:
    """Hold the accuracy with learned noise against the truth."""
    options = {
        "noise": "dawid-skene",
        "metrics": ["accuracy"],
        "check_dependence": False,
        "random_state": seed,
        **sampling,
    }
    ev = tu.evaluate(sim.predictions, sim.labels, **options)
    tally.add(sim.accuracy, ev["accuracy"])
    return ev


def tally_majority(sim: Simulation, tally: Tally, *, seed: int) -> None:
    """Majority labels as the truth, with a Wald interval."""
    ev = tu.evaluate(sim.predictions, sim.labels, metrics=["accuracy"], method="majority", random_state=seed)
    _tally_counts(sim, tally, ev)


def _tally_counts(sim: Simulation, tally: Tally, ev: tu.Evaluation) -> None:
    counts = ev.confusion.mean
    accuracy = float(np.trace(counts) / counts.sum())
    tally.add_interval(sim.accuracy, accuracy, wald(accuracy, float(counts.sum())))


def learned(quick: bool) -> str:
    """Votes from the model class, the noise learned with the classifier as one more rater."""
    runs = 20 if quick else 400
    tallies = {name: Tally() for name in ("dawid-skene", "majority, Wald")}
    by_classes: dict[int, Tally] = {}
    rhats: list[float] = []
    for seed in tracked(range(41_000, 41_000 + runs), "learned"):
        sim = draw_setting(seed)
        ev = tally_learned(sim, tallies["dawid-skene"], seed=seed, **SHORT)
        rhats.append(ev.solution.diagnostics["r_hat"])
        by_classes.setdefault(sim.labels.n_classes, Tally()).add(sim.accuracy, ev["accuracy"])
        tally_majority(sim, tallies["majority, Wald"], seed=seed)
    drawn = {f"{name}; classifier U(0.55, 0.95)": Tally() for name in ("dawid-skene", "majority, Wald")}
    for seed in tracked(range(42_000, 42_000 + runs // 2), "learned, classifier drawn"):
        sim = draw_setting(seed, None)
        bayes, majority = drawn.values()
        tally_learned(sim, bayes, seed=seed, **SHORT)
        tally_majority(sim, majority, seed=seed)
    rows = [_row(name, tally, rhats if name == "dawid-skene" else None) for name, tally in tallies.items()]
    rows += [_row(f"dawid-skene, {c} classes", by_classes[c], None) for c in sorted(by_classes)]
    rows += [_row(name, tally, None) for name, tally in drawn.items()]
    return "\n\n".join(
        [
            f"Learned noise, votes from the model class: {runs} data sets of 2–5 classes, 200–1000 items, 5–20\n"
            "labelers of accuracy U(0.55, 0.95), 3 votes an item, classifier of accuracy 0.8; "
            f"4 chains of {SHORT['n_warmup']} + {SHORT['n_draws']} sweeps",
            as_text(_HEAD, rows),
            'Target: "dawid-skene" covers at least 93%; majority with a Wald interval covers about 23%. How often the '
            "latter covers\ndepends on the classifier: its error is that of the labels × (1 − 2 × accuracy), for two "
            f"classes. Last rows: {runs // 2} data sets.",
        ]
    )


_HEAD = ["accuracy by", "covers % ± s.e.", "equal tails", "mean error", "RMSE", "mean |error|", "width", "R-hat > 1.05"]


def _row(name: str, t: Tally, rhats: list[float] | None) -> list[str]:
    mixed = "" if rhats is None else f"{sum(r > 1.05 for r in rhats)} of {len(rhats)}"
    numbers = [f"{t.bias:+.4f} ± {t.bias_error:.4f}", f"{t.rmse:.4f}", f"{t.mae:.4f}", f"{t.width:.4f}", mixed]
    return [name, share(t), f"{100 * t.coverage_equal:.1f}", *numbers]


def baseline(quick: bool) -> str:
    """Three mediocre labelers: today's practice and the calibrated method, for 500 and 3000 items."""
    sizes = {500: 20, 3000: 4} if quick else {500: 400, 3000: 150}
    parts = []
    for n, runs in sizes.items():
        tallies = {name: Tally() for name in _TODAY}
        rhats: list[float] = []
        said: dict[str, list[float]] = {name: [] for name in _TODAY}
        for seed in tracked(range(31_000, 31_000 + runs), f"baseline {n}"):
            sim = tu.simulate.baseline(n_items=n, random_state=seed)
            _tally_today(sim, tallies, seed=seed)
            ev = tally_learned(sim, tallies["bayes"], seed=seed, **LONGER)
            rhats.append(ev.solution.diagnostics["r_hat"])
            for name, tally in tallies.items():
                said[name].append(sim.accuracy + tally.errors[-1])
        rows = [
            [*_row(title, tallies[name], rhats if name == "bayes" else None), f"{np.mean(said[name]):.3f}", issue]
            for name, (title, issue) in _TODAY.items()
        ]
        parts += [f"N = {n}, {runs} data sets", as_text([*_HEAD, "says", "issue: says, covers"], rows, left=(0, 9))]
    title = (
        "Today's practice: two classes, prevalence 0.3, classifier accuracy 0.80, three labelers of 0.65–0.85 who all "
        f"vote;\nnoise learned (dawid-skene), 4 chains of {LONGER['n_warmup']} + {LONGER['n_draws']} sweeps"
    )
    target = 'Target: "bayes" has a mean error below 0.005, RMSE at most 0.025, coverage 93–97%, for both sizes.'
    return "\n\n".join([title, *parts, target])


# Name, and what the issue says: the mean, and how often intervals hold.
_TODAY = {
    "majority": ("majority as truth, Wald", "0.701, 3%"),
    "labels": ("Dawid–Skene labels as truth, Wald", "0.700, 0%"),
    "iterated": ("estimated-labels (Algorithm 3), Wald", ""),
    "soft": ("Dawid–Skene soft labels", "0.665, 0%"),
    "bayes": ('bayes, noise="dawid-skene"', "0.80, 93–97%"),
}


def _tally_today(sim: Simulation, tallies: dict[str, Tally], *, seed: int) -> None:
    tally_majority(sim, tallies["majority"], seed=seed)

    def ask(method: str, **options: Any) -> tu.Evaluation:
        options |= {"metrics": ["accuracy"], "method": method, "check_dependence": False, "random_state": seed}
        return tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", **options)

    _tally_counts(sim, tallies["labels"], ask("no-predictions", estimated=True))
    _tally_counts(sim, tallies["iterated"], ask("estimated-labels"))
    tallies["soft"].add(sim.accuracy, ask("no-predictions")["accuracy"])


SECTIONS = {"su": su, "small": small, "multiclass": multiclass, "learned": learned, "baseline": baseline}
main = partial(run_sections, "coverage", __doc__, SECTIONS)


if __name__ == "__main__":
    main()
