"""The items of a scan summed up: those of which the same is said are one row, with how many they are.

Where metrics are functions of the confusion counts, an item enters by its predicted classes and by P(class) alone. So a
pass over the files sums the items up in cells of equal predictions and almost equal log-odds, each with its mean P.
Cells do not depend on how items are spread over files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.engines import choose_engine
from trueup._base.types import Booleans, Codes, Floats
from trueup.data.labels import Labels
from trueup.data.partitions import VoteBlock, keyed_uniforms
from trueup.data.rated import RatedReader
from trueup.data.scanning import LabelScan
from trueup.data.votes import nothing_vetted
from trueup.estimators.readings import n_some_items
from trueup.exceptions import InvalidPredictions
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
    """A block summed up under fitted matrices."""
    gold, parts = block.gold_codes, []
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


def collapse(scan: LabelScan[Labels]) -> Cells:
    """The items of a scan summed up, by Dawid and Skene's model of labelers and raters, fitted to all votes."""
    model = DawidSkene().fit(scan)
    return scan_over(scan, joined, block_cells, as_table(model.confusion_), model.prior_)  # type: ignore[no-any-return]


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


def block_sample(block: VoteBlock, share: float, seed: int, n_threads: int) -> VoteBlock:
    """Some items of a block, chosen by their keys: the same whatever block they are in."""
    return block.items(np.flatnonzero(keyed_uniforms(block.keys, seed) < share))


def _joined_blocks(one: VoteBlock, other: VoteBlock) -> VoteBlock:
    matrix = sparse.csr_array(sparse.vstack([one.matrix, other.matrix], format="csr"))
    gold, keys, outputs = (
        np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("gold", "keys", "outputs")
    )
    return VoteBlock.of_matrix(matrix, gold, keys, outputs)


def sample_items(scan: LabelScan[Labels], seed: int) -> tuple[Labels, Codes]:
    """Labels of some items of a scan, in an order that does not depend on files, and what systems say of them."""
    reader = scan.reader
    assert isinstance(reader, RatedReader)
    share = n_some_items(scan.n_items, max(scan.n_witnessed, 1)) / scan.n_items
    block = scan_over(scan, _joined_blocks, block_sample, share, seed)
    block = block.items(np.argsort(block.keys, kind="stable"))
    items = np.arange(block.n_items)
    return reader.make(
        items=items,
        labelers=reader.labelers,
        classes=scan.classes,
        answers=scan.answers,
        votes=sparse.csr_array(block.matrix[:, : len(reader.labelers) * scan.n_answers]),  # systems are no witnesses
        **{**nothing_vetted(len(items)), "gold_codes": block.gold.astype(np.int32)},
        n_missing=0,
        abstentions=np.zeros(len(reader.labelers), dtype=np.int64),
        abstain_policy=reader.options.abstain_policy,
        fixed_classes=True,
    ), block.outputs.T.astype(np.int32)
