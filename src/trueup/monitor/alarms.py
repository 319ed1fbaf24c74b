"""Alarms: what changed, since when, and how sure that is; and what to know of the batches behind them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueup._base.wording import chance as as_chance
from trueup._base.wording import percent
from trueup.exceptions import quoted
from trueup.monitor.attribution import LEAST_CHECKED, Attribution, Strata, find_attribution
from trueup.monitor.batch import Batch, moment
from trueup.monitor.change import Change, can_find_change, dispersion, find_change
from trueup.monitor.streams import MOST_JUDGES, History, Stream, panel_of

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
    judge : hashable, optional
        The judge, where it is about one.
    when : str
        The batch after which it was seen.
    since : str
        The first batch of those that differ from all before.
    before, after : float
        The share that changed, in the batches before that one and since.
    n_before, n_after : int
        The items, or checked items, that these are shares of.
    chance : float
        At most so probable if nothing had changed, all looks and everything that is watched counted.
    sentence : str
        All of that in words.
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

    Parameters
    ----------
    watched : mapping from Stream to History
    strata : sequence of mappings
        What `attribution.strata_of` gives for each batch.
    times : sequence of str
        Of the batches.
    false_alarms : float
        The chance that any is ever raised without a change; and, about, that the wrong one is named for a change that
        votes have shown.
    baseline : int
        Batches of a stream before it is looked at.
    """
    changes = {}
    for stream, history in watched.items():
        budget = false_alarms * history.part
        change = find_change(history.hits, history.sizes, false_alarms=budget, baseline=baseline)
        if change is not None:
            changes[stream] = change
    alarms = {stream: _from_change(stream, change, watched[stream], times) for stream, change in changes.items()}
    from_votes = [
        (int(watched[stream].places[change.look]), change.chance, int(watched[stream].places[change.first]))
        for stream, change in changes.items()
        if not stream.is_gold
    ]
    if from_votes:
        look, _, first = min(from_votes)
        for stream, attribution in _attributions(strata, first, look, false_alarms):
            # Checked items may have shown it by themselves, and before.
            if stream not in alarms or moment(times[attribution.look]) < moment(alarms[stream].when):
                alarms[stream] = _from_attribution(stream, attribution, times[first], times)
    return sorted(alarms.values(), key=lambda alarm: (_ORDER.index(alarm.kind), alarm.chance))


def _attributions(
    strata: Sequence[Mapping[Stream, Strata]], first: int, look: int, wrong: float
) -> Iterator[tuple[Stream, Attribution]]:
    """Accuracies that are not what they were; half of the permitted mistakes for the system, half for all judges."""
    streams = list(dict.fromkeys(stream for of_batch in strata for stream in of_batch))
    n_judges = sum(stream.subject == "judge on gold" for stream in streams)
    for stream in streams:
        n_accuracies = 2.0 if stream.subject == "system on gold" else 2.0 * n_judges
        attribution = find_attribution(
            [of_batch.get(stream) for of_batch in strata],
            first=first,
            look=look,
            wrong=wrong,
            n_accuracies=n_accuracies,
        )
        if attribution is not None:
            yield stream, attribution


def _from_change(stream: Stream, change: Change, history: History, times: Sequence[str]) -> Alarm:
    """The alarm about a share that changed."""
    shares = f"{percent(change.after, 1)} of {{}}, and {percent(change.before, 1)} of {{}} before"
    return _alarm(
        stream,
        shares,
        since=times[history.places[change.first]],
        when=times[history.places[change.look]],
        before=change.before,
        after=change.after,
        n_before=change.n_before,
        n_after=change.n_after,
        chance=change.chance / history.part,
    )


def _from_attribution(stream: Stream, attribution: Attribution, since: str, times: Sequence[str]) -> Alarm:
    """The alarm about an accuracy that changed."""
    before, after = attribution.before.accuracy, attribution.after.accuracy
    if stream.subject == "judge on gold":
        before, after = 1 - before, 1 - after
    return _alarm(
        stream,
        f"about {percent(after, 1)} by {{}}, and about {percent(before, 1)} by {{}} before",
        since=since,
        when=times[attribution.look],
        before=before,
        after=after,
        n_before=attribution.before.n_checked,
        n_after=attribution.after.n_checked,
        chance=attribution.chance,
    )


def _alarm(
    stream: Stream,
    shares: str,
    *,
    since: str,
    when: str,
    before: float,
    after: float,
    n_before: int,
    n_after: int,
    chance: float,
) -> Alarm:
    """An alarm with its sentence; `shares` leaves places for the numbers of items since and before."""
    kind: AlarmKind = "something"
    if stream.is_gold:
        kind = "the system" if stream.subject == "system on gold" else "the judge"
    judge = stream.judges[0] if len(stream.judges) == 1 else None
    who = {
        "something": "Something changed",
        "the system": "The system changed",
        "the judge": f"The judge {quoted(judge)} changed",
    }[kind]
    items = "checked items" if stream.is_gold else "items"
    numbers = shares.format(f"{n_after:,} {items}", f"{n_before:,}")
    sentence = (
        f"{who} since {since} (seen {when}): {what_is_counted(stream)} {numbers}; without a change such an alarm has a "
        f"chance of {as_chance(chance)}, however often one looks."
    )
    return Alarm(kind, judge, when, since, before, after, n_before, n_after, chance, sentence)


def what_is_counted(stream: Stream) -> str:
    """The words before a share."""
    names = " and ".join(quoted(name) for name in stream.judges)
    named = "" if stream.named is None else quoted(stream.named)
    if stream.subject == "agreement":
        return f"most judges said {named} for" if named else "the system agreed with most judges on"
    if stream.subject == "system on gold":
        return f"the truth was {named} for" if named else "the system was right on"
    return {
        "system says": f"the system said {named} for",
        "judge says": f"{names} said {named} for",
        "judges agree": f"{names} agreed on",
        "judge on gold": f"{names} was wrong on",
    }[stream.subject]


# ------------------------------------------------------------------ where there is no alarm


def cannot_test_yet(watched: Mapping[Stream, History], n_batches: int, *, false_alarms: float, baseline: int) -> str:
    """Why no alarm is possible yet, and what is needed; nothing where one is.

    Parameters
    ----------
    watched : mapping from Stream to History
    n_batches : int
        Since the baseline began.
    false_alarms, baseline
        As of `find_alarms`.
    """
    if n_batches <= baseline:
        missing = baseline + 1 - n_batches
        return (
            f"tests begin with batch {baseline + 1} of a baseline, got {n_batches}; add {missing} more "
            f"batch{'es' if missing > 1 else ''}"
        )
    main = next((history for stream, history in watched.items() if stream.subject == "agreement"), None)
    if main is None:
        return "no item has a majority of the judges; add batches of items with votes of the same judges"
    hits, sizes = main.hits, main.sizes

    def is_possible(n_more: int) -> bool:
        size = max(round(float(sizes.mean())), 1)
        more_hits = np.full(n_more, round(size * float(hits.sum() / sizes.sum())))
        return can_find_change(
            np.append(hits, more_hits),
            np.append(sizes, np.full(n_more, size)),
            false_alarms=false_alarms * main.part,
            baseline=baseline,
        )

    if is_possible(0):
        return ""
    n_items, n_so_far = int(sizes.sum()), len(sizes)
    needed = next((n for n in range(1, _MOST_MORE + 1) if is_possible(n)), None)
    what = "larger batches" if needed is None else f"{needed} more batch{'es' if needed > 1 else ''} like these"
    return (
        f"{n_items:,} items in {n_so_far} batch{'es' if n_so_far > 1 else ''} are too few for an alarm whatever the "
        f"newest batch holds; add {what}"
    )


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
            f"To name the system or a judge takes checked items, drawn at random: at least {LEAST_CHECKED} before a "
            f"change, got {n_gold}."
        )
    main = next((history for stream, history in watched.items() if stream.subject == "agreement"), None)
    excess = 1.0 if main is None or has_alarm else dispersion(main.hits, main.sizes)
    if len(batches) > baseline and excess >= _MARKED:  # after a change batches differ because of it
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
                f"{quoted(name)} is new since {batch.when}: they are followed, and are not among the judges that the "
                "system is compared with."
            )
    absences = {name: [batch.when for batch in batches if name not in batch.judges] for name in panel}
    for name, times in absences.items():
        if times:
            yield (
                f"{quoted(name)} is absent from {len(times)} batch{'es' if len(times) > 1 else ''}, last {times[-1]}: "
                "there the system is compared with no majority; begin a new baseline if they stay away."
            )
