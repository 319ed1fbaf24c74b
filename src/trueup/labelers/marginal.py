"""What one more vote would tell."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_integer, check_number, check_prior
from trueup.data.encoding import Vocabulary
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.channel import Channel, Noise, channel_of, entropy, list_outcomes
from trueup.labelers.information import Information, information_of, mutual_information
from trueup.noise.base import NoiseModel
from trueup.posteriors.estimate import new_axes

_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class MarginalValue:
    """Bits that one more vote tells.

    Attributes
    ----------
    gains : array of shape (max_votes,)
        What the first, the second, … vote on an item tells beyond those before it.
    per_item : array of shape (n_items,) or None
        What one more vote is expected to tell of each item, given the votes it has.
    items : array or None
        The items, in the order of `per_item`.
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
    r"""What one more vote tells: on a fresh item, and on each item given the votes it has.

    The (k+1)-th vote adds I(Z₁ … Z_{k+1}; Y) − I(Z₁ … Z_k; Y) bits. On an item whose votes so far leave the posterior
    p(y), one more vote takes away in expectation

    .. math::

        H(p) - \sum_a p(a)\, H(Y \mid a), \qquad p(y, a) = p(y)\, \theta[y, a]

    bits. The gains of a fresh item are in terms of its difficulty where the model has one (`GLAD`, `Difficulty`): then
    a vote tells less and less, since those before have already told how hard the item is.

    Parameters
    ----------
    noise : NoiseModel or array
        As in `mutual_information`.
    labels : Labels, optional
        Items with the votes they have; needs a noise model.
    labeler : optional
        Whose vote; by default that of an average labeler.
    error, prior
        In place of `noise`: symmetric labelers of this error.
    max_votes : int
        How many votes `gains` goes up to.
    random_state : int, Generator or None
        Where the information must be drawn.

    Examples
    --------
    >>> import trueup as tu
    >>> tu.labelers.marginal_value(error=0.2, max_votes=4).gains.round(3)
    array([0.278, 0.182, 0.133, 0.097])
    """
    n = check_integer(max_votes, name="max_votes", low=1)
    channel = channel_of(noise, error=error, prior=prior)
    matrix = channel.average if labeler is None else channel.matrices[channel.position(labeler)]
    alike = Channel(channel.weights, channel.state_class, matrix[None], matrix, (labeler,))
    panels = [alike.averages(k) for k in range(1, n + 1)]
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
    per_item = _expected_gain(noise.posterior(labels), matrix)
    per_item[labels.gold_codes >= 0] = 0.0  # nothing is left to know
    return MarginalValue(gains, per_item, labels.items)


def _expected_gain(posterior: Floats, matrix: Floats) -> Floats:
    """Expected fall of the entropy of the class, in blocks of items."""
    gains = np.empty(len(posterior))
    for start in range(0, len(posterior), _CHUNK):
        both = posterior[start : start + _CHUNK, :, None] * matrix
        known = entropy(both.sum(axis=2)) + entropy(both.sum(axis=1))
        gains[start : start + _CHUNK] = known - entropy(both.reshape(len(both), -1))
    return np.maximum(gains, 0.0)


def equivalent_error(
    information: Information | float, prior: npt.ArrayLike | None = None, *, n_labelers: int = 1
) -> float:
    r"""The error of the single labeler who would tell as much: ε′ with I(Z; Y | ε′) = `information`.

    A panel is hard to picture, one labeler of a known error is not. What a symmetric labeler tells falls as the error
    grows from 0 to (C − 1)/C, so there is one such error.

    Parameters
    ----------
    information : Information or float
        What `mutual_information` gives, or bits.
    prior : array of shape (n_classes,), optional
        P(class); taken from `information` where it has one, else uniform over two classes.
    n_labelers : int
        Ask for the error that each of so many labelers may have.

    References
    ----------
    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Sections 4.2 and 4.3 (Figures 7 and 8).

    Examples
    --------
    >>> import trueup as tu
    >>> panel = tu.labelers.mutual_information(error=0.2, n_labelers=5, prior=[0.6, 0.4])
    >>> round(tu.labelers.equivalent_error(panel), 4)
    0.0384
    >>> round(tu.labelers.equivalent_error(0.512, [0.6, 0.4], n_labelers=5), 3)  # each of five may err that often
    0.276
    """
    if prior is None and isinstance(information, Information):
        prior = information.prior
    pi = check_prior(prior)
    n = check_integer(n_labelers, name="n_labelers", low=1)
    most = float(entropy(pi))
    bits = check_number(float(information), name="information", low=0.0)
    if bits > most + 1e-9:
        raise InvalidParameter(
            f"information must be at most {most:.4g} bits, all there is to know of the class, got {bits:.6g}; "
            "check the prior"
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

    Labelers are symmetric and independent given the class. Information only grows with their number, so the number is
    found by doubling and halving, as in the paper.

    Parameters
    ----------
    expert_error, labeler_error : float
        Probabilities of a wrong label; the labeler's is below that of a guess.
    prior : array of shape (n_classes,), optional
        P(class); two even classes by default.
    max_labelers : int
        Where to stop.

    References
    ----------
    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Section 4.3 (Figure 8).

    Examples
    --------
    >>> import trueup as tu
    >>> tu.labelers.equivalent_labelers(expert_error=0.02, labeler_error=0.2, prior=[0.6, 0.4])
    7
    """
    pi = check_prior(prior)
    chance = 1 - 1 / len(pi)
    check_integer(max_labelers, name="max_labelers", low=1)
    expert = check_number(expert_error, name="expert_error", low=0.0, high=1.0)
    labeler = check_number(labeler_error, name="labeler_error", low=0.0, high=1.0)
    if labeler >= chance:
        raise InvalidParameter(
            f"labeler_error must be below {chance:.3g}, the error of a guess, got {labeler:g}; no number of guesses "
            "equals an expert"
        )
    if expert == 0 < labeler:
        raise InvalidParameter(
            "expert_error must be above 0, got 0; no number of labelers who err equals an expert who never does"
        )
    enough = _bits(expert, 1, pi) * (1 - 1e-12)  # an equal labeler is worth an expert, whatever rounding says
    low, high = 0, 1
    while _bits(labeler, high, pi) < enough:
        if high >= max_labelers:
            raise InvalidParameter(
                f"more than max_labelers={max_labelers} labelers of error {labeler:g} would be needed to equal an "
                f"expert of error {expert:g}; raise max_labelers"
            )
        low, high = high, min(2 * high, max_labelers)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _bits(labeler, middle, pi) >= enough else (middle, high)
    return high


def _bits(error: float, n_labelers: int, prior: Floats) -> float:
    return float(mutual_information(error=error, n_labelers=n_labelers, prior=prior))
