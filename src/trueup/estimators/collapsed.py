"""The items of a scan summed up: those of which the same is said are one row, with how many they are.

Where metrics are functions of the confusion counts, an item enters by its predicted classes and by P(class) alone. So a
pass over the files sums the items up in cells of equal predictions and almost equal log-odds, each with its mean P.
Cells do not depend on how items are spread over files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Codes, Floats
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.data.partitions import Keys, VoteBlock, item_keys, keyed_uniforms
from trueup.data.rated import RatedReader
from trueup.data.scanning import LabelScan
from trueup.data.votes import nothing_vetted
from trueup.estimators.readings import n_some_items
from trueup.exceptions import InvalidLabels, InvalidPredictions
from trueup.noise import DawidSkene, kernels
from trueup.noise.base import as_table, class_states
from trueup.noise.passes import scan_over

_ROWS = 200_000  # items whose probabilities are held at once
_STEP = 0.02  # of log-odds in a cell; its square is what is lost
_FLOOR = 1e-6  # probability below which a class is as good as out
_MOST_CELLS = 200_000  # beyond, steps are doubled
_MOST_PATTERNS = 20_000  # of what systems say together
_COARSEST = 16  # doublings after which a cell has no steps

_SUMMED = ("bins", "times", "mass")
Bins = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Cells:
    """Items summed up.

    Attributes
    ----------
    bins : integer array of shape (n_cells, n_systems + 1 + n_classes - 1)
        The class that each system predicts, -1 for none; the class that is vetted, or so many more where it is certain
        by votes, -1 for none; steps of log-odds against the last class. Sorted.
    times : array of shape (n_cells,)
        Number of items.
    mass : array of shape (n_cells, n_classes)
        The sum of P(class).
    level : int
        How often steps were doubled.
    """

    bins: Bins
    times: Floats
    mass: Floats
    level: int = 0

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return int(self.bins.shape[1] - self.mass.shape[1])

    @property
    def codes(self) -> Codes:
        """The class that each system predicts in each cell, shape (n_systems, n_cells)."""
        return self.bins[:, : self.n_systems].T.astype(np.int32)

    @property
    def known(self) -> Codes:
        """The class that is vetted in each cell, -1 for none."""
        told = self.bins[:, self.n_systems].astype(np.int32)
        return np.where(told < self.mass.shape[1], told, -1)

    @property
    def posterior(self) -> Floats:
        """The mean of P(class) in each cell."""
        return np.asarray(self.mass / self.times[:, None])

    def doubled(self) -> Cells:
        """With steps twice as long, and in the end without any."""
        bins, steps = self.bins.copy(), slice(self.n_systems + 1, None)
        bins[:, steps] = bins[:, steps] >> 1 if self.level < _COARSEST else 0
        return _summed(bins, self.times, self.mass, self.level + 1)


def _summed(bins: Bins, times: Floats, mass: Floats, level: int) -> Cells:
    rows, place = np.unique(bins, axis=0, return_inverse=True)
    place = place.ravel()
    total = np.stack([np.bincount(place, column, len(rows)) for column in mass.T], axis=1).astype(float)
    return Cells(rows, np.bincount(place, times, len(rows)).astype(float), total, level)


def joined(one: Cells, other: Cells) -> Cells:
    """The cells of two sets of items together."""
    while one.level < other.level:
        one = one.doubled()
    while other.level < one.level:
        other = other.doubled()
    bins, times, mass = (np.concatenate([getattr(part, name) for part in (one, other)]) for name in _SUMMED)
    cells = _summed(bins, times, mass, one.level)
    while len(cells.times) > _MOST_CELLS and cells.level <= _COARSEST:
        cells = cells.doubled()
    return cells


def no_cells(n_classes: int, n_systems: int) -> Cells:
    """The cells of no items."""
    return Cells(np.empty((0, n_systems + n_classes), dtype=np.int16), np.empty(0), np.empty((0, n_classes)))


def cells_of(posterior: Floats, codes: Codes, gold: Codes) -> Cells:
    """Items summed up.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) of each.
    codes : integer array of shape (n_items, n_systems)
        What systems say.
    gold : integer array of shape (n_items,)
        Vetted classes, -1 for none.
    """
    logs = np.log(np.maximum(posterior, _FLOOR))
    steps = np.floor((logs[:, :-1] - logs[:, -1:]) / _STEP + 0.5)
    certain = np.where(posterior.max(axis=1) >= 1.0, posterior.argmax(axis=1) + posterior.shape[1], -1)
    bins = np.column_stack([codes, np.where(gold >= 0, gold, certain), steps]).astype(np.int16)
    return _summed(bins, np.ones(len(codes)), posterior, 0)


def block_cells(block: VoteBlock, table: Floats, prior: Floats, n_threads: int) -> Cells:
    """The items of a block summed up under fitted matrices, without those that were drawn and vetted."""
    block = block.items(np.flatnonzero(block.vetted < 0)) if (block.vetted >= 0).any() else block
    gold, parts = block.gold_codes, [no_cells(len(prior), block.outputs.shape[1])]
    for low in range(0, block.n_items, _ROWS):
        high = min(low + _ROWS, block.n_items)
        some = block.rows(low, high)
        engine = choose_engine(work=len(some.indices))
        if engine == "numba":
            arrays = (some.indptr, some.indices, some.data, some.n_columns)
            votes: Any = kernels.prepare_rows(*arrays, n_threads=n_threads)
        else:
            votes = some.matrix
        step = kernels.em_step(
            votes,
            table,
            prior,
            gold=gold[low:high],
            state_class=class_states(len(prior)),
            engine=engine,
            keep_posterior=True,
        )
        assert step.posterior is not None
        parts.append(cells_of(step.posterior, np.asarray(block.outputs[low:high]), gold[low:high]))
    return reduce(joined, parts)


@dataclass(frozen=True, eq=False)
class VettedItems:
    """Items that were drawn by chance and vetted, one row each, in the order of their keys.

    Attributes
    ----------
    keys : integer array of shape (n,)
    codes : integer array of shape (n_systems, n)
        What systems say.
    truths : integer array of shape (n,)
    posterior : array of shape (n, n_classes)
        P(class) under models that were not told.
    chances : array of shape (n,)
        With which each was drawn.
    """

    keys: Keys
    codes: Codes
    truths: Codes
    posterior: Floats
    chances: Floats

    @classmethod
    def none(cls, n_systems: int, n_classes: int) -> VettedItems:
        """No items."""
        no_codes = np.empty((n_systems, 0), dtype=np.int32)
        return cls(np.empty(0, np.uint64), no_codes, np.empty(0, np.int32), np.empty((0, n_classes)), np.empty(0))

    def __len__(self) -> int:
        return len(self.keys)


def block_vetted(block: VoteBlock, table: Floats, prior: Floats, n_threads: int) -> tuple[VoteBlock, Floats]:
    """The vetted items of a block, and P(class) of each."""
    some = block.items(np.flatnonzero(block.vetted >= 0))
    how = {"gold": some.gold_codes, "state_class": class_states(len(prior))}
    return some, kernels.posterior(some.matrix, table, prior, **how)


def _joined_vetted(one: tuple[VoteBlock, Floats], other: tuple[VoteBlock, Floats]) -> tuple[VoteBlock, Floats]:
    return _joined_blocks(one[0], other[0]), np.concatenate([one[1], other[1]])


def collapse(scan: LabelScan[Labels]) -> tuple[Cells, VettedItems]:
    """The items of a scan summed up, by Dawid and Skene's model of labelers, fitted to all votes.

    Those that were drawn by chance and vetted stay apart.
    """
    reader = scan.reader
    assert isinstance(reader, RatedReader)
    model = DawidSkene().fit(scan)
    told = (as_table(model.confusion_), model.prior_)
    cells: Cells = scan_over(scan, joined, block_cells, *told)
    if not reader.vetted:
        return cells, VettedItems.none(cells.n_systems, scan.n_classes)
    block, posterior = scan_over(scan, _joined_vetted, block_vetted, *told)
    if block.n_items < len(reader.vetted):
        raise InvalidLabels(
            f"gold must be of items of the scan, got {len(reader.vetted) - block.n_items} of {len(reader.vetted)} that "
            "are in none of its files; leave them out"
        )
    order = np.argsort(block.keys, kind="stable")
    of_block = (block.keys[order], block.outputs[order].T.astype(np.int32), block.vetted[order].astype(np.int32))
    return cells, VettedItems(*of_block, posterior[order], _chances_of(scan, block.keys[order]))


def _chances_of(scan: LabelScan[Labels], keys: Keys) -> Floats:
    """With which chance vetted items were drawn."""
    reader = scan.reader
    assert isinstance(reader, RatedReader)
    names = list(reader.vetted)
    their_keys = item_keys(vocabulary_from(names)).tolist()
    chance_of = dict(zip(their_keys, (reader.drawn[name] for name in names), strict=True))
    chances = np.array([chance_of[key] for key in keys.tolist()])
    return np.where(np.isnan(chances), len(names) / scan.n_items, chances)


@dataclass(frozen=True, eq=False)
class Patterns:
    """What systems say together.

    Attributes
    ----------
    codes : integer array of shape (n_systems, n_patterns)
        Classes, -1 for none; different columns.
    times : array of shape (n_patterns,)
        The number of items on which they say so.
    """

    codes: Codes
    times: Floats

    @property
    def is_common(self) -> Booleans:
        """In which patterns no system is silent."""
        return np.asarray((self.codes >= 0).all(axis=0))

    def common(self) -> Patterns:
        """With all systems silent where one is."""
        return _patterns_of(np.where(self.is_common, self.codes, -1).T, self.times)


def _patterns_of(rows: npt.NDArray[Any], times: Floats) -> Patterns:
    different, place = np.unique(rows, axis=0, return_inverse=True)
    if len(different) > _MOST_PATTERNS:
        raise InvalidPredictions(
            f"systems on votes that are scanned may say {_MOST_PATTERNS:,} different things together, got more from "
            f"{rows.shape[1]} systems; compare fewer at a time, or read all votes into memory with scan.read()"
        )
    return Patterns(different.T.astype(np.int32), np.bincount(place.ravel(), times, len(different)).astype(float))


def block_patterns(block: VoteBlock, n_threads: int) -> Patterns:
    """What systems say together on the items of a block."""
    return _patterns_of(np.asarray(block.outputs), np.ones(block.n_items))


def joined_patterns(one: Patterns, other: Patterns) -> Patterns:
    """The patterns of two sets of items together."""
    rows = np.concatenate([one.codes, other.codes], axis=1).T
    return _patterns_of(rows, np.concatenate([one.times, other.times]))


def patterns_of(scan: LabelScan[Labels]) -> Patterns:
    """What systems say together on all items."""
    return scan_over(scan, joined_patterns, block_patterns)  # type: ignore[no-any-return]


def some_items(block: VoteBlock, n: int, seed: int, keep_vetted: bool, n_threads: int) -> VoteBlock:
    """So many items of a block, by chance; those that systems say something of before others.

    They are chosen by their keys, so that the chosen ones of several blocks, joined and chosen from again, are those of
    all items however these are spread over files.

    Parameters
    ----------
    n : int
        At most.
    seed : int
    keep_vetted : bool
        All that are vetted too.
    """
    is_silent = (np.asarray(block.outputs) < 0).all(axis=1)
    order = np.argsort(is_silent + keyed_uniforms(block.keys, seed), kind="stable")
    chosen = np.zeros(block.n_items, dtype=bool)
    chosen[order[:n]] = True
    if keep_vetted:
        chosen |= (block.gold_codes >= 0) | (block.vetted >= 0)
    return block.items(np.flatnonzero(chosen))


def _some_of_both(one: VoteBlock, other: VoteBlock, *, n: int, seed: int, keep_vetted: bool) -> VoteBlock:
    return some_items(_joined_blocks(one, other), n, seed, keep_vetted, 1)


def _some_of_scan(scan: LabelScan[Labels], seed: int, *, keep_vetted: bool) -> VoteBlock:
    """The items that models are drawn on, in the order of their keys."""
    n = n_some_items(scan.n_items, max(scan.n_witnessed, 1))
    join = partial(_some_of_both, n=n, seed=seed, keep_vetted=keep_vetted)
    block: VoteBlock = scan_over(scan, join, some_items, n, seed, keep_vetted)
    return block.items(np.argsort(block.keys, kind="stable"))


def _joined_blocks(one: VoteBlock, other: VoteBlock) -> VoteBlock:
    matrix = sparse.csr_array(sparse.vstack([one.matrix, other.matrix], format="csr"))
    beside = {
        name: np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("keys", "outputs", "vetted")
    }
    return VoteBlock.of_matrix(matrix, np.concatenate([one.gold_codes, other.gold_codes]), **beside)


def sample_items(scan: LabelScan[Labels], seed: int) -> tuple[Labels, Codes]:
    """Labels of some items of a scan, in an order that does not depend on files, and what systems say of them."""
    block = _some_of_scan(scan, seed, keep_vetted=False)
    return _labels_of(scan, block, gold_codes=block.gold.astype(np.int32)), block.outputs.T.astype(np.int32)


def checked_items(scan: LabelScan[Labels], seed: int) -> tuple[Labels, Codes]:
    """Labels of some items of a scan and of all that are vetted, with their gold, and what systems say of them."""
    block = _some_of_scan(scan, seed, keep_vetted=True)
    vetted = np.asarray(block.vetted, dtype=np.int32)
    chances = np.full(block.n_items, np.nan)
    chances[vetted >= 0] = _chances_of(scan, block.keys[vetted >= 0])
    gold = np.where(vetted >= 0, vetted, block.gold_codes).astype(np.int32)
    return _labels_of(scan, block, gold_codes=gold, gold_chance=chances), block.outputs.T.astype(np.int32)


def _labels_of(scan: LabelScan[Labels], block: VoteBlock, **gold: npt.NDArray[Any]) -> Labels:
    """The votes of a block."""
    reader = scan.reader
    labels: Labels = reader.make(
        items=np.arange(block.n_items),
        labelers=reader.labelers,
        classes=scan.classes,
        answers=scan.answers,
        votes=block.matrix,
        **{**nothing_vetted(block.n_items), **gold},
        n_missing=0,
        abstentions=np.zeros(len(reader.labelers), dtype=np.int64),
        abstain_policy=reader.options.abstain_policy,
        fixed_classes=True,
    )
    return labels
