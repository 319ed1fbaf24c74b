"""The core's input from votes in files, on a Dask cluster or in blocks: the same sums and rows as from memory.

The models of the base are fitted by passes over the blocks. Then one pass gives the base of each item; what votes let
expect of each system is a sum over all of them, and some of the items stand for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.core.base import base_models, clip_base
from trueup.core.features import Features
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.partitions import Keys, VoteBlock, item_keys, keyed_uniforms
from trueup.data.scanning import LabelScan
from trueup.data.votes import nothing_vetted
from trueup.noise import DawidSkene, NoiseModel, OneCoin, SoftTruth, kernels
from trueup.noise.base import as_table, class_states
from trueup.noise.passes import scan_over
from trueup.noise.soft_truth import corners

MOST_ROWS = 20_000  # items that stand for all
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
    """Some of the items of a scan, and sums over all.

    Attributes
    ----------
    blocks : tuple of VoteBlock
        The votes on them, what systems say and which are checked.
    base : array of shape (n, n_classes)
    times : array of shape (n,)
        How many items each stands for.
    named : array of shape (n_systems,)
        The sums over all items of the base at the class that a system names.
    n_named : array of shape (n_systems,)
    mass : array of shape (n_classes,)
        The sums over all items of the base.
    """

    blocks: tuple[VoteBlock, ...] = field(repr=False)
    base: Floats = field(repr=False)
    times: Floats = field(repr=False)
    named: Floats
    n_named: Floats
    mass: Floats

    def centres(self, features: Features) -> Floats:
        """The levels that votes let expect, of all items."""
        of_systems = self.named[list(features.systems)] / np.maximum(self.n_named[list(features.systems)], 1.0)
        return np.append(of_systems, self.mass[1] / self.mass.sum())[: features.n_levels]


def sample_items(scan: LabelScan[Labels]) -> SampledItems:
    """Fit the base by passes over a rated scan, and read some of its items."""
    models = [model.fit(scan) for model in base_models(scan.n_classes)]  # type: ignore[arg-type]  # each takes scans
    readings = [reading_of(model, scan) for model in models]
    share = min(1.0, MOST_ROWS / max(scan.n_items, 1))
    return scan_over(scan, _join, _sample_block, readings, share)  # type: ignore[no-any-return]


def base_of_block(block: VoteBlock, readings: list[Reading]) -> Floats:
    """P(class) of each item of a block."""
    chances = [
        kernels.posterior(block.matrix, one.table, one.weights, gold=block.gold_codes, state_class=one.state_class)
        @ one.lattice
        for one in readings
    ]
    return clip_base(np.mean(chances, axis=0))


def _sample_block(block: VoteBlock, readings: list[Reading], share: float, n_threads: int) -> SampledItems:
    base = base_of_block(block, readings)
    outputs = np.asarray(block.outputs)
    drawn = _drawn_codes(block)
    has_output = outputs >= 0
    at_named = np.take_along_axis(base, np.maximum(outputs, 0).astype(np.int64), axis=1)
    kept = np.flatnonzero((keyed_uniforms(block.keys, _KEY_SEED) < share) | (drawn >= 0))
    return SampledItems(
        (block.items(kept),),
        base[kept],
        np.where(drawn[kept] >= 0, 1.0, 1 / share),
        (at_named * has_output).sum(axis=0),
        has_output.sum(axis=0).astype(float),
        base.sum(axis=0),
    )


def _join(one: SampledItems, other: SampledItems) -> SampledItems:
    return SampledItems(
        one.blocks + other.blocks,
        np.concatenate([one.base, other.base]),
        np.concatenate([one.times, other.times]),
        one.named + other.named,
        one.n_named + other.n_named,
        one.mass + other.mass,
    )


def labels_of_sample(scan: LabelScan[Labels], sample: SampledItems) -> tuple[Labels, Codes]:
    """The sampled items as labels whose items are numbers, with their checked items; and what systems say of them."""
    reader = scan.reader
    matrix = sparse.csr_array(sparse.vstack([block.matrix for block in sample.blocks]))
    gold, drawn = (
        np.concatenate([codes(block) for block in sample.blocks]) for codes in (lambda b: b.gold_codes, _drawn_codes)
    )
    keys = np.concatenate([block.keys for block in sample.blocks])
    chance = np.full(len(keys), np.nan)
    chance[drawn >= 0] = _chances_of(scan, keys[drawn >= 0])
    checked = {"gold_codes": np.where(drawn >= 0, drawn, gold).astype(np.int32), "gold_chance": chance}
    labels: Labels = reader.make(
        items=np.arange(len(keys)),
        labelers=reader.labelers,
        classes=scan.classes,
        answers=scan.answers,
        votes=matrix,
        **{**nothing_vetted(len(keys)), **checked},
        n_missing=0,
        abstentions=np.zeros(len(reader.labelers), dtype=np.int64),
        abstain_policy=reader.options.abstain_policy,
        fixed_classes=True,
    )
    outputs = np.concatenate([np.asarray(block.outputs) for block in sample.blocks])
    return labels, outputs.T.astype(np.int32)


def _drawn_codes(block: VoteBlock) -> Codes:
    return block.vetted.astype(np.int32) if len(block.vetted) else np.full(block.n_items, -1, dtype=np.int32)


def _chances_of(scan: LabelScan[Labels], keys: Keys) -> Floats:
    """The chance that each item was drawn; in a simple random sample of all items, the share that was."""
    names = vocabulary_from(list(scan.reader.drawn))
    chances = np.array(list(scan.reader.drawn.values()), dtype=float)
    chances[np.isnan(chances)] = len(chances) / max(scan.n_items, 1)
    place = {key: k for k, key in enumerate(item_keys(names).tolist())}
    return chances[[place[key] for key in keys.tolist()]]
