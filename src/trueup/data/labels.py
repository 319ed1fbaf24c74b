"""Votes: who said what about which item.

`Labels` is the one data structure of trueup. The votes are one sparse matrix, items × (labeler·answer), built once
when the data come in; noise models see only that matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.validation import check_choice, kind_hint, preview
from trueup.data import building as _assemble
from trueup.data import describing as _describe
from trueup.data import merging as _merge
from trueup.data.encoding import Encoder
from trueup.data.frames import column_blocks, make_frame
from trueup.data.predictions import Predictions
from trueup.data.votes import NO_GOLD, AbstainPolicy, Duplicates, Votes
from trueup.exceptions import DataWarning, InvalidLabels

__all__ = ["Labels"]

GoldRole = Literal["fit", "check"]


@dataclass(frozen=True, eq=False, repr=False)
class Labels(Votes):
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
    gold_codes, held_codes : int array of shape (n_items,)
        Vetted truths, used by fits or kept aside to check them, as positions in `classes`; -1 for none.
    n_missing : int
        Rows declared missing and left out.
    abstentions : array of shape (n_labelers,)
        Declared abstentions of each labeler, whether ignored or kept as an answer.
    abstain_policy : {"ignore", "answer"}
        What was done with abstentions.
    unanswered : scipy.sparse.csr_array of shape (n_items, n_labelers * 2), optional
        Where the rows declared missing (even columns) and the abstentions (odd columns) were; None if there are none.
    """

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
        abstain_policy: AbstainPolicy = "ignore",
        duplicates: Duplicates = "keep",
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
        abstain_policy: AbstainPolicy = "ignore",
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
    def _from_columns(cls, columns: _assemble.Columns, *, duplicates: Duplicates, **options: Any) -> Labels:
        labels = cls(**_assemble.assemble(columns, duplicates=duplicates, **options))
        _describe.warn(labels, repeated=duplicates == "keep", stacklevel=4)
        return labels

    def __repr__(self) -> str:
        return _describe.one_line(self)

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
                f"gold names a class that no vote and no ⟨classes⟩ names, got {preview(unknown)}"
                + (
                    kind_hint(unknown[0], self.classes, what="classes")
                    or f"; the classes are {preview(self.classes, most=10)}: pass ⟨classes=[…]⟩ when reading the votes"
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
            kept_labelers = np.unique(self.labeler_codes(labelers))
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
        return self.select(labelers=np.delete(self.labelers, self.labeler_codes(names)))

    def as_systems(self, *, min_votes: int = 1) -> Predictions:
        """The labelers as systems, for `trueup.compare`; those with fewer votes are left out."""
        return Predictions.from_labelers(self, min_votes=min_votes)

    def merge(self, other: Labels, *, duplicates: Duplicates = "keep") -> Labels:
        """All votes of both; items, labelers and classes of the same name are the same.

        Where a labeler voted on an item in both, the votes are repeated votes (with a warning that says on how many)
        or, by `duplicates`, an error, or only those of the "first" (these) or the "last" (`other`). Gold of `other`
        wins where both have it for an item.
        """
        fields_of_both, common = _merge.merge(self, other, duplicates=duplicates)
        if common and duplicates == "keep":
            warnings.warn(
                f"{common} pairs of a labeler and an item have votes in both labels and are kept as repeated votes; "
                'choose ⟨duplicates="first"⟩, ⟨duplicates="last"⟩ or ⟨duplicates="error"⟩ to treat them otherwise',
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
