"""A scan with systems under test: their classes come from columns of the files, or by name.

Systems are beside the votes of a block, and those that help to read them are more labelers, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes
from trueup._base.validation import preview
from trueup.data.encoding import Vocabulary, is_null, vocabulary_from
from trueup.data.partitions import Facts, PartitionReader, VoteBlock, facts_of, item_keys
from trueup.data.scanning import LabelScan
from trueup.data.votes import Votes, new_name, votes_with_raters, with_rater
from trueup.exceptions import InvalidPredictions

_V = TypeVar("_V", bound=Votes)
SystemSource = str | Mapping[Hashable, Hashable]  # a column of the files, or classes by item
Outputs = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class RatedReader(PartitionReader[_V]):
    """Reads files with what systems say of their items.

    Attributes
    ----------
    systems : tuple of str or mapping
        Of each, the column of the files that holds the class it names, or the classes by item.
    raters : tuple of int
        The places of the systems that are labelers, too.
    may_miss : bool
        Whether items may be without a prediction.
    vetted : mapping from item to class
        Items that were drawn at random, which fits are not told.
    """

    systems: tuple[SystemSource, ...] = ()
    raters: tuple[int, ...] = ()
    may_miss: bool = False
    vetted: Mapping[Hashable, Hashable] = field(default_factory=dict, repr=False)

    @property
    def all_labelers(self) -> Vocabulary:
        """The labelers, and the systems that are some after them."""
        names = self.labelers
        for _ in self.raters:
            names = vocabulary_from([*names.tolist(), new_name(names)])
        return names

    def read(self, path: str) -> _V:
        """The votes of a file, with those of the systems that are labelers."""
        labels, outputs = self.read_rated(path)
        for place in self.raters:
            labels = with_rater(labels, outputs[:, place].astype(np.int32))
        return labels

    def read_rated(self, path: str) -> tuple[_V, Outputs]:
        """The votes of a file without any system, and what all systems say."""
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
                f"(first: {labels.items[missing[:1]].tolist()[0]!r}); predict them too, or pass ⟨missing='ignore'⟩"
            )
        return codes

    def encode(self, path: str) -> tuple[VoteBlock, Facts]:
        """The votes of a file as bare arrays that know their items by number."""
        labels, outputs = self.read_rated(path)
        vetted = self.class_codes(labels.items.tolist(), self.vetted).astype(np.int16)
        block = replace(VoteBlock.of(labels), keys=item_keys(labels.items), outputs=outputs, vetted=vetted)
        n_of_raters = int((outputs[:, list(self.raters)] >= 0).sum())
        rated = with_raters(block, self.raters, n_own=block.n_columns, n_answers=labels.n_answers)
        return rated, replace(facts_of(labels), n_of_raters=n_of_raters)


def with_raters(
    block: VoteBlock, raters: Sequence[int], *, n_own: int, n_answers: int, only_common: bool = False
) -> VoteBlock:
    """A block in which these systems are labelers, too, and no others.

    Parameters
    ----------
    n_own : int
        Columns of the labelers themselves.
    only_common : bool
        Whether systems are silent on items that one of them is silent on.
    """
    outputs = np.asarray(block.outputs)
    if only_common:
        outputs = np.where((outputs >= 0).all(axis=1, keepdims=True), outputs, np.int16(-1))
    votes = votes_with_raters(block.matrix[:, :n_own], outputs[:, list(raters)].T, n_answers)
    return VoteBlock.of_matrix(votes, block.gold, keys=block.keys, outputs=outputs, vetted=block.vetted)


def rated_scan(scan: LabelScan[_V], systems: Sequence[SystemSource], *, may_miss: bool) -> LabelScan[_V]:
    """The scan with systems, which are labelers, too.

    Parameters
    ----------
    scan : LabelScan
    systems : sequence of str or mapping
        Of each, the column of the files that holds its classes, or a mapping from item to class.
    may_miss : bool
        Whether items may be without a prediction.
    """
    fields = {name: getattr(scan.reader, name) for name in PartitionReader.__dataclass_fields__}
    told = {item: name for item, name in scan.gold.items() if item not in scan.reader.drawn}
    vetted = {item: name for item, name in scan.gold.items() if item in scan.reader.drawn}
    raters = tuple(range(len(systems)))
    reader = RatedReader(
        **(fields | {"gold": told}), systems=tuple(systems), raters=raters, may_miss=may_miss, vetted=vetted
    )
    return LabelScan(scan.files, reader, scan.regroup)


def with_chosen_raters(
    scan: LabelScan[_V], raters: Sequence[int], *, only_common: bool, n_of_raters: int
) -> LabelScan[_V]:
    """A rated scan in which these systems alone are labelers, who then have so many votes; see `with_raters`."""
    reader = scan.reader
    assert isinstance(reader, RatedReader)
    n_own = len(reader.labelers) * scan.n_answers
    change = partial(with_raters, raters=tuple(raters), n_own=n_own, n_answers=scan.n_answers, only_common=only_common)
    return scan.mapped(replace(reader, raters=tuple(raters)), change, n_of_raters=n_of_raters)
