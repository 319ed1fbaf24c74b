"""Draws of what labelers are like: truths first, then matrices given truths, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from trueup._base.types import Booleans, Codes, Floats
from trueup.data.labels import Labels
from trueup.data.votes import shared_votes
from trueup.estimators.problem import draw_categories
from trueup.estimators.truth import not_mixed
from trueup.labelers.channel import entropy
from trueup.noise import kernels
from trueup.noise.base import NoiseModel
from trueup.noise.registry import fit, resolve
from trueup.noise.sampling import sample

_RIGHT = 3.0  # pseudo-votes for the right answer, 1 for the others: the prior of the sampler of Dawid–Skene
_CELLS = 2_000_000  # votes times draws that are counted at once
_FIRST_RUN = 0.15  # of the time of two, where chains of the first have not mixed
_LEAST = 1e-6  # chance of a right and of a wrong answer
_FURTHEST, _HALVINGS = 30.0, 32  # of log odds, and of the interval in which they are looked for
_WORTH = 1.0  # pseudo-votes of a row, shared by all answers (Perks): the sampler's own prior pulls accuracies too far
# Votes that what a labeler is like elsewhere counts for within a slice: how many is learned from how slices differ.
_BORROWED = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 300.0, 1000.0])


@dataclass(frozen=True, eq=False)
class LabelerDraws:
    """Draws of what a labeler is like; arrays are (n_draws, n_labelers), the bias has n_classes more."""

    accuracy: Floats
    information: Floats
    bias: Floats
    spam: Floats
    spam_probability: Floats

    def fill(self, block: slice, joint: Floats) -> None:
        """Set some of the draws from P(class, answer), shape (n, labelers, classes, answers)."""
        self.accuracy[block], self.bias[block] = _accuracy_and_bias(joint)
        self.information[block] = _information(joint)
        self.spam[block] = spam_share(joint / np.maximum(joint.sum(axis=-1, keepdims=True), 1e-300))


def draw_truths(
    labels: Labels,
    noise: str | NoiseModel,
    *,
    n_draws: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> tuple[Codes, tuple[str, ...]]:
    """Draws of the truth of all items given all votes, shape (at most n_draws, n_items); and what to say of them."""
    model = resolve(noise)
    if model.can_be_drawn:
        draw = partial(sample, labels, model, one_witness=True, random_state=rng)
        if kernels.engine_for_chains() == "scipy":  # a second run would take minutes
            drawn = draw(n_warmup=400, n_draws=800, progress=progress)
        else:
            drawn = draw(n_warmup=500, n_draws=500, warn=False, progress=_from_to(0.0, _FIRST_RUN, progress))
            if not drawn.converged:
                drawn = draw(n_warmup=2000, n_draws=4000, progress=_from_to(_FIRST_RUN, 1.0, progress))
            elif progress is not None:
                progress(1.0)
        kept = np.linspace(0, len(drawn.truths) - 1, min(n_draws, len(drawn.truths))).astype(np.int64)
        return drawn.truths[kept], () if drawn.converged else ((not_mixed(drawn.rhat, drawn.ess)),)
    fitted = model if model.is_fitted else fit(labels, model)
    return draw_categories(fitted.posterior(labels), n_draws, rng), ()


def _from_to(first: float, last: float, progress: Callable[[float], None] | None) -> Callable[[float], None] | None:
    """Progress of a part of the work as that of the whole."""
    return None if progress is None else lambda share: progress(first + (last - first) * share)


def labeler_draws(
    labels: Labels,
    truths: Codes,
    *,
    spam_prior: float,
    rng: np.random.Generator,
    slices: Codes | None = None,
    moves: Sequence[Floats] | None = None,
    spam_truths: Codes | None = None,
) -> list[LabelerDraws]:
    """What labelers are like on all items and then, if there are some, in each slice, for drawn truths."""
    n_slices = 0 if slices is None else int(slices.max(initial=-1)) + 1
    sizes = (labels.n_labelers, labels.n_classes, labels.n_answers)
    parts = [np.ones(labels.n_items, dtype=np.bool_), *(np.asarray(slices == k) for k in range(n_slices))]

    def tally(drawn: Codes, part: Booleans) -> Tally:
        return Tally(_confusion_counts(labels, drawn, part), _class_counts(drawn[:, part], labels.n_classes))

    def count(block: slice) -> list[Tally]:
        return [tally(truths[block], part) for part in parts]

    rows = max(1, _CELLS // max(labels.votes.nnz, int(np.prod(sizes)), 1))
    spam_factor = None
    if spam_truths is not None:
        blocks = np.array_split(spam_truths, -(-len(spam_truths) // rows))
        spam_factor = np.concatenate([log_spam_factor(_confusion_counts(labels, one, parts[0])) for one in blocks])
    return draws_of_tallies(
        count,
        sizes,
        n_draws=len(truths),
        n_parts=len(parts),
        rows=rows,
        spam_prior=spam_prior,
        rng=rng,
        moves=moves,
        spam_factor=spam_factor,
    )


@dataclass(frozen=True, eq=False)
class Tally:
    """What labelers said of items of each class, in some draws of the truth."""

    votes: Floats  # (n_draws, n_labelers, n_classes, n_answers)
    items: Floats  # (n_draws, n_classes)


def draws_of_tallies(
    count: Callable[[slice], list[Tally]],
    sizes: tuple[int, int, int],
    *,
    n_draws: int,
    n_parts: int = 1,
    rows: int,
    spam_prior: float,
    rng: np.random.Generator,
    moves: Sequence[Floats] | None = None,
    spam_factor: Floats | None = None,
) -> list[LabelerDraws]:
    """What labelers are like on all items and then in each slice, given what they said of items of each class."""
    n_labelers, n_classes, n_answers = sizes
    shape = (n_draws, n_labelers)
    parts = [
        LabelerDraws(
            np.empty(shape), np.empty(shape), np.empty((*shape, n_classes)), np.empty(shape), np.empty(n_labelers)
        )
        for _ in range(n_parts)
    ]

    def fill(part: int, block: slice, theta: Floats, items: Floats) -> None:
        joint = _joint(theta, _dirichlet(1.0 + items, rng))
        parts[part].fill(block, joint if moves is None else _moved(joint, moves[part][block]))

    log_factor = np.empty(shape) if spam_factor is None else spam_factor
    for start in range(0, n_draws, rows):
        block = slice(start, min(start + rows, n_draws))
        everywhere, *of_slices = count(block)
        theta = _dirichlet(everywhere.votes + _WORTH / n_answers, rng)
        fill(0, block, theta, everywhere.items)
        if spam_factor is None:
            log_factor[block] = log_spam_factor(everywhere.votes)
        if of_slices:
            mean = np.maximum(theta, 1e-6)
            worth = _draw_borrowed([one.votes for one in of_slices], mean, rng)[:, :, None, None]
            for k, of_slice in enumerate(of_slices, start=1):
                fill(k, block, _dirichlet(of_slice.votes + worth * mean, rng), of_slice.items)
    # The Bayes factor is the mean over truths drawn under the hypothesis that answers depend on the truth.
    log_odds = np.log(spam_prior / (1 - spam_prior)) + logsumexp(log_factor, axis=0) - np.log(len(log_factor))
    probability = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    is_spam = rng.random(shape) < probability
    for part in parts:
        part.spam[is_spam], part.information[is_spam] = 1.0, 0.0
    return [replace(part, spam_probability=probability) for part in parts]


def _dirichlet(weights: Floats, rng: np.random.Generator) -> Floats:
    """Draws of distributions along the last axis."""
    gamma = rng.standard_gamma(weights)
    return np.asarray(gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), 1e-300))


def _class_counts(truths: Codes, n_classes: int) -> Floats:
    """How many items are of each class in each drawn truth."""
    return np.stack([(truths == y).sum(axis=1) for y in range(n_classes)], axis=1).astype(float)


def _draw_borrowed(counts: list[Floats], mean: Floats, rng: np.random.Generator) -> Floats:
    """How many votes their matrix of all items is worth in a slice, of each draw and labeler."""
    logs = np.stack(
        [sum(_log_evidence(part, worth * mean).sum(axis=2) for part in counts) for worth in _BORROWED], axis=-1
    )
    upto = np.cumsum(np.exp(logs - logsumexp(logs, axis=-1, keepdims=True)), axis=-1)
    return np.asarray(_BORROWED[(rng.random((*logs.shape[:-1], 1)) > upto[..., :-1]).sum(axis=-1)])


def _confusion_counts(labels: Labels, truths: Codes, members: Booleans) -> Floats:
    """How often each labeler gave each answer to items of each class; (draws, labelers, classes, answers).

    Several votes of a labeler on an item count for one together.
    """
    item, labeler, answer, _ = labels.vote_table()
    inside = np.flatnonzero(members[item])
    times = shared_votes(labels).data[inside]
    item, labeler, answer = item[inside], labeler[inside], answer[inside]
    shape = (len(truths), labels.n_labelers, labels.n_classes, labels.n_answers)
    draw = np.arange(len(truths))[:, None]
    cell = np.ravel_multi_index((draw, labeler, truths[:, item].astype(np.int64), answer), shape)
    weights = np.broadcast_to(times, cell.shape).ravel()
    return np.bincount(cell.ravel(), weights, int(np.prod(shape))).astype(float).reshape(shape)


def _joint(theta: Floats, prior: Floats) -> Floats:
    """P(class, answer) from matrices, shape (..., labelers, classes, answers), and class shares, (..., classes)."""
    return np.asarray(prior[..., None, :, None] * theta)


def _accuracy_and_bias(joint: Floats) -> tuple[Floats, Floats]:
    """Among answers that name a class: the chance of a right one, and answered less true shares."""
    named = joint[..., : joint.shape[-2]]
    named = named / np.maximum(named.sum(axis=(-2, -1), keepdims=True), 1e-300)
    return np.einsum("...yy->...", named), named.sum(axis=-2) - named.sum(axis=-1)


def _moved(joint: Floats, moves: Floats) -> Floats:
    """P(class, answer) with accuracies that are off by so much, for the same answers."""
    n_classes = joint.shape[-2]
    diagonal = np.arange(n_classes)
    named = joint[..., :n_classes]
    answered = np.maximum(named.sum(axis=-2), 1e-300)
    share = answered / answered.sum(axis=-1, keepdims=True)
    right = np.clip(named[..., diagonal, diagonal] / answered, _LEAST, 1 - _LEAST)
    wanted = np.clip((share * right).sum(axis=-1) + moves, _LEAST, 1 - _LEAST)
    odds = right / (1 - right)
    low, high = np.full(moves.shape, -_FURTHEST), np.full(moves.shape, _FURTHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        new = 1 / (1 + np.exp(-middle)[..., None] / odds)
        is_low = (share * new).sum(axis=-1) < wanted
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    moved = joint.copy()
    moved[..., :n_classes] *= ((1 - new) / (1 - right))[..., None, :]
    moved[..., diagonal, diagonal] = new * answered
    return moved


def _information(joint: Floats) -> Floats:
    """Bits of one vote of each labeler."""
    separate = entropy(joint.sum(axis=-1)) + entropy(joint.sum(axis=-2))
    return np.asarray(np.maximum(separate - entropy(joint.reshape(*joint.shape[:-2], -1)), 0.0))


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


def log_spam_factor(counts: Floats) -> Floats:
    """Log p(votes | truth, answers ignore the truth) − log p(votes | truth, they depend on it), of each labeler."""
    base = np.ones(counts.shape[-2:])
    base[np.arange(len(base)), np.arange(len(base))] = _RIGHT
    return np.asarray(
        _log_evidence(counts.sum(axis=-2), np.ones(counts.shape[-1])) - _log_evidence(counts, base).sum(axis=-1)
    )


def _log_evidence(counts: Floats, prior: Floats) -> Floats:
    """Log-probability of a sequence of answers under a Dirichlet prior, along the last axis."""
    each = gammaln(counts + prior).sum(axis=-1) - gammaln(prior).sum(axis=-1)
    return np.asarray(each + gammaln(prior.sum(axis=-1)) - gammaln((counts + prior).sum(axis=-1)))
