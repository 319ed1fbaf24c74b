"""Naive Bayes trained on votes: the generative counterpart of `NoisyLogisticRegression`."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self, get_args

import numpy as np
from scipy.special import logsumexp

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise import NoiseModel
from trueup.training.logistic import Method
from trueup.training.sklearn import VoteClassifier
from trueup.training.votes import Unlabelled

_TINY = 1e-300
_LEAST = -1e9  # log-density of what cannot be: a sum of such must stay a number


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
        said = votes.log_likelihood(self.noise_)[items]
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
            joint = np.maximum(self._joint(features), _LEAST) + said
            total = logsumexp(joint, axis=1, keepdims=True)
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
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return self._joint(self._checked(X))

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Check X and the parameters; what does not depend on the beliefs."""

    @abstractmethod
    def _maximise(self, X: Any, beliefs: Floats) -> float:
        """Learn p(x | y) from soft counts; returns the log-density of its prior."""


class NoisyGaussianNB(_NaiveBayes):
    r"""Gaussian naive Bayes trained on votes.

    Maximises the likelihood of features and votes together (Su 2024, eq. 32, generative),

    .. math:: \prod_i \sum_y \pi_y \prod_j \mathcal N(x_{ij}; \mu_{yj}, \sigma^2_{yj}) \prod_t p(z_{it} \mid y)

    by EM with soft counts. Items without votes teach it too, with ``unlabelled="prior"``.

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximum likelihood; the same with `prior_strength`; or with p(y|z) as fixed soft labels, and `prior_strength`.
        Trained on a plain y, "ml" is scikit-learn's ``GaussianNB``.
    prior_strength : float
        Each class is also given that many observations with the mean and variance of all items.
    noise, unlabelled, labels
        As for `NoisyLabelClassifier`.
    var_smoothing : float
        Share of the largest variance of a feature that is added to all variances.
    tol : float
        Largest change of a belief at which to stop.
    max_iter : int

    Attributes
    ----------
    theta_, var_ : arrays of shape (n_classes, n_features)
    class_log_prior_ : array of shape (n_classes,)
    classes_, noise_
    posterior_ : array of shape (n_rows, n_classes)
        P(class | features, votes) of the rows trained on; for "mmse" P(class | votes).
    loss_history_ : list of float
        The objective after each step; it never rises.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.training import NoisyGaussianNB
    >>> sim = tu.simulate.tars(n_items=600, n_labelers=3, noise_rates=0.3, means=[[0, 0], [3, 0]], random_state=0)
    >>> model = NoisyGaussianNB().fit(sim.features, sim.labels)
    >>> model.theta_.shape, bool(model.score(sim.features, sim.truth) > 0.9)
    ((2, 2), True)
    """

    _takes_sparse = False

    def __init__(
        self,
        *,
        method: Method = "map",
        prior_strength: float = 1.0,
        noise: str | NoiseModel = "dawid-skene",
        unlabelled: Unlabelled = "drop",
        labels: Labels | None = None,
        var_smoothing: float = 1e-9,
        tol: float = 1e-4,
        max_iter: int = 200,
    ) -> None:
        self.method = method
        self.prior_strength = prior_strength
        self.noise = noise
        self.unlabelled = unlabelled
        self.labels = labels
        self.var_smoothing = var_smoothing
        self.tol = tol
        self.max_iter = max_iter

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


class NoisyMultinomialNB(_NaiveBayes):
    r"""Multinomial naive Bayes trained on votes, for counts such as those of words.

    Maximises :math:`\prod_i \sum_y \pi_y \prod_j \varphi_{yj}^{x_{ij}} \prod_t p(z_{it} \mid y)` (Su 2024, eq. 32,
    generative) by EM with soft counts; X may be sparse.

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximum likelihood; the same with a Dirichlet prior of `alpha` counts a feature; or with p(y|z) as fixed soft
        labels, and `alpha`. Trained on a plain y, "map" and "mmse" are scikit-learn's ``MultinomialNB``.
    alpha : float
    noise, unlabelled, labels
        As for `NoisyLabelClassifier`.
    tol : float
        Largest change of a belief at which to stop.
    max_iter : int

    Attributes
    ----------
    feature_log_prob_ : array of shape (n_classes, n_features)
    class_log_prior_ : array of shape (n_classes,)
    classes_, noise_, posterior_, loss_history_
        As for `NoisyGaussianNB`.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.training import NoisyMultinomialNB
    >>> X = np.array([[3, 0], [2, 1], [0, 3], [1, 2]])
    >>> labels = tu.Labels.from_matrix([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 0]])
    >>> noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    >>> NoisyMultinomialNB(noise=noise).fit(X, labels).predict(X).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        method: Method = "map",
        alpha: float = 1.0,
        noise: str | NoiseModel = "dawid-skene",
        unlabelled: Unlabelled = "drop",
        labels: Labels | None = None,
        tol: float = 1e-4,
        max_iter: int = 200,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.noise = noise
        self.unlabelled = unlabelled
        self.labels = labels
        self.tol = tol
        self.max_iter = max_iter

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
