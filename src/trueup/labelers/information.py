"""How much the votes of labelers tell of the class, in bits (Su 2024, Section 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import entr, expit, gammaln, xlogy

from trueup._base.types import Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_distribution,
    check_integer,
    check_level,
    check_number,
    check_prior,
    did_you_mean,
    preview,
)
from trueup.data.encoding import Vocabulary
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter, NotFitted
from trueup.noise.base import NoiseModel, TableModel
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.soft_truth import compositions
from trueup.posteriors.estimate import new_axes

Noise = NoiseModel | npt.ArrayLike
_LEVELS_OF_DIFFICULTY = 9  # quantiles that stand for the fitted difficulties of all items


@dataclass(frozen=True, eq=False)
class Channel:
    """P(state), P(class | state) and P(answer | labeler, state)."""

    weights: Floats  # (n_states,)
    state_class: Floats  # (n_states, n_classes)
    matrices: Floats  # (n_labelers, n_states, n_answers)
    average: Floats  # (n_states, n_answers): the matrix of an average labeler
    names: tuple[Hashable, ...]  # the labelers

    @property
    def prior(self) -> Floats:
        """P(class)."""
        return np.asarray(self.weights @ self.state_class)

    def at(self, positions: Sequence[int]) -> Channel:
        """Some of the labelers; a position may occur more than once."""
        return replace(
            self, matrices=self.matrices[list(positions)], names=tuple(self.names[int(k)] for k in positions)
        )

    def position(self, name: Hashable) -> int:
        """Where a labeler stands in `names`."""
        if name not in self.names:
            raise InvalidParameter(
                f"the noise model knows no labeler {name!r}, only {preview(self.names)}{did_you_mean(name, self.names)}"
            )
        return self.names.index(name)

    def averages(self, n: int) -> Channel:
        """`n` average labelers, independent given the state."""
        matrices = np.broadcast_to(self.average, (n, *self.average.shape))
        return replace(self, matrices=matrices, names=tuple(range(n)))


def symmetric_matrix(error: float | npt.ArrayLike, n_classes: int) -> Floats:
    """P(answer | class) of labelers who err with this probability, whatever the class, and then alike to all others."""
    rate = np.asarray(error, dtype=float)[..., None, None]
    same = np.eye(n_classes)
    return np.asarray(same * (1 - rate) + (1 - same) * rate / (n_classes - 1))


def channel_of(
    noise: Noise | Channel | None = None,
    *,
    labelers: Sequence[Hashable] | None = None,
    error: float | npt.ArrayLike | None = None,
    n_labelers: int | None = None,
    prior: npt.ArrayLike | None = None,
) -> Channel:
    """The channel of a noise model, of confusion matrices, or of symmetric errors."""
    if (noise is None) == (error is None):
        got = "both" if noise is not None else "neither"
        raise InvalidParameter(f"noise or error must be given, got {got}; pass a noise model, or e.g. `error=0.1`")
    if isinstance(noise, Channel):
        channel = noise
    elif isinstance(noise, NoiseModel):
        if prior is not None:
            raise InvalidParameter(f"a noise model brings its own prior, got prior={prior!r:.40} too; leave it out")
        channel = _of_model(noise)
    else:
        matrices = _symmetric(error, prior) if noise is None else _checked(noise)
        channel = _of_classes(matrices, check_prior(prior, n_classes=matrices.shape[1]), range(len(matrices)))
    if labelers is not None and n_labelers is not None:
        raise InvalidParameter("labelers or n_labelers may be given, got both; name labelers, or ask for average ones")
    if labelers is not None:
        if not len(labelers):
            raise InvalidParameter("labelers must name at least one labeler, got none")
        return channel.at([channel.position(name) for name in labelers])
    if n_labelers is None:
        return channel
    n = check_integer(n_labelers, name="n_labelers", low=1)
    if isinstance(noise, NoiseModel) or len(channel.names) == 1:
        return channel.averages(n)
    if len(channel.names) != n:
        what = "errors" if noise is None else "matrices"
        raise InvalidParameter(f"n_labelers must be {len(channel.names)}, the number of {what}, got {n}; leave it out")
    return channel


def _symmetric(error: float | npt.ArrayLike | None, prior: npt.ArrayLike | None) -> Floats:
    """The matrices of labelers who err with these probabilities."""
    try:
        rates = np.atleast_1d(np.asarray(error, dtype=float))
    except (TypeError, ValueError):
        rates = np.array([np.nan])
    if rates.ndim != 1 or not len(rates) or not ((rates >= 0) & (rates <= 1)).all():
        raise InvalidParameter(f"error must be a probability in [0, 1], or one for each labeler, got {error!r:.60}")
    return symmetric_matrix(rates, len(check_prior(prior)))


def _checked(matrices: npt.ArrayLike) -> Floats:
    """Confusion matrices (n_labelers, n_classes, n_answers)."""
    try:
        array = np.asarray(matrices, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim not in (2, 3) or not array.size or array.shape[-2] < 2:
        raise InvalidParameter(
            "noise must be a fitted noise model or matrices (n_labelers, n_classes, n_answers), got "
            f"{type(matrices).__name__} of shape {np.shape(array)}; rows are the truth"
        )
    return check_distribution(array if array.ndim == 3 else array[None], name="each row of the confusion matrices")


def _of_classes(matrices: Floats, prior: Floats, names: Iterable[Hashable], average: Floats | None = None) -> Channel:
    """States are the classes."""
    mean = np.asarray(matrices.mean(axis=0)) if average is None else average
    return Channel(prior, np.eye(len(prior)), matrices, mean, tuple(names))


def _of_model(noise: NoiseModel) -> Channel:
    """The channel of a noise model that is fitted or known."""
    if not hasattr(noise, "prior_"):
        raise NotFitted(f"{type(noise).__name__} is not fitted; call fit(labels) first")
    names = tuple(noise.labelers_.tolist()) if hasattr(noise, "labelers_") else None
    if isinstance(noise, TableModel):
        matrices = noise.confusion_ if noise.confusion_.ndim == 3 else noise.confusion_[None]
        if names is None or len(names) != len(matrices):  # known matrices that have seen no labels
            matrices_of = noise.parameters().get("matrices")
            names = tuple(matrices_of) if isinstance(matrices_of, Mapping) else tuple(range(len(matrices)))
        return _of_classes(matrices, noise.prior_, names, noise.pooled_)
    if isinstance(noise, GLAD):
        return channel_of_levels(expit(np.outer(noise.ability_, _quantiles(noise.easiness_))), noise.prior_, names)
    if isinstance(noise, Difficulty):
        known = noise.difficulty is not None
        difficulty = _values(noise.difficulty if known else noise.difficulty_)
        fallibility = _values(noise.fallibility if known else noise.fallibility_)
        sees = np.outer(1 - fallibility, 1 - _quantiles(difficulty))
        if names is None and isinstance(noise.fallibility, Mapping):
            names = tuple(noise.fallibility)
        return channel_of_levels(sees + (1 - sees) / len(noise.prior_), noise.prior_, names)
    best = getattr(noise, "best_", None)
    hint = f"pass its best model, noise.best_ ({type(best).__name__})" if best is not None else "use DawidSkene"
    raise InvalidParameter(f"a noise model with answer probabilities is needed, got {type(noise).__name__}; {hint}")


def _values(values: Any) -> Floats:
    return np.asarray(list(values.values()) if isinstance(values, Mapping) else values, dtype=float)


def _quantiles(values: Floats) -> Floats:
    """Equally likely levels that stand for all items."""
    n = min(_LEVELS_OF_DIFFICULTY, len(values))
    return np.asarray(np.quantile(values, (np.arange(n) + 0.5) / n))


def channel_of_levels(right: Floats, prior: Floats, names: Sequence[Hashable] | None = None) -> Channel:
    """States are pairs of a class and one of several equally likely levels of difficulty."""
    n_labelers, n_levels = right.shape
    n_classes = len(prior)
    by_class = symmetric_matrix(1 - right, n_classes)  # labelers × levels × classes × answers
    matrices = by_class.transpose(0, 2, 1, 3).reshape(n_labelers, n_classes * n_levels, n_classes)
    return Channel(
        np.repeat(prior / n_levels, n_levels),
        np.repeat(np.eye(n_classes), n_levels, axis=0),
        np.ascontiguousarray(matrices),
        np.asarray(matrices.mean(axis=0)),
        tuple(range(n_labelers)) if names is None else tuple(names),
    )


Method = Literal["enumeration", "monte-carlo"]
MAX_OUTCOMES = 2**20
_MAX_CELLS = 2**24  # of the table outcomes × states: 128 MB
_STATES_AT_ONCE = 20_000


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of the votes on one item: their probabilities and P(class | outcome)."""

    weights: Floats  # (n,)
    posterior: Floats  # (n, n_classes)
    method: Method

    def mean(self, values: Floats) -> tuple[float, float]:
        """Mean of a function of the outcome, and its Monte Carlo standard error (0 where nothing is drawn)."""
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if self.method == "monte-carlo" else 0.0
        return float(self.weights @ values), error


def entropy(probabilities: Floats) -> Floats:
    """Bits along the last axis."""
    return np.asarray(entr(probabilities).sum(axis=-1) / np.log(2))


def list_outcomes(
    channel: Channel, *, max_outcomes: int = MAX_OUTCOMES, n_draws: int = 50_000, random_state: RandomState = 0
) -> Outcomes:
    """All outcomes of the votes of a panel, or a sample of them."""
    n_states, n_answers = channel.matrices.shape[1:]
    flat, copies = np.unique(channel.matrices.reshape(len(channel.matrices), -1), axis=0, return_counts=True)
    total = prod(comb(int(n) + n_answers - 1, n_answers - 1) for n in copies)
    if total > max_outcomes or total * n_states > _MAX_CELLS:
        return _drawn(channel, n_draws, as_generator(random_state))
    table = np.ones((1, n_states))
    for matrix, n in zip(flat.reshape(-1, n_states, n_answers), copies.tolist(), strict=True):
        counts = compositions(n, n_answers)  # how many of the n labelers with this matrix give each answer
        log_each = np.stack([xlogy(counts, row).sum(axis=1) for row in matrix], axis=1)
        both = (table[:, None, :] * np.exp(_log_ways(counts)[:, None] + log_each)[None]).reshape(-1, n_states)
        table = both[both.any(axis=1)]  # outcomes that cannot happen are left out
    joint = (table * channel.weights) @ channel.state_class
    joint = joint[joint.sum(axis=1) > 0]
    weights = joint.sum(axis=1)
    return Outcomes(weights, joint / weights[:, None], "enumeration")


def _log_ways(counts: npt.NDArray[np.int64]) -> Floats:
    """Log of in how many ways labelers can give answers so often."""
    return np.asarray(gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1))


def _drawn(channel: Channel, n_draws: int, rng: np.random.Generator) -> Outcomes:
    """Draws of the votes, in blocks; the posterior of each draw is exact."""
    with np.errstate(divide="ignore"):
        log_matrices, log_weights = np.log(channel.matrices), np.log(channel.weights)
    cumulative = channel.matrices.cumsum(axis=2)
    blocks = []
    for start in range(0, n_draws, _STATES_AT_ONCE):
        n = min(_STATES_AT_ONCE, n_draws - start)
        state = rng.choice(len(channel.weights), size=n, p=channel.weights / channel.weights.sum())
        log_joint = np.tile(log_weights, (n, 1))
        for log_matrix, chances in zip(log_matrices, cumulative, strict=True):
            # The last answer takes what rounding leaves of the sum.
            log_joint += log_matrix.T[(chances[:, :-1][state] < rng.random(n)[:, None]).sum(axis=1)]
        states = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        blocks.append(states / states.sum(axis=1, keepdims=True) @ channel.state_class)
    return Outcomes(np.full(n_draws, 1 / n_draws), np.concatenate(blocks), "monte-carlo")


@dataclass(frozen=True)
class Information:
    """Mutual information of the votes on an item and its class.

    Attributes
    ----------
    bits : float. What ``float(…)`` gives.
    error : float. Monte Carlo standard error; 0 where all outcomes were listed.
    method : {"enumeration", "monte-carlo"}
    prior : array of shape (n_classes,). P(class).
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
    kept as an answer is one more symbol. ``float(…)`` of it is the number of bits.

    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Section 4.

    Parameters
    ----------
    noise : NoiseModel or array, optional
        A fitted or known noise model, or matrices of shape (n_labelers, n_classes, n_answers) or (n_classes,
        n_answers), rows the truth.
    labelers : sequence, optional. Only these labelers.
    error : float or array of shape (n_labelers,), optional
        In place of `noise`: the probability of a wrong label, whatever the class; errors go to all other classes alike.
    n_labelers : int, optional. That many labelers of this error or matrix; with a noise model, that many average ones.
    prior : array of shape (n_classes,), optional
        P(class) for matrices and errors; uniform by default. A noise model brings its own.
    max_outcomes : int. Beyond so many outcomes, they are drawn.
    n_draws : int. Draws then.
    random_state : int, Generator or None. For the draws; the default gives the same number each time.
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
    return Information(bits, error, outcomes.method, channel.prior, len(channel.names))


_LEVELS = 41  # of difficulty, where errors correlate
_STEP = 1e-20  # of the complex-step derivative, which has no rounding error to trade against


def check_model_error(error: float, n_classes: int) -> float:
    """The model's rough error: above 0, and below that of a guess."""
    rate = check_number(error, name="error", low=0.0, high=1.0, strict=True)
    if rate >= 1 - 1 / n_classes:
        raise InvalidParameter(f"error must be below {1 - 1 / n_classes:.3g}, that of a guess, got {rate:g}; lower it")
    return rate


def item_variance(outcomes: Outcomes, error: float) -> float:
    """Variance of the best estimate of the model's error, times the number of items; the noise is known.

    It is the inverse Fisher information of one item. Perfect labels give e(1 − e). One labeler of error ε and two even
    classes give A(1 − A)/(1 − 2ε)² with the apparent error A = e + ε − 2eε: the formula of Lam and Stork (2003).
    """
    wrong = (1 - outcomes.posterior) / (outcomes.posterior.shape[1] - 1)
    slope = wrong - outcomes.posterior
    chance = outcomes.posterior + error * slope
    informative = slope != 0
    each = np.divide(slope**2, chance, out=np.zeros_like(chance), where=informative).sum(axis=1)
    information = outcomes.mean(each)[0]
    return 1 / information if information > 1e-12 else np.inf


def explained_share(outcomes: Outcomes, error: float) -> float:
    """ρ², the part of the variance of "the model is wrong here" that the votes explain.

    It is the square of the correlation of w, 1 where the model is wrong, and f = 1 − q_ŷ, what the votes say of it. The
    regression of w on f in the vetted items is the two-phase estimator (Cochran 1977, 12.6), and PPI++ with its best
    weight (Angelopoulos, Duchi and Zrnic 2023).
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

    The labelers' error ε, which all share, and the prior are estimated from the same votes and predictions, so the
    entry of e in the inverse of the Fisher matrix of (e, ε, π) counts. With a single vote on an item there are two
    raters, the labeler and the model, from whom rates cannot be known: infinite.
    """
    if n_votes < 2:
        return np.inf
    n_classes = len(prior)
    counts = compositions(n_votes, n_classes)
    ways = np.exp(_log_ways(counts))

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
    return np.inf if np.linalg.cond(fisher) > 1e10 else float(np.linalg.inv(fisher)[0, 0])


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
    model_error : float. The model's rough error.
    level : float. Of the interval.

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


# ------------------ What one more vote would tell

_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class MarginalValue:
    """Bits that one more vote tells.

    Attributes
    ----------
    gains : array of shape (max_votes,). What the first, the second, … vote on an item tells beyond those before it.
    per_item : array of shape (n_items,) or None
        What one more vote is expected to tell of each item, given the votes it has.
    items : array or None. The items, in the order of `per_item`.
    """

    gains: Floats
    per_item: Floats | None = field(default=None, repr=False)
    items: Vocabulary | None = field(default=None, repr=False)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a vote (vote, gain, total), or, where labels were given, one row an item (item, gain)."""
        if self.per_item is not None and self.items is not None:
            return make_frame({"item": self.items, "gain": self.per_item}, backend=backend)
        votes = np.arange(1, len(self.gains) + 1)
        return make_frame({"vote": votes, "gain": self.gains, "total": self.gains.cumsum()}, backend=backend)

    def plot(self, ax: Any = None) -> Any:
        """Bits of the first, the second, … vote; returns the Axes."""
        ax = new_axes(ax, purpose="MarginalValue.plot()")
        ax.bar(np.arange(1, len(self.gains) + 1), self.gains, color="tab:blue", alpha=0.6)
        ax.set_xlabel("vote on an item")
        ax.set_ylabel("bits it adds")
        return ax


def marginal_value(
    noise: Noise | None = None,
    labels: Labels | None = None,
    *,
    labeler: Hashable | None = None,
    error: float | None = None,
    prior: npt.ArrayLike | None = None,
    max_votes: int = 10,
    random_state: RandomState = 0,
) -> MarginalValue:
    """What one more vote tells: on a fresh item, and on each item given the votes it has.

    The (k+1)-th vote adds I(Z₁ … Z_{k+1}; Y) − I(Z₁ … Z_k; Y) bits. On an item whose votes so far leave the posterior
    p(y), one more vote takes away H(p) − Σ_a p(a) H(Y | a) bits in expectation. With difficulty in the model (`GLAD`,
    `Difficulty`) each further vote adds less information, since the earlier ones already show how hard the item is.

    Parameters
    ----------
    noise : NoiseModel or array. As in `mutual_information`.
    labels : Labels, optional. Items with the votes they have; needs a noise model.
    labeler : optional. Whose vote; by default that of an average labeler.
    error, prior
        In place of `noise`: symmetric labelers of this error.
    max_votes : int. How many votes `gains` goes up to.
    random_state : int, Generator or None. Where the information must be drawn.
    """
    n = check_integer(max_votes, name="max_votes", low=1)
    channel = channel_of(noise, error=error, prior=prior)
    matrix = channel.average if labeler is None else channel.matrices[channel.position(labeler)]
    panels = [replace(channel, average=matrix).averages(k) for k in range(1, n + 1)]
    totals = [information_of(panel, list_outcomes(panel, random_state=random_state)).bits for panel in panels]
    gains = np.diff(totals, prepend=0.0)
    if labels is None:
        return MarginalValue(gains)
    if not isinstance(noise, NoiseModel):
        raise InvalidParameter("labels need a fitted noise model that knows them, got none; pass noise=tu.noise.fit(…)")
    if not isinstance(labels, Labels):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}")
    if len(matrix) != labels.n_classes:  # levels of difficulty are averaged out
        share = channel.weights[:, None] * channel.state_class
        matrix = (share / share.sum(axis=0)).T @ matrix
    posterior = noise.posterior(labels)
    per_item = np.empty(len(posterior))
    for start in range(0, len(posterior), _CHUNK):  # the expected fall of the entropy of the class, in blocks of items
        both = posterior[start : start + _CHUNK, :, None] * matrix
        known = entropy(both.sum(axis=2)) + entropy(both.sum(axis=1))
        per_item[start : start + _CHUNK] = np.maximum(known - entropy(both.reshape(len(both), -1)), 0.0)
    per_item[labels.gold_codes >= 0] = 0.0  # nothing is left to know
    return MarginalValue(gains, per_item, labels.items)


def equivalent_error(
    information: Information | float, prior: npt.ArrayLike | None = None, *, n_labelers: int = 1
) -> float:
    """The error of the single labeler who would tell as much: ε′ with I(Z; Y | ε′) = `information`.

    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Sections 4.2 and 4.3 (Figures 7 and 8).

    Parameters
    ----------
    information : Information or float. What `mutual_information` gives, or bits.
    prior : array of shape (n_classes,), optional
        P(class); taken from `information` where it has one, else uniform over two classes.
    n_labelers : int. Ask for the error that each of so many labelers may have.
    """
    if prior is None and isinstance(information, Information):
        prior = information.prior
    pi = check_prior(prior)
    n = check_integer(n_labelers, name="n_labelers", low=1)
    most = float(entropy(pi))
    bits = check_number(float(information), name="information", low=0.0)
    if bits > most + 1e-9:
        raise InvalidParameter(
            f"information must be at most {most:.4g} bits, all there is to know, got {bits:.6g}; check the prior"
        )
    chance = 1 - 1 / len(pi)
    if bits >= most - 1e-12:
        return 0.0
    if bits <= 1e-12:
        return chance
    return float(scipy.optimize.brentq(lambda e: _bits(e, n, pi) - bits, 0.0, chance, xtol=1e-12))


def equivalent_labelers(
    *, expert_error: float, labeler_error: float, prior: npt.ArrayLike | None = None, max_labelers: int = 100_000
) -> int:
    """How many mediocre labelers tell at least as much as one expert: the least T with I(T, ε) ≥ I(1, ε′).

    Labelers are symmetric and independent given the class.

    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Section 4.3 (Figure 8).

    Parameters
    ----------
    expert_error, labeler_error : float. Probabilities of a wrong label; the labeler's is below that of a guess.
    prior : array of shape (n_classes,), optional. P(class); two even classes by default.
    max_labelers : int. Where to stop.
    """
    pi = check_prior(prior)
    chance = 1 - 1 / len(pi)
    check_integer(max_labelers, name="max_labelers", low=1)
    expert = check_number(expert_error, name="expert_error", low=0.0, high=1.0)
    labeler = check_number(labeler_error, name="labeler_error", low=0.0, high=1.0)
    if labeler >= chance:
        raise InvalidParameter(f"labeler_error must be below {chance:.3g}, that of a guess, got {labeler:g}; lower it")
    if expert == 0 < labeler:
        raise InvalidParameter("expert_error must be above 0, got 0; no number of labelers who err equals that")
    enough = _bits(expert, 1, pi) * (1 - 1e-12)  # an equal labeler is worth an expert, whatever rounding says
    low, high = 0, 1
    while _bits(labeler, high, pi) < enough:
        if high >= max_labelers:
            raise InvalidParameter(
                f"more than max_labelers={max_labelers} labelers of error {labeler:g} equal an expert of error "
                f"{expert:g}; raise it"
            )
        low, high = high, min(2 * high, max_labelers)
    return low + 1 + bisect_left(range(low + 1, high), enough, key=lambda n: _bits(labeler, n, pi))


def _bits(error: float, n_labelers: int, prior: Floats) -> float:
    return float(mutual_information(error=error, n_labelers=n_labelers, prior=prior))
