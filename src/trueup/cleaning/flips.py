"""How probable each class is as the truth of a consolidated label, and which changes of labels are worth trying."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_distribution
from trueup.exceptions import InvalidLabels, InvalidParameter

__all__ = ["Candidates", "flip_candidates", "true_class_probabilities"]

Codes = npt.NDArray[np.int64]


def true_class_probabilities(codes: npt.ArrayLike, matrices: npt.ArrayLike, prior: npt.ArrayLike) -> Floats:
    r"""P(truth = c | consolidated label) of each item [1]_.

    .. math:: P(y_i = c \mid y'_i) = \frac{R_i[c, y'_i]\, \pi_c}{\sum_b R_i[b, y'_i]\, \pi_b}

    which is eq. 21 of the paper for any number of classes. One minus the entry of the label itself is the probability
    that an oracle flips it.

    Parameters
    ----------
    codes : integer array of shape (n_items,)
        The consolidated labels y'.
    matrices : array of shape (n_items, n_classes, n_classes) or (n_classes, n_classes)
        P(y' | truth), rows the truth; the identity for items known to be clean. One matrix is that of all items.
    prior : array of shape (n_classes,)
        The share of each class.

    Returns
    -------
    array of shape (n_items, n_classes)
        Rows sum to 1. A label that no class could have given is taken for the truth.

    References
    ----------
    .. [1] M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
       Classification", PVLDB 12(4) (2018), Section 5.2.

    Examples
    --------
    >>> true_class_probabilities([0, 1], [[0.6, 0.4], [0.2, 0.8]], [0.5, 0.5]).round(3).tolist()
    [[0.75, 0.25], [0.333, 0.667]]
    """
    labels, table = check_codes(codes, matrices)
    shares = check_distribution(prior, name="prior", n=table.shape[-1])
    joint = np.take_along_axis(table, labels[:, None, None], axis=2)[:, :, 0] * shares
    total = joint.sum(axis=1, keepdims=True)
    own = np.eye(table.shape[-1])[labels]
    return np.asarray(np.where(total > 0, joint / np.where(total > 0, total, 1.0), own))


def check_codes(codes: npt.ArrayLike, matrices: npt.ArrayLike) -> tuple[Codes, Floats]:
    """Labels as integers and a matrix for each; one sentence if they do not fit."""
    table = np.asarray(matrices, dtype=float)
    if table.ndim not in (2, 3) or table.shape[-1] != table.shape[-2]:
        raise InvalidParameter(
            f"matrices must have the shape (n_items, n_classes, n_classes), rows the truth, got {table.shape}"
        )
    labels = check_labels(codes, table.shape[-1])
    if table.ndim == 3 and len(table) != len(labels):
        raise InvalidParameter(f"matrices must be one for each of the {len(labels)} labels, got {len(table)}")
    return labels, np.broadcast_to(table, (len(labels), *table.shape[-2:]))


def check_labels(codes: npt.ArrayLike, n_classes: int) -> Codes:
    """Labels as integers from 0 to n_classes − 1."""
    labels = np.asarray(codes)
    if labels.ndim != 1 or not (np.issubdtype(labels.dtype, np.integer) or labels.size == 0):
        raise InvalidLabels(f"codes must be a list of integers, got {labels.dtype} of shape {labels.shape}")
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < n_classes:
        wrong = int(labels[(labels < 0) | (labels >= n_classes)][0])
        raise InvalidLabels(
            f"codes must be classes from 0 to {n_classes - 1}, got {wrong}; leave items without a label out"
        )
    return labels.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Changes of one training label each, sorted by item.

    Attributes
    ----------
    item : integer array of shape (n_candidates,)
        The position of the training item, in ascending order.
    to : integer array of shape (n_candidates,)
        The class it would get.
    """

    item: Codes
    to: Codes

    def __len__(self) -> int:
        return len(self.item)

    def of(self, items: npt.ArrayLike) -> Codes:
        """The positions of the candidates of these items."""
        return np.flatnonzero(np.isin(self.item, np.asarray(items)))

    def select(self, rows: npt.ArrayLike) -> Candidates:
        """Some of the candidates, by position."""
        return Candidates(self.item[np.asarray(rows)], self.to[np.asarray(rows)])


def flip_candidates(
    codes: npt.ArrayLike, probabilities: npt.ArrayLike, *, items: npt.ArrayLike | None = None
) -> Candidates:
    """All (item, class) for which the truth may be a class other than the label.

    Left out, so that they count as no change: classes of probability 0, a class that no training label has (a
    classifier does not know it), and the change of a class's only label (the classifier would lose that class).

    Parameters
    ----------
    codes : integer array of shape (n_items,)
        The training labels.
    probabilities : array of shape (n_items, n_classes)
        As `true_class_probabilities` gives them.
    items : integer array, optional
        The positions that may be cleaned; by default all.

    Examples
    --------
    >>> found = flip_candidates([0, 1, 0, 1], [[0.9, 0.1], [0.3, 0.7], [1.0, 0.0], [0.5, 0.5]])
    >>> found.item.tolist(), found.to.tolist()
    ([0, 1, 3], [1, 0, 0])
    """
    chances = np.asarray(probabilities, dtype=float)
    labels = check_labels(codes, chances.shape[1])
    if len(chances) != len(labels):
        raise InvalidParameter(f"probabilities must have a row for each of {len(labels)} labels, got {len(chances)}")
    number = np.bincount(labels, minlength=chances.shape[1])
    possible = (chances > 0) & (number > 0)
    possible[np.arange(len(labels)), labels] = False
    possible[number[labels] < 2] = False
    if items is not None:
        allowed = np.zeros(len(labels), dtype=bool)
        allowed[np.asarray(items, dtype=np.int64)] = True
        possible[~allowed] = False
    item, to = np.nonzero(possible)
    return Candidates(item.astype(np.int64), to.astype(np.int64))
