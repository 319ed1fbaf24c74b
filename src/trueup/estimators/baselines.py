"""What the paper compares with: no use of the predictions, an average over the prior, and the truth itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, as_generator, check_integer
from trueup.estimators.bayes_known import draw_positives
from trueup.estimators.estimated_labels import likeliest_labels
from trueup.estimators.lattice import two_class_counts
from trueup.estimators.normal import normal_counts
from trueup.estimators.operating_point import as_confusion, columns, tilts
from trueup.estimators.posterior import DrawnCounts
from trueup.estimators.problem import Codes, Problem, Solution, class_posterior
from trueup.estimators.sampling import draw_categories, draw_confusion, truth_sampler
from trueup.exceptions import InvalidParameter
from trueup.metrics import confusion_counts

__all__ = ["ideal", "no_predictions", "prior_average"]


def no_predictions(
    problem: Problem, *, estimated: bool = False, n_draws: int = 5000, random_state: RandomState = None
) -> Solution:
    """The truth from the votes alone, p(y | z), eq. 21 (Su 2024, Section 2.6.1, third and fourth approach).

    Biased towards chance: what the predictions say about the truth is left out.

    Parameters
    ----------
    problem : Problem
    estimated : bool
        Take the most probable labels as true (fourth approach), without uncertainty.
    n_draws : int
        Draws, for more than two classes.
    random_state : int, Generator or None

    Returns
    -------
    Solution
        With `NormalCounts`, `DrawnCounts` (more than two classes) or `PointCounts` (estimated).
    """
    if estimated:
        return Solution(likeliest_labels(problem))
    chances = class_posterior(problem)

    def truths(n: int, generator: np.random.Generator) -> Codes:
        return draw_categories(chances, n, generator)

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
    problem : Problem
    n_grid : int
        Two classes: points along each axis of an even grid over the unit square.
    n_draws : int
        Two classes: draws, shared out over the grid. More: matrices K with uniform rows, one draw of the counts each.
    random_state : int, Generator or None

    Returns
    -------
    Solution
        With `DrawnCounts`.
    """
    rng = as_generator(random_state)
    check_integer(n_draws, name="n_draws", low=1)
    if problem.n_classes > 2:
        confusions = rng.dirichlet(np.ones(problem.n_classes), size=(n_draws, problem.n_classes))
        draws = [draw_confusion(class_posterior(problem, k), problem.predictions, 1, rng)[0] for k in confusions]
        return Solution(DrawnCounts(np.array(draws), truths=truth_sampler(problem, confusions)))
    axis = (np.arange(check_integer(n_grid, name="n_grid", low=1)) + 0.5) / n_grid
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.repeat(grid, max(n_draws // len(grid), 1), axis=0)
    both = columns(problem)
    v, u = (draw_positives(column, tilt, rng) for column, tilt in zip(both, tilts(points), strict=True))
    counts = two_class_counts(u, v, both[1].n, both[0].n)
    return Solution(DrawnCounts(counts, truths=truth_sampler(problem, as_confusion(grid[:, 0], grid[:, 1]))))


def ideal(problem: Problem, *, truth: npt.ArrayLike, random_state: RandomState = None) -> Solution:
    """The metrics with the truth known.

    Parameters
    ----------
    problem : Problem
    truth : integer array of shape (n_items,)
        The class of each item; needed for those with a prediction.
    random_state
        Not used.

    Returns
    -------
    Solution
        With `DrawnCounts` of a single draw: intervals have no width.
    """
    codes = np.asarray(truth)
    counted = problem.predictions >= 0
    if codes.shape != (problem.n_items,):
        raise InvalidParameter(f"truth must be {problem.n_items} codes, one for each item, got shape {codes.shape}")
    counts = confusion_counts(codes[counted], problem.predictions[counted], problem.n_classes)
    return Solution(DrawnCounts(counts[None], truths=lambda n, _: np.broadcast_to(codes, (n, len(codes)))))
