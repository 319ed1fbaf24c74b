"""Coverage where the noise is learned from the same votes, beside what is done today."""

from __future__ import annotations

from typing import Any

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import Section, Tally, as_text, share, tracked, wald
from trueup.simulate import Simulation

__all__ = ["baseline", "draw_setting", "learned", "tally_learned", "tally_majority"]

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


def tally_learned(sim: Simulation, tally: Tally, noise: str, *, seed: int, **sampling: Any) -> tu.Evaluation:
    """Hold the accuracy with learned noise against the truth."""
    ev = tu.evaluate(
        sim.predictions,
        sim.labels,
        noise=noise,
        metrics=["accuracy"],
        check_dependence=False,
        random_state=seed,
        **sampling,
    )
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


def learned(quick: bool) -> Section:
    """Votes from the model class, the noise learned with the classifier as one more rater."""
    runs = 20 if quick else 400
    tallies = {name: Tally() for name in ("dawid-skene", "majority, Wald")}
    by_classes: dict[int, Tally] = {}
    worst: dict[str, list[float]] = {"dawid-skene": []}
    for seed in tracked(range(41_000, 41_000 + runs), "learned"):
        sim = draw_setting(seed)
        for noise, seen in worst.items():
            ev = tally_learned(sim, tallies[noise], noise, seed=seed, **SHORT)
            seen.append(ev.solution.diagnostics["r_hat"])
            if noise == "dawid-skene":
                by_classes.setdefault(sim.labels.n_classes, Tally()).add(sim.accuracy, ev["accuracy"])
        tally_majority(sim, tallies["majority, Wald"], seed=seed)
    drawn = {f"{name}; classifier U(0.55, 0.95)": Tally() for name in ("dawid-skene", "majority, Wald")}
    for seed in tracked(range(42_000, 42_000 + runs // 2), "learned, classifier drawn"):
        sim = draw_setting(seed, None)
        bayes, majority = drawn.values()
        tally_learned(sim, bayes, "dawid-skene", seed=seed, **SHORT)
        tally_majority(sim, majority, seed=seed)
    rows = [_row(name, tally, worst.get(name)) for name, tally in tallies.items()]
    rows += [_row(f"dawid-skene, {c} classes", by_classes[c], None) for c in sorted(by_classes)]
    rows += [_row(name, tally, None) for name, tally in drawn.items()]
    text = "\n\n".join(
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
    return Section(text, {name: tally.numbers() for name, tally in (tallies | drawn).items()})


_HEAD = ["accuracy by", "covers % ± s.e.", "equal tails", "mean error", "RMSE", "mean |error|", "width", "R-hat > 1.05"]


def _row(name: str, t: Tally, rhats: list[float] | None) -> list[str]:
    mixed = "" if rhats is None else f"{sum(r > 1.05 for r in rhats)} of {len(rhats)}"
    numbers = [f"{t.bias:+.4f} ± {t.bias_error:.4f}", f"{t.rmse:.4f}", f"{t.mae:.4f}", f"{t.width:.4f}", mixed]
    return [name, share(t), f"{100 * t.coverage_equal:.1f}", *numbers]


def baseline(quick: bool) -> Section:
    """Three mediocre labelers: today's practice and the calibrated method, for 500 and 3000 items."""
    sizes = {500: 20, 3000: 4} if quick else {500: 400, 3000: 150}
    parts, numbers = [], {}
    for n, runs in sizes.items():
        tallies = {name: Tally() for name in _TODAY}
        rhats: list[float] = []
        said: dict[str, list[float]] = {name: [] for name in _TODAY}
        for seed in tracked(range(31_000, 31_000 + runs), f"baseline {n}"):
            sim = tu.simulate.baseline(n_items=n, random_state=seed)
            _tally_today(sim, tallies, seed=seed)
            ev = tally_learned(sim, tallies["bayes"], "dawid-skene", seed=seed, **LONGER)
            rhats.append(ev.solution.diagnostics["r_hat"])
            for name, tally in tallies.items():
                said[name].append(sim.accuracy + tally.errors[-1])
        rows = [
            [*_row(_TODAY[name], t, rhats if name == "bayes" else None), f"{np.mean(said[name]):.3f}", _ISSUE[name]]
            for name, t in tallies.items()
        ]
        parts += [f"N = {n}, {runs} data sets", as_text([*_HEAD, "says", "issue: says, covers"], rows, left=(0, 9))]
        numbers[str(n)] = {name: {**t.numbers(), "says": float(np.mean(said[name]))} for name, t in tallies.items()}
    title = (
        "Today's practice: two classes, prevalence 0.3, classifier accuracy 0.80, three labelers of 0.65–0.85 who all "
        f"vote;\nnoise learned (dawid-skene), 4 chains of {LONGER['n_warmup']} + {LONGER['n_draws']} sweeps"
    )
    target = 'Target: "bayes" has a mean error below 0.005, RMSE at most 0.025, coverage 93–97%, for both sizes.'
    return Section("\n\n".join([title, *parts, target]), numbers)


_TODAY = {
    "majority": "majority as truth, Wald",
    "labels": "Dawid–Skene labels as truth, Wald",
    "iterated": "estimated-labels (Algorithm 3), Wald",
    "soft": "Dawid–Skene soft labels",
    "bayes": 'bayes, noise="dawid-skene"',
}
_ISSUE = {
    "majority": "0.701, 3%",
    "labels": "0.700, 0%",
    "iterated": "",
    "soft": "0.665, 0%",
    "bayes": "0.80, 93–97%",
}


def _tally_today(sim: Simulation, tallies: dict[str, Tally], *, seed: int) -> None:
    tally_majority(sim, tallies["majority"], seed=seed)

    def ask(method: str, **options: Any) -> tu.Evaluation:
        return tu.evaluate(
            sim.predictions,
            sim.labels,
            noise="dawid-skene",
            metrics=["accuracy"],
            method=method,
            check_dependence=False,
            random_state=seed,
            **options,
        )

    _tally_counts(sim, tallies["labels"], ask("no-predictions", estimated=True))
    _tally_counts(sim, tallies["iterated"], ask("estimated-labels"))
    tallies["soft"].add(sim.accuracy, ask("no-predictions")["accuracy"])
