"""How much the votes of labelers tell of the class, in bits (Su 2024, Section 4)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import gammaln

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_integer, check_level, check_number
from trueup.estimators.published.tars2018 import compositions
from trueup.exceptions import InvalidParameter
from trueup.labelers.channel import (
    MAX_OUTCOMES,
    Channel,
    Method,
    Noise,
    Outcomes,
    channel_of,
    channel_of_levels,
    entropy,
    list_outcomes,
)


@dataclass(frozen=True)
class Information:
    """Mutual information of the votes on an item and its class.

    Attributes
    ----------
    bits : float
        What ``float(…)`` gives.
    error : float
        Monte Carlo standard error; with merging, the most that `bits` is too small; 0 where it is exact.
    method : {"enumeration", "merging", "monte-carlo"}
    prior : array of shape (n_classes,)
        P(class).
    n_labelers : int
    """

    bits: float
    error: float
    method: Method
    prior: Floats = field(repr=False, compare=False)
    n_labelers: int

    def __float__(self) -> float:
        return self.bits

    @property
    def exact(self) -> bool:
        """Whether all outcomes were enumerated."""
        return self.method == "enumeration"

    @property
    def share(self) -> float:
        """The part of the uncertainty of the class that the votes take away, in [0, 1]."""
        most = float(entropy(self.prior))
        return self.bits / most if most > 0 else float("nan")

    def __repr__(self) -> str:
        about = "" if self.exact else f" ± {self.error:.2g} ({self.method})"
        return f"Information({self.bits:.4f}{about} of {float(entropy(self.prior)):.4f} bits)"


def mutual_information(
    noise: Noise | None = None,
    *,
    labelers: Sequence[Hashable] | None = None,
    error: float | npt.ArrayLike | None = None,
    n_labelers: int | None = None,
    prior: npt.ArrayLike | None = None,
    max_outcomes: int = MAX_OUTCOMES,
    n_draws: int = 50_000,
    random_state: RandomState = 0,
) -> Information:
    r"""How many bits the votes of a set of labelers tell of the class of one item.

    .. math::

        I(Z; Y) = \sum_{z, y} p(z, y) \log_2 \frac{p(z, y)}{p(z)\,\pi(y)} = H(\pi) - \sum_z p(z)\, H(Y \mid z)

    Every labeler of the set votes on the item. Labelers are independent given the class or, with `GLAD` and
    `Difficulty`, given the class and the difficulty of the item, so that they err together. An abstention
    kept as an answer is one more symbol. With two classes and one error rate this is the binary symmetric broadcast
    channel of [1]_.

    Parameters
    ----------
    noise : NoiseModel or array, optional
        A fitted or known noise model, or matrices of shape (n_labelers, n_classes, n_answers) or (n_classes,
        n_answers), rows the truth.
    labelers : sequence, optional
        Only these labelers.
    error : float or array of shape (n_labelers,), optional
        In place of `noise`: the probability of a wrong label, whatever the class; errors go to all other classes alike.
    n_labelers : int, optional
        That many labelers of this error or matrix; with a noise model, that many average ones.
    prior : array of shape (n_classes,), optional
        P(class) for matrices and errors; uniform by default. A noise model brings its own.
    max_outcomes : int
        Beyond so many outcomes, outcomes are merged (two classes, independent labelers) or drawn.
    n_draws : int
        Draws in the latter case.
    random_state : int, Generator or None
        For the draws; the default gives the same number each time.

    Returns
    -------
    Information
        ``float(…)`` of it is the number of bits.

    References
    ----------
    .. [1] Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Section 4.

    Examples
    --------
    >>> import trueup as tu
    >>> round(float(tu.labelers.mutual_information(error=0.1, prior=[0.6, 0.4])), 3)
    0.512
    >>> tu.labelers.mutual_information(error=0.1, n_labelers=5, prior=[0.6, 0.4])
    Information(0.9288 of 0.9710 bits)
    """
    check_integer(max_outcomes, name="max_outcomes", low=1)
    check_integer(n_draws, name="n_draws", low=2)
    channel = channel_of(noise, labelers=labelers, error=error, n_labelers=n_labelers, prior=prior)
    outcomes = list_outcomes(channel, max_outcomes=max_outcomes, n_draws=n_draws, random_state=random_state)
    return information_of(channel, outcomes)


def information_of(channel: Channel, outcomes: Outcomes) -> Information:
    """The mutual information from the outcomes of a channel."""
    most = float(entropy(channel.prior))
    left, error = outcomes.mean(entropy(outcomes.posterior))
    bits = float(np.clip(most - left, 0.0, most))
    lost = min(outcomes.lost, most - bits)
    return Information(bits, max(error, lost), outcomes.method, channel.prior, channel.n_labelers)


_LEVELS = 41  # of difficulty, where errors correlate
_STEP = 1e-20  # of the complex-step derivative, which has no rounding error to trade against


def check_model_error(error: float, n_classes: int) -> float:
    """The model's rough error: above 0, and below that of a guess."""
    rate = check_number(error, name="error", low=0.0, high=1.0, strict=True)
    if rate >= 1 - 1 / n_classes:
        raise InvalidParameter(
            f"error must be below {1 - 1 / n_classes:.3g}, what a guess among {n_classes} classes has, got {rate:g}"
        )
    return rate


def item_variance(outcomes: Outcomes, error: float) -> float:
    r"""Variance of the best estimate of the model's error, times the number of items; the noise is known.

    The inverse Fisher information of one item,

    .. math::

        J = \sum_z p(z) \sum_{\hat y} \frac{d_{\hat y}^2}{p(\hat y \mid z)}, \qquad
        d_{\hat y} = \frac{1 - q_{\hat y}}{C - 1} - q_{\hat y}.

    Perfect labels give e(1 − e). One labeler of error ε and two even classes give A(1 − A)/(1 − 2ε)² with the apparent
    error A = e + ε − 2eε, which is the formula of Lam and Stork (2003).

    Examples
    --------
    >>> one = list_outcomes(channel_of(error=0.2))
    >>> round(item_variance(one, 0.1), 4), round(0.26 * 0.74 / 0.6**2, 4)
    (0.5344, 0.5344)
    """
    wrong = (1 - outcomes.posterior) / (outcomes.posterior.shape[1] - 1)
    slope = wrong - outcomes.posterior
    chance = outcomes.posterior + error * slope
    informative = slope != 0
    each = np.divide(slope**2, chance, out=np.zeros_like(chance), where=informative).sum(axis=1)
    information = outcomes.mean(each)[0]
    return 1 / information if information > 1e-12 else np.inf


def explained_share(outcomes: Outcomes, error: float) -> float:
    r"""ρ², the part of the variance of "the model is wrong here" that the votes explain.

    w is 1 where the model is wrong, and f = 1 − q_ŷ is what the votes say of it. ρ is their correlation. Vet m of n
    items at random, and correct the mean of f by the regression of w on f: the variance of the estimate is

    .. math::

        e(1 - e) \left(\frac{1 - \rho^2}{m} + \frac{\rho^2}{n}\right),

    the two-phase regression estimator (Cochran 1977, 12.6), which is PPI++ with its best weight (Angelopoulos, Duchi
    and Zrnic 2023). It holds whether or not votes err independently; only its width depends on how good f is.

    Examples
    --------
    >>> round(explained_share(list_outcomes(channel_of(error=0.2, n_labelers=5)), 0.1), 3)
    0.605
    """
    doubt = 1 - outcomes.posterior
    wrong = error * doubt / (doubt.shape[1] - 1)
    chance = (1 - error) * outcomes.posterior + wrong
    mean = outcomes.mean((chance * doubt).sum(axis=1))[0]
    variance = outcomes.mean((chance * doubt**2).sum(axis=1))[0] - mean**2
    covariance = outcomes.mean((wrong * doubt).sum(axis=1))[0] - mean * error
    return float(np.clip(covariance**2 / (variance * error * (1 - error)), 0.0, 1.0)) if variance > 1e-15 else 0.0


def learned_variance(*, n_votes: int, labeler_error: float, error: float, prior: Floats) -> float:
    """Variance of the best estimate of the model's error, times the number of items; the noise is learned too.

    The labelers' error ε and the prior are estimated from the same votes and predictions, so the entry of e in the
    inverse of the Fisher matrix of (e, ε, π) counts. Labelers share one ε here. To first order labelers with rates of
    their own cost the same: each rate is learned from fewer votes, and each matters less by the same factor. A single
    vote on an item leaves two raters, the labeler and the model, from whom rates cannot be known: infinite.

    Examples
    --------
    >>> learned_variance(n_votes=1, labeler_error=0.2, error=0.1, prior=np.array([0.5, 0.5]))
    inf
    >>> round(learned_variance(n_votes=5, labeler_error=0.2, error=0.1, prior=np.array([0.5, 0.5])), 4)
    0.1265
    """
    if n_votes < 2:
        return np.inf
    n_classes = len(prior)
    counts = compositions(n_votes, n_classes)
    ways = np.exp(gammaln(n_votes + 1) - gammaln(counts + 1).sum(axis=1))

    def chances(theta: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """P(votes, prediction) at (e, ε, the prior but for its last class)."""
        pi = np.append(theta[2:], 1 - theta[2:].sum())
        right, wrong = 1 - theta[1], theta[1] / (n_classes - 1)
        votes = ways[:, None] * pi * right**counts * wrong ** (n_votes - counts)
        same = np.eye(n_classes)
        predicts = same * (1 - theta[0]) + (1 - same) * theta[0] / (n_classes - 1)
        return np.asarray((votes @ predicts).ravel())

    point = np.concatenate([[error, labeler_error], prior[:-1]])
    at = chances(point)
    steps = point + 1j * _STEP * np.eye(len(point))
    slopes = np.stack([chances(step).imag / _STEP for step in steps])
    fisher = (slopes / at) @ slopes.T
    if np.linalg.cond(fisher) > 1e10:
        return np.inf
    return float(np.linalg.inv(fisher)[0, 0])


def expected_width(
    noise: Noise | Channel | None = None,
    *,
    n_items: int,
    model_error: float,
    labeler_error: float | None = None,
    n_labelers: int | None = None,
    prior: Floats | None = None,
    level: float = 0.95,
) -> float:
    """Expected width of the interval of a model's accuracy when every item gets the votes of these labelers.

    The width is 2 z √(v / n), v the inverse Fisher information of one item about the model's error. The noise is known,
    and the model errs independently of the votes given the class.

    Parameters
    ----------
    noise, n_labelers, prior
        As in `mutual_information`; or `labeler_error` for symmetric labelers.
    n_items : int
    model_error : float
        The model's rough error.
    level : float
        Of the interval.

    Examples
    --------
    >>> import trueup as tu
    >>> round(tu.labelers.expected_width(labeler_error=0.2, n_labelers=5, n_items=1000, model_error=0.1), 4)
    0.0438
    """
    channel = channel_of(noise, error=labeler_error, n_labelers=n_labelers, prior=prior)
    check_integer(n_items, name="n_items", low=1)
    rate = check_model_error(model_error, channel.state_class.shape[1])
    variance = item_variance(list_outcomes(channel), rate)
    return width_of(variance, n_items, level)


def width_of(variance: float, n_items: float, level: float) -> float:
    """The width of a normal interval whose estimate has this variance on one item."""
    return 2 * float(scipy.stats.norm.ppf((1 + check_level(level)) / 2)) * float(np.sqrt(variance / n_items))


def votes_channel(n_votes: int, labeler_error: float, prior: Floats, correlation: float = 0.0) -> Channel:
    """A channel of `n_votes` symmetric labelers, whose errors on an item correlate given its class.

    Correlation comes from difficulty: the error rate of an item is drawn from the Beta distribution with mean
    `labeler_error` under which two errors have this correlation, so the number of wrong votes is beta-binomial.
    """
    rates = np.array([labeler_error])
    if correlation > 0 and 0 < labeler_error < 1:
        strength = (1 - correlation) / correlation
        levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
        rates = scipy.stats.beta.ppf(levels, labeler_error * strength, (1 - labeler_error) * strength)
    return channel_of_levels(1 - np.broadcast_to(rates, (n_votes, len(rates))), prior)
