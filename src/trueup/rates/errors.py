"""True and apparent error of a classifier whose test labels are wrong now and then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup.rates._checks import Array, chance_factor, check_identified, check_rate, check_size, plain
from trueup.rates.estimate import TrueError

__all__ = ["apparent_error", "rule_of_thumb", "true_error"]


def apparent_error(*, error: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2) -> float | Array:
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


def rule_of_thumb(*, apparent: npt.ArrayLike, mislabeling: npt.ArrayLike) -> float | Array:
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
