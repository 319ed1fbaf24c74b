"""Votes from the Dawid–Skene model."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    check_numbers,
    check_prior,
)
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    Values,
    check_confusion,
    classifier_matrix,
    diagonal_confusion,
    draw_categories,
    draw_classes,
    draw_values,
    draw_votes,
)


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
    accuracy_by : {"labeler", "class"}
        With a range, draw one accuracy for each labeler, or one for each labeler and true class.
    off_diagonal : {"uniform", "random"}
        Errors go to all other classes alike, or are split by a draw from the flat Dirichlet distribution for each
        labeler and true class.
    confusion : array-like of shape (n_labelers, n_classes, n_classes) or (n_classes, n_classes), optional
        The labelers' matrices, rows are the truth, in place of drawn ones.
    classifier_accuracy : float or None
        The classifier's accuracy in every class, errors going to all other classes alike. None, and no matrix: no
        predictions.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional
        The classifier's matrix, in place of its accuracy.

    See Also
    --------
    dependent : the world in which the assumptions fail.

    Examples
    --------
    >>> from trueup.simulate import dawid_skene
    >>> dawid_skene(n_items=100, n_classes=3, n_labelers=10, votes_per_item=4, random_state=0)
    Simulation(Labels(100 items, 10 labelers, 3 classes, 400 votes), truth, predictions)
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_classes = check_integer(n_classes, name="n_classes", low=2)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior, n_classes=n_classes)
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

    Examples
    --------
    >>> from trueup.simulate import baseline
    >>> baseline(random_state=0)
    Simulation(Labels(500 items, 3 labelers, 2 classes, 1,500 votes), truth, predictions)
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
