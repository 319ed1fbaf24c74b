"""Uncertain labels for estimators that take certain ones: copies of items, weighted or counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup.exceptions import InvalidParameter
from trueup.training._votes import Floats, Positions, take

__all__ = ["Copies", "fit_copies", "hard_copies", "quantised_copies", "weighted_copies"]


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

    Parameters
    ----------
    shares : array of shape (n_items, n_classes)
        Rows that sum to 1 and are not negative.
    min_weight : float
        At most 1 / n_classes, or an item may lose all its copies; the largest always stays.
    max_copies : int, optional
        The most copies of an item.

    Examples
    --------
    >>> found = weighted_copies(np.array([[0.9, 0.1], [1.0, 0.0]]), min_weight=1e-4)
    >>> found.item.tolist(), found.code.tolist(), found.weight.tolist()
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
    >>> found = quantised_copies(np.array([[0.74, 0.26], [1.0, 0.0]]), 4)
    >>> found.item.tolist(), found.code.tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 0])
    """
    exact = shares * n_copies
    counts = np.floor(exact + 1e-9).astype(np.int64)
    rest = n_copies - counts.sum(axis=1)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
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
    from sklearn.pipeline import Pipeline

    once = copies.weight is None and np.array_equal(copies.item, np.arange(len(hard)))
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1 and not once:
        whole = clone(estimator)
        head = whole[:-1]
        features = head.fit_transform(X, names[hard])
        last = fit_copies(whole.steps[-1][1], features, hard, copies, names)
        whole.steps = [*head.steps, (whole.steps[-1][0], last)]
        return whole
    model = clone(estimator)
    rows = take(X, copies.item)
    if copies.weight is None:
        _count_neighbours_in_copies(model, len(copies.item) // max(len(hard), 1))
        return model.fit(rows, names[copies.code])
    if not takes_weights(model):
        raise InvalidParameter(
            f"weighted labels need an estimator whose fit takes sample_weight, got {type(model).__name__}, which "
            'ignores it; pass strategy="replication", which copies items instead'
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


def takes_weights(estimator: Any) -> bool:
    """Whether `fit` has a parameter sample_weight."""
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))
