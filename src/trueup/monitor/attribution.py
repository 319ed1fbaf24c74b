r"""Who changed? The accuracy of the system, or of a judge, before and after a change that the votes have shown.

Votes tell *that* something changed and since when; vetted truths must tell whose doing it was. A few are enough, since
votes tell most of it: an item is of one of two strata, by whether the one in question agrees with most judges, whose
shares are known from all items. Accuracy is :math:`q r_+ + (1 - q) r_-`, with :math:`q` the share of agreement and
:math:`r_\pm` how often the one in question is right in a stratum; vetted items tell the latter.

Against "the accuracy is what it was", that is within what is known of it from before the change, stands a likelihood
ratio by universal inference: how well the vetted items since then were foretold, one after the other, by beta mixtures
around the rates from before, against the best that any :math:`r_+, r_-` of an unchanged accuracy can do in hindsight.
Its mean is at most one at every look at once if the accuracy is unchanged, so that it exceeds :math:`1/\alpha` with a
chance of at most :math:`\alpha`, however often one looks (Ville). Which batches are "since" was chosen by votes alone,
which leaves the truths of vetted items, given their votes, as they are.

References
----------
L. Wasserman, A. Ramdas, S. Balakrishnan, "Universal inference", PNAS 117, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import betaln, xlog1py, xlogy

from trueup._base.types import Codes
from trueup.monitor.batch import Batch
from trueup.monitor.streams import Panel, Stream

_DOUBT = 0.2  # of the permitted wrong attributions, for the accuracy before being outside of its interval
_STRENGTH = 10.0  # vetted items that the rates from before count for, at most, in foretelling those since
LEAST_VETTED = 20  # before a change


@dataclass(frozen=True)
class Strata:
    """Items and vetted items in the stratum where the one in question agrees with most judges, and in the other.

    Attributes
    ----------
    n_agree, n_other : int
        Items.
    vetted_agree, vetted_other : int
        Vetted ones.
    hits_agree, hits_other : int
        Those in which they are right.
    """

    n_agree: int = 0
    n_other: int = 0
    vetted_agree: int = 0
    vetted_other: int = 0
    hits_agree: int = 0
    hits_other: int = 0

    def __add__(self, other: Strata) -> Strata:
        return Strata(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def n_vetted(self) -> int:
        """Vetted items of both strata."""
        return self.vetted_agree + self.vetted_other

    @property
    def share(self) -> float:
        """Of items in which they agree with most judges."""
        return self.n_agree / max(self.n_agree + self.n_other, 1)

    @property
    def rates(self) -> tuple[float, float]:
        """How often they are right in either stratum; half a hit and half a miss keep them from 0 and 1."""
        return (self.hits_agree + 0.5) / (self.vetted_agree + 1), (self.hits_other + 0.5) / (self.vetted_other + 1)

    @property
    def accuracy(self) -> float:
        """How often they are right on all items."""
        agree, other = self.rates
        return self.share * agree + (1 - self.share) * other

    @property
    def variance(self) -> float:
        """Of the accuracy, from both the vetted items and the share of agreement."""
        agree, other = self.rates
        q = self.share
        return (
            q**2 * agree * (1 - agree) / (self.vetted_agree + 1)
            + (1 - q) ** 2 * other * (1 - other) / (self.vetted_other + 1)
            + (agree - other) ** 2 * self.variance_of_share
        )

    @property
    def variance_of_share(self) -> float:
        """Of the share of agreement."""
        return self.share * (1 - self.share) / max(self.n_agree + self.n_other, 1)


def strata_of(batch: Batch, panel: Panel, of: Hashable | None) -> dict[Stream, Strata]:
    """The strata of a batch for the system and for each judge of the panel; none where a judge of it is absent."""
    if panel is not None and not set(panel) <= set(batch.judges):
        return {}
    majority = batch.majority(panel)
    strata = {}
    if batch.prediction is not None:
        strata[Stream("system on gold")] = _count(batch.prediction, majority, batch)
    elif of is not None:
        code = batch.classes.index(of)
        named = np.full(batch.n_items, code, dtype=np.int32)
        strata[Stream("system on gold", named=of)] = _count(named, majority, batch)
    for judge in panel or ():
        strata[Stream("judge on gold", (judge,))] = _count(batch.answers_of[judge], majority, batch)
    return strata


def _count(said: Codes, majority: Codes, batch: Batch) -> Strata:
    """Where somebody agrees with most judges, and where they are right."""
    tells = (said >= 0) & (majority >= 0)
    agrees, vetted, is_right = said == majority, batch.gold >= 0, said == batch.gold
    parts = [tells & agrees, tells & ~agrees]
    cells = [[part, part & vetted, part & vetted & is_right] for part in parts]
    return Strata(*(int(cells[k][j].sum()) for j in range(3) for k in range(2)))


@dataclass(frozen=True)
class Attribution:
    """An accuracy that is not what it was.

    Attributes
    ----------
    look : int
        The place of the batch after which that was seen.
    before, after : Strata
    chance : float
        At most so probable if the accuracy had not changed, all looks counted.
    """

    look: int
    before: Strata
    after: Strata
    chance: float


def find_attribution(
    strata: Sequence[Strata | None], *, first: int, look: int, wrong: float, n_accuracies: float
) -> Attribution | None:
    """The first look since an alarm at which an accuracy is not what it was before the change; None if there is none.

    Parameters
    ----------
    strata : sequence of Strata or None
        Of each batch; None where a batch does not tell.
    first, look : int
        The first batch since the change, and that after which it was seen in the votes.
    wrong : float
        The chance with which an attribution may be wrong, all of them together.
    n_accuracies : float
        How many share it.
    """
    before = _sum(strata[:first])
    if before.n_vetted < LEAST_VETTED:
        return None
    reach = float(scipy.stats.norm.isf(_DOUBT * wrong / n_accuracies / 2))
    after = _sum(strata[first:look])
    for k, one in enumerate(strata[look:], start=look):
        after += one or Strata()
        half = reach * math.sqrt(before.variance + _spread_of_share(after, before))
        evidence = log_evidence(before, after, (before.accuracy - half, before.accuracy + half))
        chance = min(math.exp(-evidence) * n_accuracies / (1 - _DOUBT), 1.0)
        if chance <= wrong:
            return Attribution(k, before, after, chance)
    return None


def log_evidence(before: Strata, after: Strata, unchanged: tuple[float, float]) -> float:
    """Log of the likelihood ratio of the vetted items since a change against an accuracy within an interval.

    Examples
    --------
    >>> before = Strata(5000, 1000, 250, 50, 248, 7)
    >>> fallen, same = Strata(740, 260, 74, 26, 73, 2), Strata(740, 260, 74, 26, 72, 13)
    >>> [round(log_evidence(before, after, (0.83, 0.87)), 1) for after in (fallen, same)]
    [3.7, -5.1]
    """
    foretold = 0.0
    cells = ((after.hits_agree, after.vetted_agree), (after.hits_other, after.vetted_other))
    sizes = before.vetted_agree, before.vetted_other
    for (hits, n), rate, n_before in zip(cells, before.rates, sizes, strict=True):
        weight = min(n_before + 1.0, _STRENGTH)
        a, b = rate * weight, (1 - rate) * weight
        foretold += float(betaln(a + hits, b + n - hits) - betaln(a, b))
    return foretold - _best_unchanged(after, *unchanged)


def _best_unchanged(after: Strata, low: float, high: float) -> float:
    """The greatest log-likelihood of the vetted items under rates whose accuracy is within an interval."""
    q = after.share

    def likelihood(agree: float, other: float) -> float:
        total = 0.0
        for hits, n, rate in (
            (after.hits_agree, after.vetted_agree, agree),
            (after.hits_other, after.vetted_other, other),
        ):
            total += float(xlogy(hits, rate) + xlog1py(n - hits, -rate))
        return total

    best = after.hits_agree / max(after.vetted_agree, 1), after.hits_other / max(after.vetted_other, 1)
    accuracy = q * best[0] + (1 - q) * best[1]
    if low <= accuracy <= high:
        return likelihood(*best)
    bound = min(max(low if accuracy < low else high, 0.0), 1.0)  # the likelihood falls towards farther ones
    if q in (0.0, 1.0):
        return likelihood(bound, bound)
    least, most = max(0.0, (bound - (1 - q)) / q), min(1.0, bound / q)
    ends = [(least, (bound - q * least) / (1 - q)), (most, (bound - q * most) / (1 - q))]
    found = scipy.optimize.minimize_scalar(
        lambda agree: -likelihood(agree, min(max((bound - q * agree) / (1 - q), 0.0), 1.0)),
        bounds=(least, most),
        method="bounded",
    )
    return max(-float(found.fun), *(likelihood(agree, min(max(other, 0.0), 1.0)) for agree, other in ends))


def _spread_of_share(after: Strata, before: Strata) -> float:
    """What the share of agreement since the change, known from finitely many items, adds to the doubt."""
    agree, other = before.rates
    return (agree - other) ** 2 * after.variance_of_share


def _sum(strata: Sequence[Strata | None]) -> Strata:
    return sum((one for one in strata if one is not None), Strata())
