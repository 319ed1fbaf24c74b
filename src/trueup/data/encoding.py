"""Names to integer codes and back.

Items, labelers and answers have names of any hashable type outside and are small integers inside. Everything here
works on one column at a time, in blocks, so that a long column never exists twice as Python objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes
from trueup._base.validation import did_you_mean, kind_hint, kind_of, preview
from trueup.exceptions import InvalidLabels, TrueupError

Vocabulary = npt.NDArray[Any]
Block = npt.NDArray[Any] | Sequence[Any]
Encoded = tuple[Codes, Vocabulary]

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})(\.0+)?", re.ASCII)
_INT64 = range(-(2**63), 2**63)
NULL_CODE = -1


def is_null(value: object) -> bool:
    """Whether a value says "nothing here": None, NaN, NaT or a frame library's null."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return type(value).__name__ in {"NAType", "NaTType"} or (isinstance(value, np.datetime64) and bool(np.isnat(value)))


def is_marked(value: object) -> bool:
    """Whether a cell of a column of marks says yes."""
    return str(value).strip().casefold() in ("1", "1.0", "true")


class _Book(dict[Hashable, int]):
    """Gives each new name the next code; looking a known one up costs one dictionary access and no Python call."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[Hashable] = []

    def __missing__(self, name: Hashable) -> int:
        if type(name) is not str and is_null(name):
            return NULL_CODE  # not stored: every NaN is a key of its own
        self[name] = code = len(self.names)
        self.names.append(name)
        return code


class Encoder:
    """Collects a column block by block and then encodes it."""

    def __init__(self, column: str, *, blank_is_null: bool = False) -> None:
        self.column = column
        self._integers: list[npt.NDArray[Any]] = []
        self._parts: list[Codes] = []
        self._book = _Book()
        if blank_is_null:
            self._book[""] = NULL_CODE

    def add(self, block: Block) -> None:
        """Take the next block of the column."""
        if not len(block):
            return
        if isinstance(block, np.ndarray) and block.dtype.kind in "iu" and not self._parts:
            low, high = int(block.min()), int(block.max())
            if high in _INT64:  # int32 where they fit; smaller types would overflow when shifted
                self._integers.append(block.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.int64))
                return
        for integers in self._integers:  # the column turned out not to be integers only
            self._parts.append(self._look_up(integers))
        self._integers.clear()
        self._parts.append(self._look_up(block))

    def _look_up(self, block: Block) -> Codes:
        values = block.tolist() if isinstance(block, np.ndarray) else block
        try:
            return np.fromiter(map(self._book.__getitem__, values), np.int32, len(values))
        except TypeError as error:
            bad = _first_unhashable(values)
            raise InvalidLabels(
                f"{self.column} must hold text or numbers, got {type(bad).__name__} {bad!r:.40}; convert the column"
            ) from error

    @property
    def most_names(self) -> float:
        """How many names there are so far, at most."""
        return math.inf if self._integers else len(self._book.names)

    def finish(self, *, special: Sequence[Any] = ()) -> Encoded:
        """The codes and the vocabulary; the encoder is empty afterwards.

        The vocabulary is sorted, by value or, where values cannot be compared, by how they are written, so the order of
        rows does not matter. A null has code -1, and the k-th of the `special` values, which stay out of it, -2 - k.
        """
        if self._integers:
            values = np.concatenate(self._integers) if len(self._integers) > 1 else self._integers[0]
            self._integers.clear()
            return _encode_integers(values, special)
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.int32)
        self._parts.clear()
        names = self._book.names
        special_code = _special_codes(names, special)
        ordinary = [name for name in names if name not in special_code]
        vocabulary, order = _sorted_vocabulary(ordinary, self.column)
        new_code = dict(zip(ordinary, order.tolist(), strict=True)) | special_code
        rank = np.array([new_code[name] for name in names] + [NULL_CODE], dtype=np.int32)  # the last serves code -1
        return rank[codes], vocabulary


class Distinct:
    """Collects a column that may describe the items, as codes of its values in the order they come."""

    def __init__(self, *, blank_is_null: bool = False) -> None:
        self.most: Callable[[], float] = lambda: math.inf
        self._parts: list[Codes] | None = []
        self._book = _Book()
        if blank_is_null:
            self._book[""] = NULL_CODE

    def add(self, block: Block) -> None:
        """Take the next block of the column."""
        if self._parts is None:
            return
        values = block.tolist() if isinstance(block, np.ndarray) else block
        try:
            self._parts.append(np.fromiter(map(self._book.__getitem__, values), np.int32, len(values)))
            is_kept = len(self._book.names) <= self.most()
        except TypeError:
            is_kept = False
        if not is_kept:
            self._parts, self._book = None, _Book()

    @property
    def values(self) -> list[Hashable]:
        """The values that are no nulls."""
        return self._book.names

    @property
    def codes(self) -> Codes | None:
        """The place of each row in `values`, -1 for a null; None where it was let go."""
        return None if self._parts is None else np.concatenate([np.empty(0, np.int32), *self._parts])

    def by_item(self, item: Codes, n_items: int) -> list[Hashable] | None:
        """The value of each item, None for a null; None where an item has several, or no item has any."""
        codes = self.codes
        if codes is None or len(codes) != len(item) or not self.values:
            return None
        of_item = np.full(n_items, NULL_CODE, dtype=np.int32)
        rows = (codes >= 0) & (item >= 0)
        of_item[item[rows]] = codes[rows]
        if (of_item[item[rows]] != codes[rows]).any():
            return None
        with_null = [*self.values, None]  # the last serves the code of a null
        return [with_null[code] for code in of_item.tolist()]


def encode(blocks: Iterable[Block], *, column: str) -> Encoded:
    """Codes of a column that arrives in blocks, and its vocabulary; see `Encoder.finish`."""
    encoder = Encoder(column)
    for block in blocks:
        encoder.add(block)
    return encoder.finish()


def check_named(codes: Codes, column: str, *, error: type[TrueupError] = InvalidLabels) -> None:
    """Raise where rows of a column lack a name."""
    empty = np.flatnonzero(codes == NULL_CODE)
    if len(empty):
        raise error(
            f"{column} must be named in every row, got {len(empty)} of {len(codes)} rows where it is empty "
            f"(first: `row {empty[0]}`); fill them in or drop the rows"
        )


def check_names(
    what: str, names: Iterable[Any] | None, n: int | None = None, *, error: type[TrueupError] = InvalidLabels
) -> Vocabulary:
    """A vocabulary of names in their order: distinct, none of them empty, `n` of them; by default numbers from 0."""
    if names is None:
        return vocabulary_from(range(n or 0))
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise error(f"{what} must be a list of names, got {type(names).__name__}; pass e.g. ['a', 'b']")
    vocabulary = vocabulary_from(names)
    if n is not None and len(vocabulary) != n:
        raise error(f"{what} must have {n} names, one for each, got {len(vocabulary)}; name each once")
    try:
        n_distinct = len(set(vocabulary.tolist()))
    except TypeError as failure:
        raise error(f"{what} must be names that can be hashed, got {preview(vocabulary)}; use text") from failure
    if n_distinct != len(vocabulary):
        n_again, again = len(vocabulary) - n_distinct, first_repeated(vocabulary)
        raise error(f"{what} must be distinct, got {n_again} repetitions (first: {again!r}); name each once")
    if any(map(is_null, vocabulary)):
        raise error(f"{what} must all be named, got an empty name; leave it out or name it")
    return vocabulary


def first_repeated(names: Vocabulary) -> Hashable:
    """The first name that stood before."""
    seen: set[Hashable] = set()
    return next(name for name in names.tolist() if name in seen or seen.add(name))  # type: ignore[func-returns-value,no-any-return]


def _first_unhashable(values: Iterable[Any]) -> Any:
    for value in values:
        try:
            hash(value)
        except TypeError:
            return value
    return None


def _encode_integers(values: npt.NDArray[Any], special: Sequence[Any]) -> Encoded:
    low, high = int(values.min()), int(values.max())
    if high - low + 1 <= 4 * len(values) + 1024:  # a table of flags is far smaller and quicker than a sort
        offset = values - values.dtype.type(low) if low else values
        present = np.zeros(high - low + 1, dtype=bool)
        present[offset] = True
        codes, names = (np.cumsum(present, dtype=np.int32) - np.int32(1))[offset], np.flatnonzero(present) + low
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
        codes, names = inverse.astype(np.int32), distinct.astype(np.int64)
    special_code = _special_codes(names, special)
    if special_code:
        ordinary = ~np.isin(names, np.array(list(special_code), dtype=np.int64))
        rank = np.cumsum(ordinary, dtype=np.int32) - np.int32(1)
        for value, code in special_code.items():
            rank[np.searchsorted(names, value)] = code  # type: ignore[call-overload]
        codes, names = rank[codes], names[ordinary]
    names.flags.writeable = False
    return codes, names


def _special_codes(names: Sequence[Hashable] | npt.NDArray[np.int64], special: Sequence[Any]) -> dict[Hashable, int]:
    """The special values that occur among the names, with their codes; True is not the number 1 here."""
    code_of = {value: -2 - k for k, value in enumerate(special) if not is_null(value)}
    if isinstance(names, np.ndarray):
        return {int(value): code for value, code in code_of.items() if _is_int64(value) and value in names}
    is_bool = {value: kind_of(value) == "bool" for value in code_of}
    found = (name for name in names if name in code_of) if code_of else ()
    return {name: code_of[name] for name in found if is_bool[name] == (kind_of(name) == "bool")}


def _sorted_vocabulary(names: list[Hashable], column: str) -> tuple[Vocabulary, Codes]:
    families: dict[str, Hashable] = {}
    for name in {type(name): name for name in reversed(names)}.values():
        families.setdefault(kind_of(name), name)
    if len(families) > 1:
        (kind_a, a), (kind_b, b) = list(families.items())[:2]
        raise InvalidLabels(f"{column} mixes types, got {kind_a} {a!r} and {kind_b} {b!r}; convert it to one type")
    try:
        if "frozenset" in families:  # sets are compared by inclusion, which is no order
            raise TypeError
        order = sorted(range(len(names)), key=names.__getitem__)  # type: ignore[arg-type]
    except TypeError:
        written = [str(sorted(map(repr, n))) if isinstance(n, frozenset) else repr(n) for n in names]
        order = sorted(range(len(names)), key=written.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return vocabulary_from([names[i] for i in order]), rank


def _is_int64(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return float(value).is_integer() and int(value) in _INT64
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and int(value) in _INT64  # type: ignore[call-overload]


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Several columns as one of tuples; a row that lacks a part has no name. One column stays as it is."""
    if len(parts) == 1:
        return parts[0]
    key, null = np.zeros(len(parts[0][0]), dtype=np.int64), np.zeros(len(parts[0][0]), dtype=bool)
    for codes, names in parts:
        key = key * max(len(names), 1) + codes
        null |= codes == NULL_CODE
    _, first, rank = np.unique(key[~null], return_index=True, return_inverse=True)
    joint = np.full(len(key), NULL_CODE, dtype=np.int32)
    joint[~null] = rank
    columns = [names[codes[~null][first]].tolist() for codes, names in parts]
    return joint, vocabulary_from(list(zip(*columns, strict=True)))


def vocabulary_from(names: Iterable[Any]) -> Vocabulary:
    """A read-only array of names: integers as integers, everything else as Python objects."""
    if isinstance(names, np.ndarray) and names.dtype == np.int64:
        vocabulary = names.copy()
    else:
        plain = names.tolist() if isinstance(names, np.ndarray) else list(names)
        if plain and all(map(_is_int64, plain)):
            # 1.0 and 1 are the same name in Python, and a column with gaps turns integers into floats.
            vocabulary = np.array([int(v) for v in plain], dtype=np.int64)
        else:
            # fromiter and not a slice assignment, which would take tuples of one length for a second dimension
            values = (v.item() if isinstance(v, np.generic) else v for v in plain)
            vocabulary = np.fromiter(values, dtype=object, count=len(plain))
    vocabulary.flags.writeable = False
    return vocabulary


def is_plain_integer(text: object) -> bool:
    """Whether a text is an integer written plainly ("7" or "7.0", never "007")."""
    return isinstance(text, str) and _INTEGER.fullmatch(text) is not None


def numbers_from_text(codes: Codes, vocabulary: Vocabulary) -> tuple[Codes, Vocabulary]:
    """Turn text from a file into integers if every name is one, written plainly ("7" or "7.0", never "007")."""
    if not len(vocabulary) or not all(map(is_plain_integer, vocabulary)):
        return codes, vocabulary
    numbers, rank = np.unique([int(v.split(".")[0]) for v in vocabulary], return_inverse=True)
    return recoded(codes, rank.astype(np.int32)), vocabulary_from(numbers)


def recoded(codes: Codes, rank: Codes) -> Codes:
    """Codes of a vocabulary as those of another, by the place there of each of its names; what is no name stays."""
    return np.where(codes >= 0, rank[np.maximum(codes, 0)], codes) if len(rank) else codes


def positions(names: Iterable[Hashable], known: Vocabulary, position: Mapping[Hashable, int], what: str) -> list[int]:
    """Where each name is in a vocabulary; an unknown one is an error that names it."""
    if isinstance(names, np.ndarray) and names.dtype.kind == "b" and not isinstance(known[0], bool):
        raise InvalidLabels(f"{what}s must be names, got an array of booleans; pass labels.{what}s[mask]")
    listed = names.tolist() if isinstance(names, np.ndarray) else list(names)
    try:
        return [position[name] for name in listed]
    except TypeError as error:
        bad = _first_unhashable(listed)
        raise InvalidLabels(
            f"{what}s must be names, got {type(bad).__name__} {bad!r:.40}; see labels.{what}s"
        ) from error
    except KeyError:
        unknown = [name for name in listed if name not in position]
        hint = kind_hint(unknown[0], known, what=f"{what}s") or did_you_mean(unknown[0], known[:1000].tolist())
        raise InvalidLabels(
            f"{len(unknown)} of {len(listed)} {what}s are not in the labels, got "
            f"{preview(unknown)}{hint or f'; see `labels.{what}s`'}"
        ) from None
