"""Ratings: do intervals hold where votes come from the ordinal model, and does it predict real ratings better?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._answers import row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share
from benchmarks._data import load_crowd
from benchmarks._runs import Case, Figure, Row
from trueup.metrics import confusion_counts, get_metric
from trueup.noise import DawidSkene, NoiseModel, Ordinal
from trueup.noise.registry import split_votes

MODEL = "from the model"
EVENER = "class shares evener"
SHARES = {MODEL: 1.0, EVENER: 2.0}  # of the Dirichlet law of the class shares; the model expects 1
CROWDS = ("crowd-web", "crowd-adult")
QUANTITIES = ("mean score", "quadratic_kappa", "mae")
N_ITEMS, N_CLASSES, N_LABELERS = 300, 5, 5
MOST_SETS = {EVENER: 200, **dict.fromkeys(CROWDS, 10)}  # the other data sets are of the first world alone
FIRST_SEED = 18_500
FOLDS = 10
SAMPLING: dict[str, Any] = {"n_chains": 2, "n_warmup": 400, "n_draws": 1000}
RIVALS: dict[str, NoiseModel] = {
    "dawid-skene": DawidSkene(),
    "dawid-skene, pooled": DawidSkene(pooling="auto"),
    "ordinal": Ordinal(),
}


def run_ratings(case: Case) -> list[Row]:
    """The intervals of a simulated set, or how likely models make a tenth of the votes of a crowd."""
    if case.seed - FIRST_SEED >= MOST_SETS.get(case.world, np.inf):
        return []
    return _intervals(case) if case.world in SHARES else _heldout(case.world, case.seed)


def _intervals(case: Case) -> list[Row]:
    seed = case.seed
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(N_CLASSES, SHARES[case.world]))
    sim = tu.simulate.ratings(
        n_items=N_ITEMS, n_classes=N_CLASSES, n_labelers=N_LABELERS, prior=prior, random_state=rng
    )
    near = np.clip(sim.truth + rng.choice([-1, 0, 1], p=[0.2, 0.6, 0.2], size=N_ITEMS), 0, N_CLASSES - 1)
    options: dict[str, Any] = {"noise": "ordinal", "check_dependence": False, "random_state": seed, **SAMPLING}
    scores = tu.mean_score(sim.labels, **options)
    rows = [row_of("ordinal", float(sim.truth.mean()), scores.overall, quantity="mean score")]
    ev = tu.evaluate(near, sim.labels, metrics=QUANTITIES[1:], **options)
    counts = confusion_counts(sim.truth, near, N_CLASSES)
    for name in QUANTITIES[1:]:
        true = float(get_metric(name, list(range(N_CLASSES)))(counts))
        rows.append(row_of("ordinal", true, ev[name], quantity=name))
    return rows


def _heldout(crowd: str, seed: int) -> list[Row]:
    labels, _ = load_crowd(crowd)
    fold = split_votes(labels, n_folds=FOLDS, random_state=seed)[0]
    rows = []
    for name, model in RIVALS.items():
        votes = model.clone().fit(fold.rest).predict_votes(fold.rest, fold.item, fold.labeler)
        likelihood = np.log(np.maximum(votes[np.arange(len(fold.held)), fold.answer], 1e-12))
        rows.append({"answer": name, "score": float(likelihood.mean())})
    return rows


def summarise_ratings(rows: Sequence[Row]) -> str:
    """Coverage by quantity, and the mean log-likelihood of votes that a model was not told, by crowd."""
    text = _coverage(rows, MODEL)
    likelihoods = []
    for crowd in CROWDS:
        scores = {name: [row["score"] for row in select(rows, world=crowd, answer=name)] for name in RIVALS}
        n_splits = len(scores["ordinal"])
        if n_splits:
            likelihoods.append((crowd, str(n_splits), *(f"{np.mean(scores[name]):.4f}" for name in RIVALS)))
    if likelihoods:
        text += "\n\n" + as_text(("nats a held-out vote", "splits", *RIVALS), likelihoods)
    return f"{text}\n\n{_coverage(rows, EVENER)}".strip()


def _coverage(rows: Sequence[Row], world: str) -> str:
    lines = []
    for quantity in QUANTITIES:
        tally = tally_of(select(rows, world=world, quantity=quantity))
        if len(tally):
            lines.append((quantity, str(len(tally)), share(tally), f"{tally.width:.3f}", f"{tally.bias:+.4f}"))
    head = "votes from the model" if world == MODEL else world
    return as_text((head, "runs", "coverage %", "width", "bias"), lines) if lines else ""


WORLDS = (MODEL, EVENER, *CROWDS)
RATINGS_FIGURE = Figure(WORLDS, run_ratings, summarise_ratings, 500, 1, FIRST_SEED, (MODEL,))
