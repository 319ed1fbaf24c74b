r"""Has a share changed, and who did? Tests of counts batch by batch that may be looked at after every batch, for ever.

If nothing changed, the items of all batches are exchangeable. So of the hits among all items so far, those among the
newest are hypergeometric, whatever the share itself is: the p-value of the newest 1, 2, 3, 5, 8, … batches against all
before is exact. Of the permitted false alarms :math:`F(j) = e^{-5 / (j - 2)}` may be spent by the ``j``-th batch, and
what a look may spend is split among the windows that it has batches for. By the union bound the chance that any look
raises a false alarm is at most :math:`\alpha`.

Batches may differ from one another more than their items explain: on the scale :math:`\arcsin\sqrt{\text{share}}` by
a standard deviation :math:`\omega`, which makes the variance of a window against what was before larger by a factor
:math:`\varphi(\omega) = 1 + 4 \omega^2 m` where all batches have ``m`` items. It is known by a prior, half of Student's
t, and by the Pearson residuals of the batches before the window, each against those before it, and of those in the
window, each against those before it *in the window*. A step at which the window begins is in none of them. The p-value
is its mean over what they leave open, :math:`p = \int 2 \, \Phi(-|z| / \sqrt{\varphi(\omega)}) \, \pi(d\omega \mid
\text{residuals})`, with :math:`z` the normal score of the hypergeometric p-value: never smaller, so the bound stays.

*Who* changed is said by checked items. The items are in two strata, by whether the system (or the judge) agrees with
most judges; where judges are split evenly nobody does. Accuracy is :math:`q r_+ + (1 - q) r_-`, with :math:`q` the
share of agreement, known from all items, and :math:`r_\pm` the shares of right votes. Against "it is what it was"
there are two likelihood ratios: how well the checked items since the change were predicted, by beta mixtures around the
rates from before (universal inference), and how well the estimate from before fits any accuracy. Both have a mean of at
most one if the accuracy is unchanged, so their product exceeds :math:`1/\alpha` with a chance of at most about
:math:`\alpha`, however often one looks (Ville). Which batches are "since" was chosen by votes alone.

References
----------
A. Tartakovsky, I. Nikiforov, M. Basseville, "Sequential Analysis: Hypothesis Testing and Changepoint Detection", CRC
Press, 2014 (windows against what was before). R. L. Brown, J. Durbin, J. M. Evans, "Techniques for testing the
constancy of regression relationships over time", JRSS B 37, 1975 (recursive residuals). A. Gelman, "Prior distributions
for variance parameters in hierarchical models", Bayesian Analysis 1, 2006 (half of Student's t). L. Wasserman, A.
Ramdas, S. Balakrishnan, "Universal inference", PNAS 117, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln, ndtr, ndtri_exp, xlog1py, xlogy

from trueup._base.types import Floats
from trueup._base.wording import chance as as_chance
from trueup._base.wording import percent
from trueup.monitor.batch import MOST_JUDGES, Batch, Counts, History, Panel, Stream, moment, panel_of

# Batches since a change, each with its part of the permitted false alarms: one of them meets a change of any age. Two
# batches have the most, since one is soon beside a weekday, and a fall is to be seen before the third.
WINDOWS = {1: 0.1, 2: 0.4, 3: 0.1, 5: 0.1, 8: 0.1, 13: 0.05, 21: 0.05, 34: 0.05, 55: 0.05}
_LOOKS = 5.0  # sets when the permitted false alarms are spent: 29% by the sixth batch, half by the ninth
_SCALE, _FREEDOM = 0.017, 3.0  # of the prior of the standard deviation ω between batches, a half of Student's t
_DEVIATIONS = np.exp(np.linspace(math.log(1e-3), math.log(math.pi / 2), 60))  # the points of the mean over ω
_SQUARES = _DEVIATIONS**2
_LOG_PRIOR = np.log(_DEVIATIONS) - (_FREEDOM + 1) / 2 * np.log1p(_SQUARES / _SCALE**2 / _FREEDOM)
_LOG_PRIOR = _LOG_PRIOR - np.logaddexp.reduce(_LOG_PRIOR)


@dataclass(frozen=True)
class Change:
    """A share that differs from what it was.

    Attributes
    ----------
    look : int. The place of the batch after which that was seen, from 0 on.
    first : int. The place of the first batch that differs, as the counts up to that look have it likeliest.
    before, after : float. The share in the batches before that one, and since.
    n_before, n_after : int. Items.
    chance : float. At most so probable if nothing had changed, all looks and windows counted.
    """

    look: int
    first: int
    before: float
    after: float
    n_before: int
    n_after: int
    chance: float


def spent(n_batches: int | Counts, *, baseline: int) -> Floats:
    """The part of the permitted false alarms that looks at up to so many batches may use; 1 in the long run."""
    n = np.asarray(n_batches, dtype=float)
    return np.where(n > baseline, np.exp(-_LOOKS / np.maximum(n - 2, 1)), 0.0)


def dispersion(hits: Counts, sizes: Counts) -> float:
    """How many times the variance that their items explain batches differ by; at least 1."""
    squares, _, is_telling = _residuals(hits, sizes)
    return max(float(squares.sum() / max(is_telling.sum(), 1)), 1.0)


def find_change(hits: Counts, sizes: Counts, *, false_alarms: float, baseline: int) -> Change | None:
    """The first look at which a share is not what it was; None where there is none.

    Parameters
    ----------
    hits, sizes : int array of shape (n_batches,)
        Items for which something holds, and items, of each batch; no batch is empty.
    false_alarms : float. The chance with which this may ever happen without a change.
    baseline : int. Batches that there are before the first look, and before any window.

    Examples
    --------
    >>> sizes = np.full(20, 200)
    >>> steady = np.tile([165, 168, 171, 164], 5)
    >>> find_change(steady, sizes, false_alarms=0.05, baseline=2) is None
    True
    >>> fallen = np.where(np.arange(20) < 15, steady, steady - 30)
    >>> change = find_change(fallen, sizes, false_alarms=0.05, baseline=2)
    >>> change.first, change.look, round(change.before, 2), round(change.after, 2)
    (15, 15, 0.84, 0.67)
    """
    looks = np.arange(baseline + 1, len(sizes) + 1)
    if not len(looks):
        return None
    sums, totals = (np.concatenate([[0], np.cumsum(part)]) for part in (hits, sizes))
    ends, windows = np.meshgrid(looks, np.array(list(WINDOWS)), indexing="ij")
    weights = np.where(ends - windows >= baseline, np.array(list(WINDOWS.values())), 0.0)
    may_spend = spent(looks, baseline=baseline) - spent(looks - 1, baseline=baseline)
    limits = false_alarms * may_spend[:, None] * weights / weights.sum(axis=1, keepdims=True)
    starts = np.where(weights > 0, ends - windows, baseline)
    table = sums[ends] - sums[starts], totals[ends] - totals[starts], sums[ends], totals[ends]
    # A tail is at least its first term, and dispersion makes no p-value smaller: nearly all looks need no more.
    least = np.minimum(math.log(2) + _log_probability(*table), 0.0)
    near = (weights > 0) & (least <= np.log(np.maximum(limits, 1e-300)))
    if not near.any():
        return None
    before = np.cumsum(np.vstack([np.zeros((2, len(_SQUARES))), _log_likelihoods(hits, sizes)]), axis=0)
    for row in np.flatnonzero(near.any(axis=1)):
        end, chances = int(looks[row]), []
        for k in np.flatnonzero(near[row]):
            start = int(starts[row, k])
            exact = _log_two_sided(*(int(cells[row, k]) for cells in table))
            given = before[start] + _log_likelihoods(hits[start:end], sizes[start:end]).sum(axis=0)
            value = _given_dispersion(exact, given, _excess_factor(sizes[start:end], sizes[:start]))
            if value <= limits[row, k]:
                chances.append(float(false_alarms * value / limits[row, k]))
        if chances:
            start = _likeliest_start(sums[: end + 1], totals[: end + 1], baseline)
            n_before, hits_before = int(totals[start]), int(sums[start])
            n_after, hits_after = int(totals[end]) - n_before, int(sums[end]) - hits_before
            shares = hits_before / n_before, hits_after / n_after
            return Change(end - 1, start, *shares, n_before, n_after, min(chances))
    return None


def can_find_change(hits: Counts, sizes: Counts, *, false_alarms: float, baseline: int) -> bool:
    """Whether there would be an alarm if none, or all, of the items of the newest batch had been hits."""
    extremes = [np.append(hits[:-1], newest) for newest in (0, sizes[-1])]
    return any(find_change(one, sizes, false_alarms=false_alarms, baseline=baseline) is not None for one in extremes)


def _residuals(hits: Counts, sizes: Counts) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """The squared residual of each batch but the first, what its variance grows by with 4 ω², and whether it tells."""
    n_all, k_all = np.cumsum(sizes)[1:], np.cumsum(hits)[1:]
    m, x = sizes[1:], hits[1:]
    share = k_all / n_all
    spread = m * share * (1 - share) * (n_all - m) / np.maximum(n_all - 1, 1)
    tells = spread > 0
    squares = np.where(tells, (x - m * share) ** 2 / np.where(tells, spread, 1.0), 0.0)
    n_before = n_all - m
    concentration = np.cumsum(sizes.astype(float) ** 2)[:-1] / n_before.astype(float) ** 2
    return squares, (1 + concentration) / (1 / m + 1 / n_before), tells


def _log_likelihoods(hits: Counts, sizes: Counts) -> Floats:
    """Of each ω, by the residual of each batch but the first; shape (n_batches − 1, n_points)."""
    squares, factors, tells = _residuals(hits, sizes)
    inflation = 1 + 4 * factors[:, None] * _SQUARES
    return np.asarray(np.where(tells[:, None], -0.5 * (np.log(inflation) + squares[:, None] / inflation), 0.0))


def _excess_factor(window: Counts, before: Counts) -> float:
    """What the variance of the difference of two shares grows by with 4 ω²; m where all batches have m items."""
    concentrations = [float((part.astype(float) ** 2).sum()) / float(part.sum()) ** 2 for part in (window, before)]
    return sum(concentrations) / (1 / float(window.sum()) + 1 / float(before.sum()))


def _given_dispersion(log_value: float, log_likelihoods: Floats, factor: float) -> float:
    """A p-value from items alone, where batches differ as much more than their items explain as residuals leave open.

    `log_likelihoods` are those of the residuals for each ω; the variance of the difference grows by 4 ω² `factor`.
    """
    score = float(ndtri_exp(log_value - math.log(2)))
    joint = _LOG_PRIOR + log_likelihoods
    weights = np.exp(joint - np.logaddexp.reduce(joint))
    return float(weights @ (2 * ndtr(score / np.sqrt(1 + 4 * factor * _SQUARES))))


def _likeliest_start(sums: Counts, totals: Counts, baseline: int) -> int:
    """Since when two shares describe the counts best."""
    starts = np.arange(baseline, len(sums) - 1)

    def likelihood(hits: Counts, n: Counts) -> Floats:
        return np.asarray(xlogy(hits, hits / n) + xlogy(n - hits, 1 - hits / n))

    before = likelihood(sums[starts], totals[starts])
    return int(starts[(before + likelihood(sums[-1] - sums[starts], totals[-1] - totals[starts])).argmax()])


def _log_probability(hits: Counts, n: Counts, all_hits: Counts, n_all: Counts) -> Floats:
    """Log of the hypergeometric probability of some hits among n of all."""

    def log_choose(of: Counts, some: Counts) -> Floats:
        return np.asarray(gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1))

    return log_choose(all_hits, hits) + log_choose(n_all - all_hits, n - hits) - log_choose(n_all, n)


def _log_two_sided(hits: int, n: int, all_hits: int, n_all: int) -> float:
    """Log of twice the tail on the side on which the hits lie, of at most 1: that of the test of Fisher."""
    # numpy's sum of few numbers takes a tenth of the time of scipy's, and there is one a window and look.
    low, high = max(0, n - (n_all - all_hits)), min(n, all_hits)
    is_few = hits * n_all <= n * all_hits
    tail = np.arange(low, hits + 1) if is_few else np.arange(hits, high + 1)
    return min(math.log(2) + float(np.logaddexp.reduce(_log_probability(tail, *np.array([n, all_hits, n_all])))), 0.0)


# ------------------ Who changed: the system, or a judge?

# Checked items that the rates from before count for, at most, in predicting those since: of small changes and of great.
_STRENGTHS = (30.0, 3.0)
_REACH = 2.0  # standard errors by which the accuracy from before may be off, in the mixture
_GRIDS = (65, 33, 33)  # points a side, each grid around the best point of the one before
LEAST_CHECKED = 20  # before a change


@dataclass(frozen=True)
class Strata:
    """Items and checked items in the stratum where the system (or a judge) agrees with most judges, and elsewhere."""

    n_agree: int = 0  # items
    n_other: int = 0
    checked_agree: int = 0  # checked items
    checked_other: int = 0
    hits_agree: int = 0  # checked items in which they are right
    hits_other: int = 0

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
        (agree, other), q = self.rates, self.share
        of_agree = q**2 * agree * (1 - agree) / (self.checked_agree + 1)
        of_other = (1 - q) ** 2 * other * (1 - other) / (self.checked_other + 1)
        return of_agree + of_other + (agree - other) ** 2 * self.variance_of_share

    @property
    def variance_of_share(self) -> float:
        """Of the share of agreement."""
        return self.share * (1 - self.share) / max(self.n_agree + self.n_other, 1)


def strata_of(batch: Batch, panel: Panel, of: Hashable | None) -> dict[Stream, Strata]:
    """The strata of a batch for the system and for each judge of the panel; none where a judge of it is absent."""
    if panel is not None and not set(panel) <= set(batch.judges):
        return {}
    voters = {Stream("judge on gold", (judge,)): batch.answers_of[judge] for judge in panel or ()}
    if batch.prediction is not None:
        voters = {Stream("system on gold"): batch.prediction} | voters
    elif of is not None:
        named = np.full(batch.n_items, batch.classes.index(of), dtype=np.int32)
        voters = {Stream("system on gold", named=of): named} | voters
    majority, gold = batch.majority(panel), batch.equal_gold
    strata = {}
    for stream, answers in voters.items():
        counts = (answers >= 0) & batch.has_votes  # the share of agreement is one of the items with votes
        parts = [counts & (answers == majority), counts & (answers != majority)]
        cells = [[part, part & (gold >= 0), part & (gold >= 0) & (answers == gold)] for part in parts]
        strata[stream] = Strata(*(int(cells[k][j].sum()) for j in range(3) for k in range(2)))
    return strata


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


# ------------------ Alarms: what changed, since when, and how sure that is; and notes on the batches behind them.

AlarmKind = Literal["something", "the system", "the judge"]
# The alarm that says most comes first.
_ORDER: tuple[AlarmKind, ...] = ("the system", "the judge", "something")
_MARKED = 1.5  # times the variance that items explain, from which on a note says so
_MOST_MORE = 50  # batches that are tried for how many more it takes until an alarm is possible


@dataclass(frozen=True)
class Alarm:
    """Something is not what it was.

    Attributes
    ----------
    kind : {"something", "the system", "the judge"}
        What changed: votes show that something did, checked items that the system or a judge did.
    judge : hashable, optional. The judge, where it is about one.
    when : str. The batch after which it was seen.
    since : str. The first batch of those that differ from all before.
    before, after : float. The share that changed, in the batches before that one and since.
    n_before, n_after : int. The items, or checked items, that these are shares of.
    chance : float. At most so probable if nothing had changed, all looks and everything that is watched counted.
    sentence : str. All of that in words.
    """

    kind: AlarmKind
    judge: Hashable | None
    when: str
    since: str
    before: float
    after: float
    n_before: int
    n_after: int
    chance: float
    sentence: str


def find_alarms(
    watched: Mapping[Stream, History],
    strata: Sequence[Mapping[Stream, Strata]],
    times: Sequence[str],
    *,
    false_alarms: float,
    baseline: int,
) -> list[Alarm]:
    """All alarms: those about the system first, then about judges, then from votes; the surest first.

    `strata` is what `strata_of` gives for each batch. `false_alarms` is the chance that any alarm is ever
    raised without a change; and, about, that the wrong one is named for a change that votes have shown.
    """
    alarms, from_votes = {}, []
    for stream, history in watched.items():
        change = find_change(history.hits, history.sizes, false_alarms=false_alarms * history.part, baseline=baseline)
        if change is not None:
            first, look = int(history.places[change.first]), int(history.places[change.look])
            change = replace(change, first=first, look=look, chance=change.chance / history.part)
            alarms[stream] = _alarm(stream, change, times, "")
            from_votes += [] if stream.is_gold else [(look, change.chance, first)]
    if from_votes:
        look, _, first = min(from_votes)
        for stream, change in _attributions(strata, first, look, false_alarms):
            # Checked items may have shown it by themselves, and before.
            if stream not in alarms or moment(times[change.look]) < moment(alarms[stream].when):
                alarms[stream] = _alarm(stream, change, times, "about ")
    return sorted(alarms.values(), key=lambda alarm: (_ORDER.index(alarm.kind), alarm.chance))


def _attributions(
    strata: Sequence[Mapping[Stream, Strata]], first: int, look: int, wrong: float
) -> Iterator[tuple[Stream, Change]]:
    """Accuracies that are not what they were; half of the permitted mistakes for the system, half for all judges."""
    streams = list(dict.fromkeys(stream for of_batch in strata for stream in of_batch))
    n_judges = sum(stream.subject == "judge on gold" for stream in streams)
    for stream in streams:
        is_judge = stream.subject == "judge on gold"
        parts, n = [of_batch.get(stream) for of_batch in strata], 2.0 * n_judges if is_judge else 2.0
        change = find_attribution(parts, first=first, look=look, wrong=wrong, n_accuracies=n)
        if change is not None:  # of judges errors are counted
            yield stream, replace(change, before=1 - change.before, after=1 - change.after) if is_judge else change


def _alarm(stream: Stream, change: Change, times: Sequence[str], about: str) -> Alarm:
    """An alarm with its sentence; `about` is said of shares that are estimates."""
    kind: AlarmKind = "something"
    if stream.is_gold:
        kind = "the system" if stream.subject == "system on gold" else "the judge"
    judge = stream.judges[0] if len(stream.judges) == 1 else None
    subject = f"The judge {judge!r}" if kind == "the judge" else kind.capitalize()
    since, when, on = times[change.first], times[change.look], "by" if about else "of"
    sentence = (
        f"{subject} changed since {since} (seen {when}): {what_is_counted(stream)} {about}{percent(change.after, 1)} "
        f"{on} {change.n_after:,} {'checked items' if stream.is_gold else 'items'}, and {about}"
        f"{percent(change.before, 1)} {on} {change.n_before:,} before; without a change such an alarm has a chance of "
        f"{as_chance(change.chance)}, however often one looks."
    )
    sides = change.before, change.after, change.n_before, change.n_after
    return Alarm(kind, judge, when, since, *sides, change.chance, sentence)


def what_is_counted(stream: Stream) -> str:
    """The words before a share."""
    names = " and ".join(repr(name) for name in stream.judges)
    named = "" if stream.named is None else repr(stream.named)
    return {
        "agreement": f"most judges said {named} for" if named else "the system agreed with most judges on",
        "system on gold": f"the truth was {named} for" if named else "the system was right on",
        "system says": f"the system said {named} for",
        "judge says": f"{names} said {named} for",
        "judges agree": f"{names} agreed on",
        "judge on gold": f"{names} was wrong on",
    }[stream.subject]


def cannot_test_yet(watched: Mapping[Stream, History], n_batches: int, *, false_alarms: float, baseline: int) -> str:
    """Why no alarm is possible yet of the batches since the baseline began, and what is needed; "" where one is."""
    if n_batches <= baseline:
        missing = _batches(baseline + 1 - n_batches, "more ")
        return f"tests begin with batch {baseline + 1} of a baseline, got {n_batches}; add {missing}"
    _, main = _agreement(watched)
    if main is None:
        return "no item has a majority of the judges; add batches of items with votes of the same judges"
    size = max(round(float(main.sizes.mean())), 1)
    usual = round(size * float(main.hits.sum() / main.sizes.sum()))
    for n_more in range(_MOST_MORE + 1):
        hits, sizes = np.append(main.hits, [usual] * n_more), np.append(main.sizes, [size] * n_more)
        if can_find_change(hits, sizes, false_alarms=false_alarms * main.part, baseline=baseline):
            if n_more == 0:
                return ""
            what = f"{_batches(n_more, 'more ')} like these"
            break
    else:
        what = "larger batches"
    so_far = f"{int(main.sizes.sum()):,} items in {_batches(len(main.sizes))}"
    return f"{so_far} are too few for an alarm whatever the newest holds; add {what}"


def nearly_an_alarm(watched: Mapping[Stream, History], *, false_alarms: float, baseline: int) -> str:
    """That one more batch like the newest would be an alarm, as a part of a sentence; "" where it would not."""
    stream, main = _agreement(watched)
    if stream is None or main is None:
        return ""
    hits, sizes = np.append(main.hits, main.hits[-1]), np.append(main.sizes, main.sizes[-1])
    if find_change(hits, sizes, false_alarms=false_alarms * main.part, baseline=baseline) is None:
        return ""
    newest, before = main.hits[-1] / main.sizes[-1], main.hits[:-1].sum() / main.sizes[:-1].sum()
    return (
        f"{what_is_counted(stream)} {percent(newest, 1)} of the newest {main.sizes[-1]:,} items, and on "
        f"{percent(before, 1)} before; one more batch like it raises an alarm"
    )


def _agreement(watched: Mapping[Stream, History]) -> tuple[Stream, History] | tuple[None, None]:
    """What most judges and the system agree on."""
    return next(
        ((stream, history) for stream, history in watched.items() if stream.subject == "agreement"), (None, None)
    )


def _batches(n: int, more: str = "") -> str:
    """A number of batches."""
    return f"{n} {more}batch{'es' if n != 1 else ''}"


def notes_on(
    batches: Sequence[Batch], watched: Mapping[Stream, History], *, baseline: int, has_alarm: bool
) -> Iterator[str]:
    """What a reader of the alarms should know of the batches since the baseline began."""
    if not batches:
        return
    yield from _notes_on_judges(batches)
    n_drawn, n_chosen = sum(batch.n_gold for batch in batches), sum(batch.n_chosen for batch in batches)
    n_gold = sum(int((batch.equal_gold >= 0).sum()) for batch in batches)
    if n_chosen:
        yield (
            f"{n_chosen:,} checked item{' was' if n_chosen == 1 else 's were'} chosen, not drawn at random, and left "
            "out: that says nothing sure of the others."
        )
    if n_gold < n_drawn:
        yield (
            f"{n_drawn - n_gold:,} of {n_drawn:,} checked items {'was' if n_drawn - n_gold == 1 else 'were'} set aside "
            "at random, since items of a batch were drawn with different chances: alarms about the system and the "
            "judges rest on the others, all as if drawn with the smallest chance. Draw with one chance within a batch, "
            "or some items so for the monitor, to use them all."
        )
    if n_gold < LEAST_CHECKED:
        yield (
            "To name the system or a judge as the cause, the monitor needs checked items drawn at random: at least "
            f"{LEAST_CHECKED} before a change, got {n_gold}."
        )
    _, main = _agreement(watched)
    # After a change batches differ because of it, which the newest may show before there is an alarm.
    excess = 1.0 if main is None or has_alarm else dispersion(main.hits[:-1], main.sizes[:-1])
    if len(batches) > baseline and excess >= _MARKED:
        yield (
            f"Batches differ from one another more than their items explain, by {excess:.1f} times the variance; "
            "alarms allow for it and take longer."
        )


def _notes_on_judges(batches: Sequence[Batch]) -> Iterator[str]:
    """Who is new, who is absent, and whether judges are too many to be followed one by one."""
    panel = panel_of(batches[0])
    if panel is None:
        yield (
            f"The judges are a crowd, or more than {MOST_JUDGES}: they are followed as a whole, and no alarm is about "
            "one of them."
        )
        return
    known = list(panel)
    for batch in batches[1:]:
        new = [name for name in batch.judges if name not in known]
        known += new
        for name in new:
            yield (
                f"{name!r} is new since {batch.when}: they are followed, and are not among the judges that the "
                "system is compared with."
            )
    absences = {name: [batch.when for batch in batches if name not in batch.judges] for name in panel}
    for name, times in absences.items():
        if times:
            yield (
                f"{name!r} is absent from {_batches(len(times))}, last {times[-1]}: "
                "there the system is compared with no majority; begin a new baseline if they stay away."
            )
