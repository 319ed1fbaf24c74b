"""Gold: vetted truths, and how the items that were vetted had been drawn.

An item is drawn with a known chance (its inclusion probability) or chosen, for a reason that may have to do with its
truth. Only what was drawn stands for the items that nobody vetted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, Literal

import numpy as np

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_choice, did_you_mean, kind_hint, preview
from trueup.data import describing as _describe
from trueup.data.building import declared
from trueup.data.encoding import NULL_CODE, Vocabulary, check_named, is_null
from trueup.data.frames import Cells, Table, column_of, read_names
from trueup.data.votes import Votes
from trueup.exceptions import InvalidLabels

GoldRole = Literal["fit", "check"]
Draw = Literal["chosen", "random"]
DRAWS: tuple[Draw, ...] = ("chosen", "random")
_WORDS, _NUMBERS = "drawn", ("chance", "inclusion_probability")  # columns of gold that tell how items were drawn
Drawn = Draw | Mapping[Any, float | Draw]


class Gold(dict[Hashable, Hashable]):
    """Vetted truths, a mapping from item to class, that know how their items were drawn.

    `trueup.read_gold` makes it of a file, and `Labels.with_gold` takes it as any mapping.

    Examples
    --------
    >>> from trueup.data.gold import Gold
    >>> Gold({"q1": "good"}, drawn="random")
    {'q1': 'good'}
    """

    def __init__(self, truths: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), *, drawn: Drawn = "chosen") -> None:
        super().__init__(truths)
        self.drawn: Drawn = drawn


def check_names(labels: Votes, names: list[Any]) -> None:
    """Stop what cannot be the truth of an item: nulls, another type, others than fixed classes, misspellings."""
    known = set(labels.classes.tolist())
    strange = [name for name in names if not isinstance(name, Hashable) or name not in known]
    if not strange:
        return
    no_class = [name for name in strange if name is None or name in labels.answers.tolist()]
    classes = f"where the classes are {preview(labels.classes, most=10)}"
    hint = kind_hint(strange[0], labels.classes, what="classes")
    if no_class:
        hint = "; leave out the items whose truth is not known"
    if hint or labels.fixed_classes:
        hint = hint or did_you_mean(strange[0], known) or "; add it with `classes=[…]` when reading the votes"
        raise InvalidLabels(f"gold must name classes, got {preview(no_class or strange)} {classes}{hint}")
    for name in dict.fromkeys(strange):
        meant = _describe.misspelled_class(name, labels.classes.tolist())
        if meant is not None:
            raise InvalidLabels(
                f"gold must name classes, got {name!r} {classes}; did you mean {meant!r}? If it is another class, "
                "name all with `classes=[…]` when reading the votes"
            )


def given_inclusion_probabilities(drawn: object, items: list[Any]) -> tuple[Floats, Booleans]:
    """The chance of each item that is a number, else NaN, and which items were drawn by a simple random sample."""
    if isinstance(drawn, Mapping):
        named = set(items)
        without, strangers = (
            [item for item in items if item not in drawn],
            [item for item in drawn if item not in named],
        )
        if without or strangers:
            what = (
                f"no chance for {len(without)} of {len(items)} items: {preview(without)}"
                if without
                else f"{len(strangers)} items without a truth: {preview(strangers)}"
            )
            raise InvalidLabels(f"`drawn` must name the items of the gold and no others, got {what}; name each once")
        design = [(item, drawn[item]) for item in items]
    else:
        design = [(item, check_choice(drawn, DRAWS, name="drawn")) for item in items]
    at_random = [isinstance(way, str) and way == "random" for _, way in design]
    chances = [np.nan if isinstance(way, str) and way in DRAWS else _chance(way, item) for item, way in design]
    return np.array(chances, dtype=np.float64), np.array(at_random, dtype=bool)


def _chance(value: object, item: object) -> float:
    """An inclusion probability; anything else is an error."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not 0 < number <= 1:
        raise InvalidLabels(
            f"an item's chance to be drawn must be above 0 and at most 1, got {value!r} for item {item!r}; correct it, "
            'or pass `drawn="chosen"` where it is not known'
        )
    return number


def read_design(items: list[Any], words: list[Any] | None, numbers: list[Any] | None) -> dict[Any, float | Draw]:
    """How each item was drawn, from the rows of a file."""
    design: dict[Any, float | Draw] = {}
    for k, item in enumerate(items):
        word = None if words is None or is_null(words[k]) else str(words[k]).strip().casefold() or None
        number = None if numbers is None or is_null(numbers[k]) else numbers[k]
        if isinstance(number, str):
            with suppress(ValueError):  # what is no number is refused below
                number = float(number) if number.strip() else None
        if word not in (None, *DRAWS) or (word == "chosen" and number is not None):
            beside = "" if number is None else f" beside the chance {number!r}"
            raise InvalidLabels(
                f"the column 'drawn' of gold must say random or chosen, got {word!r}{beside} for item {item!r}; "
                'correct it, or pass `drawn="chosen"` to ignore it'
            )
        how: float | Draw = "random" if word == "random" else "chosen"
        if number is not None:
            how = _chance(number, item)
        if design.setdefault(item, how) != how:
            raise InvalidLabels(f"an item is drawn in one way, got {design[item]!r} and {how!r} for {item!r}; keep one")
    return design


def chances_after(labels: Votes, in_role: Codes, where: Positions, chances: Floats, at_random: Booleans) -> Floats:
    """`gold_chance` with more gold; all items of a role that were drawn at random are one simple random sample."""
    after = labels.gold_chance.copy()
    numbers = ~np.isnan(chances)
    after[where[numbers]] = chances[numbers]
    sample = where[at_random]
    if not len(sample):
        return after
    drawn_before = (in_role >= 0) & ~np.isnan(after)
    drawn_before[where[numbers]] = True
    known = after[drawn_before]
    if len(known) and not np.allclose(known, known[0], rtol=1e-9, atol=0):
        raise InvalidLabels(
            f"a simple random sample and gold of several chances do not add up, got {len(sample)} items drawn at "
            f"random beside {len(known)} with chances from {known.min():.4g} to {known.max():.4g}; pass "
            "`drawn={item: probability}` with the chance of each to be in either"
        )
    drawn_before[sample] = True
    after[drawn_before] = drawn_before.sum() / labels.n_items
    return after


def check_contradictions(known: Mapping[Any, Any], truths: Mapping[Any, Any], *, remedy: str) -> None:
    """Stop truths that differ from those known before."""
    differ = [item for item, name in truths.items() if item in known and known[item] != name]
    if differ:
        raise contradiction(differ[0], [known[differ[0]], truths[differ[0]]], len(differ), remedy=remedy)


def contradiction(item: object, names: Iterable[object], n_items: int, *, remedy: str) -> InvalidLabels:
    """The error for items of which gold says several things; the first of them is named with what it says."""
    values = " and ".join(map(repr, names))
    several = f" ({n_items} such items)" if n_items > 1 else ""
    return InvalidLabels(f"an item has one truth in gold, got {values} for item {item!r}{several}; {remedy}")


def names_by_role(labels: Votes | None) -> dict[str, Vocabulary]:
    """What text in a file stands for, by role."""
    return {} if labels is None else {"item": labels.items, "prediction": labels.classes, "label": labels.classes}


def gold_from(
    table: Table, item: str | Sequence[str], label: str, *, drawn: Draw | None, missing: Any, labels: Votes | None
) -> Gold:
    """Vetted truths from an open table; the parameters are those of `trueup.read_gold`."""
    if drawn is not None:
        check_choice(drawn, DRAWS, name="drawn")
    special, _ = declared(missing, (), from_text=table.from_text)
    item, label = column_of("item", item, table.columns), column_of("label", label, table.columns)
    if label == "label" not in table.columns:
        truth = column_of("truth", "truth", table.columns)
        label = truth if truth in table.columns else label
    words, numbers = Cells(), Cells()
    present = [name for name in table.columns if drawn is None and name not in (item, label)]
    sinks = [(name, words) for name in present if name == _WORDS]
    sinks += [(name, numbers) for name in [name for name in _NUMBERS if name in present][:1]]
    names = read_names(table, {"item": item, "label": label}, special=special, known=names_by_role(labels), sinks=sinks)
    (item_code, item_names), (truth, truth_names) = names["item"], names["label"]
    check_named(item_code, "item")
    named_items, how = item_names[item_code].tolist(), drawn or "chosen"
    design: dict[Any, float | Draw] = dict.fromkeys(named_items, how)
    if sinks:
        design = read_design(named_items, words.values or None, numbers.values or None)
    # All of what was drawn must be vetted: who is left out differs.
    empty = np.flatnonzero(truth == NULL_CODE)
    not_vetted = [k for k in empty.tolist() if design[named_items[k]] != "chosen"]
    if not_vetted:
        n_drawn = sum(way != "chosen" for way in design.values())
        raise InvalidLabels(
            f"every item that was drawn must be checked, got {len(not_vetted)} of {n_drawn} without a label "
            f'(first: `row {not_vetted[0]}`); fill them in, or pass `drawn="chosen"`'
        )
    if len(empty) and None not in special:
        raise InvalidLabels(
            f"label must not be empty in gold, got {len(empty)} of {len(truth)} such rows (first: `row "
            f"{empty[0]}`); drop them, or pass `missing=None`"
        )
    vetted = truth >= 0
    pairs = np.unique(np.stack([item_code[vetted], truth[vetted]], axis=1), axis=0)
    twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(twice):
        first = pairs[[twice[0], twice[0] + 1]]
        values, n_items = truth_names[first[:, 1]].tolist(), len(np.unique(pairs[twice, 0]))
        raise contradiction(item_names[first[:1, 0]].tolist()[0], values, n_items, remedy="keep one of each")
    mapping = dict(zip(item_names[pairs[:, 0]].tolist(), truth_names[pairs[:, 1]].tolist(), strict=True))
    return Gold(mapping, drawn={name: design[name] for name in mapping} if sinks else how)
