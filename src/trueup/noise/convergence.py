"""Have chains of draws mixed, and how many independent draws are they worth?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats


def rhat(chains: npt.ArrayLike) -> float:
    """Rank-normalised split R-hat of draws of shape (n_chains, n_draws); 1 where chains agree, NaN if all are equal."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float("nan")
    folded = np.abs(draws - np.median(draws))
    return max(_rhat(_normal_scores(draws)), _rhat(_normal_scores(folded)))


def effective_draws(chains: npt.ArrayLike) -> float:
    """Effective sample size of the mean (bulk) of draws of shape (n_chains, n_draws)."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float(draws.size)
    scores = _normal_scores(draws)
    n_chains, n = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :n] / n
    within = covariance[:, 0].mean() * n / (n - 1)
    pooled = within * (n - 1) / n + (scores.mean(axis=1).var(ddof=1) if n_chains > 1 else 0.0)
    rho = 1 - (within - covariance.mean(axis=0)) / pooled
    # Geyer: sums of neighbouring pairs are positive and fall; stop where they do not.
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    tau = -1 + 2 * np.minimum.accumulate(pairs[: max(stop, 1)]).sum()
    total = n_chains * n
    return float(min(total / max(tau, 1 / np.log10(total)), total * np.log10(total)))


def _split(draws: Floats) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Floats) -> Floats:
    ranks = scipy.stats.rankdata(draws, method="average").reshape(draws.shape)
    return np.asarray(scipy.stats.norm.ppf((ranks - 0.375) / (draws.size + 0.25)))


def _rhat(draws: Floats) -> float:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    return float(np.sqrt((within * (n - 1) / n + between / n) / within)) if within > 0 else float("inf")
