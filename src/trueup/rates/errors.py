"""True and apparent error of a classifier whose test labels are wrong now and then.

After Lam and Stork (2003), "Evaluating classifiers by means of test data with noisy labels", IJCAI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_choice, check_level
from trueup.exceptions import InvalidParameter
from trueup.posteriors import ContinuousEstimate, DiscreteEstimate, Estimate, PointEstimate
from trueup.rates import intervals
from trueup.rates.checks import chance_factor, check_identified, check_rate, check_size, plain

Dependence = Literal["non-negative", "any"]
_DEPENDENCES: tuple[Dependence, ...] = ("non-negative", "any")
_ROUNDING = 1e-12
IntervalMethod = Literal["score", "fieller", "delta", "bootstrap"]
_METHODS: dict[IntervalMethod, Callable[[Floats, Floats, Floats, Floats, float, float], tuple[Floats, Floats]]] = {
    "score": intervals.score,
    "fieller": intervals.fieller,
    "delta": intervals.delta,
    "bootstrap": intervals.bootstrap,
}
_SUSPICIOUS = 0.95  # from this probability on a negative estimate is more than bad luck


def apparent_error(*, error: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2) -> float | Floats:
    """The share of labels that disagree with a classifier, if both err independently.

    A = e + ε − c e ε with c = C/(C − 1): two errors on an item agree with chance 1/(C − 1). For two classes they
    always agree. For more, the errors of the labels or of the classifier are spread evenly over the wrong classes.

    Parameters
    ----------
    error : float or array
        The true error rate e = P(ŷ ≠ y).
    mislabeling : float or array
        ε = P(z ≠ y).
    n_classes : int

    Returns
    -------
    float or array
        A = P(ŷ ≠ z), broadcast over the arguments.

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> round(apparent_error(error=0.02, mislabeling=0.05), 4)
    0.068
    >>> apparent_error(error=[0.0, 0.1], mislabeling=0.1).round(3).tolist()
    [0.1, 0.18]
    """
    e, eps = check_rate(error, name="error"), check_rate(mislabeling, name="mislabeling")
    return plain(np.asarray(e + eps - chance_factor(n_classes) * e * eps))


def rule_of_thumb(*, apparent: npt.ArrayLike, mislabeling: npt.ArrayLike) -> float | Floats:
    """The true error as A − ε, not below zero: labels that are wrong now and then simply add their rate.

    Under independence A − ε = e(1 − cε), so the rule says too little by exactly the share cε: 10% for two classes
    and ε = 0.05.

    Parameters
    ----------
    apparent, mislabeling : float or array

    Returns
    -------
    float or array

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

    Attributes
    ----------
    apparent, mislabeling : array
        Â and ε̂, of one shape.
    n : array
        The number of items that Â was counted on; nan if unknown.
    n_checked : array
        The number of checked labels that ε̂ was counted on; inf if ε is known.
    n_classes : int

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.
    Rogan and Gladen (1978), Estimating prevalence from the results of a screening test. American Journal of
    Epidemiology 107.
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
        return plain(intervals.raw_error(self.apparent, self.mislabeling, self._c))

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
        return plain(intervals.standard_error(self.apparent, self.n, self.mislabeling, self.n_checked, self._c))

    @property
    def prob_negative(self) -> float | Floats:
        """P(A < ε | data), with Jeffreys priors: how surely fewer labels disagree than independence allows.

        Near one, the errors of labels and classifier come together, or ε is too large; see `error_bounds`.
        """
        usable = ~np.isnan(self.n)
        chance = intervals.beta_cdf(
            np.zeros(self.apparent.shape),
            self.apparent,
            np.where(usable, self.n, 1.0),
            self.mislabeling,
            self.n_checked,
            self._c,
        )
        return plain(np.where(usable, chance, np.nan))

    def interval(
        self, level: float = 0.95, method: IntervalMethod = "score"
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """A confidence interval, truncated to [0, 1]; nan without `n`.

        Where every rate in [0, 1] is rejected, because Â is far below ε̂, both ends are zero: `prob_negative` and
        `notes` tell.

        Parameters
        ----------
        level : float
        method : {"score", "fieller", "delta", "bootstrap"}
            "score" inverts a score test and holds best, also for small counts. "fieller" and "delta" take observed
            rates for the variances and are too narrow for few checked labels. "bootstrap" takes percentiles over
            Beta posteriors of Â and ε̂.
        """
        how = _METHODS[check_choice(method, tuple(_METHODS), name="method")]
        usable = ~np.isnan(self.n)
        n = np.where(usable, self.n, 1.0)
        ends = how(self.apparent, n, self.mislabeling, self.n_checked, self._c, check_level(level))
        low, high = (plain(np.where(usable, np.clip(end, 0.0, 1.0), np.nan)) for end in ends)
        return low, high  # type: ignore[return-value]

    def estimate(self) -> Estimate:
        """The posterior on [0, 1] as an `Estimate`, with a density, draws and a plot; for one rate, not an array.

        Independent Beta(½, ½) priors of A and ε, restricted to what a true error in [0, 1] allows.
        """
        if self.apparent.ndim:
            raise InvalidParameter(
                f"estimate() is for one rate, got an array of shape {self.apparent.shape}; use interval() for arrays"
            )
        a, n, eps, m = (float(v) for v in (self.apparent, self.n, self.mislabeling, self.n_checked))
        if np.isnan(n):
            return PointEstimate(float(np.asarray(self.value)), name="true error")
        low, high = (float(np.asarray(v)) for v in self.interval(1 - 1e-7, method="bootstrap"))
        if not high > low:
            return DiscreteEstimate([low], [1.0], name="true error")
        return ContinuousEstimate(intervals.error_distribution(a, n, eps, m, self._c), name="true error")

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
        if (np.ravel(self.prob_negative)[below] > _SUSPICIOUS).any():
            notes.append(
                "That is more than bad luck: labels and classifier err together, or ε is too large; see error_bounds."
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
    apparent : float or array
        Â, the share of items on which prediction and label differ.
    mislabeling : float or array
        ε, the share of wrong labels; below (C − 1)/C.
    n : int or array, optional
        The number of items. Without it there is no interval.
    n_checked : int or array, optional
        The number of labels, of *other* items than the n, that were checked to estimate ε. Without it ε is taken as
        known, and intervals do not carry its uncertainty.
    n_classes : int

    Returns
    -------
    TrueError
        With `value`, `raw`, `truncated`, `std`, `prob_negative`, `interval(level, method)` and `estimate()`.

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> true_error(apparent=0.12, mislabeling=0.05, n=1000)
    TrueError(0.0778, 95% interval 0.0570 to 0.1018)
    >>> true_error(apparent=0.12, mislabeling=0.05, n=1000, n_checked=100)
    TrueError(0.0778, 95% interval 0.0078 to 0.1135)
    >>> true_error(apparent=0.03, mislabeling=0.05, n=200).truncated
    True
    """
    a, eps = check_rate(apparent, name="apparent"), check_rate(mislabeling, name="mislabeling")
    chance_factor(n_classes)
    check_identified(eps, n_classes)
    items = check_size(n, name="n", absent=np.nan)
    checked = check_size(n_checked, name="n_checked", absent=np.inf)
    a, eps, items, checked = (np.array(v) for v in np.broadcast_arrays(a, eps, items, checked))
    return TrueError(a, eps, items, checked, n_classes=int(n_classes))


def error_bounds(
    *,
    apparent: npt.ArrayLike,
    mislabeling: npt.ArrayLike,
    n_classes: int = 2,
    dependence: Dependence = "non-negative",
) -> tuple[float, float] | tuple[Floats, Floats]:
    """The least and the largest true error that an apparent error and a mislabeling rate allow.

    With any dependence |A − ε| ≤ e ≤ A + ε, since P(· ≠ ·) is a distance between labels, truth and predictions. If
    both are wrong at least as often as independent errors would be, P(both err) ≥ eε, then also
    e ≥ (A − ε)/(1 − 2ε) for two classes, and e ≥ (A − ε)/(1 − ε) for more, where joint errors may name different
    classes. The paper has A − ε for the lower end; where A < ε, ε − A is the sharper one.

    Parameters
    ----------
    apparent : float or array
        A = P(ŷ ≠ z).
    mislabeling : float or array
        ε = P(z ≠ y); below (C − 1)/C unless `dependence` is "any".
    n_classes : int
    dependence : {"non-negative", "any"}
        Errors that come together rather than not, as on hard items, or no assumption at all.

    Returns
    -------
    low, high : float or array
        Bounds of the rates themselves: they carry no sampling error.

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> [round(end, 4) for end in error_bounds(apparent=0.12, mislabeling=0.05)]
    [0.0778, 0.17]
    >>> [round(end, 4) for end in error_bounds(apparent=0.12, mislabeling=0.05, dependence="any")]
    [0.07, 0.17]
    """
    chance_factor(n_classes)
    how = check_choice(dependence, _DEPENDENCES, name="dependence")
    a, eps = np.broadcast_arrays(check_rate(apparent, name="apparent"), check_rate(mislabeling, name="mislabeling"))
    low, high = np.abs(a - eps), np.minimum(a + eps, 1.0)
    if n_classes == 2:
        high = np.minimum(high, 2 - a - eps)  # of three answers out of two, two agree
    if how == "non-negative":
        check_identified(eps, n_classes)
        low = np.maximum(low, _independent_end(a, eps, n_classes))
    return plain(low), plain(high)  # type: ignore[return-value]


def _independent_end(apparent: Floats, mislabeling: Floats, n_classes: int) -> Floats:
    """The e of P(both err) = eε, with joint errors that agree always (two classes) or never (more)."""
    agree = 2 if n_classes == 2 else 1
    end = (apparent - mislabeling) / (1 - agree * mislabeling)
    impossible = end > 1 + _ROUNDING
    if impossible.any():
        a, eps = float(apparent[impossible].flat[0]), float(mislabeling[impossible].flat[0])
        raise InvalidParameter(
            f"apparent must not exceed 1 − mislabeling if errors come together, got {a:.4g} and {eps:.4g}; "
            "use `dependence='any'`"
        )
    return np.minimum(end, 1.0)
