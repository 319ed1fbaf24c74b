"""Probabilities of classes corrected by items whose class somebody checked.

A log-linear correction of what a model says, with a prior on its coefficients: few checked items leave the model
nearly as it is, many overrule it. Where each quantity that is summed up later is a feature, more checked items leave
no bias, however wrong the model is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, gammaln, log_softmax, logsumexp, softmax

from trueup._base.types import Codes, Floats, Positions

_NEWTON_STEPS = 40
_CANDIDATES = 2000
_CANDIDATES_BLOCK = 5_000_000  # numbers held at once for them
_FREEDOM = 8.0  # of the Student law that they come from
_LEAST_EFFECTIVE = 200  # of the candidates; with many coefficients hardly one is likely, and draws are moved instead
_SMALLEST_ARC = 1e-8
_MOVES = 8  # each forgets about half of where a draw came from
_BLOCK = 1_000_000  # numbers held at once


@dataclass(frozen=True, eq=False)
class Recalibration:
    """What a model says of all items, and the features by which it can be corrected.

    Attributes
    ----------
    offset : array of shape (n_items, n_classes)
        Log P(class), finite, up to a constant for each item.
    features : array of shape (n_items, n_classes, n_features)
    mean, scale : arrays of shape (n_features,)
        Means and standard deviations of the normal prior of the coefficients.
    """

    offset: Floats
    features: Floats
    mean: Floats
    scale: Floats

    def with_groups(self, groups: Codes, scale: float) -> Recalibration:
        """With an effect of each group of items on every class but the first.

        Parameters
        ----------
        groups : integer array of shape (n_items,)
            -1 for an item in none.
        scale : float
            The standard deviation of the effects: groups with few vetted items borrow from the rest.
        """
        n_groups = int(groups.max(initial=-1)) + 1
        return self._with_features((groups[:, None] == np.arange(n_groups)).astype(float), scale)

    def with_covariate(self, values: Floats, scale: float) -> Recalibration:
        """With an effect of a number that is known of each item on every class but the first."""
        return self._with_features(values[:, None], scale)

    def _with_features(self, values: Floats, scale: float) -> Recalibration:
        """With effects of features of the items, shape (n_items, n), on every class but the first."""
        n_items, n_classes = self.offset.shape
        added = np.zeros((n_items, n_classes, values.shape[1], n_classes - 1))
        for y in range(1, n_classes):
            added[:, y, :, y - 1] = values
        added = added.reshape(n_items, n_classes, -1)
        n_added = added.shape[2]
        return Recalibration(
            self.offset,
            np.concatenate([self.features, added], axis=2),
            np.append(self.mean, np.zeros(n_added)),
            np.append(self.scale, np.full(n_added, scale)),
        )

    def probabilities(self, coefficients: Floats) -> Floats:
        """P(class) of each item, shape (n_items, n_classes)."""
        return np.asarray(softmax(self.offset + self.features @ coefficients, axis=1))

    def cumulative(self, draws: Floats) -> Floats:
        """P(class or one before it) but for the last class, shape (n_draws, n_items, n_classes - 1)."""
        n_items, n_classes = self.offset.shape
        if n_classes == 2:
            first, second = self.features[:, 0], self.features[:, 1]
            return np.asarray(expit(draws @ (first - second).T + (self.offset[:, 0] - self.offset[:, 1])))[:, :, None]
        # Classes before items, so that sums over classes run along whole rows of items.
        flat = np.moveaxis(self.features, 1, 0).reshape(-1, len(self.scale))
        heights = (draws @ flat.T + self.offset.T.ravel()).reshape(len(draws), n_classes, n_items)
        heights -= heights.max(axis=1, keepdims=True)
        np.exp(heights, out=heights)
        for c in range(1, n_classes):
            heights[:, c] += heights[:, c - 1]
        heights[:, :-1] /= heights[:, -1:]
        return np.moveaxis(heights[:, :-1], 1, 2)


@dataclass(frozen=True, eq=False)
class RecalibrationDraws:
    """The coefficients: their mode and draws, shape (n_draws, n_features), worth `effective` independent ones.

    The logarithm of the evidence is that of what was vetted, up to a constant for each number of features.
    """

    mode: Floats
    draws: Floats
    effective: float
    log_evidence: float = np.nan


def recalibrate(
    model: Recalibration,
    positions: Positions,
    truth: Codes,
    weights: Floats,
    *,
    n_draws: int,
    rng: np.random.Generator | None = None,
) -> RecalibrationDraws:
    """Learn the coefficients from vetted items.

    Parameters
    ----------
    positions, truth : integer arrays of shape (n_vetted,)
        The vetted items and their classes.
    weights : array of shape (n_vetted,)
        What each counts for; that of items that were likely to be asked is small.
    n_draws : int
        0 for the mode alone.
    """
    offset = model.offset[positions]
    x = model.features[positions]
    precision = model.scale**-2.0
    at = np.arange(len(positions))

    def height(w: Floats) -> float:
        logs = log_softmax(offset + x @ w, axis=1)
        return float(weights @ logs[at, truth] - 0.5 * precision @ (w - model.mean) ** 2)

    w = model.mean.astype(float)
    value = height(w)
    information = np.diag(precision)
    for _ in range(_NEWTON_STEPS):
        p = softmax(offset + x @ w, axis=1)
        mean = np.einsum("nc,ncf->nf", p, x)
        gradient = weights @ (x[at, truth] - mean) - precision * (w - model.mean)
        flat = x.reshape(-1, len(w))
        information = flat.T @ (flat * (weights[:, None] * p).reshape(-1, 1)) - mean.T @ (mean * weights[:, None])
        information += np.diag(precision)
        step = np.linalg.solve(information, gradient)
        while height(w + step) < value - 1e-12 and np.abs(step).max() > 1e-10:
            step = step / 2
        w = w + step
        new = height(w)
        if new - value < 1e-9:
            break
        value = new
    if not n_draws or rng is None:
        return RecalibrationDraws(w, w[None], np.inf)
    factor = np.linalg.cholesky(information)
    # Against the class that was named: for two classes one number for each answer, and no sum over classes.
    others = (truth[:, None] + np.arange(1, offset.shape[1])) % offset.shape[1]
    beyond = np.take_along_axis(offset, others, axis=1) - offset[at, truth][:, None]
    apart = (np.take_along_axis(x, others[:, :, None], axis=1) - x[at, truth][:, None]).reshape(-1, len(w))
    rows = max(1, _CANDIDATES_BLOCK // max(offset.size, 1))

    def coefficients(standard: Floats) -> Floats:
        """Those that lie so many standard deviations from the mode."""
        return np.asarray(w + solve_triangular(factor, standard.T, lower=True, trans="T").T)

    def log_posterior(some: Floats) -> Floats:
        log_likelihood = [
            -_log_one_plus((part @ apart.T).reshape(len(part), *beyond.shape) + beyond) @ weights
            for part in (some[k : k + rows] for k in range(0, len(some), rows))
        ]
        return np.asarray(np.concatenate(log_likelihood) - 0.5 * (some - model.mean) ** 2 @ precision)

    n_features = len(w)
    normal = rng.standard_normal((n_features, _CANDIDATES)).T
    standard = normal * np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, _CANDIDATES))[:, None]
    candidates = coefficients(standard)
    log_proposal = -0.5 * (_FREEDOM + n_features) * np.log1p((standard**2).sum(axis=1) / _FREEDOM)
    log_weight = log_posterior(candidates) - log_proposal
    chance = np.exp(log_weight - logsumexp(log_weight))
    effective = float(1 / (chance**2).sum())
    log_volume = -np.log(model.scale).sum() - np.log(np.diag(factor)).sum()
    if effective >= _LEAST_EFFECTIVE:
        chosen = rng.choice(_CANDIDATES, size=n_draws, p=chance)
        log_evidence = logsumexp(log_weight) + log_volume - _log_mass_of_proposal(n_features)
        return RecalibrationDraws(w, candidates[chosen], effective, float(log_evidence))
    moved = _moved_draws(lambda some: log_posterior(coefficients(some)), n_features, n_draws, rng)
    return RecalibrationDraws(w, coefficients(moved), float(n_draws), float(value + log_volume))


def _log_mass_of_proposal(n_features: int) -> float:
    """What the logarithm of the evidence from candidates has beyond that of a normal law about the mode."""
    beyond = gammaln((_FREEDOM + n_features) / 2) - gammaln(_FREEDOM / 2) - 0.5 * n_features * np.log(_FREEDOM / 2)
    return float(np.log(_CANDIDATES) + beyond)


def _moved_draws(
    log_posterior: Callable[[Floats], Floats], n_features: int, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Draws of standardised coefficients by elliptical slices (Murray, Adams and MacKay 2010), all side by side.

    Each starts from the normal law about the mode, which is nearly right, and is moved a few times: whatever is not
    normal about the posterior is met exactly.
    """

    def log_ratio(some: Floats) -> Floats:
        """Of the posterior to that normal law."""
        return np.asarray(log_posterior(some) + 0.5 * (some**2).sum(axis=1))

    draws = rng.standard_normal((n_draws, n_features))
    heights = log_ratio(draws)
    for _ in range(_MOVES):
        other = rng.standard_normal(draws.shape)
        least = heights + np.log(rng.random(n_draws))
        angle = rng.uniform(0, 2 * np.pi, n_draws)
        low, high = angle - 2 * np.pi, angle.copy()
        start, left = draws.copy(), np.arange(n_draws)
        while len(left):
            proposed = start[left] * np.cos(angle[left])[:, None] + other[left] * np.sin(angle[left])[:, None]
            new = log_ratio(proposed)
            # An angle of nearly zero is where the draw is already: it stays there.
            is_taken = (new > least[left]) | (high[left] - low[left] < _SMALLEST_ARC)
            draws[left[is_taken]], heights[left[is_taken]] = proposed[is_taken], new[is_taken]
            left = left[~is_taken]
            is_low = angle[left] < 0
            low[left[is_low]], high[left[~is_low]] = angle[left[is_low]], angle[left[~is_low]]
            angle[left] = rng.uniform(low[left], high[left])
    return draws


def recalibrate_with_groups(
    model: Recalibration,
    groups: Codes,
    scales: Floats,
    log_prior: Floats,
    positions: Positions,
    truth: Codes,
    weights: Floats,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[Recalibration, RecalibrationDraws]:
    """The model with effects of groups, and its coefficients; how much groups differ is learned, too.

    Parameters
    ----------
    groups : integer array of shape (n_items,)
    scales, log_prior : arrays of shape (n,)
        What the standard deviation of the effects may be, and the logarithms of its prior probabilities.
    """
    models = [model.with_groups(groups, float(scale)) for scale in scales]
    learned = [recalibrate(one, positions, truth, weights, n_draws=n_draws, rng=rng) for one in models]
    chances = np.asarray(softmax(log_prior + np.array([one.log_evidence for one in learned])))
    counts = rng.multinomial(n_draws, chances)
    draws = np.concatenate([one.draws[:n] for one, n in zip(learned, counts, strict=True)])
    likeliest = int(chances.argmax())
    effective = float(np.sum([c * one.effective for c, one in zip(chances, learned, strict=True)]))
    return models[likeliest], RecalibrationDraws(learned[likeliest].mode, rng.permutation(draws), effective)


def _log_one_plus(heights: Floats) -> Floats:
    """log(1 + Σ exp) over the last axis."""
    if heights.shape[-1] == 1:
        return np.asarray(np.logaddexp(0.0, heights[..., 0]))
    most = np.maximum(heights.max(axis=-1), 0.0)
    return np.asarray(most + np.log(np.exp(-most) + np.exp(heights - most[..., None]).sum(axis=-1)))


def draw_classes(model: Recalibration, coefficients: Floats, *, each: int = 1, rng: np.random.Generator) -> Codes:
    """Classes of all items, `each` times for each row of coefficients, shape (n_rows · each, n_items)."""
    classes = np.zeros((len(coefficients) * each, len(model.offset)), dtype=np.int16)
    block = max(1, _BLOCK // max(model.offset.size, 1))
    held = np.empty(min(block, len(coefficients)) * each * len(model.offset))  # new memory for each block takes longer
    for first in range(0, len(coefficients), block):
        upto = np.moveaxis(model.cumulative(coefficients[first : first + block]), 2, 0)
        rows = classes[first * each : (first + block) * each].reshape(-1, each, len(model.offset))
        uniform = rng.random(out=held[: rows.size]).reshape(rows.shape)
        for chance in upto:
            rows += uniform >= chance[:, None]
    return classes
