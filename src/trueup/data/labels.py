"""Votes: who said what about which item.

`Labels` is the one data structure of trueup. The votes are one sparse matrix, items × (labeler·answer), built once
when the data come in; noise models see only that matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Codes
from trueup._base.validation import check_choice, kind_hint, preview
from trueup.data import building as _assemble
from trueup.data import describing as _describe
from trueup.data import merging as _merge
from trueup.data.encoding import Encoder, Vocabulary, positions
from trueup.data.frames import column_blocks, make_frame
from trueup.exceptions import DataWarning, InvalidLabels

if TYPE_CHECKING:
    from trueup.data.predictions import Predictions


__all__ = ["Labels"]

GoldRole = Literal["fit", "check"]
NO_GOLD = -1


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """The votes of labelers on items, with what is known of the truth.

    Make one with `from_frame`, `from_matrix`, `from_counts` or `trueup.read_labels`, not by hand. Instances are not
    changed; methods return new ones.

    Attributes
    ----------
    items, labelers, classes : array
        The names. Sorted, unless an order was given. Arrays of predictions follow the order of `items`.
    answers : array
        What a labeler can say: the classes and, if abstentions count as an answer, each abstention after them.
    votes : scipy.sparse.csr_array of shape (n_items, n_labelers * n_answers)
        How often a labeler gave an answer to an item; column ``labeler * n_answers + answer``.
    n_missing : int
        Rows declared missing and left out.
    abstentions : array of shape (n_labelers,)
        Declared abstentions of each labeler, whether ignored or kept as an answer.
    unanswered : scipy.sparse.csr_array of shape (n_items, n_labelers * 2), optional
        Where the rows declared missing (even columns) and the abstentions (odd columns) were; None if there are none.
    """

    items: Vocabulary
    labelers: Vocabulary
    classes: Vocabulary
    answers: Vocabulary
    votes: sparse.csr_array
    gold_codes: Codes = field(repr=False)
    held_codes: Codes = field(repr=False)
    n_missing: int
    abstentions: npt.NDArray[np.int64]
    abstain_policy: _assemble.AbstainPolicy
    unanswered: sparse.csr_array | None = field(default=None, repr=False)

    # ------------------------------------------------------------------ in

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str = "item",
        labeler: str = "labeler",
        label: str = "label",
        classes: Sequence[Hashable] | None = None,
        missing: Any = (),
        abstain: Any = (),
        abstain_policy: _assemble.AbstainPolicy = "ignore",
        duplicates: _assemble.Duplicates = "keep",
    ) -> Labels:
        """Votes from a long table, one row a vote.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, or a dict of columns
        item, labeler, label : str
            The names of the columns.
        classes : sequence, optional
            The classes in the order wanted; a vote for another class is then an error. Default: all that occur.
        missing : value or list of values
            Values of the label column that mean "no vote". They are left out and counted in `n_missing`. An empty
            value (None, NaN) that is not declared so is an error: pass ``missing=None``.
        abstain : value or list of values
            Values that mean "the labeler looked and did not decide" (an unparseable verdict, "not sure").
        abstain_policy : {"ignore", "answer"}
            Leave abstentions out, or keep each as an answer that is no class and may tell something of the truth.
            Either way `abstentions` counts them.
        duplicates : {"keep", "error", "first", "last"}
            Several votes of one labeler on one item: repeated votes (with a warning that says how many), an error,
            or only the first or last in the order of rows.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_frame({"item": [1, 1, 2], "labeler": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]})
        Labels(2 items, 2 labelers, 2 classes, 3 votes)
        """
        columns = _assemble.encode_columns(
            item=Encoder.of(column_blocks(frame, item, role="item"), "item"),
            labeler=Encoder.of(column_blocks(frame, labeler, role="labeler"), "labeler"),
            label=Encoder.of(column_blocks(frame, label, role="label"), "label"),
            missing=missing,
            abstain=abstain,
        )
        return cls._from_columns(columns, classes=classes, abstain_policy=abstain_policy, duplicates=duplicates)

    @classmethod
    def from_matrix(
        cls,
        matrix: npt.ArrayLike,
        *,
        missing: Any = -1,
        abstain: Any = (),
        abstain_policy: _assemble.AbstainPolicy = "ignore",
        classes: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        labelers: Sequence[Hashable] | None = None,
    ) -> Labels:
        """Votes from an array, items × labelers, where `missing` marks that a labeler did not vote.

        Items and labelers are numbered from 0 unless named.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_matrix([[0, 1, -1], [1, 1, 1]]).n_votes
        5
        """
        return cls._from_columns(
            _assemble.melt_matrix(matrix, missing=missing, abstain=abstain, items=items, labelers=labelers),
            classes=classes,
            abstain_policy=abstain_policy,
            duplicates="keep",
            count_missing=False,
        )

    @classmethod
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        *,
        classes: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        labeler: Hashable = "crowd",
    ) -> Labels:
        """Votes of an anonymous crowd: an array, items × classes, of how many said what.

        The crowd is one pooled labeler whose repeated votes share one confusion matrix.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_counts([[3, 1], [0, 2]], classes=["cat", "dog"])
        Labels(2 items, 1 labeler, 2 classes, 6 votes)
        """
        labels = cls(**_assemble.from_counts(counts, classes=classes, items=items, labeler=labeler))
        _describe.warn(labels, repeated=False, stacklevel=3)
        return labels

    @classmethod
    def _from_columns(cls, columns: _assemble.Columns, *, duplicates: _assemble.Duplicates, **options: Any) -> Labels:
        labels = cls(**_assemble.assemble(columns, duplicates=duplicates, **options))
        _describe.warn(labels, repeated=duplicates == "keep", stacklevel=4)
        return labels

    # ------------------------------------------------------------------ what is there

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_labelers(self) -> int:
        """Number of labelers."""
        return len(self.labelers)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_answers(self) -> int:
        """Number of answers a labeler can give: the classes and the abstentions kept as answers."""
        return len(self.answers)

    @cached_property
    def n_votes(self) -> int:
        """Number of votes, repeated ones counted each time."""
        return int(self.votes.data.sum())

    @cached_property
    def n_pairs(self) -> int:
        """Number of (item, labeler) pairs with a vote; less than `n_votes` where votes are repeated."""
        return _assemble.count_pairs(self.votes, self.n_answers)

    @cached_property
    def votes_per_item(self) -> npt.NDArray[np.int64]:
        """Number of votes on each item."""
        return np.asarray(self.votes.sum(axis=1), dtype=np.int64)

    @cached_property
    def votes_per_labeler(self) -> npt.NDArray[np.int64]:
        """Number of votes of each labeler."""
        per_column = np.asarray(self.votes.sum(axis=0), dtype=np.int64)
        return np.asarray(per_column.reshape(self.n_labelers, self.n_answers).sum(axis=1))

    @cached_property
    def answer_counts(self) -> npt.NDArray[np.float64]:
        """How often each item got each answer, whoever gave it; shape (n_items, n_answers)."""
        answer = self.votes.indices % self.n_answers
        shape = (self.n_items, self.n_answers)
        return np.asarray(sparse.csr_array((self.votes.data, answer, self.votes.indptr), shape=shape).toarray())

    def vote_table(self) -> tuple[Codes, Codes, Codes, npt.NDArray[np.int64]]:
        """The votes as codes: item, labeler, answer and how often, in the order of items."""
        item = np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.votes.indptr))
        labeler, answer = np.divmod(self.votes.indices, self.n_answers)
        return item, labeler.astype(np.int32), answer.astype(np.int32), self.votes.data.astype(np.int64)

    @property
    def gold(self) -> dict[Hashable, Hashable]:
        """Vetted truths that fitting uses, as a mapping from item to class."""
        return self._named(self.gold_codes)

    @property
    def held_gold(self) -> dict[Hashable, Hashable]:
        """Vetted truths that are kept aside to check a fit."""
        return self._named(self.held_codes)

    def _named(self, codes: Codes) -> dict[Hashable, Hashable]:
        known = np.flatnonzero(codes >= 0)
        return dict(zip(self.items[known].tolist(), self.classes[codes[known]].tolist(), strict=True))

    def __repr__(self) -> str:
        return _describe.one_line(self)

    def __getstate__(self) -> dict[str, Any]:
        names = {f.name for f in fields(self)}  # what is cached can be made again
        return {name: value for name, value in self.__dict__.items() if name in names}

    def item_codes(self, names: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """The positions of items in `items`; an unknown one is an error."""
        return np.array(positions(names, self.items, self._item_position, "item"), dtype=np.int64)

    def find_items(self, names: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """The positions of items in `items`, and -1 for an unknown one."""
        wanted = names.tolist() if isinstance(names, np.ndarray) else list(names)
        return np.fromiter((self._item_position.get(name, -1) for name in wanted), np.int64, len(wanted))

    def _labeler_codes(self, names: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        position = {name: i for i, name in enumerate(self.labelers.tolist())}
        return np.array(positions(names, self.labelers, position, "labeler"), dtype=np.int64)

    @cached_property
    def _item_position(self) -> dict[Hashable, int]:
        return {name: i for i, name in enumerate(self.items.tolist())}

    # ------------------------------------------------------------------ other labels from these

    def with_gold(self, truths: Mapping[Any, Any], *, role: GoldRole = "fit") -> Labels:
        """These labels with vetted truths added.

        Parameters
        ----------
        truths : mapping from item to class
        role : {"fit", "check"}
            Use them when fitting (their truth is then fixed), or keep them aside to check a fit.
        """
        check_choice(role, ("fit", "check"), name="role")
        if not isinstance(truths, Mapping):
            raise InvalidLabels(f"gold must map items to classes, got {type(truths).__name__}; pass {{item: class}}")
        position = {name: i for i, name in enumerate(self.classes.tolist())}
        where = self.item_codes(truths.keys())
        unknown = [v for v in truths.values() if not isinstance(v, Hashable) or v not in position]
        if unknown:
            raise InvalidLabels(
                f"gold names a class that no vote and no classes= names, got {preview(unknown)}"
                + (
                    kind_hint(unknown[0], self.classes, what="classes")
                    or f"; the classes are {preview(self.classes, most=10)}: pass classes=[…] when reading the votes"
                )
            )
        codes = np.array([position[value] for value in truths.values()], dtype=np.int32)
        gold, held = self.gold_codes.copy(), self.held_codes.copy()
        target, other = (gold, held) if role == "fit" else (held, gold)
        target[where] = codes
        other[where] = NO_GOLD  # an item has one role, the last it was given
        return replace(self, gold_codes=gold, held_codes=held)

    def without_gold(self) -> Labels:
        """These labels without any vetted truth."""
        nothing = np.full(self.n_items, NO_GOLD, dtype=np.int32)
        return replace(self, gold_codes=nothing, held_codes=nothing.copy())

    def select(self, *, items: Iterable[Hashable] | None = None, labelers: Iterable[Hashable] | None = None) -> Labels:
        """The votes on some items, of some labelers; the order and the classes stay as they are.

        An item whose votes all go stays as an item without votes.
        """
        kept_items, kept_labelers = np.arange(self.n_items), np.arange(self.n_labelers)
        if items is not None:
            kept_items = np.unique(self.item_codes(items))
        if labelers is not None:
            kept_labelers = np.unique(self._labeler_codes(labelers))
        for kept, what in ((kept_items, "item"), (kept_labelers, "labeler")):
            if not len(kept):
                raise InvalidLabels(f"a selection must keep at least one {what}, got none; name some of labels.{what}s")

        def part(votes: sparse.csr_array, width: int) -> sparse.csr_array:
            votes = votes if items is None else votes[kept_items]
            columns = (kept_labelers[:, None] * width + np.arange(width)).ravel()
            return votes if labelers is None else sparse.csr_array(votes[:, columns])

        counts: dict[str, Any] = {"abstentions": self.abstentions[kept_labelers]}
        if self.unanswered is not None:
            unanswered = part(self.unanswered, 2)
            per_labeler = np.asarray(unanswered.sum(axis=0), dtype=np.int64).reshape(-1, 2)
            counts = {
                "unanswered": unanswered,
                "n_missing": int(per_labeler[:, 0].sum()),
                "abstentions": per_labeler[:, 1],
            }
        return replace(
            self,
            items=self.items[kept_items],
            labelers=self.labelers[kept_labelers],
            votes=part(self.votes, self.n_answers),
            gold_codes=self.gold_codes[kept_items],
            held_codes=self.held_codes[kept_items],
            **counts,
        )

    def without_labeler(self, *names: Hashable) -> Labels:
        """These labels without the votes of some labelers."""
        return self.select(labelers=np.delete(self.labelers, self._labeler_codes(names)))

    def as_systems(self, *, min_votes: int = 1) -> Predictions:
        """The labelers as systems, for `trueup.compare`; those with fewer votes are left out."""
        from trueup.data.predictions import Predictions

        return Predictions.from_labelers(self, min_votes=min_votes)

    def merge(self, other: Labels, *, duplicates: _assemble.Duplicates = "keep") -> Labels:
        """All votes of both; items, labelers and classes of the same name are the same.

        Where a labeler voted on an item in both, the votes are repeated votes (with a warning that says on how many)
        or, by `duplicates`, an error, or only those of the "first" (these) or the "last" (`other`). Gold of `other`
        wins where both have it for an item.
        """
        fields_of_both, common = _merge.merge(self, other, duplicates=duplicates)
        if common and duplicates == "keep":
            warnings.warn(
                f"{common} pairs of a labeler and an item have votes in both labels and are kept as repeated votes; "
                'pass duplicates="first", "last" or "error" to treat them otherwise',
                DataWarning,
                stacklevel=2,
            )
        return Labels(**fields_of_both)

    # ------------------------------------------------------------------ out

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The votes as a long table (item, labeler, label), one row a vote.

        Items without votes, gold and what was left out are not in it. `backend` is "pandas", "polars" or "pyarrow";
        by default the first that is installed.
        """
        item, labeler, answer, times = self.vote_table()
        item, labeler, answer = (np.repeat(codes, times) for codes in (item, labeler, answer))
        return make_frame(
            {"item": self.items[item], "labeler": self.labelers[labeler], "label": self.answers[answer]},
            backend=backend,
        )

    def summary(self) -> dict[str, Any]:
        """Counts that say what was found: sizes, spread of votes, missing, abstentions, gold."""
        return _describe.summary(self)

    def notes(self) -> list[str]:
        """One sentence for each oddity: items without votes, labelers with one vote, what is repeated or left out."""
        return _describe.notes(self)
