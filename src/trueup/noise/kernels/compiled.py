"""The E-step over blocks of items, compiled; imported only where numba is installed.

It walks the vote matrix once: it multiplies the probabilities of an item's votes (no logarithm, no exponential),
normalises, and adds the result to the counts of the labelers' answers while it is still in the cache. It releases the
lock, so blocks of items run on threads. `trueup.noise.kernels` does the same with scipy.

Numba makes no vector instructions of short loops, so a row of states is held in a vector of the processor by the few
primitives below; with plain loops a fit of ten classes takes 1.75 times as long. Their width is fixed when the kernel
is compiled, by the length of the tuple `width`: all states (an even number) if they are few, and else a part of them,
with as many parts as it takes.
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


def width_for(n_states: int) -> Width:
    """The tuple that says how many states a kernel handles at once; states are padded to a multiple of its length."""
    return (0,) * min(n_states + n_states % 2, _WIDEST)


# ---------------------------------------------------------------------- vectors of the processor


class _Vector(types.Type):  # type: ignore[misc]
    """So many doubles, in pieces of four and two: the compiler would widen a vector of ten to sixteen."""

    def __init__(self, size: int) -> None:
        self.pieces = [4] * (size // 4) + [2] * (size % 4 // 2)
        super().__init__(name=f"trueup.Vector({size})")


def _piece(size: int) -> Any:
    return ir.VectorType(ir.DoubleType(), size)


def _struct(vector: _Vector) -> Any:
    return ir.LiteralStructType([_piece(size) for size in vector.pieces])


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, _struct(vector))


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


def _pairwise(operation: str) -> Any:
    """What an operation of the processor makes of two vectors."""

    def combine(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pairs = zip(*(_split(builder, left, value) for value in args), strict=True)
            return _joined(builder, left, [getattr(builder, operation)(a, b) for a, b in pairs])

        return left(left, right), generate

    return intrinsic(combine)


_times, _plus = _pairwise("fmul"), _pairwise("fadd")


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


@_compiled
def _joint_repeated(first, last, indices, data, table, p):  # type: ignore[no-untyped-def]
    """Multiply `p` by an item's probabilities, each as often as `data` says; return their total and a log-scale."""
    n = len(p)
    log_scale = 0.0
    factors = 0
    for j in range(first, last):
        row = np.int64(indices[j]) * n
        left = data[j]
        while left > 0.0:
            if factors == _NORMALISE_EVERY:
                total = p.sum()
                p /= total
                log_scale += np.log(total)
                factors = 0
            power = min(left, 1.0)  # of less than one vote where several of a labeler on an item share one
            for s in range(n):
                p[s] *= table[row + s] if power == 1.0 else table[row + s] ** power
            factors += 1
            left -= power
    return p.sum(), log_scale


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
        for part in range(n_parts):
            s = np.uint64(part) * step
            _store(p, s, _load(starts, start + s, width))
        total = 1.0
        if not once:
            total, log_scale = _joint_repeated(first, last, indices, data, table, p)
            log_likelihood += log_scale
        until = first
        while once:
            begin, until = until, min(until + _NORMALISE_EVERY, last)
            scale = 1.0 / total
            total = 0.0
            for part in range(n_parts):
                s = np.uint64(part) * step
                vector = _scaled(_load(p, s, width), scale)
                for j in range(begin, until):
                    vector = _times(vector, _load(table, np.uint64(indices[j]) * n + s, width))
                _store(p, s, vector)
                total += _total(vector)
            if until == last:
                break
            log_likelihood += np.log(total)
        product *= total
        if product < _LOG_BELOW:
            log_likelihood += np.log(product)
            product = 1.0
        scale = 1.0 / total
        for part in range(n_parts):
            s = np.uint64(part) * step
            vector = _scaled(_load(p, s, width), scale)
            _store(state_counts, s, _plus(_load(state_counts, s, width), vector))
            for j in range(first, last):
                at = np.uint64(indices[j]) * n + s
                added = vector if once else _scaled(vector, data[j])
                _store(counts, at, _plus(_load(counts, at, width), added))
        if posterior.shape[0] > 0:
            for k in range(posterior.shape[1]):
                posterior[i, k] = p[k] * scale
    return float(log_likelihood + np.log(product))
