"""True and apparent error of a classifier whose test labels are wrong now and then.

After Lam and Stork (2003), "Evaluating classifiers by means of test data with noisy labels", IJCAI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_choice, check_integer, check_level, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors import ContinuousEstimate, DiscreteEstimate, Estimate, PointEstimate
from trueup.posteriors.estimate import plain

Dependence = Literal["non-negative", "any"]
_DEPENDENCES: tuple[Dependence, ...] = ("non-negative", "any")
IntervalMethod = Literal["score", "fieller", "delta", "bootstrap"]
Ends = tuple[Floats, Floats]
_BLOCK = 2048  # rows of such integrals at a time, so that memory stays small
_QUANTILES = 513  # that stand for a posterior
_TAIL = 18.0  # log-odds of the first and the last of them


def apparent_error(*, error: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2) -> float | Floats:
    """The share of labels that disagree with a classifier, if both err independently.

    A = e + ε − c e ε with c = C/(C − 1): two errors on an item agree with chance 1/(C − 1). For two classes they
    always agree. For more, the errors of the labels or of the classifier are spread evenly over the wrong classes.

    A = P(ŷ ≠ z), broadcast over the arguments.

    Parameters
    ----------
    error : float or array. The true error rate e = P(ŷ ≠ y).
    mislabeling : float or array. ε = P(z ≠ y).
    """
    e, eps = check_rate(error, name="error"), check_rate(mislabeling, name="mislabeling")
    return plain(np.asarray(e + eps - chance_factor(n_classes) * e * eps))


def rule_of_thumb(*, apparent: npt.ArrayLike, mislabeling: npt.ArrayLike) -> float | Floats:
    """The true error as A − ε, not below zero: labels that are wrong now and then simply add their rate.

    Under independence A − ε = e(1 − cε), so the rule says too little by exactly the share cε: 10% for two classes
    and ε = 0.05.

    Examples
    --------
    >>> round(rule_of_thumb(apparent=0.068, mislabeling=0.05), 4)
    0.018
    """
    a, eps = check_rate(apparent, name="apparent"), check_rate(mislabeling, name="mislabeling")
    return plain(np.maximum(a - eps, 0.0))


@dataclass(frozen=True, eq=False)
class TrueError:
    """The true error rate behind an apparent one, for labels that err independently of the classifier.

    Made by `true_error`. Numbers for numbers, arrays for arrays. The target is the population that the items came
    from.

    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. American Journal of
    Epidemiology 107.

    Attributes
    ----------
    apparent, mislabeling : array. Â and ε̂, of one shape.
    n : array. The number of items that Â was counted on; nan if unknown.
    n_checked : array. The number of checked labels that ε̂ was counted on; inf if ε is known.
    """

    apparent: Floats
    mislabeling: Floats
    n: Floats
    n_checked: Floats
    n_classes: int = 2

    @property
    def _c(self) -> float:
        return chance_factor(self.n_classes)

    @property
    def raw(self) -> float | Floats:
        """(Â − ε̂)/(1 − cε̂) as it comes out; negative where fewer labels disagree than ε alone explains."""
        return plain((self.apparent - self.mislabeling) / (1 - self._c * self.mislabeling))

    @property
    def value(self) -> float | Floats:
        """The estimate, truncated to [0, 1]."""
        return plain(np.clip(self.raw, 0.0, 1.0))

    @property
    def mean(self) -> float | Floats:
        """The same as `value`: what other estimates call their number."""
        return self.value

    @property
    def truncated(self) -> bool | Booleans:
        """Whether the raw estimate lay outside [0, 1]."""
        outside = (np.asarray(self.raw) < 0) | (np.asarray(self.raw) > 1)
        return bool(outside) if outside.ndim == 0 else outside

    @property
    def std(self) -> float | Floats:
        """The standard error of the raw estimate by the delta method; nan without `n`."""
        # Var ê = [A(1−A)/n + (1 − ce)² ε(1−ε)/n₀] / (1−cε)²
        of_apparent, of_labels = self._variances(self.n)
        spread = of_apparent + (1 - self._c * np.asarray(self.raw)) ** 2 * of_labels
        return plain(np.sqrt(spread) / np.abs(1 - self._c * self.mislabeling))

    @property
    def prob_negative(self) -> float | Floats:
        """P(A < ε | data), with Jeffreys priors: how surely fewer labels disagree than independence allows.

        Near one, the errors of labels and classifier come together, or ε is too large; see `error_bounds`.
        """
        chance = np.concatenate([rates._cdf(np.zeros(len(rates.n))) for _, rates in self._blocks()])
        return plain(np.where(np.isnan(self.n), np.nan, chance.reshape(self.apparent.shape)))

    def interval(
        self, level: float = 0.95, method: IntervalMethod = "score"
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """A confidence interval, truncated to [0, 1]; nan without `n`.

        Where every rate in [0, 1] is rejected, because Â is far below ε̂, both ends are zero: `prob_negative` and
        `notes` tell.

        Parameters
        ----------
        method : {"score", "fieller", "delta", "bootstrap"}
            "score" inverts a score test and holds best, also for small counts. "fieller" and "delta" take observed
            rates for the variances and are too narrow for few checked labels. "bootstrap" takes percentiles over
            Beta posteriors of Â and ε̂.
        """
        methods = {"score": self._score, "fieller": self._fieller, "delta": self._delta, "bootstrap": self._bootstrap}
        ends = methods[check_choice(method, tuple(methods), name="method")](check_level(level))
        low, high = (plain(np.where(np.isnan(self.n), np.nan, np.clip(end, 0.0, 1.0))) for end in ends)
        return low, high  # type: ignore[return-value]

    def estimate(self) -> Estimate:
        """The posterior on [0, 1] as an `Estimate`, with a density, draws and a plot; for one rate, not an array.

        Independent Beta(½, ½) priors of A and ε, restricted to what a true error in [0, 1] allows.
        """
        if self.apparent.ndim:
            raise InvalidParameter(
                f"estimate() is for one rate, got an array of shape {self.apparent.shape}; use interval() for arrays"
            )
        if np.isnan(self.n):
            return PointEstimate(float(self), name="true error")
        low, high = (float(np.asarray(v)) for v in self.interval(1 - 1e-7, method="bootstrap"))
        if not high > low:
            return DiscreteEstimate([low], [1.0], name="true error")
        return ContinuousEstimate(self._distribution(), name="true error")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: truncation, and labels that agree with the classifier too well."""
        raw, notes = np.ravel(self.raw), []
        below, above = raw < 0, raw > 1
        if below.any():
            which = "The estimate" if raw.size == 1 else f"{int(below.sum())} of {raw.size} estimates"
            verb = "is" if raw.size == 1 else "are"
            notes.append(
                f"{which} {verb} negative before truncation (least {raw.min():.4g}): fewer labels disagree with the "
                "classifier than ε alone explains."
            )
        if above.any():
            notes.append(f"An estimate is above one before truncation (largest {raw.max():.4g}).")
        if (np.ravel(self.prob_negative)[below] > 0.95).any():  # more than bad luck
            notes.append(
                "This is not bad luck: labels and classifier err together, or ε is too large; see error_bounds."
            )
        return tuple(notes)

    def __float__(self) -> float:
        if self.apparent.ndim:
            raise TypeError(f"an array of {self.apparent.size} rates is not a number; use .value")
        return float(np.asarray(self.value))

    def __repr__(self) -> str:
        if self.apparent.ndim:
            return f"TrueError({self.apparent.size} rates, {int(np.sum(self.truncated))} truncated)"
        cut = f" (raw {self.raw:.4f}, truncated)" if self.truncated else ""
        if np.isnan(self.n):
            return f"TrueError({float(self):.4f}{cut}, no interval without n)"
        low, high = self.interval()
        negative = f", P(A < ε) = {self.prob_negative:.3f}" if self.truncated and np.asarray(self.raw) < 0 else ""
        return f"TrueError({float(self):.4f}{cut}, 95% interval {low:.4f} to {high:.4f}{negative})"

    # ------------------------------------------------------------------ intervals

    def _variances(self, n: Floats) -> Ends:
        """p̂(1−p̂)/n of both rates; at a count of zero or of all, where that claims certainty, half a count is added."""
        found = []
        for rate, size in ((self.apparent, n), (self.mislabeling, self.n_checked)):
            certain = (rate <= 0) | (rate >= 1)
            with np.errstate(invalid="ignore"):
                moved = np.where(certain, (np.where(np.isinf(size), 0.0, rate * size) + 0.5) / (size + 1), rate)
            found.append(np.asarray(moved * (1 - moved) / size))
        return found[0], found[1]

    @property
    def _size(self) -> Floats:
        """The number of items, 1 where it is unknown."""
        return np.where(np.isnan(self.n), 1.0, self.n)

    def _delta(self, level: float) -> Ends:
        """ê ± z times the standard error, not truncated."""
        half, middle = _z(level) * np.asarray(self.std), np.asarray(self.raw)
        return middle - half, middle + half

    def _fieller(self, level: float) -> Ends:
        """Fieller's interval of the ratio (Â − ε̂)/(1 − cε̂), not truncated; without an end where 1 − cε̂ may be zero.

        All e with (Â − ε̂ − e(1 − cε̂))² ≤ z² [Var Â + (1 − ce)² Var ε̂]: a quadratic inequality in e.

        Fieller (1954), Some problems in interval estimation. Journal of the Royal Statistical Society B 16.
        """
        z2, c = _z(level) ** 2, self._c
        var_a, var_eps = self._variances(self._size)
        top, bottom = self.apparent - self.mislabeling, 1 - c * self.mislabeling
        square = bottom**2 - z2 * c**2 * var_eps
        middle = top * bottom - z2 * c * var_eps
        root = np.sqrt(np.maximum(middle**2 - square * (top**2 - z2 * (var_a + var_eps)), 0.0))
        bounded = square > 0
        safe = np.where(bounded, square, 1.0)
        return np.where(bounded, (middle - root) / safe, -np.inf), np.where(bounded, (middle + root) / safe, np.inf)

    def _score(self, level: float) -> Ends:
        """All e in [0, 1] that a score test does not reject.

        Fieller's inequality with the variances at the rates most likely *under e* instead of the observed ones, as
        Wilson's interval does for one rate and Miettinen and Nurminen's for two. With known ε it is Wilson's interval
        of A, mapped by A ↦ (A − ε)/(1 − cε).

        Miettinen and Nurminen (1985), Comparative analysis of two rates. Statistics in Medicine 4.
        """
        z, c = _z(level), self._c

        def statistic(e: Floats) -> Floats:
            eps = self._likeliest_mislabeling(e)
            a = e + eps * (1 - c * e)
            variance = a * (1 - a) / self._size + (1 - c * e) ** 2 * eps * (1 - eps) / self.n_checked
            gap = self.apparent - self.mislabeling - e * (1 - c * self.mislabeling)
            return np.asarray(gap / np.sqrt(np.maximum(variance, 1e-30)))

        zero, ones = np.zeros(self.apparent.shape), np.ones(self.apparent.shape)
        return crossing(lambda e: statistic(e) - z, zero, ones), crossing(lambda e: statistic(e) + z, zero, ones)

    def _likeliest_mislabeling(self, e: Floats) -> Floats:
        """The ε in [0, 1/c] under which Â and ε̂ are most likely if the true error is e."""
        u, n = 1 - self._c * e, self._size
        is_given = np.isinf(self.n_checked)
        m = np.where(is_given, 1.0, self.n_checked)

        def slope(eps: Floats) -> Floats:
            a = e + eps * u
            cubic = u * n * (self.apparent - a) * eps * (1 - eps) + m * (self.mislabeling - eps) * a * (1 - a)
            return np.asarray(cubic / (n + m))

        # From just above zero, since the cubic has a root at zero when no checked label was wrong.
        likeliest = crossing(slope, np.full(e.shape, 1e-12), np.full(e.shape, 1 / self._c), tolerance=1e-11)
        return np.where(is_given, self.mislabeling, likeliest)

    def _bootstrap(self, level: float) -> Ends:
        """Percentiles of ê* = (A* − ε*)/(1 − cε*) with A* and ε* from their Jeffreys posteriors, within [0, 1].

        A parametric bootstrap that also works for zero counts: A* ~ Beta(nÂ + ½, n(1−Â) + ½), and ε* likewise, given
        that it is below guessing. The percentiles are those of infinitely many draws, found by integrating over ε*.
        """
        ends = np.empty((2, self.apparent.size))
        for rows, rates in self._blocks():
            ends[0, rows] = rates._quantile((1 - level) / 2, tolerance=1e-8)
            ends[1, rows] = rates._quantile((1 + level) / 2, tolerance=1e-8)
        low, high = ends.reshape(2, *self.apparent.shape)
        return low, high

    def _distribution(self) -> scipy.stats.rv_histogram:
        """ê* under the draws of the bootstrap, given that it lies within [0, 1]; of one rate."""
        # Closer and closer to both ends, where the values of a long tail lie; what is beyond them is left out.
        shares = special.expit(np.linspace(-_TAIL, _TAIL, _QUANTILES))
        rates = self._with(partial(np.full, _QUANTILES))
        below, upto = (rates._cdf(np.full(_QUANTILES, end)) for end in (0.0, 1.0))
        values = rates._quantile(below + shares * (upto - below), tolerance=1e-13)
        is_new = np.diff(np.maximum.accumulate(values), prepend=-1.0) > 0
        return scipy.stats.rv_histogram((np.diff(shares[is_new]), values[is_new]), density=False)

    def _blocks(self) -> Iterator[tuple[slice, TrueError]]:
        """The rates in one row, some at a time, so that memory stays small."""
        flat = self._with(np.ravel)
        for start in range(0, self.apparent.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, flat._with(itemgetter(rows))

    def _with(self, change: Callable[[Floats], Floats]) -> TrueError:
        parts = change(self.apparent), change(self.mislabeling), change(self.n), change(self.n_checked)
        return TrueError(*parts, self.n_classes)

    def _quantile(self, share: float | Floats, tolerance: float) -> Floats:
        zero, ones = np.zeros(self.apparent.shape), np.ones(self.apparent.shape)
        return crossing(lambda e: share - self._cdf(e), zero, ones, tolerance=tolerance)

    def _cdf(self, e: Floats) -> Floats:
        """P(ê* ≤ e) under the draws of the bootstrap, not restricted to [0, 1]; at e = 0 it is P(A* ≤ ε*)."""
        eps, weights = self._nodes
        a = np.clip(eps + e[..., None] * (1 - self._c * eps), 0.0, 1.0)
        right, wrong = self._size * self.apparent + 0.5, self._size * (1 - self.apparent) + 0.5
        return np.asarray(special.betainc(right[..., None], wrong[..., None], a) @ weights)

    @cached_property
    def _nodes(self) -> Ends:
        """Values of ε*, shape (..., nodes), and weights, shape (nodes,), that stand for its distribution below 1/c."""
        is_given = np.isinf(self.n_checked)
        if is_given.all():
            return self.mislabeling[..., None], np.ones(1)
        shares, weights = special.roots_legendre(96)  # with 1024 the ends move by less than 1e-5
        m = np.where(is_given, 1.0, self.n_checked)
        right, wrong = (m * (1 - self.mislabeling) + 0.5)[..., None], (m * self.mislabeling + 0.5)[..., None]
        eps = special.betaincinv(wrong, right, (1 + shares) / 2 * special.betainc(wrong, right, 1 / self._c))
        return np.where(is_given[..., None], self.mislabeling[..., None], eps), np.asarray(weights / 2)


def true_error(
    *,
    apparent: npt.ArrayLike,
    mislabeling: npt.ArrayLike,
    n: npt.ArrayLike | None = None,
    n_checked: npt.ArrayLike | None = None,
    n_classes: int = 2,
) -> TrueError:
    """The true error rate from the apparent one, if labels and classifier err independently.

    ê = (Â − ε)/(1 − cε) with c = C/(C − 1). Errors that are not spread evenly over classes need matrices, see
    `recover_confusion`; errors that may come together need `error_bounds`.

    Parameters
    ----------
    apparent : float or array. Â, the share of items on which prediction and label differ.
    mislabeling : float or array. ε, the share of wrong labels; below (C − 1)/C.
    n : int or array, optional. The number of items. Without it there is no interval.
    n_checked : int or array, optional
        The number of labels, of *other* items than the n, that were checked to estimate ε. Without it ε is taken as
        known, and intervals do not carry its uncertainty.
    """
    a, eps = check_rate(apparent, name="apparent"), check_rate(mislabeling, name="mislabeling")
    chance_factor(n_classes)
    check_identified(eps, n_classes)
    items = check_size(n, name="n", absent=np.nan)
    checked = check_size(n_checked, name="n_checked", absent=np.inf)
    a, eps, items, checked = (np.array(v) for v in np.broadcast_arrays(a, eps, items, checked))
    return TrueError(a, eps, items, checked, n_classes=int(n_classes))


def error_bounds(
    *, apparent: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2, dependence: Dependence = "non-negative"
) -> tuple[float, float] | tuple[Floats, Floats]:
    """The least and the largest true error that an apparent error and a mislabeling rate allow.

    With any dependence |A − ε| ≤ e ≤ A + ε, since P(· ≠ ·) is a distance between labels, truth and predictions. If
    both are wrong at least as often as independent errors would be, P(both err) ≥ eε, then also
    e ≥ (A − ε)/(1 − 2ε) for two classes, and e ≥ (A − ε)/(1 − ε) for more, where joint errors may name different
    classes. The paper has A − ε for the lower end; where A < ε, ε − A is the sharper one.

    Bounds of the rates themselves: they carry no sampling error.

    Parameters
    ----------
    apparent : float or array. A = P(ŷ ≠ z).
    mislabeling : float or array. ε = P(z ≠ y); below (C − 1)/C unless `dependence` is "any".
    dependence : {"non-negative", "any"}
        Errors that come together rather than not, as on hard items, or no assumption at all.
    """
    chance_factor(n_classes)
    how = check_choice(dependence, _DEPENDENCES, name="dependence")
    a, eps = np.broadcast_arrays(check_rate(apparent, name="apparent"), check_rate(mislabeling, name="mislabeling"))
    low, high = np.abs(a - eps), np.minimum(a + eps, 1.0)
    if n_classes == 2:
        high = np.minimum(high, 2 - a - eps)  # of three answers out of two, two agree
    if how == "non-negative":
        check_identified(eps, n_classes)
        # The e of P(both err) = eε, with joint errors that agree always (two classes) or never (more).
        end = (a - eps) / (1 - (2 if n_classes == 2 else 1) * eps)
        impossible = end > 1 + _ROUNDING
        if impossible.any():
            one, other = float(a[impossible].flat[0]), float(eps[impossible].flat[0])
            raise InvalidParameter(
                f"apparent must not exceed 1 − mislabeling if errors come together, got {one:.4g} and {other:.4g}; "
                "use `dependence='any'`"
            )
        low = np.maximum(low, np.minimum(end, 1.0))
    return plain(low), plain(high)  # type: ignore[return-value]


def _z(level: float) -> float:
    return float(scipy.stats.norm.isf((1 - level) / 2))


def crossing(function: Callable[[Floats], Floats], low: Floats, high: Floats, *, tolerance: float = 1e-10) -> Floats:
    """The x in [low, high] where a function falls through zero; an end where it does not.

    `function` takes and gives arrays of one shape, element by element. Where it is not positive at `low` the answer is
    `low`, where it is not negative at `high` it is `high`.

    Chandrupatla (1997), A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives. Advances in Engineering Software 28.
    """
    new, other = np.array(low, dtype=float), np.array(high, dtype=float)
    f_new, f_other = function(new), function(other)
    at_low = f_new <= 0
    at_high = ~at_low & (f_other >= 0)
    share = np.full(new.shape, 0.5)
    for _ in range(80):  # bisection alone would need 40 to find a root; `crossing` needs about 10
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
    source = ""
    if mislabeling.ndim:
        first = np.argwhere(wrong)[0].tolist()
        source = f" from labeler {first[0] if len(first) == 1 else tuple(first)}"
    raise InvalidParameter(
        f"mislabeling must be below {limit:.4g} for {n_classes} classes, got {float(mislabeling[wrong][0]):.4g}"
        f"{source}: labels no better than guesses carry nothing of the truth, so the rate cannot be identified; "
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
