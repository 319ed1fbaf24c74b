"""Should several labelers look at the same items, or each at others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from trueup._validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.rates._checks import Array, check_identified, check_rate, plain
from trueup.rates.worth import unit_variance

__all__ = ["Combine", "LabelingPolicy", "combined_mislabeling", "labeling_policy", "policy_boundary"]

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
    combined_mislabeling : float or array
        The mislabeling rate of K labels put together.
    """

    different_std: float | Array
    same_std: float | Array
    combined_mislabeling: float | Array

    @property
    def variance_ratio(self) -> float | Array:
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
) -> float | Array:
    """The rate at which K labels of an item, put together, are wrong.

    "majority": P(more than half of K err) + ½ P(exactly half err). "optimistic": ε^K, the paper's case, in which the
    item is mislabeled only if all K err.

    Parameters
    ----------
    mislabeling : float or array
        ε of each labeler; they err independently.
    n_labelers : int or array
        K.
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
    tie = np.where(k == 2 * half, stats.binom.pmf(half, k, eps), 0.0)
    return plain(np.asarray(stats.binom.sf(half, k, eps) + tie / 2))


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
    error : float or array
        The true error rate, about.
    mislabeling : float or array
        ε of each labeler, below ½.
    n_labelers : int or array
        K.
    n_items : int or array
        n, the items that each labeler is paid for; it changes the standard errors but not the choice.
    combine : {"majority", "optimistic"}
        How K labels become one, see `combined_mislabeling`.

    Returns
    -------
    LabelingPolicy

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> labeling_policy(error=0.1, mislabeling=0.05, n_labelers=3).best
    'different'
    >>> labeling_policy(error=0.01, mislabeling=0.1, n_labelers=3).best
    'same'
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
) -> float | Array:
    """The true error below which labelers should look at the same items.

    The root e ≤ ½ of e(1−e) = (s(ε) − K s(ε_K))/(K − 1), with s(ε) = ε(1−ε)/(1−2ε)². Zero means that different items
    are always better, ½ that the same items are.

    Parameters
    ----------
    mislabeling : float or array
        ε of each labeler, below ½.
    n_labelers : int or array
        K, at least 2.
    combine : {"majority", "optimistic"}

    Returns
    -------
    float or array

    Examples
    --------
    >>> round(policy_boundary(mislabeling=0.1, n_labelers=3), 4)
    0.0251
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


def _check_labelers(values: npt.ArrayLike, *, name: str = "n_labelers", least: int = 1) -> Array:
    array = np.asarray(values)
    whole = array.dtype.kind in "iuf" and np.isfinite(array).all() and (array == np.floor(array)).all()
    if not whole or (array < least).any():
        raise InvalidParameter(f"{name} must be an integer of at least {least} or an array of such, got {values!r}")
    return np.asarray(array, dtype=float)
