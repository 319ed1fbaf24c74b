"""Drawn truths: what every metric is computed on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.core.posterior import ThetaDraws
from trueup.core.rows import Rows

_BLOCK = 4_000_000  # probabilities held at once
_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly between 0 and 1


def draw_truths(
    rows: Rows, theta: ThetaDraws, known: Codes, *, each: int, rng: np.random.Generator, times: Floats | None = None
) -> tuple[Codes, Floats]:
    """Truths of all rows, some for each θ, and P(class) of each row.

    Parameters
    ----------
    known : integer array of shape (n_rows,). The class of checked items, -1 for all others.
    each : int. Truths for each θ.
    times : array of shape (n_rows,), optional. How many items each row stands for.

    Returns
    -------
    truths : integer array of shape (n_points · each, n_rows)
    posterior : array of shape (n_rows, n_classes)
    """
    n_points, n_rows, n_classes = len(theta.beta), rows.n_rows, rows.n_classes
    truths = np.empty((n_points, each, n_rows), dtype=np.int8 if n_classes <= 127 else np.int16)
    posterior = np.zeros((n_rows, n_classes))
    size = max(1, _BLOCK // max(n_rows * n_classes, 1))
    places = None if times is None else _even_places(rows)
    for first in range(0, n_points, size):
        block = slice(first, first + size)
        chances = rows.probabilities(theta.beta[block], theta.gamma[block])
        posterior += chances.sum(axis=2)
        upto = chances[:, 0].astype(np.float32)
        uniform = rng.random((each, *upto.shape), dtype=np.float32)
        if times is not None and places is not None:
            uniform = _as_many_items(uniform, times, places, rng)
        drawn = (uniform >= upto).astype(truths.dtype)
        for code in range(1, n_classes - 1):
            upto += chances[:, code]
            drawn += uniform >= upto
        truths[block] = drawn.transpose(2, 0, 1)
    is_known = np.flatnonzero(known >= 0)
    truths[:, :, is_known] = known[is_known]
    posterior /= n_points
    posterior[is_known] = np.eye(n_classes)[known[is_known]]
    return truths.reshape(n_points * each, n_rows), posterior


def _even_places(rows: Rows) -> Floats:
    """Numbers between 0 and 1 that are spread evenly among rows that are alike, shape (n_rows,)."""
    named = np.take_along_axis(np.exp(rows.log_base), rows.targets.T, axis=1).T
    order = np.lexsort([*named[:3], *rows.targets[:3]])
    places = np.empty(rows.n_rows)
    places[order] = (np.arange(rows.n_rows) * _GOLDEN) % 1
    return places


def _as_many_items(
    uniform: npt.NDArray[np.float32], times: Floats, places: Floats, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Uniform numbers of rows whose sums vary as those of the items do that the rows stand for."""
    share = (1 / np.maximum(times, 1.0)).astype(np.float32)[:, None]
    starts = rng.random((len(uniform), 1, uniform.shape[2]), dtype=np.float32)
    even = (places.astype(np.float32)[:, None] + starts) % np.float32(1)
    return np.where(uniform < share, uniform / share, even)
