"""Inverting labelers' confusion matrices: when that cannot be done, and what it does to variances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.exceptions import InvalidParameter
from trueup.rates._checks import Array

__all__ = ["checked_inverse", "error_variance", "transposed"]

_SINGULAR = 1e-6  # smallest singular value; an error of a cell would be blown up a million times


def transposed(matrices: Array) -> Array:
    """Each matrix transposed, leading axes kept."""
    return np.swapaxes(matrices, -1, -2)


def checked_inverse(labeler: Array, names: Sequence[Any] | None = None) -> Array:
    """L⁻¹, or one sentence that says whose matrix has none, and why."""
    least = np.linalg.svd(labeler, compute_uv=False)[..., -1]
    if (least > _SINGULAR).all():
        return np.asarray(np.linalg.inv(labeler))
    first = tuple(np.argwhere(np.atleast_1d(least) <= _SINGULAR)[0].tolist())
    matrix = labeler if labeler.ndim == 2 else labeler[first]
    who = "the labeler"
    if labeler.ndim > 2:
        known = names is not None and len(names) == labeler.shape[0]
        who = (
            f"labeler {names[first[0]] if known and names is not None else (first[0] if len(first) == 1 else first)!r}"
        )
    raise InvalidParameter(
        f"labeler must have confusion matrices that can be inverted, got a singular one for {who}: {_why(matrix)}, so "
        "the classifier's rates cannot be identified; leave that labeler out or merge the classes"
    )


def _why(matrix: Array) -> str:
    """Two classes that are labeled alike, if there are such."""
    gaps = np.abs(matrix[:, None] - matrix[None]).sum(axis=-1) / 2
    gaps[np.diag_indices_from(gaps)] = np.inf
    a, b = np.unravel_index(int(np.argmin(gaps)), gaps.shape)
    if gaps[a, b] < 1e-5:
        return f"classes {a} and {b} get the same labels"
    return "its rows are linearly dependent"


def error_variance(joint: Array, labeler: Array, n: Array, n_checked: Array) -> Array:
    """Variance of 1 − tr(L⁻ᵀJ) by the delta method, shape (...).

    The accuracy is Σ J[z, ŷ] (L⁻¹)[z, ŷ], linear in J. Its derivative by L is −L⁻ᵀ J L⁻ᵀ. Cells of J and
    each row of L are multinomial shares. Both enter with one pseudo-count spread evenly, so that counts of zero
    are not taken for certainty.
    """
    inverse = np.asarray(np.linalg.inv(labeler), dtype=float)
    c = labeler.shape[-1]
    cells = (joint * n[..., None, None] + 1 / c**2) / (n[..., None, None] + 1)
    first = (cells * inverse**2).sum(axis=(-2, -1)) - (cells * inverse).sum(axis=(-2, -1)) ** 2
    slope = transposed(inverse) @ joint @ transposed(inverse)
    known = np.isinf(n_checked)
    size = np.where(known, 1.0, n_checked)[..., None]
    rows = (labeler * size + 1 / c) / (size + 1)
    spread = (rows * slope**2).sum(axis=-1) - (rows * slope).sum(axis=-1) ** 2
    second = np.where(known, 0.0, spread / size[..., 0]).sum(axis=-1)
    return np.asarray(np.maximum(first, 0.0) / n + second)
