"""scikit-learn classifiers that train on votes: what they share, and the one around any other classifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, check_integer, check_number, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.training.copies import TrainingVotes, Unlabelled, aligned_columns, as_rows, gather, n_rows_of, take
from trueup.training.strategies import TRAINING_STRATEGIES, Task, Trained


class TrainedOnVotes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all classifiers here share: a score against true classes, and clones that share the votes."""

    labels: Labels | None
    noise: str | NoiseModel
    unlabelled: str
    classes_: npt.NDArray[Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy against true classes."""
        check_is_fitted(self)
        known = self.classes_.tolist()
        strange = [value for value in np.unique(np.asarray(y)).tolist() if value not in known]
        if self.labels is not None and strange:  # positions of items, which no prediction equals
            raise InvalidParameter(
                f"score needs true classes, {preview(self.classes_)}, got {preview(strange)} (positions of items?); "
                "pass scoring=trueup.scorer(metric, labels) to the search"
            )
        return float(super().score(X, y, sample_weight))

    def __sklearn_clone__(self) -> Self:
        """A clone; votes are not changed by anyone, so clones share them instead of copying them for each fold."""
        parameters = self.get_params(deep=False)
        shared = {"labels": parameters.pop("labels")}
        return type(self)(**{name: clone(value, safe=False) for name, value in parameters.items()}, **shared)


class VoteClassifier(TrainedOnVotes, ABC):
    """Base: reads votes, predicts from `_joint`, the log of p(y | x) or p(x, y) up to a constant for each row."""

    _takes_sparse: ClassVar[bool] = True

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        """X as a float array or CSR matrix; of the features it was trained on, unless these are learned now."""
        sparse = "csr" if self._takes_sparse else False
        options: dict[str, Any] = {"accept_sparse": sparse, "dtype": np.float64, "reset": reset}
        try:
            from sklearn.utils.validation import validate_data
        except ImportError:  # scikit-learn before 1.6
            return self._validate_data(X, **options)
        return validate_data(self, X, **options)

    def _read(self, X: Any, y: Any) -> tuple[Any, TrainingVotes, Positions]:
        """X of the rows to train on, the votes, and the item of each of those rows; sets ``noise_``."""
        features = self._checked(X, reset=True)
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

    def __sklearn_tags__(self) -> Any:
        """Whether sparse features are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def _gives(method: str) -> Any:
    """Whether the classifier inside has a method."""

    def check(self: Any) -> bool:
        if hasattr(self, "estimator_"):
            return hasattr(self.estimator_, method)
        if self.strategy == "voting":  # gives probabilities, whatever the models of the labelers give
            return method == "predict_proba"
        return hasattr(self.estimator, method)

    return check


@dataclass(eq=False, repr=False)
class NoisyLabelClassifier(MetaEstimatorMixin, TrainedOnVotes):  # type: ignore[misc]
    r"""Train any scikit-learn classifier on noisy votes, by P(class | votes) of a noise model.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned, never changed. In a pipeline the steps before the last see each item once.
    strategy : str or callable. One of these, or a function from a `Task` to what is `Trained`:

        - "mmse": the risk :math:`\sum_i \sum_y p(y \mid z_i) L(f(x_i), y)` (Su 2024, eqs. 37 and 40), by a copy of
          each item for each class it may have, weighted with p(y|z). Needs an estimator with `sample_weight`.
        - "replication": the same with whole numbers of copies, for estimators without `sample_weight`. Nearest
          neighbours count copies, so their `n_neighbors` is multiplied by the copies of an item.
        - "label-estimation": the most probable class of each item.
        - "majority": the class with most votes; of tied ones the one with more votes on all items.
        - "voting": a model for each labeler; their predictions are read by the labelers' matrices and averaged with
          the information their votes hold.
        - "unbiased": the loss of Natarajan et al. (NIPS 2013), whose mean over the noise is the loss under the truth.
          ``LogisticRegression`` (l2 or no penalty, alone or last in a pipeline) is fitted exactly. Any other estimator
          of two classes gets the label-dependent costs of the same paper, which lead to the same decisions, not the
          same probabilities. More classes need LogisticRegression.
        - "alternation": as "mmse", then take the model's predictions on items it was not trained on for the votes of
          one more labeler, learn all labelers' matrices again, and train again (Khetan et al., ICLR 2018, take the
          predictions for the truth). Helps where items have few votes. Matrices are learned again where the noise
          model has any (not "glad").
    noise : str or NoiseModel
        As for `trueup.noise.fit`; fitted to the votes of the training items. Known matrices:
        ``trueup.noise.Confusion``. A plain y is taken for the truth, and this is not looked at.
    unlabelled : {"drop", "prior", "error"}
        Items without votes are left out, trained on with the prior of the classes, or an error.
    labels : Labels, optional
        The votes of all items, for cross-validation: `fit` then takes the positions of its items as y. Clones share
        them.
    min_weight : float
        Weights below it are left out; the other copies of the item take over their mass. 0 is the exact risk.
    max_copies : int, optional. The most copies of an item with "mmse"; by default one for each class.
    n_copies : int. Of each item with "replication".
    n_rounds, n_folds : int. Of "alternation".
    random_state : int, Generator or None
        For matrices of consolidated labels that must be drawn ("unbiased" with very many votes on an item).

    Attributes
    ----------
    estimator_ : fitted classifier; `LabelerModels` for "voting"
    noise_ : NoiseModel
    classes_ : array of shape (n_classes,). In the order of ``labels.classes``.
    posterior_ : array of shape (n_rows, n_classes). P(class | votes) of each row of X, by ``noise_``.
    """

    estimator: Any
    _: KW_ONLY
    strategy: str | Callable[[Task], Trained] = "mmse"
    noise: str | NoiseModel = "dawid-skene"
    unlabelled: Unlabelled = "drop"
    labels: Labels | None = None
    min_weight: float = 1e-4
    max_copies: int | None = None
    n_copies: int = 10
    n_rounds: int = 2
    n_folds: int = 5
    random_state: RandomState = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on votes.

        Parameters
        ----------
        y : Labels, or array of shape (n_rows,)
            Votes on the rows of X, in the order of ``labels.items``; or, if the classifier was made with `labels`,
            positions in ``labels.items``; or else true classes.
        """
        train = self.strategy if callable(self.strategy) else TRAINING_STRATEGIES[self.strategy]
        check_number(self.min_weight, name="min_weight", low=0.0, high=0.5)
        for name in ("n_copies", "n_rounds"):
            check_integer(getattr(self, name), name=name, low=1)
        check_integer(self.n_folds, name="n_folds", low=2)
        if self.max_copies is not None:
            check_integer(self.max_copies, name="max_copies", low=1)
        X = as_rows(X)
        votes = gather(y, self.labels, n_rows_of(X))
        rows = votes.used(self.unlabelled)
        noise = votes.noise("majority" if train is TRAINING_STRATEGIES["majority"] else self.noise)
        posterior = noise.posterior(votes.labels)
        names = ("estimator", "min_weight", "max_copies", "n_copies", "n_rounds", "n_folds", "random_state")
        options = {name: getattr(self, name) for name in names}
        data = {"X": take(X, rows), "rows": rows, "votes": votes, "posterior": posterior[votes.rows[rows]]}
        trained = train(Task(noise=noise, **data, **options))
        self.estimator_ = trained.estimator
        self.noise_ = noise if trained.noise is None else trained.noise
        self.posterior_ = self.noise_.posterior(votes.labels)[votes.rows]
        self.classes_ = votes.classes
        fitted = [self.estimator_, *getattr(self.estimator_, "models", ())]
        for name in ("n_features_in_", "feature_names_in_"):
            values = [getattr(model, name) for model in fitted if hasattr(model, name)]
            if values:
                setattr(self, name, values[0])
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    @available_if(_gives("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """P(class | x), shape (n_rows, n_classes), columns as in ``classes_``."""
        check_is_fitted(self, "estimator_")
        return aligned_columns(self.estimator_.predict_proba(X), self.estimator_.classes_, self.classes_)

    @available_if(_gives("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Scores of the estimator; for two classes those of the second in ``classes_``."""
        check_is_fitted(self, "estimator_")
        scores = np.asarray(self.estimator_.decision_function(X), dtype=float)
        if scores.ndim == 1 and len(self.classes_) == 2:
            return scores if self.estimator_.classes_[1] == self.classes_[1] else -scores
        if scores.ndim == 1:  # a class was never assigned, and the estimator knows two of them
            scores = np.stack([-scores, scores], axis=1)
        if scores.shape[1] != len(self.estimator_.classes_):  # one-against-one scores belong to pairs of classes
            return scores
        return aligned_columns(scores, self.estimator_.classes_, self.classes_, fill=-np.inf)

    def __sklearn_tags__(self) -> Any:
        """What the classifier inside can take."""
        from sklearn.utils import get_tags

        tags, inside = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inside.input_tags.sparse
        tags.input_tags.allow_nan = inside.input_tags.allow_nan
        tags.classifier_tags.poor_score = bool(inside.classifier_tags and inside.classifier_tags.poor_score)
        return tags
