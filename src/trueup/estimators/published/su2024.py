"""J. K. Su, "On Truthing Issues in Supervised Classification", JMLR 25 (2024): the methods of Section 2.

MMSE testing (Algorithms 1, 2 and 4), estimated labels (Algorithm 3), and the baselines they are compared with. The
labelers' mean and median of Section 2.6.1 are common practice and stand in `practice`; `bayes` is this library's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_distribution,
    check_integer,
    check_number,
)
from trueup.estimators.counts import DrawnCounts, NormalCounts, PointCounts, normal_counts, two_class_counts
from trueup.estimators.problem import (
    Problem,
    Solution,
    class_posterior,
    draw_categories,
    draw_confusion,
    draw_successes,
    truth_sampler,
)
from trueup.exceptions import InvalidParameter
from trueup.metrics import confusion_counts
from trueup.posteriors import normal_ratio_mean, poisson_binomial_pmf

Algorithm = Literal["auto", "ratios", "sampling", "exact"]
_ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
_TOO_NARROW = "the operating point is taken as known, so intervals are too narrow; `method='bayes'` does not do so"


def mmse(
    problem: Problem,
    *,
    algorithm: Algorithm = "auto",
    n_draws: int | None = None,
    start: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 30,
    clip: float = 1e-3,
    mean: Literal["principal", "marsaglia"] = "principal",
    random_state: RandomState = None,
) -> Solution:
    """Estimate the operating point by iterated conditional means, then the counts as if it were known.

    Each step takes the classes' probabilities given the operating point (eqs. 10 and 25) and replaces it by the
    expected one. **The intervals are too narrow**: in Su's own simulation (Section 5.2.3) those of nominally 95%
    hold the true accuracy about three times in four. `bayes` gives the same point estimates with honest intervals.

    Parameters
    ----------
    algorithm : {"auto", "ratios", "sampling", "exact"}
        How the expected operating point is computed: "ratios" of normals (Algorithm 1; two classes), "sampling"
        (Algorithms 2 and 4), or "exact", all pairs of counts. "auto" is as in the paper.
    n_draws : int, optional. Draws of a sampling step; by default 5000 for two classes and 2500 × classes for more.
    start : array of shape (n_classes, n_classes), optional. The first P(prediction | truth); by default all equal.
    tol, max_iter, clip : stop when no entry moves by `tol`; keep entries within [clip, 1 − clip]
    mean : {"principal", "marsaglia"}
        The approximation of `trueup.posteriors.normal_ratio_mean`; the paper's is the second, which is about 1% off.
    """
    n_classes = problem.n_classes
    algorithm = check_choice(algorithm, _ALGORITHMS, name="algorithm")
    if algorithm == "auto":
        algorithm = "ratios" if n_classes == 2 else "sampling"
    if algorithm == "ratios" and n_classes != 2:
        raise InvalidParameter(
            f"algorithm 'ratios' is for two classes, got {n_classes}; use `algorithm='sampling'` or `algorithm='exact'`"
        )
    rng = as_generator(random_state)
    draws = (5000 if n_classes == 2 else 2500 * n_classes) if n_draws is None else n_draws
    check_integer(draws, name="n_draws", low=1)
    predictions = problem.predictions

    def step(confusion: Floats) -> Floats:
        chances = class_posterior(problem, confusion)
        if algorithm == "ratios":
            return _mean_by_ratios(normal_counts(chances[:, 1], predictions), mean)
        if algorithm == "exact":
            return _mean_exactly(chances, predictions)
        return _mean_of_draws(chances, predictions, draws, rng)

    trace, converged = iterate(step, n_classes, start=start, tol=tol, max_iter=max_iter, clip=clip)
    final = class_posterior(problem, trace[-1])
    truths = truth_sampler(problem, trace[-1])
    counts = (
        normal_counts(final[:, 1], predictions, truths)
        if n_classes == 2
        else DrawnCounts(draw_confusion(final, predictions, draws, rng), truths=truths)
    )
    notes: list[str] = [_TOO_NARROW]
    if not converged:
        notes.append(f"the operating point did not settle in {max_iter} iterations; raise max_iter or tol")
    return Solution(counts, trace[-1], trace, len(trace) - 1, converged, notes=tuple(notes))


def iterate(
    step: Callable[[Floats], Floats],
    n_classes: int,
    *,
    start: npt.ArrayLike | None,
    tol: float,
    max_iter: int,
    clip: float,
) -> tuple[Floats, bool]:
    """Repeat `step` on a confusion matrix until it moves by less than `tol`; the loop of Algorithms 1 to 4."""
    tol = check_number(tol, name="tol", low=0.0)
    clip = check_number(clip, name="clip", low=0.0, high=1 / n_classes)
    check_integer(max_iter, name="max_iter", low=0)
    even = np.full((n_classes, n_classes), 1 / n_classes)
    confusion = even if start is None else check_distribution(start, name="each row of start", n=n_classes)
    if confusion.shape != even.shape:
        raise InvalidParameter(f"start must have the shape {even.shape}, rows the truth, got {confusion.shape}")
    trace = [confusion]
    for _ in range(max_iter):
        new = step(trace[-1])
        # A class that cannot occur says nothing of its row, which stays.
        new = _clip_rows(np.where(np.isnan(new), trace[-1], new), clip)
        moved = float(np.abs(new - trace[-1]).max())
        trace.append(new)
        if moved < tol:
            return np.array(trace), True
    return np.array(trace), False


def _clip_rows(confusion: Floats, clip: float) -> Floats:
    """Entries within [clip, 1 − clip] and rows that sum to one (Algorithm 4, line 10)."""
    raised = np.clip(confusion, clip, 1 - clip)
    # What is above the clip shrinks in proportion, so that what is at the clip stays there.
    above = raised - clip
    total = above.sum(axis=1, keepdims=True)
    return np.asarray(clip + above * (1 - clip * len(confusion)) / np.where(total > 0, total, 1.0))


def _mean_by_ratios(counts: NormalCounts, mean: Literal["principal", "marsaglia"]) -> Floats:
    """E[K] from ratios of normals (Algorithm 1, eqs. 19 and 20, Table 16)."""
    positive, predicted = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    rates = []
    for truth in (1 - positive, positive):
        moments = counts.ratio_moments(truth * predicted, truth)
        empty = moments[2] <= 0 and moments[3] == 0
        rates.append(np.nan if empty else normal_ratio_mean(*moments, method=mean))
    false_alarm, detection = rates
    return np.array([[1 - false_alarm, false_alarm], [1 - detection, detection]])


def _mean_of_draws(chances: Floats, predictions: Codes, n: int, rng: np.random.Generator) -> Floats:
    """The mean of `n` draws of the empirical K, eq. 23 (Algorithms 2 and 4)."""
    if chances.shape[1] == 2:
        p, q = chances[predictions == 1, 1], chances[predictions == 0, 1]
        counts = two_class_counts(draw_successes(p, n, rng), draw_successes(q, n, rng), len(p), len(q))
    else:
        counts = draw_confusion(chances, predictions, n, rng)
    totals = counts.sum(axis=2, keepdims=True)
    drawn = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    defined = (totals > 0).sum(axis=0)
    return np.where(defined > 0, drawn.sum(axis=0) / np.maximum(defined, 1), np.nan)


def _mean_exactly(chances: Floats, predictions: Codes) -> Floats:
    """E[K] in place of draws: each entry is A/(A + B) with A and B independent Poisson-binomial counts."""
    n_classes = chances.shape[1]
    counted = predictions >= 0
    chances, predictions = chances[counted], predictions[counted]
    result = np.empty((n_classes, n_classes))
    for truth, predicted in np.ndindex(n_classes, n_classes):
        mine = predictions == predicted
        result[truth, predicted] = _mean_share(chances[mine, truth], chances[~mine, truth])
    return result


def _mean_share(a: Floats, b: Floats) -> float:
    """E[A/(A + B) | A + B > 0] for the numbers of successes A and B."""
    laws = [poisson_binomial_pmf(p) for p in (a, b)]
    count_a, count_b = (np.flatnonzero(law > 1e-14).astype(float) for law in laws)
    mass_a, mass_b = (law[law > 1e-14] / law[law > 1e-14].sum() for law in laws)
    total = np.add.outer(count_a, count_b)
    share = np.divide(count_a[:, None], total, out=np.zeros(total.shape), where=total > 0)
    defined = 1 - float(mass_a @ (total == 0) @ mass_b)
    return float(mass_a @ share @ mass_b) / defined if defined > 0 else np.nan


def estimated_labels(
    problem: Problem,
    *,
    start: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 30,
    clip: float = 1e-3,
    random_state: RandomState = None,
) -> Solution:
    """The most probable label of each item, given an operating point that is counted from such labels (Algorithm 3).

    It has no uncertainty, and often ends in a local optimum (Su 2024, Table 12). The parameters are those of `mmse`.
    """

    def step(confusion: Floats) -> Floats:
        counts = likeliest_labels(problem, confusion).counts
        total = counts.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0))

    trace, converged = iterate(step, problem.n_classes, start=start, tol=tol, max_iter=max_iter, clip=clip)
    notes = () if converged else (f"the estimated labels did not settle in {max_iter} iterations",)
    counts = likeliest_labels(problem, trace[-1])
    return Solution(counts, trace[-1], trace, len(trace) - 1, converged, notes=notes)


def likeliest_labels(problem: Problem, confusion: npt.ArrayLike | None = None) -> PointCounts:
    """Counts with each item's most probable class (eq. 22) as its truth; the first of equally probable ones."""
    truths = np.argmax(class_posterior(problem, confusion), axis=1)
    counted = problem.predictions >= 0
    counts = confusion_counts(truths[counted], problem.predictions[counted], problem.n_classes)
    return PointCounts(counts, truths)


def no_predictions(
    problem: Problem, *, estimated: bool = False, n_draws: int = 5000, random_state: RandomState = None
) -> Solution:
    """The truth from the votes alone, p(y | z), eq. 21 (Su 2024, Section 2.6.1, third and fourth approach).

    Biased towards chance: what the predictions say about the truth is left out.

    Parameters
    ----------
    estimated : bool. Take the most probable labels as true (fourth approach), without uncertainty.
    n_draws : int. Draws, for more than two classes.
    """
    if estimated:
        return Solution(likeliest_labels(problem))
    chances = class_posterior(problem)
    truths = partial(draw_categories, chances)
    if problem.n_classes == 2:
        return Solution(normal_counts(chances[:, 1], problem.predictions, truths))
    draws = draw_confusion(chances, problem.predictions, n_draws, as_generator(random_state))
    return Solution(DrawnCounts(draws, truths=truths))


def prior_average(
    problem: Problem, *, n_grid: int = 40, n_draws: int = 16000, random_state: RandomState = None
) -> Solution:
    """The counts averaged over the *prior* of the operating point (Su 2024, Section 2.6.2, "fully Bayesian").

    A baseline: an operating point that the data rule out counts as much as one they support. `bayes` averages over
    the posterior.

    Parameters
    ----------
    n_grid : int. Two classes: points along each axis of an even grid over the unit square.
    n_draws : int
        Two classes: draws, shared out over the grid. More: matrices K with uniform rows, one draw of the counts each.
    """
    rng = as_generator(random_state)
    check_integer(n_draws, name="n_draws", low=1)
    if problem.n_classes > 2:
        confusions = rng.dirichlet(np.ones(problem.n_classes), size=(n_draws, problem.n_classes))
    else:
        axis = (np.arange(check_integer(n_grid, name="n_grid", low=1)) + 0.5) / n_grid
        d, f = np.meshgrid(axis, axis, indexing="ij")
        confusions = np.stack([1 - f, f, 1 - d, d], axis=-1).reshape(-1, 2, 2)
    each = max(n_draws // len(confusions), 1)
    draws = [draw_confusion(class_posterior(problem, k), problem.predictions, each, rng) for k in confusions]
    return Solution(DrawnCounts(np.concatenate(draws), truths=truth_sampler(problem, confusions)))


def ideal(problem: Problem, *, truth: npt.ArrayLike, random_state: RandomState = None) -> Solution:
    """The metrics with the truth known, as codes of all items with a prediction; intervals have no width."""
    codes = np.asarray(truth)
    counted = problem.predictions >= 0
    if codes.shape != (problem.n_items,):
        raise InvalidParameter(f"truth must be {problem.n_items} codes, one for each item, got shape {codes.shape}")
    counts = confusion_counts(codes[counted], problem.predictions[counted], problem.n_classes)
    return Solution(DrawnCounts(counts[None], truths=partial(_same_truth, codes)))


def _same_truth(codes: Codes, n: int, _: np.random.Generator) -> Codes:
    return np.broadcast_to(codes, (n, len(codes)))
