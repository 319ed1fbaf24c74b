"""What one more vote would tell."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from trueup._encoding import Vocabulary
from trueup._frames import make_frame
from trueup._optional import require
from trueup._validation import RandomState, check_integer
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.channel import Channel, Floats, Noise, channel_of
from trueup.labelers.information import information_of
from trueup.labelers.outcomes import entropy, list_outcomes
from trueup.labels import Labels
from trueup.noise.base import NoiseModel
from trueup.noise.subtypes import Subtypes

__all__ = ["MarginalValue", "marginal_value"]

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
        if ax is None:
            _, ax = require("matplotlib.pyplot", purpose="MarginalValue.plot()").subplots(layout="constrained")
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

    bits. Both are in terms of the hidden states of the item where labelers err together (`Subtypes`): then a vote tells
    less and less, since those before have already told what labelers think of this kind of item.

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
    states, state_class = _state_posterior(noise, labels, channel)
    if not isinstance(noise, Subtypes) and len(matrix) != labels.n_classes:  # levels of difficulty are averaged out
        share = channel.weights[:, None] * channel.state_class
        matrix = (share / share.sum(axis=0)).T @ matrix
    per_item = _expected_gain(states, state_class, matrix)
    per_item[labels.gold_codes >= 0] = 0.0  # nothing is left to know
    return MarginalValue(gains, per_item, labels.items)


def _state_posterior(noise: NoiseModel, labels: Labels, channel: Channel) -> tuple[Floats, Floats]:
    """P(state | votes) of each item, (n_items, n_states), and P(class | state)."""
    if not isinstance(noise, Subtypes):
        return noise.posterior(labels), np.eye(labels.n_classes)
    noise.log_likelihood(labels)  # checks that the model fits the labels
    states = np.exp(log_softmax(noise.state_log_likelihood(labels) + np.log(noise.state_prior_), axis=1))
    return states, channel.state_class


def _expected_gain(states: Floats, state_class: Floats, matrix: Floats) -> Floats:
    """Expected fall of the entropy of the class, in blocks of items."""
    joint = np.einsum("sy,sa->sya", state_class, matrix).reshape(len(matrix), -1)
    gains = np.empty(len(states))
    for start in range(0, len(states), _CHUNK):
        block = states[start : start + _CHUNK]
        both = (block @ joint).reshape(len(block), state_class.shape[1], matrix.shape[1])
        answers = both.sum(axis=1)
        known = entropy(both.sum(axis=2)) + entropy(answers)
        gains[start : start + _CHUNK] = known - entropy(both.reshape(len(block), -1))
    return np.maximum(gains, 0.0)
