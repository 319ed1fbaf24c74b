"""Beside importance sampling of strata (OASIS) and LURE on the same pools, without noisy votes and with them."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Section, as_text, tracked
from benchmarks._vetting_pools import Case, crowd_cases, vet
from benchmarks._vetting_rivals import MEASURES, lure, oasis, value_of

__all__ = ["sampling"]

N_VETTED = 50
BATCH = 10
_RIVALS = {"OASIS": oasis, "LURE": lure}


def sampling(quick: bool, repetitions: int | None = None) -> Section:
    """Errors of precision, recall, F and accuracy after 50 answers, two classes."""
    repetitions = repetitions or (3 if quick else 40)
    cases = [case for case in crowd_cases(quick, most=1 if quick else 3) if case.labels.n_classes == 2]
    squares: dict[tuple[str, str], list[float]] = defaultdict(list)
    undefined: dict[str, int] = defaultdict(int)
    held: dict[str, list[bool]] = defaultdict(list)

    def note(method: str, measure: str, error: float) -> None:
        undefined[method] += math.isnan(error)
        # An answer that is not defined is worth the middle of the scale.
        squares[method, measure].append(0.25 if math.isnan(error) else error**2)

    for case in tracked(cases, "sampling"):
        items = case.labels.items.tolist()
        code_of = {name: k for k, name in enumerate(case.labels.classes.tolist())}
        predicted, truth = (np.array([code_of[of[item]] for item in items]) for of in (case.predictions, case.truth))
        silent = _without_votes(case)
        for measure in MEASURES:
            true = value_of(measure, predicted, truth)
            if math.isnan(true):
                continue
            sessions = {
                "trueup, no votes": silent.session(metric=measure, noise="majority", positive=case.labels.classes[1]),
                "trueup, votes": case.session(metric=measure, positive=case.labels.classes[1]),
            }
            scores = {"no votes": np.full(len(truth), 0.5), "votes": sessions["trueup, votes"].pool.prior[:, 1]}
            for seed in range(repetitions):
                for method, test in sessions.items():
                    estimate = vet(test.restart(random_state=seed), case.truth, N_VETTED, batch=BATCH).estimate()
                    note(method, measure, estimate.mean - true)
                    low, high = estimate.interval(LEVEL)
                    held[method].append(low - 1e-9 <= true <= high + 1e-9)
                for name, rival in _RIVALS.items():
                    for given, score in scores.items():
                        rng = np.random.default_rng(seed)
                        values = rival(measure, predicted, score, lambda k, y=truth: int(y[k]), [N_VETTED], rng)  # type: ignore[misc]
                        note(f"{name}, {given}", measure, values[0] - true)
    methods = [f"{name}, {given}" for given in ("no votes", "votes") for name in ("trueup", *_RIVALS)]
    rmse = {key: float(np.sqrt(np.mean(values))) for key, values in squares.items()}
    rows = [
        [
            method,
            *(f"{rmse[method, measure]:.4f}" for measure in MEASURES),
            str(undefined[method]),
            f"{100 * np.mean(held[method]):.1f}" if method in held else "",
        ]
        for method in methods
    ]
    text = "\n\n".join(
        [
            f"Root of the mean squared error after {N_VETTED} answers: {len(cases)} labelers of crowds with two "
            f"classes, {repetitions} repetitions",
            as_text(["method", *MEASURES, "undefined", "covers %"], rows),
            "No votes: the predictions alone are seen. Votes: OASIS and LURE get P(positive | votes) of the noise\n"
            "model as their score. Asked: at least level without noisy votes, ahead with them.",
        ]
    )
    numbers = {
        method: {
            **{measure: rmse[method, measure] for measure in MEASURES},
            "undefined": undefined[method],
            **({"coverage": float(np.mean(held[method]))} if method in held else {}),
        }
        for method in methods
    }
    return Section(text, numbers)


def _without_votes(case: Case) -> Case:
    """The same pool, where nobody voted but for one vote of each class: labels cannot be without any."""
    votes = np.full((case.labels.n_items, 1), -1)
    votes[:2, 0] = 0, 1
    names = case.labels.classes.tolist()
    items = case.labels.items.tolist()
    matrix = np.array([[names[v] if v >= 0 else None for v in row] for row in votes], dtype=object)
    return Case(
        case.name,
        tu.Labels.from_matrix(matrix, missing=None, classes=names, items=items),
        case.predictions,
        case.truth,
    )
