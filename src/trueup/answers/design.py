"""Whether gold was drawn as it is said to be: reasons for doubt, and what to say where nothing was said.

A simple random sample of the items has votes like the other items, whatever the noise, so that the votes can refute it.
"""

from __future__ import annotations

import numpy as np
import scipy

from trueup._base.types import Booleans, Floats
from trueup._base.wording import percent
from trueup.data.labels import Labels
from trueup.exceptions import Sentence, quoted

_SURELY = 0.001  # the chance of a false alarm
_OF_ONE_CLASS = 0.01  # the same where all gold has one class, which is strange enough by itself
_LEAST_OF_ONE_CLASS = 10
_REMEDY = (
    'if someone chose them, say so with ⟨drawn="chosen"⟩, or the numbers are those of such items only, and not of all'
)


def design_doubts(labels: Labels) -> list[Sentence]:
    """Reasons to doubt that gold said to be drawn at random was: too much of one class, too contested, too easy.

    Only samples in which all items have one chance are looked at: others may be unlike the rest by design.
    """
    drawn = (labels.gold_codes >= 0) & ~np.isnan(labels.gold_chance)
    chances = labels.gold_chance[drawn]
    if not len(chances) or drawn.all() or not np.allclose(chances, chances[0]):
        return []
    of_classes = _doubt_of_classes(labels, drawn) or _doubt_of_one_class(labels, drawn)
    return [*of_classes, *_doubt_of_agreement(labels, drawn)]


def _doubt_of_classes(labels: Labels, drawn: Booleans) -> list[Sentence]:
    """Whether the votes on the gold items name a class more often than chance gives those on any items."""
    voted = labels.votes_per_item > 0
    majority = labels.answer_counts[:, : labels.n_classes].argmax(axis=1)
    counts = np.bincount(majority[voted], minlength=labels.n_classes)
    in_gold = np.bincount(majority[voted & drawn], minlength=labels.n_classes)
    n_items, n_gold = int(voted.sum()), int((voted & drawn).sum())
    chance = np.asarray(scipy.stats.hypergeom.sf(in_gold - 1, n_items, counts, n_gold))
    most = int(chance.argmin())
    if chance[most] * labels.n_classes >= _SURELY:
        return []
    name = quoted(labels.classes[[most]].tolist()[0])
    return [
        Sentence(
            f"The gold is said to be drawn at random, but most votes are for {name} on {in_gold[most]:,} of its "
            f"{n_gold:,} items and on {percent(counts[most] / n_items)} of all: chance gives that in less than one of "
            f"1,000 samples; {_REMEDY}."
        )
    ]


def _doubt_of_one_class(labels: Labels, drawn: Booleans) -> list[Sentence]:
    """Whether all gold has one class, and votes say that other items have others."""
    truths = labels.gold_codes[drawn]
    if len(truths) < _LEAST_OF_ONE_CLASS or np.ptp(truths):
        return []
    counts = labels.answer_counts[:, : labels.n_classes]
    n_votes = counts.sum(axis=1)
    share = counts[:, truths[0]] / np.maximum(n_votes, 1)
    gold, others = share[drawn & (n_votes > 0)], share[~drawn & (n_votes > 0)]
    if not len(gold) or not len(others) or np.ptp(share[n_votes > 0]) == 0:
        return []
    if scipy.stats.mannwhitneyu(gold, others, alternative="greater", method="asymptotic").pvalue >= _OF_ONE_CLASS:
        return []
    name = quoted(labels.classes[[truths[0]]].tolist()[0])
    return [
        Sentence(
            f"The gold is said to be drawn at random, but all {len(truths):,} items have the class {name}, which "
            f"{percent(gold.mean())} of the votes name there and {percent(others.mean())} elsewhere: chance gives such "
            f"votes in less than one of 100 samples; {_REMEDY}."
        )
    ]


def _doubt_of_agreement(labels: Labels, drawn: Booleans) -> list[Sentence]:
    """Whether labelers agree less, or more, on the gold items than chance gives."""
    agreement, several = _agreement(labels)
    gold, others = agreement[several & drawn], agreement[several & ~drawn]
    if not len(gold) or not len(others) or np.ptp(agreement[several]) == 0:
        return []
    if scipy.stats.mannwhitneyu(gold, others, method="asymptotic").pvalue >= _SURELY:
        return []
    what = "contested items" if gold.mean() < others.mean() else "items that labelers agree on"
    return [
        Sentence(
            f"The gold is said to be drawn at random, but it has too many {what}: two votes on an item agree in "
            f"{percent(gold.mean())} of its items and in {percent(others.mean())} of the others, which chance gives in "
            f"less than one of 1,000 samples; {_REMEDY}."
        )
    ]


def _agreement(labels: Labels) -> tuple[Floats, Booleans]:
    """How often two votes on an item agree, and on which items there are two."""
    counts = labels.answer_counts
    n_votes = counts.sum(axis=1)
    pairs = n_votes * (n_votes - 1)
    return (counts * (counts - 1)).sum(axis=1) / np.maximum(pairs, 1), np.asarray(pairs > 0)


def draw_not_told(labels: Labels) -> list[Sentence]:
    """What to say where gold is taken for chosen, as it is where nobody said how it was drawn."""
    known = (labels.gold_codes >= 0) | (labels.held_codes >= 0)
    n_chosen = int((known & np.isnan(labels.gold_chance)).sum())
    if not n_chosen or known.all():
        return []
    some = f"{n_chosen:,} of {int(known.sum()):,} vetted items are" if n_chosen > 1 else "A vetted item is"
    one_or_more = ("they stand for themselves", "they were") if n_chosen > 1 else ("it stands for itself", "it was")
    return [
        Sentence(
            f"{some} taken as chosen, so that {one_or_more[0]} only; if {one_or_more[1]} drawn at random, say so: "
            '⟨labels.with_gold⟩ with ⟨drawn="random"⟩.'
        )
    ]
