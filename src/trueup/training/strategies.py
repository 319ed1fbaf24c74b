"""How votes become something an estimator can be trained on; one function for each strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr, softmax

from trueup._base.registry import Registry
from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState
from trueup.estimators.published.tars2018.consolidation import consolidate, labeler_matrices
from trueup.estimators.published.tars2018.unbiased import inverse_weights
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import Confusion, NoiseModel
from trueup.noise.base import TableModel, from_table, normalise, with_gold
from trueup.noise.majority import majority_codes
from trueup.training.copies import (
    Copies,
    TrainingVotes,
    aligned_columns,
    as_rows,
    codes_of,
    fit_copies,
    hard_copies,
    n_rows_of,
    quantised_copies,
    split_pipeline,
    take,
    weighted_copies,
)
from trueup.training.objectives import fit_by_costs, fit_ridge_logistic

_EM_STEPS = 50
_SETTLED = 1e-4  # change of a belief
_POOLING = 2.0  # votes of the pooled matrix added to each labeler's, as in `DawidSkene`


@dataclass(frozen=True, eq=False)
class Task:
    """What a strategy sees.

    Attributes
    ----------
    rows : integer array. The rows of the X that was passed which these are.
    posterior : array of shape (n_rows of X, n_classes). P(class | votes).
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


def _unbiased(task: Task) -> Trained:
    """Exact for logistic regression; label-dependent costs for any other estimator of two classes."""
    consolidated = consolidate(task.votes.labels, task.noise, random_state=task.random_state)
    kept = np.flatnonzero(consolidated.usable[task.items])
    if not len(kept):
        raise InvalidLabels(
            "the unbiased loss needs labels that say something of the truth, got none whose confusion matrix can be "
            "inverted; leave out labelers who guess, or add gold with labels.with_gold"
        )
    group, code = consolidated.group[task.items[kept]], consolidated.codes[task.items[kept]]
    names, X = task.votes.classes, take(task.X, kept)
    weights = inverse_weights(consolidated.matrices)[group, code]
    model = fit_ridge_logistic(task.estimator, X, weights, code, names)
    if model is not None:
        return Trained(model)
    if len(names) > 2:
        kind = type(split_pipeline(task.estimator)[1]).__name__
        raise InvalidParameter(
            f"the unbiased loss has negative weights, which {kind} cannot be trained with for {len(names)} classes, "
            'got no LogisticRegression; pass one, or `strategy="mmse"`'
        )
    return Trained(fit_by_costs(task.estimator, X, code, consolidated.matrices[group], names))


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
    """Predictions of models that have not seen the item; a flexible one would repeat its training labels."""
    from sklearn.model_selection import StratifiedKFold

    names = task.votes.classes
    hard = posterior.argmax(axis=1)
    fewest = int(np.bincount(hard)[np.unique(hard)].min())
    if fewest < 2:
        raise InvalidLabels(
            "alternation needs two items that most probably are of a class, to train without one of them, got one for "
            f'{names[np.bincount(hard, minlength=len(names)) == 1][:1].tolist()}; pass `strategy="mmse"`'
        )
    predicted = np.empty(len(hard), dtype=np.int64)
    for train, test in StratifiedKFold(min(task.n_folds, fewest)).split(hard, hard):
        copies = weighted_copies(posterior[train], min_weight=task.min_weight, max_copies=task.max_copies)
        model = fit_copies(task.estimator, take(task.X, train), hard[train], copies, names)
        predicted[test] = codes_of(model.predict(take(task.X, test)), names)
    return predicted


def _with_model_as_labeler(
    task: Task, noise: NoiseModel, beliefs: Floats, predicted: Positions
) -> tuple[NoiseModel, Floats]:
    """EM for the matrices of the labelers (unless they are known) and of the model; the beliefs it ends with."""
    labels = task.votes.labels
    learned = isinstance(noise, TableModel) and not isinstance(task.noise, Confusion)
    predictions = np.zeros((labels.n_items, labels.n_classes))
    predictions[task.items, predicted] = 1.0
    trained_on = np.unique(task.items)
    # One vote an item makes its labeler look perfect, and EM would stay there; the model disagrees.
    beliefs = with_gold(np.where(predictions.any(axis=1, keepdims=True), (beliefs + predictions) / 2, beliefs), labels)
    for _ in range(_EM_STEPS):
        model = normalise(beliefs.T @ predictions + 1.0)
        prior = normalise(beliefs[trained_on].sum(axis=0) + 0.5)
        if learned:
            noise = matrices_given(beliefs, task.votes, prior=prior)
        joint = noise.log_likelihood(labels) + np.log(prior) + predictions @ np.log(model).T
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


@dataclass(frozen=True, eq=False)
class LabelerModels:
    r"""Models of the labelers, combined by how far each can be trusted.

    Model t predicts what labeler t would say. Bayes' rule turns that into the truth, and the labelers' opinions are
    averaged with the information that each labeler's votes hold, the number of votes times I(truth; vote):

    .. math:: p(y \mid x) = \sum_t w_t \sum_a q_t(a \mid x)\,
       \frac{\pi_y \theta_t[y, a]}{\sum_{y'} \pi_{y'} \theta_t[y', a]}

    A labeler who guesses has weight 0, and one who always errs is read the other way round.
    """

    classes_: npt.NDArray[Any]  # (n_classes,)
    labelers: Positions  # (n_models,): whose model each is, as positions in ``labels.labelers``
    models: tuple[Any, ...]
    readings: Floats  # (n_models, n_classes, n_classes): P(truth | answer) of each labeler; rows are answers
    weights: Floats  # (n_models,): sum to 1

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x), shape (n_rows, n_classes)."""
        total = np.zeros((n_rows_of(as_rows(X)), len(self.classes_)))
        for model, reading, weight in zip(self.models, self.readings, self.weights, strict=True):
            if weight > 0:
                total += weight * (self._answers(model, X) @ reading)
        return total

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _answers(self, model: Any, X: Any) -> Floats:
        """P(answer | x) of a labeler; a sure answer where the model gives no probabilities."""
        every = np.eye(len(self.classes_))
        if isinstance(model, int):
            return every[[model]]  # the same for all rows
        if hasattr(model, "predict_proba"):
            return aligned_columns(model.predict_proba(X), model.classes_, self.classes_)
        return every[codes_of(model.predict(X), self.classes_)]


def _voting(task: Task) -> Trained:
    """One clone of the estimator for the votes of each labeler; repeated votes count as the commonest of them."""
    from sklearn.base import clone

    labels, items, names = task.votes.labels, task.items, task.votes.classes
    confusion, prior = labeler_matrices(labels, task.noise)
    item, labeler, answer, times = labels.vote_table()
    counted = answer < labels.n_classes  # an abstention is no class to learn
    item, labeler, answer, times = item[counted], labeler[counted], answer[counted], times[counted]
    order = np.lexsort((answer, -times, item, labeler))  # the commonest answer of a pair first
    pair = labeler.astype(np.int64)[order] * labels.n_items + item[order]
    first = order[np.unique(pair, return_index=True)[1]]
    item, labeler, answer = item[first], labeler[first], answer[first]
    by_item = np.argsort(items, kind="stable")
    rows_of_item = np.split(by_item, np.searchsorted(items[by_item], np.arange(1, labels.n_items)))
    models: list[Any] = []
    whose, n_votes = np.unique(labeler, return_counts=True)
    for t in whose.tolist():
        votes_of_labeler = np.flatnonzero(labeler == t)
        codes = np.unique(answer[votes_of_labeler])
        if len(codes) == 1:
            models.append(int(codes[0]))
            continue
        rows = [rows_of_item[i] for i in item[votes_of_labeler].tolist()]
        answers = np.repeat(answer[votes_of_labeler], [len(r) for r in rows])
        models.append(clone(task.estimator).fit(take(task.X, np.concatenate(rows)), names[answers]))
    joint = prior[:, None] * confusion[whose, :, : labels.n_classes]
    weights = n_votes * _information(joint)
    if not weights.sum() > 0:
        raise InvalidLabels(
            "voting needs a labeler whose votes say something of the truth, got none; "
            'pass `strategy="majority"`, or add gold with labels.with_gold'
        )
    readings = normalise(joint.transpose(0, 2, 1))
    return Trained(LabelerModels(names, whose.astype(np.int64), tuple(models), readings, weights / weights.sum()))


def _information(joint: Floats) -> Floats:
    """Mutual information in nats of tables P(truth, answer), shape (n, C, C); answers left out count nothing."""
    truth, answer = joint.sum(axis=2, keepdims=True), joint.sum(axis=1, keepdims=True)
    expected = truth * answer / joint.sum(axis=(1, 2), keepdims=True)
    return np.asarray(np.maximum(rel_entr(joint, expected).sum(axis=(1, 2)), 0.0))


TRAINING_STRATEGIES: Registry[Callable[[Task], Trained]] = Registry(
    "strategy",
    {
        "mmse": _mmse,
        "label-estimation": _label_estimation,
        "voting": _voting,
        "replication": _replication,
        "unbiased": _unbiased,
        "majority": _majority,
        "alternation": _alternation,
    },
    group="trueup.training_strategies",
)
