"""The open crowd and judge sets with truth, and their labelers as the systems to grade.

A labeler is graded as if they were a system: their votes are the predictions, the others' votes are the labels, and
the truth says what the right answer would have been. Nothing but the votes of others reaches the library.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._data import data_folder, load_crowd

__all__ = [
    "MIN_GRADED_ITEMS",
    "N_GRADED",
    "CrowdSet",
    "choose_graded",
    "family_of",
    "licence_table",
    "load_set",
    "load_sets",
    "set_names",
    "thin_votes",
    "vote_codes",
]

Codes = npt.NDArray[np.int64]

N_GRADED = 8
MIN_GRADED_ITEMS = 50
NO_TRUTH = -1
NEARLY_COMPLETE = 0.9  # share of the pairs of an item and a labeler that have a vote

# One collection of votes, or one set of judges, is one family: its sets may share labelers, instructions and the way
# the truth was found, so a map must not be judged on one of them and fitted on another. Repositories that only gather
# the sets of others do not make a family.
FAMILIES: dict[str, tuple[str, ...]] = {
    "Snow et al. 2008": ("crowd-snow-rte", "crowd-snow-temp"),
    "Zhou et al. 2012": ("crowd-dog", "crowd-web"),
    "Rodrigues et al.": ("crowd-labelme-feat", "crowd-music-ms", "crowd-sentiment-text"),
    "CrowdER": ("crowd-product-er", "crowd-restaurant-er"),
    "LLMBar": ("judge-llmbar", "judge-llmbar-casestudy"),
}


@dataclass(frozen=True, eq=False)
class CrowdSet:
    """A set of votes with the truth of some or all of its items.

    Attributes
    ----------
    name, family : str
        The folder of the set, and the collection it belongs to.
    labels : Labels
        All votes, those of the graded labelers included.
    truth : integer array of shape (n_items,)
        The true class of each of ``labels.items`` as a position in ``labels.classes``; -1 where it is unknown.
    graded : tuple of labelers
        Those to grade as systems.
    source, licence : str
        As the set's own description gives them.
    """

    name: str
    family: str
    labels: tu.Labels
    truth: Codes
    graded: tuple[Hashable, ...]
    source: str
    licence: str

    @property
    def truths(self) -> dict[Any, Any]:
        """The class of each item whose truth is known."""
        known = np.flatnonzero(self.truth != NO_TRUTH)
        names = self.labels.classes[self.truth[known]]
        return dict(zip(self.labels.items[known].tolist(), names.tolist(), strict=True))

    def predictions_of(self, labeler: Hashable) -> dict[Any, Any]:
        """The votes of a labeler as the predictions of a system, where the truth is known.

        An item whose truth is unknown cannot say whether an answer about it is right, so it is not predicted.
        """
        codes = vote_codes(self.labels, labeler)
        at = np.flatnonzero((codes >= 0) & (self.truth != NO_TRUTH))
        names = self.labels.classes[codes[at]]
        return dict(zip(self.labels.items[at].tolist(), names.tolist(), strict=True))

    def others_of(self, *labelers: Hashable) -> tu.Labels:
        """The votes without those of the labelers who are graded."""
        return self.labels.without_labeler(*labelers)


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


def set_names() -> list[str]:
    """The crowd and judge sets of the data folder that have truth, in the order of their names."""
    folders = [*data_folder().glob("crowd-*"), *data_folder().glob("judge-*")]
    return sorted(folder.name for folder in folders if (folder / "truth.csv.gz").exists())


def family_of(name: str) -> str:
    """The family of a set; one that shares its collection with no other is a family of its own."""
    return next((family for family, members in FAMILIES.items() if name in members), name)


def load_sets(max_items: int | None = None, *, names: Sequence[str] | None = None) -> list[CrowdSet]:
    """All open sets with truth, or those that are named.

    Parameters
    ----------
    max_items : int, optional
        So many items of a set at most, drawn at random with a seed of their own: those with truth first.
    names : sequence of str, optional

    Returns
    -------
    list of CrowdSet
    """
    return [load_set(name, max_items) for name in (set_names() if names is None else names)]


def load_set(name: str, max_items: int | None = None) -> CrowdSet:
    """One set by the name of its folder."""
    labels, truth = load_crowd(name)
    if max_items is not None and labels.n_items > max_items:
        at = _drawn_items(truth, max_items, _generator(name))
        labels, truth = labels.select(items=labels.items[at].tolist()), truth[at]
        voting = labels.votes_per_labeler > 0
        labels = labels.select(labelers=labels.labelers[voting].tolist())
    described = json.loads((data_folder() / name / "meta.json").read_text(encoding="utf-8"))
    return CrowdSet(
        name,
        family_of(name),
        labels,
        truth,
        choose_graded(labels, truth, seed=_seed_of(name)),
        described["source"],
        described["license"],
    )


def choose_graded(
    labels: tu.Labels,
    truth: Codes,
    *,
    seed: int,
    n_graded: int = N_GRADED,
    min_items: int = MIN_GRADED_ITEMS,
) -> tuple[Hashable, ...]:
    """The labelers with most votes on items of known truth, at least `min_items`; a draw decides between equals.

    Where everyone votes on everything, the order of names would choose variants of one judge.
    """
    item, labeler, answer, _ = labels.vote_table()
    known = (truth[item] != NO_TRUTH) & (answer < labels.n_classes)
    n_known = np.bincount(labeler[known], minlength=labels.n_labelers)
    lot = np.random.default_rng(seed).random(labels.n_labelers)
    order = np.lexsort((lot, -n_known))[:n_graded]
    return tuple(labels.labelers[order[n_known[order] >= min_items]].tolist())


def thin_votes(crowd: CrowdSet, n_votes: int, *, labeler: Hashable, seed: int = 0) -> tu.Labels:
    """The others' votes with at most `n_votes` an item, as a smaller crowd would have given them.

    Where nearly every labeler votes on every item, a crowd of `n_votes` labelers is drawn; elsewhere that many votes of
    each item.
    """
    labels = crowd.others_of(labeler)
    rng = np.random.default_rng([seed, _seed_of(crowd.name), zlib.crc32(str(labeler).encode())])
    if labels.n_pairs >= NEARLY_COMPLETE * labels.n_items * labels.n_labelers:
        chosen = rng.choice(labels.n_labelers, n_votes, replace=False)
        return labels.select(labelers=labels.labelers[np.sort(chosen)].tolist())
    votes = labels.votes.tocsr(copy=True)
    item = np.repeat(np.arange(labels.n_items), np.diff(votes.indptr))
    order = np.lexsort((rng.random(len(item)), item))
    rank = np.empty(len(item), dtype=np.int64)
    rank[order] = np.arange(len(item)) - votes.indptr[item[order]]
    votes.data = np.where(rank < n_votes, np.minimum(votes.data, 1.0), 0.0)  # a repeated vote is one witness
    votes.eliminate_zeros()
    thinned = replace(labels, votes=votes)
    return thinned.select(labelers=thinned.labelers[thinned.votes_per_labeler > 0].tolist())


def licence_table(sets: Sequence[CrowdSet]) -> str:
    """Name, family, source and licence of each set as a table in Markdown."""
    shown = ["–" if s.family == s.name else s.family for s in sets]
    rows = [f"| `{s.name}` | {family} | {s.source} | {s.licence} |" for s, family in zip(sets, shown, strict=True)]
    return "\n".join(["| set | family | source | licence |", "|---|---|---|---|", *rows])


def _drawn_items(truth: Codes, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """So many positions in order: items with truth first, others where there are too few of those."""
    order = np.lexsort((rng.random(len(truth)), truth == NO_TRUTH))
    return np.sort(order[:n])


def _seed_of(name: str) -> int:
    """A seed that stays the same on every machine, unlike `hash`."""
    return zlib.crc32(name.encode())


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng(_seed_of(name))
