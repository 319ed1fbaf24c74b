"""The labels that are most likely wrong, from votes alone: in memory, in files, or on a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_integer, seed_of
from trueup.cleaning.flips import true_class_probabilities
from trueup.cleaning.problem import consolidated_labels
from trueup.data.encoding import Vocabulary, vocabulary_from
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.exceptions import InvalidLabels, silenced_warnings
from trueup.noise import NoiseModel, fit, resolve
from trueup.noise.passes import partitions_over


@dataclass(frozen=True, eq=False)
class LikelyWrong:
    """Labels from the likeliest wrong to the least likely.

    Attributes
    ----------
    items : array of shape (n,)
    labels : array of shape (n,)
        The consolidated label of each.
    chances : array of shape (n,)
        The probability that it is wrong.
    """

    items: Vocabulary = field(repr=False)
    labels: Vocabulary = field(repr=False)
    chances: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.items.tolist())

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row an item: item, label, chance."""
        return make_frame({"item": self.items, "label": self.labels, "chance": self.chances}, backend=backend)

    def __repr__(self) -> str:
        shown = zip(self.items.tolist()[:10], self.labels.tolist(), self.chances.tolist(), strict=False)
        lines = [f"LikelyWrong of {len(self):,} labels"]
        lines += [f"  {item!r}: {label!r} is wrong with probability {chance:.3f}" for item, label, chance in shown]
        return "\n".join(lines)


def likely_wrong(
    labels: Labels | LabelScan[Labels],
    *,
    noise: str | NoiseModel = "dawid-skene",
    most: int = 1000,
    random_state: RandomState = 0,
    engine: str | None = None,
) -> LikelyWrong:
    """The consolidated labels that are most likely wrong, whatever they mean for a model.

    The scores are those of the strategy "noise-rate" of `CleaningAdvisor`, 1 − P(truth = label | label, who voted), and
    need no features: a first list for an oracle where there are more votes than memory holds.

    Parameters
    ----------
    labels : Labels or LabelScan
        Gold items are right and are left out, and so are items without votes.
    noise : str or NoiseModel
        With a confusion matrix for each labeler, known or fitted.
    most : int
        Labels that are told; of equal ones those whose items come first.
    random_state : int, Generator or None
        For matrices of labels that can only be drawn.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        What works it out, "torch" for votes in memory, "dask" for votes that are scanned; see `trueup.engines`.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.Labels.from_matrix([[0, 0, 0], [0, 0, 1], [1, -1, -1]])
    >>> worst = tu.cleaning.likely_wrong(labels, noise=tu.noise.Confusion([[0.8, 0.2], [0.3, 0.7]]), most=2)
    >>> list(worst), worst.chances.round(3).tolist()
    ([2, 0], [0.222, 0.194])
    """
    if not isinstance(labels, Labels | LabelScan):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="cleaning.likely_wrong")
    check_integer(most, name="most", low=1)
    seed, model = seed_of(random_state), resolve(noise)
    with using_engine(engine), silenced_warnings():
        fitted = model if model.is_known else fit(labels, model)
        if isinstance(labels, Labels):
            return worst_of(labels, fitted, most, seed)
        join = partial(_joined, most=most)
        return partitions_over(labels, join, worst_of, fitted, most, seed)  # type: ignore[no-any-return]


def worst_of(labels: Labels, model: NoiseModel, most: int, seed: int) -> LikelyWrong:
    """The labels of some items that are most likely wrong."""
    known = consolidated_labels(labels, model, seed)
    at = np.flatnonzero((known.codes >= 0) & (labels.gold_codes < 0))
    codes = known.codes[at]
    own = true_class_probabilities(codes, known.matrices[known.group[at]], known.prior)[np.arange(len(at)), codes]
    return _sorted(LikelyWrong(labels.items[at], labels.classes[codes], 1 - own), most)


def _joined(one: LikelyWrong, other: LikelyWrong, *, most: int) -> LikelyWrong:
    items, labels = (
        vocabulary_from([*getattr(one, name).tolist(), *getattr(other, name).tolist()]) for name in ("items", "labels")
    )
    return _sorted(LikelyWrong(items, labels, np.concatenate([one.chances, other.chances])), most)


def _sorted(labels: LikelyWrong, most: int) -> LikelyWrong:
    """The likeliest first, equal ones by their items, whatever the order they came in."""
    chances = labels.chances.round(12)
    if len(chances) > most:
        kept = np.flatnonzero(chances >= np.partition(chances, -most)[-most])
    else:
        kept = np.arange(len(chances))
    names = labels.items.tolist()
    order = np.array(sorted(kept.tolist(), key=lambda k: (-chances[k], names[k]))[:most], dtype=np.int64)
    return LikelyWrong(labels.items[order], labels.labels[order], labels.chances[order])
