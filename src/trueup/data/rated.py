"""A scan with a system under test as one more labeler: its classes come from a column of the files, or by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from trueup._base.types import Codes
from trueup._base.validation import preview
from trueup.data.encoding import Vocabulary, is_null, vocabulary_from
from trueup.data.partitions import Facts, PartitionReader, VoteBlock, facts_of, item_keys
from trueup.data.scanning import LabelScan
from trueup.data.votes import Votes, new_name, with_rater
from trueup.exceptions import InvalidPredictions

_V = TypeVar("_V", bound=Votes)


@dataclass(frozen=True, eq=False)
class RatedReader(PartitionReader[_V]):
    """Reads files with what a system says of their items.

    Attributes
    ----------
    column : str, optional
        The column of the files that holds the class it names.
    by_item : mapping from item to class
        The classes themselves, where there is no column.
    may_miss : bool
        Whether items may be without.
    """

    column: str | None = None
    by_item: Mapping[Hashable, Hashable] = field(default_factory=dict, repr=False)
    may_miss: bool = False

    @property
    def all_labelers(self) -> Vocabulary:
        """The labelers, and the system after them."""
        return vocabulary_from([*self.labelers.tolist(), new_name(self.labelers)])

    def read(self, path: str) -> _V:
        """The votes of a file, with those of the system."""
        labels, cells = self.read_beside(path, self.column)
        said = cells if self.column is not None else [self.by_item.get(name) for name in labels.items.tolist()]
        return with_rater(labels, self._codes(said, labels, path))

    def _codes(self, said: list[Any], labels: _V, path: str) -> Codes:
        position: dict[Any, int] = {name: k for k, name in enumerate(self.classes.tolist())}
        position |= {str(name): k for name, k in position.items() if isinstance(said[0], str)}
        codes = np.array([-1 if is_null(one) or one == "" else position.get(one, -2) for one in said], dtype=np.int32)
        strange = np.flatnonzero(codes == -2)
        if len(strange):
            raise InvalidPredictions(
                f"in {path!r}, predictions must be among the classes {preview(self.classes, most=6)}, got "
                f"{preview([said[k] for k in strange[:3]])} for {len(strange):,} items; correct them"
            )
        missing = np.flatnonzero(codes < 0)
        if len(missing) and not self.may_miss:
            raise InvalidPredictions(
                f"in {path!r}, every item must have a prediction, got none for {len(missing):,} of {len(codes):,} "
                f"(first: {labels.items[missing[:1]].tolist()[0]!r}); predict them too, or pass ⟨missing='ignore'⟩"
            )
        return codes

    def encode(self, path: str) -> tuple[VoteBlock, Facts]:
        """The votes of a file as bare arrays that know their items by number."""
        labels = self.read(path)
        return replace(VoteBlock.of(labels), keys=item_keys(labels.items)), facts_of(labels)


def rated_scan(scan: LabelScan[_V], predictions: str | Mapping[Any, Any], *, may_miss: bool) -> LabelScan[_V]:
    """The scan with a system as its last labeler.

    Parameters
    ----------
    scan : LabelScan
    predictions : str or mapping
        The column of the files that holds the classes, or a mapping from item to class.
    may_miss : bool
        Whether items may be without a prediction.
    """
    fields = {name: getattr(scan.reader, name) for name in PartitionReader.__dataclass_fields__}
    column = predictions if isinstance(predictions, str) else None
    by_item: Mapping[Any, Any] = {} if isinstance(predictions, str) else predictions
    reader = RatedReader(**fields, column=column, by_item=by_item, may_miss=may_miss)
    return LabelScan(scan.files, reader, scan.regroup)


def codes_of_system(block: VoteBlock, n_answers: int) -> Codes:
    """What the last labeler says of each item of a block, -1 for nothing."""
    first = block.n_columns - n_answers
    at = np.flatnonzero(block.indices >= first)
    item = np.searchsorted(block.indptr, at, side="right") - 1
    codes = np.full(block.n_items, -1, dtype=np.int32)
    codes[item] = block.indices[at] - first
    return codes
