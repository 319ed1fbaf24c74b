"""How a metric is estimated after some vettings: by name, from the pool and the progress to draws for every system."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.active.influence import count_slopes, expected_counts
from trueup.active.learned import learned_probabilities
from trueup.active.pool import Pool
from trueup.active.rectified import (
    Recalibration,
    draw_rectified,
    drawn_items,
    known_classes,
    recalibrated_probabilities,
    recalibration_of,
    used_by_metric,
    weighted_answers,
)
from trueup.active.strategy import effective_number
from trueup.answers.setup import choose_noise
from trueup.data.predictions import AlignedPredictions
from trueup.estimators.system_features import system_prior
from trueup.estimators.system_values import system_counts, system_values
from trueup.estimators.truth import draw_truths
from trueup.exceptions import InvalidParameter, TrueupWarning
from trueup.metrics import Metric
from trueup.noise import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate, PointEstimate
from trueup.sessions.log import Progress

__all__ = [
    "ESTIMATORS",
    "Estimated",
    "as_estimate",
    "believed",
    "check_design_based",
    "check_estimator",
    "draw_design_based",
    "estimate_by",
]

_NO_WARRANT = "The items were not drawn by chance: the interval has no warrant."


@dataclass(frozen=True, eq=False)
class Estimated:
    """The metric of every system, shape (n_draws, n_systems); and sentences a user should read.

    A single row is a number without a spread.
    """

    values: Floats
    notes: tuple[str, ...] = ()


def as_estimate(values: Floats, bounds: tuple[float, float], name: str) -> Estimate:
    """One number without a spread, or draws of a distribution."""
    if len(values) == 1:
        return PointEstimate(float(values[0]), bounds=bounds, name=name)
    return DrawnEstimate(values, bounds=bounds, name=name)


@dataclass(frozen=True, eq=False)
class Request:
    """What an estimator is given."""

    pool: Pool
    progress: Progress
    noise: str | NoiseModel
    target: str
    n_draws: int
    rng: np.random.Generator
    category: int | None = None  # one only, in place of the mean over all


def _rectified(request: Request) -> Estimated:
    pool, progress = request.pool, request.progress
    answers = weighted_answers(pool, progress)
    notes = []
    if not answers.by_chance:
        notes.append(
            "Most answers are on items that were not drawn by chance: the interval has no warrant; ask with a strategy "
            'that draws, such as "propensity" or "random".'
        )
    elif len(answers.positions) < 10:
        notes.append(f"{len(answers.positions)} answers correct the model so far: the interval rests on it.")
    model = recalibration_of(pool, used_by_metric(pool))
    truths = draw_rectified(model, pool, progress, n_draws=request.n_draws, rng=request.rng)
    return Estimated(_values(request, truths), tuple(notes))


def _bayes(request: Request) -> Estimated:
    pool = request.pool
    labels = pool.labels.with_gold(_vetted(request)) if request.progress.vetted.any() else pool.labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        choice = choose_noise(request.noise, labels)
        draws = draw_truths(
            labels,
            choice.model,
            item_prior=system_prior(pool.aligned, pool.n_classes, used=used_by_metric(pool)),
            n_draws=request.n_draws,
            random_state=request.rng,
        )
    notes = ("The noise model is believed: nothing corrects it where labelers err together.", *draws.notes)
    return Estimated(_values(request, draws.truths), notes)


def learned_of_systems(pool: Pool, progress: Progress) -> list[Floats]:
    """P(positive) of every item as each system's scores teach it, by equation 13 of Nguyen et al. (2018)."""
    assert pool.aligned.scores is not None
    known = known_classes(pool, progress)
    noisy = pool.noisy == pool.positive
    return [
        learned_probabilities(noisy, scores, known >= 0, known == pool.positive, categories=pool.categories)
        for scores in pool.aligned.scores
    ]


def believed(name: str, model: Recalibration, pool: Pool, progress: Progress) -> Floats:
    """P(class) of every item as a strategy sees it: what the estimator of this name believes, if it has beliefs.

    With several systems the learned estimator believes something else for each; the strategy sees the mean.
    """
    if name != "learned":
        return recalibrated_probabilities(model, pool, progress)
    positive = np.mean(learned_of_systems(pool, progress), axis=0)
    table = np.empty((pool.n_items, 2))
    table[:, pool.positive], table[:, 1 - pool.positive] = positive, 1 - positive
    return table


def _learned(request: Request) -> Estimated:
    pool, progress = request.pool, request.progress
    check_estimator("learned", pool)
    columns = []
    for system, p in enumerate(learned_of_systems(pool, progress)):
        drawn = request.rng.random((min(request.n_draws, 400), pool.n_items)) < p
        truths = np.where(drawn, pool.positive, 1 - pool.positive)
        columns.append(_values(request, truths)[:, system])
    notes = ("The learned estimator takes the vetted items for a random sample, and its probabilities for known.",)
    return Estimated(np.stack(columns, axis=1), notes)


def _naive(request: Request) -> Estimated:
    known = known_classes(request.pool, request.progress)
    truth = np.where(known >= 0, known, request.pool.noisy)
    return Estimated(_values(request, truth[None]), ("The noisy labels are taken for true where nobody looked.",))


def _vetted_only(request: Request) -> Estimated:
    pool = request.pool
    answers = weighted_answers(pool, request.progress)
    n = len(answers.positions)
    if n < 2:
        raise InvalidParameter(f'⟨estimator="vetted-only"⟩ needs some answers, got {n}; tell some first')
    notes = () if answers.by_chance else (_NO_WARRANT,)
    mine = _part(pool.aligned, answers.positions)
    if pool.metric.needs == "counts" and pool.categories is None:
        assert mine.codes is not None
        weights = answers.weights * (effective_number(answers.weights) / answers.weights.sum())
        counts = system_counts(
            answers.truth[None], mine.codes, pool.n_classes, weights=weights[None].astype(np.float32)
        )
        return Estimated(_dirichlet_values(counts[0], pool.metric, request), notes)
    weights = request.rng.standard_exponential((request.n_draws, n)) * answers.weights
    truths = np.broadcast_to(answers.truth, weights.shape)
    return Estimated(_values(request, truths, answers.positions, weights.astype(np.float32)), notes)


def _ppi(request: Request) -> Estimated:
    return _design_based(request, tuned=True)


def _lure(request: Request) -> Estimated:
    return _design_based(request, tuned=False)


def _design_based(request: Request, *, tuned: bool) -> Estimated:
    values, by_chance = draw_design_based(
        request.pool,
        request.progress,
        tuned=tuned,
        target=request.target,
        n_draws=request.n_draws,
        rng=request.rng,
    )
    return Estimated(values, () if by_chance else (_NO_WARRANT,))


def _dirichlet_values(counts: Floats, metric: Metric, request: Request) -> Floats:
    """Draws given counts (n_systems, C, C), half an item right and half a wrong one added: Jeffreys' posterior."""
    n_classes = counts.shape[1]
    made_up = np.full((n_classes, n_classes), 0.5 / (n_classes * (n_classes - 1)))
    made_up[np.diag_indices(n_classes)] = 0.5 / n_classes
    gamma = request.rng.standard_gamma(counts + made_up, size=(request.n_draws, *counts.shape))
    return metric(gamma)


def _values(
    request: Request,
    truths: Codes,
    positions: npt.NDArray[np.int64] | None = None,
    weights: npt.NDArray[np.float32] | None = None,
) -> Floats:
    """The metric of every system on every draw; with categories, the mean over those where it is defined."""
    pool = request.pool
    at = np.arange(pool.n_items) if positions is None else positions
    groups = [np.arange(len(at))]
    if pool.categories is not None:
        order = np.argsort(pool.categories[at], kind="stable")
        edges = np.searchsorted(pool.categories[at][order], np.arange(pool.n_categories + 1))
        groups = [order[a:b] for a, b in pairwise(edges)]
        groups = [g for k, g in enumerate(groups) if len(g) and request.category in (None, k)]
        if not groups:
            return np.full((len(truths), pool.n_systems), np.nan)
    parts = [
        system_values(
            truths[:, group],
            _part(pool.aligned, at[group]),
            pool.metric,
            classes=pool.labels.classes,
            positive=pool.positive,
            target="population" if request.target == "population" else "sample",
            random_state=request.rng,
            weights=None if weights is None else weights[:, group],
        )
        for group in groups
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that no category defines is nan
        return np.asarray(np.nanmean(parts, axis=0))


def _part(aligned: AlignedPredictions, positions: npt.NDArray[np.int64]) -> AlignedPredictions:
    """The outputs for some items."""
    return replace(
        aligned,
        codes=None if aligned.codes is None else aligned.codes[:, positions],
        scores=None if aligned.scores is None else aligned.scores[:, positions],
        probabilities=None if aligned.probabilities is None else aligned.probabilities[:, positions],
    )


def _vetted(request: Request) -> dict[object, object]:
    labels = request.pool.labels
    at = np.flatnonzero(request.progress.vetted)
    classes = labels.classes[request.progress.truth[at]].tolist()
    return dict(zip(labels.items[at].tolist(), classes, strict=True))


ESTIMATORS: dict[str, Callable[[Request], Estimated]] = {
    "rectified": _rectified,
    "bayes": _bayes,
    "learned": _learned,
    "naive": _naive,
    "vetted-only": _vetted_only,
    "ppi++": _ppi,
    "lure": _lure,
}


def check_estimator(name: str, pool: Pool) -> None:
    """Refuse an estimator that cannot work on the pool, before anyone is paid to look at it."""
    if name in ("ppi++", "lure"):
        check_design_based(name, pool)
    if name != "learned" or (pool.n_classes == 2 and pool.aligned.scores is not None):
        return
    outputs = "no scores" if pool.aligned.scores is None else "scores"
    raise InvalidParameter(
        f'⟨estimator="learned"⟩ is for two classes and systems that give scores, got {pool.n_classes} classes and '
        f'{outputs}; use "rectified"'
    )


def estimate_by(
    name: str,
    pool: Pool,
    progress: Progress,
    *,
    noise: str | NoiseModel,
    target: str,
    n_draws: int,
    rng: np.random.Generator,
    category: int | None = None,
) -> Estimated:
    """The metric of every system by the estimator of this name; where every item is known, the metric itself."""
    request = Request(pool, progress, noise, target, n_draws, rng, category)
    known = known_classes(pool, progress)
    if target == "sample" and known.min() >= 0:
        return Estimated(np.repeat(_values(request, known[None]), n_draws, axis=0))
    found = ESTIMATORS[name](request)
    return Estimated(found.values, (*found.notes, *_caveats(request, found.notes)))


def _caveats(request: Request, notes: tuple[str, ...]) -> list[str]:
    """What of the way the answers came in makes an estimate less sure than it looks."""
    progress, found = request.progress, []
    chosen = progress.vetted & (progress.draw > 0) & np.isnan(progress.propensity)
    if chosen.any() and not any("no warrant" in note for note in notes):
        found.append(
            f"{int(chosen.sum())} items were chosen and not drawn by chance: an interval that rests on them has no "
            "warrant."
        )
    told = progress.vetted & (progress.draw == 0)
    if told.any():
        found.append(
            f"{int(told.sum())} items were told without being asked: their chance to be drawn is unknown, so they "
            "count for themselves and correct nothing else."
        )
    if progress.passed.any():
        n_passed = int(progress.passed.sum())
        found.append(f"{n_passed} items were passed: if these are the hard ones, the estimate is too good.")
    return found


_FEWEST = 2


def check_design_based(name: str, pool: Pool) -> None:
    """Refuse what the published estimators cannot do, before anyone is paid to look."""
    if pool.metric.needs != "counts" or pool.categories is not None:
        got = "categories" if pool.metric.needs == "counts" else f"metric {pool.metric.name!r}"
        raise InvalidParameter(
            f'⟨estimator="{name}"⟩ is for metrics of the confusion counts of the whole pool, got {got}; use "rectified"'
        )


def draw_design_based(
    pool: Pool, progress: Progress, *, tuned: bool, target: str, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    """Draws of the metric of every system, shape (n_draws, n_systems), from Student's law around the estimate.

    Parameters
    ----------
    tuned : bool
        Whether the noise model is used, with the weight of least variance (PPI++), or not at all (LURE).

    Returns
    -------
    draws : array of shape (n_draws, n_systems)
    by_chance : bool
        Whether the items were drawn by chance; if not, all answers count alike and nothing warrants the interval.
    """
    metric = pool.metric
    assert pool.aligned.codes is not None
    drawn, weights, n_pool = drawn_items(pool, progress)
    answers = weighted_answers(pool, progress)
    if not answers.by_chance:
        drawn, weights, n_pool = answers.positions, answers.weights, pool.n_items
    n = len(drawn)
    if n < _FEWEST:
        raise InvalidParameter(f"at least {_FEWEST} answers are needed for this estimator, got {n}; tell more first")
    known = known_classes(pool, progress)
    aside = known >= 0
    aside[drawn] = False
    found = [_system(metric, pool, codes, known, drawn, weights, aside, tuned=tuned) for codes in pool.aligned.codes]
    values, residuals = np.array([value for value, _ in found]), np.stack([part for _, part in found])
    # Those that were looked at have no uncertainty on the sample; the others are what the drawn ones stand for.
    unknown = (n_pool - n) / n_pool if target == "sample" else 1.0
    normal = rng.standard_normal((n_draws, n)) @ residuals.T * np.sqrt(unknown / (n * (n - 1)))
    student = normal * np.sqrt((n - 1) / rng.chisquare(n - 1, size=(n_draws, 1)))
    low, high = metric.bounds
    return np.clip(values + student, low, high), answers.by_chance


def _system(
    metric: Metric,
    pool: Pool,
    codes: Codes,
    known: Codes,
    drawn: npt.NDArray[np.int64],
    weights: Floats,
    aside: npt.NDArray[np.bool_],
    *,
    tuned: bool,
) -> tuple[float, Floats]:
    """The metric of one system and the pull of each drawn item on it, of mean zero.

    `aside` are the items that are known and were not drawn: they count for themselves.
    """
    given, n_classes = codes >= 0, pool.n_classes
    known_counts = np.zeros((n_classes, n_classes))
    np.add.at(known_counts, (known[aside & given], codes[aside & given]), 1.0)
    open_and_given = ~aside & given
    modelled = expected_counts(pool.prior[open_and_given], codes[open_and_given])
    mine = np.flatnonzero(given[drawn])
    seen = np.zeros((len(drawn), n_classes, n_classes))
    expected = np.zeros_like(seen)
    seen[mine, known[drawn[mine]], codes[drawn[mine]]] = 1.0
    expected[mine, :, codes[drawn[mine]]] = pool.prior[drawn[mine]]
    each = weights * float((~aside).sum())  # what one drawn item stands for, times their number
    weight, pull_seen, pull_expected = 0.0, np.zeros(len(drawn)), np.zeros(len(drawn))
    counts = known_counts
    for _ in range(3 if tuned else 1):
        rest = np.einsum("n,nyp->yp", each, seen - weight * expected) / len(drawn)
        counts = np.maximum(known_counts + weight * modelled + rest, 0.0)
        slopes = count_slopes(metric, counts)
        pull_seen = each * np.einsum("yp,nyp->n", slopes, seen)
        pull_expected = each * np.einsum("yp,nyp->n", slopes, expected)
        if tuned:
            weight = _best_weight(pull_seen, pull_expected)
    pull = pull_seen - weight * pull_expected
    return float(metric(counts)), pull - pull.mean()


def _best_weight(a: Floats, f: Floats) -> float:
    """The weight of least variance of a − λf, between nothing and all of the model."""
    spread = float(np.var(f))
    return float(np.clip(np.mean((a - a.mean()) * (f - f.mean())) / spread, 0.0, 1.0)) if spread > 0 else 0.0
