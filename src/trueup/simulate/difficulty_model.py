"""Raters who find the same items hard, by degrees, and items that look alike wrong to all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import expit

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    check_numbers,
    check_prior,
)
from trueup.data.pairs import Pairs, mirrored
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    Values,
    build_labels,
    diagonal_confusion,
    draw_categories,
    draw_classes,
    draw_pairs,
    draw_values,
)

# ------------------ Verdicts on pairs of systems, by judges who may prefer a place.


@dataclass(frozen=True, eq=False, repr=False)
class PairSimulation:
    """Verdicts with their truth.

    Attributes
    ----------
    truth : integer array of shape (n_contests,). Who wins each contest in truth: 0 the first, 1 the second, 2 nobody.
    strengths : array of shape (n_systems,). In log-odds, in the order of the systems.
    confusion : array of shape (n_judges, n_verdicts, n_verdicts)
        P(verdict | truth) of each judge, about the places that are shown.
    """

    pairs: Pairs
    truth: Codes = field(repr=False)
    strengths: Floats
    confusion: Floats = field(repr=False)

    def __repr__(self) -> str:
        return f"PairSimulation({self.pairs!r}, truth)"


def pairs(
    *,
    n_contests: int = 500,
    n_systems: int = 4,
    n_judges: int = 5,
    accuracy: Values = (0.7, 0.85),
    position_bias: Values = 0.1,
    spread: float = 1.0,
    ties: float = 0.0,
    orders: Literal["random", "both", "named"] = "random",
    random_state: RandomState = None,
) -> PairSimulation:
    """Each item is a contest of two systems at random, won as Bradley and Terry say, and all judges see all of them.

    Parameters
    ----------
    accuracy : number, (low, high) tuple or array
        How often a judge names the side that wins in truth, both places averaged.
    position_bias : number, (low, high) tuple or array
        By how much more often than half a judge names what is shown first.
    spread : float. Standard deviation of the strengths, in log-odds.
    ties : float. The share of true ties, of which half are called so.
    orders : {"random", "both", "named"}
        Each judge sees a contest in one order by chance, or in both; or all see the first by name first.

    Examples
    --------
    >>> from trueup.simulate import pairs
    >>> pairs(n_contests=100, n_judges=2, random_state=0)
    PairSimulation(Pairs(100 contests of 4 systems, 2 judges, 200 verdicts), truth)
    """
    n = check_integer(n_contests, name="n_contests", low=1)
    n_systems = check_integer(n_systems, name="n_systems", low=2)
    n_judges = check_integer(n_judges, name="n_judges", low=1)
    check_number(spread, name="spread", low=0.0)
    share = check_number(ties, name="ties", low=0.0, high=1.0)
    check_choice(orders, ("random", "both", "named"), name="orders")
    rng = as_generator(random_state)
    right = draw_values(accuracy, n_judges, name="accuracy", rng=rng)
    bias = draw_values(position_bias, n_judges, name="position_bias", rng=rng)
    if (right + bias > 1).any():
        raise InvalidParameter(
            f"`accuracy` and `position_bias` must add up to at most 1, got {(right + bias).max():.2f}; lower one",
            parameter="position_bias",
        )
    confusion = _matrices(right, bias, share)
    strengths = spread * rng.standard_normal(n_systems)
    names = [f"system-{k:0{len(str(n_systems))}d}" for k in range(1, n_systems + 1)]
    sides = np.sort(rng.permuted(np.tile(np.arange(n_systems), (n, 1)), axis=1)[:, :2], axis=1)
    truth = (rng.random(n) >= expit(strengths[sides[:, 0]] - strengths[sides[:, 1]])).astype(np.int64)
    truth[rng.random(n) < share] = 2
    rows = []
    for judge in range(n_judges):
        shown = np.zeros(n, dtype=np.int64) if orders == "named" else rng.integers(2, size=n)
        for order in (shown, 1 - shown) if orders == "both" else (shown,):
            seen = np.where(order == 1, mirrored(truth), truth)
            said = draw_categories(confusion[judge], seen, rng)
            verdict = np.where(order == 1, mirrored(said), said)
            rows += [
                (k, f"judge-{judge + 1}", names[sides[k, 0]], names[sides[k, 1]], int(order[k]), int(verdict[k]))
                for k in range(n)
            ]
    rows.sort(key=lambda row: row[0])
    return PairSimulation(Pairs.from_rows(rows), truth, strengths, confusion)


def _matrices(right: Floats, bias: Floats, ties: float) -> Floats:
    """P(verdict | truth) of each judge; without ties nobody calls one."""
    n_classes = 3 if ties else 2
    called = np.array([0.1, 0.1, 0.5]) * (ties > 0)
    matrices = np.zeros((len(right), n_classes, n_classes))
    said_first = np.stack([right + bias, 1 - right + bias, 0.5 + bias], axis=1)
    for truth in range(n_classes):
        matrices[:, truth, 0] = (1 - called[truth]) * said_first[:, truth]
        matrices[:, truth, 1] = (1 - called[truth]) * (1 - said_first[:, truth])
        matrices[:, truth, 2:] = called[truth]
    return matrices


# Points and weights of a mean over the standard normal distribution.
_POINTS, _SCALED_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _SCALED_WEIGHTS / _SCALED_WEIGHTS.sum()


def shared_difficulty(
    *,
    n_items: int = 1000,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike = (0.5, 0.5),
    accuracy: Values = (0.65, 0.9),
    slope: float | Sequence[float] = 1.5,
    blind_spot: float = 0.0,
    classifier_accuracy: float | None = 0.8,
    classifier_slope: float | None = None,
    random_state: RandomState = None,
) -> Simulation:
    r"""Votes that err on the same hard items, and on items that look like another class to everyone.

    .. math::

        y_i &\sim \mathrm{Cat}(\pi), \qquad d_i \sim N(0, 1) \\
        u_i &= y_i \text{ with probability } 1 - \beta, \text{ otherwise one of the other classes} \\
        P(z_{it} = u_i) &= \mathrm{logit}^{-1}(b_t - g_t d_i)

    Unlike in `dependent`, difficulty is a matter of degree; all raters, the classifier among them, share it. Errors go
    to all classes but :math:`u_i` alike. An item with :math:`u_i \ne y_i` is in the blind spot: everyone errs there in
    the same way, and nothing in the votes shows it.

    Its parameters: ``prior``, ``difficulty`` and ``apparent_class`` (of each item), ``intercept`` and ``slope`` (of
    each labeler), ``classifier_intercept`` and ``classifier_slope``, ``blind_spot``, ``confusion`` and
    ``classifier_confusion`` (over all difficulties, the blind spot counted in).

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all vote.
    prior : array-like of shape (n_classes,)
    accuracy : number, (low, high) tuple or array
        How often a labeler is right outside the blind spot, over all difficulties, between 0 and 1: the same for all,
        uniform on a range, or one each. It decides :math:`b_t`.
    slope : float or one for each labeler. :math:`g_t`, at least 0. At 0 difficulty plays no part.
    blind_spot : float in [0, 1]. β, the share of the items that look like another class.
    classifier_accuracy : float or None. As `accuracy`. None: no predictions.
    classifier_slope : float, optional. As `slope`; by default the mean of the labelers'.

    See Also
    --------
    dependent : kinds of items, and families of labelers.

    Examples
    --------
    >>> from trueup.simulate import shared_difficulty
    >>> shared_difficulty(n_items=300, blind_spot=0.05, random_state=0)
    Simulation(Labels(300 items, 5 labelers, 2 classes, 1,500 votes), truth, predictions)
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior)
    blind = check_number(blind_spot, name="blind_spot", low=0.0, high=1.0)
    slopes = _check_slopes(slope, n_labelers)
    rng = as_generator(random_state)
    accuracies = draw_values(accuracy, n_labelers, name="accuracy", rng=rng)
    intercepts = np.array([_intercept(a, g, name="accuracy") for a, g in zip(accuracies, slopes, strict=True)])

    truth = draw_classes(pi, n, rng)
    difficulty = rng.standard_normal(n)
    apparent = np.where(rng.random(n) < blind, _another_class(truth, len(pi), rng), truth)
    item, labeler = draw_pairs(n, n_labelers, votes_per_item, rng)
    right = rng.random(len(item)) < expit(intercepts[labeler] - slopes[labeler] * difficulty[item])
    vote = np.where(right, apparent[item], _another_class(apparent[item], len(pi), rng))

    predictions = own_intercept = own_slope = matrix = None
    if classifier_accuracy is not None:
        own_slope = float(slopes.mean())
        if classifier_slope is not None:
            own_slope = check_number(classifier_slope, name="classifier_slope", low=0.0)
        level = check_number(classifier_accuracy, name="classifier_accuracy", low=0.0, high=1.0)
        own_intercept = _intercept(level, own_slope, name="classifier_accuracy")
        right = rng.random(n) < expit(own_intercept - own_slope * difficulty)
        predictions = np.where(right, apparent, _another_class(apparent, len(pi), rng))
        matrix = _confusion(np.array([level]), blind, len(pi))[0]
    return Simulation(
        labels=build_labels(item, labeler, vote, (n, n_labelers, len(pi))),
        truth=truth,
        predictions=predictions,
        parameters={
            "prior": pi,
            "difficulty": difficulty,
            "apparent_class": apparent,
            "intercept": intercepts,
            "slope": slopes,
            "blind_spot": blind,
            "confusion": _confusion(accuracies, blind, len(pi)),
            "classifier_intercept": own_intercept,
            "classifier_slope": own_slope,
            "classifier_confusion": matrix,
        },
    )


def _check_slopes(slope: float | Sequence[float], n_labelers: int) -> Floats:
    slopes = check_numbers(slope, name="slope")
    if slopes.shape not in ((), (n_labelers,)) or (slopes < 0).any():
        raise InvalidParameter(
            f"slope must be a number of at least 0, or {n_labelers} of them, one for each labeler, got {slope!r:.60}"
        )
    return np.broadcast_to(slopes, (n_labelers,)).copy()


def _intercept(accuracy: float, slope: float, *, name: str) -> float:
    """The log-odds at mean difficulty that make a rater right so often over all difficulties."""
    if not 0 < accuracy < 1:
        raise InvalidParameter(f"{name} must lie between 0 and 1, both excluded, got {accuracy:g}; pass e.g. 0.99")

    def excess(intercept: float) -> float:
        return float(_WEIGHTS @ expit(intercept - slope * _POINTS)) - accuracy

    far = 50.0 + 12.0 * slope  # beyond the furthest point, where every probability is 0 or 1
    return float(scipy.optimize.brentq(excess, -far, far))


def _another_class(classes: Positions, n_classes: int, rng: np.random.Generator) -> Positions:
    """For each class one of the others."""
    return np.asarray((classes + rng.integers(1, n_classes, len(classes))) % n_classes)


def _confusion(accuracies: Floats, blind: float, n_classes: int) -> Floats:
    """The matrices over all difficulties: what a rater sees, of what there is."""
    seen = diagonal_confusion(np.full(n_classes, 1 - blind), n_classes)
    answers = diagonal_confusion(np.repeat(accuracies[:, None], n_classes, axis=1), n_classes)
    return np.asarray(seen @ answers)
