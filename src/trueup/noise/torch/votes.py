"""Votes on a device, item by item, and the two sums that every model of votes is made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

BLOCK = 1 << 23  # votes whose rows are gathered at once: bounds the memory of a step
_SMALL_INDEX = 1 << 16  # columns that 16 bits tell apart


class VoteBlock(NamedTuple):
    """Some items with their votes."""

    items: slice
    item: Tensor  # of each vote, counted from the first item of the block
    column: Tensor
    times: Tensor | None


class DeviceVotes:
    """The vote matrix on a device: each vote is one index of 16 or 32 bits, and the votes of an item lie together."""

    def __init__(self, matrix: sparse.csr_array, device: torch.device) -> None:
        self.n_items, self.n_columns = matrix.shape
        self.n_votes = matrix.nnz
        self.device = device
        indptr = np.asarray(matrix.indptr)
        self.most_of_an_item = int(np.diff(indptr).max(initial=0))
        wide = np.int64 if self.n_votes >= 1 << 31 else np.int32
        self.first = torch.as_tensor(indptr.astype(wide, copy=False)).to(device)
        # torch knows few operations on unsigned 16 bits, so they travel as signed ones.
        self.is_small = self.n_columns <= _SMALL_INDEX
        indices = matrix.indices.astype(np.uint16).view(np.int16) if self.is_small else matrix.indices.astype(np.int32)
        self.columns = torch.as_tensor(indices).to(device)
        once = bool((matrix.data == 1).all())
        self.times = None if once else torch.as_tensor(matrix.data.astype(np.float64, copy=False)).to(device)
        self._edges = _edges(indptr)
        self._votes_at = indptr[self._edges].tolist()

    @staticmethod
    def bytes_for(matrix: sparse.csr_array) -> int:
        """What the votes take on a device."""
        each = (2 if matrix.shape[1] <= _SMALL_INDEX else 4) + (0 if (matrix.data == 1).all() else 8)
        return int(matrix.nnz * each + (matrix.shape[0] + 1) * (8 if matrix.nnz >= 1 << 31 else 4))

    def blocks(self) -> Iterator[VoteBlock]:
        """All votes, a bounded number at a time."""
        for (low, high), (begin, end) in zip(pairwise(self._edges), pairwise(self._votes_at), strict=True):
            lengths = torch.diff(self.first[low : high + 1]).long()
            places = torch.arange(high - low, device=self.device)
            item = torch.repeat_interleave(places, lengths, output_size=end - begin)
            column = self.columns[begin:end].long()
            times = None if self.times is None else self.times[begin:end]
            yield VoteBlock(slice(low, high), item, column & (_SMALL_INDEX - 1) if self.is_small else column, times)

    def sum_rows(self, table: Tensor) -> Tensor:
        """Of each item the sum of the rows of `table` that its votes name; shape (n_items, width of the table)."""
        total = table.new_zeros(self.n_items, table.shape[1])
        for block in self.blocks():
            total[block.items].index_add_(0, block.item, _weighted(table[block.column], block.times))
        return total

    def count(self, posterior: Tensor) -> Tensor:
        """Of each column the sum of the rows of its votes' items; shape (n_columns, width of `posterior`)."""
        total = posterior.new_zeros(self.n_columns, posterior.shape[1])
        for block in self.blocks():
            total.index_add_(0, block.column, _weighted(posterior[block.items][block.item], block.times))
        return total

    def volumes(self) -> Tensor:
        """How often each answer of each labeler was given, shape (n_columns,)."""
        return self.count(torch.ones(self.n_items, 1, dtype=torch.float64, device=self.device))[:, 0]


def _weighted(rows: Tensor, times: Tensor | None) -> Tensor:
    return rows if times is None else rows * times[:, None]


def _edges(indptr: Any) -> list[int]:
    """Where blocks of items with a bounded number of votes begin, and the end; an item is never cut."""
    n_items, n_votes = len(indptr) - 1, int(indptr[-1])
    n_blocks = max(1, -(-n_votes // BLOCK))
    inner = np.searchsorted(indptr, [n_votes * k // n_blocks for k in range(1, n_blocks)])
    return sorted({0, *inner.tolist(), n_items})
