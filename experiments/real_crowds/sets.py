"""The open sets with truth, and their labelers as the systems to grade.

A labeler is graded as if they were a system: their votes are the predictions, the votes of the others are the labels,
and the truth says what the right answer would have been. Nothing but the votes of others reaches the library.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._data import data_folder, load_crowd

__all__ = ["MOST_ITEMS", "CrowdSet", "Grading", "grade", "load_set", "set_names", "source_table"]

Codes = npt.NDArray[np.int64]

N_GRADED = 4
MIN_GRADED_ITEMS = 60
MOST_ITEMS = 400
NO_TRUTH = -1
# The twenty sets that version 0.2 was measured on.
EARLIER = frozenset(
    [
        *("crowd-adult", "crowd-bluebird", "crowd-d-sentiment", "crowd-dices350", "crowd-dog", "crowd-face"),
        *("crowd-labelme-feat", "crowd-leaves", "crowd-music-ms", "crowd-product-er", "crowd-restaurant-er"),
        *("crowd-sentiment-text", "crowd-snow-rte", "crowd-snow-temp", "crowd-trec2010", "crowd-weather-cf-amt"),
        *("crowd-web", "crowd-zencrowd-in", "judge-llmbar", "judge-llmbar-casestudy"),
    ]
)


@dataclass(frozen=True, eq=False)
class CrowdSet:
    """A set of votes with the truth of some or all of its items.

    Attributes
    ----------
    name, family : str
        The folder of the set, and the collection it belongs to: its sets may share labelers, instructions and the way
        the truth was found, so none of them is judged by constants that another was fitted to.
    labels : Labels
        All votes.
    truth : integer array of shape (n_items,)
        The true class of each of ``labels.items`` as a position in ``labels.classes``; -1 where it is unknown.
    graded : tuple of labelers
        The most prolific on items of known truth, 60 at least and four at most; a draw decides between equals.
    about : mapping
        What the set's own description says.
    """

    name: str
    family: str
    labels: tu.Labels
    truth: Codes
    graded: tuple[Hashable, ...]
    about: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Grading:
    """Some labelers as systems, on at most 400 items that all of them voted on and whose truth is known.

    Attributes
    ----------
    crowd : CrowdSet
    systems : tuple of labelers
    labels : Labels
        The votes of the others on the items.
    said : integer array of shape (n_systems, n_items)
    truth : integer array of shape (n_items,)
    """

    crowd: CrowdSet
    systems: tuple[Hashable, ...]
    labels: tu.Labels
    said: Codes
    truth: Codes

    @property
    def name(self) -> str:
        """The set and the labelers."""
        return f"{self.crowd.name}: {', '.join(map(str, self.systems))}"

    def classes_of(self, codes: Codes) -> list[Any]:
        """Names of classes."""
        names = self.labels.classes.tolist()
        return [names[code] for code in codes.tolist()]

    def checked(self, at: Codes) -> tu.Labels:
        """The labels with some items checked, drawn at random."""
        if not len(at):
            return self.labels
        names = self.labels.items.tolist()
        gold = dict(zip([names[k] for k in at], self.classes_of(self.truth[at]), strict=True))
        return self.labels.with_gold(gold, drawn="random")

    def rng(self, *seed: int) -> np.random.Generator:
        """A generator of its own."""
        return np.random.default_rng([zlib.crc32(self.name.encode()), *seed])


def set_names() -> list[str]:
    """The sets of the data folder that have votes and truth, in the order of their names."""
    folders = (path.parent for path in data_folder().glob("*/truth.csv.gz"))
    return sorted(folder.name for folder in folders if (folder / "labels.csv.gz").exists())


def load_set(name: str) -> CrowdSet:
    """One set by the name of its folder."""
    labels, truth = load_crowd(name)
    about = json.loads((data_folder() / name / "meta.json").read_text(encoding="utf-8"))
    item, labeler, answer, _ = labels.vote_table()
    known = (truth[item] != NO_TRUTH) & (answer < labels.n_classes)
    n_known = np.bincount(labeler[known], minlength=labels.n_labelers)
    may_be_graded = n_known >= MIN_GRADED_ITEMS
    if about.get("grade_only"):
        may_be_graded &= np.isin([str(name) for name in labels.labelers.tolist()], about["grade_only"])
    if about.get("anonymous"):  # labelers are positions, not people
        may_be_graded[:] = False
    lot = np.random.default_rng(zlib.crc32(name.encode())).random(labels.n_labelers)
    order = np.lexsort((lot, -n_known))
    graded = tuple(labels.labelers[[k for k in order if may_be_graded[k]][:N_GRADED]].tolist())
    return CrowdSet(name, about.get("family") or name, labels, truth, graded, about)


def grade(crowd: CrowdSet, *systems: Hashable) -> Grading | None:
    """The labelers as systems; None where they have too few items in common."""
    codes = np.stack([vote_codes(crowd.labels, labeler) for labeler in systems])
    at = np.flatnonzero((codes >= 0).all(axis=0) & (crowd.truth != NO_TRUTH))
    if len(at) < MIN_GRADED_ITEMS:
        return None
    if len(at) > MOST_ITEMS:
        lot = np.random.default_rng(zlib.crc32(f"{crowd.name} {systems}".encode()))
        at = np.sort(lot.choice(at, MOST_ITEMS, replace=False))
    others = crowd.labels.without_labeler(*systems).select(items=crowd.labels.items[at].tolist())
    return Grading(crowd, systems, others, codes[:, at], crowd.truth[at])


def vote_codes(labels: tu.Labels, labeler: Hashable) -> Codes:
    """The class that a labeler voted for on each item, as a position; -1 where they did not vote for a class.

    Of repeated votes that differ, the class named most often, and the first of equals.
    """
    item, voter, answer, times = labels.vote_table()
    own = np.flatnonzero((voter == labels.labeler_codes([labeler])[0]) & (answer < labels.n_classes))
    own = own[np.lexsort((-answer[own], times[own]))]  # what is written last stays
    codes = np.full(labels.n_items, -1)
    codes[item[own]] = answer[own]
    return codes


def source_table(sets: Sequence[CrowdSet]) -> str:
    """Name, family, source and licence of each set as a table in Markdown."""
    rows = [f"| `{s.name}` | {s.family} | {s.about.get('source', '–')} | {s.about.get('license', '–')} |" for s in sets]
    return "\n".join(["| set | family | source | licence |", "|---|---|---|---|", *rows])
