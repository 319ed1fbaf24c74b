"""The passes of expectation–maximisation on a device: votes are copied there once, tables and counts stay there.

On a GPU a pass is one CUDA kernel, which torch compiles on its first use. A thread takes an item. The table of the
model and the counts of the answers lie in the memory that a block of threads shares, so that a vote costs two reads
of its index and two accesses there. Sums are of integers (logarithms in units of 2⁻²⁶, probabilities in units of
2⁻²⁴), so they do not depend on the order in which threads come: a fit gives the same twice. A count that overflows 32
bits carries into the 64 bits of the device's memory. Where tables are too large for the shared memory, the device's
memory serves. Where torch cannot compile, `pass_for` says None, and the sums of `DeviceVotes` do the same in some
five times the time.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from trueup._base.arrays import like, to_numpy
from trueup._base.engines import named_device
from trueup._base.types import Codes, Floats
from trueup.exceptions import InvalidParameter
from trueup.noise.kernels import FLOOR, Expectation, TooLittleMemory, starts_of_items

_BYTES_A_VOTE = 120  # three indices and some twelve numbers while a sum is made
BLOCK = 1 << 23  # votes whose rows are gathered at once: bounds the memory of a step
_SMALL_INDEX = 1 << 16  # columns that 16 bits tell apart


def device_in_use() -> torch.device:
    """The device that the call in progress named, such as "cuda:0" or "cpu"; without one a GPU where there is one."""
    name = named_device()
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device: torch.device | None = torch.device(name)
    except RuntimeError:
        device = None
    n_devices = torch.cuda.device_count()
    if device is not None and (device.type == "cpu" or (device.type == "cuda" and (device.index or 0) < n_devices)):
        return device
    there = ["cpu", *[f"cuda:{k}" for k in range(n_devices)]]
    raise InvalidParameter(
        f"`engine` must name a device that is here, {', '.join(f'torch:{one}' for one in there)}, got "
        f"{f'torch:{name}'!r}; leave it out to let the engine choose",
    )


def free_bytes(device: torch.device) -> float:
    """What can still be allocated on a device; all of it on the processor, which the operating system looks after."""
    if device.type != "cuda":
        return float("inf")
    free, _ = torch.cuda.mem_get_info(device)
    return float(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def check_memory(n_bytes: float, device: torch.device) -> None:
    """Refuse before anything is copied what a device has no memory for."""
    free = free_bytes(device)
    if n_bytes > free:
        raise TooLittleMemory(f"about {n_bytes / 1e9:.2g} GB are needed on {device} and {free / 1e9:.2g} GB are free")


def place_all(votes: Any, posterior: Floats) -> tuple[Any, Any]:
    """`DecidedVotes`, and a table of their items, on the device in use."""
    device = device_in_use()
    check_memory(_BYTES_A_VOTE * len(votes.item) + 6 * posterior.nbytes, device)

    def place(array: Any) -> torch.Tensor:
        return torch.as_tensor(array).to(device)

    return votes.placed(place), place(posterior)


class VoteBlock(NamedTuple):
    """Some items with their votes."""

    items: slice
    item: Tensor  # of each vote, counted from the first item of the block
    column: Tensor
    counts: Tensor | None


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
        self.counts = None if once else torch.as_tensor(matrix.data.astype(np.float64, copy=False)).to(device)
        self._indptr = indptr

    def blocks(self, most: int = BLOCK) -> Iterator[VoteBlock]:
        """All votes, so many at a time."""
        edges = _edges(self._indptr, most)
        votes_at = self._indptr[edges].tolist()
        for (low, high), (begin, end) in zip(pairwise(edges), pairwise(votes_at), strict=True):
            lengths = torch.diff(self.first[low : high + 1]).long()
            places = torch.arange(high - low, device=self.device)
            item = torch.repeat_interleave(places, lengths, output_size=end - begin)
            column = self.columns[begin:end].long()
            counts = None if self.counts is None else self.counts[begin:end]
            yield VoteBlock(slice(low, high), item, column & (_SMALL_INDEX - 1) if self.is_small else column, counts)

    def sum_rows(self, table: Tensor) -> Tensor:
        """Of each item the sum of the rows of `table` that its votes name; shape (n_items, width of the table)."""
        total = table.new_zeros(self.n_items, table.shape[1])
        for block in self.blocks():
            total[block.items].index_add_(0, block.item, _weighted(table[block.column], block.counts))
        return total

    def count(self, posterior: Tensor) -> Tensor:
        """Of each column the sum of the rows of its votes' items; shape (n_columns, width of `posterior`)."""
        total = posterior.new_zeros(self.n_columns, posterior.shape[1])
        for block in self.blocks():
            total.index_add_(0, block.column, _weighted(posterior[block.items][block.item], block.counts))
        return total

    def answer_counts(self, n_answers: int) -> Tensor:
        """How often each item got each answer, shape (n_items, n_answers)."""
        answer = torch.arange(self.n_columns, device=self.device) % n_answers
        return self.sum_rows(torch.nn.functional.one_hot(answer, n_answers).double())

    def volumes(self) -> Tensor:
        """How often each answer of each labeler was given, shape (n_columns,)."""
        return self.count(torch.ones(self.n_items, 1, dtype=torch.float64, device=self.device))[:, 0]


def _weighted(rows: Tensor, counts: Tensor | None) -> Tensor:
    return rows if counts is None else rows * counts[:, None]


def _edges(indptr: Any, most: int) -> list[int]:
    """Where blocks of items with so many votes begin, and the end; an item is never cut."""
    n_items, n_votes = len(indptr) - 1, int(indptr[-1])
    n_blocks = max(1, -(-n_votes // most))
    inner = np.searchsorted(indptr, [n_votes * k // n_blocks for k in range(1, n_blocks)])
    return sorted({0, *inner.tolist(), n_items})


_placed: dict[tuple[int, str], tuple[weakref.ref[sparse.csr_array], DeviceVotes]] = {}


def votes_on_device(matrix: sparse.csr_array) -> DeviceVotes:
    """The votes on the device in use; those of a matrix that is still there were placed once."""
    device = device_in_use()
    key = id(matrix), str(device)
    kept = _placed.get(key)
    if kept is None or kept[0]() is not matrix:
        votes = DeviceVotes(matrix, device)
        _placed[key] = kept = weakref.ref(matrix, lambda _: _placed.pop(key, None)), votes
    return kept[1]


class DevicePasses:
    """Votes that are placed on a device once; tables and counts come and go as tensors there."""

    def __init__(self, matrix: sparse.csr_array, gold: Codes, n_classes: int, n_answers: int) -> None:
        device = device_in_use()
        n_items, n_columns = matrix.shape
        each = (2 if n_columns <= _SMALL_INDEX else 4) + (0 if (matrix.data == 1).all() else 8)
        votes = matrix.nnz * each + (n_items + 1) * (8 if matrix.nnz >= 1 << 31 else 4)
        tables = 8 * n_classes * (4 * n_items + 6 * n_columns)  # of items and of labelers, beside a block's rows
        rows = min(BLOCK, matrix.nnz) * (24 + 24 * n_classes)
        check_memory(float(votes + tables + rows), device)
        self._votes = votes_on_device(matrix)
        # The known classes of the items, -1 for none; None if no class is known.
        self._gold = torch.as_tensor(gold.astype("int16")).to(device) if (gold >= 0).any() else None
        self._sizes = n_classes, n_answers
        self._fused_for: dict[int, FusedPass | None] = {}

    def first_counts(self, smoothing: float = 0.0) -> tuple[Any, Any]:
        """Counts if the truth is the shares of an item's votes."""
        n_classes, n_answers = self._sizes
        counts = self._votes.answer_counts(n_answers)[:, :n_classes] + smoothing
        total = counts.sum(dim=1, keepdim=True)
        shares = torch.where(total > 0, counts / total, 1 / n_classes)
        if self._gold is not None:
            given = torch.nonzero(self._gold >= 0)[:, 0]
            shares[given] = torch.nn.functional.one_hot(self._gold[given].long(), n_classes).double()
        return self._votes.count(shares), shares.sum(axis=0)

    def _logs(self, table: Any, weights: Any, state_class: Codes) -> tuple[Tensor, Tensor]:
        """The logarithms of a table, and of how items start: a row for those not known, and more for known ones."""
        log_table = torch.as_tensor(table).to(self._votes.device).clamp_min(FLOOR).log()
        if self._gold is None:  # then nothing needs to go back and forth
            return log_table, torch.as_tensor(weights).to(self._votes.device).log()[None]
        return log_table, like(log_table, starts_of_items(to_numpy(weights), state_class)).log()

    def _joint(self, log_table: Tensor, log_starts: Tensor) -> Tensor:
        """Log P(votes and state) of each item."""
        joint = self._votes.sum_rows(log_table)
        joint += log_starts[0] if self._gold is None else log_starts[1 + self._gold.long()]
        return joint

    def expect(self, table: Any, weights: Any, state_class: Codes) -> Expectation:
        """The E-step."""
        log_table, log_starts = self._logs(table, weights, state_class)
        n_states = len(state_class)
        if n_states not in self._fused_for:
            self._fused_for[n_states] = pass_for(self._votes, n_states, self._gold)
        fused = self._fused_for[n_states]
        if fused is not None:
            return fused(log_table, log_starts)
        joint = self._joint(log_table, log_starts)
        per_item = torch.logsumexp(joint, dim=1)
        posterior = torch.exp_(joint.sub_(per_item[:, None]))
        return Expectation(self._votes.count(posterior), posterior.sum(dim=0), float(per_item.sum()))

    def posterior(self, table: Any, weights: Any, state_class: Codes, lattice: Floats | None = None) -> Floats:
        """P(state | votes) of each item, or its mean of the points of a lattice."""
        chances = torch.softmax(self._joint(*self._logs(table, weights, state_class)), dim=1)
        return to_numpy(chances if lattice is None else chances @ like(chances, lattice.copy()))

    def totals(self) -> tuple[Floats, float, float]:
        """How often each answer of each labeler was given, pairs of votes on an item, and such that agree."""
        counts = self._votes.answer_counts(self._sizes[1])
        of_items = counts.sum(dim=1)
        pairs, agreed = (of_items * (of_items - 1)).sum(), (counts * (counts - 1)).sum()
        return to_numpy(self._votes.volumes()), float(pairs), float(agreed)

    def residual_sums(
        self, n_labelers: int, pooled: Floats, lattice: Floats, weights: Floats, state_class: Codes
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """As `trueup.noise.soft_truth.residual_sums`, vote by vote; sums are of integers, the same in any order."""
        n_classes, n_answers = pooled.shape
        log_table, log_starts = self._logs(pooled.T @ lattice.T, weights, state_class)
        points, of_class = like(log_table, lattice.copy()), like(log_table, pooled[:, :n_classes])
        answers = torch.eye(n_answers, n_classes, dtype=torch.float64, device=log_table.device)
        first, second = (like(log_table, index) for index in np.triu_indices(n_classes))
        sums = torch.zeros(n_labelers, n_classes + len(first), dtype=torch.int64, device=log_table.device)
        squares = sums.new_zeros(sums.shape[1], dtype=torch.float64)
        for block in self._votes.blocks(max(1, _CELLS // max(log_table.shape[1], len(first)))):
            answer = block.column % n_answers
            joint = log_starts[0].repeat(block.items.stop - block.items.start, 1)
            if self._gold is not None:
                joint = log_starts[1 + self._gold[block.items].long()]
            joint.index_add_(0, block.item, _weighted(log_table[answer], block.counts))
            expected = torch.softmax(joint[block.item] - log_table[answer], dim=1) @ points
            residual = expected * (answers[answer] - expected @ of_class)
            values = torch.cat([residual, expected[:, first] * expected[:, second]], dim=1)
            sums.index_add_(0, torch.div(block.column, n_answers, rounding_mode="floor"), _as_units(values))
            squares += (values**2).sum(dim=0)
        found, own = to_numpy(sums).T * 2.0**-_BITS, to_numpy(squares)
        return found[:n_classes], found[n_classes:], own[:n_classes], own[n_classes:]


_CELLS = 1 << 26  # numbers of votes × states that are held at once
_BITS = 36  # of the fraction of a number that is summed as an integer; 10⁸ votes of a labeler do not overflow


def _as_units(values: Tensor) -> Tensor:
    return (values * 2.0**_BITS).round().to(torch.int64)


_LOG_UNIT = 2.0**-26  # logarithms of ratios of probabilities stay within ±2⁵, since the least probability is 1e-10
_UNIT = 2.0**-24
_MOST_STATES = 16  # held in registers
_MOST_VOTES_OF_AN_ITEM = 2048  # an item is the work of one thread
_FEWEST_VOTES = 200_000  # below, compiling takes longer than it saves
_MOST_COPIES = 32  # of the counts, where few labelers would have threads wait for each other
_WORDS_OF_COPIES = 8192

_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(THREADS) expect(
    const FIRST* __restrict__ first, const COLUMN* __restrict__ columns, const int* __restrict__ table,
    const double* __restrict__ starts, const short* __restrict__ gold,
    unsigned long long* __restrict__ counts, unsigned long long* __restrict__ state_counts,
    double* __restrict__ log_likelihoods, int n_items, int n_cells, int n_copies)
{
    extern __shared__ unsigned int shared[];
    int stride = n_cells | 1;  // copies begin in different banks
#if SHARED_COUNTS
    for (int k = threadIdx.x; k < stride * n_copies; k += blockDim.x) shared[k] = 0u;
    unsigned int* own = shared + (threadIdx.x % n_copies) * stride;
#endif
#if SHARED_TABLE
    int* logs = (int*)(shared + stride * n_copies);
    for (int k = threadIdx.x; k < n_cells; k += blockDim.x) logs[k] = table[k];
#else
    const int* logs = table;
#endif
    __syncthreads();
    unsigned long long in_state[D];
    for (int d = 0; d < D; ++d) in_state[d] = 0ull;
    double log_likelihood = 0.0;
    double start[D + 1];
    for (int s = 0; s <= D; ++s) start[s] = starts[s];
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n_items; i += gridDim.x * blockDim.x) {
        const FIRST low = first[i], high = first[i + 1];
        long long sum[D];
        for (int d = 0; d < D; ++d) sum[d] = 0;
        for (FIRST j = low; j < high; ++j) {
            const int cell = (int)columns[j] * D;
            for (int d = 0; d < D; ++d) sum[d] += logs[cell + d];
        }
#if HAS_GOLD
        for (int s = 0; s <= D; ++s) start[s] = starts[(gold[i] + 1) * (D + 1) + s];
#endif
        double x[D + 1];
        for (int s = 0; s <= D; ++s) x[s] = start[s] + (s ? (double)sum[s ? s - 1 : 0] * LOG_UNIT : 0.0);
        double top = x[0];
        for (int s = 1; s <= D; ++s) top = fmax(top, x[s]);
        float chance[D + 1], total = 0.0f;
        for (int s = 0; s <= D; ++s) {
            chance[s] = expf((float)(x[s] - top));
            total += chance[s];
        }
        log_likelihood += top + (double)logf(total);
        unsigned int part[D], any = 0u;
        const float units = 16777216.0f / total;
        for (int d = 0; d < D; ++d) part[d] = __float2uint_rn(chance[d + 1] * units);
        for (int d = 0; d < D; ++d) {
            in_state[d] += part[d];
            any |= part[d];
        }
        if (any == 0u) continue;
        for (FIRST j = low; j < high; ++j) {
            const int cell = (int)columns[j] * D;
            for (int d = 0; d < D; ++d) {
#if SHARED_COUNTS
                const unsigned int before = atomicAdd(&own[cell + d], part[d]);
                if (before > 0xffffffffu - part[d]) atomicAdd(&counts[cell + d], 1ull << 32);
#else
                if (part[d]) atomicAdd(&counts[cell + d], (unsigned long long)part[d]);
#endif
            }
        }
    }
    __syncthreads();
#if SHARED_COUNTS
    for (int k = threadIdx.x; k < n_cells; k += blockDim.x) {
        unsigned long long together = 0ull;
        for (int c = 0; c < n_copies; ++c) together += shared[c * stride + k];
        if (together) atomicAdd(&counts[k], together);
    }
#endif
    __shared__ double parts[THREADS / 32];
    for (int offset = 16; offset; offset >>= 1) {
        log_likelihood += __shfl_down_sync(0xffffffffu, log_likelihood, offset);
        for (int d = 0; d < D; ++d) in_state[d] += __shfl_down_sync(0xffffffffu, in_state[d], offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = log_likelihood;
        for (int d = 0; d < D; ++d) atomicAdd(&state_counts[d], in_state[d]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        double together = 0.0;
        for (int w = 0; w < THREADS / 32; ++w) together += parts[w];
        log_likelihoods[blockIdx.x] = together;
    }
}
"""


class FusedPass:
    """The E-step and the sums of the M-step of one problem; make one with `pass_for`."""

    def __init__(self, votes: Any, n_states: int, gold: Tensor | None) -> None:
        self._votes, self._n_states = votes, n_states
        self._gold = torch.empty(0, device=votes.device) if gold is None else gold
        properties = torch.cuda.get_device_properties(votes.device)
        words = _shared_bytes(properties) // 4
        n_cells = votes.n_columns * (n_states - 1)
        stride = n_cells | 1
        shares_counts, shares_table = stride <= words, stride + n_cells <= words
        self._n_copies = max(1, min(_MOST_COPIES, _WORDS_OF_COPIES // stride)) if shares_counts else 0
        self._shared_bytes = 4 * (stride * self._n_copies + (n_cells if shares_table else 0))
        self._threads = 1024 if n_states <= 4 else 512 if n_states <= 8 else 256
        at_once = min(2048 // self._threads, 4 * words // max(self._shared_bytes, 1))
        self._n_blocks = int(properties.multi_processor_count) * max(1, at_once)
        settings = {
            "D": n_states - 1,
            "COLUMN": "unsigned short" if votes.is_small else "int",
            "FIRST": "long long" if votes.first.dtype == torch.int64 else "int",
            "THREADS": self._threads,
            "SHARED_COUNTS": int(shares_counts),
            "SHARED_TABLE": int(shares_table),
            "HAS_GOLD": int(gold is not None),
        }
        self._kernel = _compiled(str(votes.device), tuple(settings.items()))  # which fails here, if it does
        self._volumes = votes.volumes()

    def __call__(self, log_table: Tensor, log_starts: Tensor) -> Expectation:
        """Counts under a table of logarithms (n_columns, n_states) and those of the start of items.

        Row 0 of `log_starts` is of items whose class is not known, row 1 + c of those known to be in class c.
        """
        votes, n_others = self._votes, self._n_states - 1
        ratios = ((log_table[:, 1:] - log_table[:, :1]) / _LOG_UNIT).round().to(torch.int32).contiguous()
        counts = torch.zeros(votes.n_columns, n_others, dtype=torch.int64, device=votes.device)
        state_counts = torch.zeros(n_others, dtype=torch.int64, device=votes.device)
        logs = torch.empty(self._n_blocks, dtype=torch.float64, device=votes.device)
        given = [votes.first, votes.columns, ratios, log_starts.contiguous(), self._gold]
        sizes = [votes.n_items, ratios.numel(), self._n_copies]
        with torch.cuda.device(votes.device):
            self._kernel(
                grid=(self._n_blocks, 1, 1),
                block=(self._threads, 1, 1),
                args=[*given, counts, state_counts, logs, *sizes],
                shared_mem=self._shared_bytes,
            )
        # What is not in the other states is in the first, and the logarithms were counted from it.
        others, in_others = counts.double() * _UNIT, state_counts.double() * _UNIT
        return Expectation(
            torch.cat([(self._volumes - others.sum(dim=1))[:, None].clamp_min(0.0), others], dim=1),
            torch.cat([(votes.n_items - in_others.sum())[None].clamp_min(0.0), in_others]),
            float(logs.sum() + (self._volumes * log_table[:, 0]).sum()),
        )


def pass_for(votes: Any, n_states: int, gold: Tensor | None) -> FusedPass | None:
    """The fused pass where it can be used and pays, else None."""
    if votes.device.type != "cuda" or votes.counts is not None or not 2 <= n_states <= _MOST_STATES:
        return None
    if votes.n_votes < _FEWEST_VOTES or votes.most_of_an_item > _MOST_VOTES_OF_AN_ITEM:
        return None
    if votes.n_items >= 1 << 31 or votes.n_columns * (n_states - 1) >= 1 << 31:
        return None
    try:
        return FusedPass(votes, n_states, gold)
    except (AttributeError, ImportError, OSError, RuntimeError, ValueError):  # an older torch, or no compiler beside it
        return None


@cache
def _compiled(device: str, settings: tuple[tuple[str, object], ...]) -> Any:
    """The kernel with these settings, compiled for a device."""
    head = "".join(f"#define {name} {value}\n" for name, value in (*settings, ("LOG_UNIT", _LOG_UNIT)))
    with torch.cuda.device(device):
        kernel = torch.cuda._compile_kernel(head + _SOURCE, "expect")
        kernel.set_shared_memory_config(_shared_bytes(torch.cuda.get_device_properties(device)))
        return kernel


def _shared_bytes(properties: Any) -> int:
    """What a block of threads may share beside the little that the kernel itself takes."""
    most = getattr(properties, "shared_memory_per_block_optin", properties.shared_memory_per_block)
    return int(most) - 1024
