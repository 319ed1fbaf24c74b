"""Rates, sizes and matrices at the door: checked, as float arrays, with one sentence where they make no sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_level, preview
from trueup.exceptions import InvalidParameter
from trueup.posteriors import DiscreteEstimate, Estimate, GridEstimate, PointEstimate
from trueup.rates import intervals

__all__ = [
    "Floats",
    "IntervalMethod",
    "TrueError",
    "chance_factor",
    "check_identified",
    "check_rate",
    "check_size",
    "check_square",
    "plain",
]

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
        "leave them out, or use the bounds of any dependence (⟨rates.error_bounds⟩)"
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


BoolArray = npt.NDArray[np.bool_]
IntervalMethod = Literal["score", "fieller", "delta", "bootstrap"]
_METHODS: dict[IntervalMethod, Callable[[Floats, Floats, Floats, Floats, float, float], tuple[Floats, Floats]]] = {
    "score": intervals.score,
    "fieller": intervals.fieller,
    "delta": intervals.delta,
    "bootstrap": intervals.bootstrap,
}
_SUSPICIOUS = 0.95  # from this probability on a negative estimate is more than bad luck


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
    def truncated(self) -> bool | BoolArray:
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
        # Seven nines of the mass, on a grid that is fine enough to be drawn.
        low, high = (float(np.asarray(v)) for v in self.interval(1 - 1e-7, method="bootstrap"))
        if not high > low:
            return DiscreteEstimate([low], [1.0], name="true error")
        x = np.linspace(low, high, 1025)
        density = intervals.beta_density(x, a, n, eps, m, self._c)
        return GridEstimate(x, density, name="true error")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: truncation, and labels that agree with the classifier too well."""
        raw, found = np.ravel(self.raw), []
        below, above = raw < 0, raw > 1
        if below.any():
            which = "The estimate" if raw.size == 1 else f"{int(below.sum())} of {raw.size} estimates"
            verb = "is" if raw.size == 1 else "are"
            found.append(
                f"{which} {verb} negative before truncation (least {raw.min():.4g}): fewer labels disagree with the "
                "classifier than ε alone explains."
            )
        if above.any():
            found.append(f"An estimate is above one before truncation (largest {raw.max():.4g}).")
        if (np.ravel(self.prob_negative)[below] > _SUSPICIOUS).any():
            found.append(
                "That is more than bad luck: labels and classifier err together, or ε is too large; see error_bounds."
            )
        return tuple(found)

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
