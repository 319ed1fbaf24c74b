"""How many noisy labels a perfect one is worth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueup.rates._checks import Array, chance_factor, check_identified, check_rate, plain

__all__ = ["noisy_labels_per_perfect", "unit_variance"]


def unit_variance(error: Array, mislabeling: Array, c: float) -> Array:
    """n·Var ê = A(1−A)/(1−cε)², the variance of the estimated error that one label leaves.

    For two classes this is e(1−e) + ε(1−ε)/(1−2ε)²: what mislabeling adds does not depend on e.
    """
    a = error + mislabeling - c * error * mislabeling
    return np.asarray(a * (1 - a) / (1 - c * mislabeling) ** 2)


def noisy_labels_per_perfect(*, error: npt.ArrayLike, mislabeling: npt.ArrayLike, n_classes: int = 2) -> float | Array:
    """The number of noisy labels that tell as much about the error rate as one perfect label.

    A(1−A) / ((1−cε)² e(1−e)): the variance of (Â − ε)/(1 − cε) with known ε over that of a count of true errors.

    Parameters
    ----------
    error : float or array
        The true error rate, about. At 0 or 1 the number is infinite: a perfect label leaves no variance there.
    mislabeling : float or array
        ε, below (C − 1)/C.
    n_classes : int

    Returns
    -------
    float or array
        At least 1, and 1 where ε = 0.

    References
    ----------
    Lam and Stork (2003), Evaluating classifiers by means of test data with noisy labels. IJCAI.

    Examples
    --------
    >>> round(noisy_labels_per_perfect(error=0.1, mislabeling=0.05), 3)
    1.652
    """
    e, eps = np.broadcast_arrays(check_rate(error, name="error"), check_rate(mislabeling, name="mislabeling"))
    c = chance_factor(n_classes)
    check_identified(eps, n_classes)
    perfect = e * (1 - e)
    ratio = np.divide(unit_variance(e, eps, c), perfect, out=np.full(e.shape, np.inf), where=perfect > 0)
    return plain(np.where(eps == 0, 1.0, ratio))
