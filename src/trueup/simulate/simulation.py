"""What a simulator returns; labelers with a matrix each, and ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Floats, Positions
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_distribution,
    check_integer,
    check_number,
    check_numbers,
    check_prior,
    preview,
)
from trueup.data.labels import Labels
from trueup.data.votes import bare_votes
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.noise.ordinal import draw_matrices


def ratings(
    *,
    n_items: int = 500,
    n_classes: int = 5,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike | None = None,
    classifier_accuracy: float | None = 0.8,
    random_state: RandomState = None,
) -> Simulation:
    """Ratings of labelers with thresholds of their own, from the model and the prior of `trueup.noise.Ordinal`.

    Its parameters: ``prior``, ``confusion``.

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all rate.
    prior : array-like of shape (n_classes,), optional. Class probabilities; uniform by default.
    classifier_accuracy : float, optional. Of a classifier whose errors go to all classes alike; None for no classifier.
    """
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior, n_classes)
    classifier = classifier_matrix(classifier_accuracy, None, n_classes)
    rng = as_generator(random_state)
    matrices = draw_matrices(n_labelers, n_classes, rng)
    matrices /= matrices.sum(axis=2, keepdims=True)
    truth = draw_classes(pi, n, rng)
    return Simulation(
        labels=draw_votes(matrices, truth, votes_per_item, rng),
        truth=truth,
        predictions=None if classifier is None else draw_categories(classifier, truth, rng),
        parameters={"prior": pi, "confusion": matrices},
    )


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """A simulated data set, with all that is hidden in real ones.

    Items, labelers and classes are numbered from 0, so a class code is also the name of the class. All arrays over
    items follow the order of ``labels.items``, and no item or labeler is left out, with votes or without.

    Attributes
    ----------
    labels : Labels. The votes.
    truth : array of int, shape (n_items,). The true class of each item.
    parameters : dict
        The true parameters. The names mean the same in every simulator: ``prior`` (n_classes,), ``confusion``
        (n_labelers, n_classes, n_classes) for the labelers and ``classifier_confusion`` (n_classes, n_classes), with
        the truth in the rows; each simulator documents the others.
    predictions : array of int, shape (n_items,), or None. The class that the simulated classifier predicts.
    scores : array of float, shape (n_systems, n_items), or None. The scores of one or many systems for class 1.
    features : array of float, shape (n_items, n_features), or None. What a classifier could be trained on.
    """

    labels: Labels
    truth: Positions
    parameters: dict[str, Any]
    predictions: Positions | None = None
    scores: Floats | None = None
    features: Floats | None = None

    @property
    def accuracy(self) -> float:
        """The share of the items of this sample that are predicted correctly."""
        if self.predictions is None:
            raise InvalidPredictions("this simulation has no predictions; use `scores`, or simulate a classifier")
        return float(np.mean(self.predictions == self.truth))

    def __repr__(self) -> str:
        names = ("predictions", "scores", "features")
        there = [name for name in names if getattr(self, name) is not None]
        return f"Simulation({self.labels!r}, truth{''.join(f', {name}' for name in there)})"


Values = float | tuple[float, float] | Sequence[float] | npt.NDArray[Any]
"""One value for all, a (low, high) tuple to draw uniformly from, or a list or array with one value each."""


def check_sizes(
    n_items: int, n_labelers: int, prior: npt.ArrayLike | None, n_classes: int | None = None
) -> tuple[int, int, Floats]:
    """Numbers of items and labelers, and the probabilities of classes, where they are what they should be."""
    n = check_integer(n_items, name="n_items", low=1)
    k = None if n_classes is None else check_integer(n_classes, name="n_classes", low=2)
    return n, check_integer(n_labelers, name="n_labelers", low=1), check_prior(prior, n_classes=k)


def draw_values(values: Values, n: int, *, name: str, rng: np.random.Generator) -> Floats:
    """`n` values in [0, 1] from a number, a (low, high) tuple or an array of `n` values."""
    array = check_numbers(values, name=name)
    if ((array < 0) | (array > 1)).any():
        raise InvalidParameter(f"{name} must lie in [0, 1], got {preview(array.ravel())}")
    if array.ndim == 0:
        return np.full(n, float(array))
    if isinstance(values, tuple):
        if array.shape != (2,) or array[0] > array[1]:
            raise InvalidParameter(
                f"{name} as a tuple must be a range (low, high), got {values!r:.60}; pass a list for one value each"
            )
        return rng.uniform(array[0], array[1], n)
    if array.shape != (n,):
        raise InvalidParameter(
            f"{name} must be a number, a (low, high) tuple or {n} values, one each, got an array of shape {array.shape}"
        )
    return array


def check_confusion(matrix: npt.ArrayLike, shape: tuple[int, ...], *, name: str) -> Floats:
    """Rows of probabilities in an array of the given shape; missing leading axes are filled by repetition."""
    array = check_numbers(matrix, name=name)
    if array.ndim > len(shape) or array.ndim < 2 or array.shape != shape[len(shape) - array.ndim :]:
        raise InvalidParameter(f"{name} must have the shape {shape}, rows for the truth, got {array.shape}")
    rows = check_distribution(array, name=f"each row of {name}")
    return np.broadcast_to(rows, shape).copy()


def diagonal_confusion(accuracy: npt.ArrayLike, n_classes: int) -> Floats:
    """Confusion matrices with the accuracies ``(..., n_classes)`` on the diagonal and errors spread evenly."""
    right = np.asarray(accuracy, dtype=float)[..., None]
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))


def draw_categories(table: Floats, rows: Positions, rng: np.random.Generator) -> Positions:
    """One category for each entry of `rows`, which says the row of the table of probabilities to draw from."""
    below = np.cumsum(table, axis=1)
    n_categories = table.shape[1]
    last = n_categories - 1 - np.argmax(table[:, ::-1] > 0, axis=1)  # rounding must not reach an impossible category
    u = rng.random(rows.shape)
    drawn = np.zeros(rows.shape, dtype=np.int64)
    for category in range(n_categories - 1):
        drawn += u >= below[rows, category]
    return np.asarray(np.minimum(drawn, last[rows]))


def draw_classes(prior: Floats, n: int, rng: np.random.Generator) -> Positions:
    """`n` classes from one distribution."""
    return draw_categories(prior[None], np.zeros(n, dtype=np.int64), rng)


def draw_pairs(
    n_items: int, n_labelers: int, votes_per_item: int | None, rng: np.random.Generator
) -> tuple[Positions, Positions]:
    """Who votes on what, in the order of items and labelers: so many distinct labelers on each item, or all.

    The subsets come from Floyd's algorithm, run on all items at once.
    """
    if votes_per_item is None or votes_per_item == n_labelers:
        return np.repeat(np.arange(n_items), n_labelers), np.tile(np.arange(n_labelers), n_items)
    k = check_integer(votes_per_item, name="votes_per_item", low=1)
    if k > n_labelers:
        raise InvalidParameter(
            f"votes_per_item must be at most `n_labelers={n_labelers}`, got {k}; a labeler votes once on an item"
        )
    chosen = np.empty((n_items, k), dtype=np.int64)
    for j, top in enumerate(range(n_labelers - k, n_labelers)):
        candidate = rng.integers(0, top + 1, n_items)
        taken = (chosen[:, :j] == candidate[:, None]).any(axis=1)
        chosen[:, j] = np.where(taken, top, candidate)
    chosen.sort(axis=1)
    return np.repeat(np.arange(n_items), k), chosen.ravel()


def draw_votes(matrices: Floats, truth: Positions, votes_per_item: int | None, rng: np.random.Generator) -> Labels:
    """Votes of labelers with confusion matrices (n_labelers, n_classes, n_classes), independent given the truth."""
    n_labelers, n_classes, _ = matrices.shape
    item, labeler = draw_pairs(len(truth), n_labelers, votes_per_item, rng)
    vote = draw_categories(matrices.reshape(-1, n_classes), labeler * n_classes + truth[item], rng)
    return build_labels(item, labeler, vote, (len(truth), n_labelers, n_classes))


def build_labels(item: Positions, labeler: Positions, vote: Positions, shape: tuple[int, int, int]) -> Labels:
    """Labels from votes that are sorted by item, then labeler; `shape` counts items, labelers and classes."""
    n_items, n_labelers, n_classes = shape
    starts = np.zeros(n_items + 1, dtype=np.int32)
    np.cumsum(np.bincount(item, minlength=n_items), out=starts[1:])
    columns = (labeler * n_classes + vote).astype(np.int32)
    votes = sparse.csr_array((np.ones(len(item)), columns, starts), shape=(n_items, n_labelers * n_classes))
    return Labels(**bare_votes(_names(n_items), _names(n_labelers), _names(n_classes), votes))


def _names(n: int) -> Positions:
    names = np.arange(n, dtype=np.int64)
    names.flags.writeable = False
    return names


def classifier_matrix(accuracy: float | None, confusion: npt.ArrayLike | None, n_classes: int) -> Floats | None:
    """The confusion matrix of the classifier, or None if neither an accuracy nor a matrix is given."""
    if confusion is not None:
        return check_confusion(confusion, (n_classes, n_classes), name="classifier_confusion")
    if accuracy is None:
        return None
    level = check_number(accuracy, name="classifier_accuracy", low=0.0, high=1.0)
    return diagonal_confusion(np.full(n_classes, level), n_classes)


def dawid_skene(
    *,
    n_items: int = 1000,
    n_classes: int = 2,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike | None = None,
    accuracy: Values = (0.55, 0.95),
    accuracy_by: Literal["labeler", "class"] = "labeler",
    off_diagonal: Literal["uniform", "random"] = "uniform",
    confusion: npt.ArrayLike | None = None,
    classifier_accuracy: float | None = 0.8,
    classifier_confusion: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> Simulation:
    r"""Labelers with a confusion matrix each, independent given the truth (Dawid and Skene 1979).

    .. math::

        y_i \sim \mathrm{Cat}(\pi), \qquad z_{it} \mid y_i \sim \mathrm{Cat}(\theta^{(t)}_{y_i}), \qquad
        \hat y_i \mid y_i \sim \mathrm{Cat}(K_{y_i})

    all independent given the truth, the classifier included: the world in which the usual assumptions hold.
    Its parameters: ``prior``, ``confusion``, ``classifier_confusion`` (None without a classifier).

    A. P. Dawid, A. M. Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    Applied Statistics 28 (1979).

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all vote.
    prior : array-like of shape (n_classes,), optional. Class probabilities; uniform by default.
    accuracy : number, (low, high) tuple or array
        The diagonal of the labelers' matrices: the same for all, uniform on a range, or given, of shape
        (n_labelers,) or (n_labelers, n_classes).
    accuracy_by : {"labeler", "class"}. With a range, one accuracy for each labeler, or for each and true class.
    off_diagonal : {"uniform", "random"}
        Errors go to all other classes alike, or are split by a draw from the flat Dirichlet distribution for each
        labeler and true class.
    confusion : array-like of shape (n_labelers, n_classes, n_classes) or (n_classes, n_classes), optional
        The labelers' matrices, rows are the truth, in place of drawn ones.
    classifier_accuracy : float or None. In every class, errors going to all other classes alike; None: no predictions.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional. In place of its accuracy.

    See Also
    --------
    dependent : the world in which the assumptions fail.
    """
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior, n_classes)
    check_choice(accuracy_by, ("labeler", "class"), name="accuracy_by")
    check_choice(off_diagonal, ("uniform", "random"), name="off_diagonal")
    classifier = classifier_matrix(classifier_accuracy, classifier_confusion, n_classes)
    rng = as_generator(random_state)
    if confusion is None:
        diagonal = _draw_diagonal(accuracy, accuracy_by, (n_labelers, n_classes), rng)
        matrices = diagonal_confusion(diagonal, n_classes)
        if off_diagonal == "random":
            matrices = _scatter_errors(diagonal, rng)
    else:
        matrices = check_confusion(confusion, (n_labelers, n_classes, n_classes), name="confusion")

    truth = draw_classes(pi, n, rng)
    predictions = None if classifier is None else draw_categories(classifier, truth, rng)
    return Simulation(
        labels=draw_votes(matrices, truth, votes_per_item, rng),
        truth=truth,
        predictions=predictions,
        parameters={"prior": pi, "confusion": matrices, "classifier_confusion": classifier},
    )


def _draw_diagonal(accuracy: Values, by: str, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    n_labelers, n_classes = shape
    if isinstance(accuracy, tuple) and by == "class":
        return draw_values(accuracy, n_labelers * n_classes, name="accuracy", rng=rng).reshape(shape)
    table = check_numbers(accuracy, name="accuracy")
    if table.ndim == 2:
        if table.shape != shape:
            raise InvalidParameter(f"`accuracy` must have the shape {shape}, labelers × classes, got {table.shape}")
        return draw_values(table.ravel(), table.size, name="accuracy", rng=rng).reshape(shape)
    each = draw_values(accuracy, n_labelers, name="accuracy", rng=rng)
    return np.repeat(each[:, None], n_classes, axis=1)


def _scatter_errors(diagonal: Floats, rng: np.random.Generator) -> Floats:
    """Confusion matrices with the given diagonals and errors split at random."""
    n_labelers, n_classes = diagonal.shape
    split = rng.standard_exponential((n_labelers, n_classes, n_classes))
    on_diagonal = np.arange(n_classes)
    split[:, on_diagonal, on_diagonal] = 0.0
    matrices = split / split.sum(axis=-1, keepdims=True) * (1 - diagonal[..., None])
    matrices[:, on_diagonal, on_diagonal] = diagonal
    return np.asarray(matrices)


def baseline(
    *,
    n_items: int = 500,
    n_labelers: int = 3,
    accuracy: Values = (0.65, 0.85),
    prevalence: float = 0.3,
    classifier_accuracy: float = 0.8,
    random_state: RandomState = None,
) -> Simulation:
    """The data that a majority vote is used on today: two classes, three mediocre labelers who all vote.

    A Dawid–Skene model (see `dawid_skene`) where each labeler has one accuracy for both classes, drawn uniformly
    from a range, and so has the classifier.

    Parameters
    ----------
    accuracy : number, (low, high) tuple or array. Of the labelers: the same for all, uniform on a range, or one each.
    prevalence : float. P(class 1).
    """
    share = check_number(prevalence, name="prevalence", low=0.0, high=1.0)
    return dawid_skene(
        n_items=n_items,
        n_labelers=n_labelers,
        prior=(1 - share, share),
        accuracy=accuracy,
        classifier_accuracy=classifier_accuracy,
        random_state=random_state,
    )
