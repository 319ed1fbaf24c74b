"""From encoded columns to the parts of `Labels`: what counts as a vote, a class, an abstention, a repetition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Booleans, Codes
from trueup._base.validation import check_choice, kind_hint, preview
from trueup._base.wording import listed
from trueup.data.encoding import (
    NULL_CODE,
    Distinct,
    Encoder,
    Vocabulary,
    check_named,
    check_names,
    is_marked,
    is_null,
    vocabulary_from,
)
from trueup.data.frames import (
    Sink,
    Table,
    check_column,
    column_of,
    has_key,
    key_columns,
    matrix_parts,
    named_as,
    read_names,
)
from trueup.data.items import ItemTable, inferred_table, text_as_values
from trueup.data.votes import AbstainPolicy, Duplicates, bare_votes, vote_matrix
from trueup.exceptions import InvalidLabels, InvalidParameter

CROWD_MARK = "is_crowd"  # the column of a file that marks the votes of an anonymous crowd with 1
_CELLS = 250_000


@dataclass(frozen=True)
class VoteFormat:
    """How a table names its votes, and how they are taken; the parameters of `Labels.from_frame`."""

    item: str | Sequence[str] = "item"
    labeler: str = "labeler"
    label: str = "label"
    run: str | None = None
    wide: bool | None = None
    classes: Sequence[Hashable] | None = None
    missing: Any = ()
    abstain: Any = ()
    abstain_policy: AbstainPolicy = "ignore"
    duplicates: Duplicates = "keep"

    def ordered_by(self, categories: Sequence[Any] | None) -> VoteFormat:
        """With the classes in the order of an ordered categorical, where no order was given."""
        if self.classes is not None or categories is None:
            return self
        special = set().union(*declared(self.missing, self.abstain))
        return replace(self, classes=[name for name in categories if name not in special])


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
    run: Codes | None = None  # which of several verdicts of a labeler on an item a row is
    item_table: ItemTable = field(default_factory=ItemTable)
    crowds: frozenset[Hashable] = frozenset()
    reading_notes: tuple[str, ...] = ()
    is_wide: bool = False


def declared(missing: Any, abstain: Any, *, from_text: bool = False) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a user declared with ``missing=`` and ``abstain=``, one value or several; every null is None."""
    both = []
    for name, values in (("missing", missing), ("abstain", abstain)):
        values = values.tolist() if isinstance(values, np.ndarray) and values.ndim else values
        several = list(values) if isinstance(values, list | tuple | set | frozenset) else [values]
        if from_text:
            several = [None if is_null(v) or v == "" else str(v) for v in several]
        try:
            both.append(tuple(dict.fromkeys(None if is_null(v) else v for v in several)))
        except TypeError:
            raise InvalidLabels(f"{name} must be a value or a list of values, got {preview(several)}") from None
    common = [v for v in both[0] if v in both[1]]
    if common:
        raise InvalidLabels(f"a value is declared both missing and abstain, got {preview(common)}; choose one")
    return both[0], both[1]


def read_votes(
    table: Table,
    how: VoteFormat,
    *,
    known: Mapping[str, Vocabulary] | None = None,
    sinks: Sequence[tuple[str, Sink]] | None = None,
) -> Columns:
    """The columns of votes of a table, long or wide."""
    special = declared(how.missing, how.abstain, from_text=table.from_text)
    columns, wide = table.columns, how.wide
    item, labeler = column_of("item", how.item, columns), column_of("labeler", how.labeler, columns)
    label = column_of("label", how.label, columns) if labeler in columns else how.label
    known = {**(known or {}), **({} if how.classes is None else {"label": check_names("classes", how.classes)})}
    roles = {"labeler": labeler, "label": label, **({} if how.run is None else {"run": how.run})}
    has_usual_names = roles == {"labeler": "labeler", "label": "label"}
    if wide and not has_usual_names:
        raise InvalidParameter(
            f"in a wide table each labeler has a column, got {preview(list(roles.values()))} as columns of labelers "
            "and labels; leave them out, or pass `wide=False`",
            parameter="wide",
        )
    may_be_wide = has_usual_names and not {"labeler", "label"} & set(columns) and has_key(item, columns)
    if wide or (wide is None and may_be_wide):
        return _read_wide(table, item, special, known, surely=bool(wide))
    key = key_columns(item, columns, role="item")
    others = [] if sinks is not None else [name for name in columns if name not in (*key, *roles.values())]
    facts = {name: Distinct(blank_is_null=table.from_text) for name in others}
    taken = [*facts.items(), *(sinks or [])]
    names = read_names(table, {"item": item, **roles}, special=special[0] + special[1], known=known, sinks=taken)
    i, t, z = (len(names[role][0]) for role in ("item", "labeler", "label"))
    if not i == t == z:
        raise InvalidLabels(
            f"the columns must have one length, got {i} items, {t} labelers and {z} labels; pass one row for each vote"
        )
    crowds: frozenset[Hashable] = frozenset()
    if CROWD_MARK in facts and (marks := facts.pop(CROWD_MARK)).codes is not None:
        rows = np.isin(marks.codes, [code for code, value in enumerate(marks.values) if is_marked(value)])
        crowds = frozenset(names["labeler"][1][np.unique(names["labeler"][0][rows])].tolist())
    found = inferred_table(facts, key, *names["item"], from_text=table.from_text)
    runs = None if how.run is None else names["run"][0]
    read_as = (("item", item, how.item), ("labeler", labeler, how.labeler), ("label", label, how.label))
    guessed = listed([f"{column!r} as the {role}" for role, column, usual in read_as if column != usual])
    notes = (f"It is read with {guessed}.",) if guessed else ()
    return Columns(*names["item"], *names["labeler"], *names["label"], *special, runs, found, crowds, notes)


def _read_wide(
    table: Table,
    item: str | Sequence[str],
    special: tuple[tuple[Any, ...], tuple[Any, ...]],
    known: Mapping[str, Vocabulary],
    *,
    surely: bool,
) -> Columns:
    """The votes of a table with a row an item and a column a labeler, where an empty cell is no vote."""
    missing, abstain = special
    if None not in abstain:
        missing = tuple(dict.fromkeys((*missing, None)))
    key = key_columns(item, table.columns, role="item")
    facts = {name: Distinct(blank_is_null=table.from_text) for name in table.columns if name not in key}
    code, items = read_names(table, {"item": item}, known=known, sinks=[*facts.items()])["item"]
    found = {name: [v for v in fact.values if v not in (*missing, *abstain)] for name, fact in facts.items()}
    values = {name: set(text_as_values(cells) if table.from_text else cells) for name, cells in found.items()}
    if "label" in known:  # columns of votes hold classes alone
        written = set(map(str, known["label"].tolist()))
        columns = [name for name, cells in values.items() if cells and set(map(str, cells)) <= written]
    else:  # or values most of which other columns hold too
        times = Counter(value for cells in values.values() for value in cells)
        shared = {name: sum(times[value] > 1 for value in cells) for name, cells in values.items()}
        columns = [name for name, cells in values.items() if cells and 2 * shared[name] >= len(cells)]
    if len(columns) < (1 if surely else 2):
        if not surely:  # it is a long table that lacks its columns
            check_column("labeler", table.columns, role="labeler")
        raise InvalidLabels(
            f"a wide table has a column of votes for each labeler, got none among {preview(list(facts), most=10)}; "
            "name the classes with `classes=[…]`",
            parameter="wide",
        )
    encoder = Encoder("label", blank_is_null=table.from_text)
    for name in columns:
        cells_of_codes = np.array([*facts[name].values, None], dtype=object)  # the last serves the code of a null
        encoder.add(cells_of_codes[facts[name].codes].tolist())
    label, names = encoder.finish(special=missing + abstain)
    if table.from_text:
        label, names = named_as((label, names), known.get("label"))
    rest = {name: fact for name, fact in facts.items() if name not in columns}
    about = inferred_table(rest, key, code, items, from_text=table.from_text)
    note = f"It is read as a wide table, with the labelers {listed(columns, most=10)}"
    note += f", and {listed(list(rest), most=10)} as columns of the items." if rest else "."
    item_codes, labeler = np.tile(code, len(columns)), np.repeat(np.arange(len(columns), dtype=np.int32), len(code))
    rows = (item_codes, items, labeler, vocabulary_from(columns), label, names, missing, abstain)
    return Columns(*rows, None, about, reading_notes=() if surely else (note,), is_wide=True)


def melt_matrix(
    matrix: Any, how: VoteFormat, *, items: Sequence[Hashable] | None, labelers: Sequence[Hashable] | None
) -> Columns:
    """An items × labelers array or wide frame as columns; a frame names its items and labelers itself."""
    missing, abstain = declared(how.missing, how.abstain)
    matrix, row_names, column_names = matrix_parts(matrix)
    items, labelers = row_names if items is None else items, column_names if labelers is None else labelers
    if isinstance(matrix, np.ma.MaskedArray):  # asarray would drop the mask and turn what it hides into votes
        hidden, matrix = np.ma.getmaskarray(matrix), matrix.data.astype(object)
        matrix[hidden] = None
        missing = tuple(dict.fromkeys((*missing, None)))
    try:
        array = np.asarray(matrix)
        if array.dtype.kind in "US" and not isinstance(matrix, np.ndarray):
            # numpy writes the numbers of a mixed list as text, and -1 would no longer be missing but a class "-1"
            array = np.array(matrix, dtype=object)
    except ValueError as error:
        raise InvalidLabels(
            "the matrix must be items × labelers, got rows of different lengths; fill the gaps with `missing`"
        ) from error
    if array.ndim != 2:
        raise InvalidLabels(f"the matrix must be items × labelers, got shape {array.shape}; see Labels.from_frame")
    n, t = array.shape
    cells = array.ravel()
    encoder = Encoder("label")
    for k in range(0, len(cells), _CELLS):
        encoder.add(cells[k : k + _CELLS])
    label, names = encoder.finish(special=missing + abstain)
    item, labeler = np.repeat(np.arange(n, dtype=np.int32), t), np.tile(np.arange(t, dtype=np.int32), n)
    of_names = check_names("items", items, n), check_names("labelers", labelers, t)
    return Columns(item, of_names[0], labeler, of_names[1], label, names, missing, abstain, is_wide=True)


def assemble(columns: Columns, how: VoteFormat) -> dict[str, Any]:
    """The fields of `Labels` from encoded columns."""
    check_choice(how.abstain_policy, ("ignore", "answer"), name="abstain_policy")
    check_choice(how.duplicates, ("keep", "error", "first", "last"), name="duplicates")
    if not len(columns.label):
        raise InvalidLabels("there are no votes, got 0 rows; pass a table with one row for each vote")
    check_named(columns.item, "item")
    check_named(columns.labeler, "labeler")
    is_missing, is_abstention = _special_rows(columns)
    classes, answer = _answers(columns, how.classes, is_missing | is_abstention)
    answers, keep = classes, ~is_missing
    if how.abstain_policy == "answer" and is_abstention.any():
        codes, null = columns.label[is_abstention], columns.abstain.index(None) if None in columns.abstain else 0
        which = np.where(codes == NULL_CODE, null, -2 - len(columns.missing) - codes.astype(np.int64))
        answer[is_abstention] = len(classes) + which
        answers = vocabulary_from([*classes.tolist(), *columns.abstain])
    else:
        keep &= ~is_abstention
    if not keep.any():
        raise InvalidLabels(f"there are no votes, got {len(keep)} rows that all say so; check `missing` and `abstain`")
    item, labeler = columns.item, columns.labeler
    if not keep.all():  # most tables have nothing to leave out, and a copy of every column is worth avoiding
        item, labeler, answer = item[keep], labeler[keep], answer[keep]
    if how.duplicates != "keep":
        run = None if columns.run is None else columns.run[keep]
        chosen = _choose_duplicates(item, labeler, run, how.duplicates, columns)
        item, labeler, answer = item[chosen], labeler[chosen], answer[chosen]
    n_items, n_labelers = len(columns.items), len(columns.labelers)
    if columns.is_wide:  # each item has a cell for each labeler, most of which may be empty
        is_missing[:] = False
    unanswered, silent = None, is_missing | is_abstention
    if silent.any():  # where rows were, items × (labeler·2), so that a subset counts them right
        abstained = is_abstention[silent].astype(np.int32)
        unanswered = vote_matrix(columns.item[silent], columns.labeler[silent], abstained, (n_items, n_labelers, 2))
    votes = vote_matrix(item, labeler, answer, (n_items, n_labelers, len(answers)))
    return {
        **bare_votes(columns.items, columns.labelers, classes, votes),
        "answers": answers,
        "n_missing": int(is_missing.sum()),
        "abstentions": np.bincount(columns.labeler[is_abstention], minlength=n_labelers).astype(np.int64),
        "abstain_policy": how.abstain_policy,
        "unanswered": unanswered,
        "fixed_classes": how.classes is not None,
        "item_table": columns.item_table,
        "crowds": columns.crowds,
        "reading_notes": columns.reading_notes,
    }


def _special_rows(columns: Columns) -> tuple[Booleans, Booleans]:
    """Which rows are missing and which are abstentions; an undeclared empty label is an error."""
    n_missing = len(columns.missing)
    is_missing = (columns.label < NULL_CODE) & (columns.label >= -1 - n_missing)
    is_abstention = columns.label < -1 - n_missing
    null = columns.label == NULL_CODE
    if null.any():
        if None in columns.missing:
            is_missing |= null
        elif None in columns.abstain:
            is_abstention |= null
        else:
            raise InvalidLabels(
                f"label must not be empty, got {int(null.sum())} of {len(null)} rows where it is (first: `row "
                f"{int(np.argmax(null))}`); pass `missing=None` if it is no vote, `abstain=None` if it is an abstention"
            )
    blank = [i for i, name in enumerate(columns.names.tolist()) if isinstance(name, str) and not name.strip()]
    if blank:
        rows = np.isin(columns.label, blank)
        raise InvalidLabels(
            f"label must not be blank text, got {int(rows.sum())} of {len(rows)} rows where it is (first: "
            f"`row {int(np.argmax(rows))}`); declare it with `missing={columns.names[blank[0]]!r}` or `abstain=…`"
        )
    return is_missing, is_abstention


def _answers(columns: Columns, classes: Sequence[Hashable] | None, special: Booleans) -> tuple[Vocabulary, Codes]:
    """The classes, and the class code of every row that is not special."""
    if classes is None:
        if len(columns.names) < 2:
            got = f"only {columns.names.tolist()[0]!r}" if len(columns.names) else "none"
            left_out = [v for k, v in enumerate(columns.missing) if (columns.label == -2 - k).any()]
            hint = f", or another `missing` if {left_out[0]!r} is a class and not an absent vote" if left_out else ""
            error = InvalidLabels(
                f"votes must name at least two classes, got {got}; pass `classes=[…]` with all there are{hint}",
                parameter="classes",
            )
            error.only_class = next(iter(columns.names.tolist()), None)
            raise error
        return columns.names, columns.label.copy()
    named = check_names("classes", classes)
    if len(named) < 2:
        raise InvalidLabels(f"classes must be at least two names, got {preview(named)}; name all that can be chosen")
    position = {name: i for i, name in enumerate(named.tolist())}
    twice = [v for v in (*columns.missing, *columns.abstain) if v in position]
    if twice:
        raise InvalidLabels(
            f"a class cannot stand for no vote too, got {preview(twice)}; change `missing` or `abstain`, or `classes`"
        )
    names = columns.names.tolist()
    unknown = [k for k, name in enumerate(names) if name not in position]
    if unknown:
        rows = int(np.isin(columns.label, unknown).sum())
        others = [names[k] for k in unknown]
        raise InvalidLabels(
            f"{rows} of {len(special)} votes are for classes that are not among `classes`, got {preview(others)}"
            + (
                kind_hint(others[0], named, what="classes")
                or "; add them to `classes`, or declare them with `missing` or `abstain`"
            )
        )
    rank = np.array([position[name] for name in names] + [-1], dtype=np.int32)
    return named, rank[np.where(special, -1, columns.label)]


def _choose_duplicates(
    item: Codes, labeler: Codes, run: Codes | None, rule: Duplicates, columns: Columns
) -> npt.NDArray[np.int64]:
    pair = item.astype(np.int64) * len(columns.labelers) + labeler
    if run is not None:  # verdicts of several runs are no repetitions of each other
        pair = pair * (int(run.max(initial=-1)) + 2) + run + 1
    if rule == "last":
        _, first = np.unique(pair[::-1], return_index=True)
        return np.sort(len(pair) - 1 - first)
    _, first = np.unique(pair, return_index=True)
    if rule == "error" and len(first) < len(pair):
        again = int(np.setdiff1d(np.arange(len(pair)), first)[0])
        labeler_name, what = columns.labelers[labeler[again]], columns.items[item[again]]
        raise InvalidLabels(
            f"a labeler must vote once on an item{'' if run is None else ' in a run'}, got {len(pair) - len(first)} "
            "repeated votes "
            f'(first: labeler {labeler_name!s} on item {what!s}); pass `duplicates="keep"`, "first" or "last"'
        )
    return np.sort(first)


def from_counts(
    counts: npt.ArrayLike, *, classes: Sequence[Hashable] | None, items: Sequence[Hashable] | None, labeler: Hashable
) -> dict[str, Any]:
    """The fields of `Labels` from an items × classes table of counts."""
    values, row_names, column_names = matrix_parts(counts)
    items, classes = row_names if items is None else items, column_names if classes is None else classes
    table = np.asarray(values)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidLabels(
            f"counts must be items × two classes or more, got shape {table.shape}; see Labels.from_frame"
        )
    if table.dtype.kind not in "iuf" or (table < 0).any() or not np.isfinite(table).all() or (table % 1 != 0).any():
        raise InvalidLabels(
            f"counts must be whole numbers that are not negative, got {preview(table.ravel())}; see Labels.from_frame"
        )
    if not table.any():
        raise InvalidLabels("there are no votes, got counts that are all 0; pass how many said what")
    n, n_classes = table.shape
    names = check_names("classes", classes, n_classes)
    labelers, matrix = check_names("labeler", [labeler]), sparse.csr_array(table.astype(np.float64))
    known = bare_votes(check_names("items", items, n), labelers, names, matrix)
    return {**known, "fixed_classes": classes is not None, "crowds": frozenset([labeler])}
