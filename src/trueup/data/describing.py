"""What `Labels` say of themselves: counts, sentences, one line."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from trueup._base.html import html_table
from trueup._base.types import Booleans, Codes
from trueup._base.validation import kind_of, preview
from trueup._base.wording import some
from trueup.data.votes import Votes
from trueup.exceptions import DataWarning

_MOST_SHOWN = 20  # classes


def one_line(labels: Votes) -> str:
    """The repr."""
    sizes = {"item": labels.n_items, "labeler": labels.n_labelers, "class": labels.n_classes, "vote": labels.n_votes}
    parts = [some(n, what) for what, n in sizes.items()]
    if labels.abstentions.sum():
        parts.append(some(int(labels.abstentions.sum()), "abstention") + f" ({labels.abstain_policy})")
    if labels.n_missing:
        parts.append(f"{labels.n_missing:,} missing")
    for codes, what in ((labels.gold_codes, "gold"), (labels.held_codes, "held-out gold")):
        if (codes >= 0).any():
            n_drawn = _n_drawn(labels, codes)
            parts.append(f"{int((codes >= 0).sum()):,} {what}" + (f" ({n_drawn:,} drawn)" if n_drawn else ""))
    if labels.item_columns:
        parts.append(some(len(labels.item_columns), "item column"))
    return f"Labels({', '.join(parts)})"


def as_html(labels: Votes) -> str:
    """The share of votes of each class, the commonest first, as a small table with bars."""
    shares = labels.answer_counts.sum(axis=0)[: labels.n_classes] / max(labels.n_votes, 1)
    names = labels.classes.tolist()
    order = np.argsort(-shares, kind="stable")[:_MOST_SHOWN].tolist()
    rows = [(names[k], float(shares[k]), math.nan, math.nan) for k in order]
    more = [f"… and {labels.n_classes - len(rows)} more"] if labels.n_classes > len(rows) else []
    return html_table(one_line(labels), rows, head=("class", "share of votes"), notes=(*more, *notes(labels)))


def summary(labels: Votes) -> dict[str, Any]:
    """Counts of everything that was found."""
    per_item, per_labeler = labels.votes_per_item, labels.votes_per_labeler
    return {
        "items": labels.n_items,
        "labelers": labels.n_labelers,
        "classes": labels.classes.tolist(),
        "votes": labels.n_votes,
        "votes_per_item": {"min": int(per_item.min()), "mean": float(per_item.mean()), "max": int(per_item.max())},
        "votes_per_labeler": {
            "min": int(per_labeler.min()),
            "median": float(np.median(per_labeler)),
            "max": int(per_labeler.max()),
        },
        "items_without_votes": int((per_item == 0).sum()),
        "labelers_with_one_vote": int((per_labeler == 1).sum()),
        "repeated_votes": labels.n_repeats,
        "missing": labels.n_missing,
        "abstentions": int(labels.abstentions.sum()),
        "abstain_policy": labels.abstain_policy,
        "gold": int((labels.gold_codes >= 0).sum()),
        "drawn_gold": _n_drawn(labels, labels.gold_codes),
        "held_gold": int((labels.held_codes >= 0).sum()),
        "classes_without_votes": labels.classes[_unvoted(labels)].tolist(),
        "item_columns": list(labels.item_columns),
        "items_without_values": labels.item_table.n_items_without_values,
    }


def _n_drawn(labels: Votes, codes: Codes) -> int:
    """How many of the truths in a role are of items that were drawn with a known chance."""
    return int(((codes >= 0) & ~np.isnan(labels.gold_chance)).sum())


def _unvoted(labels: Votes) -> Booleans:
    """Which classes nobody voted for."""
    return np.asarray(labels.votes_per_answer[: labels.n_classes] == 0)


def gold_only_classes(labels: Votes) -> list[Any]:
    """The classes that gold names and nobody voted for."""
    named = np.zeros(labels.n_classes, dtype=bool)
    for codes in (labels.gold_codes, labels.held_codes):
        named[codes[codes >= 0]] = True
    only_gold: list[Any] = labels.classes[named & _unvoted(labels)].tolist()
    return only_gold


def notes(labels: Votes) -> list[str]:
    """One sentence for each thing in the votes that a reader of results should know."""
    counts, sentences = summary(labels), []
    if counts["items_without_votes"]:
        sentences.append(_about_silent_items(labels))
    if counts["labelers_with_one_vote"]:
        sentences.append(
            f"{counts['labelers_with_one_vote']} of {some(labels.n_labelers, 'labeler')} gave one vote only, which "
            "says next to nothing of their quality; they are kept unless left out (`labels.without_labeler`)."
        )
    if counts["repeated_votes"]:
        sentences.append(_about_repeated_votes(labels))
    if counts["missing"]:
        sentences.append(
            f"{some(counts['missing'], 'row')} declared missing; they are left out of every count of votes."
        )
    if counts["abstentions"]:
        what = (
            "they are left out of every count of votes"
            if labels.abstain_policy == "ignore"
            else "they count as an answer that is no class"
        )
        sentences.append(f"{some(counts['abstentions'], 'abstention')}; {what}.")
    only_gold = gold_only_classes(labels)
    if only_gold:
        sentences.append(
            f"Nobody voted for {preview(only_gold)}, which gold names; every vote on those items "
            "counts as an error of the labeler who gave it."
        )
    if 0 < counts["drawn_gold"] < counts["gold"]:
        sentences.append(
            f"Of {counts['gold']:,} checked truths {counts['drawn_gold']:,} are of items drawn with a known chance and "
            "the others of chosen ones; only those drawn stand for items that nobody checked."
        )
    if counts["items_without_values"]:
        sentences.append(
            f"{counts['items_without_values']} of {some(labels.n_items, 'item')} are not in the item table; they have "
            "no value in any of its columns."
        )
    return [*labels.reading_notes, *sentences, *find_suspect_names(labels)]


_NULL_WORDS = {"nan", "none", "null", "nil", "na", "n/a", "<na>", "#n/a", "nat"}
_MANY_NUMBERS = 100  # numeric classes from which they are probably scores
_RARE = 0.02  # of the votes for the frequent spelling
_MOST_SPELLINGS = 500  # classes that are compared letter by letter


def find_suspect_names(labels: Votes) -> list[str]:
    """A sentence for each sign that names were mistyped or mean no class, and what to do about it."""
    sentences = []
    for what, names in (("classes", labels.classes), ("labelers", labels.labelers)):
        texts = [name for name in names.tolist() if isinstance(name, str)]
        alike: dict[str, list[str]] = {}
        for name in texts:
            alike.setdefault(_letters(name), []).append(name)
        sentences += [
            f"The {what} {preview(group, most=5)} differ by case or blanks only; if they are the same, write them "
            "alike before reading."
            for group in alike.values()
            if len(group) > 1
        ]
    classes = labels.classes.tolist()
    times = labels.votes_per_answer
    words = [name for name in classes if isinstance(name, str) and name.strip().lower() in _NULL_WORDS]
    sentences += [
        f"The class {word!r} is what programs write where a value is missing; if it means that there is no vote, "
        f"declare it with `missing={word!r}`."
        for word in words
    ]
    compared = list(enumerate(classes)) if len(classes) <= _MOST_SPELLINGS else []
    sentences += [
        f"The class {rare!r} has {some(times[k], 'vote')} and is spelled almost like {frequent!r}, which "
        f"has {times[j]:,}; if it is a typing error, correct it before reading."
        for k, rare in compared
        for j, frequent in compared
        if times[k] <= _RARE * times[j] and _nearly_alike(rare, frequent)
    ]
    if len(classes) > _MANY_NUMBERS and all(kind_of(name) == "number" for name in classes):
        sentences.append(f"There are {len(classes):,} classes and all are numbers; cut scores into classes.")
    return sentences


def misspelled_class(name: object, classes: Iterable[object]) -> str | None:
    """The class that a new name probably means: another case, blanks or one typing error; no codes, no short names."""
    if not isinstance(name, str):
        return None
    texts = [text for text in classes if isinstance(text, str)]
    same = next((text for text in texts if _letters(text) == _letters(name)), None)
    if same is not None:
        return same
    for text in texts:
        codes = max(len(name), len(text)) < 4 or any(map(str.isdigit, name + text))
        if not codes and abs(len(name) - len(text)) < 2 and _letters_apart(_letters(name), _letters(text)) == 1:
            return text
    return None


def _letters(name: str) -> str:
    """A name without what is easily mistyped: case and blanks."""
    return "".join(name.split()).casefold()


def _nearly_alike(a: object, b: object) -> bool:
    """Whether two texts without digits are one typing error apart, or two if they are long."""
    if not (isinstance(a, str) and isinstance(b, str)) or any(map(str.isdigit, a + b)):
        return False
    short = min(len(a), len(b))
    if short < 4 or abs(len(a) - len(b)) > 2 or _letters(a) == _letters(b):
        return False
    return _letters_apart(a.casefold(), b.casefold()) <= (1 if short < 8 else 2)


def _letters_apart(a: str, b: str) -> int:
    """How many letters of the longer text have no partner in the other: 1 for one inserted, replaced or swapped."""
    same = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return max(len(a), len(b)) - sum(block.size for block in same)


def _about_silent_items(labels: Votes) -> str:
    silent = int((labels.votes_per_item == 0).sum())
    return f"{silent} of {some(labels.n_items, 'item')} have no votes; they are kept, and only the prior tells of them."


def _about_repeated_votes(labels: Votes) -> str:
    return f"{labels.n_repeats} of {some(labels.n_votes, 'vote')} repeat a labeler's vote on an item."


def warn(labels: Votes, *, repeated: bool) -> None:
    """Warn of what a reader of votes should know at once: repeated votes, if asked for, and items without votes."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "trueup":
        frame, level = frame.f_back, level + 1  # the caller is who called trueup
    if repeated and labels.has_repeats:
        advice = 'All count; `duplicates="first"` or `duplicates="last"` keeps one.'
        warnings.warn(f"{_about_repeated_votes(labels)} {advice}", DataWarning, stacklevel=level)
    if (labels.votes_per_item == 0).any():
        warnings.warn(_about_silent_items(labels), DataWarning, stacklevel=level)
