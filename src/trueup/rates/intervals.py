"""Intervals of the true error when A and maybe ε are estimated: delta, Fieller, score and bootstrap.

With c = C/(C − 1) the true error is e = (A − ε)/(1 − cε), a Rogan–Gladen estimate. Â comes from n items and ε̂ from n₀
other items whose labels were checked. All functions take arrays of one shape; ``n_checked = inf`` says that ε is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy
from scipy import special

from trueup._base.types import Floats

Ends = tuple[Floats, Floats]
_NODES = 96  # of the integral over ε; with 1024 the ends move by less than 1e-5
_BLOCK = 2048  # rows of such integrals at a time, so that memory stays small
_TINY = 1e-12
_QUANTILES = 513  # that stand for a posterior
_TAIL = 18.0  # log-odds of the first and the last of them
_STEPS = 80  # bisection alone would need 40 to find a root; `crossing` needs about 10


def raw_error(apparent: Floats, mislabeling: Floats, c: float) -> Floats:
    """(A − ε)/(1 − cε), which may be negative or above one."""
    return np.asarray((apparent - mislabeling) / (1 - c * mislabeling))


def _binomial_variance(rate: Floats, n: Floats) -> Floats:
    """p̂(1−p̂)/n; at a count of zero or of all, where that would claim certainty, with half a count added to both."""
    certain = (rate <= 0) | (rate >= 1)
    with np.errstate(invalid="ignore"):
        moved = np.where(certain, (np.where(np.isinf(n), 0.0, rate * n) + 0.5) / (n + 1), rate)
    return np.asarray(moved * (1 - moved) / n)


def standard_error(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float) -> Floats:
    """Standard error by the delta method.

    Var ê = [A(1−A)/n + (1 − ce)² ε(1−ε)/n₀] / (1−cε)².
    """
    e = raw_error(apparent, mislabeling, c)
    spread = _binomial_variance(apparent, n) + (1 - c * e) ** 2 * _binomial_variance(mislabeling, n_checked)
    return np.asarray(np.sqrt(spread) / np.abs(1 - c * mislabeling))


def delta(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float, level: float) -> Ends:
    """ê ± z times the standard error, not truncated."""
    half = _z(level) * standard_error(apparent, n, mislabeling, n_checked, c)
    middle = raw_error(apparent, mislabeling, c)
    return middle - half, middle + half


def fieller(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float, level: float) -> Ends:
    """Fieller's interval of the ratio (Â − ε̂)/(1 − cε̂), not truncated; without an end where 1 − cε̂ may be zero.

    All e with (Â − ε̂ − e(1 − cε̂))² ≤ z² [Var Â + (1 − ce)² Var ε̂]: a quadratic inequality in e.

    References
    ----------
    Fieller (1954), Some problems in interval estimation. Journal of the Royal Statistical Society B 16.
    """
    z2 = _z(level) ** 2
    var_a, var_eps = _binomial_variance(apparent, n), _binomial_variance(mislabeling, n_checked)
    top, bottom = apparent - mislabeling, 1 - c * mislabeling
    square = bottom**2 - z2 * c**2 * var_eps
    middle = top * bottom - z2 * c * var_eps
    root = np.sqrt(np.maximum(middle**2 - square * (top**2 - z2 * (var_a + var_eps)), 0.0))
    bounded = square > 0
    safe = np.where(bounded, square, 1.0)
    return (
        np.where(bounded, (middle - root) / safe, -np.inf),
        np.where(bounded, (middle + root) / safe, np.inf),
    )


def score(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float, level: float) -> Ends:
    """All e in [0, 1] that a score test does not reject.

    Fieller's inequality with the variances at the rates most likely *under e* instead of the observed ones, as
    Wilson's interval does for one rate and Miettinen and Nurminen's for two. With known ε it is Wilson's interval of
    A, mapped by A ↦ (A − ε)/(1 − cε).

    References
    ----------
    Miettinen and Nurminen (1985), Comparative analysis of two rates. Statistics in Medicine 4.
    """
    z = _z(level)

    def statistic(e: Floats) -> Floats:
        eps = _likeliest_mislabeling(e, apparent, n, mislabeling, n_checked, c)
        a = e + eps * (1 - c * e)
        variance = a * (1 - a) / n + (1 - c * e) ** 2 * eps * (1 - eps) / n_checked
        return np.asarray((apparent - mislabeling - e * (1 - c * mislabeling)) / np.sqrt(np.maximum(variance, 1e-30)))

    zero, one = np.zeros(apparent.shape), np.ones(apparent.shape)
    low = crossing(lambda e: statistic(e) - z, zero, one)
    high = crossing(lambda e: statistic(e) + z, zero, one)
    return low, high


def _likeliest_mislabeling(
    e: Floats, apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float
) -> Floats:
    """The ε in [0, 1/c] under which Â and ε̂ are most likely if the true error is e.

    The log-likelihood is concave in ε. Its derivative times A(1−A)ε(1−ε) is a cubic of the same sign.
    """
    u = 1 - c * e
    known = np.isinf(n_checked)
    m = np.where(known, 1.0, n_checked)
    total = n + m

    def slope(eps: Floats) -> Floats:
        a = e + eps * u
        cubic = u * n * (apparent - a) * eps * (1 - eps) + m * (mislabeling - eps) * a * (1 - a)
        return np.asarray(cubic / total)

    # From just above zero, since the cubic has a root at zero when no checked label was wrong.
    likeliest = crossing(slope, np.full(e.shape, _TINY), np.full(e.shape, 1 / c), tolerance=1e-11)
    return np.where(known, mislabeling, likeliest)


def bootstrap(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float, level: float) -> Ends:
    """Percentiles of ê* = (A* − ε*)/(1 − cε*) with A* and ε* from their Jeffreys posteriors, within [0, 1].

    A parametric bootstrap that also works for zero counts: A* ~ Beta(nÂ + ½, n(1−Â) + ½), and ε* likewise, given
    that it is below guessing. The percentiles are those of infinitely many draws, found by integrating over ε*.
    """
    flat = [np.ravel(v) for v in (apparent, n, mislabeling, n_checked)]
    ends = np.empty((2, apparent.size))
    for start in range(0, apparent.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        a, size, eps, checked = (v[rows] for v in flat)
        ends[:, rows] = _percentiles(a, size, eps, checked, c, level)
    low, high = ends.reshape(2, *apparent.shape)
    return low, high


def _percentiles(apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float, level: float) -> Ends:
    nodes = _mislabeling_nodes(mislabeling, n_checked, c)
    zero, one = np.zeros(apparent.shape), np.ones(apparent.shape)
    low, high = (
        crossing(partial(_mass_missing, share, apparent, n, nodes, c), zero, one, tolerance=1e-8)
        for share in ((1 - level) / 2, (1 + level) / 2)
    )
    return low, high


def error_distribution(
    apparent: float, n: float, mislabeling: float, n_checked: float, c: float
) -> scipy.stats.rv_histogram:
    """ê* under the draws of `bootstrap`, given that it lies within [0, 1].

    With counts of zero its density has no bound, and no even grid shows that; its quantiles are as smooth as any.
    """
    # Closer and closer to both ends, where the values of a long tail lie; what is beyond them is left out.
    shares = special.expit(np.linspace(-_TAIL, _TAIL, _QUANTILES))
    a, size, eps, checked = (np.full(_QUANTILES, value) for value in (apparent, n, mislabeling, n_checked))
    nodes = _mislabeling_nodes(eps, checked, c)
    zero, one = np.zeros(_QUANTILES), np.ones(_QUANTILES)
    below, upto = (_cdf_at(end, a, size, nodes, c) for end in (zero, one))
    wanted = below + shares * (upto - below)
    values = crossing(partial(_mass_missing, wanted, a, size, nodes, c), zero, one, tolerance=1e-13)
    is_new = np.diff(np.maximum.accumulate(values), prepend=-1.0) > 0
    return scipy.stats.rv_histogram((np.diff(shares[is_new]), values[is_new]), density=False)


def _mass_missing(
    share: float | Floats, apparent: Floats, n: Floats, nodes: tuple[Floats, Floats], c: float, e: Floats
) -> Floats:
    return share - _cdf_at(e, apparent, n, nodes, c)


def beta_cdf(e: Floats, apparent: Floats, n: Floats, mislabeling: Floats, n_checked: Floats, c: float) -> Floats:
    """P(ê* ≤ e) under the draws of `bootstrap`, not restricted to [0, 1]; at e = 0 it is P(A* ≤ ε*)."""
    flat = [np.ravel(v) for v in np.broadcast_arrays(e, apparent, n, mislabeling, n_checked)]
    out = np.empty(flat[0].shape)
    for start in range(0, len(out), _BLOCK):
        e_, a_, n_, eps_, m_ = (v[start : start + _BLOCK] for v in flat)
        out[start : start + _BLOCK] = _cdf_at(e_, a_, n_, _mislabeling_nodes(eps_, m_, c), c)
    return out.reshape(np.broadcast_shapes(np.shape(e), apparent.shape))


def _cdf_at(e: Floats, apparent: Floats, n: Floats, nodes: tuple[Floats, Floats], c: float) -> Floats:
    eps, weights = nodes
    a = np.clip(eps + e[..., None] * (1 - c * eps), 0.0, 1.0)
    inside = special.betainc((n * apparent + 0.5)[..., None], (n * (1 - apparent) + 0.5)[..., None], a)
    return np.asarray(inside @ weights)


def _mislabeling_nodes(mislabeling: Floats, n_checked: Floats, c: float) -> tuple[Floats, Floats]:
    """Values of ε*, shape (..., nodes), and weights, shape (nodes,), that stand for its distribution below 1/c."""
    known = np.isinf(n_checked)
    if known.all():
        return mislabeling[..., None], np.ones(1)
    shares, weights = special.roots_legendre(_NODES)
    m = np.where(known, 1.0, n_checked)
    right, wrong = (m * (1 - mislabeling) + 0.5)[..., None], (m * mislabeling + 0.5)[..., None]
    eps = special.betaincinv(wrong, right, (1 + shares) / 2 * special.betainc(wrong, right, 1 / c))
    return np.where(known[..., None], mislabeling[..., None], eps), np.asarray(weights / 2)


def _z(level: float) -> float:
    return float(scipy.stats.norm.isf((1 - level) / 2))


def crossing(function: Callable[[Floats], Floats], low: Floats, high: Floats, *, tolerance: float = 1e-10) -> Floats:
    """The x in [low, high] where a function falls through zero; an end where it does not.

    `function` takes and gives arrays of one shape, element by element. Where it is not positive at `low` the answer is
    `low`, where it is not negative at `high` it is `high`.

    References
    ----------
    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives. Advances in Engineering Software 28.
    """
    new, other = np.array(low, dtype=float), np.array(high, dtype=float)
    f_new, f_other = function(new), function(other)
    at_low = f_new <= 0
    at_high = ~at_low & (f_other >= 0)
    share = np.full(new.shape, 0.5)
    for _ in range(_STEPS):
        x = new + share * (other - new)
        fx = function(x)
        same = np.sign(fx) == np.sign(f_new)
        old, f_old = np.where(same, new, other), np.where(same, f_new, f_other)
        other, f_other = np.where(same, other, new), np.where(same, f_other, f_new)
        new, f_new = x, fx
        width = np.abs(new - other)
        if ((width < tolerance) | (f_new == 0) | at_low | at_high).all():
            break
        least = 0.5 * tolerance / np.maximum(width, tolerance)
        share = np.clip(_next_share(new, other, old, f_new, f_other, f_old), least, 1 - least)
    inside = np.where(np.abs(f_new) <= np.abs(f_other), new, other)
    return np.where(at_low, low, np.where(at_high, high, inside))


def _next_share(x1: Floats, x2: Floats, x3: Floats, f1: Floats, f2: Floats, f3: Floats) -> Floats:
    """How far from x1 to x2 to go next: inverse quadratic interpolation where it can be trusted, else one half."""
    with np.errstate(all="ignore"):
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        trusted = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        step = f1 / (f1 - f2) * f3 / (f3 - f2) - (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f2 - f3)
    return np.where(trusted & np.isfinite(step), step, 0.5)
