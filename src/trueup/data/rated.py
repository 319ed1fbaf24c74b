"""A scan with systems under test: their classes come from columns of the files, or by name.

Systems are beside the votes of a block: none of them is a labeler.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes
from trueup._base.validation import preview
from trueup.data.encoding import is_null
from trueup.data.partitions import Facts, PartitionReader, VoteBlock, facts_of, item_keys
from trueup.data.scanning import LabelScan
from trueup.data.votes import Votes
from trueup.exceptions import InvalidPredictions

_V = TypeVar("_V", bound=Votes)
SystemSource = str | Mapping[Hashable, Hashable]  # a column of the files, or classes by item
Outputs = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class RatedReader(PartitionReader[_V]):
    """Reads files with what systems say of their items."""

    systems: tuple[SystemSource, ...] = ()
    may_miss: bool = False  # whether items may be without a prediction
    vetted: Mapping[Hashable, Hashable] = field(default_factory=dict, repr=False)

    def read_rated(self, path: str) -> tuple[_V, Outputs]:
        """The votes of a file, and what all systems say."""
        columns = dict.fromkeys(system for system in self.systems if isinstance(system, str))
        labels, cells = self.read_beside(path, list(columns))
        names = labels.items.tolist()
        said = [cells[one] if isinstance(one, str) else [one.get(name) for name in names] for one in self.systems]
        return labels, np.stack([self._codes(one, labels, path) for one in said], axis=1).astype(np.int16)

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
                f"(first: {labels.items[missing[:1]].tolist()[0]!r}); predict them too, or pass `missing='ignore'`"
            )
        return codes

    def encode(self, path: str) -> tuple[VoteBlock, Facts]:
        """The votes of a file as bare arrays that know their items by number."""
        labels, outputs = self.read_rated(path)
        vetted = self.class_codes(labels.items.tolist(), self.vetted).astype(np.int16)
        block = replace(VoteBlock.of(labels), keys=item_keys(labels.items), outputs=outputs, vetted=vetted)
        return block, facts_of(labels)


def rated_scan(scan: LabelScan[_V], systems: Sequence[SystemSource], *, may_miss: bool) -> LabelScan[_V]:
    """The scan with what systems say of its items."""
    fields = {name: getattr(scan.reader, name) for name in PartitionReader.__dataclass_fields__}
    told = {item: name for item, name in scan.gold.items() if item not in scan.reader.drawn}
    vetted = {item: name for item, name in scan.gold.items() if item in scan.reader.drawn}
    reader = RatedReader(**(fields | {"gold": told}), systems=tuple(systems), may_miss=may_miss, vetted=vetted)
    return LabelScan(scan.files, reader, scan.regroup)


def with_common_outputs(scan: LabelScan[_V]) -> LabelScan[_V]:
    """A rated scan in which all systems are silent on items that one of them is silent on."""
    return scan.mapped(_common_outputs)


def _common_outputs(block: VoteBlock) -> VoteBlock:
    outputs = np.asarray(block.outputs)
    return replace(block, outputs=np.where((outputs >= 0).all(axis=1, keepdims=True), outputs, np.int16(-1)))
