"""What the vetted items can teach about a model: log-linear corrections of what it says, one for each kind of metric.

Each thing that a metric sums over has a coefficient of its own, with a prior that is wide enough for crowds nobody has
seen, so that many vetted items leave no bias; and there are few others, so that few items teach them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import logit

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.metric_scope import collapse_outputs, counts_right_only, only_class
from trueup.estimators.recalibration import Recalibration
from trueup.estimators.system_features import bends, main_features
from trueup.metrics import Metric

_LEAST_PROBABILITY = 0.02  # a model is never believed more than this
_LEAST_OF_SEVERAL = 0.05  # where systems are compared, which tell much themselves: models are believed less
_RIGHT_INTERCEPT = (0.0, 1.4)  # prior mean and standard deviation, from the open crowds: wide enough for unseen ones
_RIGHT_SLOPE = (0.7, 0.5)
_VOTED_INTERCEPT = (0.0, 1.5)
_VOTED_SLOPE = (0.8, 0.6)
_LEAST_SPREAD = 0.5  # of log-odds: no slope is looked for in what hardly varies
_SLOPE = (0.5, 1.0)  # what models say is often too sure, and of some crowds worth nothing
_SLOPE_AGREED = (0.7, 0.8)  # the same where the systems that are compared agree
_SLOPE_DISPUTED = (0.0, 0.7)  # where they do not, models may side with whoever errs with the crowd
_INTERCEPT = (0.0, 1.5)
_VOTE = (0.0, 2.0)
_ALL_VOTES = (0.0, 1.0)  # of what all systems have in common: many that err apart tell more than models believe
_PAIR = (0.0, 0.5)
_OF_CLASS = (0.0, 1.0)
_SCORE = (0.0, 1.5)
_SCORE_HINGE = (0.0, 0.75)
_ALL_SCORES = (0.0, 0.5)
_MOST_NAMING = 6  # systems up to which the classes they name are corrected alone, and above all classes are
_TINY = 1e-12
_FAR = 40.0  # log-odds that no item has
_BLOCK = 1_000_000  # numbers held at once
_MOST_CLASSES = 8  # with effects of their own: those predicted most often

Features = list[tuple[Floats, tuple[float, float]]]
"""Groups of features of the items, the features first, and the mean and standard deviation of the prior of each."""


@dataclass(frozen=True, eq=False)
class NamedAgainstRest:
    """A correction of P(class) of one or some classes of each item; the others keep their proportions.

    Attributes
    ----------
    model : Recalibration
        Its first class stands for all that have no column of their own, the next ones for the columns.
    named : integer array of shape (n_items, n_columns)
        The class of each column, -1 where a column has none.
    posterior : array of shape (n_items, n_classes)
    """

    model: Recalibration
    named: Codes
    posterior: Floats

    def code(self, truth: Codes) -> Codes:
        """Truths as the model has them."""
        is_it = (self.named == truth[:, None]) & (truth[:, None] >= 0)
        return np.where(is_it.any(axis=1), is_it.argmax(axis=1) + 1, 0)

    def decode(self, draws: Codes, rng: np.random.Generator) -> Codes:
        """Classes from what the model draws; where it is one of the rest, which one is drawn now."""
        if self.posterior.shape[1] == 2:
            return np.where(draws == 1, self.named[:, 0], 1 - self.named[:, 0]).astype(draws.dtype)
        upto = self._shares_of_rest()
        classes = np.zeros_like(draws)
        rows = max(1, _BLOCK // max(draws.shape[1], 1))
        for first in range(0, len(draws), rows):
            block, drawn = classes[first : first + rows], draws[first : first + rows]
            uniform = rng.random(block.shape)
            for share in upto.T:
                block += uniform >= share
            for column, named in enumerate(self.named.T, start=1):
                np.copyto(block, named, where=drawn == column, casting="unsafe")
        return classes

    def spread(self, drawn: Positions, rng: np.random.Generator) -> Positions:
        """Numbers of items of each class from those that the model draws; both are (n_draws, n_rows, n)."""
        rest = self._rest()
        shares = rest / np.maximum(rest.sum(axis=1, keepdims=True), 1e-300)
        counts = rng.multinomial(drawn[:, :, 0], shares)
        for column, named in enumerate(self.named.T, start=1):
            at = np.flatnonzero(named >= 0)
            counts[:, at, named[at]] += drawn[:, at, column]
        return np.asarray(counts)

    def _rest(self) -> Floats:
        """P(class), but 0 for the classes of columns."""
        rest = self.posterior + _TINY  # even shares where the model is sure that it is none of them
        item, column = np.nonzero(self.named >= 0)
        rest[item, self.named[item, column]] = 0.0
        return rest

    def _shares_of_rest(self) -> Floats:
        """P(class or one before it | no column's class) but for the last class, shape (n_items, n_classes - 1)."""
        rest = self._rest()
        upto = np.cumsum(rest, axis=1)
        upto = np.divide(upto, upto[:, -1:], out=np.zeros_like(upto), where=upto[:, -1:] > 0)
        upto[upto >= 1 - _TINY] = np.inf  # the last class with any share, whatever the rounding
        return upto[:, :-1]


@dataclass(frozen=True, eq=False)
class EveryClass:
    """A correction of all classes at once."""

    model: Recalibration

    def code(self, truth: Codes) -> Codes:
        """Truths as the model has them: as they are."""
        return truth

    def decode(self, draws: Codes, rng: np.random.Generator) -> Codes:
        """Classes from what the model draws: as they are."""
        return draws

    def spread(self, drawn: Positions, rng: np.random.Generator) -> Positions:
        """Numbers of items of each class from those that the model draws: as they are."""
        return drawn


@dataclass(frozen=True, eq=False)
class _Looked:
    """Which items a metric looks at, and how many each row stands for; None for one each."""

    at: Booleans
    times: Floats | None

    def mean(self, values: Floats, members: Booleans | None = None) -> Floats:
        """The mean of values over members among the items, by default over those looked at."""
        chosen = self.at if members is None else members
        weights = None if self.times is None else self.times[chosen]
        return np.asarray(np.average(values[chosen], axis=0, weights=weights))


def correction_for(
    posterior: Floats, outputs: AlignedPredictions, metric: Metric, positive: int, times: Floats | None
) -> tuple[NamedAgainstRest | EveryClass, Booleans]:
    """The correction, and the items that the metric looks at."""
    looked = _Looked(np.asarray(outputs.has_output(metric.looks_at).any(axis=0)), times)
    return _choose_correction(posterior, outputs, metric, looked, positive), looked.at


def _choose_correction(
    posterior: Floats, outputs: AlignedPredictions, metric: Metric, looked_at: _Looked, positive: int
) -> NamedAgainstRest | EveryClass:
    """The correction with a coefficient for each thing the metric sums over, and few others."""
    n_classes = posterior.shape[1]
    right_only = counts_right_only(metric, n_classes)
    if outputs.n_systems == 1 and right_only:
        return _correct_right(posterior, outputs, looked_at)
    if n_classes > 2 and outputs.n_systems <= _MOST_NAMING and right_only:
        return _correct_named(posterior, outputs, looked_at)
    if metric.needs == "scores":
        return _correct_class(posterior, positive, looked_at, _score_features(outputs), _least_probability(outputs))
    one = only_class(metric, n_classes, positive)
    if one is None or metric.needs == "probabilities":
        return _correct_classes(posterior, outputs, metric, looked_at)
    if outputs.n_systems == 1:
        return _correct_class_by_vote(posterior, one, outputs, looked_at)
    votes, mean_vote = _vote_features(collapse_outputs(outputs, one))
    return _correct_class(posterior, one, looked_at, votes, _least_probability(outputs), mean_vote)


def _correct_right(posterior: Floats, outputs: AlignedPredictions, looked_at: _Looked) -> NamedAgainstRest:
    """Logit P(right) = level + α + β (x − pivot), with x the logit of what the model says of the named class."""
    named = outputs.outputs("classes")[0]
    target = np.where(named >= 0, named, posterior.argmax(axis=1))
    p_right = posterior[np.arange(len(target)), target]
    model = _level_and_slope_model(p_right, [looked_at.at], [_RIGHT_INTERCEPT, _RIGHT_SLOPE], looked_at)
    return NamedAgainstRest(model, target[:, None], posterior)


def _correct_named(posterior: Floats, outputs: AlignedPredictions, looked_at: _Looked) -> NamedAgainstRest:
    """Which of the named classes is right, or none of them: a level for each system and class, and a slope."""
    codes = outputs.outputs("classes")
    n_systems, n_items = codes.shape
    named = codes.T.copy()
    for system in range(1, n_systems):  # a class that another system names has one column
        named[(codes[:system] == codes[system]).any(axis=0), system] = -1
    has_column = named >= 0
    p = np.where(has_column, posterior[np.arange(n_items)[:, None], named], 0.0)
    rest = np.log(np.maximum(1 - p.sum(axis=1), _LEAST_OF_SEVERAL))
    x = np.where(has_column, np.log(np.maximum(p, _LEAST_OF_SEVERAL)) - rest[:, None], -np.inf)
    is_disputed = has_column.sum(axis=1) > 1
    disputed = is_disputed.astype(float)
    parts = _with_expected_slopes([looked_at.at & ~is_disputed, looked_at.at & is_disputed], disputed, looked_at)
    level, slope = _levels_and_slopes(x, p, parts, looked_at)
    is_said = (named == codes[:, :, None]) & has_column
    common = _most_common(codes, posterior, looked_at.times)
    groups: Features = [
        *_slopes_apart(slope[None], disputed[:, None]),
        (is_said.astype(float), _VOTE),
        (is_said.sum(axis=0, keepdims=True).astype(float), _ALL_VOTES),
        ((named == common[:, None, None]).astype(float), _OF_CLASS),
    ]
    if n_systems == 2:
        groups.append((is_said.all(axis=0, keepdims=True).astype(float), _OF_CLASS))
    offset = np.concatenate([np.zeros((n_items, 1)), level], axis=1)
    features = np.concatenate([group for group, _ in groups])
    features = np.concatenate([np.zeros((len(features), n_items, 1)), features], axis=2)
    return NamedAgainstRest(_log_linear_model(offset, features, groups), named, posterior)


def _most_common(codes: Codes | None, posterior: Floats, times: Floats | None) -> Codes:
    """The classes that systems name most often, or that the model holds likeliest: those with effects of their own."""
    heavy = np.ones(len(posterior)) if times is None else times
    if codes is None:
        masses: npt.NDArray[Any] = heavy @ posterior
    else:
        masses = np.bincount(codes[codes >= 0], np.broadcast_to(heavy, codes.shape)[codes >= 0], posterior.shape[1])
    return np.sort(np.argsort(-masses, kind="stable")[:_MOST_CLASSES])


def _correct_class(
    posterior: Floats,
    one_class: int,
    looked_at: _Looked,
    of_systems: Features,
    least: float,
    mean_vote: Floats | None = None,
) -> NamedAgainstRest:
    """Logit P(class) = level + α + β (x − pivot) + what the systems say, with x the logit of what the model says.

    Where systems vote, from −1 for none to 1 for all of them, items that most give to the class, that most do not and
    that are disputed have levels and pivots of their own, so that shares of right answers are kept where systems agree.
    """
    p = posterior[:, [one_class]]
    if mean_vote is None:
        parts = [(looked_at.at, _SLOPE[0])]
    else:
        disputed = 1 - np.abs(mean_vote)
        kinds = (mean_vote > 0.5, mean_vote < -0.5, np.abs(mean_vote) <= 0.5)
        parts = _with_expected_slopes([looked_at.at & kind for kind in kinds], disputed, looked_at)
    level, slope = _levels_and_slopes(logit(_clipped(p, least)), p, parts, looked_at)
    slopes = [(slope.T, _SLOPE)] if mean_vote is None else _slopes_apart(slope.T, disputed)
    groups: Features = [(np.ones((1, len(p))), _INTERCEPT), *slopes, *of_systems]
    stacked = np.concatenate([group for group, _ in groups])
    priors = [prior for group, prior in groups for _ in group]
    return NamedAgainstRest(_binary_model(level[:, 0], stacked, priors), np.full((len(p), 1), one_class), posterior)


def _slopes_apart(slope: Floats, disputed: Floats) -> Features:
    """The slope as a feature where systems agree, and as another where they do not."""
    return [(slope * (1 - disputed), _SLOPE_AGREED), (slope * disputed, _SLOPE_DISPUTED)]


def _with_expected_slopes(parts: list[Booleans], disputed: Floats, looked_at: _Looked) -> list[tuple[Booleans, float]]:
    """Parts of the items, but for empty ones, with the slope that is expected where systems disagree so far."""
    expected = _SLOPE_AGREED[0] * (1 - disputed) + _SLOPE_DISPUTED[0] * disputed
    return [(members, float(looked_at.mean(expected, members))) for members in parts if members.any()]


def _correct_class_by_vote(
    posterior: Floats, one_class: int, outputs: AlignedPredictions, looked_at: _Looked
) -> NamedAgainstRest:
    """Logit P(class) = level + α + β (x − pivot), apart for items that the system gives to the class and for others."""
    codes = outputs.outputs("classes")[0]
    groups = [codes == one_class, (codes != one_class) & (codes >= 0)]
    model = _level_and_slope_model(posterior[:, one_class], groups, [_VOTED_INTERCEPT, _VOTED_SLOPE], looked_at)
    return NamedAgainstRest(model, np.full((len(codes), 1), one_class), posterior)


def _vote_features(collapsed: AlignedPredictions) -> tuple[Features, Floats]:
    """What each system votes, ± ½, what all vote together, and of two whether they agree; and their mean, ± 1."""
    both = main_features(collapsed, 2, "classes")
    votes = (both[:, :, 1] - both[:, :, 0]) / 2
    features: Features = [(votes, _VOTE), (votes.sum(axis=0, keepdims=True), _ALL_VOTES)]
    if len(votes) == 2:
        # With it every pattern of the two votes has a level of its own.
        features.append((4 * votes[:1] * votes[1:], _PAIR))
    n_answers = np.maximum((votes != 0).sum(axis=0), 1)  # a system that says nothing disputes nothing
    return features, 2 * votes.sum(axis=0) / n_answers


def _score_features(outputs: AlignedPredictions) -> Features:
    """The place of each item in the ranking of each system, as a normal score, their sum, and hinges along it."""
    main = main_features(outputs, outputs.n_classes, "scores")
    assert outputs.positive is not None
    scores = main[:, :, outputs.positive]
    if len(main) > 2:
        return [(scores, _SCORE), (scores.sum(axis=0, keepdims=True), _ALL_SCORES)]
    return [(scores, _SCORE), (bends(main, outputs.positive)[:, :, outputs.positive], _SCORE_HINGE)]


def _correct_classes(posterior: Floats, outputs: AlignedPredictions, metric: Metric, looked_at: _Looked) -> EveryClass:
    """Log P(class) = log f + slope, level of the class, how far to believe each system, and each class it names."""
    n_items, n_classes = posterior.shape
    offset = np.log(np.maximum(posterior, 2 * _least_probability(outputs) / n_classes))
    slope = offset - offset.mean(axis=1, keepdims=True)
    slope = slope - looked_at.mean(slope) if looked_at.at.any() else slope
    groups: Features = [(slope[None], (_SLOPE[0] - 1, _SLOPE[1]))]
    levels = np.eye(n_classes)[_most_common(outputs.codes, posterior, looked_at.times)]
    groups.append((np.broadcast_to(levels[:, None, :], (len(levels), n_items, n_classes)), _INTERCEPT))
    kind = metric.looks_at
    main = main_features(outputs, n_classes, kind)
    groups += [(main, _VOTE), (main.sum(axis=0, keepdims=True), _ALL_VOTES)]
    if kind == "classes":
        # Of each class whether some system names it: how often it is right may differ between classes.
        is_named = (main > 0).mean(axis=0)
        groups.append((levels[:, None, :] * is_named, _OF_CLASS))
        if outputs.n_systems == 2:
            groups.append(((is_named == 1.0)[None].astype(float), _OF_CLASS))
    else:
        assert outputs.probabilities is not None
        groups.append((np.nan_to_num(outputs.probabilities), _VOTE))
    features = np.concatenate([group for group, _ in groups])
    return EveryClass(_log_linear_model(offset, features, groups))


def _log_linear_model(offset: Floats, features: Floats, groups: Features) -> Recalibration:
    """A model of features of shape (n_features, n_items, n_classes), with the priors of their groups."""
    means, scales = np.array([prior for group, prior in groups for _ in group]).T
    return Recalibration(offset, np.ascontiguousarray(np.moveaxis(features, 0, 2)), means, scales)


def _level_and_slope_model(
    p: Floats, groups: list[Booleans], priors: list[tuple[float, float]], looked_at: _Looked
) -> Recalibration:
    """In each group of items logit P = level + α + β (x − pivot), with x = logit p; items of no group are left alone.

    The level and the pivot are such that P has the mean of p where α is 0, and about so whatever the slope: a share is
    then corrected by α alone. (With logit p̄ at the mean of x, a slope below one would move a share of sure items that
    are mostly of one class towards a half, by .03 where 70 of 100 are.)

    A standard deviation of x may well change log-odds by one: a model of one judge does not know how good they are, so
    what it says varies less than the truth does, and its slope is well above one.
    """
    of_level, (mean_slope, scale) = priors
    x = logit(_clipped(p))
    parts = [(members, mean_slope) for members in groups]
    level, slope = _levels_and_slopes(x[:, None], p[:, None], parts, looked_at)
    features: list[Floats] = []
    of_groups: list[tuple[float, float]] = []
    for members in groups:
        spread = _LEAST_SPREAD
        if members.any():
            spread = max(spread, float(np.sqrt(looked_at.mean((x - looked_at.mean(x, members)) ** 2, members))))
        features += [members.astype(float), members * slope[:, 0]]
        of_groups += [of_level, (mean_slope, max(scale, 1 / spread))]
    return _binary_model(level[:, 0], np.stack(features), of_groups)


def _levels_and_slopes(
    x: Floats, p: Floats, parts: list[tuple[Booleans, float]], looked_at: _Looked
) -> tuple[Floats, Floats]:
    """The level of each item, and how far its x is from the pivot: what a slope is the coefficient of.

    Parameters
    ----------
    x, p : arrays of shape (n_items, n_columns)
        Log-odds of the class of each column against the rest, -inf where there is none, and what the model says of it.
    parts : list of (boolean array of shape (n_items,), float)
        Items with a level and a pivot of their own, and the slope expected there. Items of no part are left alone.
    """
    level, slope = x.copy(), np.zeros_like(x)
    for members, expected in parts:
        if members.any():
            at_pivot, pivot = _level_and_pivot(x, expected, p, looked_at, members)
            has_column = np.isfinite(x) & members[:, None]
            level[has_column], slope[has_column] = at_pivot, x[has_column] - pivot
    return level, slope


def _level_and_pivot(x: Floats, slope: float, p: Floats, looked_at: _Looked, members: Booleans) -> tuple[float, float]:
    """Where P with logit P = level + slope (x − pivot) has the mean of p, which other slopes about that one leave."""
    mean = float(_clipped(looked_at.mean(p.sum(axis=1), members)))
    has_column = np.isfinite(x)
    finite = np.where(has_column, x, 0.0)

    def shares(level: float) -> Floats:
        odds = np.where(has_column, np.exp(level + slope * finite), 0.0)
        return np.asarray(odds / (1 + odds.sum(axis=1, keepdims=True)))

    def excess(level: float) -> float:
        return float(looked_at.mean(shares(level).sum(axis=1), members)) - mean

    at_zero = float(scipy.optimize.brentq(excess, -_FAR, _FAR))
    corrected = shares(at_zero)
    heavy = corrected * (1 - corrected.sum(axis=1, keepdims=True))  # how fast all P together change with each log-odds
    weight = looked_at.mean(heavy.sum(axis=1), members)
    pivot = float(looked_at.mean((heavy * finite).sum(axis=1), members) / weight)
    return at_zero + slope * pivot, pivot


def _binary_model(offset: Floats, features: Floats, priors: list[tuple[float, float]]) -> Recalibration:
    """A model of two classes whose second has the offset and the features, of shape (n_features, n_items)."""
    both = np.zeros((len(offset), 2, len(features)))
    both[:, 1] = features.T
    means, scales = np.array(priors).T
    return Recalibration(np.stack([np.zeros_like(offset), offset], axis=1), both, means, scales)


def _least_probability(outputs: AlignedPredictions) -> float:
    return _LEAST_PROBABILITY if outputs.n_systems == 1 else _LEAST_OF_SEVERAL


def _clipped(p: Floats, least: float = _LEAST_PROBABILITY) -> Floats:
    return np.clip(p, least, 1 - least)
