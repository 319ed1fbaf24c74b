"""Alarms: what changed, since when, and how sure that is; and what to know of the batches behind them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trueup._base.wording import chance as as_chance
from trueup._base.wording import percent
from trueup.monitor.batch import MOST_JUDGES, Batch, History, Stream, moment, panel_of
from trueup.monitor.change import (
    LEAST_CHECKED,
    Change,
    Strata,
    can_find_change,
    dispersion,
    find_attribution,
    find_change,
)

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
            f"To name the system or a judge takes checked items, drawn at random: at least {LEAST_CHECKED} before a "
            f"change, got {n_gold}."
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
