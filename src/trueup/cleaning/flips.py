"""Changes of one training label each: how probable they are, and the models that are trained with each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_distribution
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import Metric, get_metric
from trueup.training.objectives import check_codes, check_matrices, unbiased_weights

_STEP = 1e-6  # of the numerical derivative, in shares
_BLOCK = 1 << 24  # bytes of temporary arrays for each step


def count_metric(metric: str | Metric, classes: list[Any], positive: Any) -> Metric:
    """A metric of the confusion counts by name or as it is; others are refused."""
    measured = metric if isinstance(metric, Metric) else get_metric(metric, classes, positive)
    if measured.needs != "counts":
        raise InvalidParameter(
            f'`metric` must be one of the confusion counts, got {measured.name!r}; pass e.g. "accuracy" or "f1"',
        )
    return measured


class UnbiasedScorer:
    r"""Evaluates hard predictions of many models against noisy labels, without bias [1]_.

    With :math:`w_j = R_j^{-\top} e_{y'_j}`, an unbiased estimate of the truth's indicator, the shares of the confusion
    cells of a model with predictions :math:`\hat y` are

    .. math:: S_{y t} = \frac1n \sum_{j : \hat y_j = t} w_{j y}

    and any metric is a function of them: the accuracy is their trace, unbiased; quotients are consistent. Items known
    to be clean have the identity as matrix. Items whose matrix cannot be inverted are left out.

    A metric that is undefined counts as 0. Metrics other than the accuracy and the error rate are cut to their bounds,
    because a denominator near 0 would make a quotient arbitrarily large.

    Parameters
    ----------
    codes : integer array of shape (n_items,). The consolidated labels of the validation items.
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(label | truth), rows the truth.
    metric : str or Metric. Any metric of the confusion counts.
    classes : sequence, optional. The names of the classes, for metrics of one class; by default 0, 1, ….
    positive : optional. Which of two classes is the positive one; the last by default.

    Attributes
    ----------
    weights : array of shape (n_items, n_classes). w_j; zero for items left out.
    n_used : int. The number of items that count.
    linear : bool. Whether the metric is linear in the shares, so that gains add up to its change.

    Examples
    --------
    >>> scorer = UnbiasedScorer([0, 1, 1, 0], [[0.8, 0.2], [0.2, 0.8]])
    >>> scorer.scores([[0, 1, 1, 0], [0, 1, 1, 1]]).round(3).tolist()
    [1.333, 0.917]
    """

    def __init__(
        self,
        codes: npt.ArrayLike,
        matrices: npt.ArrayLike,
        *,
        metric: str | Metric = "accuracy",
        classes: Sequence[Any] | npt.NDArray[Any] | None = None,
        positive: Any = None,
    ) -> None:
        self.weights, usable = unbiased_weights(codes, matrices)
        self.n_items, self.n_classes = self.weights.shape
        if not self.n_items:
            raise InvalidLabels("the validation part must have items, got none; make it larger")
        self.classes = np.arange(self.n_classes) if classes is None else np.asarray(classes)
        if len(self.classes) != self.n_classes:
            raise InvalidParameter(f"classes must be {self.n_classes}, as in the matrices, got {len(self.classes)}")
        names = self.classes.tolist()
        self.metric = count_metric(metric, names, names[-1] if positive is None else positive)
        self.n_used = int(usable.sum())
        if not self.n_used:
            raise InvalidLabels(
                "the truth of no validation item can be recovered from its votes, got matrices that cannot be "
                "inverted; leave out labelers who answer at random, or add gold"
            )
        self.linear = self.metric.name in ("accuracy", "error_rate")

    @property
    def sign(self) -> float:
        """1 if more is better, else −1."""
        return -1.0 if self.metric.higher_is_better is False else 1.0

    def shares(self, predictions: npt.ArrayLike) -> Floats:
        """The unbiased shares of the confusion cells of each model, shape (..., n_classes, n_classes), rows the truth.

        `predictions` are codes of shape (..., n_items). Shares sum to 1 and may be negative.
        """
        codes = self._predictions(predictions)
        flat = codes.reshape(-1, self.n_items)
        shares = np.empty((len(flat), self.n_classes, self.n_classes))
        rows = max(_BLOCK // (8 * self.n_items), 1)
        for start in range(0, len(flat), rows):
            some = flat[start : start + rows]
            for t in range(self.n_classes):
                shares[start : start + rows, :, t] = (some == t).astype(float) @ self.weights / self.n_used
        return shares.reshape(*codes.shape[:-1], self.n_classes, self.n_classes)

    def scores(self, predictions: npt.ArrayLike) -> Floats:
        """The unbiased metric of each model; predictions of shape (..., n_items) give values of shape (...)."""
        return self.values(self.shares(predictions))

    def values(self, shares: npt.ArrayLike) -> Floats:
        """The metric of shares of shape (..., n_classes, n_classes)."""
        cells = np.asarray(shares, dtype=float)
        if self.linear:  # its denominator is 1
            right = np.trace(cells, axis1=-2, axis2=-1)
            return np.asarray(right if self.metric.name == "accuracy" else 1 - right)
        values = self.metric(cells)
        return np.clip(np.where(np.isfinite(values), values, 0.0), *self.metric.bounds)

    def gradient(self, shares: npt.ArrayLike) -> Floats:
        """The derivative of the metric by each share; shape (n_classes, n_classes), 0 where it has none."""
        cells, c = np.asarray(shares, dtype=float), self.n_classes
        if self.linear:
            return np.eye(c) if self.metric.name == "accuracy" else -np.eye(c)
        steps = _STEP * np.eye(c * c).reshape(-1, c, c)
        slope = (self.metric(cells + steps) - self.metric(cells - steps)) / (2 * _STEP)
        return np.where(np.isfinite(slope), slope, 0.0).reshape(c, c)

    def gains(self, predictions: npt.ArrayLike) -> Floats:
        r"""What each validation item adds to the metric if its prediction became class t, linearised.

        ``gains[j, t]`` = :math:`\langle G, w_j (e_t - e_{\hat y_j})^\top\rangle` with the gradient G at the shares of
        these predictions. The mean over items of the gains of a model's predictions is the change of the metric
        (exact for the accuracy), and their spread gives its standard error.
        """
        codes = self._predictions(predictions)
        per_class = self.weights @ self.gradient(self.shares(codes))
        return np.asarray(per_class - np.take_along_axis(per_class, codes[:, None], axis=1))

    def standard_error(self, predictions: npt.ArrayLike) -> float:
        """The standard error of the metric of one model, by the delta method, over validation items."""
        codes = self._predictions(predictions)
        each = (self.weights @ self.gradient(self.shares(codes)))[np.arange(self.n_items), codes]
        n = self.n_used
        spread = float((each**2).sum() - each.sum() ** 2 / n)
        return math.sqrt(max(spread, 0.0) / (n * max(n - 1, 1)))

    def changed_shares(self, base: Floats, before: Codes, columns: Codes, predictions: npt.NDArray[Any]) -> Floats:
        """Shares (n_models, n_classes, n_classes) of models that differ from one on a few items only.

        `base` has the shares of that one, and `before` its predictions for the items `columns`; `predictions`, shape
        (n_models, n_columns), are those of the other models.
        """
        weights = self.weights[columns] / self.n_used
        shares = np.repeat(base[None], len(predictions), axis=0)
        rest = np.zeros((len(predictions), self.n_classes))
        for t in range(1, self.n_classes):  # what leaves the other classes goes to the first
            moved = (predictions == t).astype(float) @ weights - (before == t).astype(float) @ weights
            shares[:, :, t] += moved
            rest += moved
        shares[:, :, 0] -= rest
        return shares

    def _predictions(self, predictions: npt.ArrayLike) -> npt.NDArray[Any]:
        codes = np.asarray(predictions)
        if codes.ndim < 1 or codes.shape[-1] != self.n_items:
            raise InvalidPredictions(
                f"predictions must be one for each of the {self.n_items} validation items, got shape {codes.shape}"
            )
        if not np.issubdtype(codes.dtype, np.integer):
            raise InvalidPredictions(f"predictions must be integer codes of classes, got {codes.dtype}")
        if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < self.n_classes:
            raise InvalidPredictions(
                f"predictions must be classes from 0 to {self.n_classes - 1}, got {int(codes.min())} to "
                f"{int(codes.max())}"
            )
        return codes

    def __repr__(self) -> str:
        return f"UnbiasedScorer({self.metric.name}, {self.n_used} items)"


_TASKS = 32  # runs of models for each worker, so that none waits long for the last


def true_class_probabilities(codes: npt.ArrayLike, matrices: npt.ArrayLike, prior: npt.ArrayLike) -> Floats:
    r"""P(truth = c | consolidated label) of each item (Dolatshah et al. 2018, eq. 21, for any number of classes).

    .. math:: P(y_i = c \mid y'_i) = \frac{R_i[c, y'_i]\, \pi_c}{\sum_b R_i[b, y'_i]\, \pi_b}

    Parameters
    ----------
    codes : integer array of shape (n_items,). The consolidated labels y'.
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(y' | truth), rows the truth; the identity for items known to be clean. One matrix is that of all items.
    prior : array of shape (n_classes,). The share of each class.

    Examples
    --------
    >>> true_class_probabilities([0, 1], [[0.6, 0.4], [0.2, 0.8]], [0.5, 0.5]).round(3).tolist()
    [[0.75, 0.25], [0.333, 0.667]]
    """
    labels, table = check_matrices(codes, matrices)
    shares = check_distribution(prior, name="prior", n=table.shape[-1])
    joint = np.take_along_axis(table, labels[:, None, None], axis=2)[:, :, 0] * shares
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, total, out=np.eye(table.shape[-1])[labels], where=total > 0))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Changes of one training label each, sorted by item.

    Attributes
    ----------
    item : integer array of shape (n_candidates,). The position of the training item, in ascending order.
    to : integer array of shape (n_candidates,). The class it would get.
    """

    item: Positions
    to: Positions

    def __len__(self) -> int:
        return len(self.item)

    def of(self, items: npt.ArrayLike) -> Positions:
        """The positions of the candidates of these items."""
        return np.flatnonzero(np.isin(self.item, np.asarray(items)))

    def select(self, rows: npt.ArrayLike) -> Candidates:
        """Some of the candidates, by position."""
        return Candidates(self.item[np.asarray(rows)], self.to[np.asarray(rows)])


def flip_candidates(
    codes: npt.ArrayLike, probabilities: npt.ArrayLike, *, items: npt.ArrayLike | None = None
) -> Candidates:
    """All (item, class) for which the truth may be a class other than the label.

    Left out, so that they count as no change: classes of probability 0, a class that no training label has (a
    classifier does not know it), and the change of a class's only label (the classifier would lose that class).

    Parameters
    ----------
    codes : integer array of shape (n_items,). The training labels.
    probabilities : array of shape (n_items, n_classes). As `true_class_probabilities` gives them.
    items : integer array, optional. The positions that may be cleaned; by default all.

    Examples
    --------
    >>> changes = flip_candidates([0, 1, 0, 1], [[0.9, 0.1], [0.3, 0.7], [1.0, 0.0], [0.5, 0.5]])
    >>> changes.item.tolist(), changes.to.tolist()
    ([0, 1, 3], [1, 0, 0])
    """
    chances = np.asarray(probabilities, dtype=float)
    labels = check_codes(codes, chances.shape[1])
    if len(chances) != len(labels):
        raise InvalidParameter(f"probabilities must have a row for each of {len(labels)} labels, got {len(chances)}")
    number = np.bincount(labels, minlength=chances.shape[1])
    possible = (chances > 0) & (number > 0)
    possible[np.arange(len(labels)), labels] = False
    possible[number[labels] < 2] = False
    if items is not None:
        allowed = np.zeros(len(labels), dtype=bool)
        allowed[np.asarray(items, dtype=np.int64)] = True
        possible[~allowed] = False
    item, to = np.nonzero(possible)
    return Candidates(item.astype(np.int64), to.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Retrained:
    """What models trained with one label changed are worth.

    Attributes
    ----------
    scores : array of shape (n_candidates,). The unbiased metric of each.
    base : float. That of the model with the labels as they are.
    predictions : integer array of shape (n_candidates, n_validation)
    base_predictions : integer array of shape (n_validation,)
    """

    scores: Floats
    base: float
    predictions: npt.NDArray[np.integer[Any]]
    base_predictions: Positions


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

    Models are trained through `joblib.Parallel`: joblib backends of dask or ray run the same code.

    Parameters
    ----------
    estimator : scikit-learn classifier. Cloned, never changed.
    X : array or sparse matrix of shape (n_train, n_features)
    y : integer array of shape (n_train,). Positions of the labels; models are fitted on ``scorer.classes[y]``.
    X_val : array or sparse matrix of shape (n_validation, n_features)
    scorer : UnbiasedScorer. Of the validation items.
    candidates : Candidates. Which label becomes which class, one for each model.
    model : fitted classifier, optional. Of the labels as they are; trained if not given.
    n_jobs : int, optional. As for joblib.
    warm_start : bool. Start each training at the base model, for linear models and networks that can.
    progress : callable, optional. Called with how many models are trained, and how many there are.
    """
    labels = np.asarray(y, dtype=np.int64)
    base = fitted(estimator, X, scorer.classes[labels]) if model is None else model
    before = predicted_codes(base, X_val, scorer.classes)
    how: dict[str, Any] = {"model": base, "n_jobs": n_jobs, "warm_start": warm_start, "progress": progress}
    predictions = retrained_predictions(estimator, X, labels, X_val, scorer.classes, candidates, **how)
    return Retrained(scorer.scores(predictions), float(scorer.scores(before)), predictions, before)


def retrained_predictions(
    estimator: Any,
    X: Any,
    y: Positions,
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
    predictions = np.empty((len(candidates), np.shape(X_val)[0]), dtype=kind)
    if not len(candidates):
        return predictions
    options = estimator.get_params(deep=False)  # the fit of an ensemble would only add to its trees
    can_go_on = "warm_start" in options and "n_estimators" not in options and "max_iter" in options
    start = model if warm_start and can_go_on else None
    parts = np.array_split(np.arange(len(candidates)), min(len(candidates), _TASKS * effective_n_jobs(n_jobs)))
    tasks = (
        delayed(_train)(estimator, X, y, X_val, classes, candidates.item[part], candidates.to[part], start)
        for part in parts
    )
    done = 0
    for part, codes in zip(parts, Parallel(n_jobs=n_jobs, return_as="generator")(tasks), strict=True):
        predictions[part] = codes
        done += len(part)
        if progress is not None:
            progress(done, len(candidates))
    return predictions


def _train(
    estimator: Any, X: Any, y: Codes, X_val: Any, classes: npt.NDArray[Any], item: Codes, to: Codes, start: Any
) -> npt.NDArray[np.integer[Any]]:
    """The work of one task: models for a few changes."""
    labels = np.array(y)  # memory shared between workers is read only
    predictions = np.empty((len(item), np.shape(X_val)[0]), dtype=np.min_scalar_type(len(classes) - 1))
    for row, (i, c) in enumerate(zip(item.tolist(), to.tolist(), strict=True)):
        labels[i] = c
        predictions[row] = predicted_codes(fitted(estimator, X, classes[labels], start), X_val, classes)
        labels[i] = y[i]
    return predictions


def fitted(estimator: Any, X: Any, labels: npt.NDArray[Any], start: Any = None) -> Any:
    """A clone of the estimator fitted on these labels, from the solution of `start` if given."""
    from sklearn.base import clone

    if start is None:
        return clone(estimator).fit(X, labels)
    same = len(np.unique(labels)) == len(start.classes_)
    return (deepcopy(start).set_params(warm_start=True) if same else clone(estimator)).fit(X, labels)


def predicted_codes(model: Any, X: Any, classes: npt.NDArray[Any]) -> Positions:
    """What a fitted classifier predicts, as codes of the classes."""
    names = np.asarray(classes)
    predicted = np.asarray(model.predict(X))
    order = np.argsort(names, kind="stable")
    return order[np.searchsorted(names, predicted, sorter=order)].astype(np.int64)
