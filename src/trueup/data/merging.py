"""The union of two `Labels`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes
from trueup._base.validation import check_choice, preview
from trueup.data.encoding import Vocabulary, encode, vocabulary_from
from trueup.data.items import joined_tables
from trueup.data.votes import NO_GOLD, Duplicates, Votes, vote_matrix
from trueup.exceptions import InvalidLabels

__all__ = ["merge", "with_classes"]


def merge(a: Votes, b: Votes, *, duplicates: Duplicates) -> tuple[dict[str, Any], int]:
    """The fields of the union of two `Labels`, and on how many (item, labeler) pairs both have votes."""
    check_choice(duplicates, ("keep", "error", "first", "last"), name="duplicates")
    _check_policies(a, b)
    items, item_of = _union(a.items, b.items, "item")
    labelers, labeler_of = _union(a.labelers, b.labelers, "labeler")
    classes, class_of = _union(a.classes, b.classes, "label")
    answers, answer_of = _union_of_answers(a, b, classes, class_of)
    shape = len(items), len(labelers), len(answers)
    tables = [_moved(labels.votes, labels.n_answers, item_of[k], labeler_of[k]) for k, labels in enumerate((a, b))]
    pairs = [table[0].astype(np.int64) * len(labelers) + table[1] for table in tables]
    common = np.intersect1d(pairs[0], pairs[1])
    if len(common) and duplicates == "error":
        item, labeler = divmod(int(common[0]), len(labelers))
        raise InvalidLabels(
            f"a labeler must vote once on an item, got {len(common)} pairs in both (first: labeler "
            f'{labelers[labeler]!s} on item {items[item]!s}); pass ⟨duplicates="keep"⟩, '
            '⟨duplicates="first"⟩ or ⟨duplicates="last"⟩'
        )
    kept = [np.ones(len(p), dtype=bool) for p in pairs]
    if len(common) and duplicates != "keep":
        loser = 1 if duplicates == "first" else 0
        kept[loser] = ~np.isin(pairs[loser], common)
    columns = [
        (item[keep], labeler[keep], answer_of[k][answer[keep]], times[keep])
        for k, ((item, labeler, answer, times), keep) in enumerate(zip(tables, kept, strict=True))
    ]
    gold, held = _gold(a, b, len(items), item_of, class_of)
    abstentions = np.zeros(len(labelers), np.int64)
    for k, labels in enumerate((a, b)):
        abstentions[labeler_of[k]] += labels.abstentions
    return {
        "items": items,
        "labelers": labelers,
        "classes": classes,
        "answers": answers,
        "votes": _joined(columns, shape),
        "gold_codes": gold,
        "held_codes": held,
        "n_missing": a.n_missing + b.n_missing,
        "abstentions": abstentions,
        "abstain_policy": a.abstain_policy if a.abstentions.any() else b.abstain_policy,
        "fixed_classes": any(labels.fixed_classes and labels.n_classes == len(classes) for labels in (a, b)),
        "item_table": joined_tables([(a.item_table, item_of[0]), (b.item_table, item_of[1])], items.tolist()),
        "unanswered": _joined(
            [
                _moved(labels.unanswered, 2, item_of[k], labeler_of[k])
                for k, labels in enumerate((a, b))
                if labels.unanswered is not None
            ],
            (len(items), len(labelers), 2),
        ),
    }, len(common)


def with_classes(labels: Votes, names: list[Hashable]) -> dict[str, Any]:
    """The fields that change where `labels` get more classes; the votes stay what they are."""
    old = labels.classes
    codes, classes = encode([old.tolist(), names], column="label")
    class_of = codes[: len(old)].astype(np.int32)
    answers, answer_of = classes, class_of
    if labels.n_answers > len(old):
        abstentions = labels.answers[len(old) :].tolist()
        answers = vocabulary_from([*classes.tolist(), *abstentions])
        answer_of = np.concatenate([class_of, np.arange(len(classes), len(answers), dtype=np.int32)])
    item, labeler, answer, times = labels.vote_table()
    shape = labels.n_items, labels.n_labelers, len(answers)
    moved = np.append(class_of, np.int32(NO_GOLD))  # the last serves items without gold
    return {
        "classes": classes,
        "answers": answers,
        "votes": vote_matrix(item, labeler, answer_of[answer], shape, times=times.astype(np.float64)),
        "gold_codes": moved[labels.gold_codes],
        "held_codes": moved[labels.held_codes],
    }


Table = tuple[Codes, Codes, Codes, npt.NDArray[np.float64]]


def _moved(votes: sparse.csr_array, width: int, item_of: Codes, labeler_of: Codes) -> Table:
    """The entries of a vote matrix with items and labelers numbered as in the union."""
    item = np.repeat(item_of, np.diff(votes.indptr))
    labeler, answer = np.divmod(votes.indices, width)
    return item, labeler_of[labeler], answer.astype(np.int32), votes.data


def _joined(tables: list[Table], shape: tuple[int, int, int]) -> sparse.csr_array | None:
    if not tables:
        return None
    item, labeler, answer, times = (np.concatenate(column) for column in zip(*tables, strict=True))
    return vote_matrix(item, labeler, answer, shape, times=times)


def _check_policies(a: Votes, b: Votes) -> None:
    if a.abstain_policy != b.abstain_policy and a.abstentions.any() and b.abstentions.any():
        raise InvalidLabels(
            f"labels with different abstain policies cannot be merged, got {a.abstain_policy!r} and "
            f"{b.abstain_policy!r}; read both with one abstain_policy"
        )


def _union(a: Vocabulary, b: Vocabulary, column: str) -> tuple[Vocabulary, tuple[Codes, Codes]]:
    """The names of both; where one holds the other, its order, which a user may have chosen, stays."""
    if len(a) == len(b) and (a == b).all():
        same = np.arange(len(a), dtype=np.int32)
        return a, (same, same)
    codes, names = encode([a.tolist(), b.tolist()], column=column)
    old = codes[: len(a)], codes[len(a) :]
    for vocabulary, mine in ((a, old[0]), (b, old[1])):
        if len(names) == len(vocabulary):
            rank = np.empty(len(names), np.int32)
            rank[mine] = np.arange(len(names), dtype=np.int32)
            return vocabulary, (rank[old[0]], rank[old[1]])
    return names, old


def _union_of_answers(
    a: Votes, b: Votes, classes: Vocabulary, class_of: tuple[Codes, Codes]
) -> tuple[Vocabulary, list[Codes]]:
    extra = [labels.answers[labels.n_classes :].tolist() for labels in (a, b)]
    abstentions = list(dict.fromkeys(extra[0] + extra[1]))
    known = set(classes.tolist())
    both = [name for name in abstentions if name in known]
    if both:
        raise InvalidLabels(
            f"an answer cannot be an abstention in one and a class in the other, got {preview(both)}; "
            "declare it with ⟨abstain⟩ in both"
        )
    if not abstentions:
        return classes, list(class_of)
    place = {name: len(classes) + k for k, name in enumerate(abstentions)}
    answer_of: list[Codes] = [
        np.concatenate([class_of[k], np.array([place[name] for name in extra[k]], np.int32)]).astype(np.int32)
        for k in range(2)
    ]
    return vocabulary_from([*classes.tolist(), *abstentions]), answer_of


def _gold(
    a: Votes, b: Votes, n_items: int, item_of: tuple[Codes, Codes], class_of: tuple[Codes, Codes]
) -> tuple[Codes, Codes]:
    gold, held = np.full(n_items, -1, np.int32), np.full(n_items, -1, np.int32)
    for k, labels in enumerate((a, b)):
        for mine, other, codes in ((gold, held, labels.gold_codes), (held, gold, labels.held_codes)):
            known = codes >= 0
            mine[item_of[k][known]] = class_of[k][codes[known]]
            other[item_of[k][known]] = -1  # an item has one role, the last it was given
    return gold, held
