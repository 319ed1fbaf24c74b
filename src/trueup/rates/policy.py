"""Should several labelers look at the same items, or each at others?

After Lam and Stork (2003), "Evaluating classifiers by means of test data with noisy labels", IJCAI.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats
from trueup._base.validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.posteriors.estimate import plain
from trueup.rates.errors import chance_factor, check_identified, check_rate

Combine = Literal["majority", "optimistic"]
_COMBINES: tuple[Combine, ...] = ("majority", "optimistic")


@dataclass(frozen=True, eq=False)
class LabelingPolicy:
    """Two ways to spend K·n labels of two classes, made by `labeling_policy`.

    Attributes
    ----------
    different_std, same_std : float or array
        Standard error of the estimated error rate: from K·n items with one label each, and from n items with K
        labels each.
    combined_mislabeling : float or array. The mislabeling rate of K labels put together.
    """

    different_std: float | Floats
    same_std: float | Floats
    combined_mislabeling: float | Floats

    @property
    def variance_ratio(self) -> float | Floats:
        """Var(same items) / Var(different items): above 1 where different items are better."""
        same, different = np.square(self.same_std), np.square(self.different_std)
        return plain(np.divide(same, different, out=np.ones(np.shape(same)), where=np.asarray(different) > 0))

    @property
    def best(self) -> str | npt.NDArray[np.str_]:
        """Where to send the labelers: ``"different"`` or ``"same"`` items; a tie is "different"."""
        chosen = np.where(np.asarray(self.variance_ratio) >= 1, "different", "same")
        return str(chosen) if chosen.ndim == 0 else chosen


def combined_mislabeling(
    *, mislabeling: npt.ArrayLike, n_labelers: npt.ArrayLike, combine: Combine = "majority"
) -> float | Floats:
    """The rate at which K labels of an item, put together, are wrong.

    "majority": P(more than half of K err) + ½ P(exactly half err). "optimistic": ε^K, the paper's case, in which the
    item is mislabeled only if all K err.

    Parameters
    ----------
    mislabeling : float or array. ε of each labeler; they err independently.
    n_labelers : int or array. K.
    combine : {"majority", "optimistic"}

    Examples
    --------
    >>> round(combined_mislabeling(mislabeling=0.1, n_labelers=3), 4)
    0.028
    >>> round(combined_mislabeling(mislabeling=0.1, n_labelers=3, combine="optimistic"), 4)
    0.001
    """
    eps, k = np.broadcast_arrays(check_rate(mislabeling, name="mislabeling"), _check_labelers(n_labelers))
    if check_choice(combine, _COMBINES, name="combine") == "optimistic":
        return plain(eps**k)
    half = np.floor(k / 2)
    tie = np.where(k == 2 * half, scipy.stats.binom.pmf(half, k, eps), 0.0)
    return plain(np.asarray(scipy.stats.binom.sf(half, k, eps) + tie / 2))


def labeling_policy(
    *,
    error: npt.ArrayLike,
    mislabeling: npt.ArrayLike,
    n_labelers: npt.ArrayLike,
    n_items: npt.ArrayLike = 1,
    combine: Combine = "majority",
) -> LabelingPolicy:
    """Compare K labelers on the same n items with K labelers on n items each.

    Different items leave a variance of v(e, ε)/(Kn), the same items v(e, ε_K)/n, with
    v(e, ε) = e(1−e) + ε(1−ε)/(1−2ε)². Two classes.

    Parameters
    ----------
    error : float or array. The true error rate, about.
    mislabeling : float or array. ε of each labeler, below ½.
    n_labelers : int or array. K.
    n_items : int or array
        n, the items that each labeler is paid for; it changes the standard errors but not the choice.
    combine : {"majority", "optimistic"}. How K labels become one, see `combined_mislabeling`.
    """
    e, eps = check_rate(error, name="error"), check_rate(mislabeling, name="mislabeling")
    k, n = _check_labelers(n_labelers), _check_labelers(n_items, name="n_items")
    check_identified(eps, 2)
    e, eps, k, n = np.broadcast_arrays(e, eps, k, n)
    together = np.asarray(combined_mislabeling(mislabeling=eps, n_labelers=k, combine=combine))
    different = np.sqrt(unit_variance(e, eps, 2.0) / (k * n))
    same = np.sqrt(unit_variance(e, together, 2.0) / n)
    return LabelingPolicy(plain(different), plain(same), plain(together))


def policy_boundary(
    *, mislabeling: npt.ArrayLike, n_labelers: npt.ArrayLike, combine: Combine = "majority"
) -> float | Floats:
    """The true error below which labelers should look at the same items.

    The root e ≤ ½ of e(1−e) = (s(ε) − K s(ε_K))/(K − 1), with s(ε) = ε(1−ε)/(1−2ε)². Zero means that different items
    are always better, ½ that the same items are.

    Parameters
    ----------
    mislabeling : float or array. ε of each labeler, below ½.
    n_labelers : int or array. K, at least 2.
    combine : {"majority", "optimistic"}
    """
    eps, k = np.broadcast_arrays(
        check_rate(mislabeling, name="mislabeling"), _check_labelers(n_labelers, name="n_labelers", least=2)
    )
    check_identified(eps, 2)
    together = np.asarray(combined_mislabeling(mislabeling=eps, n_labelers=k, combine=combine))
    none = np.zeros(eps.shape)
    # At e = 0 the unit variance is s alone.
    gain = (unit_variance(none, eps, 2.0) - k * unit_variance(none, together, 2.0)) / (k - 1)
    return plain((1 - np.sqrt(1 - 4 * np.clip(gain, 0.0, 0.25))) / 2)


def _check_labelers(values: npt.ArrayLike, *, name: str = "n_labelers", least: int = 1) -> Floats:
    array = np.asarray(values)
    whole = array.dtype.kind in "iuf" and np.isfinite(array).all() and (array == np.floor(array)).all()
    if not whole or (array < least).any():
        raise InvalidParameter(f"{name} must be an integer of at least {least} or an array of such, got {values!r}")
    return np.asarray(array, dtype=float)


def apparent_break_even(
    *, break_even: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike
) -> float | Floats:
    """The precision (and recall) that noisy labels show, of a classifier at its break-even point.

    Where precision and recall equal r, a classifier has as many false alarms as misses. If the labeler is at such a
    point too, with r_L, both call a share p of the items positive, and labels show precision = recall =
    r r_L + (1−r)(1−r_L) p/(1−p).

    Parameters
    ----------
    break_even : float or array. r, the classifier's true precision and recall.
    labeler : float or array. r_L, the labeler's precision and recall.
    prevalence : float or array. p, the share of positive items, strictly between 0 and 1.

    Examples
    --------
    >>> round(apparent_break_even(break_even=0.9, labeler=0.95, prevalence=0.1), 4)
    0.8556
    """
    r, own, odds = _check(break_even, labeler, prevalence, name="break_even")
    return plain(np.asarray(r * own + odds * (1 - r) * (1 - own)))


def true_break_even(*, apparent: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike) -> float | Floats:
    """The precision (and recall) behind what noisy labels show; the inverse of `apparent_break_even`.

    r = (a − k(1−r_L)) / (r_L − k(1−r_L)) with k = p/(1−p). Not truncated: outside [0, 1] the rates contradict each
    other, or the counts are small.

    Parameters
    ----------
    apparent : float or array. a, the precision and recall against the labels.
    labeler : float or array. r_L, above the prevalence.
    prevalence : float or array. p, strictly between 0 and 1.

    Examples
    --------
    >>> round(true_break_even(apparent=0.8556, labeler=0.95, prevalence=0.1), 3)
    0.9
    """
    a, own, odds = _check(apparent, labeler, prevalence, name="apparent")
    chance = odds * (1 - own)
    slope = own - chance
    if (slope <= 1e-12).any():
        wrong = slope <= 1e-12
        raise InvalidParameter(
            f"labeler must be above the prevalence, got {float(own[wrong].flat[0]):.4g}: labels with a precision no "
            "better than the share of positives are guesses, so the rate cannot be identified; leave them out"
        )
    return plain((a - chance) / slope)


def _check(first: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike, *, name: str) -> list[Floats]:
    """The rates, and the odds p/(1−p) in place of the prevalence."""
    p = check_rate(prevalence, name="prevalence")
    if ((p == 0) | (p == 1)).any():
        raise InvalidParameter("prevalence must lie strictly between 0 and 1, got 0 or 1; then no class is rare")
    rates = {name: check_rate(first, name=name), "labeler": check_rate(labeler, name="labeler")}
    odds = p / (1 - p)
    for key, rate in rates.items():
        if (odds * (1 - rate) > 1 + 1e-12).any():
            raise InvalidParameter(
                f"{key} must be at least 2 − 1/prevalence, got less; so few hits would need more false alarms than "
                "there are negative items"
            )
    return list(np.broadcast_arrays(*rates.values(), odds))


def unit_variance(error: Floats, mislabeling: Floats, c: float) -> Floats:
    """n·Var ê = A(1−A)/(1−cε)², the variance of the estimated error that one label leaves."""
    a = error + mislabeling - c * error * mislabeling
    return np.asarray(a * (1 - a) / (1 - c * mislabeling) ** 2)


def noisy_labels_per_perfect(*, error: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2) -> float | Floats:
    """The number of noisy labels that tell as much about the error rate as one perfect label.

    A(1−A) / ((1−cε)² e(1−e)): the variance of (Â − ε)/(1 − cε) with known ε over that of a count of true errors.

    At least 1, and 1 where ε = 0.

    Parameters
    ----------
    error : float or array
        The true error rate, about. At 0 or 1 the number is infinite: a perfect label leaves no variance there.
    mislabeling : float or array. ε, below (C − 1)/C.
    """
    e, eps = np.broadcast_arrays(check_rate(error, name="error"), check_rate(mislabeling, name="mislabeling"))
    c = chance_factor(n_classes)
    check_identified(eps, n_classes)
    perfect = e * (1 - e)
    ratio = np.divide(unit_variance(e, eps, c), perfect, out=np.full(e.shape, np.inf), where=perfect > 0)
    return plain(np.where(eps == 0, 1.0, ratio))
