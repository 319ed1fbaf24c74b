"""A model with a fast path that stands in for one without, to tell which labels are worth retraining for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup.cleaning._fast_base import csr, is_sparse
from trueup.cleaning.fast_models import FlipModels, flip_models
from trueup.cleaning.flips import Codes

__all__ = ["surrogate_problem"]

_MOST_FEATURES = 64  # features of the surrogate; it only ranks, and its price grows with their cube


def surrogate_problem(X: Any, y: Codes, X_val: Any, classes: npt.NDArray[Any]) -> tuple[FlipModels | None, Any]:
    """Logistic regression on standardised features, their first principal components if there are many.

    Returns
    -------
    FlipModels or None
        None if the features are no numbers.
    array
        The validation items as these models take them.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> models, there = surrogate_problem(X, np.array([0, 0, 1, 0, 1, 0, 1, 1]), X, np.array([0, 1]))
    >>> models.base_predictions(there).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    from sklearn.linear_model import LogisticRegression

    try:
        train, there = _numbers(X), _numbers(X_val)
    except (TypeError, ValueError):
        return None, X_val
    train, there = _few(train, there)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solution is made exact afterwards
        model = LogisticRegression(max_iter=200).fit(train, classes[y])
    return flip_models(model, train, y, classes), there


def _numbers(X: Any) -> Any:
    if is_sparse(X):
        return csr(X)
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError("features that are no numbers")
    return rows


def _few(train: Any, there: Any) -> tuple[Any, Any]:
    """Standardised features, at most `_MOST_FEATURES`."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not is_sparse(train)).fit(train)
    train, there = scaler.transform(train), scaler.transform(there)
    if train.shape[1] > _MOST_FEATURES:
        n = min(_MOST_FEATURES, train.shape[0] - 1)
        reduce = TruncatedSVD(n, random_state=0).fit(train)
        rotated = StandardScaler().fit(reduce.transform(train))
        return rotated.transform(reduce.transform(train)), rotated.transform(reduce.transform(there))
    return train, there
