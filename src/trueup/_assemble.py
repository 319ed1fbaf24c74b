"""From encoded columns to the parts of `Labels`: what counts as a vote, a class, an abstention, a repetition."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._encoding import NULL_CODE, Codes, Vocabulary, encode, is_null, numbers_from_text, vocabulary_from
from trueup._validation import check_choice, preview
from trueup.exceptions import InvalidLabels

if TYPE_CHECKING:
    from trueup.labels import Labels

__all__ = [
    "AbstainPolicy",
    "Columns",
    "Duplicates",
    "assemble",
    "count_pairs",
    "declared",
    "encode_columns",
    "from_counts",
    "melt_matrix",
    "merge",
]

AbstainPolicy = Literal["ignore", "answer"]
Duplicates = Literal["keep", "error", "first", "last"]
Blocks = Iterable[npt.NDArray[Any] | Sequence[Any]]


@dataclass(frozen=True)
class Columns:
    """The three columns of a vote table as codes; label codes below -1 are the declared special values."""

    item: Codes
    items: Vocabulary
    labeler: Codes
    labelers: Vocabulary
    label: Codes
    names: Vocabulary
    missing: tuple[Any, ...]
    abstain: tuple[Any, ...]


def declared(values: Any) -> tuple[Any, ...]:
    """The values a user declared with ``missing=`` or ``abstain=``: one value, or a list, tuple or set of them."""
    return tuple(values) if isinstance(values, list | tuple | set | frozenset) else (values,)


def encode_columns(
    *, item: Blocks, labeler: Blocks, label: Blocks, missing: Any, abstain: Any, from_text: bool = False
) -> Columns:
    """Encode the columns; text from a file becomes integers where every name of the column is one."""
    missing, abstain = declared(missing), declared(abstain)
    if set(missing) & set(abstain):
        raise InvalidLabels(f"a value is declared both missing and abstain, got {preview(list(missing))}; choose one")
    pairs = [
        encode(item, column="item"),
        encode(labeler, column="labeler"),
        encode(label, column="label", special=missing + abstain),
    ]
    if from_text:
        pairs = [numbers_from_text(codes, names) for codes, names in pairs]
    (i, items), (t, labelers), (z, names) = pairs
    if not len(i) == len(t) == len(z):
        raise InvalidLabels(f"the columns must have one length, got {len(i)} items, {len(t)} labelers, {len(z)} labels")
    return Columns(i, items, t, labelers, z, names, missing, abstain)


def melt_matrix(
    matrix: npt.ArrayLike,
    *,
    missing: Any,
    abstain: Any,
    items: Sequence[Hashable] | None,
    labelers: Sequence[Hashable] | None,
) -> Columns:
    """An items × labelers array as columns."""
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise InvalidLabels(
            f"the matrix must be items × labelers, got {array.ndim} dimension(s) of shape {array.shape}; "
            "use Labels.from_frame for a long table"
        )
    n, t = array.shape
    missing, abstain = declared(missing), declared(abstain)
    label, names = encode([array.ravel()], column="label", special=missing + abstain)
    return Columns(
        np.repeat(np.arange(n, dtype=np.int32), t),
        _named("items", items, n),
        np.tile(np.arange(t, dtype=np.int32), n),
        _named("labelers", labelers, t),
        label,
        names,
        missing,
        abstain,
    )


def _named(what: str, names: Sequence[Hashable] | None, n: int) -> Vocabulary:
    if names is None:
        return vocabulary_from(range(n))
    if len(names) != n:
        raise InvalidLabels(f"{what} must have {n} names, one for each, got {len(names)}")
    if len(set(names)) != n:
        raise InvalidLabels(f"{what} must be distinct, got {n - len(set(names))} repetitions")
    return vocabulary_from(names)


def assemble(
    columns: Columns,
    *,
    classes: Sequence[Hashable] | None,
    abstain_policy: AbstainPolicy,
    duplicates: Duplicates,
    count_missing: bool = True,
) -> dict[str, Any]:
    """The fields of `Labels` from encoded columns."""
    check_choice(abstain_policy, ("ignore", "answer"), name="abstain_policy")
    check_choice(duplicates, ("keep", "error", "first", "last"), name="duplicates")
    if not len(columns.label):
        raise InvalidLabels("there are no votes, got 0 rows; pass a table with one row for each vote")
    _check_ids(columns.item, "item")
    _check_ids(columns.labeler, "labeler")
    is_missing, is_abstention = _special_rows(columns)
    classes_out, answer = _answers(columns, classes, is_missing | is_abstention)
    abstentions = np.bincount(columns.labeler[is_abstention], minlength=len(columns.labelers)).astype(np.int64)
    answers = classes_out
    keep = ~is_missing
    if abstain_policy == "answer" and is_abstention.any():
        first = -2 - len(columns.missing)
        extra = [v for v in columns.abstain]
        answer[is_abstention] = len(classes_out) + np.where(
            columns.label[is_abstention] == NULL_CODE,
            [is_null(v) for v in extra].index(True) if any(is_null(v) for v in extra) else 0,
            first - columns.label[is_abstention],
        )
        answers = vocabulary_from([*classes_out.tolist(), *extra])
    else:
        keep &= ~is_abstention
    item, labeler, answer = columns.item[keep], columns.labeler[keep], answer[keep]
    if duplicates != "keep":
        chosen = _choose_duplicates(item, labeler, len(columns.labelers), duplicates, columns)
        item, labeler, answer = item[chosen], labeler[chosen], answer[chosen]
    n_items = len(columns.items)
    return {
        "items": columns.items,
        "labelers": columns.labelers,
        "classes": classes_out,
        "answers": answers,
        "votes": vote_matrix(item, labeler, answer, (n_items, len(columns.labelers), len(answers))),
        "gold_codes": np.full(n_items, -1, np.int32),
        "held_codes": np.full(n_items, -1, np.int32),
        "n_missing": int(is_missing.sum()) if count_missing else 0,
        "abstentions": abstentions,
        "abstain_policy": abstain_policy,
    }


def vote_matrix(item: Codes, labeler: Codes, answer: Codes, shape: tuple[int, int, int]) -> sparse.csr_array:
    """Sparse items × (labeler·answer) matrix of how often."""
    n_items, n_labelers, n_answers = shape
    column = labeler * np.int32(n_answers) + answer
    matrix = sparse.csr_array(
        sparse.coo_array((np.ones(len(item)), (item, column)), shape=(n_items, n_labelers * n_answers))
    )
    matrix.sum_duplicates()
    return matrix


def count_pairs(votes: sparse.csr_array, n_answers: int) -> int:
    """Number of distinct (item, labeler) pairs of a vote matrix."""
    labeler = votes.indices // n_answers
    same = labeler[1:] == labeler[:-1]
    row_starts = votes.indptr[1:-1]
    same[row_starts[(row_starts > 0) & (row_starts < len(labeler))] - 1] = False
    return len(labeler) - int(same.sum())


def _check_ids(codes: Codes, column: str) -> None:
    empty = np.flatnonzero(codes == NULL_CODE)
    if len(empty):
        raise InvalidLabels(
            f"{column} is empty in {len(empty)} of {len(codes)} rows (first: row {empty[0]}); "
            "every vote needs an item and a labeler: fill them in or drop the rows"
        )


def _special_rows(columns: Columns) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows are missing and which are abstentions; an undeclared empty label is an error."""
    n_missing = len(columns.missing)
    is_missing = (columns.label < NULL_CODE) & (columns.label >= -1 - n_missing)
    is_abstention = columns.label < -1 - n_missing
    null = columns.label == NULL_CODE
    if null.any():
        if any(is_null(v) for v in columns.missing):
            is_missing |= null
        elif any(is_null(v) for v in columns.abstain):
            is_abstention |= null
        else:
            raise InvalidLabels(
                f"label is empty in {int(null.sum())} of {len(null)} rows (first: row {int(np.argmax(null))}); "
                "declare what that means: missing=None for no vote, abstain=None for an abstention"
            )
    blank = [i for i, name in enumerate(columns.names.tolist()) if isinstance(name, str) and not name.strip()]
    if blank:
        rows = np.isin(columns.label, blank)
        raise InvalidLabels(
            f"label is blank text in {int(rows.sum())} of {len(rows)} rows (first: row {int(np.argmax(rows))}); "
            f"declare what that means: missing={columns.names[blank[0]]!r} for no vote, abstain=… for an abstention"
        )
    return is_missing, is_abstention


def _answers(
    columns: Columns, classes: Sequence[Hashable] | None, special: npt.NDArray[np.bool_]
) -> tuple[Vocabulary, Codes]:
    if classes is None:
        if len(columns.names) < 2:
            got = f"only {columns.names[0]!r}" if len(columns.names) else "none"
            raise InvalidLabels(
                f"votes must name at least two classes, got {got}; pass classes=[…] with all that could have been chosen"
            )
        return columns.names, columns.label.copy()
    named = vocabulary_from(classes)
    if len(set(named.tolist())) != len(named) or len(named) < 2:
        raise InvalidLabels(f"classes must be at least two distinct names, got {preview(named, most=5)}")
    position = {name: i for i, name in enumerate(named.tolist())}
    unknown = [name for name in columns.names.tolist() if name not in position]
    if unknown:
        rows = int(np.isin(columns.names[columns.label[~special]], unknown).sum()) if len(columns.names) else 0
        raise InvalidLabels(
            f"{rows} of {len(special)} votes are for classes that are not in classes=, got {preview(unknown)}; "
            "add them to classes=, or declare them with missing= or abstain="
        )
    rank = np.array([position[name] for name in columns.names.tolist()] + [0], dtype=np.int32)
    return named, np.where(special, -1, rank[np.where(special, -1, columns.label)]).astype(np.int32)


def _choose_duplicates(
    item: Codes, labeler: Codes, n_labelers: int, rule: Duplicates, columns: Columns
) -> npt.NDArray[np.int64]:
    pair = item.astype(np.int64) * n_labelers + labeler
    if rule == "last":
        _, first = np.unique(pair[::-1], return_index=True)
        return np.sort(len(pair) - 1 - first)
    _, first = np.unique(pair, return_index=True)
    if rule == "error" and len(first) < len(pair):
        again = int(np.setdiff1d(np.arange(len(pair)), first)[0])
        raise InvalidLabels(
            f"{len(pair) - len(first)} votes repeat a labeler's vote on an item, first labeler "
            f"{columns.labelers[labeler[again]]!r} on item {columns.items[item[again]]!r}; "
            'pass duplicates="keep", "first" or "last"'
        )
    return np.sort(first)


def from_counts(
    counts: npt.ArrayLike,
    *,
    classes: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
    labeler: Hashable,
) -> dict[str, Any]:
    """The fields of `Labels` from an items × classes table of counts."""
    table = np.asarray(counts)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidLabels(f"counts must be items × classes with at least two classes, got shape {table.shape}")
    if table.dtype.kind not in "iuf" or (table < 0).any() or not np.isfinite(table).all() or (table % 1 != 0).any():
        raise InvalidLabels("counts must be whole numbers that are not negative; use Labels.from_frame for names")
    if not table.any():
        raise InvalidLabels("there are no votes, got counts that are all 0")
    n, n_classes = table.shape
    names = _named("classes", classes, n_classes)
    return {
        "items": _named("items", items, n),
        "labelers": vocabulary_from([labeler]),
        "classes": names,
        "answers": names,
        "votes": sparse.csr_array(table.astype(np.float64)),
        "gold_codes": np.full(n, -1, np.int32),
        "held_codes": np.full(n, -1, np.int32),
        "n_missing": 0,
        "abstentions": np.zeros(1, np.int64),
        "abstain_policy": "ignore",
    }


def merge(a: Labels, b: Labels) -> dict[str, Any]:
    """The fields of the union of two `Labels`."""
    if a.abstain_policy != b.abstain_policy and a.abstentions.any() and b.abstentions.any():
        raise InvalidLabels(
            f"labels with different abstain policies cannot be merged, got {a.abstain_policy!r} and {b.abstain_policy!r}; "
            "read both with one abstain_policy"
        )
    items, item_of = _union(a.items, b.items, "item")
    labelers, labeler_of = _union(a.labelers, b.labelers, "labeler")
    classes, class_of = _union(a.classes, b.classes, "label")
    extra = [v for labels in (a, b) for v in labels.answers[labels.n_classes :].tolist()]
    answers = vocabulary_from([*classes.tolist(), *dict.fromkeys(extra)]) if extra else classes
    answer_position = {name: i for i, name in enumerate(answers.tolist())}
    parts, weights = [], []
    gold, held = np.full(len(items), -1, np.int32), np.full(len(items), -1, np.int32)
    abstentions = np.zeros(len(labelers), np.int64)
    for k, labels in enumerate((a, b)):
        item, labeler, answer, count = labels.vote_table()
        new_answer = np.array([answer_position[name] for name in labels.answers.tolist()], np.int32)
        parts.append((item_of[k][item], labeler_of[k][labeler], new_answer[answer]))
        weights.append(count)
        abstentions[labeler_of[k]] += labels.abstentions
        for mine, other, codes in ((gold, held, labels.gold_codes), (held, gold, labels.held_codes)):
            known = codes >= 0
            mine[item_of[k][known]] = class_of[k][codes[known]]
            other[item_of[k][known]] = -1
    item, labeler, answer = (np.concatenate(p) for p in zip(*parts, strict=True))
    again = np.concatenate(weights)
    votes = vote_matrix(
        np.repeat(item, again),
        np.repeat(labeler, again),
        np.repeat(answer, again),
        (len(items), len(labelers), len(answers)),
    )
    return {
        "items": items,
        "labelers": labelers,
        "classes": classes,
        "answers": answers,
        "votes": votes,
        "gold_codes": gold,
        "held_codes": held,
        "n_missing": a.n_missing + b.n_missing,
        "abstentions": abstentions,
        "abstain_policy": a.abstain_policy if a.abstentions.any() else b.abstain_policy,
    }


def _union(a: Vocabulary, b: Vocabulary, column: str) -> tuple[Vocabulary, tuple[Codes, Codes]]:
    if np.array_equal(a, b):  # keeps an order that a user chose
        same = np.arange(len(a), dtype=np.int32)
        return a, (same, same)
    codes, names = encode([a.tolist(), b.tolist()], column=column)
    return names, (codes[: len(a)], codes[len(a) :])
