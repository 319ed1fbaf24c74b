"""Votes in data sets made for training: rows as those of Hugging Face, and matrices of labeling functions as Snorkel's.

Rows may hold one vote each, or a list of votes with a list of who gave them. Classes that are numbers with names in the
features of the data set get their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.validation import preview
from trueup.data.encoding import is_null
from trueup.data.frames import check_column, column_names, is_frame, series_parts
from trueup.exceptions import InvalidLabels, quoted

CROWD = "crowd"  # the labeler of votes of which nobody knows who gave them
_UNLABELED = -1  # of classes that are numbers with names


@dataclass(frozen=True)
class DatasetVotes:
    """The votes of a data set as columns.

    Attributes
    ----------
    columns : dict
        ``item``, ``labeler`` and ``label``, a row for each vote.
    classes : list, optional
        The names of the classes in their order, where the data set has them.
    is_anonymous : bool
        Whether nobody knows who gave which vote.
    """

    columns: dict[str, list[Any]]
    classes: list[Hashable] | None
    is_anonymous: bool


def is_matrix(dataset: Any) -> bool:
    """Whether a data set is a matrix of votes, items × labelers, and no rows."""
    return isinstance(dataset, np.ndarray) and dataset.ndim == 2


def read_dataset(dataset: Any, *, item: str | None, labeler: str | None, label: str) -> DatasetVotes:
    """The votes in the rows of a data set.

    Parameters
    ----------
    dataset : Dataset of Hugging Face, frame, dict of columns, or sequence of dicts
    item, labeler, label : str or None
        The columns, or with a dot a member of the objects in one (``annotations.label``). Without an item the rows are
        numbered from 0; without a labeler the votes are of an anonymous crowd.
    """
    labels = _column(dataset, label, "label")
    names = class_names(dataset, label)
    items = list(range(len(labels))) if item is None else _column(dataset, item, "item")
    people = None if labeler is None else _column(dataset, labeler, "labeler")
    columns: dict[str, list[Any]] = {"item": [], "labeler": [], "label": []}
    for row, (name, said) in enumerate(zip(items, labels, strict=True)):
        votes = list(said) if _is_list(said) else [said]
        who = [CROWD] * len(votes) if people is None else people[row]
        who = list(who) if _is_list(who) else [who] * len(votes)
        if len(who) != len(votes):
            raise InvalidLabels(
                f"a row must name a labeler for each of its votes, got {len(who)} for {len(votes)} votes in ⟨row {row}⟩"
                "; name the columns that belong together with ⟨labeler=…⟩ and ⟨label=…⟩"
            )
        columns["item"] += [name] * len(votes)
        columns["labeler"] += who
        columns["label"] += [_named(vote, names) for vote in votes]
    return DatasetVotes(columns, names, people is None)


def class_names(dataset: Any, column: str) -> list[Hashable] | None:
    """The names of the classes of a column, from the features of the data set; None where it has none."""
    features = getattr(dataset, "features", None)
    feature: Any = features
    for part in column.split("."):
        feature = _inside(feature, part)
    for _ in range(3):  # a list of classes has them one level below
        if feature is None or hasattr(feature, "names"):
            break
        feature = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    names = getattr(feature, "names", None)
    return list(names) if names is not None else None


def _inside(feature: Any, name: str) -> Any:
    if isinstance(feature, list) and len(feature) == 1:
        feature = feature[0]
    if not isinstance(feature, Mapping):
        feature = getattr(feature, "feature", None)
    return feature.get(name) if isinstance(feature, Mapping) else None


def _named(vote: Any, names: Sequence[Hashable] | None) -> Any:
    """A vote by the name of its class; None where there is none."""
    if is_null(vote) or names is None or isinstance(vote, str):
        return vote
    if vote == _UNLABELED:
        return None
    if not 0 <= int(vote) < len(names):
        raise InvalidLabels(
            f"a label must be one of {len(names)} classes, got {vote!r}; the classes are {preview(names)}"
        )
    return names[int(vote)]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _column(dataset: Any, name: str, role: str) -> list[Any]:
    """A column of a data set, or a member of the objects in one."""
    outer, dot, inner = name.partition(".")
    if isinstance(dataset, Sequence) and all(isinstance(row, Mapping) for row in dataset):
        known = list(dict.fromkeys(key for row in dataset for key in row))
        outer, dot, inner = (name, "", "") if name in known else (outer, dot, inner)
        check_column(outer, known, role=role)
        values = [row.get(outer) for row in dataset]
    else:
        known = _column_names(dataset)
        outer, dot, inner = (name, "", "") if name in known else (outer, dot, inner)
        check_column(outer, known, role=role)
        column = dataset[outer]
        parts = series_parts(column)
        values = list(column) if parts is None else parts[0]
    return [_member(value, inner, name) for value in values] if dot else values


def _column_names(dataset: Any) -> list[str]:
    names = getattr(dataset, "column_names", None)
    if isinstance(names, list):
        return names
    if is_frame(dataset) or isinstance(dataset, Mapping):
        return column_names(dataset)
    raise InvalidLabels(
        f"a data set must have rows with named columns, got {type(dataset).__name__}; pass a Dataset of Hugging Face, "
        "a list of dicts or a frame, one split at a time"
    )


def _member(value: Any, name: str, column: str) -> Any:
    """A member of an object, or of each object of a list; a list of objects may also be an object of lists."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        if name not in value:
            raise InvalidLabels(
                f"there is no member {quoted(name)} in column {quoted(column)}; got {preview(list(value))}"
            )
        return value[name]
    if _is_list(value) and all(isinstance(one, Mapping) for one in value):
        return [one.get(name) for one in value]
    raise InvalidLabels(
        f"column {quoted(column)} must hold objects with a member {quoted(name)}, got {type(value).__name__}; name the "
        "column itself"
    )
