"""One model trained for each change of a label: the reference, and the way for estimators without a fast path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.cleaning.flips import Candidates
from trueup.cleaning.validation import UnbiasedScorer

__all__ = ["Retrained", "predicted_codes", "retrained_predictions", "retrained_scores"]

_TASKS = 32  # runs of models for each worker, so that none waits long for the last


@dataclass(frozen=True, eq=False)
class Retrained:
    """What models trained with one label changed are worth.

    Attributes
    ----------
    scores : array of shape (n_candidates,)
        The unbiased metric of each.
    base : float
        That of the model with the labels as they are.
    predictions : integer array of shape (n_candidates, n_validation)
    base_predictions : integer array of shape (n_validation,)
    """

    scores: Floats
    base: float
    predictions: npt.NDArray[np.integer[Any]]
    base_predictions: Codes


def retrained_scores(
    estimator: Any,
    X: Any,
    y: npt.ArrayLike,
    X_val: Any,
    scorer: UnbiasedScorer,
    candidates: Candidates,
    *,
    model: Any = None,
    n_jobs: int | None = None,
    warm_start: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Retrained:
    """Train a model for each change of a label and evaluate it on the validation items.

    Models are trained through `joblib.Parallel`, so that a joblib backend of dask or ray runs the same code. Data are
    shared and read only; each worker changes one label of a copy of the labels.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned, never changed.
    X : array or sparse matrix of shape (n_train, n_features)
    y : integer array of shape (n_train,)
        Codes of the labels; models are fitted on ``scorer.classes[y]``.
    X_val : array or sparse matrix of shape (n_validation, n_features)
    scorer : UnbiasedScorer
        Of the validation items.
    candidates : Candidates
        Which label becomes which class, one for each model.
    model : fitted classifier, optional
        Of the labels as they are; trained if not given.
    n_jobs : int, optional
        As for joblib.
    warm_start : bool
        Start each training at the base model, for estimators that can (those with a parameter ``warm_start`` whose
        fit goes on from coefficients: linear models and networks; not ensembles, which would only add to their trees).
    progress : callable, optional
        Called with how many models are trained, and how many there are.

    Returns
    -------
    Retrained

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.arange(8.0)[:, None]
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    >>> scorer = UnbiasedScorer(y, np.eye(2))
    >>> changes = Candidates(np.array([6]), np.array([1]))
    >>> found = retrained_scores(DecisionTreeClassifier(max_depth=1, random_state=0), X, y, X, scorer, changes)
    >>> found.base, found.scores.tolist()
    (0.875, [0.875])
    """
    labels = np.asarray(y, dtype=np.int64)
    base = fitted(estimator, X, scorer.classes[labels]) if model is None else model
    before = predicted_codes(base, X_val, scorer.classes)
    predictions = retrained_predictions(
        estimator,
        X,
        labels,
        X_val,
        scorer.classes,
        candidates,
        model=base,
        n_jobs=n_jobs,
        warm_start=warm_start,
        progress=progress,
    )
    return Retrained(scorer.scores(predictions), float(scorer.scores(before)), predictions, before)


def retrained_predictions(
    estimator: Any,
    X: Any,
    y: Codes,
    X_val: Any,
    classes: npt.NDArray[Any],
    candidates: Candidates,
    *,
    model: Any = None,
    n_jobs: int | None = None,
    warm_start: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.integer[Any]]:
    """The codes that each retrained model predicts; shape (n_candidates, n_validation)."""
    from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]

    kind = np.min_scalar_type(len(classes) - 1)
    found = np.empty((len(candidates), np.shape(X_val)[0]), dtype=kind)
    if not len(candidates):
        return found
    start = model if warm_start and goes_on(estimator) else None
    parts = np.array_split(np.arange(len(candidates)), min(len(candidates), _TASKS * effective_n_jobs(n_jobs)))
    tasks = (
        delayed(_train)(estimator, X, y, X_val, classes, candidates.item[part], candidates.to[part], start)
        for part in parts
    )
    done = 0
    for part, codes in zip(parts, Parallel(n_jobs=n_jobs, return_as="generator")(tasks), strict=True):
        found[part] = codes
        done += len(part)
        if progress is not None:
            progress(done, len(candidates))
    return found


def _train(
    estimator: Any, X: Any, y: Codes, X_val: Any, classes: npt.NDArray[Any], item: Codes, to: Codes, start: Any
) -> npt.NDArray[np.integer[Any]]:
    """The work of one task: models for a few changes."""
    labels = np.array(y)  # memory shared between workers is read only
    found = np.empty((len(item), np.shape(X_val)[0]), dtype=np.min_scalar_type(len(classes) - 1))
    for row, (i, c) in enumerate(zip(item.tolist(), to.tolist(), strict=True)):
        own, labels[i] = labels[i], c
        found[row] = predicted_codes(fitted(estimator, X, classes[labels], start), X_val, classes)
        labels[i] = own
    return found


def goes_on(estimator: Any) -> bool:
    """Whether a fit can start from another fit's coefficients."""
    options = estimator.get_params(deep=False)
    return "warm_start" in options and "n_estimators" not in options and "max_iter" in options


def fitted(estimator: Any, X: Any, labels: npt.NDArray[Any], start: Any = None) -> Any:
    """A clone of the estimator fitted on these labels, from the solution of `start` if given."""
    from copy import deepcopy

    from sklearn.base import clone

    if start is None:
        return clone(estimator).fit(X, labels)
    same = len(np.unique(labels)) == len(start.classes_)
    return (deepcopy(start).set_params(warm_start=True) if same else clone(estimator)).fit(X, labels)


def predicted_codes(model: Any, X: Any, classes: npt.NDArray[Any]) -> Codes:
    """What a fitted classifier predicts, as codes of the classes."""
    names = np.asarray(classes)
    predicted = np.asarray(model.predict(X))
    order = np.argsort(names)
    return order[np.searchsorted(names, predicted, sorter=order)].astype(np.int64)
