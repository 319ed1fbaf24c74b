"""Su's simulator: difficulty of items, fallibility and participation of labelers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_numbers, check_prior
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    Values,
    build_labels,
    check_confusion,
    draw_categories,
    draw_classes,
    draw_values,
)

Difficulty = (
    str | float | tuple[float, float] | Sequence[float] | npt.NDArray[Any] | Callable[[np.random.Generator, int], Any]
)


def su(
    *,
    n_items: int = 1000,
    n_labelers: int = 5,
    prior: npt.ArrayLike = (0.5, 0.5),
    operating_point: tuple[float, float] = (0.8, 0.3),
    classifier_confusion: npt.ArrayLike | None = None,
    difficulty: Difficulty = "uniform",
    fallibility: Values = (0.0, 0.5),
    participation: Values = (0.0, 1.0),
    random_state: RandomState = None,
) -> Simulation:
    r"""Votes that err with the difficulty of the item and the fallibility of the labeler (Su 2024, Section 5.1).

    .. math::

        y_i &\sim \mathrm{Cat}(\pi), \qquad \hat y_i \mid y_i \sim \mathrm{Cat}(K_{y_i}) \\
        z_{it} &= y_i \text{ with probability } 1 - \varepsilon(\delta_i, \varphi_t),
            \text{ otherwise one of the other classes, each as likely} \\
        \varepsilon(\delta, \varphi) &= (\delta - \delta\varphi + \varphi)\,(C - 1) / C

    Labeler *t* votes on an item with probability :math:`\eta_t`, all independently, drawn again until the item has a
    vote. So every item has one, and the share of items a labeler votes on is a little above :math:`\eta_t`. Given
    the truth *and* the difficulty the votes are independent; the classifier is independent of both votes and
    difficulty given the truth.

    Parameters
    ----------
    n_items, n_labelers : int
    prior : array-like of shape (n_classes,)
        Class probabilities; their number is the number of classes.
    operating_point : (p_d, p_fa)
        The classifier's chance to predict 1 when the truth is 1 and when it is 0. Two classes only.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional
        The classifier's confusion matrix, rows are the truth; used in place of the operating point.
    difficulty : "uniform", (a, b), number, array or callable
        δ of the items: uniform on (0, 1), Beta(a, b) for a tuple, the same for all, one each, or what
        ``difficulty(rng, n_items)`` returns.
    fallibility : number, (low, high) tuple or array
        φ of the labelers: the same for all, uniform on a range, or one each.
    participation : number, (low, high) tuple or array
        η of the labelers, in the same forms; 1.0 means that all vote on everything.
    random_state : int, Generator or None

    Returns
    -------
    Simulation
        With predictions. Parameters: ``prior``, ``classifier_confusion``, ``difficulty``, ``fallibility``,
        ``participation``.

    References
    ----------
    J. K. Su, "On Truthing Issues in Supervised Classification", JMLR 25 (2024), Section 5.1.

    Examples
    --------
    The main example of Section 5.2.1:

    >>> from trueup.simulate import su
    >>> su(prior=(0.8, 0.2), difficulty=(1, 5), fallibility=(0, 0.4), random_state=0).labels.n_items
    1000
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior)
    n_classes = len(pi)
    matrix = _classifier(operating_point, classifier_confusion, n_classes)
    rng = as_generator(random_state)
    delta = _draw_difficulty(difficulty, n, rng)
    phi = draw_values(fallibility, n_labelers, name="fallibility", rng=rng)
    eta = draw_values(participation, n_labelers, name="participation", rng=rng)
    if not eta.any():
        raise InvalidParameter("participation must be positive for some labeler, got 0 for all; nobody would vote")

    truth = draw_classes(pi, n, rng)
    predictions = draw_categories(matrix, truth, rng)
    item, labeler = np.nonzero(_draw_participation(eta, n, rng))
    d, f = delta[item], phi[labeler]
    errs = rng.random(len(item)) < (d - d * f + f) * (n_classes - 1) / n_classes
    shift = rng.integers(1, n_classes, len(item))
    vote = np.where(errs, (truth[item] + shift) % n_classes, truth[item])
    return Simulation(
        labels=build_labels(item, labeler, vote, (n, n_labelers, n_classes)),
        truth=truth,
        predictions=predictions,
        parameters={
            "prior": pi,
            "classifier_confusion": matrix,
            "difficulty": delta,
            "fallibility": phi,
            "participation": eta,
        },
    )


def _classifier(operating_point: tuple[float, float], confusion: npt.ArrayLike | None, n_classes: int) -> Floats:
    if confusion is not None:
        return check_confusion(confusion, (n_classes, n_classes), name="classifier_confusion")
    if n_classes != 2:
        raise InvalidParameter(
            f"an operating point describes two classes, got a prior of {n_classes}; pass ⟨classifier_confusion=…⟩"
        )
    point = check_numbers(operating_point, name="operating_point")
    if point.shape != (2,) or ((point < 0) | (point > 1)).any():
        raise InvalidParameter(f"operating_point must be (p_d, p_fa) with both in [0, 1], got {operating_point!r:.60}")
    detection, false_alarm = point
    return np.array([[1 - false_alarm, false_alarm], [1 - detection, detection]])


def _draw_difficulty(difficulty: Difficulty, n: int, rng: np.random.Generator) -> Floats:
    if isinstance(difficulty, str):
        check_choice(difficulty, ("uniform",), name="difficulty")
        return rng.random(n)
    if callable(difficulty):
        return draw_values(np.asarray(difficulty(rng, n)), n, name="what difficulty() returns", rng=rng)
    if isinstance(difficulty, tuple):
        shape = check_numbers(difficulty, name="difficulty")
        if shape.shape != (2,) or (shape <= 0).any():
            raise InvalidParameter(
                f"difficulty as a tuple must be two positive parameters of a Beta distribution, got {difficulty!r:.60}"
            )
        return rng.beta(shape[0], shape[1], n)
    return draw_values(difficulty, n, name="difficulty", rng=rng)


def _draw_participation(eta: Floats, n: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Who votes: Bernoulli(η), given that somebody does.

    Drawing again until somebody votes has exactly this law: labeler by labeler, as long as nobody has voted yet the
    chance is η over the chance that this labeler or a later one votes, and afterwards it is η.
    """
    votes = np.empty((n, len(eta)), dtype=bool)
    anyone_from = np.zeros(len(eta) + 1)
    for t in reversed(range(len(eta))):
        anyone_from[t] = eta[t] + (1 - eta[t]) * anyone_from[t + 1]
    somebody = np.zeros(n, dtype=bool)
    for t, chance in enumerate(eta):
        if_nobody = chance / anyone_from[t] if anyone_from[t] > 0 else 0.0
        votes[:, t] = rng.random(n) < np.where(somebody, chance, if_nobody)
        somebody |= votes[:, t]
    return votes
