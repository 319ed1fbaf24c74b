"""True and apparent error of a classifier whose test labels are wrong now and then."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.rates.estimate import TrueError, chance_factor, check_identified, check_rate, check_size, plain

__all__ = ["Dependence", "apparent_error", "error_bounds", "rule_of_thumb", "true_error"]


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


Dependence = Literal["non-negative", "any"]
_DEPENDENCES: tuple[Dependence, ...] = ("non-negative", "any")
_ROUNDING = 1e-12


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
            "use ⟨dependence='any'⟩"
        )
    return np.minimum(end, 1.0)
