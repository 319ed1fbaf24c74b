"""How votes become something an estimator can be trained on; one function for each strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState
from trueup.estimators.published.tars2018 import consolidate, inverse_weights
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import Confusion, NoiseModel
from trueup.noise.base import TableModel, from_table, normalise, with_gold
from trueup.noise.majority import majority_codes
from trueup.training._votes import TrainingVotes, take
from trueup.training._voting import fit_labeler_models
from trueup.training.objectives import soft_logistic

__all__ = [
    "STRATEGIES",
    "Copies",
    "Task",
    "Trained",
    "fit_copies",
    "hard_copies",
    "quantised_copies",
    "weighted_copies",
]

_EM_STEPS = 50
_SETTLED = 1e-4  # change of a belief
_POOLING = 2.0  # votes of the pooled matrix added to each labeler's, as in `DawidSkene`


@dataclass(frozen=True, eq=False)
class Task:
    """What a strategy sees.

    Attributes
    ----------
    X : rows to train on only
    rows : integer array
        The rows of the X that was passed which these are.
    posterior : array of shape (n_rows of X, n_classes)
        P(class | votes).
    """

    estimator: Any
    X: Any
    rows: Positions
    votes: TrainingVotes
    noise: NoiseModel
    posterior: Floats
    min_weight: float
    max_copies: int | None
    n_copies: int
    n_rounds: int
    n_folds: int
    random_state: RandomState

    @property
    def items(self) -> Positions:
        """The item of each row of X."""
        return self.votes.rows[self.rows]

    def fitted(self, hard: Positions, copies: Copies) -> Any:
        """A clone of the estimator, fitted."""
        return fit_copies(self.estimator, self.X, hard, copies, self.votes.classes)


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted estimator and what the noise model has become, if it was learned again."""

    estimator: Any
    noise: NoiseModel | None = None


def _mmse(task: Task) -> Trained:
    copies = weighted_copies(task.posterior, min_weight=task.min_weight, max_copies=task.max_copies)
    return Trained(task.fitted(task.posterior.argmax(axis=1), copies))


def _label_estimation(task: Task) -> Trained:
    codes = task.posterior.argmax(axis=1)
    return Trained(task.fitted(codes, hard_copies(codes)))


def _replication(task: Task) -> Trained:
    copies = quantised_copies(task.posterior, task.n_copies)
    return Trained(task.fitted(task.posterior.argmax(axis=1), copies))


def _majority(task: Task) -> Trained:
    labels = task.votes.labels
    codes = majority_codes(labels)
    commonest = int(labels.answer_counts[:, : labels.n_classes].sum(axis=0).argmax())
    codes = np.where(codes >= 0, codes, commonest)[task.items]  # an item without votes ties between all classes
    return Trained(task.fitted(codes, hard_copies(codes)))


def _voting(task: Task) -> Trained:
    full = task.votes
    part = TrainingVotes(full.labels, task.items, full.classes, full.perfect)
    return Trained(fit_labeler_models(task.estimator, task.X, part, np.arange(len(task.rows)), task.noise))


def _unbiased(task: Task) -> Trained:
    """Exact for logistic regression; label-dependent costs for any other estimator of two classes."""
    found = consolidate(task.votes.labels, task.noise, random_state=task.random_state)
    kept = np.flatnonzero(found.usable[task.items])
    if not len(kept):
        raise InvalidLabels(
            "the unbiased loss needs labels that say something of the truth, got none whose confusion matrix can be "
            "inverted; leave out labelers who guess, or add gold with labels.with_gold"
        )
    group, code = found.group[task.items[kept]], found.codes[task.items[kept]]
    names, X = task.votes.classes, take(task.X, kept)
    head, last = _split(task.estimator)
    if _is_ridge_logistic(last):
        inverse = inverse_weights(found.matrices)
        model = fit_copies(task.estimator, X, code, hard_copies(code), names)
        _set_unbiased(model, head is not None, X, inverse[group, code], names)
        return Trained(model)
    if len(names) > 2:
        raise InvalidParameter(
            f"the unbiased loss has negative weights, which {type(last).__name__} cannot be trained with for "
            f'{len(names)} classes, got no LogisticRegression; pass one, or strategy="mmse"'
        )
    weight = label_costs(found.matrices)[group, code]
    copies = Copies(np.arange(len(kept)), code, None if (weight == 1).all() else weight)
    return Trained(fit_copies(task.estimator, X, code, copies, names))


def label_costs(matrices: npt.ArrayLike) -> Floats:
    r"""Costs of the labels 0 and 1 with which training on noisy labels decides as on the truth, shape (..., 2).

    Natarajan et al. (2013), Section 3.2: with P(label | truth) = R the noisy P(label = 1 | x) passes
    α = (1 − R[1, 0] + R[0, 1]) / 2 where the true one passes 1/2, so a label 1 costs 1 − α and a label 0 costs α.
    All weights are positive. They are scaled to 1 for labels without noise and to 0 for labels that say nothing.

    Examples
    --------
    >>> label_costs([[0.6, 0.4], [0.0, 1.0]]).round(2).tolist()
    [0.84, 0.36]
    """
    table = np.asarray(matrices, dtype=float)
    missed, alarm = table[..., 1, 0], table[..., 0, 1]
    threshold = (1 - missed + alarm) / 2
    told = np.abs(1 - missed - alarm)
    return np.stack([2 * threshold * told, 2 * (1 - threshold) * told], axis=-1)


def _split(estimator: Any) -> tuple[Any, Any]:
    """The steps before the last of a pipeline, or None, and the last."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return (estimator[:-1] if len(estimator.steps) > 1 else None), estimator.steps[-1][1]
    return None, estimator


def _is_ridge_logistic(model: Any) -> bool:
    """Whether it is logistic regression with the squares of the coefficients as penalty, or none."""
    if type(model).__name__ != "LogisticRegression":
        return False
    options = model.get_params()  # the name of the penalty differs between versions of scikit-learn
    ridge = options.get("penalty", "l2") in ("l2", "deprecated", None) and not options.get("l1_ratio")
    return bool(ridge and options.get("class_weight") is None)


def _set_unbiased(model: Any, in_pipeline: bool, X: Any, targets: Floats, names: npt.NDArray[Any]) -> None:
    """Put the minimiser of the unbiased loss in the place of what the model learned."""
    head, last = _split(model)
    features = head.transform(X) if in_pipeline and head is not None else X
    features = features if hasattr(features, "tocsr") else np.asarray(features, dtype=float)
    order = [names.tolist().index(name) for name in sorted(names.tolist())]
    none = last.get_params().get("penalty", "l2") is None or not np.isfinite(last.C)
    slope, intercept = soft_logistic(
        features, targets[:, order], penalty=0.0 if none else 1 / last.C, fit_intercept=last.fit_intercept
    )
    last.classes_, last.coef_, last.intercept_ = names[order], slope, intercept


def _alternation(task: Task) -> Trained:
    """Train, take the model's predictions as one more labeler's votes, learn everyone's matrices again, and so on."""
    noise, beliefs = task.noise, task.noise.posterior(task.votes.labels)
    for _ in range(task.n_rounds):
        predicted = _unseen_predictions(task, beliefs[task.items])
        noise, beliefs = _with_model_as_labeler(task, noise, beliefs, predicted)
    posterior = beliefs[task.items]
    copies = weighted_copies(posterior, min_weight=task.min_weight, max_copies=task.max_copies)
    return Trained(task.fitted(posterior.argmax(axis=1), copies), noise)


def _unseen_predictions(task: Task, posterior: Floats) -> Positions:
    """Predictions of models that have not seen the item; a flexible one would else repeat what it was told."""
    from sklearn.model_selection import StratifiedKFold

    names = task.votes.classes
    position = {name: k for k, name in enumerate(names.tolist())}
    hard = posterior.argmax(axis=1)
    fewest = int(np.bincount(hard)[np.unique(hard)].min())
    if fewest < 2:
        raise InvalidLabels(
            "alternation needs two items that most probably are of a class, to train without one of them, got one for "
            f'{names[np.bincount(hard, minlength=len(names)) == 1][:1].tolist()}; pass strategy="mmse"'
        )
    predicted = np.empty(len(hard), dtype=np.int64)
    for train, test in StratifiedKFold(min(task.n_folds, fewest)).split(hard, hard):
        copies = weighted_copies(posterior[train], min_weight=task.min_weight, max_copies=task.max_copies)
        model = fit_copies(task.estimator, take(task.X, train), hard[train], copies, names)
        told = np.asarray(model.predict(take(task.X, test)))
        predicted[test] = [position[name] for name in told.tolist()]
    return predicted


def _with_model_as_labeler(
    task: Task, noise: NoiseModel, beliefs: Floats, predicted: Positions
) -> tuple[NoiseModel, Floats]:
    """EM for the matrices of the labelers (unless they are known) and of the model; the beliefs it ends with."""
    labels = task.votes.labels
    learned = isinstance(noise, TableModel) and not isinstance(task.noise, Confusion)
    said = np.zeros((labels.n_items, labels.n_classes))
    said[task.items, predicted] = 1.0
    trained_on = np.unique(task.items)
    # One vote an item makes its labeler look perfect, and EM would stay there; the model disagrees.
    beliefs = with_gold(np.where(said.any(axis=1, keepdims=True), (beliefs + said) / 2, beliefs), labels)
    for _ in range(_EM_STEPS):
        model = normalise(beliefs.T @ said + 1.0)
        prior = normalise(beliefs[trained_on].sum(axis=0) + 0.5)
        if learned:
            noise = matrices_given(beliefs, task.votes, prior=prior)
        joint = noise.log_likelihood(labels) + np.log(prior) + said @ np.log(model).T
        new = with_gold(np.asarray(softmax(joint, axis=1)), labels)
        moved, beliefs = float(np.abs(new - beliefs).max()), new
        if moved < _SETTLED:
            break
    return noise, beliefs


def matrices_given(truth: Floats, votes: TrainingVotes, *, prior: Floats) -> Confusion:
    """The labelers' matrices where P(class) of each item is given, shape (n_items, n_classes); few votes are pooled."""
    labels = votes.labels
    counts = from_table(np.asarray(labels.votes.T @ truth), labels.n_answers)
    pooled = normalise(counts.sum(axis=0) + 1e-3)
    matrices = normalise(counts + _POOLING * pooled)
    floored = np.maximum(np.asarray(prior, dtype=float), 1e-12)
    return Confusion(dict(zip(labels.labelers.tolist(), matrices, strict=True)), prior=floored / floored.sum())


STRATEGIES: dict[str, Callable[[Task], Trained]] = {
    "mmse": _mmse,
    "label-estimation": _label_estimation,
    "voting": _voting,
    "replication": _replication,
    "unbiased": _unbiased,
    "majority": _majority,
    "alternation": _alternation,
}


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows to train on: which item, as which class, with which weight (None: all count alike)."""

    item: Positions
    code: Positions
    weight: Floats | None


def hard_copies(codes: npt.ArrayLike) -> Copies:
    """Each item once.

    Examples
    --------
    >>> hard_copies([1, 0]).item.tolist()
    [0, 1]
    """
    code = np.asarray(codes, dtype=np.int64)
    return Copies(np.arange(len(code)), code, None)


def weighted_copies(shares: Floats, *, min_weight: float, max_copies: int | None = None) -> Copies:
    r"""A copy of item i for each class with a weight, so that weighted losses add up to the MMSE risk.

    .. math:: \sum_i \sum_y p(y \mid z_i)\, L(f(x_i), y)

    Weights below `min_weight` are left out and the others of the item scaled up, so each item still counts 1.

    Parameters
    ----------
    shares : array of shape (n_items, n_classes)
        Rows that sum to 1 and are not negative.
    min_weight : float
        At most 1 / n_classes, or an item may lose all its copies; the largest always stays.
    max_copies : int, optional
        The most copies of an item.

    Examples
    --------
    >>> found = weighted_copies(np.array([[0.9, 0.1], [1.0, 0.0]]), min_weight=1e-4)
    >>> found.item.tolist(), found.code.tolist(), found.weight.tolist()
    ([0, 1, 0], [0, 0, 1], [0.9, 1.0, 0.1])
    """
    kept = np.where(shares >= min_weight, shares, 0.0)
    first = shares.argmax(axis=1)
    every = np.arange(len(shares))
    kept[every, first] = shares[every, first]
    if max_copies is not None and max_copies < shares.shape[1]:
        least = np.argsort(-kept, axis=1, kind="stable")[:, max_copies:]
        np.put_along_axis(kept, least, 0.0, axis=1)
    kept /= kept.sum(axis=1, keepdims=True)
    code, item = np.nonzero(kept.T)  # class by class: blocks of X in its own order
    weight = kept[item, code]
    return Copies(item, code, None if (weight == 1).all() else weight)


def quantised_copies(shares: Floats, n_copies: int) -> Copies:
    """Each item `n_copies` times, shared out to classes by the largest remainders.

    Where all counts have a common divisor they are divided by it: certain labels give each item once.

    Examples
    --------
    >>> found = quantised_copies(np.array([[0.74, 0.26], [1.0, 0.0]]), 4)
    >>> found.item.tolist(), found.code.tolist()
    ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 0])
    """
    exact = shares * n_copies
    counts = np.floor(exact + 1e-9).astype(np.int64)
    rest = n_copies - counts.sum(axis=1)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    counts += rank < rest[:, None]
    counts //= np.gcd.reduce(counts, axis=None)
    item, code = np.nonzero(counts)
    times = counts[item, code]
    return Copies(np.repeat(item, times), np.repeat(code, times), None)


def fit_copies(estimator: Any, X: Any, hard: Positions, copies: Copies, names: npt.NDArray[Any]) -> Any:
    """A clone of the estimator fitted to the copies.

    The steps of a pipeline before the last are fitted to each item once, with its hard label: copies are no more items
    and must not move a mean or a vocabulary. Then only what they make of X is copied.
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    once = copies.weight is None and np.array_equal(copies.item, np.arange(len(hard)))
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1 and not once:
        whole = clone(estimator)
        head = whole[:-1]
        features = head.fit_transform(X, names[hard])
        last = fit_copies(whole.steps[-1][1], features, hard, copies, names)
        whole.steps = [*head.steps, (whole.steps[-1][0], last)]
        return whole
    model = clone(estimator)
    rows = take(X, copies.item)
    if copies.weight is None:
        _count_neighbours_in_copies(model, len(copies.item) // max(len(hard), 1))
        return model.fit(rows, names[copies.code])
    if not takes_weights(model):
        raise InvalidParameter(
            f"weighted labels need an estimator whose fit takes sample_weight, got {type(model).__name__}, which "
            'ignores it; pass strategy="replication", which copies items instead'
        )
    return _fit_weighted(model, rows, copies, names)


def _count_neighbours_in_copies(model: Any, each: int) -> None:
    """Let nearest neighbours look at as many items as before, if each item is there `each` times."""
    from sklearn.neighbors import KNeighborsClassifier

    if each > 1 and isinstance(model, KNeighborsClassifier):
        model.set_params(n_neighbors=model.n_neighbors * each)


def _fit_weighted(model: Any, rows: Any, copies: Copies, names: npt.NDArray[Any]) -> Any:
    """Fit to weighted copies; classes are balanced by their weights, where some estimators count copies."""
    assert copies.weight is not None
    balanced = model.get_params().get("class_weight") == "balanced"
    weight = copies.weight
    if balanced:
        share = np.bincount(copies.code, weights=weight, minlength=len(names))
        weight = weight * (share.sum() / (np.count_nonzero(share) * share[copies.code]))
        model.set_params(class_weight=None)
    model.fit(rows, names[copies.code], sample_weight=weight)
    return model.set_params(class_weight="balanced") if balanced else model


def takes_weights(estimator: Any) -> bool:
    """Whether `fit` has a parameter sample_weight."""
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))
