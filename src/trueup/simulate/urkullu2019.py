"""Urkullu's simulator: a probabilistic truth, sparse labelers and many classifiers of graded quality."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_number, check_numbers
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import Simulation, build_labels

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
        \mathrm{TPR}_j &\sim \tfrac12 + \tfrac12 \mathrm{Beta}\Bigl(2, \tfrac{4\mu_T - 4}{1 - 2\mu_T}\Bigr), \qquad
        \mathrm{FPR}_j \sim \tfrac12 \mathrm{Beta}\Bigl(\tfrac{4\mu_F}{1 - 2\mu_F}, 2\Bigr) \\
        z_{ij} &\sim \mathrm{Bernoulli}\bigl(p_i \mathrm{TPR}_j + (1 - p_i) \mathrm{FPR}_j\bigr)
            \text{ with probability } t, \text{ otherwise no vote}

    With *m* items, :math:`t` = labels per labeler / *m*, and there are *m* · labels per item / labels per labeler
    labelers. The scores are those of `urkullu_scores`.

    The truth of this model is :math:`p_i`. The class :math:`y_i` is one draw from it, which the paper's supervised
    reference evaluates with; **the votes do not see that draw**, each is made as if from a draw of its own. So given
    :math:`p_i` votes and truth are independent, and no noise model with one true class per item is exact.

    Parameters
    ----------
    n_items, n_classifiers : int
        *m* and *k*; 1000 and 100 in the paper.
    labels_per_item, labels_per_labeler : float
        Expected numbers of votes; the paper takes 3, 5, 9, 15, 27 and 45 for both. Items and labelers without a vote
        occur, and stay.
    case : str or (mean_tpr, mean_fpr)
        One of "extreme", "bad", "average", "good", "outstanding" (see `URKULLU_CASES`), or the means of the
        labelers' true and false positive rates, in (0.5, 1) and (0, 0.5).
    max_disturbance : float
        The disturbance of the worst classifier.
    random_state : int, Generator or None

    Returns
    -------
    Simulation
        With scores of shape (n_classifiers, n_items), best classifier first, and no predictions. Parameters:
        ``probability`` (the p of each item), ``prior``, ``tpr``, ``fpr``, ``confusion``, ``participation`` (t) and
        ``disturbance`` (of each classifier).

    References
    ----------
    Urkullu et al. (2019), on the evaluation and selection of models with crowdsourced labels, Section 4.

    Examples
    --------
    >>> from trueup.simulate import urkullu
    >>> data = urkullu(labels_per_item=9, labels_per_labeler=45, case="good", random_state=0)
    >>> data.labels.n_labelers, data.scores.shape
    (200, (100, 1000))
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
    n_labelers = max(1, round(n * per_item / per_labeler))
    chance = per_labeler / n

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
            "confusion": np.stack([np.stack([1 - fpr, fpr], axis=1), np.stack([1 - tpr, tpr], axis=1)], axis=1),
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

    Parameters
    ----------
    probability : array-like of shape (n_items,)
        P(class 1) of each item.
    n_classifiers : int
    max_disturbance : float in [0, 1]
    random_state : int, Generator or None

    Returns
    -------
    array of shape (n_classifiers, n_items)
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
