"""Rates, sizes and matrices at the door: checked, as float arrays, with one sentence where they make no sense."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_integer, preview
from trueup.exceptions import InvalidParameter

_ROUNDING = 1e-12


def _numbers(values: npt.ArrayLike, name: str, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be {what}, got {values!r}") from None


def check_rate(values: npt.ArrayLike, *, name: str) -> Floats:
    """A share in [0, 1], or an array of such; a rounding beyond the ends is forgiven."""
    array = _numbers(values, name, "a rate in [0, 1] or an array of such")
    wrong = ~((array >= -_ROUNDING) & (array <= 1 + _ROUNDING))
    if wrong.any():
        raise InvalidParameter(
            f"{name} must be a rate in [0, 1], got {preview(array[wrong].ravel())}; divide counts by their total"
        )
    return np.clip(array, 0.0, 1.0)


def check_size(values: npt.ArrayLike | None, *, name: str, absent: float) -> Floats:
    """A number of items of at least 1, or an array of such; `absent` stands for None."""
    if values is None:
        return np.asarray(absent)
    array = _numbers(values, name, "a number of items or an array of such")
    wrong = ~(array >= 1)
    if wrong.any():
        raise InvalidParameter(
            f"{name} must be at least 1, got {preview(array[wrong].ravel())}; leave {name} out if it is not known"
        )
    return array


def chance_factor(n_classes: int) -> float:
    """The c of A = e + ε − c e ε: C/(C − 1), two for two classes."""
    n = check_integer(n_classes, name="n_classes", low=2)
    return n / (n - 1)


def check_identified(mislabeling: Floats, n_classes: int) -> None:
    """Labels must be better than guessing, ε < (C − 1)/C; the sentence says whose are not."""
    limit = (n_classes - 1) / n_classes
    wrong = mislabeling >= limit
    if not wrong.any():
        return
    who = ""
    if mislabeling.ndim:
        first = np.argwhere(wrong)[0].tolist()
        who = f" from labeler {first[0] if len(first) == 1 else tuple(first)}"
    raise InvalidParameter(
        f"mislabeling must be below {limit:.4g} for {n_classes} classes, got {float(mislabeling[wrong][0]):.4g}{who}: "
        "labels no better than guesses carry nothing of the truth, so the rate cannot be identified; "
        "leave them out, or use the bounds of any dependence (`rates.error_bounds`)"
    )


def check_square(values: npt.ArrayLike, *, name: str) -> Floats:
    """Matrices of shape (..., C, C) without negative entries, C at least 2."""
    array = _numbers(values, name, "an array of shape (..., classes, classes)")
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2:
        raise InvalidParameter(f"{name} must have the shape (..., classes, classes), got {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise InvalidParameter(f"{name} must hold counts or probabilities, got {preview(array[~(array >= 0)].ravel())}")
    return array


def plain(values: npt.NDArray[np.generic]) -> float | Floats:
    """A number for a number, an array for an array."""
    return values.item() if np.ndim(values) == 0 else np.asarray(values)
