"""Draws of each labeler's confusion matrix, and of what is read from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from trueup.labelers.channel import Floats
from trueup.labelers.outcomes import entropy
from trueup.labels import Labels
from trueup.noise.base import NoiseModel
from trueup.noise.gibbs import sample
from trueup.noise.registry import fit

__all__ = ["LabelerDraws", "draw_labelers", "draw_truths", "spam_share"]

_SAMPLED = ("dawid-skene", "one-coin", "subtypes")
_RIGHT = 3.0  # pseudo-votes for the right answer, 1 for the others: the prior of the sampler of Dawid–Skene
_CELLS = 2_000_000  # votes times draws that are counted at once
_WORTH = 1.0  # pseudo-votes of a row, shared by all answers (Perks): the sampler's own prior pulls accuracies too far


@dataclass(frozen=True, eq=False)
class LabelerDraws:
    """Draws of what a labeler is like; arrays are (n_draws, n_labelers), the bias has n_classes more."""

    accuracy: Floats
    information: Floats
    bias: Floats
    spam: Floats
    spam_probability: Floats


def draw_truths(
    labels: Labels, noise: str | NoiseModel, *, n_draws: int, rng: np.random.Generator
) -> npt.NDArray[np.int16]:
    """Draws of the truth of all items given all votes, shape (at most n_draws, n_items)."""
    alias = noise.lower().replace("_", "-") if isinstance(noise, str) else noise.alias
    if alias in _SAMPLED:
        drawn = sample(labels, alias, n_warmup=500, n_draws=500, random_state=rng, warn=False)
        if not drawn.converged:
            drawn = sample(labels, alias, n_warmup=2000, n_draws=4000, random_state=rng)
        kept = np.linspace(0, len(drawn.truths) - 1, min(n_draws, len(drawn.truths))).astype(np.int64)
        return drawn.truths[kept]
    model = fit(labels, noise) if isinstance(noise, str) or not hasattr(noise, "prior_") else noise
    cumulative = model.posterior(labels)[:, :-1].cumsum(axis=1)
    return np.stack(
        [(cumulative < rng.random((labels.n_items, 1))).sum(axis=1).astype(np.int16) for _ in range(n_draws)]
    )


def draw_labelers(
    labels: Labels, noise: str | NoiseModel, *, n_draws: int, spam_prior: float, rng: np.random.Generator
) -> LabelerDraws:
    """Draw truths, then matrices given truths, and read accuracy, information, bias and spam from them."""
    truths = draw_truths(labels, noise, n_draws=n_draws, rng=rng)
    shape = (len(truths), labels.n_labelers)
    accuracy, information, spam = np.empty(shape), np.empty(shape), np.empty(shape)
    bias = np.empty((*shape, labels.n_classes))
    log_factor = np.empty(shape)
    base = np.ones((labels.n_classes, labels.n_answers))
    base[np.arange(labels.n_classes), np.arange(labels.n_classes)] = _RIGHT
    size = max(1, _CELLS // max(labels.votes.nnz, 1))
    for start in range(0, len(truths), size):
        block = slice(start, min(start + size, len(truths)))
        counts = _confusion_counts(labels, truths[block])
        gamma = rng.standard_gamma(counts + _WORTH / labels.n_answers)
        theta = gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), 1e-300)
        in_class = np.stack([(truths[block] == y).sum(axis=1) for y in range(labels.n_classes)], axis=1)
        gamma = rng.standard_gamma(1.0 + in_class)
        prior = gamma / gamma.sum(axis=1, keepdims=True)
        accuracy[block], bias[block] = _accuracy_and_bias(theta, prior)
        information[block] = _information(theta, prior)
        spam[block] = spam_share(theta)
        log_factor[block] = _log_spam_factor(counts, base)
    # The Bayes factor is the mean over truths drawn under the hypothesis that answers depend on the truth.
    log_odds = np.log(spam_prior / (1 - spam_prior)) + logsumexp(log_factor, axis=0) - np.log(len(truths))
    probability = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    is_spam = rng.random(shape) < probability
    spam[is_spam], information[is_spam] = 1.0, 0.0
    return LabelerDraws(accuracy, information, bias, spam, probability)


def _confusion_counts(labels: Labels, truths: npt.NDArray[np.int16]) -> Floats:
    """How often each labeler gave each answer to items of each class; (draws, labelers, classes, answers)."""
    item, labeler, answer, times = labels.vote_table()
    shape = (len(truths), labels.n_labelers, labels.n_classes, labels.n_answers)
    draw = np.arange(len(truths))[:, None]
    cell = np.ravel_multi_index((draw, labeler, truths[:, item].astype(np.int64), answer), shape)
    weights = np.broadcast_to(times, cell.shape).ravel()
    return np.bincount(cell.ravel(), weights, int(np.prod(shape))).astype(float).reshape(shape)


def _accuracy_and_bias(theta: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Among answers that name a class: the chance of a right one, and answered less true shares.

    `theta` is (..., labelers, classes, answers) and `prior` (..., classes).
    """
    joint = prior[..., None, :, None] * theta[..., : prior.shape[-1]]
    joint = joint / np.maximum(joint.sum(axis=(-2, -1), keepdims=True), 1e-300)
    return np.einsum("...yy->...", joint), joint.sum(axis=-2) - joint.sum(axis=-1)


def _information(theta: Floats, prior: Floats) -> Floats:
    """Bits of one vote of each labeler; shapes as above."""
    joint = prior[..., None, :, None] * theta
    told = entropy(joint.sum(axis=-1)) + entropy(joint.sum(axis=-2))
    return np.asarray(np.maximum(told - entropy(joint.reshape(*joint.shape[:-2], -1)), 0.0))


def spam_share(confusion: npt.ArrayLike) -> Floats:
    """The largest share of votes that could be given without looking: λ = Σ_a min_y θ[y, a].

    The largest λ with θ = (1 − λ) Q + λ 1rᵀ for a confusion matrix Q and a distribution r of answers, since λ r[a] can
    be at most min_y θ[y, a] (Doeblin's coefficient). For two classes 1 − λ is how far the two rows are apart.

    Parameters
    ----------
    confusion : array of shape (..., n_classes, n_answers)

    Examples
    --------
    >>> spam_share([[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.7, 0.3]]]).round(3).tolist()
    [0.2, 1.0]
    """
    return np.asarray(np.asarray(confusion, dtype=float).min(axis=-2).sum(axis=-1))


def _log_spam_factor(counts: Floats, base: Floats) -> Floats:
    """Log p(votes | truth, answers ignore the truth) − log p(votes | truth, they depend on it), of each labeler."""
    return np.asarray(
        _log_evidence(counts.sum(axis=-2), np.ones(counts.shape[-1])) - _log_evidence(counts, base).sum(axis=-1)
    )


def _log_evidence(counts: Floats, prior: Floats) -> Floats:
    """Log-probability of a sequence of answers under a Dirichlet prior, along the last axis."""
    each = gammaln(counts + prior).sum(axis=-1) - gammaln(prior).sum(axis=-1)
    return np.asarray(each + gammaln(prior.sum(axis=-1)) - gammaln((counts + prior).sum(axis=-1)))
