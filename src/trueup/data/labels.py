"""Votes: who said what about which item.

The one data structure of trueup: a sparse matrix, items × (labeler·answer), built once when the data come in.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from trueup._base.validation import check_choice, kind_hint, preview
from trueup.data import building as _assemble
from trueup.data import describing as _describe
from trueup.data import gold as _gold
from trueup.data.binning import binned
from trueup.data.datasets import CROWD, is_matrix, read_dataset
from trueup.data.encoding import is_null
from trueup.data.frames import FrameTable, class_order, make_frame
from trueup.data.gold import Drawn, GoldRole
from trueup.data.items import item_names_of, with_columns
from trueup.data.predictions import Predictions
from trueup.data.scanning import scan_labels
from trueup.data.votes import NO_GOLD, AbstainPolicy, Duplicates, Votes, merge, nothing_vetted, with_classes
from trueup.exceptions import DataWarning, InvalidLabels


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
    gold_chance : float array of shape (n_items,)
        The chance with which a vetted item was drawn (its inclusion probability); NaN where it was chosen or not
        vetted.
    n_missing : int
        Rows declared missing and left out.
    abstentions : array of shape (n_labelers,)
        Declared abstentions of each labeler, whether ignored or kept as an answer.
    abstain_policy : {"ignore", "answer"}
        What was done with abstentions.
    unanswered : scipy.sparse.csr_array of shape (n_items, n_labelers * 2), optional
        Where the rows declared missing (even columns) and the abstentions (odd columns) were; None if there are none.
    fixed_classes : bool
        Whether the classes were named by the user, so that no others can come in with gold.
    item_table : ItemTable
        What is known of the items besides their votes; see `with_items`.
    crowds : frozenset
        The labelers that each stand for many anonymous ones (`from_counts`): their votes on an item are of different
        people, where those of any other labeler are one person's, who wavers.
    remarks : tuple of str
        What was said when they were read: what was left out, mapped or guessed, with how often. `notes` begins with it.
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
        run: str | None = None,
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
        run : str, optional
            The column that tells several verdicts of one labeler on one item apart (epochs, temperatures). They are one
            witness who wavers, named or not; with a run they come without a warning, and `duplicates` is about rows of
            one run.
        classes : sequence, optional
            The classes in the order wanted; a vote for another class is then an error. Default: the categories of an
            ordered categorical or an enumeration in their order, or all that occur, sorted.
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
        if classes is None:
            classes = _assemble.scale_of(class_order(frame, label), missing, abstain)
        columns = _assemble.read_votes(
            FrameTable(frame),
            item=item,
            labeler=labeler,
            label=label,
            run=run,
            missing=missing,
            abstain=abstain,
            classes=classes,
        )
        return cls._from_columns(columns, classes=classes, abstain_policy=abstain_policy, duplicates=duplicates)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        missing: Any = -1,
        abstain: Any = (),
        abstain_policy: AbstainPolicy = "ignore",
        classes: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        labelers: Sequence[Hashable] | None = None,
    ) -> Labels:
        """Votes from an array or wide frame, items × labelers, where `missing` marks that a labeler did not vote.

        The columns of a frame name the labelers, and its index the items; otherwise they are numbered from 0 unless
        named. A class may not be what marks an absent vote: where -1 is a class, pass another `missing`.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_matrix([[0, 1, -1], [1, 1, 1]]).n_votes
        5
        """
        if classes is None:
            classes = _assemble.scale_of(class_order(matrix), missing, abstain)
        return cls._from_columns(
            _assemble.melt_matrix(matrix, missing=missing, abstain=abstain, items=items, labelers=labelers),
            classes=classes,
            abstain_policy=abstain_policy,
            duplicates="keep",
            count_missing=False,
        )

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        *,
        item: str | None = None,
        labeler: str | None = "labeler",
        label: str = "label",
        classes: Sequence[Hashable] | None = None,
        missing: Any = None,
        abstain: Any = (),
        abstain_policy: AbstainPolicy = "ignore",
        duplicates: Duplicates = "keep",
        labelers: Sequence[Hashable] | None = None,
    ) -> Labels:
        """Votes from the rows of a Hugging Face data set, or from a matrix of Snorkel's labeling functions.

        Parameters
        ----------
        dataset : Dataset of Hugging Face, frame, dict of columns, sequence of dicts, or array of shape (n, m)
            A row holds one vote, or a list of votes and one of who gave them. Numbers that have names in the features
            get their names. An array is items × labeling functions.
        item, labeler, label : str or None
            The columns, or with a dot a member of the objects in one (``"annotations.label"``). Without an item, rows
            are numbered from 0. None for the labeler: nobody knows who voted, and the votes are of a crowd.
        classes, missing, abstain, abstain_policy, duplicates
            As in `from_frame`. Of a matrix -1 is an abstention: a labeling function that passes says something.
        labelers : sequence, optional
            The names of the labeling functions of a matrix.

        Examples
        --------
        >>> import trueup as tu
        >>> rows = [{"votes": ["a", "b"], "who": ["x", "y"]}, {"votes": ["b"], "who": ["y"]}]
        >>> tu.Labels.from_dataset(rows, label="votes", labeler="who")
        Labels(2 items, 2 labelers, 2 classes, 3 votes)
        """
        if is_matrix(dataset):
            several = list(abstain) if isinstance(abstain, list | tuple) else [abstain]
            return cls.from_matrix(
                dataset,
                missing=missing,
                abstain=[-1, *several],
                abstain_policy=abstain_policy,
                classes=classes,
                labelers=labelers,
            )
        if labelers is not None:
            raise InvalidLabels(
                "⟨labelers⟩ names the columns of a matrix, got rows; they name their labelers themselves"
            )
        votes = read_dataset(dataset, item=item, labeler=labeler, label=label)
        classes = votes.classes if classes is None else classes
        columns = _assemble.read_votes(
            FrameTable(votes.columns),
            item="item",
            labeler="labeler",
            label="label",
            missing=missing,
            abstain=abstain,
            classes=classes,
        )
        return cls._from_columns(
            columns,
            classes=classes,
            abstain_policy=abstain_policy,
            duplicates="keep" if votes.is_anonymous else duplicates,
            crowds=frozenset([CROWD] if votes.is_anonymous else []),
        )

    scan = classmethod(scan_labels)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        classes: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        labeler: Hashable = "crowd",
    ) -> Labels:
        """Votes of an anonymous crowd: an array or frame, items × classes, of how many said what.

        The columns of a frame name the classes, and its index the items. The crowd is one pooled labeler whose votes
        share one confusion matrix; each vote is of somebody else.

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
    def _from_columns(
        cls,
        columns: _assemble.Columns,
        *,
        duplicates: Duplicates,
        crowds: frozenset[Hashable] = frozenset(),
        **options: Any,
    ) -> Labels:
        labels = cls(**_assemble.assemble(columns, duplicates=duplicates, **options), crowds=crowds)
        _describe.warn(labels, repeated=duplicates == "keep" and columns.run is None, stacklevel=4)
        return labels

    def __repr__(self) -> str:
        return _describe.one_line(self)

    # ------------------------------------------------------------------ other labels from these

    def with_gold(
        self,
        truths: Mapping[Any, Any],
        *,
        drawn: Drawn | None = None,
        role: GoldRole = "fit",
        correct: bool = False,
    ) -> Labels:
        """These labels with vetted truths added.

        Parameters
        ----------
        truths : mapping from item to class
            A class that nobody voted for becomes one of the classes, unless these were named with ``classes=``; every
            vote on such an item is then an error of whoever gave it, and `notes` says so. A name that is a class but
            for case, blanks or one typing error is refused.
        drawn : {"chosen", "random"} or mapping from item to probability, optional
            How the items came to be vetted; kept for each item in `gold_chance`. "chosen": by someone, or for a reason;
            their truth says nothing sure of other items. "random": by a simple random sample of all items of these
            labels. A mapping has the chance of each item to be drawn, above 0 and at most 1, for samples that are not
            simple (one of its values may also be one of the words). By default what the file of `trueup.read_gold`
            says, else "chosen".

            Calls add up. Items drawn at random by several calls are one simple random sample, and the chance of each
            is their number over that of all items. A chance told later replaces an earlier one; an item that was drawn
            and is told again as chosen stays drawn.
        role : {"fit", "check"}
            Use them when fitting (their truth is then fixed), or keep them aside to check a fit. An item has one role,
            the last it was given.
        correct : bool
            Allow truths that differ from those told before.

        Examples
        --------
        >>> import trueup as tu
        >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0], [1, 0]])
        >>> labels.with_gold({0: 1}, drawn="random").with_gold({2: 0}, drawn="random").drawn_gold
        {0: 0.5, 2: 0.5}
        """
        check_choice(role, ("fit", "check"), name="role")
        if not isinstance(truths, Mapping):
            raise InvalidLabels(f"gold must map items to classes, got {type(truths).__name__}; pass {{item: class}}")
        where = self.item_codes(truths.keys())
        names = [None if is_null(value) else value for value in truths.values()]
        _gold.check_names(self, names)
        if not correct:
            _gold.check_contradictions(
                self.gold | self.held_gold, truths, remedy="keep one, or pass ⟨correct=True⟩ if the later one is right"
            )
        design = drawn if drawn is not None else getattr(truths, "drawn", "chosen")
        chances, at_random = _gold.chances_told(design, list(truths))
        known = set(self.classes.tolist())
        new = [name for name in dict.fromkeys(names) if name not in known]
        labels = with_classes(self, new) if new else self
        position = {name: i for i, name in enumerate(labels.classes.tolist())}
        gold, held = labels.gold_codes.copy(), labels.held_codes.copy()
        target, other = (gold, held) if role == "fit" else (held, gold)
        gold_chance = _gold.chances_after(labels, target, where, chances, at_random)
        target[where] = [position[name] for name in names]
        other[where] = NO_GOLD
        return replace(labels, gold_codes=gold, held_codes=held, gold_chance=gold_chance)

    def with_items(
        self,
        frame: Any,
        *,
        item: str = "item",
        columns: str | Iterable[str] | None = None,
        unknown: Literal["error", "ignore"] = "error",
    ) -> Labels:
        """These labels with columns that describe the items: system, prompt, topic, text, time, weight.

        They travel with the labels through `select`, `merge` and `with_gold`; `item_column` gives one. Further calls
        add columns, and values for items that had none.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, or a dict of columns
            A row for each item. Rows that repeat an item must agree; a null says nothing.
        item : str
            The column that names the item.
        columns : str or sequence of str, optional
            The columns to take; by default all but that of the item.
        unknown : {"error", "ignore"}
            A row for an item that is not in the labels: an error, or left out.

        Examples
        --------
        >>> import trueup as tu
        >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1]])
        >>> labels.with_items({"item": [0, 1], "topic": ["law", "sport"]}).item_column("topic").tolist()
        ['law', 'sport']
        """
        check_choice(unknown, ("error", "ignore"), name="unknown")
        named = item_names_of(frame, item)
        where = self.find_items(named)
        if (where < 0).all() or (unknown == "error" and (where < 0).any()):
            strangers = [name for name, at in zip(named, where, strict=True) if at < 0]
            hint = kind_hint(strangers[0], self.items, what="items")
            raise InvalidLabels(
                f"the item table must be of items of the labels, got {len(strangers)} of {len(named)} rows of others: "
                f"{preview(strangers)}" + (hint or '; leave them out or pass ⟨unknown="ignore"⟩')
            )
        items = self.items.tolist()
        return replace(self, item_table=with_columns(self.item_table, frame, where, items, item=item, columns=columns))

    def without_gold(self) -> Labels:
        """These labels without any vetted truth."""
        return replace(self, **nothing_vetted(self.n_items))

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
            gold_chance=self.gold_chance[kept_items],
            item_table=self.item_table if items is None else self.item_table.take(kept_items),
            **counts,
        )

    def without_labeler(self, *names: Hashable) -> Labels:
        """These labels without the votes of some labelers."""
        return self.select(labelers=np.delete(self.labelers, self.labeler_codes(names)))

    def binned(self, n_bins: int = 10, *, low: float | None = None, high: float | None = None) -> Labels:
        """Numbers as classes put into bins of equal width, by default of all there are, each named by its middle."""
        return binned(self, n_bins, low, high)

    def as_systems(self, *, min_votes: int = 1) -> Predictions:
        """The labelers as systems, for `trueup.compare`; those with fewer votes are left out."""
        return Predictions.from_labelers(self, min_votes=min_votes)

    def merge(self, other: Labels, *, duplicates: Duplicates = "keep") -> Labels:
        """All votes of both; items, labelers and classes of the same name are the same.

        Where a labeler voted on an item in both, the votes are repeated votes (with a warning that says on how many)
        or, by `duplicates`, an error, or only those of the "first" (these) or the "last" (`other`). Where both have
        gold for an item it must agree, and has the role it has in `other`; what was drawn keeps the chance it had.
        """
        _gold.check_contradictions(
            self.gold | self.held_gold,
            other.gold | other.held_gold,
            remedy="correct one with ⟨labels.with_gold⟩(…, correct=True), or leave it out with labels.without_gold()",
        )
        union, common = merge(self, other, duplicates=duplicates)
        if common and duplicates == "keep":
            warnings.warn(
                f"{common} pairs of a labeler and an item have votes in both labels and are kept as repeated votes; "
                'choose ⟨duplicates="first"⟩, ⟨duplicates="last"⟩ or ⟨duplicates="error"⟩ to treat them otherwise',
                DataWarning,
                stacklevel=2,
            )
        return union

    # ------------------------------------------------------------------ out

    @property
    def gold_only_classes(self) -> list[Any]:
        """The classes that gold names and nobody voted for."""
        return _describe.gold_only_classes(self)

    def to_frame(self, *, backend: str | None = None, with_items: bool = True, with_text: bool = False) -> Any:
        """The votes as a long table (item, labeler, label), one row a vote, with the columns of the items if any.

        Items without votes, gold and what was left out are not in it.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first that is installed.
        with_items, with_text : bool
            Whether to add the columns of the items, and those of long text too.
        """
        item, labeler, answer, times = self.vote_table()
        item, labeler, answer = (np.repeat(codes, times) for codes in (item, labeler, answer))
        columns = {"item": self.items[item], "labeler": self.labelers[labeler], "label": self.answers[answer]}
        for name, values in self.item_table.columns.items() if with_items else ():
            if with_text or name not in self.text_columns:
                columns[name] = values[item]
        return make_frame(columns, backend=backend)

    def summary(self) -> dict[str, Any]:
        """Counts that say what was found: sizes, spread of votes, missing, abstentions, gold."""
        return _describe.summary(self)

    def notes(self) -> list[str]:
        """One sentence for each oddity: items without votes, labelers with one vote, what is repeated or left out."""
        return _describe.notes(self)
