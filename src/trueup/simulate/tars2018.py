"""TARS's simulator: Gaussian classes, workers with confusion matrices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_integer, check_numbers, check_prior
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    check_confusion,
    diagonal_confusion,
    draw_classes,
    draw_votes,
)


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
    one possible: the class with the highest :math:`P(y \mid x)` under the true parameters. With the means and
    variances that the paper prints (the defaults) its population accuracy is :math:`\Phi(1/2) = 0.69`.

    Parameters
    ----------
    n_items, n_labelers : int
    votes_per_item : int, optional
        Distinct labelers drawn at random for each item; by default all vote.
    prior : array-like of shape (n_classes,)
    means : array-like of shape (n_classes, n_features)
    scale : number or array-like that fits `means`
        Standard deviations; an array of shape (n_classes, 1) gives each class its own.
    noise_rates : number or array-like of shape (n_classes,)
        P(vote ≠ truth | truth) of every labeler, the other classes being equally likely. For two classes these are
        the paper's :math:`(r_{-1,+1}, r_{+1,-1})`, with -1 and +1 as classes 0 and 1.
    confusion : array-like of shape (n_labelers, n_classes, n_classes) or (n_classes, n_classes), optional
        The labelers' confusion matrices, rows are the truth; used in place of `noise_rates`.
    random_state : int, Generator or None

    Returns
    -------
    Simulation
        With features, predictions of the best classifier and, for two classes, its P(y = 1 | x) as scores of shape
        (1, n_items). Parameters: ``prior``, ``means``, ``scale``, ``confusion``, ``posterior``
        (P(y | x), n_items × n_classes).

    References
    ----------
    M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
    Classification", PVLDB 12(4) (2018), Section 6.1.

    Examples
    --------
    >>> from trueup.simulate import tars
    >>> data = tars(n_items=200, noise_rates=(0.4, 0.0), random_state=0)
    >>> data.features.shape, data.labels.n_votes
    ((200, 2), 200)
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior)
    n_classes = len(pi)
    mu, sigma = _gaussians(means, scale, n_classes)
    if confusion is None:
        matrices = _from_rates(noise_rates, n_labelers, n_classes)
    else:
        matrices = check_confusion(confusion, (n_labelers, n_classes, n_classes), name="confusion")
    rng = as_generator(random_state)

    truth = draw_classes(pi, n, rng)
    features = mu[truth] + sigma[truth] * rng.standard_normal((n, mu.shape[1]))
    labels = draw_votes(matrices, truth, votes_per_item, rng)
    posterior = _posterior(features, pi, mu, sigma)
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


def _from_rates(rates: npt.ArrayLike, n_labelers: int, n_classes: int) -> Floats:
    wrong = check_numbers(rates, name="noise_rates")
    if wrong.shape not in ((), (n_classes,)) or ((wrong < 0) | (wrong > 1)).any():
        raise InvalidParameter(
            f"noise_rates must be one number in [0, 1] or one for each of {n_classes} classes, got {rates!r:.60}"
        )
    return diagonal_confusion(np.broadcast_to(1 - wrong, (n_labelers, n_classes)), n_classes)


def _posterior(features: Floats, prior: Floats, means: Floats, scale: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        log_joint = np.tile(np.log(prior), (len(features), 1))
    for c in range(len(prior)):
        deviation = (features - means[c]) / scale[c]
        log_joint[:, c] -= (0.5 * deviation**2 + np.log(scale[c])).sum(axis=1)
    return np.asarray(softmax(log_joint, axis=1))
