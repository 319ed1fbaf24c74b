"""Votes: who said what about which item."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from trueup._base.types import Positions
from trueup._base.validation import check_choice, check_integer, check_number, kind_hint, numbers_of, preview
from trueup.data import building as _assemble
from trueup.data import describing as _describe
from trueup.data import gold as _gold
from trueup.data.encoding import Vocabulary, is_null, vocabulary_from
from trueup.data.frames import (
    FrameTable,
    Table,
    check_column,
    class_order,
    column_names,
    is_frame,
    make_frame,
    series_parts,
)
from trueup.data.gold import Drawn, GoldRole
from trueup.data.items import ItemTable, read_rows, with_columns
from trueup.data.predictions import Predictions
from trueup.data.scanning import scan_labels
from trueup.data.votes import (
    NO_GOLD,
    AbstainPolicy,
    Duplicates,
    Votes,
    merge,
    nothing_vetted,
    recoded,
    vote_columns,
    with_classes,
)
from trueup.exceptions import DataWarning, InvalidLabels, InvalidParameter

if TYPE_CHECKING:
    from trueup.reliability.agreement import Agreement

# ------------------ Votes in data sets made for training: rows as those of Hugging Face, and matrices of labeling

CROWD = "crowd"  # the labeler of anonymous votes
_UNLABELED = -1  # of classes that are numbers with names


def read_dataset(
    dataset: Any, *, item: str | None, labeler: str | None, label: str
) -> tuple[dict[str, list[Any]], list[Hashable] | None]:
    """The votes in the rows of a data set as columns, and the names of its classes in their order, None without any."""
    labels, names = _column(dataset, label, "label"), class_names(dataset, label)
    items = list(range(len(labels))) if item is None else _column(dataset, item, "item")
    people = [CROWD] * len(labels) if labeler is None else _column(dataset, labeler, "labeler")
    columns: dict[str, list[Any]] = {"item": [], "labeler": [], "label": []}
    for row, (name, answer, labeler_of_row) in enumerate(zip(items, labels, people, strict=True)):
        votes = list(answer) if _is_list(answer) else [answer]
        labelers = list(labeler_of_row) if _is_list(labeler_of_row) else [labeler_of_row] * len(votes)
        if len(labelers) != len(votes):
            raise InvalidLabels(
                f"a row must name a labeler for each of its votes, got {len(labelers)} for {len(votes)} votes in "
                f"`row {row}`; check `labeler` and `label`"
            )
        columns["item"] += [name] * len(votes)
        columns["labeler"] += labelers
        for vote in votes:
            if not (is_null(vote) or names is None or isinstance(vote, str)):
                if vote != _UNLABELED and not 0 <= int(vote) < len(names):
                    raise InvalidLabels(
                        f"a label must be one of the classes {preview(names)}, got {vote!r}; correct it"
                    )
                vote = None if vote == _UNLABELED else names[int(vote)]
            columns["label"].append(vote)
    return columns, names


def class_names(dataset: Any, column: str) -> list[Hashable] | None:
    """The names of the classes of a column, from the features of the data set; None where it has none."""
    feature: Any = getattr(dataset, "features", None)
    for part in column.split("."):
        feature = feature[0] if isinstance(feature, list) and len(feature) == 1 else feature
        members = feature if isinstance(feature, Mapping) else getattr(feature, "feature", None)
        feature = members.get(part) if isinstance(members, Mapping) else None
    for _ in range(3):  # a list of classes has them one level below
        if feature is None or hasattr(feature, "names"):
            break
        feature = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    names = getattr(feature, "names", None)
    return list(names) if names is not None else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _column(dataset: Any, name: str, role: str) -> list[Any]:
    """A column of a data set, or a member of the objects in one."""
    is_rows = isinstance(dataset, Sequence) and all(isinstance(row, Mapping) for row in dataset)
    if is_rows:
        columns = list(dict.fromkeys(key for row in dataset for key in row))
    elif isinstance(getattr(dataset, "column_names", None), list):
        columns = dataset.column_names
    elif is_frame(dataset) or isinstance(dataset, Mapping):
        columns = column_names(dataset)
    else:
        got = type(dataset).__name__
        raise InvalidLabels(f"a data set must have rows with named columns, got {got}; pass one split")
    outer, dot, inner = (name, "", "") if name in columns else name.partition(".")
    check_column(outer, columns, role=role)
    parts = None if is_rows else series_parts(dataset[outer])
    values = [row.get(outer) for row in dataset] if is_rows else list(dataset[outer]) if parts is None else parts[0]
    return [_member(value, inner, name) for value in values] if dot else values


def _member(value: Any, name: str, column: str) -> Any:
    """A member of an object, or of each object of a list; a list of objects may also be an object of lists."""
    if value is None:
        return []
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if _is_list(value) and all(isinstance(part, Mapping) for part in value):
        return [part.get(name) for part in value]
    got = preview(list(value)) if isinstance(value, Mapping) else type(value).__name__
    raise InvalidLabels(f"column {column!r} must hold objects with {name!r}, got {got}; name the column")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Labels(Votes):
    """The votes of labelers on items, with gold.

    Make one with `from_frame`, `from_matrix`, `from_counts` or `trueup.read_labels`, not by hand. Instances are not
    changed; methods return new ones.

    Attributes
    ----------
    items, labelers, classes : array. The names, sorted unless an order was given. Predictions follow `items`.
    answers : array. The classes and, if abstentions count as an answer, each abstention after them.
    votes : scipy.sparse.csr_array of shape (n_items, n_labelers * n_answers)
        How often a labeler gave an answer to an item; column ``labeler * n_answers + answer``.
    gold_codes, held_codes : int array of shape (n_items,)
        Vetted truths, used by fits or kept aside to check them, as positions in `classes`; -1 for none.
    gold_chance : float array of shape (n_items,)
        The inclusion probability of a vetted item; NaN where it was chosen or not vetted.
    n_missing : int. Rows declared missing and left out.
    abstentions : array of shape (n_labelers,). Declared abstentions of each labeler, ignored or kept as an answer.
    abstain_policy : {"ignore", "answer"}. What was done with abstentions.
    unanswered : scipy.sparse.csr_array of shape (n_items, n_labelers * 2), optional
        Where the rows declared missing (even columns) and the abstentions (odd columns) were; None if there are none.
    fixed_classes : bool. Whether the user named the classes, so that no others can come in with gold.
    item_table, labeler_table : ItemTable. The columns of items and labelers; see `with_items` and `with_labelers`.
    crowds : frozenset
        The labelers that each stand for many anonymous ones (`from_counts`): their votes on an item are of different
        people, where those of any other labeler are one person's, who wavers.
    reading_notes : tuple of str. Notes about the file: what was left out, mapped or guessed; `notes` begins with them.
    """

    def __init__(self, table: Any = None, /, **fields: Any) -> None:
        """The votes of a frame or a dict of columns, as by `from_frame`; or what `replace` makes, from all fields."""
        if table is not None:
            made = self.from_frame(table, **fields)
            fields = {part.name: getattr(made, part.name) for part in dataclass_fields(made)}
        super().__init__(**fields)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str | Sequence[str] = "item",
        labeler: str = "labeler",
        label: str = "label",
        run: str | None = None,
        wide: bool | None = None,
        classes: Sequence[Hashable] | None = None,
        missing: Any = (),
        abstain: Any = (),
        abstain_policy: AbstainPolicy = "ignore",
        duplicates: Duplicates = "keep",
    ) -> Labels:
        """Votes from a long table, one row a vote, or a wide one, a row an item and a column a labeler.

        Other columns that have one value for each item, such as system or prompt, become item columns.

        Parameters
        ----------
        item, labeler, label : str
            The names of the columns. Several columns may name an item together: ``["prompt", "system"]``, or
            ``"prompt,system"``; its name is then a tuple, and they become item columns.
        run : str, optional
            The column of the run (epoch, temperature) where a labeler gives several verdicts on an item. They are one
            witness who wavers; they come without a warning, and `duplicates` is about rows of one run.
        wide : bool, optional
            Whether each labeler has a column, named by it, where an empty cell is no vote. Columns of other values than
            the others, or than `classes`, become item columns. By default a table that has items and no columns of
            labelers and labels is wide if two columns and more hold the same values; `reading_notes` says so.
        classes : sequence, optional
            The classes in the order wanted; a vote for another class is then an error. Default: the categories of an
            ordered categorical or an enumeration in their order, or all that occur, sorted.
        missing : value or list of values
            Values of the label column that mean "no vote"; they are left out and counted in `n_missing`. An empty value
            (None, NaN) that is not declared so is an error: pass ``missing=None``.
        abstain : value or list of values
            Values that mean "the labeler looked and did not decide" (an unparseable verdict, "not sure").
        abstain_policy : {"ignore", "answer"}
            Leave abstentions out, or keep each as an answer that is no class and may tell something of the truth.
        duplicates : {"keep", "error", "first", "last"}
            Several votes of one labeler on one item: repeated votes (with a warning that says how many), an error,
            or only the first or last in the order of rows.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_frame({"item": [1, 1, 2], "labeler": ["ann", "bob", "ann"], "label": ["cat", "dog", "dog"]})
        Labels(2 items, 2 labelers, 2 classes, 3 votes)
        """
        how = _assemble.VoteFormat(
            item, labeler, label, run, wide, classes, missing, abstain, abstain_policy, duplicates
        )
        return cls._from_table(FrameTable(frame), how)

    @classmethod
    def _from_table(cls, table: Table, how: _assemble.VoteFormat) -> Labels:
        """Votes from an open table, a frame or a file."""
        if isinstance(table, FrameTable):
            how = how.ordered_by(table.class_order(how.label))
        return cls._from_columns(_assemble.read_votes(table, how), how)

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
        how = _assemble.VoteFormat(
            classes=classes, missing=missing, abstain=abstain, abstain_policy=abstain_policy
        ).ordered_by(class_order(matrix))
        return cls._from_columns(_assemble.melt_matrix(matrix, how, items=items, labelers=labelers), how)

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
        labelers : sequence, optional. The names of the labeling functions of a matrix.

        Examples
        --------
        >>> import trueup as tu
        >>> rows = [{"votes": ["a", "b"], "who": ["x", "y"]}, {"votes": ["b"], "who": ["y"]}]
        >>> tu.Labels.from_dataset(rows, label="votes", labeler="who")
        Labels(2 items, 2 labelers, 2 classes, 3 votes)
        """
        if isinstance(dataset, np.ndarray) and dataset.ndim == 2:
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
            raise InvalidLabels("`labelers` names the columns of a matrix, got rows; leave it out")
        votes, names = read_dataset(dataset, item=item, labeler=labeler, label=label)
        how = _assemble.VoteFormat(
            classes=names if classes is None else classes,
            missing=missing,
            abstain=abstain,
            abstain_policy=abstain_policy,
            duplicates="keep" if labeler is None else duplicates,
        )
        columns = _assemble.read_votes(FrameTable(votes), how)
        return cls._from_columns(replace(columns, crowds=frozenset([CROWD] if labeler is None else [])), how)

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

        The columns of a frame name the classes, and its index the items. The crowd is one pooled labeler.

        Examples
        --------
        >>> import trueup as tu
        >>> tu.Labels.from_counts([[3, 1], [0, 2]], classes=["cat", "dog"])
        Labels(2 items, 1 labeler, 2 classes, 6 votes)
        """
        labels = cls(**_assemble.from_counts(counts, classes=classes, items=items, labeler=labeler))
        _describe.warn(labels, repeated=False)
        return labels

    @classmethod
    def _from_columns(cls, columns: _assemble.Columns, how: _assemble.VoteFormat) -> Labels:
        labels = cls(**_assemble.assemble(columns, how))
        _describe.warn(labels, repeated=how.duplicates == "keep" and columns.run is None)
        return labels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refused: scikit-learn's searches would split a single object."""
        raise InvalidLabels(
            "Labels cannot be made an array, got them where scikit-learn or numpy needs one; for cross-validation "
            "and searches pass `y=np.arange(labels.n_items)` with NoisyLabelClassifier(…, labels=labels), "
            "scoring=trueup.scorer(metric, labels) and a splitter as `cv`"
        )

    def __repr__(self) -> str:
        return _describe.one_line(self)

    def _repr_html_(self) -> str:
        return _describe.as_html(self)

    def with_gold(
        self,
        truths: Any,
        *,
        item: str | Sequence[str] = "item",
        label: str = "label",
        drawn: Drawn | None = None,
        role: GoldRole = "fit",
        correct: bool = False,
    ) -> Labels:
        """These labels with vetted truths added.

        Parameters
        ----------
        truths : mapping from item to class, or a frame or dict of columns as `trueup.read_gold` takes
            A row of a frame without a label is not vetted. A class that nobody voted for becomes one of the classes,
            unless these were named with ``classes=``; every vote on such an item is then an error of whoever gave it.
            A name that is a class but for case, blanks or one typing error is refused.
        item, label : str. The columns of a frame.
        drawn : {"chosen", "random"} or mapping from item to probability, optional
            How the items came to be vetted. "chosen": by someone, or for a reason; their truth says nothing sure of
            other items. "random": by a simple random sample of all items of these labels. A mapping has the chance of
            each item to be drawn, above 0 and at most 1 (or one of the words). By default what the file of
            `trueup.read_gold` says, else "chosen".

            Calls add up. Items drawn at random by several calls are one simple random sample, and the chance of each
            is their number over that of all items. A later chance replaces an earlier one; an item that was drawn stays
            drawn when it is given again as chosen.
        role : {"fit", "check"}
            Fix their truth in fits, or keep them aside to check a fit. An item has the last role it was given.
        correct : bool. Allow truths that differ from those given before.

        Examples
        --------
        >>> import trueup as tu
        >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0], [1, 0]])
        >>> labels.with_gold({0: 1}, drawn="random").with_gold({2: 0}, drawn="random").drawn_gold
        {0: 0.5, 2: 0.5}
        """
        check_choice(role, ("fit", "check"), name="role")
        if is_frame(truths) or (isinstance(truths, Mapping) and not isinstance(truths.get(label), Hashable)):
            word = drawn if isinstance(drawn, str) else None
            truths = _gold.gold_from(FrameTable(truths), item, label, drawn=word, missing=None, labels=self)
        if not isinstance(truths, Mapping):
            raise InvalidLabels(f"gold must map items to classes, got {type(truths).__name__}; pass {{item: class}}")
        where = self.item_codes(truths.keys())
        names = [None if is_null(value) else value for value in truths.values()]
        _gold.check_names(self, names)
        if not correct:
            _gold.check_contradictions(
                self.gold | self.held_gold, truths, remedy="keep one, or pass `correct=True` if the later one is right"
            )
        design = drawn if drawn is not None else getattr(truths, "drawn", "chosen")
        chances, at_random = _gold.given_inclusion_probabilities(design, list(truths))
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
        item: str | Sequence[str] = "item",
        columns: str | Iterable[str] | None = None,
        unknown: Literal["error", "ignore"] = "error",
    ) -> Labels:
        """These labels with columns that describe the items: system, prompt, topic, text, time, weight.

        They stay with the labels through `select`, `merge` and `with_gold`; `item_column` gives one. Further calls add
        columns, and values for items that had none.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, or a dict of columns
            A row for each item. Rows that repeat an item must agree; a null says nothing.
        item : str. The column that names the item.
        columns : str or sequence of str, optional. The columns to take; by default all but that of the item.
        unknown : {"error", "ignore"}. A row for an item that is not in the labels: an error, or left out.

        Examples
        --------
        >>> import trueup as tu
        >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1]])
        >>> labels.with_items({"item": [0, 1], "topic": ["law", "sport"]}).item_column("topic").tolist()
        ['law', 'sport']
        """
        about = self._described(self.item_table, self.items, frame, item, columns, unknown, of="item")
        return replace(self, item_table=about)

    def with_labelers(
        self,
        frame: Any,
        *,
        labeler: str = "labeler",
        columns: str | Iterable[str] | None = None,
        unknown: Literal["error", "ignore"] = "error",
    ) -> Labels:
        """These labels with columns that describe the labelers, such as kind and model; `labeler_column` gives one.

        The parameters are those of `with_items`.

        Examples
        --------
        >>> import trueup as tu
        >>> labels = tu.Labels.from_matrix([[0, 1], [1, 1]], labelers=["gpt", "ann"])
        >>> labels.with_labelers({"labeler": ["ann", "gpt"], "kind": ["human", "llm"]}).labeler_column("kind").tolist()
        ['llm', 'human']
        """
        about = self._described(self.labeler_table, self.labelers, frame, labeler, columns, unknown, of="labeler")
        return replace(self, labeler_table=about)

    @staticmethod
    def _described(
        before: ItemTable,
        names: Vocabulary,
        frame: Any,
        key: str | Sequence[str],
        columns: str | Iterable[str] | None,
        unknown: str,
        *,
        of: Literal["item", "labeler"],
    ) -> ItemTable:
        """The columns of items or labelers, with those of a frame that has a row for each."""
        check_choice(unknown, ("error", "ignore"), name="unknown")
        named, values = read_rows(FrameTable(frame), key, role=of, columns=columns)
        n, n_empty = len(named), sum(map(is_null, named))
        if n_empty or not n:
            rows = f"{n_empty} of {n} rows where it is empty; fill them in" if n else "no row; pass one each"
            raise InvalidLabels(f"{key!r} must be named in every row of the {of} table, got {rows}")
        position = {name: k for k, name in enumerate(names.tolist())}
        where = np.array([position.get(name, -1) for name in named], dtype=np.int64)
        if (where < 0).all() or (unknown == "error" and (where < 0).any()):
            others = [name for name in named if name not in position]
            hint = kind_hint(others[0], names, what=f"{of}s") or '; leave them out or pass `unknown="ignore"`'
            raise InvalidLabels(
                f"{of}s must be of the labels, got {len(others)} of {len(named)} rows of others: "
                f"{preview(others)}{hint}"
            )
        return with_columns(before, values, where, names.tolist(), item=key)

    def without_gold(self) -> Labels:
        """These labels without any vetted truth."""
        return replace(self, **nothing_vetted(self.n_items))

    def select(self, *, items: Iterable[Hashable] | None = None, labelers: Iterable[Hashable] | None = None) -> Labels:
        """The votes on some items, of some labelers, in the same order; items stay when all of their votes go."""
        kept_items = None if items is None else np.unique(self.item_codes(items))
        kept_labelers = None if labelers is None else np.unique(self.labeler_codes(labelers))
        for kept, what in ((kept_items, "item"), (kept_labelers, "labeler")):
            if kept is not None and not len(kept):
                raise InvalidLabels(f"a selection must keep at least one {what}, got none; name some of labels.{what}s")
        return part_of(self, kept_items, kept_labelers)

    def without_labeler(self, *names: Hashable) -> Labels:
        """These labels without the votes of some labelers."""
        return self.select(labelers=np.delete(self.labelers, self.labeler_codes(names)))

    def binned(self, n_bins: int = 10, *, low: float | None = None, high: float | None = None) -> Labels:
        """Numbers as classes put into bins of equal width, by default of all there are, each named by its middle."""
        # A normal model of the ratings would need its own truth, metrics, gold and answers. Ten bins lose about three
        # hundredths of the range on an item, by its place within the bin, which means over many items do not see.
        check_integer(n_bins, name="n_bins", low=2)
        names = self.classes.tolist()
        numbers = numbers_of(names)
        if numbers is None:
            raise InvalidLabels(f"classes must be numbers to be binned, got {preview(names)}; name the rating column")
        values = np.array(numbers)
        bottom = values.min() if low is None else check_number(low, name="low")
        top = values.max() if high is None else check_number(high, name="high")
        outside = values[(values < bottom) | (values > top)]
        if not bottom < top or len(outside):
            got = f"{preview(outside.tolist())} outside" if bottom < top else "no width"
            raise InvalidParameter(
                f"ratings must lie between `low` and `high`, got {got} of {bottom:g} to {top:g}; widen it",
                parameter="low",
            )
        width = (top - bottom) / n_bins
        bin_of = np.minimum(((values - bottom) / width).astype(np.int32), n_bins - 1)
        classes = vocabulary_from([float(f"{bottom + (k + 0.5) * width:.10g}") for k in range(n_bins)])
        abstentions = self.answers.tolist()[self.n_classes :]
        return recoded(self, self.items, self.labelers, classes, abstentions, class_of=bin_of)

    def agreement(self, **options: Any) -> Agreement:
        """How far the labelers agree; see `trueup.agreement`, which has the options."""
        from trueup.reliability.agreement import agreement

        return agreement(self, **options)

    def as_systems(self, *, min_votes: int = 1) -> Predictions:
        """The labelers as systems, for `trueup.compare`; those with fewer votes are left out."""
        return Predictions.from_labelers(self, min_votes=min_votes)

    def merge(self, other: Labels, *, duplicates: Duplicates = "keep") -> Labels:
        """All votes of both; items, labelers and classes of the same name are the same.

        Where a labeler voted on an item in both, the votes are repeated votes (with a warning) or, by `duplicates`, an
        error, or only those of the "first" (these) or the "last" (`other`). Where both have gold for an item it must
        agree, and has the role it has in `other`; what was drawn keeps the chance it had.
        """
        _gold.check_contradictions(
            self.gold | self.held_gold,
            other.gold | other.held_gold,
            remedy="correct one with `labels.with_gold`(…, correct=True), or leave it out with labels.without_gold()",
        )
        union, common = merge(self, other, duplicates=duplicates)
        if common and duplicates == "keep":
            warnings.warn(
                f"{common} pairs of a labeler and an item have votes in both labels and are kept as repeated votes; "
                'choose `duplicates="first"`, `duplicates="last"` or `duplicates="error"` to treat them otherwise',
                DataWarning,
                stacklevel=2,
            )
        return union

    @property
    def gold_only_classes(self) -> list[Any]:
        """The classes that gold names and nobody voted for."""
        return _describe.gold_only_classes(self)

    def to_frame(self, *, backend: str | None = None, with_items: bool = True, with_text: bool = False) -> Any:
        """The votes as a long table (item, labeler, label), one row a vote, with the columns of the items if any.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional. By default the first that is installed.
        with_items, with_text : bool. Whether to add the columns of the items, and those of long text too.
        """
        item, columns = vote_columns(self)
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


def part_of(labels: Labels, items: Positions | None = None, labelers: Positions | None = None) -> Labels:
    """The votes on the items and of the labelers at some positions, in ascending order; None for all."""
    kept_items: Any = slice(None) if items is None else items
    kept_labelers: Any = slice(None) if labelers is None else labelers

    def part(votes: sparse.csr_array, width: int) -> sparse.csr_array:
        votes = votes if items is None else votes[items]
        if labelers is None:
            return votes
        return sparse.csr_array(votes[:, (labelers[:, None] * width + np.arange(width)).ravel()])

    counts: dict[str, Any] = {"abstentions": labels.abstentions[kept_labelers]}
    if labels.unanswered is not None:
        unanswered = part(labels.unanswered, 2)
        per_labeler = np.asarray(unanswered.sum(axis=0), dtype=np.int64).reshape(-1, 2)
        counts = {
            "unanswered": unanswered,
            "n_missing": int(per_labeler[:, 0].sum()),
            "abstentions": per_labeler[:, 1],
        }
    return replace(
        labels,
        items=labels.items[kept_items],
        labelers=labels.labelers[kept_labelers],
        votes=part(labels.votes, labels.n_answers),
        gold_codes=labels.gold_codes[kept_items],
        held_codes=labels.held_codes[kept_items],
        gold_chance=labels.gold_chance[kept_items],
        item_table=labels.item_table if items is None else labels.item_table.take(items),
        labeler_table=labels.labeler_table if labelers is None else labels.labeler_table.take(labelers),
        **counts,
    )
