"""Training on noisy labels without an oracle: leave out what looks wrong, or a loss that noise does not bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_number
from trueup.cleaning.exact import fitted
from trueup.cleaning.fast_base import csr, is_sparse
from trueup.cleaning.flips import check_codes
from trueup.cleaning.validation import UnbiasedScorer
from trueup.estimators.published.tars2018 import Filter, mislabeled
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.objectives import LogisticObjective, NoisyLikelihood, minimise, soft_logistic

__all__ = ["noise_aware_probabilities", "noise_removed", "noise_tolerant", "soft_logistic"]

_TOLERANCE = 1e-6  # of the gradient of one item


def noise_removed(
    estimator: Any,
    X: Any,
    codes: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    keep: npt.ArrayLike | None = None,
    filter: Filter = "majority",  # noqa: A002
    n_folds: int = 5,
    random_state: RandomState = 0,
) -> Any:
    """The classifier trained without the items that a filter of classifiers calls mislabeled [1]_.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned, never changed.
    X : array or sparse matrix of shape (n_items, n_features)
    codes : integer array of shape (n_items,)
        The noisy labels.
    classes : array of shape (n_classes,), optional
        What the codes stand for; by default the codes themselves.
    keep : boolean array of shape (n_items,), optional
        Items that stay in any case, because their label is known to be right.
    filter, n_folds, random_state
        As for `trueup.estimators.mislabeled`.

    Returns
    -------
    fitted classifier

    References
    ----------
    .. [1] C. E. Brodley, M. A. Friedl, "Identifying mislabeled training data", Journal of Artificial Intelligence
       Research 11 (1999).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 1))
    >>> truth = (x[:, 0] > 0).astype(int)
    >>> y = np.where((truth == 0) & (rng.random(500) < 0.4), 1, truth)
    >>> model = noise_removed(LogisticRegression(), x, y)
    >>> bool(LogisticRegression().fit(x, y).score(x, truth) < model.score(x, truth))
    True
    """
    labels = np.asarray(codes, dtype=np.int64)
    dense = csr(X).toarray() if is_sparse(X) else X  # the trees and neighbours of the filter need columns
    suspect = mislabeled(dense, labels, filter=filter, n_folds=n_folds, random_state=random_state)
    if keep is not None:
        suspect &= ~np.asarray(keep, dtype=bool)
    rows = np.flatnonzero(~suspect)
    if len(np.unique(labels[rows])) < len(np.unique(labels)):
        raise InvalidLabels(
            f"the filter left no label of a class, got {len(rows)} of {len(labels)} items that look right; pass "
            'filter="consensus"'
        )
    names = np.arange(int(labels.max()) + 1) if classes is None else np.asarray(classes)
    return fitted(estimator, X[rows], names[labels[rows]])


def noise_tolerant(
    estimator: Any,
    X: Any,
    codes: npt.ArrayLike,
    matrices: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
) -> Any:
    r"""The classifier trained with the unbiased loss of Natarajan et al. [1]_.

    With :math:`w_i = R_i^{-\top} e_{y'_i}` the loss

    .. math:: \tilde\ell(x_i, y'_i) = \sum_c w_{ic}\, \ell(f(x_i), c)

    has the loss under the true labels as its expectation. Some weights are negative. For logistic regression that does
    no harm: weights of an item sum to 1, so the loss is log-sum-exp of the scores minus a linear function, which is
    convex, and it is minimised exactly. Any other estimator is trained on weighted copies of the items, with negative
    weights set to 0 and the others scaled to sum to 1; that is no longer unbiased.

    Parameters
    ----------
    estimator : scikit-learn classifier
        ``LogisticRegression`` (l2), a pipeline that ends in one, or any classifier whose fit takes `sample_weight`.
    X : array or sparse matrix of shape (n_items, n_features)
    codes : integer array of shape (n_items,)
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(label | truth), rows the truth; the identity for clean items.
    classes : array of shape (n_classes,), optional
        What the codes stand for; by default the codes themselves.

    Returns
    -------
    fitted classifier

    References
    ----------
    .. [1] N. Natarajan, I. S. Dhillon, P. Ravikumar, A. Tewari, "Learning with noisy labels", NIPS 2013.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> x, matrix = rng.normal(size=(2000, 1)), np.array([[0.6, 0.4], [0.0, 1.0]])
    >>> truth = (x[:, 0] > 0).astype(int)
    >>> y = np.where(rng.random(2000) < matrix[truth, 1], 1, 0)
    >>> model = noise_tolerant(LogisticRegression(), x, y, matrix)
    >>> bool(LogisticRegression().fit(x, y).score(x, truth) < 0.8 < model.score(x, truth))
    True
    """
    labels, table = check_codes(codes, matrices)
    names = np.arange(table.shape[-1]) if classes is None else np.asarray(classes)
    weights = UnbiasedScorer(labels, table).weights
    used = np.flatnonzero(weights.any(axis=1))
    rows = X.iloc[used] if hasattr(X, "iloc") else X[used]
    model = fitted(estimator, rows, names[labels[used]])
    last = model.steps[-1][1] if type(model).__name__ == "Pipeline" else model
    if type(last).__name__ == "LogisticRegression" and _usual(last) and len(last.classes_) == len(names):
        inside = model[:-1].transform(rows) if last is not model and len(model.steps) > 1 else rows
        order = np.array([names.tolist().index(name) for name in last.classes_.tolist()])
        last.coef_, last.intercept_ = soft_logistic(
            inside, weights[used][:, order], penalty=1 / last.C, fit_intercept=last.fit_intercept
        )
        return model
    return _on_copies(estimator, rows, weights[used], names)


def _usual(model: Any) -> bool:
    """Whether the penalty is the square of the coefficients; the name of that option differs between versions."""
    options = model.get_params()
    ridge = options.get("penalty") in ("l2", "deprecated", None) and not options.get("l1_ratio")
    return bool(ridge and options.get("class_weight") is None and np.isfinite(model.C))


def _on_copies(estimator: Any, X: Any, weights: Floats, names: npt.NDArray[Any]) -> Any:
    """One copy of each item for each class with a positive weight."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    last = estimator.steps[-1] if type(estimator).__name__ == "Pipeline" else None
    if not has_fit_parameter(estimator if last is None else last[1], "sample_weight"):
        raise InvalidParameter(
            f"noise_tolerant needs an estimator whose fit takes sample_weight, got {type(estimator).__name__}; pass "
            "e.g. LogisticRegression()"
        )
    shares = np.maximum(weights, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    item, code = np.nonzero(shares)
    name = "sample_weight" if last is None else f"{last[0]}__sample_weight"
    rows = X.iloc[item] if hasattr(X, "iloc") else X[item]
    return clone(estimator).fit(rows, names[code], **{name: shares[item, code]})


def noise_aware_probabilities(X: Any, codes: npt.ArrayLike, matrices: npt.ArrayLike, *, penalty: float = 1.0) -> Floats:
    r"""P(truth = c | features, label): logistic regression that knows how labels err.

    .. math:: \max_\theta \sum_i \log \sum_c R_i[c, y'_i]\, p_\theta(c \mid x_i) - \tfrac\lambda2\lVert\theta\rVert^2,
       \qquad P(c \mid x_i, y'_i) \propto R_i[c, y'_i]\, p_\theta(c \mid x_i)

    The likelihood of the noisy labels (Su 2024, eq. 32) makes better use of few labels than an unbiased loss.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        On comparable scales.
    codes : integer array of shape (n_items,)
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(label | truth), rows the truth; the identity for clean items.
    penalty : float
        λ.

    Returns
    -------
    array of shape (n_items, n_classes)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, matrix = rng.normal(size=(2000, 1)), np.array([[0.6, 0.4], [0.0, 1.0]])
    >>> truth = (x[:, 0] > 0).astype(int)
    >>> y = np.where(rng.random(2000) < matrix[truth, 1], 1, 0)
    >>> found = noise_aware_probabilities(x, y, matrix).argmax(axis=1)
    >>> bool((found != truth).mean() < (y != truth).mean() / 2)
    True
    """
    labels, table = check_codes(codes, matrices)
    check_number(penalty, name="penalty", low=0.0)
    likelihood = np.take_along_axis(table, labels[:, None, None], axis=2)[:, :, 0]

    noisy = NoisyLikelihood(np.log(np.maximum(likelihood, np.finfo(float).tiny)))
    objective = LogisticObjective(X, noisy, table.shape[-1], penalty)
    start = np.zeros(objective.n_rows * (X.shape[1] + 1))
    found = minimise(objective, start, solver="lbfgs", tol=_TOLERANCE, max_iter=1000)
    return noisy.beliefs(objective.scores(found.theta))
