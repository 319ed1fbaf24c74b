"""Raters that err together: kinds and difficulty of items, families of judges, a classifier that shares difficulty."""

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
    check_distribution,
    check_integer,
    check_number,
    check_numbers,
)
from trueup.data.pairs import Pairs, mirrored
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    Values,
    build_labels,
    check_confusion,
    check_sizes,
    classifier_matrix,
    diagonal_confusion,
    draw_categories,
    draw_classes,
    draw_pairs,
    draw_values,
)


def dependent(
    *,
    n_items: int = 1000,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike = (0.5, 0.5),
    subtype_weights: npt.ArrayLike = (0.8, 0.2),
    subtype_accuracy: npt.ArrayLike = (0.9, 0.4),
    subtype_confusion: npt.ArrayLike | None = None,
    strength: float = 50.0,
    families: Sequence[Sequence[int]] = (),
    copying: float | Sequence[float] = 0.7,
    shared_difficulty: float = 0.5,
    classifier_accuracy: float | None = 0.8,
    classifier_confusion: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> Simulation:
    r"""Votes whose errors depend on each other, and on the classifier's.

    .. math::

        y_i &\sim \mathrm{Cat}(\pi), \qquad s_i \mid y_i \sim \mathrm{Cat}(w_{y_i}) \\
        \theta^{(t)}_{cs} &\sim \mathrm{Dirichlet}(\alpha\, \bar\theta_{cs}), \qquad
        \phi^{(f)}_{cs} \sim \mathrm{Dirichlet}(\alpha\, \bar\theta_{cs}) \\
        v_{if} &\sim \mathrm{Cat}(\phi^{(f)}_{y_i s_i}) \\
        z_{it} &= v_{if(t)} \text{ with probability } \rho_{f(t)}, \text{ otherwise }
            z_{it} \sim \mathrm{Cat}(\theta^{(t)}_{y_i s_i})

    Three kinds of dependence given the class, each of which can be turned off:

    - *Subtypes*: the items of a class come in kinds, easy ones and hard ones, and all labelers find the same kinds
      hard. One subtype turns it off.
    - *Families*: judges built on one model share a verdict on each item and repeat it with probability ρ.
    - *Shared difficulty*: with λ = 0 the classifier is independent of the votes given the class, with λ = 1 its
      accuracy varies over subtypes as the labelers' does. Its confusion matrix given the class is the same for all λ.

    Its parameters: ``prior``, ``subtype`` (of each item, counted within its class), ``subtype_weights`` (n_classes,
    n_subtypes), ``pooled_confusion`` (n_classes, n_subtypes, n_classes), ``subtype_confusion`` (n_labelers,
    n_classes, n_subtypes, n_classes) and ``confusion`` (n_labelers, n_classes, n_classes), both with the copying
    counted in; ``family`` (of each labeler, -1 for none), ``copying`` (of each family), ``shared_difficulty``,
    ``classifier_confusion`` and ``classifier_subtype_confusion`` (n_classes, n_subtypes, n_classes).

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all vote.
    subtype_weights : array-like of shape (n_subtypes,) or (n_classes, n_subtypes). Shares of the subtypes in a class.
    subtype_accuracy : array-like of shape (n_subtypes,) or (n_classes, n_subtypes)
        Pooled accuracy of the labelers on each subtype, errors going to all other classes alike. Below one half, or
        1 / n_classes, most labelers are wrong together.
    subtype_confusion : array-like of shape (n_classes, n_subtypes, n_classes), optional
        Pooled answer probabilities on each subtype, in place of the accuracy.
    strength : float. α, at least 1: how closely each labeler follows the pooled rows; ``float("inf")`` for exactly.
    families : sequence of sequences of labelers. Numbered from 0, e.g. ``[[0, 1, 2]]``, that share a verdict.
    copying : float or one for each family. ρ, the chance that a member repeats the verdict of the family.
    shared_difficulty : float in [0, 1]. λ of the classifier.
    classifier_accuracy : float or None. In every class, errors going to all other classes alike. None: no predictions.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional
        The classifier's matrix given the class, in place of its accuracy.

    See Also
    --------
    dawid_skene : the same without dependence.
    """
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior)
    n_classes = len(pi)
    weights, pooled = _subtypes(subtype_weights, subtype_accuracy, subtype_confusion, n_classes)
    n_subtypes = weights.shape[1]
    alpha = np.inf if strength == np.inf else check_number(strength, name="strength", low=1.0)
    family = _family_of(families, n_labelers)
    share = check_number(shared_difficulty, name="shared_difficulty", low=0.0, high=1.0)
    classifier = classifier_matrix(classifier_accuracy, classifier_confusion, n_classes)
    by_subtype = None if classifier is None else _with_difficulty(classifier, weights, pooled, share)
    rng = as_generator(random_state)
    if isinstance(copying, tuple):  # a tuple is one for each family here, not a range
        copying = list(copying)
    rho = draw_values(copying, len(families), name="copying", rng=rng)
    own = _around(pooled, n_labelers, alpha, rng)
    shared = _around(pooled, len(families), alpha, rng)

    truth = draw_classes(pi, n, rng)
    subtype = draw_categories(weights, truth, rng)
    kind = truth * n_subtypes + subtype
    n_kinds = n_classes * n_subtypes
    predictions = None if by_subtype is None else draw_categories(by_subtype.reshape(n_kinds, n_classes), kind, rng)
    item, labeler = draw_pairs(n, n_labelers, votes_per_item, rng)
    vote = draw_categories(own.reshape(-1, n_classes), labeler * n_kinds + kind[item], rng)
    if len(families):
        rows = np.arange(len(families)) * n_kinds + kind[:, None]
        verdict = draw_categories(shared.reshape(-1, n_classes), rows, rng)
        member = family[labeler]
        copies = (member >= 0) & (rng.random(len(item)) < rho[member])
        vote[copies] = verdict[item[copies], member[copies]]

    effective = own.copy()
    for f, rate in enumerate(rho):
        effective[family == f] = rate * shared[f] + (1 - rate) * own[family == f]
    return Simulation(
        labels=build_labels(item, labeler, vote, (n, n_labelers, n_classes)),
        truth=truth,
        predictions=predictions,
        parameters={
            "prior": pi,
            "subtype": subtype,
            "subtype_weights": weights,
            "pooled_confusion": pooled,
            "subtype_confusion": effective,
            "confusion": np.einsum("cs,tcsk->tck", weights, effective),
            "family": family,
            "copying": rho,
            "shared_difficulty": share,
            "classifier_confusion": classifier,
            "classifier_subtype_confusion": by_subtype,
        },
    )


def _subtypes(
    weights: npt.ArrayLike, accuracy: npt.ArrayLike, confusion: npt.ArrayLike | None, n_classes: int
) -> tuple[Floats, Floats]:
    """Shares (classes × subtypes) and pooled answer probabilities (classes × subtypes × classes)."""
    shares = check_distribution(check_numbers(weights, name="subtype_weights"), name="subtype_weights")
    if shares.ndim > 2 or (shares.ndim == 2 and len(shares) != n_classes):
        raise InvalidParameter(
            f"subtype_weights must have one row, or one for each of {n_classes} classes, got the shape {shares.shape}"
        )
    shape = (n_classes, shares.shape[-1])
    shares = np.broadcast_to(shares, shape).copy()
    if confusion is not None:
        pooled = check_numbers(confusion, name="subtype_confusion")
        if pooled.shape != (*shape, n_classes):
            raise InvalidParameter(
                f"subtype_confusion must have the shape {(*shape, n_classes)}, classes × subtypes × answers, "
                f"got {pooled.shape}"
            )
        return shares, check_confusion(pooled, (*shape, n_classes), name="subtype_confusion")
    right = check_numbers(accuracy, name="subtype_accuracy")
    if right.shape not in (shape, shape[1:]) or ((right < 0) | (right > 1)).any():
        raise InvalidParameter(
            f"subtype_accuracy must be in [0, 1] and have one value for each of {shape[1]} subtypes "
            f"(or {n_classes} rows of them), got {accuracy!r:.60}"
        )
    per_subtype = np.broadcast_to(right, shape)
    return shares, diagonal_confusion(per_subtype.T, n_classes).transpose(1, 0, 2).copy()


def _around(pooled: Floats, how_many: int, strength: float, rng: np.random.Generator) -> Floats:
    """Dirichlet draws around the pooled rows, one set for each labeler."""
    shape = (how_many, *pooled.shape)
    if strength == np.inf:
        return np.broadcast_to(pooled, shape).copy()
    drawn = rng.standard_gamma(strength * pooled, size=shape)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def _family_of(families: Sequence[Sequence[int]], n_labelers: int) -> Positions:
    family = np.full(n_labelers, -1, dtype=np.int64)
    for f, members in enumerate(families):
        if isinstance(members, int | np.integer) or len(members) == 0:
            raise InvalidParameter(f"families must be groups of labelers such as [[0, 1, 2]], got {families!r:.60}")
        for t in members:
            if check_integer(t, name="a labeler in families", low=0) >= n_labelers:
                raise InvalidParameter(f"families name labeler {t}, but the labelers are 0 to {n_labelers - 1}")
            if family[t] >= 0:
                raise InvalidParameter(f"a labeler must be in one family only, got {t} twice")
            family[t] = f
    return family


def _with_difficulty(classifier: Floats, weights: Floats, pooled: Floats, share: float) -> Floats:
    """The classifier's answer probabilities on each subtype; their mean over subtypes is `classifier`."""
    classes = np.arange(len(classifier))
    right = classifier[classes, classes][:, None]
    accuracy = pooled[classes, :, classes]
    deviation = accuracy - (weights * accuracy).sum(axis=1, keepdims=True)
    room = np.where(deviation > 0, 1 - right, right)
    far = np.abs(deviation) > 1e-12
    kappa = np.where(far, room / np.where(far, np.abs(deviation), 1.0), 1.0).min(axis=1, keepdims=True)
    chance = np.clip(right + share * np.minimum(kappa, 1.0) * deviation, 0.0, 1.0)
    wrong = 1 - right
    scale = np.where(wrong > 0, (1 - chance) / np.where(wrong > 0, wrong, 1.0), 1.0)
    by_subtype = classifier[:, None, :] * scale[..., None]
    by_subtype[classes, :, classes] = chance
    return np.asarray(by_subtype)


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
    called = np.array([0.1, 0.1, 0.5])[:n_classes, None] * (ties > 0)
    first = np.stack([right + bias, 1 - right + bias, 0.5 + bias], axis=1)[:, :n_classes]
    named = (1 - called) * np.stack([first, 1 - first], axis=2)
    return np.concatenate([named, np.broadcast_to(called, (len(right), n_classes, 1))], axis=2)[..., :n_classes]


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
    accuracy : number, (low, high) tuple or array
        How often a labeler is right outside the blind spot, over all difficulties: the same for all, uniform on a
        range, or one each. It decides :math:`b_t`.
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
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior)
    blind = check_number(blind_spot, name="blind_spot", low=0.0, high=1.0)
    slopes = check_numbers(slope, name="slope")
    if slopes.shape not in ((), (n_labelers,)) or (slopes < 0).any():
        raise InvalidParameter(
            f"slope must be a number of at least 0, or {n_labelers} of them, one for each labeler, got {slope!r:.60}"
        )
    slopes = np.broadcast_to(slopes, (n_labelers,)).copy()
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
