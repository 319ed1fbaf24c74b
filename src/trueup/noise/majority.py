"""Majority vote: the baseline everyone knows.

`majority_shares` decides for the whole library what the majority says, and `majority_codes` where one class is needed.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_choice, check_number
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.noise.base import TableModel, from_table, normalise, vote_shares, with_gold
from trueup.noise.em import passes_over


def share_evenly(scores: Floats, slack: float = 0.0) -> Floats:
    """Each row shared evenly by its highest entries (up to `slack`); zeros where no entry is positive."""
    first = (scores >= scores.max(axis=1, keepdims=True) - slack) & (scores > 0)
    return np.asarray(first / np.maximum(first.sum(axis=1, keepdims=True), 1))


def majority_shares(labels: Labels) -> Floats:
    """The truth of each item if the majority of its votes is taken for it; shape (n_items, n_classes).

    Classes that tie share the item evenly. Gold stands. An item without votes and gold has a row of zeros.
    """
    return with_gold(share_evenly(labels.answer_counts[:, : labels.n_classes]), labels)


def majority_codes(labels: Labels) -> Positions:
    """The same where every item needs one class; -1 for an item without votes and gold.

    Of tied classes it is the one with more votes on all items, then the first: neither a seed nor the order of items
    matters.
    """
    shares = majority_shares(labels)
    total = labels.answer_counts[:, : labels.n_classes].sum(axis=0)
    codes = np.where(shares > 0, 1 + total, 0).argmax(axis=1)
    return np.where(shares.any(axis=1), codes, -1)


class Majority(TableModel):
    """Every vote counts the same.

    Parameters
    ----------
    kind : {"soft", "hard"}
        Soft: P(class) is the share of the item's votes for it. Hard: the class with most votes is certain, and ties
        share the certainty.
    smoothing : float
        What is added to each class's votes; 1/2 is the Jeffreys–Perks estimate (Urkullu, Pérez and Calvo 2019, "On the
        evaluation and selection of classifier learning algorithms with crowdsourced data", Applied Soft Computing).
    """

    alias = "majority"
    engines = ("scipy", "dask")

    def __init__(self, *, kind: Literal["soft", "hard"] = "soft", smoothing: float = 0.5) -> None:
        self.kind = kind
        self.smoothing = smoothing

    def fit(self, labels: Labels | LabelScan[Labels]) -> Self:
        check_choice(self.kind, ("soft", "hard"), name="kind")
        check_number(self.smoothing, name="smoothing", low=0.0)
        self._remember(labels)
        self.prior_ = np.full(labels.n_classes, 1 / labels.n_classes)  # what an item without votes is given
        table, _ = passes_over(labels, 1, offers=self.engines).first_counts(self.smoothing)
        counts = from_table(table, labels.n_answers)
        self.confusion_ = normalise(counts + self.smoothing)
        self.pooled_ = normalise(counts.sum(axis=0))
        self.n_iter_, self.converged_, self.loss_history_ = 0, True, []
        return self

    def _log_likelihood(self, labels: Labels) -> Floats:
        shares = normalise(labels.answer_counts[:, : labels.n_classes] + max(self.smoothing, 1e-6))
        return np.asarray(np.log(shares))  # under the uniform prior the posterior is the share of votes

    def posterior(self, labels: Labels) -> Floats:
        self._check(labels)
        if self.kind == "soft":
            return vote_shares(labels, self.smoothing)
        return normalise(majority_shares(labels))
