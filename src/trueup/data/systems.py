"""What one system predicts, checked and in its own names; `Predictions` is a tuple of these."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_number, preview
from trueup.data.encoding import NULL_CODE, Block, Vocabulary, encode, is_null, vocabulary_from
from trueup.data.frames import check_column, column_blocks, series_parts
from trueup.exceptions import InvalidLabels, InvalidPredictions

__all__ = [
    "Encoded",
    "Floats",
    "System",
    "as_block",
    "as_floats",
    "as_items",
    "check_rows",
    "column_of_floats",
    "encode_classes",
    "systems_from_columns",
    "wanted_columns",
    "with_scores",
]

Encoded = tuple[Codes, Vocabulary]


@dataclass(frozen=True, eq=False)
class System:
    """What one system predicts, row by row and in its own names; a null is no prediction.

    Attributes
    ----------
    items : array of shape (n,), optional
        The item of each row; None where rows follow the items of the labels.
    codes : int array of shape (n,), optional
        Hard predictions as positions in `classes`, -1 for none.
    probabilities : array of shape (n, len(columns)), optional
        Class probabilities, NaN for none.
    scores : array of shape (n,), optional
        Scores that grow with the chance of the `positive` class, NaN for none.
    """

    name: Hashable
    n: int
    items: Vocabulary | None = None
    codes: Codes | None = None
    classes: Vocabulary | None = None
    probabilities: Floats | None = None
    columns: Vocabulary | None = None
    scores: Floats | None = None
    positive: Hashable | None = None
    threshold: float | None = None


def systems_from_columns(
    names: Mapping[str, Encoded],
    *,
    score: Floats | None,
    probabilities: Mapping[Hashable, Floats],
    positive: Hashable | None,
    threshold: float | None,
) -> tuple[System, ...]:
    """The systems of a table whose columns of names are encoded."""
    lengths = {len(codes) for codes, _ in names.values()} | {len(p) for p in probabilities.values()}
    lengths |= set() if score is None else {len(score)}
    if len(lengths) != 1:
        raise InvalidPredictions(f"the columns must have one length, got {sorted(lengths)}; pass a row for each item")
    n = lengths.pop()
    if n == 0:
        raise InvalidPredictions("there are no predictions, got 0 rows; pass a row for each item")
    for role in ("item", "system"):
        if role in names and (names[role][0] == NULL_CODE).any():
            empty = np.flatnonzero(names[role][0] == NULL_CODE)
            raise InvalidPredictions(
                f"{role} must be named in every row, got {len(empty)} of {n} rows where it is empty "
                f"(first: ⟨row {empty[0]}⟩); fill them in or drop the rows"
            )
    whole = System("model", n)
    if "item" in names:
        codes, vocabulary = names["item"]
        whole = replace(whole, items=vocabulary[codes])
    if "prediction" in names:
        whole = replace(whole, codes=names["prediction"][0], classes=names["prediction"][1])
    if probabilities:
        table = check_rows(np.stack(list(probabilities.values()), axis=1))
        whole = replace(whole, probabilities=table, columns=vocabulary_from(probabilities))
    if score is not None:
        whole = with_scores(whole, score, positive, threshold)
    if "system" not in names:
        return (_distinct(whole),)
    codes, systems = names["system"]
    parts = (_rows(whole, np.flatnonzero(codes == k), name) for k, name in enumerate(systems.tolist()))
    return tuple(_distinct(part) for part in parts)


def as_block(values: Any) -> Block:
    """One value for each item."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        got = f"shape {values.shape}" if hasattr(values, "shape") else f"{type(values).__name__} {values!r:.40}"
        raise InvalidPredictions(
            f"predictions must be one for each item, got {got}; pass a list or one-dimensional array"
        )
    parts = series_parts(values)
    if parts is not None:
        return parts[0]
    return values if isinstance(values, np.ndarray) else list(values)


def encode_classes(values: Any) -> Encoded:
    """Hard classes as codes."""
    try:
        return encode([as_block(values)], column="prediction")
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence.marked) from error


def as_items(items: Iterable[Hashable] | None, n: int) -> Vocabulary | None:
    """The names of items, one for each of `n` predictions and each once."""
    if items is None:
        return None
    names = vocabulary_from(items)
    if len(names) != n:
        raise InvalidPredictions(f"items must name each prediction, got {len(names)} names for {n}; pass one for each")
    if any(map(is_null, names)):
        raise InvalidPredictions("items must all be named, got an empty name; fill it in or drop the prediction")
    _distinct(System("model", n, names))
    return names


def _distinct(system: System) -> System:
    """An item is predicted once by a system."""
    if system.items is not None:
        try:
            n_distinct = len(set(system.items.tolist()))
        except TypeError as error:
            raise InvalidPredictions(
                f"items must be names that can be hashed, got {preview(system.items)}; use text or numbers"
            ) from error
        if n_distinct < system.n:
            seen: set[Hashable] = set()
            again = next(i for i in system.items.tolist() if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise InvalidPredictions(
                f"a system must predict an item once, got {system.n - n_distinct} repeated items (first: {again!r}); "
                "keep one of each, or name the column of systems with ⟨system=…⟩"
            )
    return system


def _rows(system: System, rows: npt.NDArray[np.int64], name: Hashable) -> System:
    arrays = {k: getattr(system, k) for k in ("items", "codes", "probabilities", "scores")}
    return replace(system, name=name, n=len(rows), **{k: None if a is None else a[rows] for k, a in arrays.items()})


def with_scores(system: System, values: Floats, positive: Hashable | None, threshold: float | None) -> System:
    """A system with scores added."""
    if np.isinf(values).any():
        raise InvalidPredictions(
            f"scores must be finite, got {preview(values[np.isinf(values)])}; use a large number instead"
        )
    if threshold is not None:
        threshold = check_number(threshold, name="threshold")
    return replace(system, scores=values, positive=positive, threshold=threshold)


def as_floats(values: Any, what: str) -> Floats:
    """A new array of floats; None is NaN."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPredictions(f"{what} must be numbers, got {values!r:.60}; convert them to floats") from error


def column_of_floats(frame: Any, name: str) -> Floats:
    """A column of numbers; a null is NaN."""
    blocks = [as_floats([None if is_null(v) else v for v in b], name) for b in column_blocks(frame, name, role="score")]
    return np.concatenate(blocks) if blocks else np.empty(0)


def check_rows(table: Floats) -> Floats:
    """Rows that are probabilities, scaled to sum to one exactly, or NaN altogether for no prediction."""
    given = ~np.isnan(table).all(axis=1)
    rows = table[given]
    outside = np.argwhere(~((rows >= 0) & (rows <= 1.001)))
    if len(outside):
        value = rows[tuple(outside[0])]
        raise InvalidPredictions(
            f"probabilities must be between 0 and 1, got {value:.6g} in {len(np.unique(outside[:, 0]))} of {len(rows)} "
            "rows or more; use Predictions.from_scores for other scores"
        )
    total = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(total - 1) > 1e-3)
    if len(wrong):
        row = np.flatnonzero(given)[wrong[0]]
        raise InvalidPredictions(
            f"probabilities of an item must sum to 1, got {total[wrong[0]]:.6g} in ⟨row {row}⟩ and {len(wrong)} such "
            f"rows of {len(table)}; divide each row by its sum if that is meant"
        )
    out = np.full(table.shape, np.nan)
    out[given] = rows / total[:, None]
    return out


def wanted_columns(
    columns: list[str],
    *,
    item: str | None,
    prediction: str,
    score: str,
    probabilities: Mapping[Hashable, str] | None,
    system: str | None,
) -> dict[str, str]:
    """Which columns of a table to read, by role; "prediction" and "score" are optional unless renamed."""
    wanted = {"item": item, "system": system}
    if prediction in columns or prediction != "prediction":
        wanted["prediction"] = prediction
    if score in columns or score != "score":
        wanted["score"] = score
    found = {role: name for role, name in wanted.items() if name is not None}
    for role, name in (*found.items(), *(("probabilities", name) for name in (probabilities or {}).values())):
        check_column(name, columns, role=role, error=InvalidPredictions)
    if "prediction" not in found and "score" not in found and not probabilities:
        check_column(prediction, columns, role="prediction", error=InvalidPredictions)
    return found
