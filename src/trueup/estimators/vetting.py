"""What vetting would bring: about how wide an interval is after so many items drawn at random."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from trueup._base.types import Codes, Floats

_NUMBERS = (20, 50, 100, 200, 500)
_LEFT = 0.75  # of the width without a model that one usually leaves: a rule of thumb from some twenty crowds


def widths_after_vetting(posterior: Floats | None, codes: Codes, level: float) -> dict[int, float]:
    """The width of the interval of the accuracy after vetting, by the number of items.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) of each item; without it nothing can be said.
    codes : integer array of shape (n_items,)
        The predicted classes, -1 for none.
    level : float
    """
    seen = np.flatnonzero(codes >= 0)
    if posterior is None or not len(seen):
        return {}
    accuracy = float(np.clip(posterior[seen, codes[seen]].mean(), 0.02, 0.98))
    n_items = len(seen)
    z = float(ndtri((1 + level) / 2))
    return {
        n: float(2 * z * _LEFT * np.sqrt(accuracy * (1 - accuracy) / n * (1 - n / n_items)))
        for n in _NUMBERS
        if n < n_items
    }


def items_to_vet(posterior: Floats | None, codes: Codes, level: float, *, width: float) -> int:
    """About how many items must be vetted for an interval of the accuracy of a width; all of them at most.

    Parameters
    ----------
    posterior, codes, level
        As in `widths_after_vetting`.
    width : float
    """
    seen = np.flatnonzero(codes >= 0)
    if posterior is None or not len(seen):
        return 0
    accuracy = float(np.clip(posterior[seen, codes[seen]].mean(), 0.02, 0.98))
    return items_for_width(accuracy * (1 - accuracy), len(seen), level, width=width)


def items_for_width(variance: float, n_items: int, level: float, *, width: float) -> int:
    """About how many items must be vetted for an interval of a mean; all of them at most.

    Parameters
    ----------
    variance : float
        Of what the mean is of, between items.
    n_items : int
    level, width : float

    Examples
    --------
    >>> items_for_width(0.25, 10_000, 0.95, width=0.1), items_for_width(0.25, 100, 0.95, width=0.1)
    (212, 69)
    """
    alone = (2 * float(ndtri((1 + level) / 2)) * _LEFT / width) ** 2 * variance
    return int(np.ceil(alone / (1 + alone / n_items)))  # of a finite pool
