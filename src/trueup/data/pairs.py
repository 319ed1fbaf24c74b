"""Verdicts on pairs of systems, in canonical order: by judge and by the order in which the pair was shown.

A contest is an item with two systems, the first before the second by name, whatever order a judge saw.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.cells import plain_cell
from trueup._base.types import Codes
from trueup._base.validation import check_choice, preview
from trueup._base.wording import some
from trueup.data.encoding import Vocabulary, is_marked, is_null, vocabulary_from
from trueup.data.files import Format, Source, open_table
from trueup.data.frames import Cells, FrameTable, Table, key_columns
from trueup.data.gold import DRAWS, Drawn, check_contradictions, contradiction, given_inclusion_probabilities
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels

FIRST, SECOND, TIE = "first", "second", "tie"
VERDICTS = (FIRST, SECOND, TIE)
ROLES = ("item", "judge", "first", "second", "winner")  # of columns, which have these names by default
AS_NAMED, REVERSED, UNKNOWN = 0, 1, 2  # how a pair was shown: the canonical first one first, second, or nobody knows
BOTH = 2  # how a judge is heard who saw both orders
_MIRRORED = np.array([1, 0, 2])
# A verdict about places; a name of a system goes before.
_WORDS = {FIRST: 0, "a": 0, "model_a": 0, SECOND: 1, "b": 1, "model_b": 1, TIE: 2}
ITEM_TEXTS = ("prompt", "question", "instruction")  # what two systems answered, which names an item by itself
# Other names of the columns, for tables that lack the usual one.
_OTHER_NAMES = {
    "item": (*ITEM_TEXTS, "question_id", "prompt_id"),
    "judge": ("labeler", "annotator"),
    "first": ("model_a", "system_a"),
    "second": ("model_b", "system_b"),
}
ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")  # columns of which one is marked, in place of a winner
_HEARD = ("", " (reversed)", " (both orders)")
Contest = tuple[Hashable, Hashable, Hashable]


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Verdicts of judges on pairs of systems. Make them with `trueup.read_pairs` or `from_frame`.

    Attributes
    ----------
    contests : list of (item, first, second). In canonical order: the first system before the second by name.
    contest, judge, shown, verdict : integer array of shape (n_verdicts,)
        Of each verdict: its contest, the judge, the order it was shown in (0 as named, 1 reversed, 2 unknown), and who
        won, in canonical order: 0 the first, 1 the second, 2 nobody.
    gold : dict from contest to "first", "second" or "tie". Verdicts that are taken to be right.
    drawn : dict from contest to "chosen", "random" or probability
        How each of these contests was drawn; see `Labels.with_gold`.
    n_open : int. Rows of the table that name no winner.
    notes : tuple of str. Of the export of a tool, what was made of it.
    """

    systems: Vocabulary
    judges: Vocabulary
    contests: list[Contest] = field(repr=False)
    contest: Codes = field(repr=False)
    judge: Codes = field(repr=False)
    shown: Codes = field(repr=False)
    verdict: Codes = field(repr=False)
    gold: Mapping[Contest, str] = field(default_factory=dict, repr=False)
    drawn: Mapping[Contest, Any] = field(default_factory=dict, repr=False)
    n_open: int = field(default=0, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str | Sequence[str] = "item",
        judge: str | None = "judge",
        first: str = "first",
        second: str = "second",
        winner: str = "winner",
    ) -> Pairs:
        """Verdicts from a frame or a dict of columns with one row a verdict.

        Parameters
        ----------
        item, judge, first, second, winner : str
            The names of the columns. `first` and `second` are the systems in the order they were shown; the winner is
            the name of one of them or of their column, "first", "second" or "tie", or null for no verdict. Without
            `judge`, all verdicts are of one. A frame without one of the usual names may have another: prompt, question,
            instruction, question_id or prompt_id for the item, labeler or annotator for the judge, model_a or system_a
            for the first, model_b or system_b for the second, winner_model_a, winner_model_b and winner_tie, of which
            one is 1, for the winner. Capitals do not matter.

        Examples
        --------
        >>> import trueup as tu
        >>> row = {"item": [1, 1], "judge": ["j", "j"], "first": ["b", "a"], "second": ["a", "b"]}
        >>> tu.Pairs.from_frame({**row, "winner": ["first", "b"]})
        Pairs(1 contest of 2 systems, 1 judge, 2 verdicts)
        """
        columns = {"item": item, "judge": judge, "first": first, "second": second, "winner": winner}
        return pairs_from(FrameTable(frame), columns)

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, Any, Any, Any, int, int]]) -> Pairs:
        """From rows of an item, a judge, the systems in canonical order, how they were shown, and who won."""
        places: dict[Contest, int] = {}
        codes = [
            (places.setdefault((item, first, second), len(places)), judge, shown, verdict)
            for item, judge, first, second, shown, verdict in rows
        ]
        if not codes:
            raise InvalidLabels("pairs must hold at least one verdict, got none; name a file with verdicts")
        systems = vocabulary_from(sorted({name for _, *two in places for name in two}, key=str))
        judges = vocabulary_from(sorted({judge for _, judge, _, _ in codes}, key=str))
        position = {name: k for k, name in enumerate(judges.tolist())}
        contest, judge, shown, verdict = zip(*codes, strict=True)
        return cls(
            systems,
            judges,
            list(places),
            np.array(contest, dtype=np.int32),
            np.array([position[name] for name in judge], dtype=np.int32),
            np.array(shown, dtype=np.int8),
            np.array(verdict, dtype=np.int8),
        )

    def with_gold(self, gold: Pairs | Mapping[Contest, str], *, drawn: Drawn | None = None) -> Pairs:
        """These verdicts with some that are taken to be right, as those of people.

        Parameters
        ----------
        gold : Pairs, or mapping from (item, first, second) to "first", "second" or "tie"
            The contests must be among those of these pairs. The order of the two systems does not matter; the verdict
            is then about them in the order they are named.
        drawn : {"chosen", "random"} or mapping from contest to probability, optional
            How the contests came to be vetted; see `Labels.with_gold`. By default "chosen". Calls add up: each contest
            keeps how it was drawn.
        """
        written = {str(name): name for name in (*self.items, *self.systems.tolist())}

        def canonical(contest: Any, verdict: Any) -> tuple[Contest, str]:
            """With the names of these pairs, where a list for a spreadsheet made some of them inert."""
            if isinstance(contest, tuple):
                contest = tuple(plain_cell(name, written) for name in contest)
            return _canonical(contest, plain_cell(verdict, written))

        verdicts = gold.settled() if isinstance(gold, Pairs) else gold
        truths = dict(canonical(contest, verdict) for contest, verdict in verdicts.items())
        known = set(self.contests)
        strangers = [contest for contest in truths if contest not in known]
        if strangers:
            raise InvalidLabels(
                f"gold must be of contests that judges have seen, got {len(strangers)} others: {preview(strangers)}"
            )
        if isinstance(gold, Pairs) and gold.n_open and drawn not in (None, "chosen"):
            raise InvalidLabels(
                f"every drawn contest must be judged, got {some(gold.n_open, 'row')} without a winner; fill them in",
                parameter="drawn",
            )
        check_contradictions(self.gold, truths, remedy="keep one of them")
        if isinstance(drawn, Mapping):
            design = {canonical(contest, TIE)[0]: how for contest, how in drawn.items()}
        else:
            design = dict.fromkeys(truths, check_choice(drawn or "chosen", DRAWS, name="drawn"))
        given_inclusion_probabilities(design, list(truths))  # an error where it has too few, or what is no chance
        # What was drawn and is given again as chosen stays drawn.
        new = {contest: how for contest, how in design.items() if how != "chosen" or contest not in self.drawn}
        return replace(self, gold={**self.gold, **truths}, drawn={**self.drawn, **new})

    def settled(self) -> dict[Contest, Any]:
        """Who won each contest, or a tie, where all say the same; an error where some differ."""
        winners: dict[Contest, Any] = {}
        for contest, verdict in zip(self.contest.tolist(), self.verdict.tolist(), strict=True):
            name = self.contests[contest]
            winner = (*name[1:], TIE)[verdict]
            if winners.setdefault(name, winner) != winner:
                raise contradiction(name, (winners[name], winner), 1, remedy="settle them, or read them as verdicts")
        return winners

    @property
    def n_contests(self) -> int:
        """Number of contests."""
        return len(self.contests)

    @property
    def n_verdicts(self) -> int:
        """Number of verdicts."""
        return len(self.verdict)

    @property
    def has_ties(self) -> bool:
        """Whether anybody called a tie."""
        return bool((self.verdict == 2).any()) or TIE in self.gold.values()

    @cached_property
    def sides(self) -> npt.NDArray[np.int64]:
        """The two systems of each contest as positions in `systems`, shape (n_contests, 2)."""
        position = {name: k for k, name in enumerate(self.systems.tolist())}
        return np.array([(position[first], position[second]) for _, first, second in self.contests], dtype=np.int64)

    @property
    def items(self) -> list[Hashable]:
        """The item of each contest."""
        return [item for item, _, _ in self.contests]

    @cached_property
    def heard(self) -> tuple[Codes, Codes, Codes, Codes]:
        """One witness of each judge on each contest: contest, judge, how heard (0, 1 or both), verdict.

        A judge who saw both orders is heard once: for whoever wins more of the verdicts, and for a tie where these
        cancel each other out. Such a verdict has no position in it.
        """
        key = self.contest.astype(np.int64) * len(self.judges) + self.judge
        _, first, position = np.unique(key, return_index=True, return_inverse=True)
        by_order, times = np.zeros((len(first), 3)), np.zeros((len(first), 3))
        np.add.at(by_order, (position, self.shown), np.array([1.0, -1.0, 0.0])[self.verdict])
        np.add.at(times, (position, self.shown), 1.0)
        total = (by_order / np.maximum(times, 1.0)).sum(axis=1)
        outcome = np.where(np.abs(total) < 1e-9, 2, np.where(total > 0, 0, 1)).astype(np.int8)
        how = np.where((times > 0).sum(axis=1) > 1, BOTH, self.shown[first]).astype(np.int8)
        return self.contest[first], self.judge[first], how, outcome

    @cached_property
    def labels(self) -> Labels:
        """The verdicts as votes on contests; a labeler is a judge in one order, or in both."""
        contest, judge, how, outcome = self.heard
        names = self.judges.tolist()
        classes = list(VERDICTS if self.has_ties else VERDICTS[:2])
        kept = np.flatnonzero(outcome < len(classes))  # without ties, verdicts that cancel each other out say nothing
        frame = {
            "item": contest[kept].tolist(),
            "labeler": [f"{names[j]}{_HEARD[o]}" for j, o in zip(judge[kept], how[kept], strict=True)],
            "label": [VERDICTS[v] for v in outcome[kept]],
        }
        labels = Labels.from_frame(frame, classes=classes)
        heard = set(labels.items.tolist())
        vetted = {k: name for k, name in enumerate(self.contests) if name in self.gold and k in heard}
        if not self.gold:
            return labels
        gold = {k: self.gold[name] for k, name in vetted.items()}
        return labels.with_gold(gold, drawn={k: self.drawn[name] for k, name in vetted.items()})

    @property
    def presentation(self) -> tuple[Codes, Codes]:
        """Of each labeler of `labels`: the judge, and whether it is heard as named, reversed or in both orders."""
        position = {
            f"{name}{words}": (j, o) for j, name in enumerate(self.judges.tolist()) for o, words in enumerate(_HEARD)
        }
        given = np.array([position[name] for name in self.labels.labelers.tolist()])
        return given[:, 0], given[:, 1]

    def consistency(self) -> dict[Any, float]:
        """Of each judge who saw contests in both orders: how often the same system won in both."""
        shares: dict[Any, float] = {}
        for j, name in enumerate(self.judges.tolist()):
            by_contest: dict[int, tuple[set[int], set[int]]] = {}
            for k in np.flatnonzero((self.judge == j) & (self.shown != UNKNOWN)).tolist():
                orders, verdicts = by_contest.setdefault(int(self.contest[k]), (set(), set()))
                orders.add(int(self.shown[k]))
                verdicts.add(int(self.verdict[k]))
            twice = [len(verdicts) == 1 for orders, verdicts in by_contest.values() if len(orders) == 2]
            if twice:
                shares[name] = float(np.mean(twice))
        return shares

    def __repr__(self) -> str:
        parts = [
            f"{some(self.n_contests, 'contest')} of {some(len(self.systems), 'system')}",
            some(len(self.judges), "judge"),
            some(self.n_verdicts, "verdict"),
            *([f"{len(self.gold):,} checked"] if self.gold else []),
        ]
        return f"Pairs({', '.join(parts)})"


def mirrored(verdicts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Verdicts with the first and the second exchanged."""
    return np.asarray(_MIRRORED[verdicts])


def read_pairs(path: Source, *, file_format: Format | None = None, **columns: Any) -> Pairs:
    """Verdicts from a table with one row a verdict; the parameters are those of `trueup.read_pairs`."""
    with open_table(path, file_format=file_format) as table:
        return pairs_from(table, columns, judge_may_lack=columns["judge"] == "judge")


def pairs_from(table: Table, columns: Mapping[str, Any], *, judge_may_lack: bool = False) -> Pairs:
    """Verdicts from an open table, its columns by role; people's verdicts often come without the names of judges."""
    named = {role: _column_of(role, name, table.columns) for role, name in columns.items() if name is not None}
    if judge_may_lack and named["judge"] not in table.columns:
        del named["judge"]
    keys = {role: key_columns(column, table.columns, role=role) for role, column in named.items()}
    parts = {role: [Cells() for _ in key] for role, key in keys.items()}
    table.read([pair for role, key in keys.items() for pair in zip(key, parts[role], strict=True)])
    rows = {role: list(zip(*(part.values for part in cells), strict=True)) for role, cells in parts.items()}
    cells = {role: [row[0] for row in cells] if len(keys[role]) == 1 else cells for role, cells in rows.items()}
    if len(keys["winner"]) > 1:
        cells["winner"] = [marked_winner(row) for row in rows["winner"]]
    cells.setdefault("judge", ["judge"] * len(cells["item"]))
    words = {**_WORDS, named["first"].lower(): 0, named["second"].lower(): 1}
    in_rows = zip(*(cells[role] for role in ROLES), strict=True)
    verdicts = [_row(number, *row, words=words) for number, row in enumerate(in_rows, start=1)]
    pairs = Pairs.from_rows(row for row in verdicts if row is not None)
    return replace(pairs, n_open=verdicts.count(None))


def _column_of(role: str, name: Any, columns: list[str]) -> Any:
    """The column of a role: the one named, or where the usual one is lacking others that are known."""
    if name != role or name in columns:
        return name
    found = {str(column).casefold(): column for column in columns}
    other = next((found[known] for known in (role, *_OTHER_NAMES.get(role, ())) if known in found), None)
    if other is None and role == "winner" and found.keys() >= set(ONE_HOT[:2]):
        return [found[known] for known in ONE_HOT if known in found]
    return name if other is None else other


def marked_winner(cells: Sequence[Any]) -> Any:
    """The place that one of the columns `ONE_HOT` marks; None where none is marked, and the cells where several are."""
    marked = [verdict for verdict, cell in zip(VERDICTS, cells, strict=False) if is_marked(cell)]
    return tuple(cells) if len(marked) > 1 else next(iter(marked), None)


def who_won(winner: Any, first: Any, second: Any, words: Mapping[str, int] = _WORDS) -> int | None:
    """0 for the first of two systems, 1 for the second, 2 for neither; None for what is none of these."""
    names = {first: 0, second: 1}
    word = winner.strip().lower() if isinstance(winner, str) else winner
    if isinstance(word, str) and word.startswith("tie ("):  # arenas tell ties of bad answers apart
        word = TIE
    is_word = word not in {str(name).lower() for name in names}  # 'A' is no place where a system is called 'a'
    return names.get(winner, words.get(word) if is_word else None)


def _row(
    number: int, item: Any, judge: Any, first: Any, second: Any, winner: Any, *, words: Mapping[str, int] = _WORDS
) -> tuple[Any, Any, Any, Any, int, int] | None:
    """A verdict in canonical order; None where there is none."""
    if is_null(winner) or winner == "":
        return None
    for role, name in (("item", item), ("judge", judge), ("first", first), ("second", second)):
        if is_null(name) or name == "":
            raise InvalidLabels(f"every verdict must have a {role}, got none in row {number}; name it, or drop the row")
    if first == second:
        raise InvalidLabels(f"a pair must be of two systems, got {first!r} twice in row {number}; name the other one")
    verdict = who_won(winner, first, second, words)
    if verdict is None:
        raise InvalidLabels(
            f"the winner must be {first!r}, {second!r}, first, second, A, B or tie, got {winner!r} in row {number}; "
            "correct it"
        )
    if str(first) <= str(second):
        return item, judge, first, second, AS_NAMED, verdict
    return item, judge, second, first, REVERSED, int(_MIRRORED[verdict])


def _canonical(contest: Any, verdict: Any) -> tuple[Contest, str]:
    if not isinstance(contest, tuple) or len(contest) != 3:
        raise InvalidLabels(f"a contest must be (item, first, second), got {contest!r}; name all three")
    item, first, second = contest
    if verdict not in (*VERDICTS, first, second):
        raise InvalidLabels(f"gold must be first, second or tie, or the name of one of the two, got {verdict!r}")
    row = _row(1, item, "gold", first, second, verdict)
    assert row is not None
    return (row[0], row[2], row[3]), VERDICTS[row[5]]
