"""The unbiased metric of many models at once, on validation items whose labels are noisy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import Metric, get_metric
from trueup.training.consolidated import unbiased_weights

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

    References
    ----------
    .. [1] M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
       Classification", PVLDB 12(4) (2018), Sections 4.1 and 5.3.

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
        cells = np.asarray(shares, dtype=float)
        c = self.n_classes
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

        `base` has the shares of that one and `before` its predictions for the items `columns`; `predictions`, shape
        (n_models, n_columns), are those of the others there.
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
