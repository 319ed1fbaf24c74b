"""How much the votes of labelers tell of the class, in bits (Su 2024, Section 4)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from trueup._validation import RandomState, check_integer
from trueup.labelers.channel import Channel, Floats, Noise, channel_of
from trueup.labelers.outcomes import MAX_OUTCOMES, Method, Outcomes, entropy, list_outcomes

__all__ = ["Information", "information_of", "mutual_information"]


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

    Every labeler of the set votes on the item. Labelers are independent given the class or, with `Subtypes` (and with
    `GLAD` and `Difficulty`, whose items differ in difficulty), given a hidden state of the item, so that they err
    together. An abstention kept as an answer is one more symbol. With two classes and one error rate this is the binary
    symmetric broadcast channel of [1]_.

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
    found = list_outcomes(channel, max_outcomes=max_outcomes, n_draws=n_draws, random_state=random_state)
    return information_of(channel, found)


def information_of(channel: Channel, outcomes: Outcomes) -> Information:
    """The mutual information from the outcomes of a channel."""
    most = float(entropy(channel.prior))
    left, error = outcomes.mean(entropy(outcomes.posterior))
    bits = float(np.clip(most - left, 0.0, most))
    lost = min(outcomes.lost, most - bits)
    return Information(bits, max(error, lost), outcomes.method, channel.prior, channel.n_labelers)
