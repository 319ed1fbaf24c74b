"""What the classifiers share that are trained on votes without another classifier inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from trueup._base.types import Floats, Positions
from trueup._base.validation import preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.training._votes import TrainingVotes, gather, take

__all__ = ["VoteClassifier", "check_truth", "checked", "gold_likelihood"]


def checked(estimator: VoteClassifier, X: Any, *, reset: bool) -> Any:
    """X as a float array or CSR matrix with the features the estimator knows."""
    sparse = "csr" if estimator._takes_sparse else False
    options: dict[str, Any] = {"accept_sparse": sparse, "dtype": np.float64, "reset": reset}
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(X, **options)
    return validate_data(estimator, X, **options)


class VoteClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base: reads votes, predicts from `_joint`, the log of p(y | x) or p(x, y) up to a constant for each row."""

    labels: Labels | None
    noise: str | NoiseModel
    unlabelled: str
    classes_: npt.NDArray[Any]
    _takes_sparse: ClassVar[bool] = True

    def _checked(self, X: Any) -> Any:
        """X to predict."""
        return checked(self, X, reset=False)

    def _read(self, X: Any, y: Any) -> tuple[Any, TrainingVotes, Positions]:
        """X of the rows to train on, the votes, and the item of each of those rows; sets ``noise_``."""
        features = checked(self, X, reset=True)
        votes = gather(y, self.labels, features.shape[0])
        rows = votes.used(self.unlabelled)
        self.noise_ = votes.noise(self.noise)
        self.classes_ = votes.classes
        return take(features, rows), votes, votes.rows[rows]

    @abstractmethod
    def _joint(self, X: Any) -> Floats:
        """Log p(y | x) or log p(x, y) up to a constant for each row, shape (n_rows, n_classes)."""

    def predict_log_proba(self, X: Any) -> Floats:
        """Log P(class | x), shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return np.asarray(special.log_softmax(self._joint(self._checked(X)), axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x), shape (n_rows, n_classes), columns as in ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self._joint(self._checked(X)).argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy against true classes."""
        check_truth(y, self.labels, self.classes_)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Whether sparse features are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def __sklearn_clone__(self) -> Self:
        """A clone; votes are not changed by anyone, so clones share them instead of copying them for each fold."""
        parameters = self.get_params(deep=False)
        shared = {"labels": parameters.pop("labels")}
        return type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()}, **shared)


def gold_likelihood(noise: NoiseModel, votes: TrainingVotes) -> Floats:
    """Log p(votes | class) of each item, shape (n_items, n_classes); only the truth is possible where it is known."""
    table = np.array(noise.log_likelihood(votes.labels), dtype=float)
    truth = votes.labels.answer_counts.argmax(axis=1) if votes.perfect else votes.labels.gold_codes
    known = np.flatnonzero(truth >= 0)
    table[known] = -np.inf
    table[known, truth[known]] = 0.0
    return table


def check_truth(y: Any, labels: Labels | None, classes: npt.NDArray[Any]) -> None:
    """Raise if a score is asked for positions of items, which no prediction equals."""
    if labels is None:
        return
    strange = [value for value in np.unique(np.asarray(y)).tolist() if value not in classes.tolist()]
    if strange:
        raise InvalidParameter(
            f"score needs true classes, {preview(classes)}, got {preview(strange)} (positions of items?); "
            "pass scoring=trueup.scorer(metric, labels) to the search"
        )
