"""Rows to train on, how often and as which class, and classifiers fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup.exceptions import InvalidParameter


def as_rows(X: Any) -> Any:
    """X as something whose rows can be picked: an array, sparse matrix or frame; a list of texts stays one of texts."""
    if hasattr(X, "shape") and hasattr(X, "__getitem__"):
        return X
    return np.asarray(X)


def n_rows_of(X: Any) -> int:
    """The number of rows."""
    if not len(X.shape):
        raise InvalidParameter(f"X must have rows, got a single value {X!r}; pass an array of rows")
    return int(X.shape[0])


def take(X: Any, rows: Positions) -> Any:
    """Some rows, in any order and any number of times; X itself where these are all of them in order."""
    if len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows))):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.tocsr()[rows] if hasattr(X, "tocsr") else X[rows]


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """The steps before the last of a pipeline, or None, and the last."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return (estimator[:-1] if len(estimator.steps) > 1 else None), estimator.steps[-1][1]
    return None, estimator


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows to train on: which item, as which class, with which weight (None: all count alike)."""

    item: Positions
    code: Positions
    weight: Floats | None


def hard_copies(codes: npt.ArrayLike) -> Copies:
    """Each item once.

    Examples
    --------
    >>> hard_copies([1, 0]).item.tolist()
    [0, 1]
    """
    code = np.asarray(codes, dtype=np.int64)
    return Copies(np.arange(len(code)), code, None)


def weighted_copies(shares: Floats, *, min_weight: float, max_copies: int | None = None) -> Copies:
    r"""A copy of item i for each class with a weight, so that weighted losses add up to the MMSE risk.

    .. math:: \sum_i \sum_y p(y \mid z_i)\, L(f(x_i), y)

    Weights below `min_weight` are left out and the others of the item scaled up, so each item still counts 1.

    Examples
    --------
    >>> copies = weighted_copies(np.array([[0.9, 0.1], [1.0, 0.0]]), min_weight=1e-4)
    >>> copies.item.tolist(), copies.code.tolist(), copies.weight.tolist()
    ([0, 1, 0], [0, 0, 1], [0.9, 1.0, 0.1])
    """
    kept = np.where(shares >= min_weight, shares, 0.0)
    first = shares.argmax(axis=1)
    every = np.arange(len(shares))
    kept[every, first] = shares[every, first]
    if max_copies is not None and max_copies < shares.shape[1]:
        least = np.argsort(-kept, axis=1, kind="stable")[:, max_copies:]
        np.put_along_axis(kept, least, 0.0, axis=1)
    kept /= kept.sum(axis=1, keepdims=True)
    code, item = np.nonzero(kept.T)  # class by class: blocks of X in its own order
    weight = kept[item, code]
    return Copies(item, code, None if (weight == 1).all() else weight)


def quantised_copies(shares: Floats, n_copies: int) -> Copies:
    """Each item `n_copies` times, shared out to classes by the largest remainders.

    Where all counts have a common divisor they are divided by it: certain labels give each item once.

    Examples
    --------
    >>> copies = quantised_copies(np.array([[0.74, 0.26], [1.0, 0.0]]), 4)
    >>> copies.item.tolist(), copies.code.tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 0])
    """
    exact = shares * n_copies
    counts = np.floor(exact + 1e-9).astype(np.int64)
    rest = n_copies - counts.sum(axis=1)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    counts += rank < rest[:, None]
    counts //= np.gcd.reduce(counts, axis=None)
    item, code = np.nonzero(counts)
    times = counts[item, code]
    return Copies(np.repeat(item, times), np.repeat(code, times), None)


def fit_copies(estimator: Any, X: Any, hard: Positions, copies: Copies, names: npt.NDArray[Any]) -> Any:
    """A clone of the estimator fitted to the copies.

    The steps of a pipeline before the last are fitted to each item once, with its hard label: copies are no more items
    and must not move a mean or a vocabulary. Then only what they make of X is copied.
    """
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    model = clone(estimator)
    head, last = split_pipeline(model)
    once = copies.weight is None and np.array_equal(copies.item, np.arange(len(hard)))
    if head is not None and not once:
        features = head.fit_transform(X, names[hard])
        model.steps = [*head.steps, (model.steps[-1][0], fit_copies(last, features, hard, copies, names))]
        return model
    rows = take(X, copies.item)
    if copies.weight is None:
        _count_neighbours_in_copies(model, len(copies.item) // max(len(hard), 1))
        return model.fit(rows, names[copies.code])
    if not has_fit_parameter(model, "sample_weight"):
        raise InvalidParameter(
            f"weighted labels need an estimator whose fit takes sample_weight, got {type(model).__name__}, which "
            'ignores it; pass another, or in NoisyLabelClassifier ⟨strategy="replication"⟩, which copies items instead'
        )
    return _fit_weighted(model, rows, copies, names)


def _count_neighbours_in_copies(model: Any, each: int) -> None:
    """Let nearest neighbours look at as many items as before, if each item is there `each` times."""
    from sklearn.neighbors import KNeighborsClassifier

    if each > 1 and isinstance(model, KNeighborsClassifier):
        model.set_params(n_neighbors=model.n_neighbors * each)


def _fit_weighted(model: Any, rows: Any, copies: Copies, names: npt.NDArray[Any]) -> Any:
    """Fit to weighted copies; classes are balanced by their weights, where some estimators count copies."""
    assert copies.weight is not None
    balanced = model.get_params().get("class_weight") == "balanced"
    weight = copies.weight
    if balanced:
        share = np.bincount(copies.code, weights=weight, minlength=len(names))
        weight = weight * (share.sum() / (np.count_nonzero(share) * share[copies.code]))
        model.set_params(class_weight=None)
    model.fit(rows, names[copies.code], sample_weight=weight)
    return model.set_params(class_weight="balanced") if balanced else model


def aligned_columns(values: Any, have: npt.NDArray[Any], want: npt.NDArray[Any], *, fill: float = 0.0) -> Floats:
    """Columns by class in another order, `fill` for a class that was never seen."""
    table = np.asarray(values, dtype=float)
    if np.array_equal(have, want):
        return table
    position = {name: k for k, name in enumerate(want.tolist())}
    out = np.full((len(table), len(want)), fill)
    out[:, [position[name] for name in np.asarray(have).tolist()]] = table
    return out
