r"""Who changed? The accuracy of the system, or of a judge, before and after a change that the votes have shown.

Votes show *that* something changed and since when; only checked items can say whether the system or a judge did. A few
are enough, since votes say most of it: the items are in two strata, by whether the system (or the judge) agrees with
most judges, and the sizes of the strata are known from all items. Where judges are split evenly nobody agrees with most
of them: such items are in the second. Left out, they would make accuracies those of the other items, which change when
anybody does: of two judges both would be named for what one did. Accuracy is :math:`q r_+ + (1 - q) r_-`, with
:math:`q` the share of agreement and :math:`r_\pm` the share of right votes in a stratum, which checked items estimate.

Against "the accuracy is what it was", whatever that is, stand two likelihood ratios. The first, by universal inference,
is how well the checked items since the change were predicted, one after the other, by beta mixtures around the rates
from before, against :math:`r_+, r_-` of that accuracy. The second is how well the estimate from before fits any
accuracy (normal, with a normal mixture), against that one. Both have a mean of at most one if the accuracy is
unchanged, the first at every look at once, and the checked items before and since are others. So their product, at the
unchanged accuracy and the rates that suit it least, exceeds :math:`1/\alpha` with a chance of at most about
:math:`\alpha`, however often one looks (Ville). Which batches are "since" was
chosen by votes alone, which leaves the classes of checked items, given their votes, as they are.

References
----------
L. Wasserman, A. Ramdas, S. Balakrishnan, "Universal inference", PNAS 117, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from trueup._base.types import Codes, Floats
from trueup.monitor.batch import Batch
from trueup.monitor.change import Change
from trueup.monitor.streams import Panel, Stream

# Checked items that the rates from before count for, at most, in predicting those since: of small changes and of great.
_STRENGTHS = (30.0, 3.0)
_REACH = 2.0  # standard errors by which the accuracy from before may be off, in the mixture
_GRIDS = (65, 33, 33)  # points a side, each grid around the best point of the one before
LEAST_CHECKED = 20  # before a change


@dataclass(frozen=True)
class Strata:
    """Items and checked items in the stratum where the system (or a judge) agrees with most judges, and elsewhere."""

    n_agree: int = 0  # items
    n_other: int = 0  # items
    checked_agree: int = 0  # checked ones
    checked_other: int = 0  # checked ones
    hits_agree: int = 0  # those in which they are right
    hits_other: int = 0  # those in which they are right

    def __add__(self, other: Strata) -> Strata:
        return Strata(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def n_checked(self) -> int:
        """Checked items of both strata."""
        return self.checked_agree + self.checked_other

    @property
    def share(self) -> float:
        """Of items in which they agree with most judges."""
        return self.n_agree / max(self.n_agree + self.n_other, 1)

    @property
    def rates(self) -> tuple[float, float]:
        """How often they are right in either stratum; half a hit and half a miss keep them from 0 and 1."""
        return (self.hits_agree + 0.5) / (self.checked_agree + 1), (self.hits_other + 0.5) / (self.checked_other + 1)

    @property
    def accuracy(self) -> float:
        """How often they are right on all items."""
        agree, other = self.rates
        return self.share * agree + (1 - self.share) * other

    @property
    def variance(self) -> float:
        """Of the accuracy, from both the checked items and the share of agreement."""
        agree, other = self.rates
        q = self.share
        return (
            q**2 * agree * (1 - agree) / (self.checked_agree + 1)
            + (1 - q) ** 2 * other * (1 - other) / (self.checked_other + 1)
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


def _count(answers: Codes, majority: Codes, batch: Batch) -> Strata:
    """Where somebody agrees with most judges, and where they are right."""
    counts = (answers >= 0) & batch.has_votes  # the share of agreement is one of the items with votes
    agrees, checked, is_right = answers == majority, batch.equal_gold >= 0, answers == batch.equal_gold
    parts = [counts & agrees, counts & ~agrees]
    cells = [[part, part & checked, part & checked & is_right] for part in parts]
    return Strata(*(int(cells[k][j].sum()) for j in range(3) for k in range(2)))


def find_attribution(
    strata: Sequence[Strata | None], *, first: int, look: int, wrong: float, n_accuracies: float
) -> Change | None:
    """The first look since an alarm at which an accuracy is not what it was before the change, or None."""
    whole = [of_batch or Strata() for of_batch in strata]
    before, after = sum(whole[:first], Strata()), sum(whole[first:look], Strata())
    if before.n_checked < LEAST_CHECKED:
        return None
    needed = math.log(n_accuracies / wrong)
    for k, of_batch in enumerate(whole[look:], start=look):
        after += of_batch
        evidence = log_evidence(before, after, needed=needed)
        if evidence >= needed:
            chance = math.exp(-evidence) * n_accuracies
            return Change(k, first, before.accuracy, after.accuracy, before.n_checked, after.n_checked, chance)
    return None


def log_evidence(before: Strata, after: Strata, *, needed: float = -math.inf) -> float:
    """Log of the evidence of the checked items before and since a change against an unchanged accuracy.

    Where it is certain to be less than `needed`, an upper bound of it is enough.

    Examples
    --------
    >>> before = Strata(5000, 1000, 250, 50, 248, 7)
    >>> fallen, same = Strata(740, 260, 74, 26, 73, 2), Strata(740, 260, 74, 26, 72, 13)
    >>> [round(log_evidence(before, after), 1) for after in (fallen, same)]
    [3.2, -5.7]
    """
    predicted = 0.0
    cells = ((after.hits_agree, after.checked_agree), (after.hits_other, after.checked_other))
    sizes = before.checked_agree, before.checked_other
    for (hits, n), rate, n_before in zip(cells, before.rates, sizes, strict=True):
        weights = np.minimum(n_before + 1.0, _STRENGTHS)
        a, b = rate * weights, (1 - rate) * weights
        predicted += float(np.logaddexp.reduce(betaln(a + hits, b + n - hits) - betaln(a, b))) - math.log(len(weights))
    low, high = np.zeros(2), np.ones(2)
    evidence = math.inf
    for n_points in _GRIDS:
        rates = np.linspace(low, high, n_points)
        agree, other = rates[:, None, 0], rates[None, :, 1]
        values = _against_unchanged(before, after, agree, other)
        place = np.unravel_index(values.argmin(), values.shape)
        evidence = predicted + float(values[place])
        if evidence < needed:
            break
        best, step = np.array([rates[place[0], 0], rates[place[1], 1]]), (high - low) / (n_points - 1)
        low, high = np.maximum(best - 2 * step, 0.0), np.minimum(best + 2 * step, 1.0)
    return evidence


def _against_unchanged(before: Strata, after: Strata, agree: Floats, other: Floats) -> Floats:
    """Log of the evidence from before against the accuracy of some rates, less the log-likelihood of these since."""
    q = after.share
    right_agree, right_other = before.rates  # the share since the change is known from finitely many items
    spread = before.variance + (right_agree - right_other) ** 2 * after.variance_of_share
    square = (q * agree + (1 - q) * other - before.accuracy) ** 2 / spread
    from_before = 0.5 * (square * _REACH**2 / (1 + _REACH**2) - math.log1p(_REACH**2))
    since = xlogy(after.hits_agree, agree) + xlog1py(after.checked_agree - after.hits_agree, -agree)
    since = since + xlogy(after.hits_other, other) + xlog1py(after.checked_other - after.hits_other, -other)
    return np.asarray(from_before - since)
