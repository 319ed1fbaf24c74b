"""Joint posterior densities of two metrics when the two counts behind them are normal (Su 2024, eqs. 17 and 18)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_number

__all__ = ["pr_density", "roc_density"]


def _normal_pdf(x: Floats, mean: float, sd: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi)))


def _density_uv(u: Floats, v: Floats, mu_u: float, sd_u: float, mu_v: float, sd_v: float) -> Floats:
    sd_u = check_number(sd_u, name="sd_u", low=0.0, strict=True)
    sd_v = check_number(sd_v, name="sd_v", low=0.0, strict=True)
    return _normal_pdf(u, mu_u, sd_u) * _normal_pdf(v, mu_v, sd_v)


def roc_density(
    d: npt.ArrayLike,
    f: npt.ArrayLike,
    n_hat: float,
    mu_u: float,
    sd_u: float,
    mu_v: float,
    sd_v: float,
) -> Floats:
    """Joint density of detection rate and false-alarm rate (eq. 17).

    Parameters
    ----------
    d, f : arrays that broadcast
        Detection rate (recall) and false-alarm rate.
    n_hat : float
        The share of items predicted positive.
    mu_u, sd_u, mu_v, sd_v : float
        Mean and standard deviation of U and V, the shares of true positives and of misses among all items.

    Returns
    -------
    array
        Zero on the chance line d = f, where the formula is singular.
    """
    d, f = np.broadcast_arrays(np.asarray(d, dtype=float), np.asarray(f, dtype=float))
    n_hat = check_number(n_hat, name="n_hat", low=0.0, high=1.0)
    chance = d == f
    gap = np.where(chance, 1.0, d - f)
    positives = (n_hat - f) / gap
    jacobian = np.abs(n_hat - f) * np.abs(n_hat - d) / np.abs(gap) ** 3
    density = jacobian * _density_uv(d * positives, (1 - d) * positives, mu_u, sd_u, mu_v, sd_v)
    return np.where(chance, 0.0, density)


def pr_density(
    precision: npt.ArrayLike,
    recall: npt.ArrayLike,
    n_hat: float,
    mu_u: float,
    sd_u: float,
    mu_v: float,
    sd_v: float,
) -> Floats:
    """Joint density of precision and recall (eq. 18).

    Parameters
    ----------
    precision, recall : arrays that broadcast
        Where.
    n_hat, mu_u, sd_u, mu_v, sd_v
        As for `roc_density`.

    Returns
    -------
    array
        Zero, its limit, where the recall is zero.
    """
    precision, recall = np.broadcast_arrays(np.asarray(precision, dtype=float), np.asarray(recall, dtype=float))
    n_hat = check_number(n_hat, name="n_hat", low=0.0, high=1.0)
    none = recall <= 0
    rec = np.where(none, 1.0, recall)
    u = n_hat * precision
    density = n_hat**2 * np.abs(precision) / rec**2 * _density_uv(u, u * (1 - rec) / rec, mu_u, sd_u, mu_v, sd_v)
    return np.where(none, 0.0, density)
