"""The core's input from votes in files, on a Dask cluster or in blocks: the same sums and rows as from memory.

The models of the base are fitted by passes over the blocks. Then one pass sums over all items what the base lets
expect, and another takes some items that stand for all: draws of the truth of millions of items are made on thousands.
Each item is taken with a chance that is larger where few are alike: few that a system puts into a class, few in a
slice. An item taken with chance p stands for 1/p items, and these numbers are then changed a little, so that sums over
the items that were taken equal those over all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.core.base import base_models, clip_base
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.partitions import Keys, VoteBlock, item_keys, keyed_uniforms
from trueup.data.scanning import LabelScan
from trueup.data.votes import bare_votes, shares_of_witness
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth, kernels
from trueup.noise.base import as_table, class_states
from trueup.noise.em import scan_over
from trueup.noise.soft_truth import corners

_KEY_SEED = 45  # so that memory, files and clusters take the same items


class Reading(NamedTuple):
    """A fitted model as a pass needs it: a table of answers by state, the weights of states, and their classes."""

    table: Floats
    weights: Floats
    state_class: Codes
    lattice: Floats


def reading_of(model: NoiseModel, labels: Labels | LabelScan[Labels]) -> Reading:
    """What a pass needs of a fitted model."""
    eye = np.eye(labels.n_classes)
    if isinstance(model, SoftTruth):
        table = as_table(model.confusion_) @ model.lattice_.T
        return Reading(table, model.state_prior_, corners(model.lattice_), model.lattice_)
    assert isinstance(model, DawidSkene | OneCoin)
    return Reading(as_table(model.confusion_), model.prior_, class_states(labels.n_classes), eye)


@dataclass(frozen=True, eq=False)
class SampledItems:
    """Some of the items of a scan."""

    blocks: tuple[VoteBlock, ...] = field(repr=False)  # the votes on them, what systems say and which are checked
    base: Floats = field(repr=False)  # (n, n_classes)
    chance: Floats = field(repr=False)  # (n,): that each was taken

    @property
    def codes(self) -> Codes:
        """What systems say of them, shape (n_systems, n)."""
        return np.concatenate([_outputs(block) for block in self.blocks], axis=1)


class Sums(NamedTuple):
    """Sums over all items of a scan, which those over the sampled ones are made equal to."""

    n_items: int
    totals: Floats  # (n_values,): see `base_values`
    sizes: Floats  # (n_systems + 1, n_classes): how many items each system puts into each class, and the base

    @property
    def n_named(self) -> Floats:
        """The number of items that each system says something of."""
        return np.asarray(self.sizes[:-1].sum(axis=1))


def sample_items(scan: LabelScan[Labels]) -> tuple[SampledItems, Floats, Sums]:
    """Fit the base by passes over a rated scan, and read some of its items; how many each of them stands for."""
    share = partial(share_repeats, n_answers=scan.n_answers) if scan.n_repeats else None
    shared = scan if share is None else scan.mapped(share)
    models = [model.fit(shared) for model in base_models(scan.n_classes)]  # type: ignore[arg-type]  # each takes scans
    readings = [reading_of(model, scan) for model in models]
    sums: Sums = scan_over(shared, _added, _sum_block, readings)
    sample: SampledItems = scan_over(scan, _joined, _sample_block, readings, sums, share)
    return sample, calibrated_times(sample.chance, base_values(sample.base, sample.codes), sums.totals), sums


def share_repeats(block: VoteBlock, n_answers: int) -> VoteBlock:
    """A block in which several votes of a labeler on an item share one."""
    return replace(block, data=shares_of_witness(block.matrix, n_answers))


def base_of_block(block: VoteBlock, readings: list[Reading]) -> Floats:
    """P(class) of each item of a block."""
    chances = [
        kernels.posterior(block.matrix, one.table, one.weights, gold=block.gold_codes, state_class=one.state_class)
        @ one.lattice
        for one in readings
    ]
    return clip_base(np.mean(chances, axis=0))


def _groups(base: Floats, codes: Codes) -> Codes:
    """The ways to group items: by the class that each system says, and by the likeliest one."""
    return np.vstack([codes, base.argmax(axis=1)])


def _sum_block(block: VoteBlock, readings: list[Reading]) -> Sums:
    base, codes = base_of_block(block, readings), _outputs(block)
    sizes = np.array([group_sizes(row, base.shape[1]) for row in _groups(base, codes)])
    return Sums(block.n_items, base_values(base, codes).sum(axis=0), sizes)


def _added(one: Sums, other: Sums) -> Sums:
    return Sums(one.n_items + other.n_items, one.totals + other.totals, one.sizes + other.sizes)


def _sample_block(
    block: VoteBlock,
    readings: list[Reading],
    sums: Sums,
    share: Callable[[VoteBlock], VoteBlock] | None,
) -> SampledItems:
    base = base_of_block(block if share is None else share(block), readings)
    is_checked = (drawn_codes(block) >= 0) | (block.gold_codes >= 0)
    chance = np.ones(block.n_items)
    if sums.n_items > MOST_ITEMS:
        groupings = list(zip(_groups(base, _outputs(block)), sums.sizes, strict=True))
        chance = np.where(is_checked, 1.0, inclusion_chances(sums.n_items, groupings, block.n_items))
    kept = np.flatnonzero(keyed_uniforms(block.keys, _KEY_SEED) < chance)
    return SampledItems((block.items(kept),), base[kept], chance[kept])


def _joined(one: SampledItems, other: SampledItems) -> SampledItems:
    parts = ((one.base, other.base), (one.chance, other.chance))
    return SampledItems(one.blocks + other.blocks, *(np.concatenate(pair) for pair in parts))


def labels_of_sample(scan: LabelScan[Labels], sample: SampledItems) -> Labels:
    """The sampled items as labels whose items are numbers, with their checked items."""
    reader = scan.reader
    matrix = sparse.csr_array(sparse.vstack([block.matrix for block in sample.blocks]))
    gold, drawn = (
        np.concatenate([codes(block) for block in sample.blocks]) for codes in (lambda b: b.gold_codes, drawn_codes)
    )
    keys = np.concatenate([block.keys for block in sample.blocks])
    chance = np.full(len(keys), np.nan)
    chance[drawn >= 0] = drawn_chances(scan, keys[drawn >= 0])
    checked = {"gold_codes": np.where(drawn >= 0, drawn, gold).astype(np.int32), "gold_chance": chance}
    known = bare_votes(np.arange(len(keys)), reader.labelers, scan.classes, matrix)
    policy = reader.options.abstain_policy
    return reader.make(**{**known, **checked, "answers": scan.answers, "abstain_policy": policy, "fixed_classes": True})


def _outputs(block: VoteBlock) -> Codes:
    return np.asarray(block.outputs).T.astype(np.int32)


def drawn_codes(block: VoteBlock) -> Codes:
    """The class of each checked item of a block that was drawn by chance, -1 for all others."""
    return block.vetted.astype(np.int32) if len(block.vetted) else np.full(block.n_items, -1, dtype=np.int32)


def drawn_chances(scan: LabelScan[Labels], keys: Keys) -> Floats:
    """The chance that each item was drawn; in a simple random sample of all items, the share that was."""
    names = vocabulary_from(list(scan.reader.drawn))
    chances = np.array(list(scan.reader.drawn.values()), dtype=float)
    chances[np.isnan(chances)] = len(chances) / max(scan.n_items, 1)
    place = {key: k for k, key in enumerate(item_keys(names).tolist())}
    return chances[[place[key] for key in keys.tolist()]]


MOST_ITEMS = 6_000  # pools up to this size are drawn as they are
_OF_ALL = 4_000  # items taken evenly
_OF_A_GROUPING = 2_000  # items taken for each way to group them, as many of each group
_MOST_SUMS = 60  # that are kept, the largest: of many classes most are rare
_LEAST_TIMES = 0.05


def group_sizes(codes: Codes, n_groups: int) -> Floats:
    """The number of items in each group; codes of -1 are in none."""
    return np.bincount(codes[codes >= 0], minlength=n_groups).astype(float)


def inclusion_chances(n_all: int, groupings: Sequence[tuple[Codes, Floats]], n_items: int) -> Floats:
    """The chance of each item to be taken, shape (n_items,)."""
    chance = np.full(n_items, _OF_ALL / max(n_all, 1))
    for codes, sizes in groupings:
        of_group = _OF_A_GROUPING / max(int(np.count_nonzero(sizes)), 1) / np.maximum(sizes, 1.0)
        np.maximum(chance, np.where(codes >= 0, of_group[codes], 0.0), out=chance)
    capped: Floats = np.minimum(chance, 1.0)
    return capped


def calibrated_times(chance: Floats, values: Floats, totals: Floats) -> Floats:
    """How many items each taken item stands for, so that sums of the values are those over all items."""
    times = 1 / chance
    free = np.flatnonzero(chance < 1)
    if not len(free):
        return times
    largest = np.sort(np.argsort(-totals, kind="stable")[:_MOST_SUMS])
    part = values[free][:, largest]
    missing = (totals - values.T @ times)[largest]
    scale = np.maximum(np.sqrt((part**2).mean(axis=0)), 1e-12)
    scaled = part / scale
    solved = np.linalg.lstsq(scaled.T @ (scaled * times[free, None]), missing / scale, rcond=1e-9)[0]
    times[free] *= np.maximum(1 + scaled @ solved, _LEAST_TIMES)
    return np.asarray(times)


def base_values(base: Floats, codes: Codes) -> Floats:
    """What sums must be kept of: classes of the base, outputs, and the base at each output; (n_items, n_values)."""
    has_output = codes >= 0
    named = np.take_along_axis(base, np.maximum(codes, 0).T.astype(np.int64), axis=1) * has_output.T
    return np.column_stack([base, has_output.T.astype(float), named])
