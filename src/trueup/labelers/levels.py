"""How accurate labelers are: each as a system judged by the votes of the others, and by checked items.

The level of a labeler is the mean of P(their vote is right) over their votes. What the others' votes let expect of it
is off as it is on real sets (`trueup.core.prior`), and checked items correct it by the formula of the core for one
system:

    logit P(right_i) = a + b x_i,   x_i = logit of the base at their vote,   a such that the mean is the level.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, gammaincinv, log_expit, logit, ndtri

from trueup._base.types import Booleans, Codes, Floats
from trueup.core.prior import CrowdPrior, from_angle, to_angle
from trueup.core.truth import LabelersApart, drawn_gold, labels_of_base
from trueup.data.labels import Labels
from trueup.data.votes import shared_votes

_ANGLES = np.linspace(0.01, np.pi / 2 - 0.01, 61)
_SLOPES = ndtri((np.arange(7) + 0.5) / 7)  # standard normal
_BISECTIONS = 40
_FAR = 40.0  # log-odds
_MOST_ROWS = 200  # votes that stand for all of a labeler's where the level is solved for


@dataclass(frozen=True, eq=False)
class Levels:
    """Accuracies of labelers."""

    expected: Floats  # (n_labelers,)
    draws: Floats = field(repr=False)  # (n_draws, n_labelers)
    n_checked: Codes  # (n_labelers,)
    n_right: Codes  # (n_labelers,)


def labeler_levels(
    labels: Labels,
    apart: LabelersApart,
    places: Codes,
    prior: CrowdPrior,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> Levels:
    """The accuracy of every labeler on some of the items.

    Parameters
    ----------
    labels : Labels
    apart : LabelersApart
        Of all votes.
    places : integer array
        The items.
    prior : CrowdPrior
    n_draws : int
    rng : Generator
    """
    drawn = drawn_gold(labels)
    item, labeler, answer, _ = labels.vote_table()
    shares = shared_votes(labels).data
    is_in = np.zeros(labels.n_items, dtype=bool)
    is_in[places] = True
    kept = np.flatnonzero((answer < labels.n_classes) & is_in[item])
    order = kept[np.argsort(labeler[kept], kind="stable")]
    starts = np.searchsorted(labeler[order], np.arange(labels.n_labelers + 1))
    expected = np.full(labels.n_labelers, np.nan)
    draws = np.full((n_draws, labels.n_labelers), np.nan)
    n_checked, n_right = np.zeros((2, labels.n_labelers), dtype=np.int64)
    for t in range(labels.n_labelers):
        votes = order[starts[t] : starts[t + 1]]
        if not len(votes):
            continue
        chances = apart.base(t, item[votes])[np.arange(len(votes)), answer[votes]]
        expected[t] = np.average(chances, weights=shares[votes])
        checked = drawn[item[votes]] >= 0
        right = drawn[item[votes]] == answer[votes]
        n_checked[t], n_right[t] = len(np.unique(item[votes[checked]])), int((right & checked).sum())
        if n_checked[t]:
            draws[:, t] = draw_checked_level(logit(chances), shares[votes], checked, right, prior, n_draws, rng)
        else:
            draws[:, t] = draw_level(float(expected[t]), prior, n_draws, rng)
    return Levels(expected, draws, n_checked, n_right)


def prepare_levels(labels: Labels) -> LabelersApart:
    """What all votes but those of one labeler say, with gold that somebody chose as known."""
    return LabelersApart(labels_of_base(labels))


def draw_level(expected: float, prior: CrowdPrior, n_draws: int, rng: np.random.Generator) -> Floats:
    """Draws of a level without any checked vote."""
    angle = to_angle(np.asarray(expected)) + prior.level_scale * _student(prior.degrees, n_draws, rng)
    return from_angle(angle)


def _student(degrees: float, n: int, rng: np.random.Generator) -> Floats:
    """Draws of Student's t, one in each of n even parts."""
    parts = (rng.permutation(n) + rng.random(n)) / n
    scale = 2 * gammaincinv(degrees / 2, np.clip(rng.random(n), 1e-9, 1 - 1e-9)) / degrees
    return np.asarray(ndtri(np.clip(parts, 1e-9, 1 - 1e-9)) / np.sqrt(scale))


def draw_checked_level(
    x: Floats,
    weights: Floats,
    checked: Booleans,
    right: Booleans,
    prior: CrowdPrior,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draws of a level given right and wrong votes on checked items, by a grid of levels and slopes."""
    order = np.argsort(x, kind="stable")
    upto = np.cumsum(weights[order])
    n = min(len(x), _MOST_ROWS)
    stands = x[order[np.minimum(np.searchsorted(upto, (np.arange(n) + 0.5) / n * upto[-1]), len(x) - 1)]]
    slopes = prior.slope + prior.slope_scale * _SLOPES
    wanted = from_angle(_ANGLES)
    heights = slopes[:, None] * stands  # slopes × rows
    low = np.full((len(slopes), len(wanted)), -_FAR)
    high = -low
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_low = expit(heights[:, None] + middle[..., None]).mean(axis=2) < wanted
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    odds = (low + high)[..., None] / 2 + slopes[:, None, None] * x[checked]
    log_likelihood = np.where(right[checked], log_expit(odds), log_expit(-odds)) @ weights[checked]
    centre = to_angle(np.asarray(np.average(expit(x), weights=weights)))
    distance = (_ANGLES - centre) / prior.level_scale
    log_prior = -0.5 * (prior.degrees + 1) * np.log1p(distance**2 / prior.degrees)
    mass = np.exp(log_likelihood + log_prior - (log_likelihood + log_prior).max())
    upto = np.cumsum(mass.sum(axis=0))
    drawn = np.searchsorted(upto, (rng.permutation(n_draws) + rng.random(n_draws)) / n_draws * upto[-1])
    step = _ANGLES[1] - _ANGLES[0]
    return from_angle(_ANGLES[np.minimum(drawn, len(_ANGLES) - 1)] + step * (rng.random(n_draws) - 0.5))
