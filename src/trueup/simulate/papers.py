"""Simulators of three papers: Su 2024, TARS 2018 and Urkullu 2019."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Floats, Positions
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    check_numbers,
)
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    Values,
    build_labels,
    check_confusion,
    check_sizes,
    diagonal_confusion,
    draw_categories,
    draw_classes,
    draw_values,
    draw_votes,
)

URKULLU_CASES: Final[dict[str, tuple[float, float]]] = {
    "extreme": (0.525, 0.475),
    "bad": (0.6, 0.4),
    "average": (0.7, 0.3),
    "good": (0.8, 0.2),
    "outstanding": (0.9, 0.1),
}
"""The paper's cases: mean true and false positive rate of the labelers."""


def urkullu(
    *,
    n_items: int = 1000,
    n_classifiers: int = 100,
    labels_per_item: float = 15,
    labels_per_labeler: float = 15,
    case: str | tuple[float, float] = "average",
    max_disturbance: float = 0.45,
    random_state: RandomState = None,
) -> Simulation:
    r"""Crowd votes and the scores of many classifiers under a probabilistic truth (Urkullu et al. 2019, Section 4).

    .. math::

        p_i &\sim \mathrm{Beta}(1, 1), \qquad y_i \sim \mathrm{Bernoulli}(p_i) \\
        z_{ij} &\sim \mathrm{Bernoulli}\bigl(p_i \mathrm{TPR}_j + (1 - p_i) \mathrm{FPR}_j\bigr)
            \text{ with probability } t, \text{ otherwise no vote}

    The rates are shifted Beta variables. With *m* items, :math:`t` = labels per labeler / *m*, and there are *m* ·
    labels per item / labels per labeler labelers. The scores are those of `urkullu_scores`.

    The truth of this model is :math:`p_i`; the class :math:`y_i` is one draw from it, and **the votes do not see that
    draw**. So given :math:`p_i` votes and truth are independent, and no noise model with one true class per item is
    exact.

    With scores of shape (n_classifiers, n_items), best classifier first, and no predictions. Parameters:
    ``probability`` (the p of each item), ``prior``, ``tpr``, ``fpr``, ``confusion``, ``participation`` (t) and
    ``disturbance`` (of each classifier).

    Parameters
    ----------
    n_items, n_classifiers : int. *m* and *k*; 1000 and 100 in the paper.
    labels_per_item, labels_per_labeler : float. Expected numbers of votes; items and labelers without a vote stay.
    case : str or (mean_tpr, mean_fpr)
        One of "extreme", "bad", "average", "good", "outstanding" (see `URKULLU_CASES`), or the means of the
        labelers' true and false positive rates, in (0.5, 1) and (0, 0.5).
    max_disturbance : float. The disturbance of the worst classifier.
    """
    n = check_integer(n_items, name="n_items", low=1)
    per_labeler = check_number(labels_per_labeler, name="labels_per_labeler", low=0.0, high=float(n))
    per_item = check_number(labels_per_item, name="labels_per_item", low=0.0)
    if per_labeler == 0 or per_item == 0:
        raise InvalidParameter(
            f"labels_per_item and labels_per_labeler must be positive, got {labels_per_item} and {labels_per_labeler}"
        )
    mean_tpr, mean_fpr = _rates(case)
    rng = as_generator(random_state)
    n_labelers, chance = max(1, round(n * per_item / per_labeler)), per_labeler / n
    probability = rng.beta(1.0, 1.0, n)
    truth = (rng.random(n) < probability).astype(np.int64)
    tpr = 0.5 + 0.5 * rng.beta(2.0, (4 * mean_tpr - 4) / (1 - 2 * mean_tpr), n_labelers)
    fpr = 0.5 * rng.beta(4 * mean_fpr / (1 - 2 * mean_fpr), 2.0, n_labelers)
    item, labeler = np.divmod(_bernoulli_positions(n * n_labelers, chance, rng), n_labelers)
    p = probability[item]
    vote = (rng.random(len(item)) < p * tpr[labeler] + (1 - p) * fpr[labeler]).astype(np.int64)
    scores = urkullu_scores(probability, n_classifiers=n_classifiers, max_disturbance=max_disturbance, random_state=rng)
    return Simulation(
        labels=build_labels(item, labeler, vote, (n, n_labelers, 2)),
        truth=truth,
        scores=scores,
        parameters={
            "probability": probability,
            "prior": np.array([0.5, 0.5]),
            "tpr": tpr,
            "fpr": fpr,
            "confusion": np.moveaxis(np.array([[1 - fpr, fpr], [1 - tpr, tpr]]), 2, 0),
            "participation": chance,
            "disturbance": _disturbance(n_classifiers, max_disturbance),
        },
    )


def urkullu_scores(
    probability: npt.ArrayLike,
    *,
    n_classifiers: int = 100,
    max_disturbance: float = 0.45,
    random_state: RandomState = None,
) -> Floats:
    r"""Scores of classifiers that know the truth more and more loosely (Urkullu et al. 2019, Section 4, step 3).

    .. math:: q_{di} = p_i\, U(1 - g_d, 1) + (1 - p_i)\, U(0, g_d), \qquad g_d = g_{\max} (d - 1)/(k - 1)

    The first classifier gives exactly :math:`p`; a single one has the disturbance :math:`g_{\max}`.

    Returns an array of shape (n_classifiers, n_items).

    Parameters
    ----------
    probability : array-like of shape (n_items,). P(class 1) of each item.
    """
    p = check_numbers(probability, name="probability")
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise InvalidParameter(f"probability must be one number in [0, 1] for each item, got shape {p.shape}")
    g = _disturbance(n_classifiers, max_disturbance)
    rng = as_generator(random_state)
    scores = np.empty((len(g), len(p)))
    for d, width in enumerate(g):
        scores[d] = p * (1 - width * rng.random(len(p))) + (1 - p) * width * rng.random(len(p))
    return scores


def _disturbance(n_classifiers: int, max_disturbance: float) -> Floats:
    k = check_integer(n_classifiers, name="n_classifiers", low=1)
    most = check_number(max_disturbance, name="max_disturbance", low=0.0, high=1.0)
    return np.linspace(0.0, most, k) if k > 1 else np.array([most])


def _rates(case: str | tuple[float, float]) -> tuple[float, float]:
    if isinstance(case, str):
        return URKULLU_CASES[check_choice(case, tuple(URKULLU_CASES), name="case")]
    means = check_numbers(case, name="case")
    if means.shape != (2,):
        raise InvalidParameter(f"case must be a name or (mean_tpr, mean_fpr), got {case!r:.60}")
    return (
        check_number(float(means[0]), name="mean_tpr", low=0.5, high=1.0, strict=True),
        check_number(float(means[1]), name="mean_fpr", low=0.0, high=0.5, strict=True),
    )


def _bernoulli_positions(n: int, chance: float, rng: np.random.Generator) -> Positions:
    """Where `n` independent Bernoulli trials succeed, in order, without drawing the failures."""
    blocks = [np.empty(0, dtype=np.int64)]
    last = -1
    while last < n - 1:
        expected = (n - 1 - last) * chance
        positions = last + np.cumsum(rng.geometric(chance, int(expected + 6 * np.sqrt(expected)) + 16))
        blocks.append(positions[positions < n])
        last = int(positions[-1])
    return np.concatenate(blocks)


def tars(
    *,
    n_items: int = 1000,
    n_labelers: int = 1,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike = (0.5, 0.5),
    means: npt.ArrayLike = ((0.0, 0.0), (1.0, 0.0)),
    scale: npt.ArrayLike = 1.0,
    noise_rates: npt.ArrayLike = 0.2,
    confusion: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> Simulation:
    r"""Features from one Gaussian per class, votes from workers' confusion matrices (Dolatshah et al. 2018).

    .. math::

        y_i \sim \mathrm{Cat}(\pi), \qquad
        x_i \mid y_i \sim \mathcal N\bigl(\mu_{y_i}, \mathrm{diag}(\sigma_{y_i}^2)\bigr), \qquad
        z_{it} \mid y_i \sim \mathrm{Cat}\bigl(q^{(t)}_{y_i}\bigr)

    The votes depend on the class alone, not on the features. The classifier that comes with the data is the best
    one possible: the class with the highest :math:`P(y \mid x)`; with the defaults, those of the paper, its population
    accuracy is :math:`\Phi(1/2) = 0.69`.

    With features, predictions of the best classifier and, for two classes, its P(y = 1 | x) as scores of shape (1,
    n_items). Parameters: ``prior``, ``means``, ``scale``, ``confusion``, ``posterior`` (P(y | x), n_items ×
    n_classes).

    M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
    Classification", PVLDB 12(4) (2018), Section 6.1.

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all vote.
    means : array-like of shape (n_classes, n_features)
    scale : number or array-like that fits `means`
        Standard deviations; an array of shape (n_classes, 1) gives each class its own.
    noise_rates : number or array-like of shape (n_classes,)
        P(vote ≠ truth | truth) of every labeler, the other classes being equally likely.
    confusion : array-like of shape (n_labelers, n_classes, n_classes) or (n_classes, n_classes), optional
        The labelers' confusion matrices, rows are the truth; used in place of `noise_rates`.
    """
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior)
    n_classes = len(pi)
    mu, sigma = _gaussians(means, scale, n_classes)
    if confusion is None:
        wrong = check_numbers(noise_rates, name="noise_rates")
        if wrong.shape not in ((), (n_classes,)) or ((wrong < 0) | (wrong > 1)).any():
            raise InvalidParameter(
                f"noise_rates must be one number in [0, 1] or one for each of {n_classes} classes, got "
                f"{noise_rates!r:.60}"
            )
        matrices = diagonal_confusion(np.broadcast_to(1 - wrong, (n_labelers, n_classes)), n_classes)
    else:
        matrices = check_confusion(confusion, (n_labelers, n_classes, n_classes), name="confusion")
    rng = as_generator(random_state)
    truth = draw_classes(pi, n, rng)
    features = mu[truth] + sigma[truth] * rng.standard_normal((n, mu.shape[1]))
    labels = draw_votes(matrices, truth, votes_per_item, rng)
    with np.errstate(divide="ignore"):
        log_prior = np.log(pi)
    distances = [(0.5 * ((features - m) / s) ** 2 + np.log(s)).sum(axis=1) for m, s in zip(mu, sigma, strict=True)]
    posterior = np.asarray(softmax(log_prior - np.stack(distances, axis=1), axis=1))
    return Simulation(
        labels=labels,
        truth=truth,
        predictions=posterior.argmax(axis=1),
        scores=posterior[:, 1][None] if n_classes == 2 else None,
        features=features,
        parameters={"prior": pi, "means": mu, "scale": sigma, "confusion": matrices, "posterior": posterior},
    )


def _gaussians(means: npt.ArrayLike, scale: npt.ArrayLike, n_classes: int) -> tuple[Floats, Floats]:
    mu, sigma = check_numbers(means, name="means"), check_numbers(scale, name="scale")
    if mu.ndim != 2 or len(mu) != n_classes:
        raise InvalidParameter(
            f"means must have the shape ({n_classes}, n_features), one row for each class of the prior, got {mu.shape}"
        )
    try:
        sigma = np.broadcast_to(sigma, mu.shape).copy()
    except ValueError:
        raise InvalidParameter(f"scale must be a number or fit the means, {mu.shape}, got {sigma.shape}") from None
    if (sigma <= 0).any():
        raise InvalidParameter(f"scale must be positive, got {sigma.min():g}")
    return mu, sigma


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

    Labeler *t* votes on an item with probability :math:`\eta_t`, drawn again until the item has a vote. Given the truth
    *and* the difficulty the votes are independent; the classifier is independent of both given the truth.

    With predictions. Parameters: ``prior``, ``classifier_confusion``, ``difficulty``, ``fallibility``,
    ``participation``.

    J. K. Su, "On Truthing Issues in Supervised Classification", JMLR 25 (2024), Section 5.1.

    Parameters
    ----------
    operating_point : (p_d, p_fa)
        The classifier's chance to predict 1 when the truth is 1 and when it is 0. Two classes only.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional
        The classifier's confusion matrix, rows are the truth; used in place of the operating point.
    difficulty : "uniform", (a, b), number, array or callable
        δ of the items: uniform on (0, 1), Beta(a, b) for a tuple, the same for all, one each, or what
        ``difficulty(rng, n_items)`` returns.
    fallibility, participation : number, (low, high) tuple or array
        φ and η of the labelers: the same for all, uniform on a range, or one each.

    Examples
    --------
    The main example of Section 5.2.1:

    >>> from trueup.simulate import su
    >>> su(prior=(0.8, 0.2), difficulty=(1, 5), fallibility=(0, 0.4), random_state=0).labels.n_items
    1000
    """
    n, n_labelers, pi = check_sizes(n_items, n_labelers, prior)
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
            f"an operating point describes two classes, got a prior of {n_classes}; pass `classifier_confusion=…`"
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
