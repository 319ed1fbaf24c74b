"""Predictions brought into the order of the items and classes of `Labels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, did_you_mean, kind_hint, preview
from trueup.data.encoding import Vocabulary, vocabulary_from
from trueup.data.systems import System
from trueup.exceptions import InvalidPredictions

if TYPE_CHECKING:
    from trueup.data.labels import Labels


__all__ = ["AlignedPredictions", "Policy", "align_systems"]

Policy = Literal["error", "ignore"]
NO_PREDICTION = -1


@dataclass(frozen=True, eq=False)
class AlignedPredictions:
    """Predictions in the order of ``labels.items`` and ``labels.classes``.

    Attributes
    ----------
    systems : array of shape (n_systems,)
        The names of the systems.
    codes : int32 array of shape (n_systems, n_items), optional
        Hard predictions as positions in ``labels.classes``, -1 for none; None if a system gives no hard classes.
    scores : float array of shape (n_systems, n_items), optional
        Scores of the `positive` class, NaN for none; None if a system gives no scores.
    probabilities : float array of shape (n_systems, n_items, n_classes), optional
        Class probabilities, NaN for none; None if a system gives none.
    positive : int, optional
        The position in ``labels.classes`` of the class the scores speak for.
    missing : int array of shape (n_systems,)
        Items of the labels left without a prediction.
    unknown_items : int array of shape (n_systems,)
        Predictions left out because the labels do not have their item.
    unknown_classes : int array of shape (n_systems,)
        Predictions left out because the labels do not have their class; they are counted in `missing` too.
    """

    systems: Vocabulary
    codes: Codes | None
    scores: Floats | None
    probabilities: Floats | None
    positive: int | None
    missing: npt.NDArray[np.int64]
    unknown_items: npt.NDArray[np.int64]
    unknown_classes: npt.NDArray[np.int64]

    @property
    def n_systems(self) -> int:
        """Number of systems."""
        return len(self.systems)


@dataclass(frozen=True, eq=False)
class _Aligned:
    codes: Codes | None
    scores: Floats | None
    probabilities: Floats | None
    positive: int | None
    missing: int
    unknown_items: int
    unknown_classes: int


def align_systems(
    systems: Sequence[System], labels: Labels, *, unknown: Policy, missing: Policy, unknown_class: Policy
) -> AlignedPredictions:
    """Align each system and stack them; a kind of prediction that a system lacks is None for all."""
    for value, name in ((unknown, "unknown"), (missing, "missing"), (unknown_class, "unknown_class")):
        check_choice(value, ("error", "ignore"), name=name)
    parts = [_align(s, labels, unknown=unknown, missing=missing, unknown_class=unknown_class) for s in systems]
    scored = all(p.scores is not None for p in parts)
    positives = {p.positive for p in parts} if scored else set()
    if len(positives) > 1:
        raise InvalidPredictions(
            f"the scores of all systems must speak for one class, got {preview([s.positive for s in systems])}; "
            "pass the same positive= to each Predictions.from_scores"
        )
    return AlignedPredictions(
        systems=vocabulary_from([s.name for s in systems]),
        codes=_stacked([p.codes for p in parts]),
        scores=_stacked([p.scores for p in parts]),
        probabilities=_stacked([p.probabilities for p in parts]),
        positive=positives.pop() if positives else None,
        missing=np.array([p.missing for p in parts], dtype=np.int64),
        unknown_items=np.array([p.unknown_items for p in parts], dtype=np.int64),
        unknown_classes=np.array([p.unknown_classes for p in parts], dtype=np.int64),
    )


def _stacked(arrays: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    present = [a for a in arrays if a is not None]
    return np.stack(present) if present and len(present) == len(arrays) else None


def _align(system: System, labels: Labels, *, unknown: Policy, missing: Policy, unknown_class: Policy) -> _Aligned:
    where = _places(system, labels, unknown)
    rows = np.flatnonzero(where >= 0)
    target = where[rows]
    codes: Codes | None = None
    probabilities = scores = None
    lost = 0
    lacks = np.zeros(labels.n_items, dtype=bool)
    if system.codes is not None and system.classes is not None:
        rank = _class_codes(system, labels, system.codes[rows], unknown_class)
        codes = np.full(labels.n_items, NO_PREDICTION, dtype=np.int32)
        codes[target] = rank[system.codes[rows]]
        lost = int((system.codes[rows] >= 0).sum() - (codes >= 0).sum())
        lacks |= codes < 0
    if system.probabilities is not None and system.columns is not None:
        probabilities = np.full((labels.n_items, labels.n_classes), np.nan)
        probabilities[target] = _reordered(system, labels, rows)
        lacks |= np.isnan(probabilities[:, 0])
    if system.scores is not None:
        scores = np.full(labels.n_items, np.nan)
        scores[target] = system.scores[rows]
        lacks |= np.isnan(scores)
    positive = _positive(system, labels)
    if scores is None and probabilities is not None and labels.n_classes == 2:
        scores, positive = probabilities[:, 1].copy(), 1
    if codes is None:
        codes = _hard(system, labels, probabilities, scores, positive)
    n_lacking = int(lacks.sum())
    if n_lacking == labels.n_items or (n_lacking and missing == "error"):
        raise InvalidPredictions(
            f"every item needs a prediction, got none for {n_lacking} of {labels.n_items} items"
            f"{_of(system)}: {preview(labels.items[lacks])}; "
            'predict them, select the others with labels.select, or pass missing="ignore"'
        )
    return _Aligned(
        codes,
        scores,
        probabilities,
        positive if scores is not None else None,
        missing=n_lacking,
        unknown_items=system.n - len(rows),
        unknown_classes=lost,
    )


def _of(system: System) -> str:
    return "" if system.name == "model" else f" of system {system.name!r}"


def _places(system: System, labels: Labels, unknown: Policy) -> npt.NDArray[np.int64]:
    """The position in ``labels.items`` of each row, -1 where the labels do not have the item."""
    if system.items is None:
        if system.n != labels.n_items:
            raise InvalidPredictions(
                f"predictions without item names must follow labels.items, got {system.n} for {labels.n_items} items"
                f"{_of(system)}; pass one for each, or name them with items=… or a mapping item -> class"
            )
        return np.arange(system.n)
    where = labels.find_items(system.items)
    strangers = system.items[where < 0]
    if len(strangers) and (unknown == "error" or len(strangers) == system.n):
        first = strangers[0].item() if isinstance(strangers[0], np.generic) else strangers[0]
        hint = kind_hint(first, labels.items, what="items") or did_you_mean(first, labels.items[:1000].tolist())
        raise InvalidPredictions(
            f"predictions must be for items of the labels, got {len(strangers)} of {system.n} for others{_of(system)}: "
            f"{preview(strangers)}" + (hint or '; leave them out or pass unknown="ignore"')
        )
    return where


def _class_codes(system: System, labels: Labels, codes: Codes, unknown_class: Policy) -> Codes:
    """The position in ``labels.classes`` of each class of a system; the last entry serves code -1."""
    assert system.classes is not None
    position = {name: k for k, name in enumerate(labels.classes.tolist())}
    rank = np.array([position.get(name, NO_PREDICTION) for name in system.classes.tolist()] + [-1], dtype=np.int32)
    stranger = (rank[codes] < 0) & (codes >= 0)
    if stranger.any() and (unknown_class == "error" or bool((rank[codes] < 0).all())):
        names = system.classes[np.unique(codes[stranger])]
        raise _unknown_class(names, labels, f"{int(stranger.sum())} of {len(codes)} predictions{_of(system)}")
    return rank


def _unknown_class(names: Vocabulary, labels: Labels, who: str) -> InvalidPredictions:
    hint = kind_hint(names[0], labels.classes, what="classes") or (
        f"; the classes of the labels are {preview(labels.classes, most=10)}: rename them, read the votes with "
        'classes=[…], or pass unknown_class="ignore"'
    )
    return InvalidPredictions(
        f"predictions must be classes of the labels, got {who} for other classes: {preview(names)}{hint}"
    )


def _reordered(system: System, labels: Labels, rows: npt.NDArray[np.int64]) -> Floats:
    """Class probabilities in the order of ``labels.classes``; a class a system does not know has none."""
    assert system.probabilities is not None
    assert system.columns is not None
    position = {name: k for k, name in enumerate(labels.classes.tolist())}
    to = np.array([position.get(name, -1) for name in system.columns.tolist()])
    used = np.nanmax(system.probabilities, axis=0, initial=0.0) > 0
    strange = (to < 0) & used
    if strange.any():  # leaving mass out would leave rows that do not sum to one
        raise _unknown_class(system.columns[strange], labels, f"probabilities{_of(system)}")
    out = np.zeros((len(rows), labels.n_classes))
    out[:, to[to >= 0]] = system.probabilities[rows][:, to >= 0]
    out[np.isnan(system.probabilities[rows]).any(axis=1)] = np.nan
    return out


def _positive(system: System, labels: Labels) -> int | None:
    if system.positive is None:
        return 1 if labels.n_classes == 2 else None
    at = np.flatnonzero([name == system.positive for name in labels.classes.tolist()])
    if not len(at):
        raise _unknown_class(vocabulary_from([system.positive]), labels, f"positive={system.positive!r}")
    return int(at[0])


def _hard(
    system: System, labels: Labels, probabilities: Floats | None, scores: Floats | None, positive: int | None
) -> Codes | None:
    """Hard classes: the likeliest (the first of equals), or the positive one where a score reaches the threshold."""
    if probabilities is not None:
        none = np.isnan(probabilities[:, 0])
        best = np.argmax(np.where(none[:, None], 0.0, probabilities), axis=1).astype(np.int32)
        return np.where(none, np.int32(NO_PREDICTION), best)
    if scores is None or system.threshold is None:
        return None
    if labels.n_classes != 2 or positive is None:
        raise InvalidPredictions(
            f"scores and a threshold decide between two classes, got {labels.n_classes} classes{_of(system)}; "
            "use Predictions.from_probabilities or from_classes, or pass threshold=None for scores alone"
        )
    codes = np.where(scores >= system.threshold, positive, 1 - positive).astype(np.int32)
    codes[np.isnan(scores)] = NO_PREDICTION
    return codes
