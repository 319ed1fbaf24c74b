"""Confusion matrices that are known beforehand."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_distribution
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise.base import TableModel, normalise


class Confusion(TableModel):
    """Known confusion matrices and a known prior.

    The votes of an item are independent given its class, and labeler t answers a to class y with probability
    ``matrices[t, y, a]``.

    Parameters
    ----------
    matrices : array of shape (n_labelers, n_classes, n_answers), or mapping from labeler to matrix
        Rows are the truth and sum to one. An array follows the order of ``labels.labelers``; a single matrix
        (n_classes, n_answers) holds for all labelers.
    prior : array of shape (n_classes,), optional. P(class); uniform by default.
    """

    alias = "confusion"
    engines = ("scipy",)

    def __init__(self, matrices: npt.ArrayLike | Mapping[Any, Any], *, prior: npt.ArrayLike | None = None) -> None:
        self.matrices = matrices
        self.prior = prior
        names: list[Hashable] | None = list(matrices) if isinstance(matrices, Mapping) else None
        try:
            array = np.array(list(matrices.values()) if isinstance(matrices, Mapping) else matrices, dtype=float)
        except (ValueError, TypeError):
            raise InvalidParameter(
                "matrices must be numbers of one shape (n_labelers, n_classes, n_answers), got matrices of different "
                "shapes or no numbers; rows are the truth"
            ) from None
        if array.ndim not in (2, 3) or array.shape[-1] < array.shape[-2] or array.shape[-2] < 2:
            raise InvalidParameter(
                f"matrices must have shape (n_labelers, n_classes, n_answers), got {array.shape}; rows are the truth"
            )
        self.confusion_: Floats = check_distribution(array, name="each row of the confusion matrices")
        self._names = names
        n_classes = array.shape[-2]
        uniform = np.full(n_classes, 1 / n_classes)
        self.prior_ = uniform if prior is None else check_distribution(prior, name="prior", n=n_classes, positive=True)
        self.pooled_ = normalise(self.confusion_.mean(axis=0)) if array.ndim == 3 else self.confusion_
        self.n_iter_, self.converged_, self.loss_history_ = 0, True, []

    @property
    def is_known(self) -> bool:
        """Always: the matrices were given."""
        return True

    def fit(self, labels: Labels) -> Self:
        """Nothing to learn; checks that the matrices fit the labels."""
        self._check(labels)
        return self

    def confusion_for(self, labels: Labels) -> Floats:
        if self.confusion_.ndim == 2:
            return np.broadcast_to(self.confusion_, (labels.n_labelers, *self.confusion_.shape))
        if self._names is not None:
            by_name = dict(zip(self._names, self.confusion_, strict=True))
            return np.array([by_name.get(name, self.pooled_) for name in labels.labelers.tolist()])
        return self.confusion_

    def _check(self, labels: Labels) -> None:
        n_classes, n_answers = self.confusion_.shape[-2:]
        if (n_classes, n_answers) != (labels.n_classes, labels.n_answers):
            raise InvalidLabels(
                f"matrices are {n_classes} classes × {n_answers} answers but the labels have {labels.n_classes} × "
                f"{labels.n_answers}; pass `classes=…` when reading the labels, or other matrices"
            )
        if self.confusion_.ndim == 3 and self._names is None and len(self.confusion_) != labels.n_labelers:
            raise InvalidLabels(
                f"there are {len(self.confusion_)} matrices but {labels.n_labelers} labelers; pass one for each in the "
                "order of labels.labelers, or a mapping from labeler to matrix"
            )
        self._remember(labels)
