"""What labelers are like, from votes in memory or in files.

Of votes in files nothing is kept of an item. The models are fitted by passes over the parts; one pass more gives what
votes suggest about each labeler, and another what labelers answered for items of each class, for each draw of θ (see
`trueup.core`). How many votes are of each class is then drawn for each labeler and answer, as a normal sum over items.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaincinv, gammaln, log_expit, logit, logsumexp, ndtri, softmax

from trueup._base.types import Booleans, Codes, Floats
from trueup.core.base import SURE, base_models, clip_base
from trueup.core.checks import check_weights
from trueup.core.features import build_features
from trueup.core.parts import Reading, base_of_block, drawn_chances, drawn_codes, reading_of, share_repeats
from trueup.core.posterior import Checks, Recalibration, draw_theta
from trueup.core.prior import CrowdPrior, from_angle, to_angle
from trueup.core.rows import Rows
from trueup.core.truth import LabelersApart, drawn_gold
from trueup.data.encoding import Vocabulary
from trueup.data.labels import Labels
from trueup.data.partitions import Keys, VoteBlock, keyed_uniforms
from trueup.data.scanning import LabelScan
from trueup.data.votes import Votes, shared_votes
from trueup.estimators.problem import draw_categories
from trueup.estimators.truth import not_mixed
from trueup.exceptions import InvalidParameter, silenced_warnings
from trueup.labelers.information import entropy
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth, kernels
from trueup.noise.base import check_matrices_fit
from trueup.noise.em import scan_over
from trueup.noise.registry import fit, resolve
from trueup.noise.sampling import sample
from trueup.posteriors import Estimate, beta_estimate

_RIGHT = 3.0  # pseudo-votes for the right answer, 1 for the others: the prior of the sampler of Dawid–Skene
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

    def count(block: slice) -> list[Tally]:
        drawn = truths[block]
        tallies = []
        for part in parts:
            n_of_class = [(drawn[:, part] == y).sum(axis=1) for y in range(labels.n_classes)]
            tallies.append((_confusion_counts(labels, drawn, part), np.stack(n_of_class, axis=1).astype(float)))
        return tallies

    rows = max(1, _CELLS // max(labels.votes.nnz, int(np.prod(sizes)), 1))
    spam_factor = None
    if spam_truths is not None:
        blocks = np.array_split(spam_truths, -(-len(spam_truths) // rows))
        spam_factor = np.concatenate([log_spam_factor(_confusion_counts(labels, one, parts[0])) for one in blocks])
    how: Any = {"spam_prior": spam_prior, "rng": rng, "moves": moves, "spam_factor": spam_factor}
    return draws_of_tallies(count, sizes, n_draws=len(truths), n_parts=len(parts), rows=rows, **how)


# In some draws of the truth, votes by the class of their item (n_draws, n_labelers, n_classes, n_answers), and items of
# each class (n_draws, n_classes).
Tally = tuple[Floats, Floats]


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
    shapes = (shape, shape, (*shape, n_classes), shape, (n_labelers,))
    parts = [LabelerDraws(*map(np.empty, shapes)) for _ in range(n_parts)]

    def fill(part: int, block: slice, theta: Floats, items: Floats) -> None:
        joint = _dirichlet(1.0 + items, rng)[..., None, :, None] * theta  # P(class, answer) of each labeler
        joint, of = joint if moves is None else _moved(joint, moves[part][block]), parts[part]
        named = joint[..., :n_classes]
        named = named / np.maximum(named.sum(axis=(-2, -1), keepdims=True), 1e-300)  # among answers that name a class
        of.accuracy[block] = np.einsum("...yy->...", named)
        of.bias[block] = named.sum(axis=-2) - named.sum(axis=-1)
        separate = entropy(joint.sum(axis=-1)) + entropy(joint.sum(axis=-2))
        of.information[block] = np.maximum(separate - entropy(joint.reshape(*joint.shape[:-2], -1)), 0.0)
        of.spam[block] = spam_share(joint / np.maximum(joint.sum(axis=-1, keepdims=True), 1e-300))

    log_factor = np.empty(shape) if spam_factor is None else spam_factor
    for start in range(0, n_draws, rows):
        block = slice(start, min(start + rows, n_draws))
        (votes, items), *of_slices = count(block)
        theta = _dirichlet(votes + _WORTH / n_answers, rng)
        fill(0, block, theta, items)
        if spam_factor is None:
            log_factor[block] = log_spam_factor(votes)
        if of_slices:
            mean = np.maximum(theta, 1e-6)
            worth = _draw_borrowed([votes for votes, _ in of_slices], mean, rng)[:, :, None, None]
            for k, (votes, items) in enumerate(of_slices, start=1):
                fill(k, block, _dirichlet(votes + worth * mean, rng), items)
    # The Bayes factor is the mean over truths drawn under the hypothesis that answers depend on the truth.
    log_odds = logit(spam_prior) + logsumexp(log_factor, axis=0) - np.log(len(log_factor))
    probability = np.asarray(expit(log_odds))
    is_spam = rng.random(shape) < probability
    for part in parts:
        part.spam[is_spam], part.information[is_spam] = 1.0, 0.0
    return [replace(part, spam_probability=probability) for part in parts]


def _dirichlet(weights: Floats, rng: np.random.Generator) -> Floats:
    """Draws of distributions along the last axis."""
    gamma = rng.standard_gamma(weights)
    return np.asarray(gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), 1e-300))


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


def spam_share(confusion: npt.ArrayLike) -> Floats:
    """The largest share of votes that could be given without looking: λ = Σ_a min_y θ[y, a].

    The largest λ with θ = (1 − λ) Q + λ 1rᵀ for a confusion matrix Q and a distribution r of answers (Doeblin's
    coefficient). For two classes 1 − λ is how far the two rows are apart.

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


_CELLS = 2_000_000  # of matrices that are drawn at once
_MOST_COUNTS = 20_000_000  # numbers that are kept of all draws together
_FEWEST_DRAWS = 50
_N_POINTS = 64  # of θ
_N_ADDED = 6  # fields of `_Seen` that are sums; the others are rows
_BLOCK = 4_000_000  # numbers of a part that are held at once
_BINS = 64  # of log odds, that stand for the votes of a labeler
_SAMPLE_SEED = 46
_MOST_ROWS = 20_000  # items that stand for all where levels are solved for
_SPAM_TRUTHS = 200  # drawn to tell who is a pure spammer
Point = tuple[float, Floats | float]  # of θ: the power of the base, and the logarithms of factors of the classes
_AS_VOTES_SAY: Point = (1.0, 0.0)


@dataclass(frozen=True, eq=False)
class LabelerTable:
    """What a ranking of labelers rests on."""

    draws: LabelerDraws
    votes: Floats  # (n_labelers,): number of votes, each counted that was given
    consistency: Mapping[Hashable, Estimate]  # of those who gave several verdicts on an item


def read_labelers(
    scan: LabelScan[Labels],
    model: NoiseModel | None,
    prior: CrowdPrior,
    *,
    n_draws: int,
    spam_prior: float,
    rng: np.random.Generator,
) -> tuple[LabelerTable, Levels | None]:
    """From votes in files, in passes over them; the levels too where no model is named, as in the plain answer."""
    sizes = (scan.n_labelers, scan.n_classes, scan.n_answers)
    check_matrices_fit(*sizes)
    n_draws = min(n_draws, max(_FEWEST_DRAWS, _MOST_COUNTS // int(np.prod(sizes))))
    scan = scan.with_systems() if model is None else scan  # files are read once, for all that follows
    shared = scan.mapped(partial(share_repeats, n_answers=scan.n_answers)) if scan.n_repeats else scan
    levels = moves = spam_factor = None
    if model is not None:
        if not isinstance(model, DawidSkene | OneCoin | SoftTruth):
            raise InvalidParameter(
                f"`noise` of scans must be 'dawid-skene', 'one-coin' or 'soft-truth', got {model!r}; use scan.read()",
                parameter="noise",
            )
        readings, points = [reading_of(model.clone().fit(shared), shared)], [_AS_VOTES_SAY]
    else:
        with silenced_warnings():  # what fits would say is among the notes
            readings = [reading_of(one.fit(shared), shared) for one in base_models(scan.n_classes)]  # type: ignore[arg-type]
        share = min(1.0, _MOST_ROWS / max(scan.n_items, 1))
        seen: _Seen = scan_over(shared, _joined, _look_at, readings, scan.n_answers, share)
        points = [_AS_VOTES_SAY, *_points(seen, scan, prior, rng)]
        levels = _levels(seen, prior, n_draws, rng)
    sums: _ClassSums = scan_over(shared, _added, _sum_classes, readings, points)
    first = min(1, len(points) - 1)  # the first point is for spam alone, where there are others
    votes, items = sums.draw(sizes, np.resize(np.arange(first, len(points)), n_draws), rng)
    if levels is not None:
        diagonal = np.arange(scan.n_classes)
        named = votes[..., : scan.n_classes]
        right = named[:, :, diagonal, diagonal].sum(axis=2) / np.maximum(named.sum(axis=(2, 3)), 1e-300)
        moves = [np.nan_to_num(levels.draws - right)]
        spam_factor = log_spam_factor(sums.draw(sizes, np.zeros(min(n_draws, _SPAM_TRUTHS), dtype=np.int64), rng)[0])
    how: Any = {"spam_prior": spam_prior, "rng": rng, "moves": moves, "spam_factor": spam_factor}
    rows = max(1, _CELLS // max(int(np.prod(sizes)), 1))
    (draws,) = draws_of_tallies(lambda block: [(votes[block], items[block])], sizes, n_draws=n_draws, rows=rows, **how)
    given, agreed, n_items = scan_over(scan, np.add, block_numbers, scan.n_answers)
    return LabelerTable(draws, given, consistency_of(scan.labelers, agreed, n_items)), levels


class _Seen(NamedTuple):
    """What a pass sees of labelers and of some of the items."""

    mass: Floats  # (n_classes,): the sums over all items of the base
    right: Floats  # (n_labelers,)
    named: Floats  # (n_labelers,)
    bins: Floats  # (n_labelers, _BINS)
    n_checked: Floats  # (n_labelers,): checked items among their votes
    n_right: Floats  # (n_labelers,): right votes on these
    base: Floats  # (n_sampled, n_classes)
    keys: Keys  # (n_checked,)
    truth: Codes  # (n_checked,): the classes of checked items
    checked_base: Floats  # (n_checked, n_classes)
    votes: Floats  # (n_checked_votes, 4): labeler, log odds, weight, and whether it is right


def _joined(one: _Seen, other: _Seen) -> _Seen:
    """Of both, sums over labelers added and rows of items and votes one after the other."""
    added = [mine + theirs for mine, theirs in zip(one[:_N_ADDED], other[:_N_ADDED], strict=True)]
    return _Seen(*added, *(np.concatenate(both) for both in zip(one[_N_ADDED:], other[_N_ADDED:], strict=True)))  # type: ignore[arg-type]


def _look_at(block: VoteBlock, readings: Sequence[Reading], n_answers: int, share: float) -> _Seen:
    """What a part says of its labelers, in rows of items."""
    numbers = len(readings[0].weights) * max(len(block.indices), block.n_items)
    parts = _in_rows(block, max(1, _BLOCK * block.n_items // numbers))
    return reduce(_joined, (_look_at_rows(part, readings, n_answers, share) for part in parts))


def _in_rows(block: VoteBlock, rows: int) -> list[VoteBlock]:
    """A block in blocks of so many items."""
    return [block.rows(low, min(low + rows, block.n_items)) for low in range(0, block.n_items, rows)]


def _look_at_rows(block: VoteBlock, readings: Sequence[Reading], n_answers: int, share: float) -> _Seen:
    base, drawn = base_of_block(block, list(readings)), drawn_codes(block)
    n_classes, n_labelers = base.shape[1], block.n_columns // n_answers
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    labeler, answer = np.divmod(block.indices.astype(np.int64), n_answers)
    weight = block.data.astype(float) if len(block.data) else np.ones(len(item))
    chances = _chances_apart(block, readings[0], item, labeler, weight)
    kept = np.flatnonzero(answer < n_classes)
    item, labeler, answer, weight = item[kept], labeler[kept], answer[kept], weight[kept]
    chances = chances[kept, answer]
    is_checked = drawn[item] >= 0
    low, high = _bin_edges(n_classes)
    cell = labeler * _BINS + np.clip(((logit(chances) - low) / (high - low) * _BINS).astype(np.int64), 0, _BINS - 1)
    bins = np.bincount(cell[~is_checked], weight[~is_checked], n_labelers * _BINS).astype(float)
    right = drawn[item] == answer
    votes = np.column_stack([labeler, logit(chances), weight, right])[is_checked].astype(float)
    pairs = np.unique((labeler * block.n_items + item)[is_checked]) // max(block.n_items, 1)
    sampled = np.flatnonzero((keyed_uniforms(block.keys, _SAMPLE_SEED) < share) & (drawn < 0))
    return _Seen(
        base.sum(axis=0),
        np.bincount(labeler, weight * chances, n_labelers).astype(float),
        np.bincount(labeler, weight, n_labelers).astype(float),
        bins.reshape(n_labelers, _BINS),
        np.bincount(pairs, minlength=n_labelers).astype(float),
        np.bincount(labeler[is_checked], right[is_checked], n_labelers).astype(float),
        base[sampled],
        block.keys[drawn >= 0],
        drawn[drawn >= 0],
        base[drawn >= 0],
        votes,
    )


def _chances_apart(block: VoteBlock, reading: Reading, item: Codes, labeler: Codes, weight: Floats) -> Floats:
    """P(class) of the item of each vote, its labeler's votes on the item divided out; (n_votes, n_classes)."""
    posterior = kernels.posterior(
        block.matrix, reading.table, reading.weights, gold=block.gold_codes, state_class=reading.state_class
    )
    joint, log_table = np.log(np.maximum(posterior, 1e-300)), np.log(np.maximum(reading.table, 1e-300))
    of_vote = weight[:, None] * log_table[block.indices]
    begins = np.flatnonzero(np.append(True, (np.diff(item) != 0) | (np.diff(labeler) != 0))) if len(item) else item
    group = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(item))))
    together = np.add.reduceat(of_vote, begins, axis=0) if len(begins) else of_vote
    return clip_base(softmax(joint[item[begins]] - together, axis=1))[group]


def _bin_edges(n_classes: int) -> tuple[float, float]:
    """The least and the largest log odds of a base."""
    return float(logit((1 - SURE) / max(n_classes - 1, 1))), float(logit(SURE))


def _points(seen: _Seen, scan: LabelScan[Labels], prior: CrowdPrior, rng: np.random.Generator) -> list[Point]:
    """Draws of θ: the power of the base and the factors of the classes, as of a question about no system."""
    base = np.concatenate([seen.base, seen.checked_base])
    n_sampled = len(seen.base)
    weights = np.append(
        np.full(n_sampled, (scan.n_items - len(seen.truth)) / max(n_sampled, 1)), np.ones(len(seen.truth))
    )
    features = build_features(base, np.empty((0, len(base)), dtype=np.int32))
    rows = features.rows(base, weights)
    centres = (seen.mass / seen.mass.sum())[1 : 1 + features.n_levels]  # of the second of two classes, as in memory
    recalibration = Recalibration(rows, features, prior, centres=centres)
    checks = None
    if len(seen.truth):
        at = n_sampled + np.arange(len(seen.truth))
        checks = Checks(rows.at(at), seen.truth, check_weights(drawn_chances(scan, seen.keys)))
    theta = draw_theta(recalibration, checks, n_points=_N_POINTS, rng=rng)
    one_item = Rows(np.zeros((1, base.shape[1])), rows.targets[:, :1], rows.values[:, :1], np.ones(1))
    factors = np.log(one_item.probabilities(np.zeros(len(theta.beta)), theta.gamma)[0]).T
    return list(zip(theta.beta.tolist(), factors, strict=True))


def _levels(seen: _Seen, prior: CrowdPrior, n_draws: int, rng: np.random.Generator) -> Levels:
    """The accuracy of every labeler, where bins of log odds stand for their votes on items that were not checked."""
    with np.errstate(invalid="ignore"):
        expected = seen.right / seen.named
    low, high = _bin_edges(len(seen.mass))
    labeler, of_bin = np.nonzero(seen.bins)
    middles = low + (of_bin + 0.5) / _BINS * (high - low)
    unchecked = np.column_stack([labeler, middles, seen.bins[labeler, of_bin], np.zeros(len(labeler))])
    rows = np.concatenate([unchecked, seen.votes])
    is_checked = np.arange(len(rows)) >= len(unchecked)
    numbers = seen.n_checked.astype(np.int64), seen.n_right.astype(np.int64)
    columns = rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2], is_checked, rows[:, 3] > 0
    return Levels(expected, draw_levels(expected, *columns, prior, n_draws, rng), *numbers)


class _ClassSums(NamedTuple):
    """How many votes and items are of each class under each point of θ, and their variances."""

    votes: Floats  # (n_points, n_labelers · n_answers, n_classes)
    votes_variance: Floats  # (n_labelers · n_answers, n_classes)
    items: Floats  # (n_points, n_classes)
    items_variance: Floats  # (n_classes,)

    def draw(self, sizes: tuple[int, int, int], point: Codes, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draws of votes (n_draws, n_labelers, n_classes, n_answers) and of items (n_draws, n_classes) by class."""
        n_labelers, n_classes, n_answers = sizes
        votes = _draw_parts(self.votes[point], self.votes_variance, rng)
        votes = votes.reshape(len(point), n_labelers, n_answers, n_classes).swapaxes(2, 3)
        return votes, _draw_parts(self.items[point], self.items_variance, rng)


def _draw_parts(mean: Floats, variance: Floats, rng: np.random.Generator) -> Floats:
    """Normal draws of parts around their means, none below 0, that sum along the last axis to what the means sum to."""
    drawn = np.maximum(mean + np.sqrt(variance) * rng.standard_normal(mean.shape), 0.0)
    total = drawn.sum(axis=-1, keepdims=True)
    whole = mean.sum(axis=-1, keepdims=True)
    return np.where(total > 0, drawn * (whole / np.where(total > 0, total, 1.0)), mean)


def _added(one: _ClassSums, other: _ClassSums) -> _ClassSums:
    return _ClassSums(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))


def _sum_classes(block: VoteBlock, readings: Sequence[Reading], points: Sequence[Point]) -> _ClassSums:
    """The sums of a part, in rows of items."""
    parts = _in_rows(block, max(1, _BLOCK // (len(points) * readings[0].lattice.shape[1])))
    return reduce(_added, (_sum_classes_of_rows(part, readings, points) for part in parts))


def _sum_classes_of_rows(block: VoteBlock, readings: Sequence[Reading], points: Sequence[Point]) -> _ClassSums:
    drawn = drawn_codes(block)
    known = np.where(drawn >= 0, drawn, block.gold_codes)
    if len(points) > 1:
        base = base_of_block(block, list(readings))
    else:  # a model that was named
        (one,) = readings
        arrays = (block.matrix, one.table, one.weights)
        base = kernels.posterior(*arrays, gold=known, state_class=one.state_class) @ one.lattice
    chances = np.empty((block.n_items, len(points), base.shape[1]))
    log_base = np.log(np.maximum(base, 1e-300))
    for k, (power, factors) in enumerate(points):
        chances[:, k] = base if isinstance(factors, float) else softmax(power * log_base + factors, axis=1)
    at = np.flatnonzero(known >= 0)
    chances[at] = np.eye(base.shape[1])[known[at]][:, None]
    mean = chances.mean(axis=1)
    spread = mean * (1 - mean)
    matrix = block.matrix
    votes = np.asarray(matrix.T @ chances.reshape(block.n_items, -1))
    return _ClassSums(
        votes.reshape(matrix.shape[1], len(points), -1).swapaxes(0, 1),
        np.asarray(matrix.power(2).T @ spread),
        chances.sum(axis=0),
        spread.sum(axis=0),
    )


def block_numbers(block: VoteBlock, n_answers: int) -> Floats:
    """Of each labeler the number of votes, how far they agree with themselves, and on how many items, in one block."""
    labeler = block.indices // n_answers
    times = block.data if len(block.data) else np.ones(len(labeler))
    n_labelers = block.n_columns // n_answers
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    with_self = agreement_with_self(item, labeler, times, np.ones(n_labelers, dtype=np.bool_))
    return np.stack([np.bincount(labeler, times, n_labelers), *with_self])


# ------------------ Levels: how accurate labelers are, as systems judged by the others' votes and by checked items
#
# The level of a labeler is the mean of P(their vote is right). The estimate from the others' votes is off as on
# real sets (`trueup.core.prior`), and checked items correct it by the formula of the core for one system:
# logit P(right_i) = a + b x_i, x_i = logit of the base at their vote, a such that the mean is the level.

_ANGLES = np.linspace(0.01, np.pi / 2 - 0.01, 61)
_SLOPES = ndtri((np.arange(7) + 0.5) / 7)  # standard normal
_BISECTIONS = 40
_FAR = 40.0  # log-odds
_MOST_ROWS_OF_LABELER = 200  # votes that stand for all of a labeler's where the level is solved for


@dataclass(frozen=True, eq=False)
class Levels:
    """Accuracies of labelers."""

    expected: Floats  # (n_labelers,)
    draws: Floats = field(repr=False)  # (n_draws, n_labelers)
    n_checked: Codes  # (n_labelers,)
    n_right: Codes  # (n_labelers,)


def named_votes(labels: Labels, places: Codes) -> tuple[Codes, Codes, Codes, Floats]:
    """Item, labeler, answer and share of one vote of the votes for classes on the items at some places."""
    item, labeler, answer, _ = labels.vote_table()
    is_in = np.zeros(labels.n_items, dtype=bool)
    is_in[places] = True
    kept = np.flatnonzero((answer < labels.n_classes) & is_in[item])
    return item[kept], labeler[kept], answer[kept], shared_votes(labels).data[kept]


def labeler_levels(
    labels: Labels, apart: LabelersApart, places: Codes, prior: CrowdPrior, *, n_draws: int, rng: np.random.Generator
) -> Levels:
    """The accuracy of every labeler on the items at some places; `apart` is of all votes."""
    drawn = drawn_gold(labels)
    item, labeler, answer, shares = named_votes(labels, places)
    order = np.argsort(labeler, kind="stable")
    item, labeler, answer, shares = item[order], labeler[order], answer[order], shares[order]
    bounds = np.searchsorted(labeler, np.arange(labels.n_labelers + 1))
    chances = np.empty(len(item))
    expected = np.full(labels.n_labelers, np.nan)
    for t, (low, high) in enumerate(pairwise(bounds.tolist())):
        if low < high:
            chances[low:high] = apart.base(t, item[low:high])[np.arange(high - low), answer[low:high]]
            expected[t] = np.average(chances[low:high], weights=shares[low:high])
    checked, right = drawn[item] >= 0, drawn[item] == answer
    pairs = np.unique((labeler.astype(np.int64) * labels.n_items + item)[checked]) // labels.n_items
    n_checked = np.bincount(pairs, minlength=labels.n_labelers)
    n_right = np.bincount(labeler[checked & right], minlength=labels.n_labelers)
    draws = draw_levels(expected, labeler, logit(chances), shares, checked, right, prior, n_draws, rng)
    return Levels(expected, draws, n_checked, n_right)


def draw_levels(
    expected: Floats,
    labeler: Codes,
    odds: Floats,
    weights: Floats,
    checked: Booleans,
    right: Booleans,
    prior: CrowdPrior,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draws of the level of each labeler who is expected to have one, by rows that are votes or stand for several."""
    draws = np.full((n_draws, len(expected)), np.nan)
    order = np.argsort(labeler, kind="stable")
    bounds = np.searchsorted(labeler[order], np.arange(len(expected) + 1))
    for t in np.flatnonzero(~np.isnan(expected)).tolist():
        rows = order[bounds[t] : bounds[t + 1]]
        if checked[rows].any():
            draws[:, t] = draw_checked_level(odds[rows], weights[rows], checked[rows], right[rows], prior, n_draws, rng)
        else:
            away = prior.level_scale * _student(prior.degrees, n_draws, rng)
            draws[:, t] = from_angle(to_angle(np.asarray(float(expected[t]))) + away)
    return draws


def _student(degrees: float, n: int, rng: np.random.Generator) -> Floats:
    """Draws of Student's t, one in each of n even parts."""
    parts = (rng.permutation(n) + rng.random(n)) / n
    scale = 2 * gammaincinv(degrees / 2, np.clip(rng.random(n), 1e-9, 1 - 1e-9)) / degrees
    return np.asarray(ndtri(np.clip(parts, 1e-9, 1 - 1e-9)) / np.sqrt(scale))


def draw_checked_level(
    x: Floats, weights: Floats, checked: Booleans, right: Booleans, prior: CrowdPrior, n: int, rng: np.random.Generator
) -> Floats:
    """Draws of a level given right and wrong votes on checked items, by a grid of levels and slopes."""
    order = np.argsort(x, kind="stable")
    upto = np.cumsum(weights[order])
    n_rows = min(len(x), _MOST_ROWS_OF_LABELER)
    stands = x[order[np.minimum(np.searchsorted(upto, (np.arange(n_rows) + 0.5) / n_rows * upto[-1]), len(x) - 1)]]
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
    drawn = np.searchsorted(upto, (rng.permutation(n) + rng.random(n)) / n * upto[-1])
    step = _ANGLES[1] - _ANGLES[0]
    return from_angle(_ANGLES[np.minimum(drawn, len(_ANGLES) - 1)] + step * (rng.random(n) - 0.5))


# ------------------ How often a labeler says the same again of the same item

_JEFFREYS = 0.5


def self_consistency(labels: Votes) -> dict[Hashable, Estimate]:
    """The chance that two verdicts of a labeler on one item are the same, of each who gave two on some.

    Of an item with n verdicts, n_a of them for the answer a, that is Σ n_a (n_a − 1) / (n (n − 1)). Each item counts as
    one trial of a Beta posterior, however many verdicts it has. Consistency is no skill: who always says "pass" is
    consistent, too. Votes of an anonymous crowd are of different people, and left out.
    """
    item, labeler, _, times = labels.vote_table()
    return consistency_of(labels.labelers, *agreement_with_self(item, labeler, times, ~labels.is_crowd))


def agreement_with_self(
    item: Codes, labeler: Codes, times: npt.NDArray[Any], counted: Booleans
) -> tuple[Floats, Floats]:
    """How far each labeler agrees with themselves, summed over items with several verdicts, and how many these are."""
    n_labelers = len(counted)
    pairs, group = np.unique(item.astype(np.int64) * n_labelers + labeler, return_inverse=True)
    n = np.bincount(group, times)
    same = np.bincount(group, times * (times - 1.0))
    of_labeler = pairs % n_labelers
    repeated = (n > 1) & counted[of_labeler]
    agreement = np.divide(same, n * (n - 1), out=np.zeros_like(same), where=repeated)
    n_items = np.bincount(of_labeler[repeated], minlength=n_labelers).astype(float)
    return np.bincount(of_labeler[repeated], agreement[repeated], n_labelers).astype(float), n_items


def consistency_of(labelers: Vocabulary, agreed: Floats, n_items: Floats) -> dict[Hashable, Estimate]:
    """The estimates, of each labeler with items that have several verdicts of theirs."""
    return {
        name: beta_estimate(_JEFFREYS + float(yes), _JEFFREYS + float(all_items - yes), name="consistency")
        for name, yes, all_items in zip(labelers.tolist(), agreed, n_items, strict=True)
        if all_items
    }
