"""Beside importance sampling of strata (OASIS) and LURE on the same pools, without noisy votes and with them."""

from __future__ import annotations

import math

import numpy as np

import trueup as tu
from benchmarks._answers import select
from benchmarks._coverage_tally import LEVEL, Section, as_text
from benchmarks._runs import Case, Row
from benchmarks._vetting_pools import REPETITIONS_A_CASE, Pool, kept_rows, load_pool, pool_names, vet
from benchmarks._vetting_rivals import MEASURES, lure, oasis, value_of

__all__ = ["sampling"]

N_VETTED = 50
BATCH = 10
_OURS = "trueup"
_RIVALS = {"OASIS": oasis, "LURE": lure}


def sampling(quick: bool, repetitions: int | None = None) -> Section:
    """Errors of precision, recall, F and accuracy after 50 answers, two classes."""
    n_cases = math.ceil((repetitions or (5 if quick else 10)) / REPETITIONS_A_CASE)
    names = [name for name in pool_names(quick, most=1 if quick else 3) if load_pool(name).labels.n_classes == 2]
    found = kept_rows("sampling", run_sampling, [Case(name, k) for k in range(n_cases) for name in names], quick=quick)
    methods = [f"{name}, {given}" for given in ("no votes", "votes") for name in (_OURS, *_RIVALS)]
    rmse = {
        (method, measure): math.sqrt(np.mean([row["square"] for row in select(found, method=method, measure=measure)]))
        for method in methods
        for measure in MEASURES
    }
    undefined = {method: sum(row["undefined"] for row in select(found, method=method)) for method in methods}
    held = {
        method: [row["held"] for row in select(found, method=method)] for method in methods if method.startswith(_OURS)
    }
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
            f"Root of the mean squared error after {N_VETTED} answers: {len(names)} labelers of crowds with two "
            f"classes, {n_cases * REPETITIONS_A_CASE} repetitions",
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


def run_sampling(case: Case) -> list[Row]:
    """Some repetitions of one labeler."""
    pool = load_pool(case.world)
    items = pool.labels.items.tolist()
    code_of = {name: k for k, name in enumerate(pool.labels.classes.tolist())}
    predicted, truth = (np.array([code_of[of[item]] for item in items]) for of in (pool.predictions, pool.truth))
    silent, positive = _without_votes(pool), pool.labels.classes[1]
    rows: list[Row] = []

    def note(method: str, error: float, **more: bool) -> None:
        # An answer that is not defined is worth the middle of the scale.
        square = 0.25 if math.isnan(error) else error**2
        rows.append({"method": method, "measure": measure, "square": square, "undefined": math.isnan(error), **more})

    for measure in MEASURES:
        true = value_of(measure, predicted, truth)
        if math.isnan(true):
            continue
        sessions = {
            "no votes": silent.session(metric=measure, noise="majority", positive=positive),
            "votes": pool.session(metric=measure, positive=positive),
        }
        scores = {"no votes": np.full(len(truth), 0.5), "votes": sessions["votes"].pool.prior[:, 1]}
        for k in range(REPETITIONS_A_CASE):
            seed = case.seed * REPETITIONS_A_CASE + k
            for given, test in sessions.items():
                estimate = vet(test.restart(random_state=seed), pool.truth, N_VETTED, batch=BATCH).estimate()
                low, high = estimate.interval(LEVEL)
                note(f"{_OURS}, {given}", estimate.mean - true, held=bool(low - 1e-9 <= true <= high + 1e-9))
            for name, rival in _RIVALS.items():
                for given, score in scores.items():
                    rng = np.random.default_rng(seed)
                    values = rival(measure, predicted, score, lambda at: int(truth[at]), [N_VETTED], rng)
                    note(f"{name}, {given}", values[0] - true)
    return rows


def _without_votes(pool: Pool) -> Pool:
    """The same pool, where nobody voted but for one vote of each class: labels cannot be without any."""
    votes = np.full((pool.labels.n_items, 1), -1)
    votes[:2, 0] = 0, 1
    names = pool.labels.classes.tolist()
    items = pool.labels.items.tolist()
    matrix = np.array([[names[v] if v >= 0 else None for v in row] for row in votes], dtype=object)
    return Pool(
        pool.name,
        tu.Labels.from_matrix(matrix, missing=None, classes=names, items=items),
        pool.predictions,
        pool.truth,
    )
