"""One model for each labeler, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup.estimators.published.tars2018 import labeler_matrices
from trueup.exceptions import InvalidLabels
from trueup.noise import NoiseModel
from trueup.noise.base import normalise
from trueup.training._votes import TrainingVotes, as_rows, n_rows_of, take

__all__ = ["LabelerModels", "aligned_columns", "fit_labeler_models"]


@dataclass(frozen=True, eq=False)
class LabelerModels:
    r"""Models of the labelers, combined by how far each can be trusted.

    Model t predicts what labeler t would say. Bayes' rule turns that into the truth, and the labelers' opinions are
    averaged with the information that each labeler's votes hold, the number of votes times I(truth; vote):

    .. math:: p(y \mid x) = \sum_t w_t \sum_a q_t(a \mid x)\,
       \frac{\pi_y \theta_t[y, a]}{\sum_{y'} \pi_{y'} \theta_t[y', a]}

    A labeler who guesses has weight 0, and one who always errs is read the other way round.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    labelers : integer array of shape (n_models,)
        Whose model each is, as positions in ``labels.labelers``.
    models : tuple of fitted estimators; a code for a labeler who always said the same
    readings : array of shape (n_models, n_classes, n_classes)
        P(truth | answer) of each labeler; rows are answers.
    weights : array of shape (n_models,)
        Sum to 1.
    """

    classes_: npt.NDArray[Any]
    labelers: Positions
    models: tuple[Any, ...]
    readings: Floats
    weights: Floats

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x), shape (n_rows, n_classes)."""
        total = np.zeros((n_rows_of(as_rows(X)), len(self.classes_)))
        for model, reading, weight in zip(self.models, self.readings, self.weights, strict=True):
            if weight > 0:
                total += weight * (self._said(model, X) @ reading)
        return total

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _said(self, model: Any, X: Any) -> Floats:
        """P(answer | x) of a labeler; a sure answer where the model gives no probabilities."""
        every = np.eye(len(self.classes_))
        if isinstance(model, int):
            return every[[model]]  # the same for all rows
        if hasattr(model, "predict_proba"):
            return aligned_columns(model.predict_proba(X), model.classes_, self.classes_)
        position = {name: k for k, name in enumerate(self.classes_.tolist())}
        return every[[position[name] for name in np.asarray(model.predict(X)).tolist()]]


def aligned_columns(values: Any, have: npt.NDArray[Any], want: npt.NDArray[Any], *, fill: float = 0.0) -> Floats:
    """Columns by class in another order, `fill` for a class that was never seen."""
    table = np.asarray(values, dtype=float)
    if np.array_equal(have, want):
        return table
    position = {name: k for k, name in enumerate(want.tolist())}
    out = np.full((len(table), len(want)), fill)
    out[:, [position[name] for name in np.asarray(have).tolist()]] = table
    return out


def fit_labeler_models(
    estimator: Any, X: Any, votes: TrainingVotes, used: Positions, noise: NoiseModel
) -> LabelerModels:
    """Train one clone of the estimator on the votes of each labeler; repeated votes count as the commonest of them."""
    from sklearn.base import clone

    labels = votes.labels
    confusion, prior = labeler_matrices(labels, noise)
    item, labeler, answer, times = labels.vote_table()
    counted = answer < labels.n_classes  # an abstention is no class to learn
    item, labeler, answer, times = item[counted], labeler[counted], answer[counted], times[counted]
    order = np.lexsort((answer, -times, item, labeler))  # the commonest answer of a pair first
    pair = labeler.astype(np.int64)[order] * labels.n_items + item[order]
    first = order[np.unique(pair, return_index=True)[1]]
    item, labeler, answer = item[first], labeler[first], answer[first]
    by_item = used[np.argsort(votes.rows[used], kind="stable")]
    rows_of_item = np.split(by_item, np.searchsorted(votes.rows[by_item], np.arange(1, labels.n_items)))
    models: list[Any] = []
    whose, n_votes = np.unique(labeler, return_counts=True)
    for t in whose.tolist():
        mine = np.flatnonzero(labeler == t)
        codes = np.unique(answer[mine])
        if len(codes) == 1:
            models.append(int(codes[0]))
            continue
        rows = [rows_of_item[i] for i in item[mine].tolist()]
        said = np.repeat(answer[mine], [len(r) for r in rows])
        models.append(clone(estimator).fit(take(X, np.concatenate(rows)), votes.classes[said]))
    theta = confusion[whose, :, : labels.n_classes]
    joint = prior[:, None] * theta
    weights = n_votes * _information(joint)
    if not weights.sum() > 0:
        raise InvalidLabels(
            "voting needs a labeler whose votes say something of the truth, got none; "
            'pass strategy="majority", or add gold with labels.with_gold'
        )
    return LabelerModels(
        votes.classes,
        whose.astype(np.int64),
        tuple(models),
        normalise(joint.transpose(0, 2, 1)),
        weights / weights.sum(),
    )


def _information(joint: Floats) -> Floats:
    """Mutual information in nats of tables P(truth, answer), shape (n, C, C); answers left out count nothing."""
    truth, answer = joint.sum(axis=2, keepdims=True), joint.sum(axis=1, keepdims=True)
    ratio = np.divide(
        joint, truth * answer / joint.sum(axis=(1, 2), keepdims=True), out=np.ones_like(joint), where=joint > 0
    )
    return np.asarray(np.maximum((joint * np.log(ratio)).sum(axis=(1, 2)), 0.0))
