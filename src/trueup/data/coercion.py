"""What a user passed to `compare` as systems, as `Predictions`; and which of them are labelers whose votes are in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.validation import preview
from trueup.data.frames import column_names, is_frame, series_parts
from trueup.data.labels import Labels
from trueup.data.predictions import AlignedPredictions, Predictions, as_predictions, as_scores
from trueup.exceptions import InvalidParameter, InvalidPredictions

__all__ = ["are_in_votes", "as_systems", "only"]


def as_systems(systems: Any, labels: Labels, *, of_scores: bool, positive: Hashable | None, least: int) -> Predictions:
    """Systems of different names, at least so many.

    Parameters
    ----------
    systems : mapping, frame, Predictions, or the output of one system
    labels : Labels
    of_scores : bool
        Whether numbers are scores.
    positive : class, optional
        What scores speak for that name no class.
    least : int
    """
    if positive is not None and positive not in labels.classes.tolist():
        raise InvalidParameter(
            f"positive must be one of the classes {preview(labels.classes, most=10)}, got {positive!r}"
        )
    predictions = _converted(systems, labels, of_scores, positive)
    names = predictions.systems.tolist()
    if len(names) < least:
        raise InvalidPredictions(
            f"compare needs at least {least} systems, got {len(names)}; pass {{name: predictions, …}}, or use evaluate "
            "for one"
        )
    if len(set(names)) < len(names):
        raise InvalidPredictions(f"systems must have different names, got {preview(names, most=10)}; rename them")
    return predictions


def _converted(systems: Any, labels: Labels, of_scores: bool, positive: Hashable | None) -> Predictions:
    if isinstance(systems, Predictions):
        return systems
    table = is_frame(systems) or (isinstance(systems, Mapping) and "item" in systems)
    if table and "system" in column_names(systems):
        return Predictions.from_frame(systems, system="system", positive=positive)
    if is_frame(systems) and not {"prediction", "score"} & set(column_names(systems)):
        raise InvalidPredictions(
            f"a frame of systems has columns item, system, and prediction or score, got "
            f"{preview(column_names(systems), most=10)}; pass {{name: frame[name], …}} if each column is a system"
        )
    if isinstance(systems, Mapping) and not table:
        if not systems:
            raise InvalidPredictions("there are no systems, got an empty mapping; pass {name: predictions, …}")
        outputs = {name: _listed(one) for name, one in systems.items()}
        if all(map(_is_output, outputs.values())):
            return Predictions.stack(
                {name: _one(name, one, labels, of_scores, positive) for name, one in outputs.items()}
            )
    return _named_class((as_scores if of_scores else as_predictions)(systems, labels), positive, systems)


def _one(name: Hashable, output: Any, labels: Labels, of_scores: bool, positive: Hashable | None) -> Predictions:
    try:
        found = _named_class((as_scores if of_scores else as_predictions)(output, labels), positive, output)
        if found.n_systems != 1:
            raise InvalidPredictions(f"one system is needed, got {found.n_systems}; pass each under its own name")
    except InvalidPredictions as error:
        raise InvalidPredictions(f"system {name!r}: {error}") from error
    return found


def _named_class(predictions: Predictions, positive: Hashable | None, given: Any = None) -> Predictions:
    """Scores that came without the name of a class speak for the positive one."""
    if positive is None or isinstance(given, Predictions):
        return predictions
    return replace(
        predictions,
        parts=tuple(replace(p, positive=positive if p.positive is None else p.positive) for p in predictions.parts),
    )


def _listed(output: Any) -> Any:
    """Tuples and the arrays of other libraries as lists and arrays of numpy."""
    if isinstance(output, tuple | range):
        return list(output)
    known = isinstance(output, np.ndarray | np.generic | Predictions) or is_frame(output)
    if known or series_parts(output) is not None or not hasattr(output, "__array__"):
        return output
    return np.asarray(output)


def _is_output(value: Any) -> bool:
    """Whether a value of a mapping is the output of a system, and not the class or score of an item."""
    many = isinstance(value, Predictions | np.ndarray | list | Mapping)
    return many or series_parts(value) is not None or is_frame(value)


def are_in_votes(aligned: AlignedPredictions, labels: Labels) -> npt.NDArray[np.bool_]:
    """Which systems are labelers whose very votes are in the labels, shape (n_systems,).

    Those have the name of a labeler and all of his votes, and none besides. Others of the same name are other raters.
    """
    same = np.zeros(aligned.n_systems, dtype=bool)
    if aligned.codes is None:
        return same
    known = set(labels.labelers.tolist())
    places = {name: k for k, name in enumerate(aligned.systems.tolist()) if name in known}
    if not places:
        return same
    voters = [part for part in Predictions.from_labelers(labels).parts if part.name in places]
    for part in voters:
        k = places[part.name]
        votes = Predictions((part,)).align(labels, missing="ignore").codes
        assert votes is not None
        same[k] = np.array_equal(votes[0], aligned.codes[k])
    return same


def only(aligned: AlignedPredictions, kept: npt.NDArray[np.bool_]) -> AlignedPredictions:
    """Some of the systems."""
    if kept.all():
        return aligned
    return replace(
        aligned,
        systems=aligned.systems[kept],
        codes=None if aligned.codes is None else aligned.codes[kept],
        scores=None if aligned.scores is None else aligned.scores[kept],
        probabilities=None if aligned.probabilities is None else aligned.probabilities[kept],
        missing=aligned.missing[kept],
        unknown_items=aligned.unknown_items[kept],
        unknown_classes=aligned.unknown_classes[kept],
    )
