"""What each system predicts, by its own names and in the order of the items and classes of the votes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_choice, check_number, did_you_mean, kind_hint, preview
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
from trueup.data.frames import Table, check_column, column_of, has_key, key_columns, parts_of, read_names, series_parts
from trueup.data.votes import Votes
from trueup.exceptions import InvalidLabels, InvalidPredictions

Policy = Literal["error", "ignore"]
OutputKind = Literal["classes", "scores", "probabilities"]
NO_PREDICTION = np.int32(-1)
_SYSTEM = "system"  # the column of systems, which is found by itself
_BY_SYSTEM = ("codes", "scores", "probabilities", "missing", "unknown_items", "unknown_classes")


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


@dataclass(frozen=True, eq=False)
class AlignedPredictions:
    """Predictions in the order of ``labels.items`` and ``labels.classes``."""

    systems: Vocabulary  # (n_systems,): the names of the systems
    codes: Codes | None  # (n_systems, n_items)
    scores: Floats | None  # (n_systems, n_items)
    probabilities: Floats | None  # (n_systems, n_items, n_classes)
    positive: int | None  # the position in ``labels.classes`` of the class the scores speak for
    missing: npt.NDArray[np.int64]  # (n_systems,): items of the labels left without a prediction
    unknown_items: npt.NDArray[np.int64]  # (n_systems,): predictions left out because the labels do not have their item
    unknown_classes: npt.NDArray[np.int64]  # (n_systems,)
    n_classes: int  # number of classes of the labels

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.systems)

    @property
    def n_items(self) -> int:
        """Number of items, with an output or without."""
        return next(int(table.shape[1]) for table in (self.codes, self.scores, self.probabilities) if table is not None)

    def outputs(self, kind: OutputKind, *, needed_by: str = "the metric") -> npt.NDArray[Any]:
        """What all systems say: codes, scores or probabilities; an error where a system does not give them."""
        table = {"classes": self.codes, "scores": self.scores, "probabilities": self.probabilities}[kind]
        if table is None:
            what, instead, how = {
                "classes": ("classes", "scores only", "name a `threshold`, or predict classes"),
                "scores": ("scores", "classes only", "give `Predictions.from_scores` or class probabilities"),
                "probabilities": ("class probabilities", "none", "give them (`Predictions.from_probabilities`)"),
            }[kind]
            raise InvalidPredictions(f"{needed_by} needs {what} of every system, got {instead} from some; {how}")
        return table

    def has_output(self, kind: OutputKind) -> Booleans:
        """Which system says something of which item, shape (n_systems, n_items)."""
        table = self.outputs(kind)
        if kind == "classes":
            return np.asarray(table >= 0)
        return np.asarray(~np.isnan(table if table.ndim == 2 else table[:, :, 0]))

    def of_systems(self, chosen: Booleans | Positions | slice) -> AlignedPredictions:
        """Some of the systems."""
        tables = {name: getattr(self, name) for name in ("systems", *_BY_SYSTEM)}
        parts: dict[str, Any] = {name: None if table is None else table[chosen] for name, table in tables.items()}
        return replace(self, **parts)

    def at_items(self, chosen: Booleans | Codes) -> AlignedPredictions:
        """Some of the items alone, in their order."""
        outputs = {name: getattr(self, name) for name in ("codes", "scores", "probabilities")}
        return replace(self, **{name: part[:, chosen] for name, part in outputs.items() if part is not None})

    def on_items(self, kept: Booleans) -> AlignedPredictions:
        """No prediction but on some of the items; those left out stay in their places, as items without one."""
        return replace(
            self,
            codes=None if self.codes is None else np.where(kept, self.codes, NO_PREDICTION),
            scores=None if self.scores is None else np.where(kept, self.scores, np.nan),
            probabilities=None if self.probabilities is None else np.where(kept[:, None], self.probabilities, np.nan),
        )

    def prepared_for(self, kind: OutputKind, *, positive: int) -> AlignedPredictions:
        """With outputs as a metric wants them: scores that grow with the positive class, probabilities from scores."""
        if kind == "probabilities":
            # Scores of two classes that lie between 0 and 1 serve as probabilities.
            is_binary = self.probabilities is None and self.n_classes == 2 and self.positive is not None
            if not is_binary or self.scores is None or ((self.scores < 0) | (self.scores > 1)).any():
                return self
            both = np.stack([1 - self.scores, self.scores], axis=2)
            return replace(self, probabilities=both if self.positive == 1 else both[:, :, ::-1])
        if kind == "classes" or (self.positive == positive and self.scores is not None):
            return self
        if self.probabilities is not None:
            return replace(self, scores=self.probabilities[:, :, positive].copy(), positive=positive)
        if self.scores is None:
            return self
        if self.n_classes == 2:
            return replace(self, scores=-self.scores, positive=positive)
        of_class = "no class in particular" if self.positive is None else "another class"
        raise InvalidPredictions(
            f"scores of {self.n_classes} classes must be of the positive class, got those of {of_class}; name "
            "`positive`"
        )

    def unmatched_item_notes(self) -> list[str]:
        """What was left out because the labels do not have it."""
        notes = []
        if self.unknown_items.any():
            worst = int(self.unknown_items.argmax())
            notes.append(
                f"Predictions for items without labels were left out: {self.unknown_items[worst]:,} of system "
                f"{self.systems.tolist()[worst]!r}, {self.unknown_items.sum():,} in all."
            )
        if self.unknown_classes.any():
            notes.append(f"{self.unknown_classes.sum():,} predictions of classes the labels do not have were left out.")
        return notes

    def notes_on_scores(self) -> list[str]:
        """A sentence for each system that gives the same score to every item."""
        notes = []
        for name, row in zip(self.systems.tolist(), [] if self.scores is None else self.scores, strict=False):
            scores = row[~np.isnan(row)]
            if len(scores) > 1 and (scores == scores[0]).all():
                notes.append(
                    f"The scores of {name!r} are all {scores[0]:g}: they rank nothing, so every order of the items is "
                    "as good as another."
                )
        return notes


def align_systems(
    systems: Sequence[System], labels: Votes, *, unknown: Policy, missing: Policy, unknown_class: Policy
) -> AlignedPredictions:
    """Align each system and stack them; a kind of prediction that a system lacks is None for all."""
    for value, name in ((unknown, "unknown"), (missing, "missing"), (unknown_class, "unknown_class")):
        check_choice(value, ("error", "ignore"), name=name)
    policies: dict[str, Policy] = {"unknown": unknown, "missing": missing, "unknown_class": unknown_class}
    parts = [_align(system, labels, **policies) for system in systems]
    positives = {part.positive for part in parts} if all(part.scores is not None for part in parts) else set()
    if len(positives) > 1:
        raise InvalidPredictions(
            f"all scores must be of one class, got {preview([s.positive for s in systems])}; "
            "name the same `positive` for each"
        )
    joined: dict[str, Any] = {"positive": positives.pop() if positives else None}
    for name in _BY_SYSTEM:
        tables = [getattr(part, name) for part in parts]
        joined[name] = None if any(table is None for table in tables) else np.concatenate(tables)
    return replace(parts[0], systems=vocabulary_from([system.name for system in systems]), **joined)


def _align(
    system: System, labels: Votes, *, unknown: Policy, missing: Policy, unknown_class: Policy
) -> AlignedPredictions:
    """What one system predicts; all of its names are looked up, and refused or left out, before any array is made."""
    of_system = "" if system.name == "model" else f" of system {system.name!r}"
    n_items, n_classes = labels.n_items, labels.n_classes
    where = np.arange(system.n) if system.items is None else labels.find_items(system.items)
    if system.items is None and system.n != n_items:
        raise InvalidPredictions(
            f"predictions without `items` must follow labels.items, got {system.n} for {n_items} items{of_system}; "
            "name the items"
        )
    n_strange = int((where < 0).sum())
    if system.items is not None and n_strange and (unknown == "error" or n_strange == system.n):
        raise _refusal(system.items[where < 0], labels, "items", f"{n_strange} of {system.n}{of_system}")
    rows = np.flatnonzero(where >= 0)
    position = {name: k for k, name in enumerate(labels.classes.tolist())}
    classes, columns = (
        np.array([*(position.get(name, -1) for name in ([] if names is None else names.tolist())), -1], dtype=np.int32)
        for names in (system.classes, system.columns)
    )
    if system.codes is not None and system.classes is not None:
        predicted = system.codes[rows]
        strange = (classes[predicted] < 0) & (predicted >= 0)
        if strange.any() and (unknown_class == "error" or bool((classes[predicted] < 0).all())):
            got = f"{int(strange.sum())} of {len(predicted)} predictions{of_system}"
            raise _refusal(system.classes[np.unique(predicted[strange])], labels, "classes", got)
    if system.probabilities is not None and system.columns is not None:
        strange = (columns[:-1] < 0) & (np.nanmax(system.probabilities, axis=0, initial=0.0) > 0)
        if strange.any():  # leaving mass out would leave rows that do not sum to one
            raise _refusal(system.columns[strange], labels, "classes", f"probabilities{of_system}")
    if system.positive is not None and system.positive not in position:
        raise _refusal(vocabulary_from([system.positive]), labels, "classes", f"positive={system.positive!r}")
    second = 1 if n_classes == 2 else None
    positive = second if system.positive is None else position[system.positive]

    def placed(values: npt.NDArray[Any], nothing: Any) -> npt.NDArray[Any]:
        """The values of the rows at their items."""
        table = np.full((n_items, *values.shape[1:]), nothing, dtype=values.dtype)
        table[where[rows]] = values
        return table

    codes: Codes | None = None
    scores, probabilities, n_unknown = None, None, 0
    lacks = np.zeros(n_items, dtype=bool)
    if system.codes is not None:
        codes = placed(classes[system.codes[rows]], NO_PREDICTION)
        n_unknown = int((system.codes[rows] >= 0).sum() - (codes >= 0).sum())
        lacks |= codes < 0
    if system.probabilities is not None:
        known = np.flatnonzero(columns[:-1] >= 0)
        table = np.zeros((len(rows), n_classes))  # a class the system does not know has none
        table[:, columns[known]] = system.probabilities[np.ix_(rows, known)]
        table[np.isnan(system.probabilities[rows]).any(axis=1)] = np.nan
        probabilities = placed(table, np.nan)
        lacks |= np.isnan(probabilities[:, 0])
    if system.scores is not None:
        scores = placed(system.scores[rows], np.nan)
        lacks |= np.isnan(scores)
    if scores is None and probabilities is not None and n_classes == 2:
        scores, positive = probabilities[:, 1].copy(), 1
    if codes is None and probabilities is not None:
        nothing = np.isnan(probabilities[:, 0])
        likeliest = np.where(nothing[:, None], 0.0, probabilities).argmax(axis=1)  # the first of equals
        codes = np.where(nothing, NO_PREDICTION, likeliest.astype(np.int32))
    elif codes is None and scores is not None and system.threshold is not None:
        if n_classes != 2 or positive is None:
            raise InvalidPredictions(
                f"a threshold decides between two classes, got {n_classes}{of_system}; predict classes, or pass "
                "`threshold=None`"
            )
        codes = np.where(scores >= system.threshold, positive, 1 - positive).astype(np.int32)
        codes = np.where(np.isnan(scores), NO_PREDICTION, codes)
    n_lacking = int(lacks.sum())
    if n_lacking == n_items or (n_lacking and missing == "error"):
        raise InvalidPredictions(
            f"every item needs a prediction, got none for {n_lacking} of {n_items} items{of_system}: "
            f'{preview(labels.items[lacks])}; predict them, leave them out, or pass `missing="ignore"`'
        )
    tables: list[Any] = [None if table is None else table[None] for table in (codes, scores, probabilities)]
    counts: list[Any] = [np.array([n], dtype=np.int64) for n in (n_lacking, system.n - len(rows), n_unknown)]
    parts = [*tables, None if scores is None else positive, *counts, n_classes]
    return AlignedPredictions(vocabulary_from([system.name]), *parts)


def _refusal(names: Vocabulary, labels: Votes, kind: Literal["items", "classes"], who: str) -> InvalidPredictions:
    """The error about names that the labels do not have."""
    known = labels.items[:1000] if kind == "items" else labels.classes
    hint = kind_hint(names[0], known, what=kind)
    if kind == "items":
        rest = hint or did_you_mean(names[0], known.tolist()) or '; leave them out or pass `unknown="ignore"`'
        return InvalidPredictions(
            f"predictions must be for items of the labels, got {who} for others: {preview(names.tolist())}{rest}"
        )
    rest = hint or (
        f"; the classes of the labels are {preview(known, most=10)}: rename them, read the votes with `classes=[…]`, "
        'or pass `unknown_class="ignore"`'
    )
    return InvalidPredictions(
        f"predictions must be classes of the labels, got {who} for other classes: {preview(names)}{rest}"
    )


def systems_of(
    table: Table,
    *,
    item: str | Sequence[str] | None,
    prediction: str | Sequence[str],
    score: str,
    probabilities: Mapping[Hashable, str] | None,
    system: str | None,
    positive: Hashable | None,
    threshold: float | None,
    known: Mapping[str, Vocabulary] | None = None,
) -> tuple[System, ...]:
    """The systems of a table; the parameters are those of `Predictions.from_frame`, and `known` is of `read_names`."""
    if system is None and _SYSTEM in table.columns and (item is None or _SYSTEM not in parts_of(item, table.columns)):
        system = _SYSTEM
    item = column_of("item", item, table.columns)
    if item is not None and system is None and score not in table.columns and not probabilities:
        beside = _systems_side_by_side(table, item, prediction, known or {})
        if beside:
            return beside
    roles = {role: name for role, name in (("item", item), ("system", system)) if name is not None}
    is_scored = score in table.columns or score != "score"
    if not isinstance(prediction, str):
        (prediction,) = prediction
    if prediction in table.columns or prediction != "prediction" or not (is_scored or probabilities):
        roles["prediction"] = prediction
    probability_in = {name: _Numbers(column) for name, column in (probabilities or {}).items()}
    score_in = [_Numbers(score)] if is_scored else []
    sinks = [(numbers.column, numbers) for numbers in (*score_in, *probability_in.values())]
    try:
        for column, _ in sinks:
            check_column(column, table.columns, role="score" if column == score else "probabilities")
        names = read_names(table, roles, known=known, sinks=sinks)
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence) from error
    columns = {name: numbers.finish() for name, numbers in probability_in.items()}
    scores = [numbers.finish() for numbers in score_in]
    lengths = {len(codes) for codes, _ in names.values()} | {len(values) for values in (*columns.values(), *scores)}
    if len(lengths) != 1:
        raise InvalidPredictions(f"the columns must have one length, got {sorted(lengths)}; pass a row for each item")
    n = lengths.pop()
    if n == 0:
        raise InvalidPredictions("there are no predictions, got 0 rows; pass a row for each item")
    for role in {"item", "system"} & names.keys():
        check_named(names[role][0], role, error=InvalidPredictions)
    codes, classes = names.get("prediction", (None, None))
    whole = System("model", n, codes=codes, classes=classes)
    if "item" in names:
        whole = replace(whole, items=names["item"][1][names["item"][0]])
    if columns:
        checked = check_rows(np.stack(list(columns.values()), axis=1))
        whole = replace(whole, probabilities=checked, columns=vocabulary_from(columns))
    for values in scores:
        whole = with_scores(whole, values, positive, threshold)
    if "system" not in names:
        return (_distinct(whole),)
    codes, systems = names["system"]
    parts = (_rows(whole, np.flatnonzero(codes == k), name) for k, name in enumerate(systems.tolist()))
    return tuple(_distinct(part) for part in parts)


def _systems_side_by_side(
    table: Table, item: str | Sequence[str], prediction: str | Sequence[str], known: Mapping[str, Vocabulary]
) -> tuple[System, ...]:
    """Systems with a column each: those that are named, or that hold known classes alone where none is named."""
    named = parts_of(prediction, table.columns)
    is_named = len(named) > 1
    classes = set(known["prediction"].tolist()) if "prediction" in known else set()
    if not is_named and (named != ["prediction"] or named[0] in table.columns or not has_key(item, table.columns)):
        return ()
    try:
        for name in named * is_named:
            check_column(name, table.columns, role="prediction")
        key = key_columns(item, table.columns, role="item")
        columns = named if is_named else [name for name in table.columns if name not in key]
        as_known = {name: known["prediction"] for name in columns if "prediction" in known}
        found = read_names(table, {"item": key, **{name: [name] for name in columns}}, known={**known, **as_known})
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence) from error
    codes, items = found["item"]
    check_named(codes, "item", error=InvalidPredictions)
    return tuple(
        _distinct(System(name, len(codes), items[codes], codes=found[name][0], classes=found[name][1]))
        for name in columns
        if is_named or (len(found[name][1]) and set(found[name][1].tolist()) <= classes)
    )


def encode_classes(values: Any) -> Encoded:
    """Hard classes, one for each item, as codes."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) != 1:
        got = f"shape {values.shape}" if hasattr(values, "shape") else f"{type(values).__name__} {values!r:.40}"
        raise InvalidPredictions(f"predictions must be one for each item, got {got}; pass a list")
    parts = series_parts(values)
    block = parts[0] if parts is not None else values if isinstance(values, np.ndarray) else list(values)
    try:
        return encode([block], column="prediction")
    except InvalidLabels as error:
        raise InvalidPredictions(error.sentence) from error


def _distinct(system: System) -> System:
    """An item is predicted once by a system; the same prediction again, as beside each vote, counts once."""
    if system.items is None:
        return system
    kept: dict[Hashable, int] = {}
    first = np.array([kept.setdefault(item, k) for k, item in enumerate(system.items.tolist())], dtype=np.int64)
    if len(kept) == system.n:
        return system
    for values in (system.codes, system.probabilities, system.scores):
        if values is not None and not np.array_equal(values, values[first], equal_nan=True):
            raise InvalidPredictions(
                f"a system must predict an item once, got {system.n - len(kept)} repeated items (first: "
                f"{first_repeated(system.items)!r}); keep one of each, or name the column of systems with `system=…`"
            )
    return _rows(system, np.fromiter(kept.values(), dtype=np.int64), system.name)


def _rows(system: System, rows: npt.NDArray[np.int64], name: Hashable) -> System:
    arrays = {k: getattr(system, k) for k in ("items", "codes", "probabilities", "scores")}
    return replace(system, name=name, n=len(rows), **{k: None if a is None else a[rows] for k, a in arrays.items()})


def with_scores(system: System, values: Floats, positive: Hashable | None, threshold: float | None) -> System:
    """A system with scores added."""
    if np.isinf(values).any():
        raise InvalidPredictions(f"scores must be finite, got {preview(values[np.isinf(values)])}; use large numbers")
    threshold = None if threshold is None else check_number(threshold, name="threshold")
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
            f"probabilities must be between 0 and 1, got {value:.6g}; use Predictions.from_scores for other scores"
        )
    total = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(total - 1) > 1e-3)
    if len(wrong):
        row = predicted[wrong[0]]
        raise InvalidPredictions(
            f"probabilities of an item must sum to 1, got {total[wrong[0]]:.6g} in `row {row}`; scale the rows"
        )
    scaled = np.full(table.shape, np.nan)
    scaled[predicted] = rows / total[:, None]
    return scaled


class _Numbers:
    """Collects a column of numbers; blank and null are NaN."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._parts: list[Floats] = []

    def add(self, block: Block) -> None:
        """Take the next block."""
        values = block if isinstance(block, np.ndarray) else ["nan" if v == "" or is_null(v) else v for v in block]
        try:
            self._parts.append(np.array(values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            row, bad = next((k, v) for k, v in enumerate(values) if not _is_number(v))
            raise InvalidPredictions(
                f"{self.column} must be a number, got {bad!r} in `row {sum(map(len, self._parts)) + row}`; leave it "
                "blank for none"
            ) from error

    def finish(self) -> Floats:
        """The whole column."""
        return np.concatenate([np.empty(0), *self._parts])


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
