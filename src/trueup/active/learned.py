"""P(positive) of items that no expert looked at, learned from those they did (Nguyen et al. 2018, equation 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_number, preview
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.metrics import check_scores

_PRIOR_RIGHT = 0.75  # before anything is vetted a label is worth something, but is not taken for the truth


def learned_probabilities(
    noisy: npt.ArrayLike,
    scores: npt.ArrayLike,
    vetted: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    categories: npt.ArrayLike | None = None,
    classifier: Any = None,
    smoothing: float = 1.0,
) -> Floats:
    r"""P(positive) given the noisy label and the system's score, fitted on the vetted items.

    .. math:: p(z_i | s_i, y_i) = \frac{p(y_i | z_i)\, p(z_i | s_i)}{\sum_v p(y_i | z_i = v)\, p(z_i = v | s_i)}

    The flip rates :math:`p(y | z)` are counted and :math:`p(z | s)` is a classifier of the truth by the score. The
    label and the score are taken for independent given the truth. **Items that were chosen by their label and score
    are no fair sample for the counts**: the rates are then biased. Where the vetted items do not yet hold both classes,
    the classifier is fitted on the noisy labels of all items instead.

    Returns an array of shape (n_items,), the truth of vetted items, and P(positive) of others.

    P. Nguyen, D. Ramanan, C. Fowlkes, "Active testing: an efficient and robust framework for estimating accuracy",
    ICML 2018.

    Parameters
    ----------
    noisy : array of shape (n_items,). The noisy label, 1 for positive and 0 for negative.
    scores : array of shape (n_items,). Those of the system under test.
    vetted : boolean array of shape (n_items,)
    truth : array of shape (n_items,). 1 or 0 where vetted; anything elsewhere.
    categories : integer array of shape (n_items,), optional
        Each category has flip rates of its own, drawn towards those of all, and its own intercept in the classifier.
    classifier : scikit-learn classifier, optional
        With ``predict_proba``; a logistic regression by default. It sees one column, the standardised score, and with
        categories an indicator column for each of them, as a sparse matrix.
    smoothing : float. How many items the prior of the rates of each true class is worth; see `flip_rates`.
    """
    labels, seen, known = _inputs(noisy, vetted, truth)
    n = len(labels)
    check_scores(scores)
    values = np.asarray(scores, dtype=float)
    if values.shape != (n,):
        raise InvalidPredictions(f"scores must be one for each of {n} items, got shape {values.shape}; pass one system")
    groups = _groups(categories, n)
    rates = flip_rates(labels, seen, known, categories=groups, smoothing=smoothing)
    of_item = rates[groups, :, labels]  # p(label of the item | truth), shape (n_items, 2)
    chance = _positive_given_score(_features(values, groups, categories is not None), labels, seen, known, classifier)
    joint = of_item * np.stack([1 - chance, chance], axis=1)
    total = joint.sum(axis=1)
    learned = np.divide(joint[:, 1], total, out=chance.copy(), where=total > 0)
    return np.where(seen, known, learned)


def flip_rates(
    noisy: npt.ArrayLike,
    vetted: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    categories: npt.ArrayLike | None = None,
    smoothing: float = 1.0,
) -> Floats:
    r"""P(noisy label | truth), by counting on the vetted items.

    .. math:: \hat p_c(y | z) = \frac{n_{czy} + m\, \hat p(y | z)}{n_{cz} + m}, \qquad
        \hat p(y | z) = \frac{n_{zy} + m\, \pi(y | z)}{n_z + m}

    where *c* is the category, *m* the `smoothing`, and :math:`\pi` calls three labels in four right. With
    ``smoothing=0`` it is the maximum likelihood of the paper, with the prior where a class was not seen.
    """
    labels, seen, known = _inputs(noisy, vetted, truth)
    groups = _groups(categories, len(labels))
    worth = check_number(smoothing, name="smoothing", low=0.0)
    n_groups = int(groups.max()) + 1
    cell = 4 * groups + 2 * known + labels
    counts = np.bincount(cell[seen], minlength=4 * n_groups).reshape(n_groups, 2, 2).astype(float)
    prior = np.array([[_PRIOR_RIGHT, 1 - _PRIOR_RIGHT], [1 - _PRIOR_RIGHT, _PRIOR_RIGHT]])
    pooled = _shrunk(counts.sum(axis=0), prior, worth)
    # Without categories the pooled rates are the answer: shrinking them towards themselves would change nothing.
    return _shrunk(counts, pooled, worth) if categories is not None else pooled[None]


def _shrunk(counts: Floats, towards: Floats, worth: float) -> Floats:
    total = counts.sum(axis=-1, keepdims=True) + worth
    rates = np.broadcast_to(towards, counts.shape).copy()
    return np.asarray(np.divide(counts + worth * towards, total, out=rates, where=total > 0))


def _positive_given_score(features: Any, labels: Any, seen: Booleans, known: Any, classifier: Any) -> Floats:
    """P(z = 1 | s) of all items."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    if classifier is not None and not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InvalidParameter(
            f"classifier must be a scikit-learn classifier with predict_proba, got {classifier!r}; "
            "e.g. sklearn.linear_model.LogisticRegression()"
        )
    n = len(labels)
    rows, target = np.flatnonzero(seen), known[seen]
    if len(np.unique(target)) < 2:
        rows, target = np.arange(n), np.where(seen, known, labels)
    if len(np.unique(target)) < 2:
        # Nothing tells the classes apart: the share of positives, kept from certainty as by half an item of each.
        return np.full(n, (target.sum() + 0.5) / (n + 1))
    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    model.fit(features[rows], target)
    column = int(np.flatnonzero(np.asarray(model.classes_) == 1)[0])
    return np.asarray(model.predict_proba(features)[:, column], dtype=float)


def _features(scores: Floats, groups: npt.NDArray[np.intp], with_groups: bool) -> Any:
    """The standardised score, and indicators of the categories."""
    from scipy.sparse import csr_array, hstack

    spread = scores.std()
    column = ((scores - scores.mean()) / (spread if spread > 0 else 1.0))[:, None]
    if not with_groups:
        return column
    n = len(scores)
    return hstack([csr_array(column), csr_array((np.ones(n), (np.arange(n), groups)))], format="csr")


def _inputs(
    noisy: npt.ArrayLike, vetted: npt.ArrayLike, truth: npt.ArrayLike
) -> tuple[npt.NDArray[np.intp], Booleans, npt.NDArray[np.intp]]:
    """Labels, which items are vetted, and their truth, 0 for others."""
    labels, seen, known = np.asarray(noisy), np.asarray(vetted, dtype=bool), np.asarray(truth)
    if labels.ndim != 1 or not len(labels) or seen.shape != labels.shape or known.shape != labels.shape:
        raise InvalidParameter(
            "noisy, vetted and truth must be one for each item, got the shapes "
            f"{labels.shape}, {seen.shape} and {known.shape}"
        )
    known = np.where(seen, known, 0)
    for values, name in ((labels, "noisy"), (known, "truth")):
        wrong = values[(values != 0) & (values != 1)]
        if wrong.size:
            raise InvalidLabels(
                f"{name} must be 1 for positive items and 0 for others, got {preview(wrong)}; "
                "compare class codes with the positive one first"
            )
    return labels.astype(np.intp), seen, known.astype(np.intp)


def _groups(categories: npt.ArrayLike | None, n: int) -> npt.NDArray[np.intp]:
    if categories is None:
        return np.zeros(n, dtype=np.intp)
    codes = np.asarray(categories)
    if codes.shape != (n,) or codes.dtype.kind not in "iu" or int(codes.min()) < 0:
        raise InvalidParameter(
            f"categories must be codes from 0, one for each of {n} items, got {codes.dtype} of shape {codes.shape}"
        )
    return codes.astype(np.intp)
