"""All models with one label changed, for estimators whose retraining has a closed form or a good expansion."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes, Floats
from trueup.cleaning.fast_base import FlipModels, LinearFlips, csr, dense, is_sparse, positions_of
from trueup.cleaning.fast_linear import logistic_flips, ridge_flips, squared_hinge_flips
from trueup.cleaning.flips import Candidates
from trueup.training.consolidated import check_codes
from trueup.training.copies import split_pipeline

# ------------------ Flip models of naive Bayes, exactly: counts and moments of two classes change.


class NaiveBayesFlips(LinearFlips):
    """Scores are linear in some features, and a change of a label moves the parameters of two classes."""

    exact = True

    def __init__(self, model: Any, X: Any, y: Codes, codes: Codes) -> None:
        self.model, self.y, self.columns_ = model, y, codes
        self.number = np.bincount(y, minlength=len(codes)).astype(float)
        self._prepare(X)
        self.features_ = self.features(X)
        every = np.arange(len(codes))
        self.theta = self._parameters(every, self.number, None, 0.0)

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Keep what parameters are made from."""

    @abstractmethod
    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        """Parameters (m, p) of classes, of which the items `rows` are taken away (sign −1) or added (1)."""

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""
        own, to = self.y[candidates.item], positions_of(self.columns_)[candidates.to]
        delta = np.zeros((len(candidates), *self.theta.shape))
        each = np.arange(len(candidates))
        delta[each, own] = self._parameters(own, self.number[own] - 1, candidates.item, -1.0) - self.theta[own]
        delta[each, to] = self._parameters(to, self.number[to] + 1, candidates.item, 1.0) - self.theta[to]
        return delta

    def _log_prior(self, of: Codes, number: Floats, given: Any, *, fit: bool = True) -> Floats:
        """As scikit-learn: given, or the shares of the labels, or uniform."""
        if given is not None:
            return np.asarray(np.log(np.asarray(given, dtype=float))[of])
        return np.log(number / len(self.y)) if fit else np.full(len(of), -np.log(len(self.columns_)))


class GaussianFlips(NaiveBayesFlips):
    """Features x², x and 1 around the mean of all items, so that squares do not cancel."""

    def _prepare(self, X: Any) -> None:
        rows = np.asarray(X, dtype=float)
        self._center = rows.mean(axis=0)
        self._rows = rows - self._center
        member = np.eye(len(self.columns_))[self.y]
        self._mean = member.T @ self._rows / self.number[:, None]
        self._spread = np.stack([self._rows[self.y == c].var(axis=0) for c in range(len(self.columns_))])

    def features(self, X: Any) -> Floats:
        """Squares, the values and 1."""
        rows = np.asarray(X, dtype=float) - self._center
        return np.column_stack([rows**2, rows, np.ones(len(rows))])

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        mean, spread = self._mean[of], self._spread[of]
        if rows is not None:
            away = self._rows[rows] - mean
            before, after = self.number[of][:, None], number[:, None]
            mean = mean + sign * away / after
            spread = np.maximum(before / after * (spread + sign * away**2 / after), 0.0)
        spread = spread + self.model.epsilon_
        log_prior = self._log_prior(of, number, self.model.priors)
        constant = log_prior - 0.5 * (np.log(2 * np.pi * spread) + mean**2 / spread).sum(axis=1)
        return np.column_stack([-0.5 / spread, mean / spread, constant])


class DiscreteFlips(NaiveBayesFlips):
    """Shared by the two models of counts."""

    def _prepare(self, X: Any) -> None:
        self._rows = self._counts(X)
        member = sparse.csr_array((np.ones(len(self.y)), (self.y, np.arange(len(self.y)))))
        self._sums = dense(member @ self._rows)

    def _counts(self, X: Any) -> Any:
        return csr(X) if is_sparse(X) else np.asarray(X, dtype=float)

    def features(self, X: Any) -> Any:
        """The counts and 1."""
        rows = self._counts(X)
        one: Any = np.ones((rows.shape[0], 1))
        return sparse.hstack([rows, one], format="csr") if is_sparse(rows) else np.hstack([rows, one])

    def _changed_sums(self, of: Codes, rows: Codes | None, sign: float) -> Floats:
        sums = self._sums[of]
        # Sums of counts taken away may be a rounding below zero.
        return sums if rows is None else np.maximum(sums + sign * dense(self._rows[rows]), 0.0)

    def _prior(self, of: Codes, number: Floats) -> Floats:
        return self._log_prior(of, number, self.model.class_prior, fit=self.model.fit_prior)


class MultinomialFlips(DiscreteFlips):
    """log θ_cw = log(N_cw + α) − log Σ_w (N_cw + α)."""

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        smooth = self._changed_sums(of, rows, sign) + _alpha(self.model)
        logs = np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True))
        return np.column_stack([logs, self._prior(of, number)])


class BernoulliFlips(DiscreteFlips):
    """log p_cw = log(N_cw + α) − log(n_c + 2α), and the log of the rest for absent words."""

    def _counts(self, X: Any) -> Any:
        edge = self.model.binarize
        if edge is None:
            return super()._counts(X)
        if is_sparse(X):
            rows = csr(X)
            rows.data = (rows.data > edge).astype(float)
            rows.eliminate_zeros()
            return rows
        return (np.asarray(X) > edge).astype(float)

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        alpha = _alpha(self.model)
        sums = self._changed_sums(of, rows, sign)
        total = (number + 2 * alpha)[:, None]
        present = np.log(sums + alpha) - np.log(total)
        absent = np.log(np.maximum(total - alpha - sums, 1e-300)) - np.log(total)
        return np.column_stack([present - absent, self._prior(of, number) + absent.sum(axis=1)])


def _alpha(model: Any) -> float:
    """The smoothing; scikit-learn raises what is below 1e-10 unless told otherwise."""
    alpha = float(model.alpha)
    return alpha if getattr(model, "force_alpha", True) is True else max(alpha, 1e-10)


def naive_bayes_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of fitted naive Bayes; None for sparse Gaussians, and for counts without smoothing."""
    kind = {"GaussianNB": GaussianFlips, "MultinomialNB": MultinomialFlips}.get(type(model).__name__, BernoulliFlips)
    if is_sparse(X) if kind is GaussianFlips else not np.isscalar(model.alpha) or _alpha(model) <= 0:
        return None
    return kind(model, X, y, codes)


_FAMILIES = {
    "LogisticRegression": logistic_flips,
    "LinearSVC": squared_hinge_flips,
    "RidgeClassifier": ridge_flips,
    **dict.fromkeys(("GaussianNB", "MultinomialNB", "BernoulliNB"), naive_bayes_flips),
}
# Transformers that do not look at labels, so that a change of a label leaves the features as they are.
_BLIND = frozenset(
    """
    StandardScaler MinMaxScaler MaxAbsScaler RobustScaler Normalizer QuantileTransformer PowerTransformer
    PolynomialFeatures SplineTransformer OneHotEncoder OrdinalEncoder SimpleImputer PCA TruncatedSVD NMF
    CountVectorizer TfidfVectorizer TfidfTransformer HashingVectorizer VarianceThreshold Nystroem RBFSampler
    """.split()  # noqa: SIM905
)


def flip_models(model: Any, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> FlipModels | None:
    r"""All models retrained with one label changed, without training them.

    For logistic regression and the linear SVM the Hessian H of the fitted objective is factorised once. A change of
    label i changes the gradient by :math:`\phi_i\gamma_i`, so a Newton step moves the parameters by

    .. math:: \delta_i = -\frac{\gamma_i}{1 + \eta_i\, \phi_i^\top H^{-1} \phi_i} H^{-1} \phi_i

    and for logistic regression a second term follows from the third derivatives (two classes) or the exact gradient.
    Ridge and naive Bayes have closed forms. The model's own solution is first made exact, because solvers stop early.

    Parameters
    ----------
    model : fitted scikit-learn classifier
        ``LogisticRegression`` (l2), ``LinearSVC`` (squared hinge, l2), ``RidgeClassifier``, ``GaussianNB``,
        ``MultinomialNB``, ``BernoulliNB``, fitted without sample weights; or a pipeline that ends in one, behind
        transformers that do not look at labels (scalers, vectorizers, PCA, …).
    X : array or sparse matrix of shape (n, n_features). What it was fitted on.
    y : integer array of shape (n,). The labels, as codes.
    classes : array of shape (n_classes,), optional
        What the codes stand for; the model was fitted on ``classes[y]``. By default the codes themselves.

    References
    ----------
    The step is that of K. Rad, A. Maleki, "A scalable estimate of the out-of-sample prediction error via approximate
    leave-one-out cross-validation", JRSS B 82 (2020), for a changed instead of a missing label.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from trueup.cleaning.flips import Candidates
    >>> X = np.arange(12.0)[:, None]
    >>> y = np.array([0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1])
    >>> models = flip_models(LogisticRegression().fit(X, y), X, y)
    >>> models.base_predictions([[5.4], [5.6]]).tolist()
    [0, 1]
    >>> changes = Candidates(np.array([4]), np.array([0]))
    >>> [predicted.tolist() for _, predicted in models.decision_blocks([[5.4], [5.6]], changes)]
    [[[0, 0]]]
    """
    head, last = split_pipeline(model)
    if head is not None:
        return _behind(head, last, X, y, classes)
    model = last
    family = _FAMILIES.get(type(model).__name__)
    if family is None or not type(model).__module__.startswith("sklearn."):
        return None
    known = np.asarray(model.classes_)
    names = np.arange(int(np.max(y)) + 1) if classes is None else np.asarray(classes)
    labels = check_codes(y, len(names))
    place = {name: code for code, name in enumerate(names.tolist())}
    codes = np.array([place.get(name, -1) for name in known.tolist()], dtype=np.int64)
    position = np.full(len(names), -1, dtype=np.int64)
    position[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
    if (codes < 0).any() or set(np.unique(labels).tolist()) != set(codes.tolist()):
        return None  # fitted on other labels
    return family(model, X, position[labels], codes)


class _Behind(FlipModels):
    """Flip models of the last step of a pipeline."""

    def __init__(self, models: FlipModels, transformers: Any) -> None:
        self._models, self._transformers = models, transformers
        self.exact = models.exact

    def base_predictions(self, X_val: Any) -> Codes:
        """Of the transformed items."""
        return self._models.base_predictions(self._transformers.transform(X_val))

    def changed_blocks(self, X_val: Any, candidates: Candidates, **options: Any) -> Any:
        """Of the transformed items."""
        return self._models.changed_blocks(self._transformers.transform(X_val), candidates, **options)


def _behind(head: Any, last: Any, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None) -> FlipModels | None:
    transformers = [step for _, step in head.steps if step is not None and not isinstance(step, str)]
    if not all(type(step).__name__ in _BLIND and type(step).__module__.startswith("sklearn.") for step in transformers):
        return None
    models = flip_models(last, head.transform(X), y, classes)
    return None if models is None else _Behind(models, head)


_MOST_FEATURES = 64  # features of the surrogate; it only ranks, and its price grows with their cube


def surrogate_problem(X: Any, y: Codes, X_val: Any, classes: npt.NDArray[Any]) -> tuple[FlipModels | None, Any]:
    """Logistic regression on standardised features, their first principal components if there are many."""
    from sklearn.linear_model import LogisticRegression

    try:
        train, there = numeric_features(X), numeric_features(X_val)
    except (TypeError, ValueError):
        return None, X_val
    train, there = few_features(train, there)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solution is made exact afterwards
        model = LogisticRegression(max_iter=200).fit(train, classes[y])
    return flip_models(model, train, y, classes), there


def numeric_features(X: Any) -> Any:
    """The features as an array or sparse rows of floats; ValueError or TypeError if they are no numbers."""
    if is_sparse(X):
        return csr(X)
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError("features that are no numbers")
    return rows


def few_features(train: Any, there: Any) -> tuple[Any, Any]:
    """Standardised features, at most `_MOST_FEATURES`."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not is_sparse(train)).fit(train)
    train, there = scaler.transform(train), scaler.transform(there)
    if train.shape[1] > _MOST_FEATURES:
        n = min(_MOST_FEATURES, train.shape[0] - 1)
        reduce = TruncatedSVD(n, random_state=0).fit(train)
        rotated = StandardScaler().fit(reduce.transform(train))
        return rotated.transform(reduce.transform(train)), rotated.transform(reduce.transform(there))
    return train, there
