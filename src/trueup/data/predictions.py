"""Predictions: what the systems under test say of the items.

`Predictions` holds hard classes, class probabilities or scores, of one system or of many. Where items are named they
are matched by name, never by position.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans
from trueup._base.validation import preview
from trueup._base.wording import some
from trueup.data.aligned import (
    AlignedPredictions,
    Policy,
    System,
    align_systems,
    as_floats,
    check_rows,
    encode_classes,
    systems_of,
    with_scores,
)
from trueup.data.encoding import Vocabulary, check_names, vocabulary_from
from trueup.data.frames import FrameTable, column_names, is_frame, series_parts
from trueup.data.votes import Votes
from trueup.exceptions import InvalidLabels, InvalidPredictions


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What one or many systems predict.

    Make one with `from_classes`, `from_probabilities`, `from_scores`, `from_frame` or `trueup.read_predictions`, and
    put several together with `stack`. A null (None, NaN) is no prediction; `align` says what follows from that.
    """

    parts: tuple[System, ...]
    are_labelers: bool = False  # the votes of the labelers themselves; see `Labels.as_systems`

    @classmethod
    def from_classes(
        cls, values: Any, *, items: Iterable[Hashable] | None = None, system: Hashable = "model"
    ) -> Predictions:
        """Hard classes: a sequence, or a mapping from item to class.

        Parameters
        ----------
        values : sequence of shape (n_items,) or mapping
        items : sequence, optional. The item of each value. Without it values follow ``labels.items``.
        system : hashable. The name of the system.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Predictions.from_classes({"a": "cat", "b": "dog"})
        Predictions(1 system, 2 items, classes)
        """
        if isinstance(values, Mapping):
            if items is not None:
                raise InvalidPredictions("a mapping names its items, got `items` as well; leave `items` out")
            values, items = list(values.values()), list(values.keys())
        codes, classes = encode_classes(values)
        return cls((System(system, len(codes), _items_of(items, len(codes)), codes=codes, classes=classes),))

    @classmethod
    def from_probabilities(
        cls,
        probabilities: npt.ArrayLike,
        *,
        classes: Sequence[Hashable],
        items: Iterable[Hashable] | None = None,
        system: Hashable = "model",
    ) -> Predictions:
        """Class probabilities: an array of shape (n_items, n_classes) whose rows sum to one, within 0.001.

        Column k belongs to ``classes[k]``. The hard class is the likeliest one, the first in the order of
        ``labels.classes`` where several are.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Predictions.from_probabilities([[0.9, 0.1], [0.2, 0.8]], classes=["cat", "dog"])
        Predictions(1 system, 2 items, probabilities)
        """
        columns = check_names("classes", classes, error=InvalidPredictions)
        table = as_floats(probabilities, "probabilities")
        if table.ndim != 2 or table.shape[1] != len(columns):
            raise InvalidPredictions(
                f"probabilities must be items × classes, got shape {table.shape} for {len(columns)} classes; fix it"
            )
        named = _items_of(items, len(table))
        return cls((System(system, len(table), named, probabilities=check_rows(table), columns=columns),))

    @classmethod
    def from_scores(
        cls,
        scores: npt.ArrayLike,
        *,
        items: Iterable[Hashable] | None = None,
        positive: Hashable | None = None,
        threshold: float | None = 0.5,
        system: Hashable = "model",
    ) -> Predictions:
        """Scores, one for each item, that grow with the chance of one class.

        Parameters
        ----------
        scores : array of shape (n_items,)
        items : sequence, optional. The item of each score. Without it scores follow ``labels.items``.
        positive : hashable, optional. The class the scores speak for; the second of two classes by default.
        threshold : float or None
            A score of at least this is the positive class, a lower one the other. None: scores alone.
        system : hashable. The name of the system.
        """
        values = as_floats(scores, "scores")
        if values.ndim != 1:
            raise InvalidPredictions(
                f"scores must be one for each item, got shape {values.shape}; see from_probabilities and stack"
            )
        bare = System(system, len(values), _items_of(items, len(values)))
        return cls((with_scores(bare, values, positive, threshold),))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str | Sequence[str] | None = "item",
        prediction: str | Sequence[str] = "prediction",
        score: str = "score",
        probabilities: Mapping[Hashable, str] | None = None,
        system: str | None = None,
        positive: Hashable | None = None,
        threshold: float | None = 0.5,
    ) -> Predictions:
        """Predictions from a table with a row for each item, or for each item and system.

        Parameters
        ----------
        item : str, list of str or None
            The column of items, or those that name one together; None to follow ``labels.items``.
        prediction, score : str. The columns of hard classes and of scores; one of them is enough. Several columns of
            classes (a list, or with commas) are a system each.
        probabilities : mapping from class to column, optional. The columns of class probabilities.
        system : str, optional. The column that names the system of a row; by default "system", where there is one.
        positive, threshold
            As in `from_scores`; the threshold matters only where there is no column of hard classes.
        """
        try:
            table = FrameTable(frame)
        except InvalidLabels as error:
            raise InvalidPredictions(error.sentence) from error
        columns: dict[str, Any] = {"item": item, "prediction": prediction, "score": score, "system": system}
        columns["probabilities"] = probabilities
        return cls(systems_of(table, positive=positive, threshold=threshold, **columns))

    @classmethod
    def stack(cls, systems: Mapping[Any, Predictions]) -> Predictions:
        """Many systems from one each; the keys are their names.

        Examples
        --------
        >>> import trueup as tu
        >>> a, b = tu.Predictions.from_classes(["cat", "dog"]), tu.Predictions.from_scores([0.2, 0.9])
        >>> tu.Predictions.stack({"a": a, "b": b}).systems.tolist()
        ['a', 'b']
        """
        if not systems:
            raise InvalidPredictions("there are no systems to stack, got none; pass {name: Predictions, …}")
        for name, system in systems.items():
            if not isinstance(system, Predictions) or system.n_systems != 1:
                got = f"{system.n_systems} systems" if isinstance(system, Predictions) else type(system).__name__
                raise InvalidPredictions(f"stack needs Predictions of one system for {name!r}, got {got}; stack each")
        parts = tuple(replace(system.parts[0], name=name) for name, system in systems.items())
        return cls(parts, are_labelers=all(system.are_labelers for system in systems.values()))

    @classmethod
    def from_labelers(cls, labels: Votes, *, min_votes: int = 1) -> Predictions:
        """The labelers themselves as systems: each one's votes as its predictions; see `Labels.as_systems`.

        Parameters
        ----------
        min_votes : int. Labelers with fewer votes for a class are left out.
        """
        item, labeler, answer, times = labels.vote_table()
        order = np.lexsort((answer, -times, item, labeler))  # of several votes on an item the most frequent counts
        order = order[answer[order] < labels.n_classes]
        order = order[np.diff(labeler[order].astype(np.int64) * labels.n_items + item[order], prepend=-1) > 0]
        item, labeler, answer = item[order], labeler[order], answer[order]
        edges = np.searchsorted(labeler, np.arange(labels.n_labelers + 1))
        parts = [
            System(name, b - a, labels.items[item[a:b]], codes=answer[a:b].astype(np.int32), classes=labels.classes)
            for name, a, b in zip(labels.labelers.tolist(), edges[:-1], edges[1:], strict=True)
            if b - a >= max(min_votes, 1)
        ]
        if not parts:
            raise InvalidPredictions(f"no labeler has {min_votes} votes for a class; lower min_votes")
        return cls(tuple(parts), are_labelers=True)

    @property
    def systems(self) -> Vocabulary:
        """The names of the systems."""
        return vocabulary_from([part.name for part in self.parts])

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.parts)

    def __getitem__(self, system: Hashable) -> Predictions:
        for part in self.parts:
            if part.name == system:
                return Predictions((part,), self.are_labelers)
        raise InvalidPredictions(f"there is no system {system!r}, got {preview(self.systems, most=10)}; name one")

    def __repr__(self) -> str:
        kinds = {"classes": "codes", "probabilities": "probabilities", "scores": "scores"}
        has = [kind for kind, name in kinds.items() if all(getattr(part, name) is not None for part in self.parts)]
        sizes = sorted({part.n for part in self.parts})
        items = "–".join(f"{size:,}" for size in (sizes if len(sizes) == 1 else (sizes[0], sizes[-1])))
        return f"Predictions({some(self.n_systems, 'system')}, {items} items, {' and '.join(has) or 'mixed kinds'})"

    def align(
        self, labels: Votes, *, unknown: Policy = "error", missing: Policy = "error", unknown_class: Policy = "error"
    ) -> AlignedPredictions:
        """The predictions as arrays in the order of ``labels.items`` and ``labels.classes``.

        Parameters
        ----------
        unknown : {"error", "ignore"}
            A prediction for an item that is not in the labels: an error, or left out and counted.
        missing : {"error", "ignore"}
            An item without a prediction: an error, or kept as none (code -1, NaN) and counted.
        unknown_class : {"error", "ignore"}
            A predicted class that is not in the labels: an error, or taken for no prediction and counted; the item
            then lacks a prediction, so this needs ``missing="ignore"`` too.
        """
        return align_systems(self.parts, labels, unknown=unknown, missing=missing, unknown_class=unknown_class)


def _items_of(items: Iterable[Hashable] | None, n: int) -> Vocabulary | None:
    return None if items is None else check_names("items", [*items], n, error=InvalidPredictions)


def as_predictions(
    outputs: Any, labels: Votes, *, of_scores: bool = False, positive: Hashable | None = None, least: int = 1
) -> Predictions:
    """What a user passed as the output of one system or of many, as `Predictions` of systems with different names."""
    if positive is not None:
        labels.class_code(positive)
    predictions = outputs if isinstance(outputs, Predictions) else _converted(outputs, labels, of_scores, positive)
    names = predictions.systems.tolist()
    if len(names) < least:
        raise InvalidPredictions(f"compare needs at least {least} systems, got {len(names)}; add one, or use evaluate")
    if len(set(names)) < len(names):
        raise InvalidPredictions(f"systems must have different names, got {preview(names, most=10)}; rename them")
    return predictions


_SCALARS = (str, int, float, np.generic, type(None))  # of a class or a score, never of the output of a system


def _converted(outputs: Any, labels: Votes, of_scores: bool, positive: Hashable | None) -> Predictions:
    """Of a table, of many systems by name, or of one system."""
    if not isinstance(outputs, Mapping) and not is_frame(outputs):
        return _of_one_system(_listed(outputs), labels, of_scores, positive)
    # A mapping with these names holds columns, unless they are names of items with a class or score each.
    is_table = is_frame(outputs) or ("item" in outputs and outputs.keys() & {"prediction", "score", "system"})
    if is_table and (is_frame(outputs) or _is_many(_listed(outputs["item"]))):
        columns = column_names(outputs)
        if not {"prediction", "score", "system"} & set(columns):
            raise InvalidPredictions(
                f"a frame of predictions has columns item, prediction or score, and system, got "
                f"{preview(columns, most=10)}; name the columns with Predictions.from_frame, or pass "
                f"{{name: frame[name], …}}"
            )
        return Predictions.from_frame(outputs, positive=positive, threshold=None if of_scores else 0.5)
    if not outputs:
        raise InvalidPredictions("there are no predictions, got an empty mapping; pass {item: class, …}")
    is_of_items = any(isinstance(output, _SCALARS) for output in outputs.values())  # decided at the first, as a rule
    by_name = {} if is_of_items else {name: _listed(output) for name, output in outputs.items()}
    if is_of_items or not all(map(_is_many, by_name.values())):
        return _of_values(list(outputs.values()), list(outputs), labels, of_scores, positive)
    systems = {}
    for name, output in by_name.items():
        try:
            part = output if isinstance(output, Predictions) else _converted(output, labels, of_scores, positive)
            if part.n_systems != 1:
                raise InvalidPredictions(f"one system is needed, got {part.n_systems}; pass each under its own name")
        except InvalidPredictions as error:
            raise InvalidPredictions(f"system {name!r}: {error.sentence}") from error
        systems[name] = part
    return Predictions.stack(systems)


def _of_one_system(output: Any, labels: Votes, of_scores: bool, positive: Hashable | None) -> Predictions:
    series = series_parts(output)
    if series is not None:
        return _of_values(*series, labels, of_scores, positive)
    nested = isinstance(output, list) and bool(output) and isinstance(output[0], list | np.ndarray)
    if getattr(output, "ndim", 1) != 2 and not nested:
        return _of_values(output, None, labels, of_scores, positive)
    array = as_floats(output, "predictions")
    if array.shape != (labels.n_items, labels.n_classes):
        raise InvalidPredictions(
            f"class probabilities must have shape ({labels.n_items}, {labels.n_classes}), items × classes, got "
            f"{array.shape}; pass {{system: predictions}} for several systems"
        )
    return Predictions.from_probabilities(array, classes=labels.classes.tolist())


def _of_values(
    values: Any, items: list[Any] | None, labels: Votes, of_scores: bool, positive: Hashable | None
) -> Predictions:
    """One value for each item: scores if these are meant, and classes otherwise."""
    if of_scores:
        return Predictions.from_scores(values, items=items, positive=positive, threshold=None)
    predictions = Predictions.from_classes(values, items=items)
    classes = predictions.parts[0].classes
    if classes is not None and classes.dtype == object:
        known = set(labels.classes.tolist())
        scores = [v for v in classes.tolist() if isinstance(v, float) and not v.is_integer() and v not in known]
        if scores:
            raise InvalidPredictions(f"scores where classes are needed, got {preview(scores)}; pass a threshold")
    return predictions


def _listed(output: Any) -> Any:
    """Tuples and the arrays of other libraries as lists and arrays of numpy."""
    if isinstance(output, tuple | range):
        return list(output)
    known = isinstance(output, np.ndarray | np.generic | Predictions) or is_frame(output)
    if known or series_parts(output) is not None or not hasattr(output, "__array__"):
        return output
    return np.asarray(output)


def _is_many(value: Any) -> bool:
    """Whether a value of a mapping is the output of a system, and not the class or score of an item."""
    many = isinstance(value, Predictions | np.ndarray | list | Mapping)
    return many or series_parts(value) is not None or is_frame(value)


def are_in_votes(aligned: AlignedPredictions, labels: Votes) -> Booleans:
    """Which systems are labelers whose very votes are in the labels, shape (n_systems,)."""
    same = np.zeros(aligned.n_systems, dtype=bool)
    shared = set(labels.labelers.tolist()).intersection(aligned.systems.tolist())
    if aligned.codes is None or not shared:
        return same
    voters = {part.name: part for part in Predictions.from_labelers(labels).parts if part.name in shared}
    for k, name in enumerate(aligned.systems.tolist()):
        items = voters[name].items if name in voters else None
        if items is not None:
            votes = np.full(labels.n_items, -1)
            votes[labels.find_items(items)] = voters[name].codes
            same[k] = np.array_equal(votes, aligned.codes[k])
    return same
