"""What the true error can be when labels and classifier need not err independently."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._validation import check_choice
from trueup.exceptions import InvalidParameter
from trueup.rates._checks import Array, chance_factor, check_identified, check_rate, plain

__all__ = ["Dependence", "error_bounds"]

Dependence = Literal["non-negative", "any"]
_DEPENDENCES: tuple[Dependence, ...] = ("non-negative", "any")
_ROUNDING = 1e-12


def error_bounds(
    *,
    apparent: npt.ArrayLike,
    mislabeling: npt.ArrayLike,
    n_classes: int = 2,
    dependence: Dependence = "non-negative",
) -> tuple[float, float] | tuple[Array, Array]:
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


def _independent_end(apparent: Array, mislabeling: Array, n_classes: int) -> Array:
    """The e of P(both err) = eε, with joint errors that agree always (two classes) or never (more)."""
    agree = 2 if n_classes == 2 else 1
    end = (apparent - mislabeling) / (1 - agree * mislabeling)
    impossible = end > 1 + _ROUNDING
    if impossible.any():
        a, eps = float(apparent[impossible].flat[0]), float(mislabeling[impossible].flat[0])
        raise InvalidParameter(
            f"apparent must not exceed 1 − mislabeling if errors come together, got {a:.4g} and {eps:.4g}; "
            "use dependence='any'"
        )
    return np.minimum(end, 1.0)
