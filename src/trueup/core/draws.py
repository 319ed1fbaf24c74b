"""Drawn truths: what every metric is computed on."""

from __future__ import annotations

import numpy as np

from trueup._base.types import Codes, Floats
from trueup.core.posterior import ThetaDraws
from trueup.core.rows import Rows

_BLOCK = 4_000_000  # probabilities held at once


def draw_truths(
    rows: Rows, theta: ThetaDraws, known: Codes, *, each: int, rng: np.random.Generator
) -> tuple[Codes, Floats]:
    """Truths of all rows, some for each θ, and P(class) of each row.

    Parameters
    ----------
    rows : Rows
    theta : ThetaDraws
    known : integer array of shape (n_rows,)
        The class of checked items, -1 for all others.
    each : int
        Truths for each θ.
    rng : Generator

    Returns
    -------
    truths : integer array of shape (n_points · each, n_rows)
    posterior : array of shape (n_rows, n_classes)
    """
    n_points, n_rows, n_classes = len(theta.beta), rows.n_rows, rows.n_classes
    truths = np.empty((n_points, each, n_rows), dtype=np.int8 if n_classes <= 127 else np.int16)
    posterior = np.zeros((n_rows, n_classes))
    size = max(1, _BLOCK // max(n_rows * n_classes, 1))
    for first in range(0, n_points, size):
        block = slice(first, first + size)
        chances = rows.probabilities(theta.beta[block], theta.gamma[block])
        posterior += chances.sum(axis=2)
        upto = chances[:, 0].astype(np.float32)
        uniform = rng.random((each, *upto.shape), dtype=np.float32)
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
