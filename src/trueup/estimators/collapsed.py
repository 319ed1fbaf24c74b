"""p(truth | votes, system) of a scan: items of which the same is said are one row, with how many they are.

Where metrics are functions of the confusion counts, an item enters by its predicted class and by P(class) alone. So a
pass over the files sums the items up in cells of equal prediction and almost equal log-odds, each with its mean P, and
the counts of a draw are multinomial in each cell. Cells do not depend on how items are spread over files, so nor do
draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.engines import choose_engine, n_cores
from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.data.partitions import VoteBlock
from trueup.data.rated import codes_of_system
from trueup.data.scanning import LabelScan
from trueup.data.votes import nothing_vetted
from trueup.estimators.kinds import draw_kinds
from trueup.estimators.readings import FEW_SWEEPS, Readings, drawing_covariance, n_some_items
from trueup.estimators.real_map import RealMap
from trueup.estimators.tilt import (
    MOST_TILTS,
    Directions,
    TiltedTruths,
    log_chances,
    solve_tilts,
    standard_moves,
    tilted_chances,
)
from trueup.noise import DawidSkene, kernels
from trueup.noise.base import as_table, class_states
from trueup.noise.chain import SystemOutputs

_ROWS = 200_000  # items whose probabilities are held at once
_STEP = 0.02  # of log-odds in a cell; its square is what is lost
_FLOOR = 1e-6  # probability below which a class is as good as out
_MOST_CELLS = 200_000  # beyond, steps are doubled
_MOST_SHARES = 8  # classes up to which their shares are moved
_SAMPLE = 5_000  # items that tilts are found on
_MOST_NUMBERS = 4_000_000  # held at once

_SUMMED = ("bins", "times", "mass")
Bins = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Cells:
    """Items summed up.

    Attributes
    ----------
    bins : integer array of shape (n_cells, 2 + n_classes - 1)
        The predicted class, -1 for none; the class that is vetted, or so many more where it is certain by votes, -1 for
        none; steps of log-odds against the last class. Sorted.
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
    def codes(self) -> Codes:
        """The predicted class of each cell."""
        return self.bins[:, 0].astype(np.int32)

    @property
    def known(self) -> Codes:
        """The class that is vetted in each cell, -1 for none."""
        told = self.bins[:, 1].astype(np.int32)
        return np.where(told < self.mass.shape[1], told, -1)

    @property
    def posterior(self) -> Floats:
        """The mean of P(class) in each cell."""
        return np.asarray(self.mass / self.times[:, None])

    def doubled(self) -> Cells:
        """With steps twice as long."""
        bins = self.bins.copy()
        bins[:, 2:] >>= 1
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
    while len(cells.times) > _MOST_CELLS:
        cells = cells.doubled()
    return cells


def cells_of(posterior: Floats, codes: Codes, gold: Codes) -> Cells:
    """Items summed up, from P(class) of each, shape (n_items, n_classes), what a system says, and vetted classes."""
    logs = np.log(np.maximum(posterior, _FLOOR))
    steps = np.floor((logs[:, :-1] - logs[:, -1:]) / _STEP + 0.5)
    certain = np.where(posterior.max(axis=1) >= 1.0, posterior.argmax(axis=1) + posterior.shape[1], -1)
    bins = np.column_stack([codes, np.where(gold >= 0, gold, certain), steps]).astype(np.int16)
    return _summed(bins, np.ones(len(codes)), posterior, 0)


def block_cells(block: VoteBlock, table: Floats, prior: Floats, n_answers: int, n_threads: int) -> Cells:
    """A block summed up under fitted matrices, of which the last labeler's are the system's."""
    codes, gold = codes_of_system(block, n_answers), block.gold_codes
    parts = []
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
        parts.append(cells_of(step.posterior, codes[low:high], gold[low:high]))
    return reduce(joined, parts)


def collapse(scan: LabelScan[Labels]) -> Cells:
    """The items of a scan summed up, by Dawid and Skene's model of all labelers and the system, fitted to all votes."""
    model = DawidSkene().fit(scan)
    told = (as_table(model.confusion_), model.prior_, scan.n_answers)
    return scan_over(scan, joined, block_cells, *told)  # type: ignore[no-any-return]


def scan_over(scan: LabelScan[Labels], join: Any, work: Any, *told: Any) -> Any:
    """What `work` makes of every block, joined; here, or where the blocks are."""
    encoded = scan.encoded
    if encoded.client is None:
        return reduce(join, (work(block, *told, n_cores()) for block in encoded.blocks))
    shared = encoded.client.submit(tuple, told, pure=False)
    parts = [encoded.client.submit(_work_there, work, block, shared, pure=False) for block in encoded.blocks]
    while len(parts) > 1:
        pairs = [parts[k : k + 2] for k in range(0, len(parts), 2)]
        parts = [encoded.client.submit(join, *pair, pure=False) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0].result()


def _work_there(work: Any, block: VoteBlock, told: tuple[Any, ...]) -> Any:
    return work(block, *told, 1)


def block_sample(block: VoteBlock, share: float, seed: int, n_threads: int) -> VoteBlock:
    """Some items of a block, chosen by their keys: the same whatever block they are in."""
    words = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    with np.errstate(over="ignore"):
        mixed = (block.keys ^ words[0]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * (words[1] | np.uint64(1))
        mixed ^= mixed >> np.uint64(32)
    chosen = np.flatnonzero(mixed < np.uint64(min(int(share * 2**64), 2**64 - 1)))
    return _taken(block, chosen)


def _taken(block: VoteBlock, chosen: npt.NDArray[Any]) -> VoteBlock:
    part = block.matrix[chosen]
    return VoteBlock(
        part.indptr.astype(np.int64),
        part.indices.astype(np.int32),
        part.data,
        block.gold_codes[chosen],
        block.n_columns,
        block.keys[chosen],
    )


def _joined_blocks(one: VoteBlock, other: VoteBlock) -> VoteBlock:
    matrix = sparse.csr_array(sparse.vstack([one.matrix, other.matrix], format="csr"))
    gold, keys = np.concatenate([one.gold, other.gold]), np.concatenate([one.keys, other.keys])
    return VoteBlock(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, gold, one.n_columns, keys
    )


def sample_items(scan: LabelScan[Labels], seed: int) -> tuple[Labels, Codes]:
    """Labels of some items of a scan, in an order that does not depend on files, and what the system says of them."""
    # The system's own votes are no witnesses.
    n_witnessed = max(scan.n_votes - scan.n_repeats - scan.n_items, 1)
    share = n_some_items(scan.n_items, n_witnessed) / scan.n_items
    block = scan_over(scan, _joined_blocks, block_sample, share, seed)
    block = _taken(block, np.argsort(block.keys, kind="stable"))
    last = block.n_columns - scan.n_answers
    items = np.arange(block.n_items)
    return scan.reader.make(
        items=items,
        labelers=scan.reader.labelers,
        classes=scan.classes,
        answers=scan.answers,
        votes=sparse.csr_array(block.matrix[:, :last]),
        **{**nothing_vetted(len(items)), "gold_codes": block.gold.astype(np.int32)},
        n_missing=0,
        abstentions=np.zeros(len(scan.reader.labelers), dtype=np.int64),
        abstain_policy=scan.reader.options.abstain_policy,
        fixed_classes=True,
    ), codes_of_system(block, scan.n_answers)


def class_features(codes: Codes, times: Floats, n_classes: int) -> Floats:
    """Features whose means are the accuracy of a system and the shares of the classes; (n_features, n, n_classes)."""
    given = float(times[codes >= 0].sum() / times.sum())
    accuracy = (codes[:, None] == np.arange(n_classes)) / max(given, 1e-12)
    shares = np.eye(n_classes if n_classes <= _MOST_SHARES else 0, n_classes)
    spread = np.broadcast_to(shares[:, None, :], (len(shares), len(codes), n_classes))
    return np.concatenate([accuracy[None], spread])


@dataclass(frozen=True, eq=False)
class CollapsedReadings(Readings):
    """Readings of which each row stands for several items; draws hold counts in place of truths.

    Attributes
    ----------
    times : array of shape (n_rows,)
        The number of items of each row.
    codes : integer array of shape (n_rows,)
        What the system says of them.
    n_drawn : int
        The number of items that the models were drawn on.
    """

    times: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    codes: Codes = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    n_drawn: int = 0

    @property
    def drawn_share(self) -> float:
        """The share of the items that the models were drawn on."""
        return float(self.n_drawn / self.times.sum())

    @property
    def unknown_share(self) -> float:
        """The share of the items whose class the models were not told."""
        return float(self.times[self.known < 0].sum() / self.times.sum())

    def _chance_covariance(self) -> Floats:
        return drawing_covariance(self.posterior, self.features, self.times)

    def _along(self, directions: Directions, shift: Floats) -> Floats:
        flat = self.features.reshape(len(self.features), -1)
        heavy = flat * np.repeat(self.times, self.features.shape[2])
        own = directions.features.reshape(directions.n, -1)
        return np.asarray(np.linalg.lstsq(heavy @ flat.T, heavy @ own.T, rcond=None)[0].T @ shift)

    def _tilted(self, directions: Directions, shift: Floats | None, rng: np.random.Generator) -> TiltedTruths:
        n_tilts = min(self.n_draws, MOST_TILTS)
        moves = standard_moves(n_tilts, directions.n, rng) * directions.scales
        some = np.sort(rng.choice(len(self.times), size=_SAMPLE, p=self.times / self.times.sum()))
        moved = moves if shift is None else moves + shift
        tilts = solve_tilts(self.posterior[some], directions.features[:, some], moved, rng)
        counts = self._counts(directions.features, tilts[np.arange(self.n_draws) % n_tilts], rng)
        return TiltedTruths(counts, float(n_tilts))

    def _counts(self, features: Floats, tilts: Floats, rng: np.random.Generator) -> Codes:
        """Confusion counts (truth, prediction) of each tilt."""
        n_rows, n_classes = self.posterior.shape
        logs, predicted = log_chances(self.posterior), (self.codes[:, None] == np.arange(n_classes)).astype(float)
        times = self.times.astype(np.int64)
        counts = np.empty((len(tilts), n_classes, n_classes), dtype=np.int64)
        rows = max(1, _MOST_NUMBERS // (n_rows * n_classes))
        for first in range(0, len(tilts), rows):
            chances = tilted_chances(logs, features, tilts[first : first + rows])
            drawn = rng.multinomial(times, chances / chances.sum(axis=2, keepdims=True))
            counts[first : first + rows] = np.einsum("dny,nc->dyc", drawn.astype(float), predicted).astype(np.int64)
        return counts


def read_scan(scan: LabelScan[Labels], real_map: RealMap, *, n_draws: int, seed: int) -> CollapsedReadings:
    """What the votes of a scan say of its last labeler, the system under test, under every assumption."""
    rng = np.random.default_rng(seed)
    labels, said = sample_items(scan, seed)
    n_classes = scan.n_classes
    outputs = SystemOutputs(said[None].astype(np.int64), np.array([n_classes]), np.ones(1))
    sweeps: dict[str, Any] = dict(FEW_SWEEPS)
    kinds = draw_kinds(labels, outputs, said[None].astype(np.int32), rng=rng, **sweeps)
    cells = collapse(scan)
    return CollapsedReadings(
        kinds,
        np.zeros(len(cells.times), dtype=bool),
        class_features(said, np.ones(len(said)), n_classes),
        cells.posterior,
        class_features(cells.codes, cells.times, n_classes),
        np.zeros((1, 1)),
        cells.known,
        np.full(len(cells.times), -1, dtype=np.int32),
        real_map,
        n_draws,
        seed,
        times=cells.times,
        codes=cells.codes,
        n_drawn=labels.n_items,
    )
