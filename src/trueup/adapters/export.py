"""What was read from the export of another tool: votes, gold, predictions and items of each question, and notes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from trueup._base.validation import did_you_mean, preview
from trueup.data.building import VoteFormat
from trueup.data.encoding import encode
from trueup.data.frames import FrameTable
from trueup.data.gold import Gold
from trueup.data.labels import Labels
from trueup.data.pairs import FIRST, SECOND, UNKNOWN, VERDICTS, Pairs
from trueup.data.predictions import Predictions
from trueup.data.votes import AbstainPolicy, Duplicates, recoded
from trueup.exceptions import InvalidFile, InvalidLabels, InvalidParameter, InvalidPredictions

Rows = Mapping[str, list[Any]]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a file holds of one question.

    Attributes
    ----------
    votes : mapping from column to list
        ``item``, ``labeler``, ``label`` (None for an abstention) and ``run``, a row for each vote. Where the file has
        the order in which pairs were shown also ``shown``; see `Pairs`.
    predictions : mapping from column to list. ``item``, ``system``, ``prediction`` and ``confidence`` in it, or None.
    classes : tuple, optional. What could be chosen, where the tool fixes it.
    details : mapping. What the tool needs to take answers back, e.g. the names of its controls.
    """

    votes: Rows
    gold: Mapping[Hashable, Hashable] = field(default_factory=dict)
    predictions: Rows = field(default_factory=dict)
    classes: tuple[Hashable, ...] | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Export:
    """What was read from the export of another tool.

    Make one with `trueup.read_export`.

    Attributes
    ----------
    tool : str. The name of the format.
    source : str. How errors call the file.
    items : dict from column to list. The columns of the items with ``item``, as `Labels.with_items` takes them.
    notes : tuple of str. Notes about everything that was dropped, mapped or guessed, with how often.
    question : str, optional. The question that the other attributes are of; with one question in the file that one.
    """

    tool: str
    source: str
    by_question: Mapping[str, Answers]
    items: Mapping[str, list[Any]]
    notes: tuple[str, ...] = ()
    question: str | None = None

    def __repr__(self) -> str:
        if self.question is None and len(self.by_question) != 1:
            return f"Export({self.tool}, questions {preview(self.questions, most=10)})"
        n_votes = sum(label is not None for label in self.votes["label"])
        n_systems = len(set(self.answers.predictions.get("system", [])))
        parts = [f"{n_votes:,} votes", f"{len(self.gold):,} gold", f"{n_systems} systems"]
        return f"Export({self.tool}, {', '.join(parts)})"

    @property
    def questions(self) -> tuple[str, ...]:
        """What the file asks."""
        return tuple(self.by_question)

    def of(self, question: str) -> Export:
        """The same with one question chosen."""
        if question not in self.by_question:
            listed = ", ".join(map(repr, self.questions)) or "none"
            raise InvalidParameter(
                f"there is no question {question!r} in {self.source}, got the questions {listed}"
                f"{did_you_mean(question, self.questions) or '; name one of them with `question=…`'}",
                parameter="question",
            )
        return replace(self, question=question)

    @property
    def answers(self) -> Answers:
        """What the file holds of the question; several, of which none was chosen, are an error that lists them."""
        if self.question is not None:
            return self.by_question[self.question]
        if len(self.by_question) == 1:
            return next(iter(self.by_question.values()))
        if not self.by_question:
            raise InvalidFile(
                f"{self.source} has no question that classes answer, got {self._dropped()}; export answers that "
                "choose classes"
            )
        listed = ", ".join(map(repr, self.questions))
        raise InvalidParameter(
            f"{self.source} asks {len(self.by_question)} questions, got {listed}; choose one with "
            f"`question={self.questions[0]!r}`",
            parameter="question",
        )

    def _dropped(self) -> str:
        return "; ".join(note.rstrip(".") for note in self.notes) or "nothing at all"

    @property
    def votes(self) -> Rows:
        """The votes: ``item``, ``labeler``, ``label`` (None for an abstention), ``run``."""
        return self.answers.votes

    @property
    def gold(self) -> Gold:
        """The vetted truths, as `Labels.with_gold` takes them; the items were chosen, as far as the file tells."""
        return Gold(self.answers.gold)

    def labels(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        missing: Any = (),
        abstain: Any = (),
        abstain_policy: AbstainPolicy = "ignore",
        duplicates: Duplicates = "keep",
    ) -> Labels:
        """The votes with the gold and the columns of the items.

        Parameters
        ----------
        classes, missing, abstain, abstain_policy, duplicates
            As in `Labels.from_frame`; `missing` and `abstain` are added to what the tool says itself.
        """
        return self._labels(
            VoteFormat(
                classes=classes, missing=missing, abstain=abstain, abstain_policy=abstain_policy, duplicates=duplicates
            )
        )

    def _labels(self, how: VoteFormat) -> Labels:
        answers, abstain = self.answers, how.abstain
        if all(label is None for label in answers.votes["label"]):
            also = [f"{len(answers.gold):,} truths"] if answers.gold else []
            also += [f"{len(answers.predictions['item']):,} predictions"] if answers.predictions else []
            raise InvalidLabels(
                f"{self.source} holds no votes, got {' and '.join(also) or self._dropped()}; see `read_gold` and "
                "`read_predictions`"
            )
        several = list(abstain) if isinstance(abstain, list | tuple | set | frozenset) else [abstain]
        how = replace(
            how,
            run="shown" if "shown" in answers.votes else None,  # the other order of a pair is no repeated vote
            classes=answers.classes if how.classes is None else how.classes,
            abstain=[None, *several],
        )
        columns = {name: column for name, column in answers.votes.items() if name != "run"}
        labels = Labels._from_table(FrameTable(columns), how)
        in_votes = labels.find_items(answers.gold) >= 0
        without_votes = [item for item, is_there in zip(answers.gold, in_votes, strict=True) if not is_there]
        if without_votes:
            items = encode([labels.items, without_votes], column="item")[1]
            abstentions = labels.answers[labels.n_classes :].tolist()
            labels = recoded(labels, items, labels.labelers, labels.classes, abstentions)
        if answers.gold:
            labels = labels.with_gold(self.gold)
        if len(self.items) > 1 and (labels.find_items(self.items["item"]) >= 0).any():
            labels = labels.with_items(self.items, unknown="ignore")
        return replace(labels, reading_notes=self.notes)

    def pairs(self) -> Pairs:
        """The verdicts on pairs of systems, the gold, and the order in which each was shown if it is known."""
        columns = [self.items.get(name, []) for name in (FIRST, SECOND, "question", "turn")]
        contests: dict[Hashable, tuple[Hashable, Hashable, Hashable]] = {}  # what was answered, and the two systems
        for item, first, second, question, turn in zip_longest(self.items["item"], *columns):
            if first is not None and second is not None:
                asked = item if question is None else question
                contests[item] = (asked if turn in (None, 1, "1") else f"{asked}/turn {turn}", first, second)
        votes = self.votes
        shown = votes.get("shown", [UNKNOWN] * len(votes["item"]))
        codes = {name: code for code, name in enumerate(VERDICTS)}
        rows = [
            (contests[item], labeler, order, codes.get(label))
            for item, labeler, label, order in zip(votes["item"], votes["labeler"], votes["label"], shown, strict=True)
            if item in contests
        ]
        verdicts = [
            (item, labeler, first, second, order, code)
            for (item, first, second), labeler, order, code in rows
            if code is not None
        ]
        if not verdicts:
            raise InvalidLabels(f"{self.source} holds no verdicts on pairs of systems, got {self!r}; see `read_labels`")
        pairs = replace(Pairs.from_rows(verdicts), n_open=len(rows) - len(verdicts), notes=self.notes)
        judged = set(pairs.contests)
        gold = {contests[item]: str(verdict) for item, verdict in self.gold.items() if item in contests}
        return pairs.with_gold({contest: verdict for contest, verdict in gold.items() if contest in judged})

    def predictions(self) -> Predictions:
        """What the systems of the file say, as hard classes; the confidences are in `answers.predictions`."""
        rows = self.answers.predictions
        if not rows or not rows["item"]:
            raise InvalidPredictions(
                f"{self.source} holds no predictions, got {len(self.votes['item']):,} votes of "
                f"{len(set(self.votes['labeler'])):,} labelers; name the file of the predictions"
            )
        columns = {name: rows[name] for name in ("item", "system", "prediction")}
        return Predictions.from_frame(columns, system="system")

    def vetted(self) -> dict[Hashable, Hashable]:
        """What experts answered, one class for each item, for `ActiveTest.tell`: the gold, else what all votes say."""
        answers: dict[Hashable, set[Hashable]] = {}
        for item, label in zip(self.votes["item"], self.votes["label"], strict=True):
            if label is not None and item not in self.answers.gold:
                answers.setdefault(item, set()).add(label)
        differ = {item: labels for item, labels in answers.items() if len(labels) > 1}
        if differ:
            item, labels = next(iter(differ.items()))
            raise InvalidLabels(
                f"experts must agree on the truth of an item, got {preview(sorted(map(str, labels)))} for item "
                f"{item!r} ({len(differ)} such items); settle them, or read the file as votes"
            )
        return {**self.answers.gold, **{item: next(iter(labels)) for item, labels in answers.items()}}
