"""What one system predicts, checked and in its own names; `Predictions` is a tuple of these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_number, preview
from trueup.data.encoding import (
    Block,
    Encoded,
    Vocabulary,
    check_named,
    encode,
    first_repeated,
    is_null,
    vocabulary_from,
)
from trueup.data.frames import Table, check_column, read_names, series_parts
from trueup.exceptions import InvalidLabels, InvalidPredictions


@dataclass(frozen=True, eq=False)
class System:
    """What one system predicts, row by row and in its own names; a null is no prediction."""

    name: Hashable
    n: int
    items: Vocabulary | None = None  # (n,): the item of each row; None where rows follow the items of the labels
    codes: Codes | None = None  # (n,): hard predictions as positions in `classes`, -1 for none
    classes: Vocabulary | None = None
    probabilities: Floats | None = None  # (n, len(columns): class probabilities, NaN for none
    columns: Vocabulary | None = None
    scores: Floats | None = None  # (n,): scores that grow with the chance of the `positive` class, NaN for none
    positive: Hashable | None = None
    threshold: float | None = None


def systems_of(
    table: Table,
    *,
    item: str | None,
    prediction: str,
    score: str,
    probabilities: Mapping[Hashable, str] | None,
    system: str | None,
    positive: Hashable | None,
    threshold: float | None,
    known: Mapping[str, Vocabulary] | None = None,
) -> tuple[System, ...]:
    """The systems of a table; the parameters are those of `Predictions.from_frame`, and `known` is of `read_names`.

    The columns of predictions and scores are optional unless renamed, but one of them must be there.
    """
    roles = {role: name for role, name in (("item", item), ("system", system)) if name is not None}
    is_scored = score in table.columns or score != "score"
    if prediction in table.columns or prediction != "prediction" or not (is_scored or probabilities):
        roles["prediction"] = prediction
    score_in = _Numbers(score) if is_scored else None
    probability_in = {name: _Numbers(column) for name, column in (probabilities or {}).items()}
    sinks = [(numbers.column, numbers) for numbers in (score_in, *probability_in.values()) if numbers is not None]
    try:
        for column, _ in sinks:
            check_column(column, table.columns, role="score" if column == score else "probabilities")
        names = read_names(table, roles, known=known, sinks=sinks)
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence) from error
    columns = {name: numbers.finish() for name, numbers in probability_in.items()}
    scores = None if score_in is None else score_in.finish()
    lengths = {len(codes) for codes, _ in names.values()} | {len(p) for p in columns.values()}
    lengths |= set() if scores is None else {len(scores)}
    if len(lengths) != 1:
        raise InvalidPredictions(f"the columns must have one length, got {sorted(lengths)}; pass a row for each item")
    n = lengths.pop()
    if n == 0:
        raise InvalidPredictions("there are no predictions, got 0 rows; pass a row for each item")
    for role in {"item", "system"} & names.keys():
        check_named(names[role][0], role, error=InvalidPredictions)
    whole = System("model", n)
    if "item" in names:
        codes, vocabulary = names["item"]
        whole = replace(whole, items=vocabulary[codes])
    if "prediction" in names:
        whole = replace(whole, codes=names["prediction"][0], classes=names["prediction"][1])
    if columns:
        checked = check_rows(np.stack(list(columns.values()), axis=1))
        whole = replace(whole, probabilities=checked, columns=vocabulary_from(columns))
    if scores is not None:
        whole = with_scores(whole, scores, positive, threshold)
    if "system" not in names:
        return (_distinct(whole),)
    codes, systems = names["system"]
    parts = (_rows(whole, np.flatnonzero(codes == k), name) for k, name in enumerate(systems.tolist()))
    return tuple(_distinct(part) for part in parts)


def _as_block(values: Any) -> Block:
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
        return encode([_as_block(values)], column="prediction")
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence) from error


def _distinct(system: System) -> System:
    """An item is predicted once by a system."""
    n_again = 0 if system.items is None else system.n - len(set(system.items.tolist()))
    if n_again and system.items is not None:
        raise InvalidPredictions(
            f"a system must predict an item once, got {n_again} repeated items (first: "
            f"{first_repeated(system.items)!r}); keep one of each, or name the column of systems with `system=…`"
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


def check_rows(table: Floats) -> Floats:
    """Rows that are probabilities, scaled to sum to one exactly, or NaN altogether for no prediction."""
    predicted = np.flatnonzero(~np.isnan(table).all(axis=1))
    rows = table[predicted]
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
        row = predicted[wrong[0]]
        raise InvalidPredictions(
            f"probabilities of an item must sum to 1, got {total[wrong[0]]:.6g} in `row {row}` and {len(wrong)} such "
            f"rows of {len(table)}; divide each row by its sum if that is meant"
        )
    scaled = np.full(table.shape, np.nan)
    scaled[predicted] = rows / total[:, None]
    return scaled


class _Numbers:
    """Collects a column of numbers; blank and null are NaN."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._parts: list[Floats] = []
        self._n = 0

    def add(self, block: Block) -> None:
        """Take the next block."""
        values = block if isinstance(block, np.ndarray) else ["nan" if v == "" or is_null(v) else v for v in block]
        try:
            self._parts.append(np.array(values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            row, bad = next((k, v) for k, v in enumerate(values) if not _is_number(v))
            raise InvalidPredictions(
                f"{self.column} must be a number, got {bad!r} in `row {self._n + row}`; "
                "correct it, or leave the cell blank for no prediction"
            ) from error
        self._n += len(values)

    def finish(self) -> Floats:
        """The whole column."""
        return np.concatenate(self._parts) if self._parts else np.empty(0)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
