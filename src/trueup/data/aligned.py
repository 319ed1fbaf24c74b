"""Predictions in the order of the items and classes of the votes, and what is asked of them there.

All names of a system are looked up, and refused, before any array is made; what follows is arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import check_choice, did_you_mean, kind_hint, preview
from trueup.data.encoding import Vocabulary, vocabulary_from
from trueup.data.systems import System
from trueup.data.votes import Votes
from trueup.exceptions import InvalidPredictions

Policy = Literal["error", "ignore"]
OutputKind = Literal["classes", "scores", "probabilities"]
NO_PREDICTION = np.int32(-1)


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
            instead, how = {
                "classes": ("scores only", "name a `threshold`, or predict classes"),
                "scores": ("classes only", "give scores (`Predictions.from_scores`) or class probabilities"),
                "probabilities": ("none", "give them (`Predictions.from_probabilities`)"),
            }[kind]
            what = "class probabilities" if kind == "probabilities" else kind
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
        whole = ("positive", "n_classes")
        tables = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in whole}
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
            return self._with_probabilities()
        return self._with_scores_of(positive) if kind == "scores" else self

    def _with_scores_of(self, positive: int) -> AlignedPredictions:
        """Scores of the positive class: turned around where they are of the other one, or its probability."""
        if self.probabilities is not None and (self.scores is None or self.positive != positive):
            return replace(self, scores=self.probabilities[:, :, positive].copy(), positive=positive)
        if self.scores is None or self.positive == positive:
            return self
        if self.n_classes == 2:
            return replace(self, scores=-self.scores, positive=positive)
        of_class = "no class in particular" if self.positive is None else "another class"
        raise InvalidPredictions(
            f"scores must speak for the positive class of more than two, got {self.n_classes} classes and scores of "
            f"{of_class}; pass `positive`, name it in Predictions.from_scores, or pass class probabilities"
        )

    def _with_probabilities(self) -> AlignedPredictions:
        """Scores of two classes that lie between 0 and 1 serve as probabilities where these are needed."""
        if self.probabilities is not None or self.n_classes != 2 or self.scores is None or self.positive is None:
            return self
        if ((self.scores < 0) | (self.scores > 1)).any():
            return self
        both = np.stack([1 - self.scores, self.scores], axis=2)
        return replace(self, probabilities=both if self.positive == 1 else both[:, :, ::-1])

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


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the names of one system are in the labels; -1 is nowhere."""

    rows: Positions  # the rows whose item the labels have
    items: Positions  # the position of the item of each of these rows
    classes: Codes  # the position of each class; one more entry serves the code -1
    columns: Codes  # the position of the class of each column of probabilities
    positive: int | None


def align_systems(
    systems: Sequence[System], labels: Votes, *, unknown: Policy, missing: Policy, unknown_class: Policy
) -> AlignedPredictions:
    """Align each system and stack them; a kind of prediction that a system lacks is None for all."""
    for value, name in ((unknown, "unknown"), (missing, "missing"), (unknown_class, "unknown_class")):
        check_choice(value, ("error", "ignore"), name=name)
    places = [_look_up(system, labels, unknown=unknown, unknown_class=unknown_class) for system in systems]
    parts = [_arrange(*pair, labels.n_items, labels.n_classes) for pair in zip(systems, places, strict=True)]
    for system, part in zip(systems, parts, strict=True):
        _check_missing(system, part, labels, missing)
    scored = all(part.scores is not None for part in parts)
    positives = {part.positive for part in parts} if scored else set()
    if len(positives) > 1:
        raise InvalidPredictions(
            f"the scores of all systems must speak for one class, got {preview([s.positive for s in systems])}; "
            "name the same `positive` for each"
        )
    return AlignedPredictions(
        systems=vocabulary_from([system.name for system in systems]),
        codes=_stacked([part.codes for part in parts]),
        scores=_stacked([part.scores for part in parts]),
        probabilities=_stacked([part.probabilities for part in parts]),
        positive=positives.pop() if positives else None,
        missing=np.array([int(part.lacks.sum()) for part in parts], dtype=np.int64),
        unknown_items=np.array([s.n - len(p.rows) for s, p in zip(systems, places, strict=True)], dtype=np.int64),
        unknown_classes=np.array([part.unknown_classes for part in parts], dtype=np.int64),
        n_classes=labels.n_classes,
    )


def _stacked(arrays: Sequence[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    present = [array for array in arrays if array is not None]
    return np.stack(present) if present and len(present) == len(arrays) else None


# ---------------------------------------------------------------------- names


def _look_up(system: System, labels: Votes, *, unknown: Policy, unknown_class: Policy) -> _Places:
    """The places of all names of a system; those that the labels lack are refused or, by the policies, left out."""
    where = np.arange(system.n) if system.items is None else labels.find_items(system.items)
    if system.items is None and system.n != labels.n_items:
        raise InvalidPredictions(
            f"predictions without item names must follow labels.items, got {system.n} for {labels.n_items} items"
            f"{_of(system)}; pass one for each, or name them with `items` or a mapping item -> class"
        )
    n_strange = int((where < 0).sum())
    if system.items is not None and n_strange and (unknown == "error" or n_strange == system.n):
        strangers = system.items[where < 0]
        raise _refusal(strangers, labels, "items", f"{n_strange} of {system.n}{_of(system)}")
    rows = np.flatnonzero(where >= 0)
    position = {name: k for k, name in enumerate(labels.classes.tolist())}
    classes, columns = (
        np.array([*(position.get(name, -1) for name in ([] if names is None else names.tolist())), -1], dtype=np.int32)
        for names in (system.classes, system.columns)
    )
    if system.codes is not None and system.classes is not None:
        codes = system.codes[rows]
        strange = (classes[codes] < 0) & (codes >= 0)
        if strange.any() and (unknown_class == "error" or bool((classes[codes] < 0).all())):
            names = system.classes[np.unique(codes[strange])]
            raise _refusal(names, labels, "classes", f"{int(strange.sum())} of {len(codes)} predictions{_of(system)}")
    if system.probabilities is not None and system.columns is not None:
        strange = (columns[:-1] < 0) & (np.nanmax(system.probabilities, axis=0, initial=0.0) > 0)
        if strange.any():  # leaving mass out would leave rows that do not sum to one
            raise _refusal(system.columns[strange], labels, "classes", f"probabilities{_of(system)}")
    if system.positive is not None and system.positive not in position:
        raise _refusal(vocabulary_from([system.positive]), labels, "classes", f"positive={system.positive!r}")
    second = 1 if labels.n_classes == 2 else None
    positive = second if system.positive is None else position[system.positive]
    return _Places(rows, where[rows], classes, columns[:-1], positive)


def _of(system: System) -> str:
    return "" if system.name == "model" else f" of system {system.name!r}"


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


# ---------------------------------------------------------------------- arrays


@dataclass(frozen=True, eq=False)
class _Arrays:
    """The outputs of one system in the order of the labels, and which items lack one."""

    codes: Codes | None
    scores: Floats | None
    probabilities: Floats | None
    positive: int | None
    lacks: Booleans
    unknown_classes: int


def _arrange(system: System, places: _Places, n_items: int, n_classes: int) -> _Arrays:
    rows, target = places.rows, places.items
    codes: Codes | None = None
    probabilities = scores = None
    unknown_classes = 0
    lacks = np.zeros(n_items, dtype=bool)
    if system.codes is not None:
        codes = np.full(n_items, NO_PREDICTION)
        codes[target] = places.classes[system.codes[rows]]
        unknown_classes = int((system.codes[rows] >= 0).sum() - (codes >= 0).sum())
        lacks |= codes < 0
    if system.probabilities is not None:
        probabilities = np.full((n_items, n_classes), np.nan)
        known = np.flatnonzero(places.columns >= 0)
        table = np.zeros((len(rows), n_classes))  # a class the system does not know has none
        table[:, places.columns[known]] = system.probabilities[np.ix_(rows, known)]
        table[np.isnan(system.probabilities[rows]).any(axis=1)] = np.nan
        probabilities[target] = table
        lacks |= np.isnan(probabilities[:, 0])
    if system.scores is not None:
        scores = np.full(n_items, np.nan)
        scores[target] = system.scores[rows]
        lacks |= np.isnan(scores)
    positive = places.positive
    if scores is None and probabilities is not None and n_classes == 2:
        scores, positive = probabilities[:, 1].copy(), 1
    if codes is None and probabilities is not None:
        codes = _likeliest(probabilities)
    elif codes is None and scores is not None and system.threshold is not None:
        codes = _above_threshold(scores, system.threshold, positive, n_classes, _of(system))
    return _Arrays(codes, scores, probabilities, None if scores is None else positive, lacks, unknown_classes)


def _likeliest(probabilities: Floats) -> Codes:
    """The likeliest class, the first of equals."""
    nothing = np.isnan(probabilities[:, 0])
    best = np.argmax(np.where(nothing[:, None], 0.0, probabilities), axis=1).astype(np.int32)
    return np.where(nothing, NO_PREDICTION, best)


def _above_threshold(scores: Floats, threshold: float, positive: int | None, n_classes: int, whose: str) -> Codes:
    """The positive class where a score reaches the threshold, and the other one elsewhere."""
    if n_classes != 2 or positive is None:
        raise InvalidPredictions(
            f"scores and a threshold decide between two classes, got {n_classes} classes{whose}; give "
            "classes or class probabilities (`Predictions.from_probabilities`), or pass `threshold=None` for "
            "scores alone"
        )
    codes = np.where(scores >= threshold, positive, 1 - positive).astype(np.int32)
    return np.where(np.isnan(scores), NO_PREDICTION, codes)


def _check_missing(system: System, part: _Arrays, labels: Votes, missing: Policy) -> None:
    n_lacking = int(part.lacks.sum())
    if n_lacking == labels.n_items or (n_lacking and missing == "error"):
        raise InvalidPredictions(
            f"every item needs a prediction, got none for {n_lacking} of {labels.n_items} items"
            f"{_of(system)}: {preview(labels.items[part.lacks])}; "
            'predict them, leave these items out with labels.select, or pass `missing="ignore"` to what takes it'
        )
