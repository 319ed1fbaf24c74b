"""Votes: who said what about which item.

`Labels` is the one data structure of trueup. The votes are one sparse matrix, items × (labeler·answer), built once
when the data come in; noise models see only that matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup import _assemble
from trueup._encoding import Codes, Vocabulary
from trueup._frames import column_blocks, make_frame
from trueup._validation import check_choice, did_you_mean, preview
from trueup.exceptions import DataWarning, InvalidLabels

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
            item=column_blocks(frame, item, role="item"),
            labeler=column_blocks(frame, labeler, role="labeler"),
            label=column_blocks(frame, label, role="label"),
            missing=missing,
            abstain=abstain,
        )
        return cls._assembled(columns, classes=classes, abstain_policy=abstain_policy, duplicates=duplicates)

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
        return cls._assembled(
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
        return cls(**_assemble.from_counts(counts, classes=classes, items=items, labeler=labeler))

    @classmethod
    def _assembled(cls, columns: _assemble.Columns, *, duplicates: _assemble.Duplicates, **options: Any) -> Labels:
        labels = cls(**_assemble.assemble(columns, duplicates=duplicates, **options))
        repeated = labels.n_votes - labels.n_pairs
        if repeated and duplicates == "keep":
            warnings.warn(
                f"{repeated} of {labels.n_votes} votes repeat a labeler's vote on an item and are kept as repeated "
                'votes; pass duplicates="first", "last" or "error" to treat them otherwise',
                DataWarning,
                stacklevel=3,
            )
        silent = int((labels.votes_per_item == 0).sum())
        if silent:
            warnings.warn(
                f"{silent} of {labels.n_items} items have no votes; they are kept, and only the prior speaks of them",
                DataWarning,
                stacklevel=3,
            )
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
        answer_of_column = np.tile(np.arange(self.n_answers), self.n_labelers)
        pick = sparse.csr_array(
            (np.ones(len(answer_of_column)), answer_of_column, np.arange(len(answer_of_column) + 1)),
            shape=(len(answer_of_column), self.n_answers),
        )
        return np.asarray((self.votes @ pick).toarray())

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
        def some(n: int, what: str) -> str:
            return f"{n:,} {what}{'' if n == 1 else 'es' if what.endswith('s') else 's'}"

        parts = [
            some(self.n_items, "item"),
            some(self.n_labelers, "labeler"),
            some(self.n_classes, "class"),
            some(self.n_votes, "vote"),
        ]
        if self.abstentions.sum():
            parts.append(some(int(self.abstentions.sum()), "abstention") + f" ({self.abstain_policy})")
        if self.n_missing:
            parts.append(f"{self.n_missing:,} missing")
        for codes, what in ((self.gold_codes, "gold"), (self.held_codes, "held-out gold")):
            if (codes >= 0).any():
                parts.append(f"{int((codes >= 0).sum()):,} {what}")
        return f"Labels({', '.join(parts)})"

    def item_codes(self, names: Iterable[Hashable]) -> npt.NDArray[np.int64]:
        """The positions of items in `items`; an unknown one is an error."""
        return self._positions(names, self._item_position, "item")

    @cached_property
    def _item_position(self) -> dict[Hashable, int]:
        return {name: i for i, name in enumerate(self.items.tolist())}

    def _positions(
        self, names: Iterable[Hashable], position: Mapping[Hashable, int], what: str
    ) -> npt.NDArray[np.int64]:
        wanted = names.tolist() if isinstance(names, np.ndarray) else list(names)
        try:
            return np.array([position[name] for name in wanted], dtype=np.int64)
        except KeyError:
            unknown = [name for name in wanted if name not in position]
            raise InvalidLabels(
                f"{len(unknown)} of {len(wanted)} {what}s are not in the labels, got {preview(unknown)}"
                f"{did_you_mean(unknown[0], list(position)[:1000]) or f'; see labels.{what}s'}"
            ) from None

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
        position = {name: i for i, name in enumerate(self.classes.tolist())}
        where = self._positions(truths.keys(), self._item_position, "item")
        unknown = [value for value in truths.values() if value not in position]
        if unknown:
            raise InvalidLabels(
                f"gold names a class that no vote and no classes= names, got {preview(unknown)}; "
                f"the classes are {preview(self.classes, most=10)}"
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
        votes, kept_items, kept_labelers = self.votes, np.arange(self.n_items), np.arange(self.n_labelers)
        if items is not None:
            kept_items = np.unique(self.item_codes(items))
            votes = votes[kept_items]
        if labelers is not None:
            position = {name: i for i, name in enumerate(self.labelers.tolist())}
            kept_labelers = np.unique(self._positions(labelers, position, "labeler"))
            columns = (kept_labelers[:, None] * self.n_answers + np.arange(self.n_answers)).ravel()
            votes = sparse.csr_array(votes[:, columns])
        return replace(
            self,
            items=self.items[kept_items],
            labelers=self.labelers[kept_labelers],
            votes=votes,
            gold_codes=self.gold_codes[kept_items],
            held_codes=self.held_codes[kept_items],
            abstentions=self.abstentions[kept_labelers],
        )

    def without_labeler(self, *names: Hashable) -> Labels:
        """These labels without the votes of some labelers."""
        position = {name: i for i, name in enumerate(self.labelers.tolist())}
        gone = set(self._positions(names, position, "labeler").tolist())
        return self.select(labelers=[name for i, name in enumerate(self.labelers.tolist()) if i not in gone])

    def merge(self, other: Labels) -> Labels:
        """All votes of both; items, labelers and classes of the same name are the same.

        Gold of `other` wins where both have it for an item.
        """
        return Labels(**_assemble.merge(self, other))

    # ------------------------------------------------------------------ out

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The votes as a long table (item, labeler, label), one row a vote.

        `backend` is "pandas", "polars" or "pyarrow"; by default the first that is installed.
        """
        item, labeler, answer, count = (np.repeat(x, self.vote_table()[3]) for x in self.vote_table())
        del count
        return make_frame(
            {"item": self.items[item], "labeler": self.labelers[labeler], "label": self.answers[answer]},
            backend=backend,
        )

    def summary(self) -> dict[str, Any]:
        """Counts that say what was found: sizes, spread of votes, missing, abstentions, gold."""
        per_item, per_labeler = self.votes_per_item, self.votes_per_labeler
        return {
            "items": self.n_items,
            "labelers": self.n_labelers,
            "classes": self.classes.tolist(),
            "votes": self.n_votes,
            "votes_per_item": {
                "min": int(per_item.min()),
                "mean": float(per_item.mean()),
                "max": int(per_item.max()),
            },
            "votes_per_labeler": {
                "min": int(per_labeler.min()),
                "median": float(np.median(per_labeler)),
                "max": int(per_labeler.max()),
            },
            "items_without_votes": int((per_item == 0).sum()),
            "repeated_votes": self.n_votes - self.n_pairs,
            "missing": self.n_missing,
            "abstentions": int(self.abstentions.sum()),
            "abstain_policy": self.abstain_policy,
            "gold": int((self.gold_codes >= 0).sum()),
            "held_gold": int((self.held_codes >= 0).sum()),
        }
