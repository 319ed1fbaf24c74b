"""Compiled kernels over blocks of items; imported only where numba is installed.

Each walks the vote matrix once: it multiplies the probabilities of an item's votes (no logarithm, no exponential),
normalises, and adds the result to the counts of the labelers' answers while it is still in the cache. They release
the lock, so blocks of items and chains of a sampler run on threads. `trueup.noise.kernels` holds the same functions
written with scipy.

Numba makes no vector instructions of short loops, so a row of states is held in a vector of the processor by the few
primitives below. Their width is fixed when a kernel is compiled, by the length of the tuple `width`: all states (an
even number) if they are few, and else a part of them, with as many parts as it takes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, models, register_model

from trueup._base.types import Floats

Integers = npt.NDArray[Any]
Width = tuple[int, ...]

_WIDEST = 16  # states; more would not stay in registers
# Probabilities are floored at 1e-10, so sixteen factors stay above 1e-160 and normalising may wait that long.
_NORMALISE_EVERY = 16
# Normalisers are multiplied up and a logarithm is taken only when the product is this small.
_LOG_BELOW = 1e-100

_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
# A call passes every field of every array, which costs more than what is done in these.
_inlined = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


def width_for(n_states: int) -> Width:
    """The tuple that says how many states a kernel handles at once; states are padded to a multiple of its length."""
    return (0,) * min(n_states + n_states % 2, _WIDEST)


# ---------------------------------------------------------------------- vectors of the processor


class _Vector(types.Type):  # type: ignore[misc]
    """So many doubles, in pieces of four and two: the compiler would widen a vector of ten to sixteen."""

    def __init__(self, size: int) -> None:
        self.pieces = [4] * (size // 4) + [2] * (size % 4 // 2)
        super().__init__(name=f"trueup.Vector({size})")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, _struct(vector))


def _piece(size: int) -> Any:
    return ir.VectorType(ir.DoubleType(), size)


def _struct(vector: _Vector) -> Any:
    return ir.LiteralStructType([_piece(size) for size in vector.pieces])


def _joined(builder: Any, vector: _Vector, pieces: Any) -> Any:
    value = ir.Constant(_struct(vector), ir.Undefined)
    for k, piece in enumerate(pieces):
        value = builder.insert_value(value, piece, k)
    return value


def _split(builder: Any, vector: _Vector, value: Any) -> list[Any]:
    return [builder.extract_value(value, k) for k in range(len(vector.pieces))]


def _addresses(context: Any, builder: Any, vector: _Vector, array_type: Any, array: Any, first_at: Any) -> list[Any]:
    """Where the pieces are in a flat array, from `at` on."""
    start = builder.gep(context.make_array(array_type)(context, builder, array).data, [first_at])
    offsets = np.cumsum([0, *vector.pieces]).tolist()
    return [
        builder.bitcast(builder.gep(start, [ir.Constant(ir.IntType(64), offset)]), _piece(size).as_pointer())
        for offset, size in zip(offsets[:-1], vector.pieces, strict=True)
    ]


@intrinsic  # type: ignore[untyped-decorator]
def _load(typing: Any, array: Any, first_at: Any, width: Any) -> Any:
    """The elements of a flat array from `at` on."""
    vector = _Vector(width.count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pieces = []
        for address in _addresses(context, builder, vector, signature.args[0], args[0], args[1]):
            pieces.append(builder.load(address))
            pieces[-1].align = 8
        return _joined(builder, vector, pieces)

    return vector(array, types.uint64, width), generate


@intrinsic  # type: ignore[untyped-decorator]
def _store(typing: Any, array: Any, first_at: Any, vector: Any) -> Any:
    """Write a vector to a flat array from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        addresses = _addresses(context, builder, vector, signature.args[0], args[0], args[1])
        for address, piece in zip(addresses, _split(builder, vector, args[2]), strict=True):
            builder.store(piece, address).align = 8
        return context.get_dummy_value()

    return types.void(array, types.uint64, vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def _times(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(*(_split(builder, left, value) for value in args), strict=True)
        return _joined(builder, left, [builder.fmul(a, b) for a, b in pairs])

    return left(left, right), generate


@intrinsic  # type: ignore[untyped-decorator]
def _plus(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(*(_split(builder, left, value) for value in args), strict=True)
        return _joined(builder, left, [builder.fadd(a, b) for a, b in pairs])

    return left(left, right), generate


@intrinsic  # type: ignore[untyped-decorator]
def _scaled(typing: Any, vector: Any, scalar: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        scaled = []
        for piece, size in zip(_split(builder, vector, args[0]), vector.pieces, strict=True):
            factor = ir.Constant(_piece(size), ir.Undefined)
            for k in range(size):
                factor = builder.insert_element(factor, args[1], ir.Constant(ir.IntType(32), k))
            scaled.append(builder.fmul(piece, factor))
        return _joined(builder, vector, scaled)

    return vector(vector, types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _total(typing: Any, vector: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [
            builder.extract_element(piece, ir.Constant(ir.IntType(32), k))
            for piece, size in zip(_split(builder, vector, args[0]), vector.pieces, strict=True)
            for k in range(size)
        ]
        while len(parts) > 1:  # in pairs, so that additions need not wait for each other
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [builder.fadd(a, b) for a, b in pairs] + parts[len(parts) // 2 * 2 :]
        return parts[0]

    return types.float64(vector), generate


# ---------------------------------------------------------------------- kernels


@_inlined
def _joint_once(first, last, indices, table, start, starts, p, width):  # type: ignore[no-untyped-def]
    """Fill `p` with an item's joint probabilities, every vote counting once; return their total and a log-scale."""
    n_parts = 1 if len(width) < _WIDEST else len(p) // len(width)
    step = np.uint64(len(width))
    n = step * np.uint64(n_parts)
    log_scale = 0.0
    until = min(first + _NORMALISE_EVERY, last)
    total = 0.0
    for part in range(n_parts):
        s = np.uint64(part) * step
        vector = _load(starts, start + s, width)
        for j in range(first, until):
            vector = _times(vector, _load(table, np.uint64(indices[j]) * n + s, width))
        _store(p, s, vector)
        total += _total(vector)
    while until < last:
        log_scale += np.log(total)
        scale = 1.0 / total
        first, until = until, min(until + _NORMALISE_EVERY, last)
        total = 0.0
        for part in range(n_parts):
            s = np.uint64(part) * step
            vector = _scaled(_load(p, s, width), scale)
            for j in range(first, until):
                vector = _times(vector, _load(table, np.uint64(indices[j]) * n + s, width))
            _store(p, s, vector)
            total += _total(vector)
    return total, log_scale


@_compiled
def _joint_repeated(first, last, indices, data, table, start, starts, p):  # type: ignore[no-untyped-def]
    """Do the same where a vote counts as often as `data` says."""
    n = len(p)
    for s in range(n):
        p[s] = starts[int(start) + s]
    log_scale = 0.0
    factors = 0
    for j in range(first, last):
        row = np.int64(indices[j]) * n
        for _ in range(int(data[j])):
            if factors == _NORMALISE_EVERY:
                total = p.sum()
                p /= total
                log_scale += np.log(total)
                factors = 0
            for s in range(n):
                p[s] *= table[row + s]
            factors += 1
    return p.sum(), log_scale


@_inlined
def _accumulate(log_likelihood, product, total):  # type: ignore[no-untyped-def]
    """Add log(total) to a log-likelihood that is kept as a sum of logarithms and the logarithm of a product."""
    if total < _LOG_BELOW:
        return log_likelihood + np.log(total), product
    product *= total
    if product < _LOG_BELOW:
        return log_likelihood + np.log(product), 1.0
    return log_likelihood, product


@_compiled  # type: ignore[untyped-decorator]
def em_block(
    low: int,
    high: int,
    indptr: Integers,
    indices: Integers,
    data: Floats,
    table: Floats,
    starts: Floats,
    gold: Integers,
    counts: Floats,
    state_counts: Floats,
    posterior: Floats,
    width: Width,
) -> float:
    """Add the expected counts of items `low` to `high`; return their log-likelihood.

    Tables are flat, and their rows have as many states as `state_counts`, a multiple of the width. Row 0 of `starts`
    has the weights of the states and row 1 + c those of class c only. An empty `data` says that all votes count once.
    `posterior` is filled if it has rows.
    """
    n_parts = 1 if len(width) < _WIDEST else len(state_counts) // len(width)
    step = np.uint64(len(width))
    n = step * np.uint64(n_parts)
    p = np.empty(len(state_counts))
    once = len(data) == 0
    log_likelihood = 0.0
    product = 1.0
    for i in range(low, high):
        first, last = indptr[i], indptr[i + 1]
        start = np.uint64(gold[i] + 1) * n
        if once:
            total, log_scale = _joint_once(first, last, indices, table, start, starts, p, width)
        else:
            total, log_scale = _joint_repeated(first, last, indices, data, table, start, starts, p)
        log_likelihood, product = _accumulate(log_likelihood + log_scale, product, total)
        scale = 1.0 / total
        for part in range(n_parts):
            s = np.uint64(part) * step
            vector = _scaled(_load(p, s, width), scale)
            _store(state_counts, s, _plus(_load(state_counts, s, width), vector))
            if once:
                for j in range(first, last):
                    first_at = np.uint64(indices[j]) * n + s
                    _store(counts, first_at, _plus(_load(counts, first_at, width), vector))
            else:
                for j in range(first, last):
                    first_at = np.uint64(indices[j]) * n + s
                    _store(counts, first_at, _plus(_load(counts, first_at, width), _scaled(vector, data[j])))
        if posterior.shape[0] > 0:
            for k in range(posterior.shape[1]):
                posterior[i, k] = p[k] * scale
    return float(log_likelihood + np.log(product))
