"""What is known of all labelers, from votes in memory or in files.

Of votes in files nothing is kept of an item. The models are fitted by passes over the parts; one pass more gives what
votes let expect of each labeler, and another what labelers said of items of each class, for each draw of θ (see
`trueup.core`). How many votes are of each class is then drawn for each labeler and answer, as a normal sum over items.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logit, softmax

from trueup._base.types import Codes, Floats
from trueup.core.base import SURE, base_models, clip_base
from trueup.core.checks import check_weights
from trueup.core.features import build_features
from trueup.core.parts import Reading, base_of_block, reading_of, share_repeats
from trueup.core.posterior import Checks, Recalibration, draw_theta
from trueup.core.prior import CrowdPrior
from trueup.core.rows import Rows
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.partitions import Keys, VoteBlock, item_keys, keyed_uniforms
from trueup.data.scanning import LabelScan
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.labelers.consistency import agreement_with_self, consistency_of, self_consistency
from trueup.labelers.levels import Levels, draw_checked_level, draw_level
from trueup.labelers.skill_draws import LabelerDraws, Tally, draws_of_tallies, log_spam_factor
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth, kernels
from trueup.noise.base import check_matrices_fit
from trueup.noise.passes import scan_over
from trueup.posteriors import Estimate

_CELLS = 2_000_000  # of matrices that are drawn at once
_MOST_COUNTS = 20_000_000  # numbers that are kept of all draws together
_FEWEST_DRAWS = 50
_N_POINTS = 64  # of θ
_BLOCK = 4_000_000  # numbers of a part that are held at once
_BINS = 64  # of log odds, that stand for the votes of a labeler
_SAMPLE_SEED = 46
_MOST_ROWS = 20_000  # items that stand for all where levels are solved for
_SPAM_TRUTHS = 200  # drawn to tell who is a pure spammer
Point = tuple[float, Floats | float]  # of θ: the power of the base, and the logarithms of factors of the classes
_AS_VOTES_SAY: Point = (1.0, 0.0)


@dataclass(frozen=True, eq=False)
class LabelerTable:
    """What is known of all labelers."""

    draws: LabelerDraws
    votes: Floats  # (n_labelers,): number of votes, each counted that was given
    consistency: Mapping[Hashable, Estimate]  # of those who gave several verdicts on an item

    @classmethod
    def of(cls, labels: Labels, draws: LabelerDraws) -> LabelerTable:
        """From votes in memory."""
        return cls(draws, labels.votes_per_labeler.astype(float), self_consistency(labels))


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
    checked = _Checked.of(scan) if model is None else None
    gold_for_parts = (
        scan.gold if checked is None else {item: y for item, y in scan.gold.items() if item not in scan.reader.drawn}
    )
    keyed = LabelScan(scan.files, replace(scan.reader, keeps_keys=True, gold=gold_for_parts), scan.regroup)
    if keyed.n_repeats:
        keyed = keyed.mapped(partial(share_repeats, n_answers=scan.n_answers))
    levels = moves = spam_factor = None
    if checked is None:
        assert model is not None
        readings = [_fitted(model, keyed)]
        points = [_AS_VOTES_SAY]
    else:
        with silenced_warnings():  # what fits would say is among the notes
            readings = [reading_of(one.fit(keyed), keyed) for one in base_models(scan.n_classes)]  # type: ignore[arg-type]
        share = min(1.0, _MOST_ROWS / max(scan.n_items, 1))
        seen: _Seen = scan_over(keyed, _joined, _look_at, readings, scan.n_answers, checked, share)
        checked.check_found(len(seen.truth))
        points = [_AS_VOTES_SAY, *_points(seen, scan.n_items, checked, prior, rng)]
        levels = _levels(seen, prior, n_draws, rng)
    sums: _ClassSums = scan_over(keyed, _added, _sum_classes, readings, points, checked)
    first = min(1, len(points) - 1)  # the first point is for spam alone, where there are others
    votes, items = sums.draw(sizes, np.resize(np.arange(first, len(points)), n_draws), rng)
    if levels is not None:
        diagonal = np.arange(scan.n_classes)
        named = votes[..., : scan.n_classes]
        right = named[:, :, diagonal, diagonal].sum(axis=2) / np.maximum(named.sum(axis=(2, 3)), 1e-300)
        moves = [np.nan_to_num(levels.draws - right)]
        spam_factor = log_spam_factor(sums.draw(sizes, np.zeros(min(n_draws, _SPAM_TRUTHS), dtype=np.int64), rng)[0])
    (draws,) = draws_of_tallies(
        lambda block: [Tally(votes[block], items[block])],
        sizes,
        n_draws=n_draws,
        rows=max(1, _CELLS // max(int(np.prod(sizes)), 1)),
        spam_prior=spam_prior,
        rng=rng,
        moves=moves,
        spam_factor=spam_factor,
    )
    given, agreed, n_items = scan_over(scan, np.add, block_numbers, scan.n_answers)
    return LabelerTable(draws, given, consistency_of(scan.labelers, agreed, n_items)), levels


def _fitted(model: NoiseModel, scan: LabelScan[Labels]) -> Reading:
    """A named model, fitted to a scan."""
    if not isinstance(model, DawidSkene | OneCoin | SoftTruth):
        raise InvalidParameter(
            "`noise` of votes that are scanned must be one of 'dawid-skene', 'one-coin', 'soft-truth', got "
            f"{model!r}; leave it out for the plain answer, or read all votes into memory with scan.read()",
            parameter="noise",
        )
    return reading_of(model.clone().fit(scan), scan)


@dataclass(frozen=True, eq=False)
class _Checked:
    """Checked items that were drawn by chance, by their keys: their classes, and the chance of each."""

    keys: Keys
    classes: Codes
    chance: Floats

    @classmethod
    def of(cls, scan: LabelScan[Labels]) -> _Checked:
        """Those of a scan; in a simple random sample the chance is the share that was drawn."""
        names = list(scan.reader.drawn)
        if not names:
            return cls(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int32), np.empty(0))
        chance = np.array(list(scan.reader.drawn.values()), dtype=float)
        chance[np.isnan(chance)] = len(chance) / max(scan.n_items, 1)
        keys = item_keys(vocabulary_from(names))
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], scan.reader.class_codes(names, scan.gold)[order], chance[order])

    def places(self, block: VoteBlock) -> Codes:
        """The place of each item of a block among them, -1 for none."""
        if not len(self.keys):
            return np.full(block.n_items, -1)
        at = np.minimum(np.searchsorted(self.keys, block.keys), len(self.keys) - 1)
        return np.where(self.keys[at] == block.keys, at, -1)

    def check_found(self, n_found: int) -> None:
        """Refuse gold of items that are in no file."""
        if n_found < len(self.keys):
            raise InvalidLabels(
                f"gold must be of items of the scan, got {len(self.keys) - n_found} of {len(self.keys)} that are in "
                "none of its files; leave them out"
            )


class _Seen(NamedTuple):
    """What a pass sees of labelers and of some of the items."""

    mass: Floats  # (n_classes,): the sums over all items of the base
    right: Floats  # (n_labelers,)
    named: Floats  # (n_labelers,)
    bins: Floats  # (n_labelers, _BINS)
    base: Floats  # (n_sampled, n_classes)
    places: Codes  # of each checked item its place, its class and its base
    truth: Codes  # of each checked item its place, its class and its base
    checked_base: Floats  # of each checked item its place, its class and its base
    votes: Floats  # (n_checked_votes, 5)


_ADDED = ("mass", "right", "named", "bins")


def _joined(one: _Seen, other: _Seen) -> _Seen:
    both = {name: getattr(one, name) + getattr(other, name) for name in _ADDED}
    rest = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in _Seen._fields[len(_ADDED) :]}
    return _Seen(**both, **rest)


def _look_at(
    block: VoteBlock, readings: Sequence[Reading], n_answers: int, checked: _Checked, share: float, n_threads: int
) -> _Seen:
    """What a part says of its labelers, in rows of items."""
    numbers = len(readings[0].weights) * max(len(block.indices), block.n_items)
    rows = max(1, _BLOCK * block.n_items // numbers)
    parts = [block.rows(low, min(low + rows, block.n_items)) for low in range(0, block.n_items, rows)]
    seen = [_look_at_rows(part, readings, n_answers, checked, share) for part in parts]
    total = seen[0]
    for one in seen[1:]:
        total = _joined(total, one)
    return total


def _look_at_rows(
    block: VoteBlock, readings: Sequence[Reading], n_answers: int, checked: _Checked, share: float
) -> _Seen:
    base = base_of_block(block, list(readings))
    n_classes, n_labelers = base.shape[1], block.n_columns // n_answers
    place = checked.places(block)
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    labeler, answer = np.divmod(block.indices.astype(np.int64), n_answers)
    weight = block.data.astype(float) if len(block.data) else np.ones(len(item))
    chances = _chances_apart(block, readings[0], item, labeler, weight)
    kept = np.flatnonzero(answer < n_classes)
    item, labeler, answer, weight = item[kept], labeler[kept], answer[kept], weight[kept]
    chances = chances[kept, answer]
    is_checked = place[item] >= 0
    bins: Floats = np.zeros((n_labelers, 0))
    if len(checked.keys):
        cell = labeler * _BINS + _bin_of(logit(chances), n_classes)
        bins = np.bincount(cell[~is_checked], weight[~is_checked], n_labelers * _BINS).astype(float)
        bins = bins.reshape(n_labelers, _BINS)
    at = np.flatnonzero(is_checked)
    truth = checked.classes[place[item[at]]] if len(at) else np.empty(0, dtype=np.int32)
    votes = np.column_stack([labeler[at], place[item[at]], logit(chances[at]), weight[at], truth == answer[at]])
    found = np.flatnonzero(place >= 0)
    sampled = np.flatnonzero((keyed_uniforms(block.keys, _SAMPLE_SEED) < share) & (place < 0))
    return _Seen(
        base.sum(axis=0),
        np.bincount(labeler, weight * chances, n_labelers).astype(float),
        np.bincount(labeler, weight, n_labelers).astype(float),
        bins,
        base[sampled],
        place[found],
        checked.classes[place[found]],
        base[found],
        votes.astype(float),
    )


def _chances_apart(block: VoteBlock, reading: Reading, item: Codes, labeler: Codes, weight: Floats) -> Floats:
    """P(class) of the item of each vote, all votes of its labeler on the item divided out; shape (n_votes, n_classes).

    The first model of the base is one whose states are the classes.
    """
    posterior = kernels.posterior(
        block.matrix, reading.table, reading.weights, gold=block.gold_codes, state_class=reading.state_class
    )
    joint, said = np.log(np.maximum(posterior, 1e-300)), np.log(np.maximum(reading.table, 1e-300))
    own = weight[:, None] * said[block.indices]
    begins = np.flatnonzero(np.append(True, (np.diff(item) != 0) | (np.diff(labeler) != 0))) if len(item) else item
    group = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(item))))
    together = np.add.reduceat(own, begins, axis=0) if len(begins) else own
    return clip_base(softmax(joint[item[begins]] - together, axis=1))[group]


def _bin_edges(n_classes: int) -> tuple[float, float]:
    """The least and the largest log odds of a base."""
    return float(logit((1 - SURE) / max(n_classes - 1, 1))), float(logit(SURE))


def _bin_of(odds: Floats, n_classes: int) -> Codes:
    low, high = _bin_edges(n_classes)
    return np.clip(((odds - low) / (high - low) * _BINS).astype(np.int64), 0, _BINS - 1)


def _points(seen: _Seen, n_items: int, checked: _Checked, prior: CrowdPrior, rng: np.random.Generator) -> list[Point]:
    """Draws of θ: the power of the base and the factors of the classes, as of a question about no system."""
    base = np.concatenate([seen.base, seen.checked_base])
    n_sampled = len(seen.base)
    weights = np.append(np.full(n_sampled, (n_items - len(seen.truth)) / max(n_sampled, 1)), np.ones(len(seen.truth)))
    features = build_features(base, np.empty((0, len(base)), dtype=np.int32))
    rows = features.rows(base, weights)
    centres = (seen.mass / seen.mass.sum())[1 : 1 + features.n_levels]  # of the second of two classes, as in memory
    recalibration = Recalibration(rows, features, prior, centres=centres)
    checks = None
    if len(seen.truth):
        at = n_sampled + np.arange(len(seen.truth))
        checks = Checks(rows.at(at), seen.truth, check_weights(checked.chance[seen.places]))
    theta = draw_theta(recalibration, checks, n_points=_N_POINTS, rng=rng)
    one_item = Rows(np.zeros((1, base.shape[1])), rows.targets[:, :1], rows.values[:, :1], np.ones(1))
    factors = np.log(one_item.probabilities(np.zeros(len(theta.beta)), theta.gamma)[0]).T
    return list(zip(theta.beta.tolist(), factors, strict=True))


def _levels(seen: _Seen, prior: CrowdPrior, n_draws: int, rng: np.random.Generator) -> Levels:
    """The accuracy of every labeler."""
    n_labelers = len(seen.named)
    with np.errstate(invalid="ignore"):
        expected = seen.right / seen.named
    draws = np.full((n_draws, n_labelers), np.nan)
    n_checked, n_right = np.zeros((2, n_labelers), dtype=np.int64)
    low, high = _bin_edges(len(seen.mass))
    middles = low + (np.arange(_BINS) + 0.5) / _BINS * (high - low)
    of_labeler = seen.votes[:, 0].astype(np.int64)
    order = np.argsort(of_labeler, kind="stable")
    ends = np.searchsorted(of_labeler[order], np.arange(n_labelers + 1))
    for t in np.flatnonzero(seen.named > 0).tolist():
        votes = seen.votes[order[ends[t] : ends[t + 1]]]
        if not len(votes):
            draws[:, t] = draw_level(float(expected[t]), prior, n_draws, rng)
            continue
        n_checked[t], n_right[t] = len(np.unique(votes[:, 1])), int(votes[:, 4].sum())
        full = np.flatnonzero(seen.bins[t])
        odds = np.concatenate([middles[full], votes[:, 2]])
        weight = np.concatenate([seen.bins[t, full], votes[:, 3]])
        is_checked = np.arange(len(odds)) >= len(full)
        right = np.append(np.zeros(len(full)), votes[:, 4]) > 0
        draws[:, t] = draw_checked_level(odds, weight, is_checked, right, prior, n_draws, rng)
    return Levels(expected, draws, n_checked, n_right)


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


def _sum_classes(
    block: VoteBlock,
    readings: Sequence[Reading],
    points: Sequence[Point],
    checked: _Checked | None,
    n_threads: int,
) -> _ClassSums:
    """The sums of a part, in rows of items."""
    rows = max(1, _BLOCK // (len(points) * readings[0].lattice.shape[1]))
    total: _ClassSums | None = None
    for low in range(0, block.n_items, rows):
        sums = _sum_classes_of_rows(block.rows(low, min(low + rows, block.n_items)), readings, points, checked)
        total = sums if total is None else _added(total, sums)
    assert total is not None
    return total


def _sum_classes_of_rows(
    block: VoteBlock,
    readings: Sequence[Reading],
    points: Sequence[Point],
    checked: _Checked | None,
) -> _ClassSums:
    known = block.gold_codes
    if checked is None:
        (one,) = readings
        arrays = (block.matrix, one.table, one.weights)
        base = kernels.posterior(*arrays, gold=known, state_class=one.state_class) @ one.lattice
    else:
        base = base_of_block(block, list(readings))
        place = checked.places(block)
        known = np.where(place >= 0, np.append(checked.classes, -1)[place], known)
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


def block_numbers(block: VoteBlock, n_answers: int, n_threads: int) -> Floats:
    """Of each labeler the number of votes, how far they agree with themselves, and on how many items, in one block."""
    labeler = block.indices // n_answers
    times = block.data if len(block.data) else np.ones(len(labeler))
    n_labelers = block.n_columns // n_answers
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    with_self = agreement_with_self(item, labeler, times, np.ones(n_labelers, dtype=np.bool_))
    return np.stack([np.bincount(labeler, times, n_labelers), *with_self])
