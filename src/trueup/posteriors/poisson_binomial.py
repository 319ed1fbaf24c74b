"""The number of successes in independent trials with different chances, exactly.

U and V, the counts of true positives and of misses under unknown truth, are of this kind (Su 2024, eqs. 8 and 9, where
they are taken as normal).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import fft

from trueup._base.types import Floats
from trueup._base.validation import check_number, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors.atoms import DiscreteEstimate

_DIRECT = 32  # polynomials shorter than this multiply faster, and more exactly, term by term


def _chances(p: npt.ArrayLike, name: str) -> Floats:
    chances = np.asarray(p, dtype=float).ravel()
    if not ((chances >= 0) & (chances <= 1)).all():
        bad = chances[~((chances >= 0) & (chances <= 1))]
        raise InvalidParameter(f"{name} must hold probabilities in [0, 1], got {preview(bad)}")
    return chances


def poisson_binomial_pmf(p: npt.ArrayLike) -> Floats:
    """Probabilities of 0, 1, …, n successes in n independent trials.

    The generating polynomials ∏(1 − pᵢ + pᵢ z) are multiplied two by two, all pairs of one length at once, by FFT
    where they are long: O(n log² n). Exact to about 1e-15 absolute; never negative; sums to 1.

    Parameters
    ----------
    p : array of shape (n,)
        The chance of success of each trial.

    Returns
    -------
    array of shape (n + 1,)

    Examples
    --------
    >>> poisson_binomial_pmf([0.5, 0.5]).tolist()
    [0.25, 0.5, 0.25]
    """
    chances = _chances(p, "p")
    uncertain = chances[(chances > 0) & (chances < 1)]
    sure = int((chances == 1).sum())
    pmf = np.zeros(len(chances) + 1)
    pmf[sure : sure + len(uncertain) + 1] = _multiply_out(uncertain)
    return pmf


def _multiply_out(p: Floats) -> Floats:
    if not len(p):
        return np.ones(1)
    # Trials that cannot succeed fill up to a power of two; they add only zeros, which are cut off at the end.
    padded = np.zeros(1 << (len(p) - 1).bit_length())
    padded[: len(p)] = p
    rows = np.stack([1 - padded, padded], axis=1)
    while len(rows) > 1:
        rows = _multiply_pairs(rows[0::2], rows[1::2])
    pmf = np.maximum(rows[0, : len(p) + 1], 0.0)
    return np.asarray(pmf / pmf.sum())


def _multiply_pairs(a: Floats, b: Floats) -> Floats:
    """Row by row products of polynomials of shape (n, k), of shape (n, 2k − 1)."""
    size = a.shape[1]
    if size <= _DIRECT:
        product = np.zeros((len(a), 2 * size - 1))
        for j in range(size):
            product[:, j : j + size] += a[:, j, None] * b
        return product
    length = fft.next_fast_len(2 * size - 1, real=True)
    transformed = fft.rfft(a, length, axis=1) * fft.rfft(b, length, axis=1)
    return np.asarray(fft.irfft(transformed, length, axis=1)[:, : 2 * size - 1])


def poisson_binomial_estimate(
    p: npt.ArrayLike,
    scale: float = 1.0,
    offset: float = 0.0,
    *,
    bounds: tuple[float, float] | None = None,
    name: str | None = None,
) -> DiscreteEstimate:
    """The distribution of ``offset + scale · K`` for the number K of successes.

    Parameters
    ----------
    p : array of shape (n,)
        The chance of success of each trial.
    scale, offset : float
        E.g. ``scale=1/n`` for a share.
    bounds : (float, float), optional
        The bounds of the metric; by default the smallest and largest possible value (and at least 0 to 1).
    name : str, optional
        The name of the metric.

    Examples
    --------
    >>> poisson_binomial_estimate([0.9] * 200, scale=1 / 200, name="accuracy")
    Estimate(accuracy: 0.900, 95% interval 0.860 to 0.940)
    """
    chances = _chances(p, "p")
    scale = check_number(scale, name="scale")
    offset = check_number(offset, name="offset")
    if bounds is None:
        ends = sorted((offset, offset + scale * len(chances)))
        bounds = (min(ends[0], 0.0), max(ends[1], 1.0))
    values = offset + scale * np.arange(len(chances) + 1)
    return DiscreteEstimate(values, poisson_binomial_pmf(chances), bounds=bounds, name=name)
