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


@dataclass(frozen=True, eq=False)
class Features:
    """The features of items, levels first.

    Attributes
    ----------
    targets, values
        As in `Rows`.
    n_levels : int
    kinds : tuple of str
        Of each feature: "system", "class", "part" (a slice, or the class that a system names) or "score".
    systems : tuple of int
        The places of the systems that the first features are of, one of each group of equal ones.
    """

    targets: Codes = field(repr=False)
    values: Floats = field(repr=False)
    n_levels: int
    kinds: tuple[str, ...] = ()
    systems: tuple[int, ...] = ()

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
    """The features for what systems say.

    Parameters
    ----------
    base : array of shape (n_items, n_classes)
    codes : integer array of shape (n_systems, n_items)
        The class that each system names, -1 for none. Equal systems count once.
    scores : array of shape (n_scorers, n_items), optional
        Scores of the positive class, NaN for none.
    positive : int, optional
    slices : integer array of shape (n_items,), optional
        -1 for none.
    with_classes : bool
        Whether the shares of classes may differ from what votes say.
    """
    n_items, n_classes = base.shape
    collector = _Collector(n_items)
    places = [place for place in first_of_equals(codes) if (codes[place] >= 0).any()]
    systems = codes[places]
    constant = {int(row[0]) for row in systems if (row == row[0]).all()}
    for row in systems:
        collector.add(row, row >= 0, "system")
    if with_classes and n_classes == 2 and not constant:
        collector.add(np.ones(n_items, dtype=np.int64), np.ones(n_items), "class")
    n_levels = collector.n
    if with_classes and n_classes > 2:
        common = np.sort(np.argsort(-base.sum(axis=0), kind="stable")[:MOST_CLASSES]).tolist()
        for code in common:
            if code not in constant:
                collector.add(np.full(n_items, code), np.ones(n_items), "class")
        for row in systems if len(systems) * len(common) <= MOST_PARTS else ():
            for code in common:
                if _FEWEST_NAMED <= (row == code).sum() < n_items:
                    collector.add(np.full(n_items, code), row == code, "part")
    if slices is not None:
        for part in range(int(slices.max(initial=-1)) + 1):
            for row in systems:
                inside = (slices == part) & (row >= 0)
                if inside.any():
                    collector.add(row, inside, "part")
            if with_classes and n_classes == 2 and not constant:
                collector.add(np.ones(n_items, dtype=np.int64), slices == part, "part")
    if scores is not None and positive is not None:
        for row in scores[first_of_equals(scores)]:
            collector.add(np.full(n_items, positive), standard_scores(row), "score")
    kinds = tuple(collector.kinds)
    return Features(np.array(collector.targets), np.array(collector.values), n_levels, kinds, tuple(places))


class _Collector:
    """Features as they are added."""

    def __init__(self, n_items: int) -> None:
        self.targets: list[Codes] = []
        self.values: list[Floats] = []
        self.kinds: list[str] = []
        self.n_items = n_items

    @property
    def n(self) -> int:
        """Number of features."""
        return len(self.kinds)

    def add(self, target: Codes, value: npt.NDArray[Any], kind: str) -> None:
        """Add one."""
        self.targets.append(np.maximum(target, 0).astype(np.int64))
        self.values.append(np.asarray(value, dtype=float))
        self.kinds.append(kind)


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
