"""Which effects correct the base: those whose level is asked about, and smaller ones beside them.

*Levels* are the accuracies of systems and, of two classes, the share of one: their prior is that of real sets, exactly.
*Effects* move what levels leave open. Of more than two classes each class has one, and each class that a system names;
each slice of the items that is asked about; and scores. Their scale is such that the share, the level in the slice or
the AUC deviates as far as those of real sets do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Codes, Floats
from trueup.core.prior import CrowdPrior, angle_slope, to_angle
from trueup.core.rows import Rows

MOST_CLASSES = 24  # classes with effects of their own: those that occur most often
MOST_PARTS = 60  # effects of the classes that systems name, of all systems together
LARGEST_EFFECT = 1.5  # log-odds: the largest scale, where hardly any item could be of another class
_FEWEST_NAMED = 3  # items of which a system must name a class
_AUC_STEP = 0.1  # log-odds, for the slope of the AUC


@dataclass(frozen=True)
class Feature:
    """What one coefficient moves."""

    kind: str  # "part" is a slice, or the class that a system names
    system: int = -1  # the system whose outputs it names, or whose scores it has; -1 for none
    code: int = -1  # the class that it names of all items, -1 where it names the outputs of the system
    part: int = -1  # the slice that it is limited to, -1 for none

    def of(self, codes: Codes, scores: Floats | None, slices: Codes | None) -> tuple[Codes, Floats]:
        """The class that it names of each item, and its value, 0 where it says nothing."""
        n_items = codes.shape[1]
        if self.kind == "score":
            assert scores is not None
            return np.full(n_items, self.code), scores[self.system]
        if self.code < 0:
            target, value = codes[self.system], codes[self.system] >= 0
        else:
            target = np.full(n_items, self.code)
            value = np.ones(n_items, dtype=bool) if self.system < 0 else codes[self.system] == self.code
        if self.part >= 0:
            assert slices is not None
            value = value & (slices == self.part)
        return np.maximum(target, 0).astype(np.int64), value.astype(float)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of items, levels first."""

    chosen: tuple[Feature, ...]
    targets: Codes = field(repr=False)  # as in `Rows`
    values: Floats = field(repr=False)  # as in `Rows`
    n_levels: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each feature."""
        return tuple(feature.kind for feature in self.chosen)

    @property
    def systems(self) -> tuple[int, ...]:
        """The places of the systems that the first features are of, one of each group of equal ones."""
        return tuple(feature.system for feature in self.chosen if feature.kind == "system")

    def rows(self, base: Floats, weights: Floats | None = None) -> Rows:
        """The items with these features; weights sum to 1."""
        given = np.ones(len(base)) if weights is None else weights
        return Rows(np.log(base), self.targets, self.values, given / given.sum())


def build_features(
    base: Floats,
    codes: Codes,
    *,
    scores: Floats | None = None,
    positive: int | None = None,
    slices: Codes | None = None,
    with_classes: bool = True,
) -> Features:
    """The features for what systems say, and unless left out for the shares of classes.

    Outputs `codes` are of shape (n_systems, n_items), -1 for none; `scores` are of the positive class, as
    `standard_scores` gives them, of shape (n_scorers, n_items).
    """
    n_items, n_classes = base.shape
    systems = [place for place in first_of_equals(codes) if (codes[place] >= 0).any()]
    constant = {int(codes[place, 0]) for place in systems if (codes[place] == codes[place, 0]).all()}
    chosen = [Feature("system", place) for place in systems]
    has_share = with_classes and n_classes == 2 and not constant
    if has_share:
        chosen.append(Feature("class", code=1))
    n_levels = len(chosen)
    if with_classes and n_classes > 2:
        common = np.sort(np.argsort(-base.sum(axis=0), kind="stable")[:MOST_CLASSES]).tolist()
        chosen += [Feature("class", code=code) for code in common if code not in constant]
        for place in systems if len(systems) * len(common) <= MOST_PARTS else ():
            sizes = np.bincount(np.maximum(codes[place], 0), minlength=n_classes)
            chosen += [Feature("part", place, code) for code in common if _FEWEST_NAMED <= sizes[code] < n_items]
    if slices is not None:
        for part in range(int(slices.max(initial=-1)) + 1):
            inside = slices == part
            chosen += [Feature("part", place, part=part) for place in systems if (inside & (codes[place] >= 0)).any()]
            if has_share:
                chosen.append(Feature("part", code=1, part=part))
    if scores is not None and positive is not None:
        chosen += [Feature("score", place, positive) for place in first_of_equals(scores)]
    return features_of(tuple(chosen), n_levels, codes, scores=scores, slices=slices)


def features_of(
    chosen: tuple[Feature, ...],
    n_levels: int,
    codes: Codes,
    *,
    scores: Floats | None = None,
    slices: Codes | None = None,
) -> Features:
    """Features that were chosen, for some items."""
    columns = [feature.of(codes, scores, slices) for feature in chosen]
    n_items = codes.shape[1]
    targets = np.array([target for target, _ in columns], dtype=np.int64).reshape(len(columns), n_items)
    values = np.array([value for _, value in columns], dtype=float).reshape(len(columns), n_items)
    return Features(chosen, targets, values, n_levels)


def first_of_equals(table: npt.NDArray[Any]) -> list[int]:
    """The places of the rows of a table that equal no earlier one: a copy of a system changes nothing."""
    seen: dict[bytes, int] = {}
    for place, row in enumerate(table):
        seen.setdefault(np.ascontiguousarray(row).tobytes(), place)
    return list(seen.values())


def standard_scores(scores: Floats) -> Floats:
    """Ranks as quantiles of the normal distribution, ties at their middle; 0 where there is no score."""
    given = np.flatnonzero(~np.isnan(scores))
    out = np.zeros(len(scores))
    out[given] = scipy.special.ndtri((scipy.stats.rankdata(scores[given]) - 0.5) / max(len(given), 1))
    return out


def effect_scales(rows: Rows, features: Features, prior: CrowdPrior) -> Floats:
    """The standard deviations of the effects, log-odds; 0 for levels. Shape (n_features,)."""
    variances = np.maximum(rows.variances(), 1e-12)
    chance = np.exp(rows.log_base)
    named = (np.take_along_axis(chance, rows.targets.T, axis=1) * rows.values.T * rows.weights[:, None]).sum(axis=0)
    # An effect of 1 moves the level by its variance over its mass.
    per_angle = angle_slope(named / rows.masses) * rows.masses / variances
    scales = prior.level_scale * per_angle
    kinds = np.array(features.kinds)
    scales[kinds == "part"] *= np.sqrt(prior.part_share)
    is_class = (kinds == "class") & (np.arange(len(kinds)) >= features.n_levels)
    if is_class.any():
        scales[is_class] *= _share_correction(rows, is_class, scales[is_class], prior)
    for k in np.flatnonzero(kinds == "score"):
        scales[k] = _score_scale(chance, rows, int(k), prior)
    scales = np.minimum(scales, LARGEST_EFFECT)
    scales[: features.n_levels] = 0.0
    return scales


def _share_correction(rows: Rows, is_class: Codes, scales: Floats, prior: CrowdPrior) -> float:
    """What the scales of class effects must be multiplied by, since the effects of the others move a share too."""
    chance = np.exp(rows.log_base)[:, rows.targets[is_class, 0]]
    shares = rows.weights @ chance
    covariance = np.diag(shares) - chance.T @ (chance * rows.weights[:, None])
    angles = (covariance * scales) / angle_slope(shares)[:, None]
    return float(prior.level_scale / np.sqrt(np.mean((angles**2).sum(axis=1))))


def _score_scale(chance: Floats, rows: Rows, k: int, prior: CrowdPrior) -> float:
    """The scale of an effect of scores at which the AUC deviates as a level does."""
    score, positive = rows.values[k], int(rows.targets[k, 0])
    p = chance[:, positive]
    odds = np.clip(p, 1e-9, 1 - 1e-9)
    moved = scipy.special.expit(scipy.special.logit(odds) + _AUC_STEP * score)
    here, there = (_expected_auc(score, some, rows.weights) for some in (p, moved))
    slope = abs(float(to_angle(np.array(there)) - to_angle(np.array(here)))) / _AUC_STEP
    return prior.level_scale / max(slope, 1e-3)


def _expected_auc(score: Floats, p: Floats, weights: Floats) -> float:
    """The share of pairs of a positive and a negative item that a score puts in order."""
    order = np.argsort(score, kind="stable")
    value, positive, negative = score[order], (p * weights)[order], ((1 - p) * weights)[order]
    first = np.flatnonzero(np.r_[True, np.diff(value) > 0])
    positive, negative = np.add.reduceat(positive, first), np.add.reduceat(negative, first)
    below = np.cumsum(negative) - negative / 2
    return float(positive @ below / max(positive.sum() * negative.sum(), 1e-300))
