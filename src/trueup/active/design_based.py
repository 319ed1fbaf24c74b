r"""The estimates of sampling theory, as published: LURE, and PPI++ with the noise model as the predictor.

Let :math:`a_i` be what item i adds to the confusion counts of a system, one cell, and :math:`f_i` what the noise model
expects it to add. With weights :math:`w_m` that undo the choice of the items (`weights.lure_weights`) the mean is

.. math:: \hat\mu_\lambda = \lambda \frac1N \sum_i f_i + \frac1n \sum_m w_m (a_m - \lambda f_m),

for any :math:`\lambda`, without bias however wrong the model is. :math:`\lambda = 0` is LURE (Farquhar, Gal and
Rainforth 2021; Kossen et al. 2021), and the :math:`\lambda` of least variance is PPI++ (Angelopoulos, Duchi and Zrnic
2023; Zrnic and Candès 2024 for items drawn with unequal chances). A metric is that of the estimated counts, and its
variance comes from its slopes there. The interval is Student's, so few items give a wide one; it is for metrics of
counts only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup.active.influence import count_slopes, expected_counts
from trueup.active.log import Progress
from trueup.active.pool import Pool
from trueup.active.rectified import drawn_items, known_classes, weighted_answers
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric

__all__ = ["check_design_based", "draw_design_based"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]
_FEWEST = 2


def check_design_based(name: str, pool: Pool) -> None:
    """Refuse what the published estimators cannot do, before anyone is paid to look."""
    if not isinstance(pool.metric, Metric) or pool.categories is not None:
        got = "categories" if isinstance(pool.metric, Metric) else f"metric {pool.metric.name!r}"
        raise InvalidParameter(
            f'estimator="{name}" is for metrics of the confusion counts of the whole pool, got {got}; use "rectified"'
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
    assert isinstance(metric, Metric)
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
