"""Truths of all items from a model, corrected by items that were drawn at random and vetted.

How the model errs is learned from the vetted items, as a log-linear correction with one coefficient for each thing
the metric sums over. So whatever the model believes, more vetted items bring the metric to the truth; the model only
decides how wide the interval is on the way. The vetted items themselves are as they are, so a finite pool counts as
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import preview
from trueup.data.aligned import AlignedPredictions
from trueup.estimators.metric_scope import collapse_outputs, counts_right_only, only_class
from trueup.estimators.recalibration import Recalibration, draw_classes, recalibrate
from trueup.estimators.system_features import Used, bends, main_features, principal_features
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric

_LEAST_PROBABILITY = 0.02  # a model is never believed more than this
_RIGHT_INTERCEPT = (0.0, 1.2)  # prior mean and standard deviation, from the open crowds: wide enough for unseen ones
_RIGHT_SLOPE = (0.8, 0.4)
_SLOPE = (0.0, 1.0)
_INTERCEPT = (0.0, 1.5)
_VOTE = (0.0, 2.0)
_VOTE_SLOPE = (0.0, 0.5)
_OF_CLASS = (0.0, 1.0)
_SCORE = (0.0, 1.5)
_MOST_SYSTEMS = 6  # with features of their own; more are summed up by their principal components
_BLOCK = 1_000_000  # numbers held at once
_MOST_CLASSES = 8  # with effects of their own: those predicted most often


def rectified_truths(
    posterior: Floats,
    outputs: AlignedPredictions,
    metric: Metric,
    *,
    gold: Codes,
    chance: Floats,
    positive: int,
    n_draws: int,
    rng: np.random.Generator,
) -> Codes:
    """Draw the truth of all items from the model as the vetted items correct it.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class | votes, systems) of a model that has not seen the drawn gold.
    outputs : AlignedPredictions
        Of one system, or of all that are compared.
    metric : Metric
        It decides which errors of the model are learned.
    gold : integer array of shape (n_items,)
        The class of the vetted items that were drawn, -1 for all others.
    chance : array of shape (n_items,)
        The inclusion probability of each vetted item; not looked at elsewhere.
    positive : int
        Code of the positive class.
    n_draws : int
    rng : Generator

    Returns
    -------
    integer array of shape (n_draws, n_items)
        The vetted items are as they were found.
    """
    check_chances(gold, chance)
    looked_at = np.asarray(outputs.has_output(metric.looks_at).any(axis=0))
    correction = _choose_correction(posterior, outputs, metric, looked_at, positive)
    vetted = np.flatnonzero((gold >= 0) & looked_at)
    learned = recalibrate(
        correction.model,
        vetted,
        correction.code(gold)[vetted],
        design_weights(chance[vetted]),
        n_draws=n_draws,
        rng=rng,
    )
    truths = correction.decode(draw_classes(correction.model, learned.draws, rng=rng), rng)
    known = np.flatnonzero(gold >= 0)
    truths[:, known] = gold[known]
    return truths


def design_weights(chance: Floats) -> Floats:
    """What each vetted item counts for, so scaled that all add up to Kish's effective number of items.

    An item drawn with the chance p stands for 1 / p items, of which one is itself and known: it teaches about the
    1 / p − 1 others. One that was certain to be drawn stands for itself alone. Items with one chance count one each.
    """
    return scale_to_effective(1 / chance - 1)


def scale_to_effective(weights: Floats) -> Floats:
    """Weights so scaled that they add up to the number of evenly drawn items they are worth: (Σw)² / Σw²."""
    total = float((weights**2).sum())
    return np.asarray(weights * (weights.sum() / total)) if total > 0 else np.zeros_like(weights)


def check_chances(gold: Codes, chance: Floats) -> None:
    """Stop inclusion probabilities of vetted items that are none."""
    of_gold = chance[gold >= 0]
    wrong = of_gold[~((of_gold > 0) & (of_gold <= 1))]
    if len(wrong):
        raise InvalidParameter(
            f"⟨chance⟩ of a vetted item must be a probability in (0, 1], got {preview(wrong.tolist())}; leave out "
            "items that were not drawn by chance",
            parameter="chance",
        )


# ------------------------------------------------------------------ corrections


@dataclass(frozen=True, eq=False)
class _OneAgainstRest:
    """A correction of P(one class) of each item; the other classes keep their proportions.

    Attributes
    ----------
    model : Recalibration
        With two classes: 0 for the rest, 1 for the class.
    target : integer array of shape (n_items,)
        The class of each item.
    posterior : array of shape (n_items, n_classes)
    """

    model: Recalibration
    target: Codes
    posterior: Floats

    def code(self, truth: Codes) -> Codes:
        """Truths as the model has them."""
        return np.asarray(truth == self.target, dtype=np.int64)

    def decode(self, draws: Codes, rng: np.random.Generator) -> Codes:
        """Classes from what the model draws; where it is one of the rest, which one is drawn now."""
        n_classes = self.posterior.shape[1]
        if n_classes == 2:
            return np.where(draws == 1, self.target, 1 - self.target).astype(draws.dtype)
        rest = self.posterior.copy()
        rest[np.arange(len(rest)), self.target] = 0.0
        total = rest.sum(axis=1, keepdims=True)
        even = (np.arange(n_classes) != self.target[:, None]) / (n_classes - 1)
        upto = np.cumsum(np.where(total > 0, rest / np.where(total > 0, total, 1.0), even), axis=1)
        upto[upto >= upto[:, -1:]] = np.inf  # the last class with any share, whatever the rounding
        classes = np.empty_like(draws)
        rows = max(1, _BLOCK // max(draws.shape[1], 1))
        for first in range(0, len(draws), rows):
            block = draws[first : first + rows]
            u = rng.random(block.shape)
            others = np.zeros_like(block)
            for column in upto[:, :-1].T:
                others += u >= column
            classes[first : first + rows] = np.where(block == 1, self.target, others)
        return classes


@dataclass(frozen=True, eq=False)
class _EveryClass:
    """A correction of all classes at once."""

    model: Recalibration

    def code(self, truth: Codes) -> Codes:
        """Truths as the model has them: as they are."""
        return truth

    def decode(self, draws: Codes, rng: np.random.Generator) -> Codes:
        """Classes from what the model draws: as they are."""
        return draws


def _choose_correction(
    posterior: Floats, outputs: AlignedPredictions, metric: Metric, looked_at: Booleans, positive: int
) -> _OneAgainstRest | _EveryClass:
    """The correction with a coefficient for each thing the metric sums over, and few others."""
    n_classes = posterior.shape[1]
    if outputs.n_systems == 1 and counts_right_only(metric, n_classes):
        return _correct_right(posterior, outputs, looked_at)
    if metric.needs == "scores":
        return _correct_class(posterior, positive, looked_at, _score_features(outputs))
    one = only_class(metric, n_classes, positive)
    if one is None or metric.needs == "probabilities":
        return _correct_classes(posterior, outputs, metric, looked_at)
    return _correct_class(posterior, one, looked_at, _vote_features(collapse_outputs(outputs, one)))


def _correct_right(posterior: Floats, outputs: AlignedPredictions, looked_at: Booleans) -> _OneAgainstRest:
    """Logit P(right) = logit f̄ + α + β (x − x̄), with x the logit of what the model says of the named class."""
    named = outputs.outputs("classes")[0]
    target = np.where(named >= 0, named, posterior.argmax(axis=1))
    p_right = posterior[np.arange(len(target)), target]
    x = logit(_clipped(p_right))
    if looked_at.any():
        offset = np.where(looked_at, logit(_clipped(p_right[looked_at].mean())), x)
        slope = np.where(looked_at, x - x[looked_at].mean(), 0.0)
    else:
        offset, slope = x, np.zeros_like(x)
    features = np.stack([looked_at.astype(float), slope])
    return _OneAgainstRest(_binary_model(offset, features, [_RIGHT_INTERCEPT, _RIGHT_SLOPE]), target, posterior)


Features = list[tuple[Floats, tuple[float, float]]]
"""Features of the items, shape (n_features, n_items), each group with the mean and standard deviation of its prior."""


def _correct_class(
    posterior: Floats, one_class: int, looked_at: Booleans, of_systems: tuple[Features, Floats]
) -> _OneAgainstRest:
    """Logit P(class) = x + intercept + slope (x − x̄) + what the systems say, and with what slope."""
    x = logit(_clipped(posterior[:, one_class]))
    slope = (x - x[looked_at].mean() if looked_at.any() else x)[None]
    features, votes = of_systems
    groups: Features = [(np.ones_like(slope), _INTERCEPT), (slope, _SLOPE), *features, (votes * slope, _VOTE_SLOPE)]
    stacked = np.concatenate([group for group, _ in groups])
    priors = [prior for group, prior in groups for _ in group]
    target = np.full(len(x), one_class)
    return _OneAgainstRest(_binary_model(x, stacked, priors), target, posterior)


def _vote_features(collapsed: AlignedPredictions) -> tuple[Features, Floats]:
    """What each system votes, ± ½, and of two whether they agree; the votes again for their slopes."""
    both = _system_features(collapsed, 2, "classes")
    votes = (both[:, :, 1] - both[:, :, 0]) / 2
    features: Features = [(votes, _VOTE)]
    if len(votes) == 2:
        # With it every pattern of the two votes has a level of its own.
        features.append((4 * votes[:1] * votes[1:], _VOTE_SLOPE))
    return features, votes


def _score_features(outputs: AlignedPredictions) -> tuple[Features, Floats]:
    """The place of each item in the ranking of each system, as a normal score, and hinges along it."""
    main = _system_features(outputs, outputs.n_classes, "scores")
    assert outputs.positive is not None
    bent = bends(main, outputs.positive) if len(main) <= 2 else main[:0]
    features: Features = [(part[:, :, outputs.positive], _SCORE) for part in (main, bent)]
    return features, np.empty((0, main.shape[1]))


def _correct_classes(
    posterior: Floats, outputs: AlignedPredictions, metric: Metric, looked_at: Booleans
) -> _EveryClass:
    """Log P(class) = log f + slope, level of the class, how far to believe each system, and each class it names."""
    n_items, n_classes = posterior.shape
    offset = np.log(np.maximum(posterior, 2 * _LEAST_PROBABILITY / n_classes))
    slope = offset - offset.mean(axis=1, keepdims=True)
    slope = slope - slope[looked_at].mean(axis=0) if looked_at.any() else slope
    groups: Features = [(slope[None], _SLOPE)]
    if outputs.codes is not None:
        own = np.argsort(-np.bincount(outputs.codes[outputs.codes >= 0], minlength=n_classes), kind="stable")
        levels = np.eye(n_classes)[np.sort(own[:_MOST_CLASSES])]
    else:
        levels = np.eye(n_classes)[:_MOST_CLASSES]
    groups.append((np.broadcast_to(levels[:, None, :], (len(levels), n_items, n_classes)), _INTERCEPT))
    kind = metric.looks_at
    main = _system_features(outputs, n_classes, kind)
    groups.append((main, _VOTE))
    if kind == "classes":
        # Of each class whether some system names it: how often it is right may differ between classes.
        is_named = (main_features(outputs, n_classes, "classes") > 0).mean(axis=0)
        groups.append((levels[:, None, :] * is_named, _OF_CLASS))
        if outputs.n_systems == 2:
            groups.append(((is_named == 1.0)[None].astype(float), _OF_CLASS))
    else:
        assert outputs.probabilities is not None
        groups.append((np.nan_to_num(outputs.probabilities[:_MOST_SYSTEMS]), _VOTE))
    features = np.moveaxis(np.concatenate([group for group, _ in groups]), 0, 2)
    means, scales = np.array([prior for group, prior in groups for _ in group]).T
    return _EveryClass(Recalibration(offset, np.ascontiguousarray(features), means, scales))


def _system_features(outputs: AlignedPredictions, n_classes: int, kind: Used) -> Floats:
    few = outputs.n_systems <= _MOST_SYSTEMS
    return (main_features if few else principal_features)(outputs, n_classes, kind)


def _binary_model(offset: Floats, features: Floats, priors: list[tuple[float, float]]) -> Recalibration:
    """A model of two classes whose second has the offset and the features, of shape (n_features, n_items)."""
    both = np.zeros((len(offset), 2, len(features)))
    both[:, 1] = features.T
    means, scales = np.array(priors).T
    return Recalibration(np.stack([np.zeros_like(offset), offset], axis=1), both, means, scales)


def _clipped(p: Floats) -> Floats:
    return np.clip(p, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
