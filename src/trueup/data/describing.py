"""What `Labels` say of themselves: counts, sentences, one line."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from trueup.data.votes import Votes
from trueup.exceptions import DataWarning, Sentence

__all__ = ["notes", "one_line", "some", "summary", "warn"]


def some(n: int, what: str) -> str:
    """A number with its noun: ``1 item``, ``1,000 classes``."""
    return f"{n:,} {what}{'' if n == 1 else 'es' if what.endswith('s') else 's'}"


def one_line(labels: Votes) -> str:
    """The repr."""
    parts = [
        some(labels.n_items, "item"),
        some(labels.n_labelers, "labeler"),
        some(labels.n_classes, "class"),
        some(labels.n_votes, "vote"),
    ]
    if labels.abstentions.sum():
        parts.append(some(int(labels.abstentions.sum()), "abstention") + f" ({labels.abstain_policy})")
    if labels.n_missing:
        parts.append(f"{labels.n_missing:,} missing")
    for codes, what in ((labels.gold_codes, "gold"), (labels.held_codes, "held-out gold")):
        if (codes >= 0).any():
            parts.append(f"{int((codes >= 0).sum()):,} {what}")
    return f"Labels({', '.join(parts)})"


def summary(labels: Votes) -> dict[str, Any]:
    """Counts of everything that was found."""
    per_item, per_labeler = labels.votes_per_item, labels.votes_per_labeler
    return {
        "items": labels.n_items,
        "labelers": labels.n_labelers,
        "classes": labels.classes.tolist(),
        "votes": labels.n_votes,
        "votes_per_item": {
            "min": int(per_item.min()),
            "mean": float(per_item.mean()),
            "max": int(per_item.max()),
        },
        "votes_per_labeler": {
            "min": int(per_labeler.min()),
            "median": float(np.median(per_labeler)),
            "max": int(per_labeler.max()),
        },
        "items_without_votes": int((per_item == 0).sum()),
        "labelers_with_one_vote": int((per_labeler == 1).sum()),
        "repeated_votes": labels.n_votes - labels.n_pairs,
        "missing": labels.n_missing,
        "abstentions": int(labels.abstentions.sum()),
        "abstain_policy": labels.abstain_policy,
        "gold": int((labels.gold_codes >= 0).sum()),
        "held_gold": int((labels.held_codes >= 0).sum()),
    }


def notes(labels: Votes) -> list[str]:
    """One sentence for each thing in the votes that a reader of results should know."""
    counts, found = summary(labels), []
    if counts["items_without_votes"]:
        found.append(
            f"{counts['items_without_votes']} of {some(labels.n_items, 'item')} have no votes; they are kept, and only "
            "the prior speaks of them."
        )
    if counts["labelers_with_one_vote"]:
        found.append(
            f"{counts['labelers_with_one_vote']} of {some(labels.n_labelers, 'labeler')} gave one vote only, which "
            "says next to nothing of their quality; they are kept unless left out (⟨labels.without_labeler⟩)."
        )
    if counts["repeated_votes"]:
        found.append(
            f"{counts['repeated_votes']} of {some(labels.n_votes, 'vote')} repeat a labeler's vote on an item; they "
            'count as repeated votes, and ⟨duplicates="first"⟩ or ⟨duplicates="last"⟩ keeps one.'
        )
    if counts["missing"]:
        found.append(f"{some(counts['missing'], 'row')} declared missing; they are left out of every count of votes.")
    if counts["abstentions"]:
        what = (
            "they are left out of every count of votes"
            if labels.abstain_policy == "ignore"
            else "they count as an answer that is no class"
        )
        found.append(f"{some(counts['abstentions'], 'abstention')}; {what}.")
    return list(map(Sentence, found))


def warn(labels: Votes, *, repeated: bool, stacklevel: int) -> None:
    """Warn of what was found on the way in: votes that are repeated, if asked for, and items without votes."""
    if repeated and labels.n_votes > labels.n_pairs:
        warnings.warn(
            f"{labels.n_votes - labels.n_pairs} of {labels.n_votes} votes repeat a labeler's vote on an item and are "
            'kept as repeated votes; choose ⟨duplicates="first"⟩, ⟨duplicates="last"⟩ or ⟨duplicates="error"⟩ to treat '
            "them otherwise",
            DataWarning,
            stacklevel=stacklevel,
        )
    silent = int((labels.votes_per_item == 0).sum())
    if silent:
        warnings.warn(
            f"{silent} of {labels.n_items} items have no votes; they are kept, and only the prior speaks of them",
            DataWarning,
            stacklevel=stacklevel,
        )
