"""Precision and recall at their break-even point, as labels show them and as they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup.exceptions import InvalidParameter
from trueup.rates._checks import Array, check_rate, plain

__all__ = ["apparent_break_even", "true_break_even"]


def apparent_break_even(
    *, break_even: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike
) -> float | Array:
    """The precision (and recall) that noisy labels show, of a classifier at its break-even point.

    Where precision and recall equal r, a classifier has as many false alarms as misses. If the labeler is at such a
    point too, with r_L, both call a share p of the items positive, and labels show precision = recall =
    r r_L + (1−r)(1−r_L) p/(1−p).

    Parameters
    ----------
    break_even : float or array
        r, the classifier's true precision and recall.
    labeler : float or array
        r_L, the labeler's precision and recall.
    prevalence : float or array
        p, the share of positive items, strictly between 0 and 1.

    Returns
    -------
    float or array

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> round(apparent_break_even(break_even=0.9, labeler=0.95, prevalence=0.1), 4)
    0.8556
    """
    r, own, odds = _check(break_even, labeler, prevalence, name="break_even")
    return plain(_shown(r, own, odds))


def true_break_even(*, apparent: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike) -> float | Array:
    """The precision (and recall) behind what noisy labels show; the inverse of `apparent_break_even`.

    r = (a − k(1−r_L)) / (r_L − k(1−r_L)) with k = p/(1−p). Not truncated: outside [0, 1] the rates contradict each
    other, or the counts are small.

    Parameters
    ----------
    apparent : float or array
        a, the precision and recall against the labels.
    labeler : float or array
        r_L, above the prevalence.
    prevalence : float or array
        p, strictly between 0 and 1.

    Returns
    -------
    float or array

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


def _shown(r: Array, own: Array, odds: Array) -> Array:
    return np.asarray(r * own + odds * (1 - r) * (1 - own))


def _check(first: npt.ArrayLike, labeler: npt.ArrayLike, prevalence: npt.ArrayLike, *, name: str) -> list[Array]:
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
