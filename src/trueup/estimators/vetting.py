"""What vetting would bring: about how wide an interval is after so many items drawn at random.

Vetted items correct what models say of each item, so what is left is the spread about P(right) of single items, and not
that of right and wrong answers about their share. It is what models leave open if they are about as right as they say;
a crowd that is wrong together leaves more, which only the vetted items will show.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Booleans, Codes, Floats

_NUMBERS = (20, 50, 100, 200, 500)
_LEAST = 0.05 * 0.95 / 2  # the variance of an item that no agreement of models takes away


def widths_after_vetting(
    posterior: Floats | None,
    codes: Codes,
    level: float,
    *,
    known: Booleans | None = None,
    times: Floats | None = None,
) -> dict[int, float]:
    """The width of the interval of the accuracy after vetting, by the number of items.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) of each item; without it nothing can be said.
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    level : float
    known : boolean array of shape (n_items,), optional
        Items that are vetted already: they say nothing of what others leave open.
    times : array of shape (n_items,), optional
        How many items each row stands for, by default one.
    """
    n_items = float((codes >= 0).sum() if times is None else times[codes >= 0].sum())
    if posterior is None or not n_items:
        return {}
    variance = variance_left(posterior, codes, known, times)
    z = float(ndtri((1 + level) / 2))
    return {n: float(2 * z * np.sqrt(variance / n * (1 - n / n_items))) for n in _NUMBERS if n < n_items}


def variance_left(posterior: Floats, codes: Codes, known: Booleans | None = None, times: Floats | None = None) -> float:
    """The variance of an item's right or wrong about its own P(right), averaged over the items that nobody vetted."""
    seen = np.flatnonzero((codes >= 0) & (True if known is None else ~known))
    right = posterior[seen, codes[seen]]
    return item_variance(right * (1 - right), None if times is None else times[seen])


def item_variance(variances: Floats, times: Floats | None = None) -> float:
    """The mean of the variances of items on a scale from 0 to 1, and never less than models are wrong by."""
    return max(float(np.average(variances, weights=times)) if len(variances) else 0.0, _LEAST)


def items_to_vet(
    posterior: Floats | None, codes: Codes, level: float, *, width: float, known: Booleans | None = None
) -> int:
    """About how many items must be vetted for an interval of the accuracy of a width; all of them at most.

    Parameters
    ----------
    posterior, codes, level, known
        As in `widths_after_vetting`.
    width : float
    """
    n_items = int((codes >= 0).sum())
    if posterior is None or not n_items:
        return 0
    return items_for_width(variance_left(posterior, codes, known), n_items, level, width=width)


def items_for_width(variance: float, n_items: int, level: float, *, width: float) -> int:
    """About how many items must be vetted for an interval of a mean; all of them at most.

    Parameters
    ----------
    variance : float
        That models leave of each item.
    n_items : int
    level, width : float

    Examples
    --------
    >>> items_for_width(0.25, 10_000, 0.95, width=0.1), items_for_width(0.25, 100, 0.95, width=0.1)
    (370, 80)
    """
    alone = (2 * float(ndtri((1 + level) / 2)) / width) ** 2 * variance
    return int(np.ceil(alone / (1 + alone / n_items)))  # of a finite pool
