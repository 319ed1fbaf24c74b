"""All models with one label changed, for estimators whose retraining has a closed form or a good expansion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes
from trueup.cleaning.fast_base import FlipModels, csr, is_sparse
from trueup.cleaning.fast_linear import logistic_flips, ridge_flips, squared_hinge_flips
from trueup.cleaning.fast_naive_bayes import bernoulli_flips, gaussian_flips, multinomial_flips
from trueup.cleaning.flips import Candidates
from trueup.training.consolidated import check_codes
from trueup.training.copies import split_pipeline

_FAMILIES = {
    "LogisticRegression": logistic_flips,
    "LinearSVC": squared_hinge_flips,
    "RidgeClassifier": ridge_flips,
    "GaussianNB": gaussian_flips,
    "MultinomialNB": multinomial_flips,
    "BernoulliNB": bernoulli_flips,
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
    X : array or sparse matrix of shape (n, n_features)
        What it was fitted on.
    y : integer array of shape (n,)
        The labels, as codes.
    classes : array of shape (n_classes,), optional
        What the codes stand for; the model was fitted on ``classes[y]``. By default the codes themselves.

    Returns
    -------
    FlipModels or None
        None if there is no fast path for this estimator, its options or its size.

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


def has_fast_path(model: Any) -> bool:
    """Whether the classifier is of a family whose models need no training; its options may still forbid it."""
    return type(split_pipeline(model)[1]).__name__ in _FAMILIES


_MOST_FEATURES = 64  # features of the surrogate; it only ranks, and its price grows with their cube


def surrogate_problem(X: Any, y: Codes, X_val: Any, classes: npt.NDArray[Any]) -> tuple[FlipModels | None, Any]:
    """Logistic regression on standardised features, their first principal components if there are many.

    Returns
    -------
    FlipModels or None
        None if the features are no numbers.
    array
        The validation items as these models take them.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> models, there = surrogate_problem(X, np.array([0, 0, 1, 0, 1, 0, 1, 1]), X, np.array([0, 1]))
    >>> models.base_predictions(there).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
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
