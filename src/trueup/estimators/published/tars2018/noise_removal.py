"""Leave out items that look mislabeled, and take the labels of the rest for true (Brodley and Friedl 1999)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_numbers
from trueup.data.labels import Labels
from trueup.estimators.problem import Solution
from trueup.estimators.published.practice import taken_for_true
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.majority import share_evenly

Filter = Literal["majority", "consensus"]
_FILTERS: tuple[Filter, ...] = ("majority", "consensus")
_ROUNDING = 1e-9  # probabilities that differ by less are equal


def noise_removal(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    noise: NoiseModel,
    features: npt.ArrayLike | None = None,
    classifiers: Sequence[Any] | None = None,
    filter: Filter = "majority",  # noqa: A002
    n_folds: int = 5,
    random_state: RandomState = None,
) -> Solution:
    """Evaluate on the items that a filter of classifiers does not call mislabeled [1]_.

    A baseline ("NoiseRemove" of Dolatshah et al. 2018). What is left is easy, for the classifier under test too:
    the accuracy comes out too high where the filter errs as it does, and too low where noise stays. **The interval
    covers badly.**

    .. [1] C. E. Brodley, M. A. Friedl, "Identifying mislabeled training data", Journal of Artificial Intelligence
       Research 11 (1999).

    Parameters
    ----------
    labels : Labels. Items without votes are left out; gold is never dropped.
    predictions : integer array of shape (n_items,). Codes in the order of ``labels.items``, -1 for none.
    noise : NoiseModel. Gives the label of each item: its most probable class.
    features : array of shape (n_items, n_features). In the order of ``labels.items``.
    classifiers, filter, n_folds : as for `mislabeled`
    """
    if features is None:
        raise InvalidParameter('`method="noise-removal"` needs `features=X`, a row for each of labels.items, got none')
    rng = as_generator(random_state)
    table = _checked(features, labels.n_items)
    shares = _likeliest_shares(labels, noise)
    labeled = shares.any(axis=1)
    codes = shares[labeled].argmax(axis=1)  # a filter needs one class: of equally probable ones the first
    suspect = np.zeros(labels.n_items, dtype=bool)
    suspect[labeled] = mislabeled(
        table[labeled], codes, classifiers=classifiers, filter=filter, n_folds=n_folds, random_state=rng
    )
    suspect &= labels.gold_codes < 0
    solution = taken_for_true(np.where(suspect[:, None], 0.0, shares), predictions, random_state=rng)
    dropped = f"{int(suspect.sum())} of {int(labeled.sum())} items were left out because they look mislabeled"
    return replace(solution, notes=(dropped, *solution.notes))


def mislabeled(
    features: npt.ArrayLike,
    codes: npt.ArrayLike,
    *,
    classifiers: Sequence[Any] | None = None,
    filter: Filter = "majority",  # noqa: A002
    n_folds: int = 5,
    random_state: RandomState = None,
) -> npt.NDArray[np.bool_]:
    """Which labels classifiers disagree with that were trained on the other items (Brodley and Friedl 1999).

    Parameters
    ----------
    codes : integer array of shape (n_items,). The labels.
    classifiers : sequence of scikit-learn classifiers, optional
        By default those of the paper: a decision tree, the nearest neighbour and a linear model.
    filter : {"majority", "consensus"}
        Call a label wrong if more than half of the classifiers disagree with it, or only if all do.
    n_folds : int. Each item is judged by classifiers that were trained without its fold.

    Examples
    --------
    >>> x = np.arange(20.0)[:, None]
    >>> y = (x[:, 0] >= 10).astype(int)
    >>> y[3] = 1
    >>> suspect = mislabeled(x, y, random_state=0)
    >>> bool(suspect[3]), bool(suspect[[0, 1, 15, 19]].any())
    (True, False)
    """
    from sklearn.base import clone
    from sklearn.model_selection import KFold, cross_val_predict

    how = check_choice(filter, _FILTERS, name="filter")
    label = np.asarray(codes)
    table = _checked(features, len(label))
    n_folds = check_integer(n_folds, name="n_folds", low=2)
    if n_folds > len(label):
        raise InvalidParameter(f"n_folds must not exceed the number of items, got {n_folds} folds of {len(label)}")
    rng = as_generator(random_state)
    if classifiers is not None and not len(classifiers):
        raise InvalidParameter("classifiers must name at least one scikit-learn classifier, got none")
    filters = _default_classifiers(rng) if classifiers is None else [clone(c) for c in classifiers]
    if len(np.unique(label)) < 2:
        return np.zeros(len(label), dtype=bool)  # a single class leaves nothing to disagree on
    folds = KFold(n_folds, shuffle=True, random_state=_seed(rng))
    if any(len(np.unique(label[train])) < 2 for train, _ in folds.split(label)):  # classifiers need two to learn from
        raise InvalidLabels(
            f"a class with {int(np.bincount(label)[np.unique(label)].min())} labels is missing from the other folds; "
            "lower n_folds, or add items of that class"
        )
    against = sum((cross_val_predict(model, table, label, cv=folds) != label).astype(int) for model in filters)
    needed = len(filters) if how == "consensus" else len(filters) // 2 + 1
    return np.asarray(against >= needed)


def _default_classifiers(rng: np.random.Generator) -> list[Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return [
        DecisionTreeClassifier(min_samples_leaf=5, random_state=_seed(rng)),
        make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    ]


def _seed(rng: np.random.Generator) -> int:
    """Scikit-learn takes whole numbers and no Generator."""
    return int(rng.integers(2**31 - 1))


def _checked(features: npt.ArrayLike, n_items: int) -> Floats:
    table = check_numbers(features, name="features")
    if table.ndim != 2 or len(table) != n_items or not table.shape[1]:
        raise InvalidParameter(
            f"features must have the shape ({n_items}, n_features), one row for each item, got {table.shape}"
        )
    return table


def dirty(
    labels: Labels, predictions: npt.ArrayLike, *, noise: NoiseModel, random_state: RandomState = None
) -> Solution:
    """The most probable class of each item label its votes, taken for true ("DirtyEval" of Dolatshah et al. 2018).

    `majority` does the same with the class that most votes name, and knows no noise model; with one vote an item and
    an even prior the two are one. **The interval covers badly**: it has the chance of having drawn these items and
    nothing of the labels being wrong. `noise` is fitted or known; the other parameters are those of `majority`.
    """
    return taken_for_true(_likeliest_shares(labels, noise), predictions, random_state=random_state)


def _likeliest_shares(labels: Labels, noise: NoiseModel) -> Floats:
    """The most probable class of each item, equally probable ones in equal parts; zeros for an item without votes."""
    is_labeled = (labels.votes_per_item > 0) | (labels.gold_codes >= 0)
    return np.where(is_labeled[:, None], share_evenly(noise.posterior(labels), _ROUNDING), 0.0)
