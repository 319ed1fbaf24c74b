"""What an evaluation method sees: arrays, never labelers; what it returns; and the draws that several methods share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_distribution, preview
from trueup.estimators.counts import TruthSampler
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import confusion_counts
from trueup.posteriors import poisson_binomial_pmf

if TYPE_CHECKING:
    from trueup.estimators.counts import CountsPosterior


TINY = 1e-300  # what a probability of zero counts as under a logarithm


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Problem:
    """Predictions, and what the votes say about the truth of each item.

    Parameters
    ----------
    predictions : integer array of shape (n_items,)
        The predicted class of each item; -1 if there is none, and then the item does not count in metrics.
    log_likelihood : array of shape (n_items, n_classes)
        Log p(votes of the item | class), up to a constant for each item; -inf for an impossible class.
    prior : array of shape (n_classes,). P(class).
    gold : integer array of shape (n_items,), optional
        The known class of each item, -1 where unknown. A known truth enters every method as it is.

    Examples
    --------
    >>> problem = Problem([1, 0], np.log([[0.2, 0.8], [0.9, 0.1]]), [0.5, 0.5])
    >>> class_posterior(problem).round(2).tolist()
    [[0.2, 0.8], [0.9, 0.1]]
    """

    predictions: Codes
    log_likelihood: Floats
    prior: Floats
    gold: Codes

    def __init__(
        self,
        predictions: npt.ArrayLike,
        log_likelihood: npt.ArrayLike,
        prior: npt.ArrayLike,
        gold: npt.ArrayLike | None = None,
    ) -> None:
        table = np.asarray(log_likelihood, dtype=float)
        if table.ndim != 2 or table.shape[1] < 2:
            raise InvalidParameter(f"log_likelihood must have shape (n_items, n_classes ≥ 2), got {table.shape}")
        impossible = np.flatnonzero(~np.isfinite(table.max(axis=1)))  # nan if any is nan
        if len(impossible):
            raise InvalidLabels(
                "the votes of an item must be possible under some class, got log-likelihoods "
                f"{preview(table[impossible[0]])} for item {impossible[0]}; keep all probabilities of the noise model "
                "above 0"
            )
        n, n_classes = table.shape
        fields: dict[str, npt.NDArray[Any]] = {
            "predictions": check_codes(predictions, n, n_classes),
            "log_likelihood": table,
            "prior": check_distribution(prior, name="prior", n=n_classes),
            "gold": np.full(n, -1, dtype=np.int8) if gold is None else check_codes(gold, n, n_classes, "gold"),
        }
        for name, value in fields.items():
            view = value.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @property
    def n_items(self) -> int:
        """Number of items, with a prediction or without."""
        return len(self.predictions)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_likelihood.shape[1])

    @property
    def n_predicted(self) -> int:
        """Number of items with a prediction: those that metrics are about."""
        return int((self.predictions >= 0).sum())

    def __repr__(self) -> str:
        given = int((self.gold >= 0).sum())
        return f"Problem({self.n_predicted} predictions, {self.n_items} items, {self.n_classes} classes, {given} known)"


def check_codes(values: npt.ArrayLike, n: int, n_classes: int, name: str = "predictions") -> Codes:
    """Codes of classes, -1 for none; one sentence if they are none."""
    codes = np.asarray(values)
    error = InvalidPredictions if name == "predictions" else InvalidLabels
    if codes.shape != (n,) or not (np.issubdtype(codes.dtype, np.integer) or not codes.size):
        raise error(f"{name} must be {n} integer codes, one for each item, got {codes.dtype} of shape {codes.shape}")
    if codes.size and (int(codes.min()) < -1 or int(codes.max()) >= n_classes):
        bad = codes[(codes < -1) | (codes >= n_classes)]
        raise error(f"{name} must lie between 0 and {n_classes - 1}, or be -1 for none, got {preview(bad)}")
    return codes if codes.size else codes.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Solution:
    """What a method returns: the posterior of the confusion counts, and how it was found.

    Parameters
    ----------
    counts : CountsPosterior. The answer; a metric of it is an `Estimate`.
    confusion : array of shape (n_classes, n_classes), optional
        The method's estimate of P(prediction | truth), rows the truth (the operating point).
    trace : array of shape (n_iter + 1, n_classes, n_classes), optional. The estimates of an iterative method.
    diagnostics : mapping. Numbers that tell how far the computation can be trusted, e.g. ``{"r_hat": 1.01}``.
    notes : tuple of str. Sentences a user should read.
    truth : array of shape (n_items, n_classes), optional
        P(class) of each item given votes, predictions and all that was drawn with them.
    """

    counts: CountsPosterior
    confusion: Floats | None = None
    trace: Floats | None = None
    n_iter: int = 0
    converged: bool = True
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    truth: Floats | None = None

    @property
    def operating_point(self) -> tuple[float, float]:
        """(p_D, p_FA), the chances to predict class 1 when the truth is 1 and when it is 0; two classes only."""
        if self.confusion is None or len(self.confusion) != 2:
            raise InvalidParameter("operating_point needs two classes and a method that estimates it; see confusion")
        return float(self.confusion[1, 1]), float(self.confusion[0, 1])

    @property
    def operating_points(self) -> Floats:
        """The trace as rows (p_D, p_FA); two classes only."""
        if self.trace is None or self.trace.shape[-1] != 2:
            raise InvalidParameter("operating_points needs two classes and an iterative method; see trace")
        return np.stack([self.trace[:, 1, 1], self.trace[:, 0, 1]], axis=1)


def class_posterior(problem: Problem, confusion: npt.ArrayLike | None = None) -> Floats:
    """P(class | prediction, votes) of each item (Su 2024, eqs. 10 and 25), shape (n_items, n_classes).

    `confusion` is P(prediction | truth), rows the truth. Without it predictions say nothing: p(y | z), eq. 21.
    """
    joint = problem.log_likelihood + np.log(np.maximum(problem.prior, TINY))
    if confusion is not None:
        evidence = np.log(np.maximum(np.asarray(confusion, dtype=float), TINY)).T
        # The appended row of zeros is what prediction -1 picks: no evidence.
        joint += np.vstack([evidence, np.zeros(problem.n_classes)])[problem.predictions]
    posterior = np.asarray(softmax(joint, axis=1))
    given = np.flatnonzero(problem.gold >= 0)
    posterior[given] = 0.0
    posterior[given, problem.gold[given]] = 1.0
    return posterior


_HELD = 1 << 22  # numbers held at once
_MOST_TRUTHS = 1 << 28  # items × draws × classes from which counts are drawn from their normal limit


def draw_categories(chances: Floats, n: int, rng: np.random.Generator) -> Codes:
    """`n` draws of a class for each row of `chances` (n_items, n_classes); shape (n, n_items)."""
    n_items, n_classes = chances.shape
    upto = np.cumsum(chances, axis=1)
    upto /= upto[:, -1:]  # so that rounding leaves no remainder
    kind = np.int8 if n_classes < 128 else np.int32
    codes = np.zeros((n, n_items), dtype=kind)
    rows = max(_HELD // max(n_items, 1), 1)
    for start in range(0, n, rows):
        block = codes[start : start + rows]
        u = rng.random(block.shape)
        for c in range(n_classes - 1):
            block += u >= upto[:, c]
    return codes


def draw_confusion(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the confusion counts; items without a prediction (-1) are left out."""
    n_classes = chances.shape[1]
    counted = predictions >= 0
    chances, predictions = chances[counted], predictions[counted]
    counts = np.zeros((n, n_classes, n_classes))
    if n * chances.size > _MOST_TRUTHS:  # from their normal limit
        for predicted in range(n_classes):
            mine = chances[predictions == predicted]
            mean = mine.sum(axis=0)
            draws = mean + rng.standard_normal((n, n_classes)) @ covariance_root(np.diag(mean) - mine.T @ mine)
            kept = np.maximum(draws, 0.0)
            sums = kept.sum(axis=1, keepdims=True)
            counts[:, :, predicted] = kept * np.divide(float(len(mine)), sums, out=np.zeros_like(sums), where=sums > 0)
        return counts
    rows = max(_HELD // max(len(predictions), 1), 1)
    for start in range(0, n, rows):
        some = min(rows, n - start)
        counts[start : start + some] = confusion_counts(draw_categories(chances, some, rng), predictions, n_classes)
    return counts


def covariance_root(covariance: Floats) -> Floats:
    """A matrix R with RᵀR = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


def draw_successes(chances: Floats, n: int, rng: np.random.Generator) -> Floats:
    """`n` draws of the number of successes in independent trials: exact, or normal for more than 65536 trials."""
    if len(chances) <= (1 << 16):  # trials whose exact law is worth computing
        upto = np.cumsum(poisson_binomial_pmf(chances))
        return np.minimum(np.searchsorted(upto, rng.random(n), side="right"), len(chances)).astype(float)
    mean, sd = chances.sum(), np.sqrt((chances * (1 - chances)).sum())
    return np.clip(np.rint(rng.normal(mean, sd, n)), 0, len(chances))


def truth_sampler(problem: Problem, confusions: npt.ArrayLike) -> TruthSampler:
    """A function, which can be pickled, that draws the truth of all items: first the operating point, then classes."""
    points = np.asarray(confusions, dtype=float).reshape(-1, problem.n_classes, problem.n_classes)
    return partial(_draw_truths_at, problem, points)


def _draw_truths_at(problem: Problem, points: Floats, n: int, rng: np.random.Generator) -> Codes:
    chosen = rng.choice(len(points), size=n)
    codes = np.empty((n, problem.n_items), dtype=np.int8 if problem.n_classes < 128 else np.int32)
    for point in np.unique(chosen):
        rows = np.flatnonzero(chosen == point)
        codes[rows] = draw_categories(class_posterior(problem, points[point]), len(rows), rng)
    return codes
