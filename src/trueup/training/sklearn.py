"""scikit-learn classifiers that train on votes: one around any other, logistic regression and naive Bayes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, check_choice, check_integer, check_number, preview
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.base import with_gold
from trueup.training.copies import TrainingVotes, Unlabelled, aligned_columns, as_rows, gather, n_rows_of, take
from trueup.training.objectives import LogisticObjective, NoisyLikelihood, SoftTargets, Solution, WithVolume, minimise
from trueup.training.strategies import TRAINING_STRATEGIES, Task, Trained, matrices_given

Method = Literal["ml", "map", "mmse"]
_TINY = 1e-300
_LEAST = -1e9  # log-density of what cannot be: a sum of such must stay a number


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


class _NaiveBayes(VoteClassifier):
    r"""EM for :math:`\prod_i \sum_y \pi_y\, p(x_i \mid y) \prod_t p(z_{it} \mid y)`; the matrices are fixed."""

    method: Method
    tol: float
    max_iter: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on votes; `y` as for `NoisyLabelClassifier.fit`."""
        method = check_choice(self.method, get_args(Method), name="method")
        check_number(self.tol, name="tol", low=0.0, strict=True)
        check_integer(self.max_iter, name="max_iter", low=1)
        features, votes, items = self._read(X, y)
        self._prepare(features)
        log_votes = votes.log_likelihood(self.noise_)[items]
        beliefs = self.noise_.posterior(votes.labels)[items]
        self.loss_history_: list[float] = []
        moved = 0.0
        for n_iter in range(1, 2 if method == "mmse" else self.max_iter + 1):
            self.n_iter_ = n_iter
            with np.errstate(divide="ignore"):  # a class may have no item left
                self.class_log_prior_ = np.log(beliefs.mean(axis=0))
            log_prior = self._maximise(features, beliefs)
            if method == "mmse":  # the beliefs are those of the votes, once and for all
                break
            joint = np.maximum(self._joint(features), _LEAST) + log_votes
            total = special.logsumexp(joint, axis=1, keepdims=True)
            new = np.exp(joint - total)
            self.loss_history_.append(-float(total.sum()) - log_prior)
            moved, beliefs = float(np.abs(new - beliefs).max()), new
            if moved < self.tol:
                break
        self.posterior_ = beliefs
        if moved >= self.tol:
            warnings.warn(
                f"{type(self).__name__} did not settle in {self.n_iter_} iterations (a belief still moves by "
                f"{moved:.2g}); raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log p(x, class), up to a constant for each row; shape (n_rows, n_classes)."""
        check_is_fitted(self)
        return self._joint(self._checked(X))

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Check X and the parameters; what does not depend on the beliefs."""

    @abstractmethod
    def _maximise(self, X: Any, beliefs: Floats) -> float:
        """Learn p(x | y) from soft counts; returns the log-density of its prior."""


@dataclass(kw_only=True, eq=False, repr=False)
class NoisyGaussianNB(_NaiveBayes):
    """Gaussian naive Bayes trained on votes.

    Maximises the likelihood of features and votes together (Su 2024, eq. 32, generative) by EM with soft counts. Items
    without votes teach it too, with ``unlabelled="prior"``.

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximum likelihood; the same with `prior_strength`; or with p(y|z) as fixed soft labels, and `prior_strength`.
        Trained on a plain y, "ml" is scikit-learn's ``GaussianNB``.
    prior_strength : float. Each class is also given that many observations with the mean and variance of all items.
    noise, unlabelled, labels
        As for `NoisyLabelClassifier`.
    var_smoothing : float. Share of the largest variance of a feature that is added to all variances.
    tol : float. Largest change of a belief at which to stop.

    Attributes
    ----------
    theta_, var_ : arrays of shape (n_classes, n_features)
    class_log_prior_ : array of shape (n_classes,)
    posterior_ : array of shape (n_rows, n_classes)
        P(class | features, votes) of the rows trained on; for "mmse" P(class | votes).
    loss_history_ : list of float. The objective after each step; it never rises.
    """

    _takes_sparse: ClassVar[bool] = False
    method: Method = "map"
    prior_strength: float = 1.0
    noise: str | NoiseModel = "dawid-skene"
    unlabelled: Unlabelled = "drop"
    labels: Labels | None = None
    var_smoothing: float = 1e-9
    tol: float = 1e-4
    max_iter: int = 200

    def _prepare(self, X: Any) -> None:
        check_number(self.var_smoothing, name="var_smoothing", low=0.0)
        strength = check_number(self.prior_strength, name="prior_strength", low=0.0)
        self._strength = 0.0 if self.method == "ml" else strength
        self._mean, self._variance = X.mean(axis=0), X.var(axis=0)
        self.epsilon_ = self.var_smoothing * float(self._variance.max())

    def _maximise(self, X: Any, beliefs: Floats) -> float:
        k, weight = self._strength, beliefs.sum(axis=0)
        total = np.maximum(weight + k, _TINY)[:, None]
        self.theta_ = (beliefs.T @ X + k * self._mean) / total
        spread = np.stack([b @ (X - mean) ** 2 for b, mean in zip(beliefs.T, self.theta_, strict=True)])
        outside = k * (self._variance + (self.theta_ - self._mean) ** 2)
        self.var_ = (spread + outside) / total + self.epsilon_
        if k == 0:
            return 0.0
        return -0.5 * float((k * np.log(2 * np.pi * self.var_) + outside / self.var_).sum())

    def _joint(self, X: Any) -> Floats:
        columns = [
            prior - 0.5 * (np.log(2 * np.pi * var).sum() + ((X - mean) ** 2 / var).sum(axis=1))
            for prior, mean, var in zip(self.class_log_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.stack(columns, axis=1)


@dataclass(kw_only=True, eq=False, repr=False)
class NoisyMultinomialNB(_NaiveBayes):
    """Multinomial naive Bayes trained on votes, for counts such as those of words.

    Maximises the likelihood of features and votes together (Su 2024, eq. 32, generative) by EM with soft counts; X may
    be sparse.

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximum likelihood; the same with a Dirichlet prior of `alpha` counts a feature; or with p(y|z) as fixed soft
        labels, and `alpha`. Trained on a plain y, "map" and "mmse" are scikit-learn's ``MultinomialNB``.
    noise, unlabelled, labels
        As for `NoisyLabelClassifier`.
    tol : float. Largest change of a belief at which to stop.

    Attributes
    ----------
    feature_log_prob_ : array of shape (n_classes, n_features)
    class_log_prior_ : array of shape (n_classes,)
    classes_, noise_, posterior_, loss_history_
        As for `NoisyGaussianNB`.
    """

    method: Method = "map"
    alpha: float = 1.0
    noise: str | NoiseModel = "dawid-skene"
    unlabelled: Unlabelled = "drop"
    labels: Labels | None = None
    tol: float = 1e-4
    max_iter: int = 200

    def _prepare(self, X: Any) -> None:
        alpha = check_number(self.alpha, name="alpha", low=0.0)
        self._alpha = 0.0 if self.method == "ml" else alpha
        values = X.data if hasattr(X, "tocsr") else X
        if values.size and values.min() < 0:
            raise InvalidParameter(
                f"NoisyMultinomialNB needs counts, got Negative values in data passed to X, e.g. {values.min():g}; "
                "pass counts or frequencies"
            )

    def _maximise(self, X: Any, beliefs: Floats) -> float:
        counts = np.asarray(X.T @ beliefs).T + self._alpha
        shares = np.maximum(counts, _TINY) / np.maximum(counts.sum(axis=1, keepdims=True), _TINY)
        self.feature_log_prob_ = np.log(np.maximum(shares, 1e-100))
        return float(self._alpha * self.feature_log_prob_.sum())

    def _joint(self, X: Any) -> Floats:
        return np.asarray(X @ self.feature_log_prob_.T + self.class_log_prior_)

    def __sklearn_tags__(self) -> Any:
        """Features are counts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class NoisyLogisticRegression(VoteClassifier):
    r"""Logistic regression for two or more classes, trained on votes.

    Votes inform of the truth by the labelers' matrices :math:`\theta`, features by the coefficients :math:`\psi` [1]_:

    .. math:: p(z \mid x; \psi, \theta) = \prod_i \sum_y p(y \mid x_i; \psi) \prod_t p(z_{it} \mid y; \theta)

    .. [1] Su (2024), eqs. 32, 37 and Table 9.
    .. [2] V. C. Raykar et al., "Learning from crowds", Journal of Machine Learning Research 11 (2010).
    .. [3] S. Ibrahim, T. Nguyen, X. Fu, "Deep learning from crowdsourced labels: coupled cross-entropy minimization,
       identifiability, and regularization", ICLR 2023; here for all votes of an item and any shares of the classes.

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximise that likelihood, without a penalty; the same with ‖ψ‖² / 2C as the prior of the coefficients; or
        minimise the risk :math:`\sum_i \sum_y p(y \mid z_i) (-\log p(y \mid x_i))` with the same penalty. Trained on
        a plain y, or on gold, all are ordinary logistic regression; "map" and "mmse" are then scikit-learn's with the
        same C.
    C : float. Inverse strength of the penalty, as in scikit-learn. Intercepts are free.
    volume : float
        Strength, for each item, of a term that makes predictions sure and spread over the classes [3]_. Take it (0.3
        to 1) with `joint` where features separate the classes and labelers err together, or features are many; where
        features do not separate them it does harm. Not for "mmse".
    class_shares : {"equal", "noise"} or array of shape (n_classes,)
        The shares of the classes to which `volume` pulls: equal ones (as published), those of the noise model, which
        err as the votes do, or known ones in the order of ``labels.classes``.
    joint : bool
        Learn the matrices together with the coefficients [2]_, by EM: the classifier then teaches who can be trusted.
        For "ml" and "map".
    noise : str or NoiseModel. As for `trueup.noise.fit`; with `joint` where EM starts.
    unlabelled : {"drop", "prior", "error"}
        Items without votes are left out; stay ("mmse": with the prior as target; they say nothing in a likelihood); or
        are an error.
    labels : Labels, optional
        The votes of all items, for cross-validation: `fit` then takes the positions of its items as y.
    solver : {"lbfgs"}. Deprecated: there is one.
    tol : float
        Largest derivative, per item, at which to stop; with `joint` also the largest change of a belief, times 1000.
    max_iter : int. Of the solver, and of EM.
    warm_start : bool. Start from the coefficients of the last fit.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features)
    intercept_ : array of shape (1 or n_classes,)
    classes_ : array of shape (n_classes,)
    noise_ : NoiseModel. With `joint`, a `Confusion` with the learned matrices.
    posterior_ : array of shape (n_rows, n_classes)
        P(class | votes), and for "ml" and "map" P(class | features, votes), of the rows trained on.
    loss_ : float. The objective where the search ended.
    n_iter_ : int
    """

    method: Method = "map"
    C: float = 1.0
    joint: bool = False
    volume: float = 0.0
    class_shares: str | npt.ArrayLike = "equal"
    noise: str | NoiseModel = "dawid-skene"
    unlabelled: Unlabelled = "drop"
    labels: Labels | None = None
    fit_intercept: bool = True
    solver: str = "lbfgs"
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on votes; `y` as for `NoisyLabelClassifier.fit`."""
        method = check_choice(self.method, get_args(Method), name="method")
        if self.solver != "lbfgs":
            message = "`solver` has no effect any more and goes in 0.4; leave it out"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        check_number(self.C, name="C", low=0.0, strict=True)
        check_number(self.tol, name="tol", low=0.0, strict=True)
        check_integer(self.max_iter, name="max_iter", low=1)
        check_number(self.volume, name="volume", low=0.0)
        if self.volume and method == "mmse":
            raise InvalidParameter(
                f'volume is a term of a likelihood, got {self.volume} with method="mmse"; pass method="ml" or "map"'
            )
        if self.joint and method == "mmse":
            raise InvalidParameter(
                'joint=True maximises a likelihood, got method="mmse"; pass method="ml" or "map", or '
                'NoisyLabelClassifier(…, strategy="alternation")'
            )
        features, votes, items = self._read(X, y)
        self._shares = self._checked_shares(len(votes.classes))
        if self.joint and not votes.perfect:
            solution, beliefs = self._fit_jointly(features, votes, items)
        else:
            posterior = self.noise_.posterior(votes.labels)[items]
            loss = (
                SoftTargets(posterior)
                if method == "mmse"
                else NoisyLikelihood(votes.log_likelihood(self.noise_)[items])
            )
            objective = self._objective(features, loss, len(votes.classes))
            solution = minimise(objective, self._start(objective), tol=self.tol, max_iter=self.max_iter)
            beliefs = loss.beliefs(objective.scores(solution.theta)) if isinstance(loss, NoisyLikelihood) else posterior
        self.posterior_, self.loss_, self.n_iter_ = beliefs, solution.value, solution.n_iter
        objective = self._objective(features, SoftTargets(beliefs), len(votes.classes))
        self.coef_, self.intercept_ = (np.array(part) for part in objective.parts(solution.theta))
        if not solution.converged:
            warnings.warn(
                f"NoisyLogisticRegression did not settle in {solution.n_iter} iterations; raise max_iter or scale X",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _objective(self, X: Any, loss: SoftTargets | NoisyLikelihood, n_classes: int) -> LogisticObjective:
        penalty = 0.0 if self.method == "ml" else 1 / self.C
        whole = WithVolume(loss, self.volume, self._shares) if self.volume else loss
        return LogisticObjective(X, whole, n_classes, penalty, self.fit_intercept)

    def _checked_shares(self, n_classes: int) -> Floats:
        """The shares that `volume` pulls to."""
        if isinstance(self.class_shares, str):
            named = check_choice(self.class_shares, ["equal", "noise"], name="class_shares")
            floored = np.maximum(np.asarray(self.noise_.prior_, dtype=float), 1e-12)
            return np.full(n_classes, 1 / n_classes) if named == "equal" else floored / floored.sum()
        shares = np.asarray(self.class_shares, dtype=float)
        if shares.shape != (n_classes,) or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
            raise InvalidParameter(
                f"class_shares must be {n_classes} positive numbers that sum to 1, got {shares.tolist()}; pass one for "
                'each class in the order of labels.classes, or "equal"'
            )
        return shares

    def _start(self, objective: LogisticObjective) -> Floats:
        """The last coefficients if they are wanted; else none, and intercepts that give the prior."""
        shape = (objective.n_rows, objective.X.shape[1])
        if self.warm_start and getattr(self, "coef_", np.empty(0)).shape == shape:
            return objective.flat(self.coef_, self.intercept_)
        prior = np.log(np.maximum(self.noise_.prior_, 1e-12))
        return objective.flat(np.zeros(shape), (prior - (prior[0] if objective.n_rows == 1 else 0.0))[-shape[0] :])

    def _fit_jointly(self, X: Any, votes: TrainingVotes, items: Positions) -> tuple[Solution, Floats]:
        """EM: beliefs from features and votes; coefficients and matrices from the beliefs."""
        labels = votes.labels
        beliefs = self.noise_.posterior(labels)
        theta = self._start(self._objective(X, SoftTargets(beliefs[items]), labels.n_classes))
        for n_iter in range(1, self.max_iter + 1):
            objective = self._objective(X, SoftTargets(beliefs[items]), labels.n_classes)
            theta = minimise(objective, theta, tol=self.tol, max_iter=self.max_iter).theta
            counted = np.zeros_like(beliefs)
            counted[items] = beliefs[items]
            if n_iter == 1:
                # One vote an item makes its labeler look perfect, and EM would stay there; the classifier disagrees.
                counted[items] = (beliefs[items] + special.softmax(objective.scores(theta), axis=1)) / 2
                counted = with_gold(counted, labels)
            self.noise_ = matrices_given(counted, votes, prior=beliefs[items].mean(axis=0))
            loss = NoisyLikelihood(votes.log_likelihood(self.noise_)[items])
            new = beliefs.copy()
            new[items] = loss.beliefs(objective.scores(theta))
            new = with_gold(new, labels)
            moved, beliefs = float(np.abs(new - beliefs).max()), new
            if moved < 1000 * self.tol:
                break
        value = self._objective(X, loss, labels.n_classes).value_and_gradient(theta)[0]
        return Solution(theta, value, n_iter, moved < 1000 * self.tol), beliefs[items]

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, shape (n_rows,), or scores of the classes, (n_rows, n_classes)."""
        check_is_fitted(self)
        scores = np.asarray(self._checked(X) @ self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _joint(self, X: Any) -> Floats:
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return np.pad(scores, ((0, 0), (1, 0))) if scores.shape[1] == 1 else scores
