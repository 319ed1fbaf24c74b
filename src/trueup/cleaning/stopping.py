"""What cleaning is worth: of the best label, for a budget, and against another vote."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_distribution, check_number
from trueup.exceptions import InvalidParameter
from trueup.posteriors import Estimate
from trueup.posteriors.continuous import normal_estimate


def shrunk_improvement(improvement: npt.ArrayLike, standard_error: npt.ArrayLike) -> tuple[Floats, Floats]:
    r"""Improvements drawn together towards their mean, because the largest of many estimates is too large.

    .. math:: \tau^2 = \max\Bigl(0, \operatorname{var}(d) - \overline{s^2}\Bigr), \qquad
       B_i = \frac{s_i^2}{\tau^2 + s_i^2}, \qquad
       \tilde d_i = \bar d + (1 - B_i)(d_i - \bar d)

    .. math:: \tilde s_i^2 = s_i^2\Bigl(1 - \tfrac{n-1}{n} B_i\Bigr)
       + \frac{2 B_i^2}{n-3}\,\frac{\overline{s^2} + \tau^2}{s_i^2 + \tau^2}\,(d_i - \bar d)^2

    the posterior mean and variance under a normal prior whose mean and variance are those of the improvements
    themselves (empirical Bayes); the terms in n are there because both are estimated [1]_. The best of these is
    a fair guess of what the best is worth; the best of the raw ones is not. Improvements that are 0 without error stay
    as they are and tell nothing of the others.

    Parameters
    ----------
    improvement, standard_error : arrays of shape (n,)

    Returns
    -------
    two arrays of shape (n,)
        Means and standard deviations.

    References
    ----------
    .. [1] C. N. Morris, "Parametric empirical Bayes inference: theory and applications", JASA 78 (1983).

    Examples
    --------
    >>> mean, sd = shrunk_improvement([0.03, -0.01, 0.0, 0.02], [0.02, 0.02, 0.02, 0.02])
    >>> mean.round(4).tolist()
    [0.01, 0.01, 0.01, 0.01]
    """
    raw, errors = np.asarray(improvement, dtype=float), np.asarray(standard_error, dtype=float)
    if raw.ndim != 1 or raw.shape != errors.shape:
        raise InvalidParameter(
            f"improvement and standard_error must be two lists of one length, got shapes {raw.shape} and {errors.shape}"
        )
    mean, spread = raw.copy(), errors.copy()
    some = errors > 0
    if some.sum() < 2:
        return mean, spread
    apart, squares, n = raw[some] - raw[some].mean(), errors[some] ** 2, int(some.sum())
    between = max(float(raw[some].var(ddof=1)) - float(squares.mean()), 0.0)
    shrink = squares / (squares + between)
    mean[some] -= shrink * apart
    variance = squares * (1 - (n - 1) / n * shrink)
    if n > 3:
        variance += 2 / (n - 3) * shrink**2 * (squares.mean() + between) / (squares + between) * apart**2
    spread[some] = np.sqrt(variance)
    return mean, spread


def value_of_cleaning(
    improvement: npt.ArrayLike, standard_error: npt.ArrayLike, *, best: int | None = None, name: str | None = None
) -> Estimate:
    """What cleaning one label is worth, after `shrunk_improvement`.

    Parameters
    ----------
    improvement, standard_error : arrays of shape (n,)
        Of all labels that could be cleaned.
    best : int, optional
        The position of the one that would be cleaned; by default the largest.
    name : str, optional

    Returns
    -------
    Estimate
        Of the expected change of the metric, between −1 and 1.

    Examples
    --------
    >>> value_of_cleaning([0.3, 0.0, 0.0, 0.1], [0.001, 0.001, 0.001, 0.001]).mean.__round__(3)
    0.3
    """
    mean, spread = shrunk_improvement(improvement, standard_error)
    if not len(mean):
        return normal_estimate(0.0, 0.0, bounds=(-1.0, 1.0), name=name)
    at = int(mean.argmax()) if best is None else int(best)
    # Metrics such as counts have other bounds; what one label changes stays within them.
    bound = max(1.0, abs(float(mean[at])) + 10 * float(spread[at]))
    return normal_estimate(float(mean[at]), float(spread[at]), bounds=(-bound, bound), name=name)


def per_cost(scores: Floats, costs: Floats) -> Floats:
    """Scores divided by costs where they are positive and multiplied where negative: dear items never rank higher.

    Examples
    --------
    >>> per_cost(np.array([1.0, 1.0, -1.0]), np.array([1.0, 2.0, 2.0])).tolist()
    [1.0, 0.5, -2.0]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(scores > 0, scores / costs, scores * costs))


@dataclass(frozen=True, eq=False)
class BudgetCurve:
    """What a budget is expected to buy.

    Attributes
    ----------
    order : integer array of shape (n,)
        The labels in the order they would be cleaned, as positions in what was passed.
    cost : array of shape (n,)
        The cost of the first 1, 2, … of them.
    improvement, standard_error : arrays of shape (n,)
        The expected change of the metric after each, as if changes added up.
    """

    order: Codes
    cost: Floats
    improvement: Floats
    standard_error: Floats

    def at(self, budget: float) -> float:
        """The improvement that a budget is expected to buy."""
        n = int(np.searchsorted(self.cost, check_number(budget, name="budget", low=0.0), side="right"))
        return float(self.improvement[n - 1]) if n else 0.0


def budget_curve(
    improvement: npt.ArrayLike, standard_error: npt.ArrayLike, costs: npt.ArrayLike | None = None
) -> BudgetCurve:
    """The expected improvement against the cost, the best value for money first.

    Improvements are those of one label each and are added up, after `shrunk_improvement`; labels that are expected to
    make the model worse are left out. Changes of nearby labels overlap, so the curve promises too much far out: it is
    for comparing budgets, and to be worked out again as answers come in.

    Parameters
    ----------
    improvement, standard_error : arrays of shape (n,)
    costs : array of shape (n,), optional
        By default 1 each.

    Examples
    --------
    >>> curve = budget_curve([0.02, 0.03, -0.01], [0.0, 0.0, 0.0], [1.0, 3.0, 1.0])
    >>> curve.order.tolist(), curve.cost.tolist(), curve.at(2.0)
    ([0, 1], [1.0, 4.0], 0.02)
    """
    mean, spread = shrunk_improvement(improvement, standard_error)
    prices = np.ones(len(mean)) if costs is None else np.asarray(costs, dtype=float)
    if prices.shape != mean.shape or not (prices > 0).all():
        raise InvalidParameter(f"costs must be a positive number for each of {len(mean)} labels, got {costs!r}")
    order = np.argsort(-mean / prices, kind="stable")
    order = order[mean[order] > 0].astype(np.int64)
    return BudgetCurve(order, np.cumsum(prices[order]), np.cumsum(mean[order]), np.sqrt(np.cumsum(spread[order] ** 2)))


@dataclass(frozen=True)
class CleanOrVote:
    """Whether an item should go to the oracle or back to the crowd.

    Attributes
    ----------
    item : hashable
    clean, vote : float
        The expected improvement of the metric by either.
    clean_cost, vote_cost : float
    choice : {"clean", "vote", "neither"}
        What buys more improvement for its cost.
    why : str
        One sentence.
    """

    item: Hashable
    clean: float
    vote: float
    clean_cost: float
    vote_cost: float
    choice: str
    why: str


def clean_or_vote(
    gains: npt.ArrayLike,
    chances: npt.ArrayLike,
    confusion: npt.ArrayLike,
    *,
    clean_cost: float = 1.0,
    vote_cost: float = 0.1,
    item: Hashable = None,
) -> CleanOrVote:
    r"""Compare the oracle's look at an item with one more vote of the crowd.

    With :math:`g_c` the change of the metric if the item is labeled c, and :math:`p_c` the probability that c is its
    truth, the oracle is worth :math:`\sum_c p_c g_c`. A vote v of a labeler with confusion matrix q makes c the label
    with the highest :math:`p_c\, q_{cv}`, so it is worth

    .. math:: \sum_v \Bigl(\sum_c p_c\, q_{cv}\Bigr)\, g_{\hat c(v)}, \qquad \hat c(v) = \arg\max_c p_c\, q_{cv}

    Parameters
    ----------
    gains : array of shape (n_classes,)
        0 for the label as it is.
    chances : array of shape (n_classes,)
    confusion : array of shape (n_classes, n_classes)
        P(vote | truth) of the next labeler, rows the truth.
    clean_cost, vote_cost : float
    item : hashable, optional
        For the words.

    Returns
    -------
    CleanOrVote

    Examples
    --------
    >>> q = [[0.9, 0.1], [0.1, 0.9]]
    >>> clean_or_vote([0.0, 0.01], [0.4, 0.6], q, clean_cost=1.0, vote_cost=0.1).choice
    'vote'
    >>> clean_or_vote([0.0, 0.01], [0.99, 0.01], q, clean_cost=1.0, vote_cost=0.1).choice
    'clean'
    """
    gain = np.asarray(gains, dtype=float)
    p = check_distribution(chances, name="chances", n=len(gain))
    q = check_distribution(confusion, name="confusion", n=len(gain))
    if q.shape != (len(gain), len(gain)):
        raise InvalidParameter(f"confusion must have the shape {(len(gain), len(gain))}, got {q.shape}")
    clean_cost = check_number(clean_cost, name="clean_cost", low=0.0, strict=True)
    vote_cost = check_number(vote_cost, name="vote_cost", low=0.0, strict=True)
    joint = p[:, None] * q
    clean = float(p @ gain)
    vote = float(joint.sum(axis=0) @ gain[joint.argmax(axis=0)])
    choice = "clean" if clean / clean_cost >= vote / vote_cost else "vote"
    if max(clean, vote) <= 0:
        choice = "neither"
    words = {
        "clean": "the oracle buys more for its cost",
        "vote": "a vote buys more for its cost",
        "neither": "neither is expected to help",
    }[choice]
    why = (
        f"The oracle is expected to improve the metric by {clean:.5f} at a cost of {clean_cost:g}, another vote by "
        f"{vote:.5f} at {vote_cost:g}: {words}."
    )
    return CleanOrVote(item, clean, vote, clean_cost, vote_cost, choice, why)
