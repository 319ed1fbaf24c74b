"""Alarms: what changed, since when, and how sure that is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trueup._base.wording import chance as as_chance
from trueup._base.wording import percent
from trueup.exceptions import quoted
from trueup.monitor.attribution import Attribution, Strata, find_attribution
from trueup.monitor.batch import moment
from trueup.monitor.change import Change, find_change
from trueup.monitor.streams import History, Stream

AlarmKind = Literal["something", "the system", "the judge"]
# The most telling first.
_ORDER: tuple[AlarmKind, ...] = ("the system", "the judge", "something")


@dataclass(frozen=True)
class Alarm:
    """Something is not what it was.

    Attributes
    ----------
    kind : {"something", "the system", "the judge"}
        What changed: the votes tell of something, vetted truths tell of the system or of a judge.
    judge : hashable, optional
        Whom it is about, where it is about one.
    when : str
        The batch after which it was seen.
    since : str
        The first batch of those that differ from all before.
    before, after : float
        The share that changed, in the batches before that one and since.
    n_before, n_after : int
        The items, or vetted items, that these are shares of.
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
        The chance that any is ever raised without a change; and, about, that votes having shown a change the wrong one
        is named for it.
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
            # Vetted items may have told of it by themselves, and before.
            if stream not in alarms or moment(times[attribution.look]) < moment(alarms[stream].when):
                alarms[stream] = _from_attribution(stream, attribution, times[first], times)
    return sorted(alarms.values(), key=lambda alarm: (_ORDER.index(alarm.kind), alarm.chance))


def _attributions(
    strata: Sequence[Mapping[Stream, Strata]], first: int, look: int, wrong: float
) -> Iterator[tuple[Stream, Attribution]]:
    """Whose accuracy is not what it was, half of the permitted mistakes for the system, half for all judges."""
    streams = list(dict.fromkeys(stream for one in strata for stream in one))
    n_judges = sum(stream.subject == "judge on gold" for stream in streams)
    for stream in streams:
        n_accuracies = 2.0 if stream.subject == "system on gold" else 2.0 * n_judges
        attribution = find_attribution(
            [one.get(stream) for one in strata], first=first, look=look, wrong=wrong, n_accuracies=n_accuracies
        )
        if attribution is not None:
            yield stream, attribution


def _from_change(stream: Stream, change: Change, history: History, times: Sequence[str]) -> Alarm:
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
        n_before=attribution.before.n_vetted,
        n_after=attribution.after.n_vetted,
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
    items = "vetted items" if stream.is_gold else "items"
    told = shares.format(f"{n_after:,} {items}", f"{n_before:,}")
    sentence = (
        f"{who} since {since} (seen {when}): {what_is_counted(stream)} {told}; without a change such an alarm has a "
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
