"""One batch: votes, predictions and checked items, as codes without the names of items, and as JSON.

What is counted of checked items is the share of a batch only if each item had the same chance to be checked. So of
checked items that were drawn with different chances each is kept with the smallest chance over its own
(`equalize_inclusion`; thinning, Lewis and Shedler 1979). Weights would use them all, but the exact tests and the
likelihoods of `change` are of counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import did_you_mean, preview
from trueup.data.encoding import encode, vocabulary_from
from trueup.data.labels import Labels
from trueup.data.predictions import as_predictions
from trueup.data.votes import bare_votes, vote_matrix
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.sessions.log import plain_name, read_name
from trueup.storage.joining import check_names

Counts = npt.NDArray[np.int64]

_PERIOD = re.compile(r"(\d{4})-(W|Q|)(\d{1,2})", re.ASCII | re.IGNORECASE)  # 2026-W1, 2026-Q4, 2026-11
_NUMBERED = re.compile(r"([^\W\d]\D*|)(\d+)", re.ASCII)  # 12, week 12
_BITS_OF_CHANCE = 40.0  # of a batch, from which on another one is not the same by chance
_COMPLETE = 0.75  # part of a batch that its checked items stand for, from which on no kind of item is taken for missing


@dataclass(frozen=True, eq=False)
class Batch:
    """What came in at one time."""

    when: str  # an instant, as ISO 8601 has it
    classes: tuple[Hashable, ...]  # names; votes and gold are places among the classes
    judges: tuple[Hashable, ...]
    item: Codes  # who voted for which class of which item, and how often, shape (n_answers,); items are numbered,
    judge: Codes  # and checked items that were drawn may have no votes
    answer: Codes
    times: Codes
    prediction: Codes | None  # the class that the system names, -1 for none; None without a system beside the judges
    gold: Codes  # the class of checked items that were drawn at random, -1 for the others, shape (n_items,)
    chance: Floats  # with which each of them was drawn
    n_chosen: int  # checked items that were chosen, not drawn; they say nothing sure of the others and are left out
    crowds: tuple[Hashable, ...]  # the judges that each stand for many
    earlier_chance: float = 1.0  # the smallest in the batches before, since the baseline began

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.gold)

    @property
    def n_gold(self) -> int:
        """Number of checked items that were drawn."""
        return int((self.gold >= 0).sum())

    @cached_property
    def has_votes(self) -> Booleans:
        """Whether each item has votes; the others are there because they were checked."""
        return np.bincount(self.item, minlength=self.n_items) > 0

    @cached_property
    def equal_gold(self) -> Codes:
        """The class of checked items that are as if drawn with equal chances, -1 for the others; for alarms."""
        return np.where(equalize_inclusion(self.chance, when=self.when, earlier=self.earlier_chance), self.gold, -1)

    @property
    def smallest_chance(self) -> float:
        """With which any checked item of this batch or of those before was drawn."""
        return float(min(self.chance[self.gold >= 0].min(initial=1.0), self.earlier_chance))

    @cached_property
    def answers_of(self) -> dict[Hashable, Codes]:
        """The class that each judge named most often for each item, -1 for none or a tie."""
        return {name: self._majority(self.times * (self.judge == k)) for k, name in enumerate(self.judges)}

    def majority(self, panel: Sequence[Hashable] | None) -> Codes:
        """The class that most of some judges, or of all, name for each item; -1 for none or a tie.

        A judge counts once, for the class that they named most often; of all judges a crowd counts for each vote.
        """
        vote_weights = self._is_leading_answer.astype(float)
        if panel is None:
            return self._majority(np.where(self._is_by(self.crowds), self.times, vote_weights))
        return self._majority(vote_weights * self._is_by(panel))

    def _is_by(self, judges: Sequence[Hashable]) -> Booleans:
        """Whether each answer is of one of these judges."""
        return np.isin(self.judge, [k for k, name in enumerate(self.judges) if name in judges])

    def _majority(self, vote_weights: Floats) -> Codes:
        """The class with most votes of each item; -1 where there is none or a tie."""
        ballots = np.zeros((self.n_items, len(self.classes)))
        np.add.at(ballots, (self.item, self.answer), vote_weights)
        most = ballots.max(axis=1)
        is_one = ((ballots == most[:, None]).sum(axis=1) == 1) & (most > 0)
        return np.where(is_one, ballots.argmax(axis=1), -1).astype(np.int32)

    @cached_property
    def _is_leading_answer(self) -> Booleans:
        """Whether each answer is the one that its judge gave most often to the item, without a tie."""
        pair = self.item.astype(np.int64) * len(self.judges) + self.judge
        order = np.lexsort((-self.times, pair))
        is_first = np.diff(pair[order], prepend=-1) != 0
        ties = ~is_first & (np.diff(self.times[order], prepend=0) == 0)  # with the one before, of the same pair
        is_first[np.flatnonzero(ties) - 1] = False
        leading = np.zeros(len(pair), dtype=np.bool_)
        leading[order[is_first]] = True
        return leading

    @property
    def is_rich(self) -> bool:
        """Whether it carries so much that another one is not the same by chance."""
        systems = [] if self.prediction is None else [self.prediction]
        table = np.column_stack([*(self.answers_of[name] for name in self.judges), *systems, self.gold])
        counts = np.unique(table, axis=0, return_counts=True)[1]
        return -float(counts @ np.log2(counts / self.n_items)) >= _BITS_OF_CHANCE

    def labels(self) -> Labels:
        """The votes and checked items as `evaluate` takes them; items are numbered from 0."""
        judge, judges = encode([[self.judges[k] for k in self.judge]], column="labeler")
        items, classes = vocabulary_from(range(self.n_items)), vocabulary_from(self.classes)
        shape = (self.n_items, len(judges), len(classes))
        votes = vote_matrix(self.item, judge, self.answer, shape, times=self.times.astype(np.float64))
        known = {"gold_codes": self.gold, "gold_chance": self.chance, "crowds": frozenset(self.crowds)}
        return Labels(**{**bare_votes(items, judges, classes, votes), **known, "fixed_classes": True})

    def predictions(self) -> list[Hashable]:
        """The class that the system names for each item."""
        return [] if self.prediction is None else [self.classes[k] for k in self.prediction]

    def has_votes_of(self, other: Batch) -> bool:
        """Whether both have the same votes and predictions, item by item; checked items may differ."""
        votes = []
        for batch in (self, other):
            predictions = [] if batch.prediction is None else [batch.prediction[batch.has_votes].tolist()]
            item = np.cumsum(batch.has_votes)[batch.item]
            codes = [values.tolist() for values in (item, batch.judge, batch.answer, batch.times)]
            votes.append([batch.judges, batch.classes, *codes, *predictions])
        return votes[0] == votes[1]

    def to_json(self) -> str:
        """The batch as JSON text, without its time."""
        return json.dumps(
            {
                "classes": self.classes,
                "judges": self.judges,
                "crowds": self.crowds,
                "item": self.item.tolist(),
                "judge": self.judge.tolist(),
                "answer": self.answer.tolist(),
                "times": None if (self.times == 1).all() else self.times.tolist(),
                "prediction": None if self.prediction is None else self.prediction.tolist(),
                "n_items": self.n_items,
                "gold": [[int(k), int(self.gold[k]), float(self.chance[k])] for k in np.flatnonzero(self.gold >= 0)],
                "n_chosen": self.n_chosen,
            },
            default=plain_name,
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, when: str, text: str) -> Batch:
        """The batch of `to_json`."""
        record = json.loads(text)
        gold, chance = np.full(record["n_items"], -1, dtype=np.int32), np.full(record["n_items"], np.nan)
        for place, truth, drawn in record["gold"]:
            gold[place], chance[place] = truth, drawn
        item = np.array(record["item"], dtype=np.int32)
        prediction = record["prediction"]
        return cls(
            when,
            read_name(record["classes"]),
            read_name(record["judges"]),
            item,
            np.array(record["judge"], dtype=np.int32),
            np.array(record["answer"], dtype=np.int32),
            np.array(record["times"] or np.ones(len(item)), dtype=np.int32),
            None if prediction is None else np.array(prediction, dtype=np.int32),
            gold,
            chance,
            record["n_chosen"],
            read_name(record["crowds"]),
        )


def join_batches(batches: Sequence[Batch]) -> Batch:
    """One batch with the items of several, in their order, and the judges of all."""
    judges = tuple(dict.fromkeys(name for batch in batches for name in batch.judges))
    place = {name: k for k, name in enumerate(judges)}
    starts = np.cumsum([0, *(batch.n_items for batch in batches)])[:-1]
    judge_codes = [np.array([place[name] for name in batch.judges], dtype=np.int32)[batch.judge] for batch in batches]
    predictions = [batch.prediction for batch in batches if batch.prediction is not None]
    return Batch(
        batches[-1].when,
        batches[0].classes,
        judges,
        np.concatenate([batch.item + start for batch, start in zip(batches, starts, strict=True)]).astype(np.int32),
        np.concatenate(judge_codes),
        np.concatenate([batch.answer for batch in batches]),
        np.concatenate([batch.times for batch in batches]),
        np.concatenate(predictions) if predictions else None,
        np.concatenate([batch.gold for batch in batches]),
        np.concatenate([batch.chance for batch in batches]),
        sum(batch.n_chosen for batch in batches),
        tuple(dict.fromkeys(name for batch in batches for name in batch.crowds)),
    )


def equalize_inclusion(chances: Floats, *, when: str, earlier: float) -> Booleans:
    """Which checked items of a batch to count, so that each item is among them with the same chance.

    `chances` are those with which items were drawn, nan for others. The time `when` is the seed: neither votes nor gold
    decide which items are kept. `earlier` is the smallest chance in batches before. It is that of items that were
    seldom drawn and of which this batch has none, where the checked items count for few (one over its chance each).

    Examples
    --------
    >>> chances = np.array([np.nan, 0.1, np.nan, 0.1])
    >>> equalize_inclusion(chances, when="2026-11-15", earlier=1.0).tolist()
    [False, True, False, True]
    >>> often = np.where(np.arange(2000) < 1000, 0.05, 0.5)
    >>> kept = equalize_inclusion(often, when="2026-11-15", earlier=1.0)
    >>> int(kept[:1000].sum()), int(kept[1000:].sum()) < 150
    (1000, True)
    """
    is_checked = ~np.isnan(chances)
    if not is_checked.any():
        return is_checked
    given = np.where(is_checked, chances, np.inf)
    smallest = float(given.min())
    if float((1 / given).sum()) < _COMPLETE * len(chances):
        smallest = min(smallest, earlier)
    draws = np.random.default_rng(list(when.encode())).random(len(chances))
    return np.asarray(draws < smallest / given)


def make_batch(
    labels: Labels, predictions: Any, when: str, classes: Sequence[Hashable] | None, *, has_system: bool | None
) -> Batch:
    """A batch from what a user passes; `classes` and `has_system` are of the batches before, None for the first one."""
    if not isinstance(labels, Labels):
        raise InvalidLabels(
            f"a batch must be Labels, got {type(labels).__name__}; call `add(labels, predictions, when=…)`, "
            "with labels from Labels.from_frame or from_matrix",
            parameter="labels",
        )
    if has_system is not None and has_system != (predictions is not None):
        before, now = ("predictions", "none") if has_system else ("votes only", "predictions")
        raise InvalidPredictions(
            f"all batches have predictions or none has, got {now} after batches with {before}; "
            f"{'pass them' if has_system else 'leave them out, or start another monitor'}",
            parameter="predictions",
        )
    names = tuple(labels.classes.tolist() if classes is None else classes)
    check_names("class", names)
    check_names("labeler", labels.labelers.tolist())
    code_of = _codes_among(labels.classes.tolist(), names)
    item, judge, answer, times = labels.vote_table()
    kept = answer < labels.n_classes  # abstentions that were kept as answers are no classes
    if not kept.any():
        raise InvalidLabels("a batch must have votes for classes, got none; leave it out")
    is_drawn = (labels.gold_codes >= 0) & ~np.isnan(labels.gold_chance)
    counts = is_drawn | (np.bincount(item[kept], minlength=labels.n_items) > 0)  # other items say nothing
    place = np.cumsum(counts) - 1
    prediction = None
    if predictions is not None:
        outputs = as_predictions(predictions, labels).align(labels, unknown_class="error")
        if outputs.n_systems != 1:
            raise InvalidPredictions(
                f"a monitor watches one system, got {outputs.n_systems}; make one monitor for each",
                parameter="predictions",
            )
        prediction = code_of[outputs.outputs("classes", needed_by="a monitor")[0]][counts]
    gold = np.where(is_drawn, code_of[labels.gold_codes], -1)[counts].astype(np.int32)
    return Batch(
        when,
        names,
        tuple(labels.labelers.tolist()),
        place[item[kept]].astype(np.int32),
        judge[kept],
        code_of[answer[kept]],
        times[kept].astype(np.int32),
        prediction,
        gold,
        np.where(gold >= 0, labels.gold_chance[counts], np.nan),
        int(((labels.gold_codes >= 0) & ~is_drawn).sum()),
        tuple(sorted(labels.crowds, key=str)),
    )


def _codes_among(classes: Sequence[Hashable], names: Sequence[Hashable]) -> Codes:
    """The place of each class of a batch among those of the monitor; one more entry serves the code -1."""
    position = {name: k for k, name in enumerate(names)}
    strange = [name for name in classes if name not in position]
    if strange:
        raise InvalidLabels(
            f"the classes of a batch must be those of the first, {preview(names, most=10)}, got {strange[0]!r}"
            f"{did_you_mean(strange[0], names) or '; start another monitor, or name all with `classes=[…]` at first'}",
            parameter="classes",
        )
    return np.array([*(position[name] for name in classes), -1], dtype=np.int32)


def instant_of(when: object) -> str:
    """A time or a number that a user names, as text that `moment` orders."""
    text = when.isoformat() if isinstance(when, date | datetime) else when
    if isinstance(when, Integral) and not isinstance(when, bool):
        text = str(when)
    try:
        if not isinstance(text, str):
            raise ValueError
        moment(text)
    except ValueError:
        raise InvalidParameter(
            "`when` must be a date, a time, a week, a quarter, a month or a whole number, such as '2026-11-15', "
            f"'2026-11-15T08:00', '2026-W47', '2026-Q4', '2026-11', 12 or 'week 12', got {when!r}; write it so",
        ) from None
    return text


def moment(text: str) -> tuple[str, datetime | int]:
    """The kind of a label, and what orders those of one kind: when it begins (UTC without a zone), or a number."""
    period, numbered = _PERIOD.fullmatch(text.strip()), _NUMBERED.fullmatch(text.strip())
    if period is not None:
        year, unit, n = int(period[1]), period[2].upper(), int(period[3])
        first = date.fromisocalendar(year, n, 1) if unit == "W" else date(year, 3 * n - 2 if unit == "Q" else n, 1)
        return "time", datetime(first.year, first.month, first.day, tzinfo=UTC)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        if numbered is None:
            raise
        return numbered[1].strip().casefold(), int(numbered[2])
    return "time", instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


# ------------------ What is counted in every batch, and which part of the permitted false alarms each count may use.
# From votes: whether the system agrees with most judges (or most judges name a class), how often the system and each
# judge name each class, and how often two judges agree. From gold: whether the system is right, and whether each judge
# is wrong. Each is a share of items, followed by `change.find_change`.

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
    hits: Counts  # items for which it holds in each of these
    sizes: Counts  # items in each of these
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
    n_newcomers = {True: 0, False: 0}  # on gold, and from votes
    for stream in streams:
        is_gold = stream.is_gold
        whole = _JUDGES_ON_GOLD if is_gold else _OTHER_VOTES
        if stream.subject == "agreement":
            parts[stream] = _AGREEMENT
        elif stream.subject == "system on gold":
            parts[stream] = _SYSTEM_ON_GOLD
        elif stream.judges[0] in panel if is_gold else stream in first:
            parts[stream] = whole * (1 - _NEWCOMERS) / (len(panel) if is_gold else n_votes)
        else:
            n_newcomers[is_gold] += 1
            parts[stream] = whole * _NEWCOMERS / (n_newcomers[is_gold] * (n_newcomers[is_gold] + 1))
    return parts
