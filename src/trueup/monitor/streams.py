"""What is counted in every batch, and which part of the permitted false alarms each count may use.

From votes: whether the system agrees with most judges (or most judges name a class), how often the system and each
judge name each class, and how often two judges agree. From gold: whether the system is right, and whether each judge is
wrong. Each is a share of items, followed by `change.find_change`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from trueup._base.types import Booleans, Codes
from trueup.monitor.batch import Batch
from trueup.monitor.change import Counts

MOST_JUDGES = 10  # who are followed one by one; more are a crowd, followed as a whole

Panel = Sequence[Hashable] | None  # the judges whose majority is followed; None for a crowd, all of it

# Parts of the permitted false alarms; together 1.
_AGREEMENT, _OTHER_VOTES, _SYSTEM_ON_GOLD, _JUDGES_ON_GOLD = 0.8, 0.1, 0.05, 0.05
_NEWCOMERS = 0.2  # of the part of the votes and of the judges; what begins later shares it

Subject = Literal["agreement", "system says", "judge says", "judges agree", "system on gold", "judge on gold"]


@dataclass(frozen=True)
class Stream:
    """Something that holds for an item or not."""

    subject: Subject
    judges: tuple[Hashable, ...] = ()  # the judge or the two judges that it is about, if any
    named: Hashable | None = None  # the class that is named

    @property
    def is_gold(self) -> bool:
        """Whether it is counted on checked items, and not from votes alone."""
        return self.subject in ("system on gold", "judge on gold")


@dataclass(frozen=True)
class History:
    """What was counted so far."""

    places: Counts  # the batches that had something to count
    hits: Counts  # items for which it holds, and items, in each of these
    sizes: Counts  # items for which it holds, and items, in each of these
    part: float  # of the permitted false alarms


def panel_of(first: Batch) -> tuple[Hashable, ...] | None:
    """The judges whose majority is followed: those of the first batch; None for a crowd."""
    return first.judges if len(first.judges) <= MOST_JUDGES and not first.crowds else None


def histories(counted: Sequence[Mapping[Stream, tuple[int, int]]], panel: Panel) -> dict[Stream, History]:
    """What `counts` gave for each batch since a baseline began, with the part of each stream."""
    rows: dict[Stream, list[tuple[int, int, int]]] = {}
    for place, of_batch in enumerate(counted):
        for stream, (hits, n) in of_batch.items():
            if n:
                rows.setdefault(stream, []).append((place, hits, n))
    parts = parts_of(list(rows), counted[0] if counted else (), panel or ())
    tables = {stream: np.array(cells, dtype=np.int64) for stream, cells in rows.items()}
    return {stream: History(table[:, 0], table[:, 1], table[:, 2], parts[stream]) for stream, table in tables.items()}


def counts(batch: Batch, panel: Panel, of: Hashable | None) -> dict[Stream, tuple[int, int]]:
    """Hits and items of each stream that a batch has items for."""
    return {stream: (int(holds.sum()), len(holds)) for stream, holds in _observations(batch, panel, of)}


def _observations(batch: Batch, panel: Panel, of: Hashable | None) -> Iterator[tuple[Stream, Booleans]]:
    """Whether each stream holds, for each item that it is defined for."""
    majority = None
    if panel is None or set(panel) <= set(batch.judges):  # that of fewer judges is another one
        majority = batch.majority(panel)
    prediction = batch.prediction
    if majority is not None:
        decided = majority >= 0
        if prediction is not None:
            both = decided & (prediction >= 0)
            yield Stream("agreement"), (majority == prediction)[both]
        else:
            yield Stream("agreement", named=of), (majority == batch.classes.index(of))[decided]
    if prediction is not None:
        # What is followed from votes is of items with votes: how many others were checked differs between batches.
        yield from _shares_of_classes("system says", (), prediction[batch.has_votes], batch)
    follows_newcomers = len(batch.judges) <= MOST_JUDGES and not batch.crowds
    judges = [] if panel is None else [name for name in batch.judges if name in panel or follows_newcomers]
    for name in judges:
        yield from _shares_of_classes("judge says", (name,), batch.answers_of[name], batch)
    for judge, other in combinations([name for name in judges if panel is not None and name in panel], 2):
        answers, others = batch.answers_of[judge], batch.answers_of[other]
        yield Stream("judges agree", (judge, other)), (answers == others)[(answers >= 0) & (others >= 0)]
    gold = batch.equal_gold
    checked = gold >= 0
    if prediction is not None:
        both = checked & (prediction >= 0)
        yield Stream("system on gold"), (prediction == gold)[both]
    else:
        yield Stream("system on gold", named=of), (gold == batch.classes.index(of))[checked]
    for name in judges:
        answers = batch.answers_of[name]
        yield Stream("judge on gold", (name,)), (answers != gold)[checked & (answers >= 0)]


def _shares_of_classes(
    subject: Subject, judges: tuple[Hashable, ...], answers: Codes, batch: Batch
) -> Iterator[tuple[Stream, Booleans]]:
    """How often each class is named; of two classes one is enough."""
    named = answers[answers >= 0]
    names = batch.classes[1:] if len(batch.classes) == 2 else batch.classes
    for name in names:
        yield Stream(subject, judges, name), named == batch.classes.index(name)


def parts_of(streams: Sequence[Stream], at_first: Iterable[Stream], panel: Sequence[Hashable]) -> dict[Stream, float]:
    """The part of the permitted false alarms of each stream, in the order in which they began; together at most 1."""
    first = set(at_first)
    n_votes = sum(not stream.is_gold and stream.subject != "agreement" for stream in first)
    parts: dict[Stream, float] = {}
    newcomers = {"votes": 0, "gold": 0}
    for stream in streams:
        if stream.subject == "agreement":
            parts[stream] = _AGREEMENT
        elif stream.subject == "system on gold":
            parts[stream] = _SYSTEM_ON_GOLD
        else:
            whole = _JUDGES_ON_GOLD if stream.is_gold else _OTHER_VOTES
            is_old = stream.judges[0] in panel if stream.is_gold else stream in first
            if is_old:
                parts[stream] = whole * (1 - _NEWCOMERS) / (len(panel) if stream.is_gold else n_votes)
            else:
                kind = "gold" if stream.is_gold else "votes"
                newcomers[kind] += 1
                parts[stream] = whole * _NEWCOMERS / (newcomers[kind] * (newcomers[kind] + 1))
    return parts
