"""The votes themselves: names, a sparse matrix, what is counted from it, and the union of two; no files, no frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_choice, did_you_mean, preview
from trueup.data.encoding import Vocabulary, encode, positions, vocabulary_from
from trueup.data.items import ItemTable, joined_tables
from trueup.exceptions import InvalidLabels, InvalidParameter

AbstainPolicy = Literal["ignore", "answer"]
Duplicates = Literal["keep", "error", "first", "last"]
NO_GOLD = -1


def nothing_vetted(n_items: int) -> dict[str, Any]:
    """The fields about gold of items of which none is known."""
    return {
        "gold_codes": np.full(n_items, NO_GOLD, dtype=np.int32),
        "held_codes": np.full(n_items, NO_GOLD, dtype=np.int32),
        "gold_chance": np.full(n_items, np.nan),
    }


def bare_votes(items: Vocabulary, labelers: Vocabulary, classes: Vocabulary, votes: sparse.csr_array) -> dict[str, Any]:
    """The fields of votes without gold, abstentions and missing rows."""
    names = {"items": items, "labelers": labelers, "classes": classes, "answers": classes}
    nothing = {"n_missing": 0, "abstentions": np.zeros(len(labelers), np.int64), "abstain_policy": "ignore"}
    return {**names, "votes": votes, **nothing_vetted(len(items)), **nothing}


class VoteNames:
    """The names of labelers, classes and answers: how many there are, and their places."""

    labelers: Vocabulary
    classes: Vocabulary
    answers: Vocabulary

    @property
    def n_labelers(self) -> int:
        """Number of labelers."""
        return len(self.labelers)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_answers(self) -> int:
        """Number of answers a labeler can give: the classes and the abstentions kept as answers."""
        return len(self.answers)

    def class_code(self, name: Hashable, *, parameter: str = "positive") -> int:
        """The position of a class that a user named; an unknown one is an error about the parameter."""
        names = self.classes.tolist()
        if name not in names:
            raise InvalidParameter(
                f"`{parameter}` must be one of the classes {preview(self.classes, most=10)}, got {name!r}"
                f"{did_you_mean(name, names) or '; name one of them'}",
            )
        return int(names.index(name))


@dataclass(frozen=True, eq=False, repr=False)
class Votes(VoteNames):
    """The votes of labelers on items, with gold.

    The fields are described in `Labels`, which adds the ways in and out.
    """

    items: Vocabulary
    labelers: Vocabulary
    classes: Vocabulary
    answers: Vocabulary
    votes: sparse.csr_array
    gold_codes: Codes
    held_codes: Codes
    gold_chance: Floats
    n_missing: int
    abstentions: npt.NDArray[np.int64]
    abstain_policy: AbstainPolicy
    unanswered: sparse.csr_array | None = None
    fixed_classes: bool = False
    item_table: ItemTable = field(default_factory=ItemTable)
    labeler_table: ItemTable = field(default_factory=ItemTable)
    crowds: frozenset[Hashable] = frozenset()
    reading_notes: tuple[str, ...] = ()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def n_votes(self) -> int:
        """Number of votes, repeated ones counted each time."""
        return int(self.votes.data.sum())

    @cached_property
    def n_pairs(self) -> int:
        """Number of (item, labeler) pairs with a vote; less than `n_votes` where votes are repeated."""
        labeler = self.votes.indices // self.n_answers
        same = labeler[1:] == labeler[:-1]
        row_starts = self.votes.indptr[1:-1]
        same[row_starts[(row_starts > 0) & (row_starts < len(labeler))] - 1] = False
        return len(labeler) - int(same.sum())

    @property
    def is_crowd(self) -> npt.NDArray[np.bool_]:
        """Whether each labeler stands for many anonymous ones, so that its votes on an item are of different people."""
        return np.array([name in self.crowds for name in self.labelers.tolist()], dtype=np.bool_)

    @cached_property
    def witnesses_per_item(self) -> npt.NDArray[np.int64]:
        """Number of different labelers with a vote on each item; of a crowd each vote is somebody else's."""
        if self.n_pairs == self.n_votes:
            return self.votes_per_item
        item, labeler, _, times = self.vote_table()
        pair = item.astype(np.int64) * self.n_labelers + labeler
        first = np.diff(pair, prepend=-1) > 0  # they are sorted, as the matrix is
        counted = np.where(self.is_crowd[labeler], times, first)
        return np.bincount(item, counted, self.n_items).astype(np.int64)

    @cached_property
    def n_repeats(self) -> int:
        """Number of votes beyond the first of a labeler on an item: one witness who wavers, and not several."""
        return self.n_votes - (int(self.witnesses_per_item.sum()) if self.crowds else self.n_pairs)

    @property
    def n_effective_votes(self) -> int:
        """Number of votes where several of a labeler on an item count for one."""
        return self.n_votes - self.n_repeats

    @property
    def has_repeats(self) -> bool:
        """Whether a labeler voted several times on an item. The votes of a crowd are no repeats."""
        return self.n_repeats > 0

    @cached_property
    def votes_per_item(self) -> npt.NDArray[np.int64]:
        """Number of votes on each item."""
        return np.asarray(self.votes.sum(axis=1), dtype=np.int64)

    @property
    def vote_histogram(self) -> npt.NDArray[np.int64]:
        """How many items have no vote, one, two, …"""
        return np.asarray(np.bincount(self.votes_per_item), dtype=np.int64)

    @cached_property
    def votes_per_labeler(self) -> npt.NDArray[np.int64]:
        """Number of votes of each labeler."""
        per_column = np.asarray(self.votes.sum(axis=0), dtype=np.int64)
        return np.asarray(per_column.reshape(self.n_labelers, self.n_answers).sum(axis=1))

    @cached_property
    def answer_counts(self) -> npt.NDArray[np.float64]:
        """How often each item got each answer, whoever gave it; shape (n_items, n_answers)."""
        answer = self.votes.indices % self.n_answers
        shape = (self.n_items, self.n_answers)
        return np.asarray(sparse.csr_array((self.votes.data, answer, self.votes.indptr), shape=shape).toarray())

    @cached_property
    def votes_per_answer(self) -> npt.NDArray[np.int64]:
        """Number of votes for each answer."""
        answer = self.votes.indices % self.n_answers
        return np.bincount(answer, weights=self.votes.data, minlength=self.n_answers).astype(np.int64)

    def vote_table(self) -> tuple[Codes, Codes, Codes, npt.NDArray[np.int64]]:
        """The votes as codes: item, labeler, answer and how often, in the order of items."""
        item = np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.votes.indptr))
        labeler, answer = np.divmod(self.votes.indices, self.n_answers)
        return item, labeler.astype(np.int32), answer.astype(np.int32), self.votes.data.astype(np.int64)

    @property
    def gold(self) -> dict[Hashable, Hashable]:
        """Vetted truths that fitting uses, as a mapping from item to class."""
        return self._named(self.gold_codes)

    @property
    def held_gold(self) -> dict[Hashable, Hashable]:
        """Vetted truths that are kept aside to check a fit."""
        return self._named(self.held_codes)

    @property
    def drawn_gold(self) -> dict[Hashable, float]:
        """The chance with which each item of `gold` was drawn; what was chosen is not in it."""
        drawn = np.flatnonzero((self.gold_codes >= 0) & ~np.isnan(self.gold_chance))
        return dict(zip(self.items[drawn].tolist(), self.gold_chance[drawn].tolist(), strict=True))

    def _named(self, codes: Codes) -> dict[Hashable, Hashable]:
        known = np.flatnonzero(codes >= 0)
        return dict(zip(self.items[known].tolist(), self.classes[codes[known]].tolist(), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        names = {f.name for f in fields(self)}  # what is cached can be made again
        return {name: value for name, value in self.__dict__.items() if name in names}

    def item_codes(self, names: Iterable[Hashable]) -> Positions:
        """The positions of items in `items`; an unknown one is an error."""
        return np.array(positions(names, self.items, self._item_position, "item"), dtype=np.int64)

    def find_items(self, names: Iterable[Hashable]) -> Positions:
        """The positions of items in `items`, and -1 for an unknown one."""
        listed = names.tolist() if isinstance(names, np.ndarray) else list(names)
        return np.fromiter((self._item_position.get(name, -1) for name in listed), np.int64, len(listed))

    def labeler_codes(self, names: Iterable[Hashable]) -> Positions:
        """The positions of labelers in `labelers`; an unknown one is an error."""
        position = {name: i for i, name in enumerate(self.labelers.tolist())}
        return np.array(positions(names, self.labelers, position, "labeler"), dtype=np.int64)

    def item_column(self, name: str) -> npt.NDArray[Any]:
        """What is known of the items under this name, in the order of `items`; see `Labels.with_items`."""
        return self.item_table.column(name)

    def labeler_column(self, name: str) -> npt.NDArray[Any]:
        """What is known of the labelers under this name, in the order of `labelers`; see `Labels.with_labelers`."""
        return self.labeler_table.column(name, of="labeler")

    @property
    def item_columns(self) -> tuple[str, ...]:
        """The names of the columns of the items."""
        return tuple(self.item_table.columns)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Those that hold text to read; reports and exports leave them out unless asked."""
        return self.item_table.text_columns

    @cached_property
    def _item_position(self) -> dict[Hashable, int]:
        return {name: i for i, name in enumerate(self.items.tolist())}


def vote_matrix(
    item: Codes,
    labeler: Codes,
    answer: Codes,
    shape: tuple[int, int, int],
    *,
    times: npt.NDArray[np.float64] | None = None,
) -> sparse.csr_array:
    """Sparse items × (labeler·answer) matrix of how often."""
    n_items, n_labelers, n_answers = shape
    wide = n_labelers * n_answers >= 2**31
    column = (labeler.astype(np.int64) if wide else labeler) * np.int32(n_answers) + answer
    data = np.ones(len(item)) if times is None else times
    matrix = sparse.csr_array(sparse.coo_array((data, (item, column)), shape=(n_items, n_labelers * n_answers)))
    matrix.sum_duplicates()
    return matrix


def vote_columns(labels: Votes) -> tuple[Codes, dict[str, npt.NDArray[Any]]]:
    """The item of each vote as a code, and its item, labeler and label by name."""
    item, labeler, answer, times = labels.vote_table()
    item, labeler, answer = (np.repeat(codes, times) for codes in (item, labeler, answer))
    return item, {"item": labels.items[item], "labeler": labels.labelers[labeler], "label": labels.answers[answer]}


_V = TypeVar("_V", bound=Votes)


def one_vote_each(labels: _V, rng: np.random.Generator) -> _V:
    """The labels with one random vote of each labeler on an item; a crowd keeps all of its votes."""
    if not labels.has_repeats:
        return labels
    item, labeler, answer, times = labels.vote_table()
    crowd = labels.is_crowd[labeler]
    pair = item.astype(np.int64) * labels.n_labelers + labeler
    # The least of Exp(1) / times draws an answer in proportion to how often it was given.
    order = np.lexsort((rng.exponential(size=len(pair)) / times, pair))
    is_first = np.zeros(len(pair), dtype=np.bool_)
    is_first[order] = np.diff(pair[order], prepend=-1) > 0
    kept = crowd | is_first
    shape = (labels.n_items, labels.n_labelers, labels.n_answers)
    counts = np.where(crowd, times, 1)[kept].astype(np.float64)
    return replace(labels, votes=vote_matrix(item[kept], labeler[kept], answer[kept], shape, times=counts))


def shared_votes(labels: Votes) -> sparse.csr_array:
    """The votes, where several of a labeler on an item share one; those of an anonymous crowd are of many."""
    if not labels.has_repeats:
        return labels.votes
    votes = labels.votes
    is_crowd = labels.is_crowd[votes.indices // labels.n_answers]
    shares = np.where(is_crowd, votes.data, shares_of_witness(votes, labels.n_answers))
    return sparse.csr_array((shares, votes.indices, votes.indptr), shape=votes.shape)


def shares_of_witness(votes: sparse.csr_array, n_answers: int) -> Floats:
    """What each vote counts for, where several of a labeler on an item share one."""
    item = np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr))
    _, group = np.unique(item * (votes.shape[1] // n_answers) + votes.indices // n_answers, return_inverse=True)
    return np.asarray(votes.data / np.bincount(group, votes.data)[group])


def recoded(
    labels: _V,
    items: Vocabulary,
    labelers: Vocabulary,
    classes: Vocabulary,
    abstentions: list[Hashable],
    *,
    class_of: Codes | None = None,
) -> _V:
    """The same votes among more names, in any order, or with several classes as one: the new class of each old one."""
    answers = vocabulary_from([*classes.tolist(), *abstentions]) if abstentions else classes
    item_of, labeler_of = _places(labels.items, items), _places(labels.labelers, labelers)
    if class_of is None:
        answer_of, class_of = _places(labels.answers, answers), _places(labels.classes, classes)
    else:
        answer_of = np.append(class_of, len(classes) + np.arange(len(abstentions))).astype(np.int32)
    class_of = np.append(class_of, np.int32(NO_GOLD))  # the last serves items without gold

    def moved(votes: sparse.csr_array, code_of: Codes, width: int) -> sparse.csr_array:
        item = np.repeat(item_of, np.diff(votes.indptr))
        labeler, code = np.divmod(votes.indices, len(code_of))
        shape = len(items), len(labelers), width
        return vote_matrix(item, labeler_of[labeler], code_of[code], shape, times=votes.data)

    gold = nothing_vetted(len(items))
    gold["gold_codes"][item_of], gold["held_codes"][item_of] = class_of[labels.gold_codes], class_of[labels.held_codes]
    gold["gold_chance"][item_of] = labels.gold_chance
    counts = np.zeros(len(labelers), np.int64)
    counts[labeler_of] = labels.abstentions
    return replace(
        labels,
        items=items,
        labelers=labelers,
        classes=classes,
        answers=answers,
        votes=moved(labels.votes, answer_of, len(answers)),
        **gold,
        abstentions=counts,
        unanswered=None if labels.unanswered is None else moved(labels.unanswered, np.arange(2, dtype=np.int32), 2),
        item_table=joined_tables([(labels.item_table, item_of)], items.tolist()),
        labeler_table=joined_tables([(labels.labeler_table, labeler_of)], labelers.tolist()),
    )


def _places(old: Vocabulary, new: Vocabulary) -> Codes:
    """Where each old name is among the new ones."""
    if old is new:
        return np.arange(len(old), dtype=np.int32)
    position = {name: k for k, name in enumerate(new.tolist())}
    return np.array([position[name] for name in old.tolist()], dtype=np.int32)


def with_classes(labels: _V, names: list[Hashable]) -> _V:
    """Labels with more classes; the votes stay what they are."""
    classes = encode([labels.classes, names], column="label")[1]
    return recoded(labels, labels.items, labels.labelers, classes, labels.answers[labels.n_classes :].tolist())


def merge(a: _V, b: _V, *, duplicates: Duplicates) -> tuple[_V, int]:
    """The votes of both, and on how many (item, labeler) pairs both have votes."""
    check_choice(duplicates, ("keep", "error", "first", "last"), name="duplicates")
    if a.abstain_policy != b.abstain_policy and a.abstentions.any() and b.abstentions.any():
        raise InvalidLabels(
            f"labels to merge must have one `abstain_policy`, got {a.abstain_policy!r} and {b.abstain_policy!r}; read "
            "them again"
        )
    items, labelers = _union(a.items, b.items, "item"), _union(a.labelers, b.labelers, "labeler")
    classes = _union(a.classes, b.classes, "label")
    abstentions = list(dict.fromkeys([*a.answers[a.n_classes :].tolist(), *b.answers[b.n_classes :].tolist()]))
    as_both = [name for name in abstentions if name in classes.tolist()]
    if as_both:
        raise InvalidLabels(
            f"an abstention of one cannot be a class of the other, got {preview(as_both)}; declare `abstain` in both"
        )
    fixed = any(labels.fixed_classes and labels.n_classes == len(classes) for labels in (a, b))
    a, b = (recoded(labels, items, labelers, classes, abstentions) for labels in (a, b))
    votes = [a.votes, b.votes]
    tables = [labels.vote_table() for labels in (a, b)]
    pairs = [item.astype(np.int64) * len(labelers) + labeler for item, labeler, _, _ in tables]
    distinct = [pair[np.diff(pair, prepend=-1) > 0] for pair in pairs]  # they are sorted, as the matrix is
    common = np.intersect1d(distinct[0], distinct[1], assume_unique=True)
    if len(common) and duplicates == "error":
        item, labeler = divmod(int(common[0]), len(labelers))
        raise InvalidLabels(
            f"a labeler must vote once on an item, got {len(common)} pairs in both (first: labeler "
            f'{labelers[labeler]!s} on item {items[item]!s}); pass `duplicates="keep"`, '
            '`duplicates="first"` or `duplicates="last"`'
        )
    if len(common) and duplicates != "keep":
        loser = 1 if duplicates == "first" else 0
        votes[loser].data[np.isin(pairs[loser], common)] = 0
        votes[loser].eliminate_zeros()
    vetted = (b.gold_codes != NO_GOLD) | (b.held_codes != NO_GOLD)  # an item has one role, the last it was given
    unanswered = [labels.unanswered for labels in (a, b) if labels.unanswered is not None]
    every, everybody = np.arange(len(items)), np.arange(len(labelers))
    union = replace(
        a,
        votes=sparse.csr_array(votes[0] + votes[1]),
        gold_codes=np.where(vetted, b.gold_codes, a.gold_codes),
        held_codes=np.where(vetted, b.held_codes, a.held_codes),
        gold_chance=np.where(np.isnan(b.gold_chance), a.gold_chance, b.gold_chance),
        n_missing=a.n_missing + b.n_missing,
        abstentions=a.abstentions + b.abstentions,
        abstain_policy=a.abstain_policy if a.abstentions.any() else b.abstain_policy,
        unanswered=sparse.csr_array(sum(unanswered[1:], unanswered[0])) if unanswered else None,
        fixed_classes=fixed,
        item_table=joined_tables([(a.item_table, every), (b.item_table, every)], items.tolist()),
        labeler_table=joined_tables([(a.labeler_table, everybody), (b.labeler_table, everybody)], labelers.tolist()),
        crowds=a.crowds | b.crowds,
        reading_notes=tuple(dict.fromkeys([*a.reading_notes, *b.reading_notes])),
    )
    return union, len(common)


def _union(a: Vocabulary, b: Vocabulary, column: str) -> Vocabulary:
    """The names of both; where one holds the other, its order, which a user may have chosen, stays."""
    if len(a) == len(b) and (a == b).all():
        return a
    names = encode([a, b], column=column)[1]
    return next((vocabulary for vocabulary in (a, b) if len(vocabulary) == len(names)), names)
