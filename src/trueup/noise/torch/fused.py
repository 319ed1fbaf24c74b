"""One pass over the votes in one CUDA kernel: each item's posterior, and its votes counted.

A thread takes an item. The table of the model and the counts of the answers lie in the memory that a block of threads
shares, so that a vote costs two reads of its index and two accesses there. Sums are of integers (logarithms in units of
2⁻²⁶, probabilities in units of 2⁻²⁴), so they do not depend on the order in which threads come: a fit gives the same
twice. A count that overflows 32 bits carries into the 64 bits of the device's memory. Where tables are too large for
the shared memory, the device's memory serves.

The kernel is compiled by torch on its first use. Where torch cannot, `pass_for` says None, and the sums of
`DeviceVotes` do the same in some five times the time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from trueup.noise.kernels import Expectation

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
        self._nothing = torch.empty(0, device=votes.device)
        self._gold = None if gold is None else gold.to(torch.int16)
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
        with torch.cuda.device(votes.device):
            self._kernel(
                grid=(self._n_blocks, 1, 1),
                block=(self._threads, 1, 1),
                args=[
                    votes.first,
                    votes.columns,
                    ratios,
                    log_starts.contiguous(),
                    self._gold if self._gold is not None else self._nothing,
                    counts,
                    state_counts,
                    logs,
                    votes.n_items,
                    ratios.numel(),
                    self._n_copies,
                ],
                shared_mem=self._shared_bytes,
            )
        # What is not in the other states is in the first, and the logarithms were counted from it.
        others, in_others = counts.double() * _UNIT, state_counts.double() * _UNIT
        return Expectation(
            torch.cat([(self._volumes - others.sum(dim=1))[:, None].clamp_min(0.0), others], dim=1),
            torch.cat([(votes.n_items - in_others.sum())[None].clamp_min(0.0), in_others]),
            float(logs.sum() + (self._volumes * log_table[:, 0]).sum()),
            None,
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
