"""What `fit` was given: votes, positions of items, or a plain y, brought to one form."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_choice, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.noise import Confusion, NoiseModel
from trueup.noise import fit as fit_noise

Unlabelled = Literal["drop", "prior", "error"]


@dataclass(frozen=True, eq=False)
class TrainingVotes:
    """The votes behind the rows of X."""

    labels: Labels  # of the items that X has, each once
    rows: Positions  # (n_rows,): which of those items each row of X is
    classes: npt.NDArray[Any]  # (n_classes,)
    perfect: bool = False  # whether the votes are a plain y, which is taken for the truth

    def noise(self, model: str | NoiseModel) -> NoiseModel:
        """The noise model fitted to these votes; what a user passed is not changed."""
        if self.perfect:
            share = self.labels.answer_counts.sum(axis=0)
            known = Confusion(np.eye(len(self.classes)), prior=share / share.sum())
            # What `fit` of a learned model would set.
            known.classes_, known.labelers_, known.answers_ = (
                self.labels.classes,
                self.labels.labelers,
                self.labels.answers,
            )
            return known
        return fit_noise(self.labels, copy.deepcopy(model) if isinstance(model, NoiseModel) else model)

    def log_likelihood(self, noise: NoiseModel) -> Floats:
        """Log p(votes | class) of each item, shape (n_items, n_classes); where the truth is known, of it alone."""
        table = np.array(noise.log_likelihood(self.labels), dtype=float)
        truth = self.labels.answer_counts.argmax(axis=1) if self.perfect else self.labels.gold_codes
        known = np.flatnonzero(truth >= 0)
        table[known] = -np.inf
        table[known, truth[known]] = 0.0
        return table

    def used(self, unlabelled: str) -> Positions:
        """The rows of X to train on."""
        how = check_choice(unlabelled, get_args(Unlabelled), name="unlabelled")
        silent = (self.labels.votes_per_item == 0) & (self.labels.gold_codes < 0)
        if how == "error" and silent.any():
            raise InvalidLabels(
                f'every item must have a vote with unlabelled="error", got {int(silent.sum())} without, e.g. '
                f'{preview(self.labels.items[silent])}; pass unlabelled="drop" or "prior"'
            )
        keep = np.ones(len(self.rows), dtype=bool) if how == "prior" else ~silent[self.rows]
        if not keep.any():
            raise InvalidLabels(
                "training needs an item with a vote, got none; check that the labels are of these items"
            )
        return np.flatnonzero(keep)


def gather(y: Any, labels: Labels | None, n_rows: int) -> TrainingVotes:
    """Bring what `fit` was given to one form."""
    if isinstance(y, Labels):
        if y.n_items != n_rows:
            raise InvalidLabels(
                f"X must have a row for each item of the labels, got {n_rows} rows and {y.n_items} items; "
                "select the items with labels.select(items=…), or the rows of X in the order of labels.items"
            )
        return _checked(TrainingVotes(y, np.arange(n_rows), np.asarray(y.classes.tolist())))
    if y is None:
        raise InvalidParameter("the estimator requires y to be passed, but the target y is None; pass Labels")
    if labels is not None:
        return _at_positions(y, labels, n_rows)
    return _as_truth(y, n_rows)


def positions_of(y: Any, labels: Labels, n_rows: int) -> Positions:
    """Check positions of items, one for each row of X."""
    at = np.asarray(y)
    if at.ndim != 1 or at.dtype.kind not in "iu" or (len(at) and not 0 <= at.min() <= at.max() < labels.n_items):
        raise InvalidParameter(
            f"with labels= given, y must hold positions in labels.items (0 to {labels.n_items - 1}), got "
            f"{preview(at.ravel())}; pass np.arange(labels.n_items)"
        )
    if len(at) != n_rows:
        raise InvalidLabels(
            f"X must have a row for each position in y, got {n_rows} rows and {len(at)} positions; "
            "pass y=np.arange(labels.n_items) with one row of X for each item"
        )
    return at.astype(np.int64)


def _at_positions(y: Any, labels: Labels, n_rows: int) -> TrainingVotes:
    at = positions_of(y, labels, n_rows)
    distinct, rows = np.unique(at, return_inverse=True)
    part = labels.select(items=labels.items[distinct])
    return _checked(TrainingVotes(part, rows.ravel().astype(np.int64), np.asarray(labels.classes.tolist())))


def _as_truth(y: Any, n_rows: int) -> TrainingVotes:
    from sklearn.utils import assert_all_finite, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    column = column_or_1d(y, warn=True)
    assert_all_finite(column, input_name="y")
    check_classification_targets(column)
    if len(column) != n_rows:
        raise InvalidLabels(
            f"X and y must have the same number of rows, got inconsistent numbers of samples: {n_rows} and "
            f"{len(column)}; pass one class for each row"
        )
    classes, codes = np.unique(column, return_inverse=True)
    if len(classes) < 2:
        raise InvalidLabels(f"training needs at least two classes, got one class, {preview(classes)}; add another")
    with silenced_warnings():  # one labeler with a vote an item is what is meant
        labels = Labels.from_matrix(codes.reshape(-1, 1), classes=range(len(classes)), labelers=["y"])
    return TrainingVotes(labels, np.arange(n_rows), classes, perfect=True)


def _checked(votes: TrainingVotes) -> TrainingVotes:
    labels = votes.labels
    counts = labels.answer_counts[:, : labels.n_classes].sum(axis=0)
    counts += np.bincount(labels.gold_codes[labels.gold_codes >= 0], minlength=labels.n_classes)
    if not counts.all():
        raise InvalidLabels(
            f"every class needs a vote to be learned, got none for {preview(labels.classes[counts == 0])}; "
            "read the votes with classes= of those that occur, or add gold of that class"
        )
    return votes
