"""The rules of what counts as a vote, an abstention, gold, a run and a person in exports.

Readers pass a `Collector` what they find, in the words of their tool. It decides:

- skipped, ignored, refused and unparseable answers are abstentions; what was not asked is missing, no row at all; what
  the requester rejected, drafts and what cannot be understood are dropped. All are counted.
- gold is no vote. Where truths of an item differ, more than half of them settle it, else it has none.
- several answers of a labeler on an item are runs, in the order of their times where the tool has them.
- mails, names and addresses of people are not kept: such labelers are annotator-1, annotator-2 … in order of
  appearance, unless their names are wanted.
- answers that began with what a model had filled in are counted, and left out if wanted.
- an answer with several classes makes a question of yes and no for each class.
"""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trueup._base.validation import kind_of
from trueup._base.wording import some
from trueup.adapters.content import Content, Head
from trueup.adapters.export import Answers, Export
from trueup.data.encoding import is_plain_integer
from trueup.data.pairs import UNKNOWN
from trueup.exceptions import InvalidParameter

# A mail ends in letters, unlike the version of a model after an @; it may stand after a name, in angle brackets.
_MAIL = re.compile(r"([^@<>]{0,99}<)?[^\s@<>]+@[^\s@<>]+\.[^\W\d_]{2,}>?")
# What may be the address of a machine, and the address in it; a port comes after the only colon or a bracket.
_MACHINE = re.compile(r"\[?(?P<address>[\da-f.]+(?=:\d+$|$)|[\da-f.:]+(%\w+)?)\]?(:\d{1,5})?", re.IGNORECASE)
_FULL_NAME = re.compile(r"[^\W\d_][\w'’.-]*(,?\s[^\W\d_][\w'’.-]*){1,7}")
_PERSONAL_COLUMN = re.compile(
    r"_?(worker_?|user_?|annotator_?)?"
    r"(ip|ip_?address|e-?mails?|e-?mail_?address|phone|first_?name|last_?name|full_?name|user_?name)",
    re.IGNORECASE,
)
_LONGEST_ADDRESS = 254
_VOTE_COLUMNS = ("item", "labeler", "label")

_MOST_PHRASES = 100  # different reasons that notes tell of

Value = str | int | float


def plain(value: Any) -> Value | None:
    """A name as text or a number: truth values in the words of JSON, and None for what is no name."""
    kind = type(value)
    if kind is str:
        return str(value) if value and not value.isspace() else None
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return int(value)
    return float(value) if kind is float and math.isfinite(value) else None


def _classes_of(label: Any) -> tuple[Value, ...] | None:
    """The different classes that an answer names, one or a list of them; None where one cannot be read."""
    values = [plain(value) for value in (label if isinstance(label, list | tuple) else [label])]
    return None if None in values else tuple(dict.fromkeys(value for value in values if value is not None))


def member(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in a row; an empty one where there is none."""
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """A list as it is, and an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def first_of(row: Mapping[str, Any], *names: str) -> Any:
    """The first of these that the row has a name under."""
    return next((row[name] for name in names if plain(row.get(name)) is not None), None)


def with_values(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that hold text, numbers or truth values."""
    return {name: value for name, value in columns.items() if plain(value) is not None}


def number_of(value: Any) -> float | None:
    """A number, also from the text of a cell; None for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def json_in(text: str) -> Any:
    """What a cell holds as JSON, None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def hashed(*parts: Any) -> str:
    """A short name for something that has no name, always the same for the same text."""
    text = "\x1f".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


@dataclass
class _Row:
    """An answer of a labeler; no values is an abstention, or an empty answer."""

    item: Value
    labeler: Value
    values: tuple[Value, ...] | None
    run: int | None = None
    when: Any = None
    shown: int = UNKNOWN


@dataclass
class _Question:
    votes: list[_Row] = field(default_factory=list)
    truths: list[tuple[Value, tuple[Value, ...]]] = field(default_factory=list)
    forecasts: dict[tuple[Value, Value], tuple[tuple[Value, ...], float | None]] = field(default_factory=dict)
    classes: tuple[Hashable, ...] | None = None
    details: dict[str, str] = field(default_factory=dict)

    def items(self) -> Iterator[Value]:
        """The items of everything that was collected."""
        yield from (row.item for row in self.votes)
        yield from (item for item, _ in self.truths)
        yield from (item for _, item in self.forecasts)

    def answers(self) -> list[tuple[Value, ...]]:
        """The classes that votes, truths and systems name; abstentions name none."""
        answers = [row.values for row in self.votes if row.values is not None]
        return [*answers, *(values for _, values in self.truths), *(values for values, _ in self.forecasts.values())]


class Collector:
    """Takes what a reader finds, and makes an `Export` of it.

    Parameters
    ----------
    question : str, optional. The question that is wanted, which some layouts need in order to be read.
    keep_names : bool. Whether mails, names and addresses stay the names of labelers.
    exclude_prelabeled : bool. Whether answers that began with a model's are left out.
    """

    def __init__(
        self, *, question: str | None = None, keep_names: bool = False, exclude_prelabeled: bool = False
    ) -> None:
        self.question, self.keep_names, self.exclude_prelabeled = question, keep_names, exclude_prelabeled
        self.from_text = False  # whether names are text that may stand for numbers
        self._questions: dict[str, _Question] = {}
        self._about_all: list[tuple[Value, Value]] = []
        self._items: dict[Value, dict[str, Any]] = {}
        self._aliases: dict[Value, str] = {}
        self._kept_names: set[Value] = set()
        self._taken: set[Value] = set()  # these, and what stands for other people
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._sentences: list[str] = []
        self._n_answers = self._n_prelabeled = 0

    def person(self, name: Any) -> Value:
        """A person by the identity that the tool has: an id is kept, a mail, a name or an address is not."""
        known = plain(name)
        if known is None:
            return "unknown"
        text = str(known)
        personal = "@" in text or is_address(text) or _FULL_NAME.fullmatch(text.strip())
        if personal or (known in self._taken and known not in self._kept_names):  # it stands for somebody else already
            return self.named_person(known)
        self._kept_names.add(known)
        self._taken.add(known)
        return known

    def named_person(self, name: Any) -> Value:
        """A person by their name."""
        known = plain(name)
        if known is None:
            return "unknown"
        if self.keep_names:
            return known
        if known not in self._aliases:
            numbered = map("annotator-{}".format, itertools.count(len(self._aliases) + 1))
            self._aliases[known] = next(alias for alias in numbered if alias not in self._taken)
            self._taken.add(self._aliases[known])
        return self._aliases[known]

    def _without_address(self, name: Value) -> Value:
        """The name of a labeler or a system, as it is unless it is a mail or an address."""
        return self.named_person(name) if is_address(name) else name

    def vote(
        self,
        question: str,
        item: Any,
        labeler: Value,
        label: Any,
        *,
        run: int | None = None,
        when: Any = None,
        prelabeled: bool = False,
        shown: int = UNKNOWN,
        abstention: str | None = None,
    ) -> None:
        """An answer: one class, or a list of them where several can be chosen; of a pair also how it was shown.

        No label is an abstention for the reason that is given.
        """
        if label is None and abstention is not None:
            self.abstain(question, item, labeler, abstention, run=run, when=when)
            return
        name, chosen = plain(item), _classes_of(label)
        if name is None or chosen is None:
            self.drop("answers without a readable item or class")
            return
        self._n_answers += 1
        self._n_prelabeled += prelabeled
        if not (prelabeled and self.exclude_prelabeled):
            self._of(question).votes.append(_Row(name, self._without_address(labeler), chosen, run, when, shown))

    def abstain(
        self, question: str | None, item: Any, labeler: Value, why: str, *, run: int | None = None, when: Any = None
    ) -> None:
        """An answer that decides nothing; without a question, on all of the file."""
        name = plain(item)
        if name is None:
            self.drop("answers without a readable item or class")
            return
        self._counts["Abstentions"][why] += 1
        labeler = self._without_address(labeler)
        if question is None:
            self._about_all.append((name, labeler))
        else:
            self._of(question).votes.append(_Row(name, labeler, None, run, when))

    def truth(self, question: str, item: Any, label: Any) -> None:
        """A truth that somebody vetted."""
        name, chosen = plain(item), _classes_of(label)
        if name is None or chosen is None:
            self.drop("truths without a readable item or class")
        else:
            self._of(question).truths.append((name, chosen))

    def predict(self, question: str, item: Any, system: Any, label: Any, confidence: Any = None) -> None:
        """What a system says; of several on an item the last counts."""
        name, chosen, number = plain(item), _classes_of(label), plain(confidence)
        if name is None or not chosen:
            self.drop("predictions without a readable item or class")
            return
        key = (self._without_address(plain(system) or "model"), name)
        forecasts = self._of(question).forecasts
        if key in forecasts:
            self.drop("predictions of systems that have a later one on the item")
        forecasts[key] = (chosen, float(number) if isinstance(number, int | float) else None)

    def ask(self, question: str, *, classes: Sequence[Hashable] | None = None, **details: str) -> None:
        """A question that the file asks, with all that could be answered if that is known."""
        known = self._of(question)
        known.details.update(details)
        if classes is not None:
            known.classes = tuple(classes)

    def describe(self, item: Any, columns: Mapping[str, Any]) -> None:
        """What is known of an item; only text, numbers and truth values, and nothing that is a person's."""
        name = plain(item)
        if name is None:
            return
        known = self._items.setdefault(name, {})
        for column, value in columns.items():
            if not isinstance(column, str) or is_personal_column(column) or is_address(value):
                self._counts["Left out"]["mails, addresses and personal item columns"] += 1
            elif not isinstance(value, str | int | float):
                self._counts["Left out"]["lists and objects in item columns"] += value is not None
            else:
                known.setdefault(f"data_{column}" if column in _VOTE_COLUMNS else column, value)

    def drop(self, what: str, n: int = 1) -> None:
        """Something that is left out."""
        self._counts["Left out"][what] += n

    def miss(self, what: str, n: int = 1) -> None:
        """Something that was not asked or not answered, and so is no vote."""
        self._counts["Missing"][what] += n

    def map(self, what: str, n: int = 1) -> None:
        """Something that was read as other than what it says."""
        self._counts["Mapped"][what] += n

    def note(self, sentence: str) -> None:
        """Something else that a user should know."""
        if sentence not in self._sentences:
            self._sentences.append(sentence)

    def objects(self, values: Any, what: str) -> Iterator[dict[str, Any]]:
        """The objects in a list; what is none is counted as `what` that is left out."""
        if values is None:
            return
        for value in values if isinstance(values, list | Iterator) else [values]:
            if isinstance(value, dict):
                yield value
            else:
                self.drop(f"{what} that are no objects")

    def _of(self, question: str) -> _Question:
        return self._questions.setdefault(question, _Question())

    @property
    def asked(self) -> list[str]:
        """The questions so far."""
        return list(self._questions)

    def finish(self, tool: str, source: str) -> Export:
        """The export of all that was collected."""
        for item, labeler in self._about_all:
            for known in self._questions.values():
                known.votes.append(_Row(item, labeler, None))
        questions: dict[str, _Question] = {}
        for name, known in self._questions.items():
            questions |= self._split(name, known)
        in_use = {name: known for name, known in questions.items() if known.votes or known.truths or known.forecasts}
        rename = self._renaming(item for known in in_use.values() for item in known.items())
        answers = {name: self._answers(known, rename) for name, known in in_use.items()}
        rows: dict[Value, dict[str, Any]] = {}
        for item, columns in self._items.items():
            rows[rename(item)] = {**columns, **rows.get(rename(item), {})}
        names = list(dict.fromkeys(name for columns in rows.values() for name in columns))
        items: dict[str, list[Any]] = {"item": list(rows)}
        items |= {name: [columns.get(name) for columns in rows.values()] for name in names}
        return Export(tool, source, answers, items, tuple(self._notes()))

    def _renaming(self, names: Iterable[Value]) -> _Renaming:
        rename = _Renaming(names, from_text=self.from_text)
        self.map("names written as a number and as text, such as 1 and '1', taken for one", rename.n_joined)
        return rename

    def _split(self, name: str, known: _Question) -> dict[str, _Question]:
        """A question as it is, or one of yes and no for each class where answers name several."""
        answers = known.answers()
        if any(len(values) > 1 for values in answers):
            classes = sorted({value for values in answers for value in values}, key=str)
            self.note(f"Answers to {name!r} name several classes, so each class is a question of its own, yes or no.")
            return {f"{name}: {value}": _yes_or_no(known, name, value) for value in classes}
        for row in known.votes:
            if row.values is not None and not row.values:
                self._counts["Abstentions"]["empty answers"] += 1
                row.values = None
        known.truths = [(item, values) for item, values in known.truths if values]
        return {name: known}

    def _answers(self, known: _Question, rename_item: _Renaming) -> Answers:
        labels = [values[0] for values in known.answers() if values]
        rename, rename_labeler = self._renaming(labels), self._renaming(row.labeler for row in known.votes)
        # Stable: without times it is the order of the file.
        rows = sorted(known.votes, key=lambda row: row.when if isinstance(row.when, str) else "")
        runs: Counter[tuple[Value, Value]] = Counter()
        cells = []
        for row in rows:
            item, labeler = rename_item(row.item), rename_labeler(row.labeler)
            runs[item, labeler] += 1
            run = runs[item, labeler] if row.run is None else row.run
            cells.append((item, labeler, rename(row.values[0]) if row.values else None, run))
        votes = {name: [cell[k] for cell in cells] for k, name in enumerate(("item", "labeler", "label", "run"))}
        if any(row.shown != UNKNOWN for row in rows):
            votes["shown"] = [row.shown for row in rows]
        systems = _Renaming((system for system, _ in known.forecasts), from_text=False)
        forecasts = [
            (rename_item(item), systems(system), rename(values[0]), confidence)
            for (system, item), (values, confidence) in known.forecasts.items()
        ]
        columns = ("item", "system", "prediction", "confidence") if forecasts else ()
        predictions = {name: [row[k] for row in forecasts] for k, name in enumerate(columns)}
        truths: dict[Value, Counter[Value]] = defaultdict(Counter)
        for item, values in known.truths:
            truths[item][values[0]] += 1
        gold: dict[Hashable, Hashable] = {}
        for item, counts in truths.items():
            label, n = counts.most_common(1)[0]
            is_settled = 2 * n > counts.total()
            if is_settled:
                gold[rename_item(item)] = rename(label)
            if len(counts) > 1:
                outcome = "settled by more than half" if is_settled else "left without one"
                self._counts["Contradictions"][f"items whose truths differ, {outcome}"] += 1
        classes = known.classes
        if classes is not None and not {rename(label) for label in labels} <= set(classes):
            classes = None
        return Answers(votes, gold, predictions, classes, known.details)

    def _notes(self) -> Iterator[str]:
        for kind, counts in self._counts.items():
            phrases = [f"{what} ({n:,})" for what, n in counts.most_common(_MOST_PHRASES) if n]
            if phrases:
                yield f"{kind}: {', '.join(phrases)}."
        if self._aliases:
            yield (
                "Mails, names and addresses of people are not kept: "
                f"{some(len(self._aliases), 'labeler')} called annotator-1 and so on, in order of appearance; "
                "`keep_names=True` keeps the names."
            )
        if self._n_prelabeled:
            outcome = (
                "they are left out"
                if self.exclude_prelabeled
                else "they are not independent of the model, and `exclude_prelabeled=True` leaves them out"
            )
            yield (
                f"{self._n_prelabeled:,} of {self._n_answers:,} answers ({self._n_prelabeled / self._n_answers:.0%}) "
                f"began with what a model had filled in; {outcome}."
            )
        yield from self._sentences


def differing_columns(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], item: str) -> list[str]:
    """The columns in which rows of one item differ."""
    first: dict[tuple[str, str], str] = {}
    differing: dict[str, None] = {}
    for row in rows:
        for name in columns:
            value = json.dumps(row.get(name), default=str)
            if first.setdefault((str(row.get(item)), name), value) != value:
                differing[name] = None
    return list(differing)


def is_personal_column(column: str) -> bool:
    """Whether a column is named after what is a person's."""
    return _PERSONAL_COLUMN.fullmatch(column) is not None


def is_address(value: Any) -> bool:
    """Whether a value is a mail, with or without a name, or the address of a machine, and nothing else.

    Examples
    --------
    >>> [is_address(text) for text in ("Ann Lee <ann@lab.org>", "10.0.0.1:80", "12:30:45", "sonnet@20240620")]
    [True, True, False, False]
    """
    if not isinstance(value, str) or len(value) > _LONGEST_ADDRESS:
        return False
    text = value.strip()
    machine = _MACHINE.fullmatch(text)
    if machine is None:
        return "@" in text and _MAIL.fullmatch(text) is not None
    try:
        ipaddress.ip_address(machine["address"])
    except ValueError:
        return False
    return True


class _Renaming:
    """Names of one kind: where text and numbers mix all are text, and where all text is whole numbers all are those."""

    def __init__(self, names: Iterable[Value], *, from_text: bool) -> None:
        distinct = set(names)
        kinds = {kind_of(name) for name in distinct}
        self._as_text = len(kinds) > 1
        self._as_number = from_text and kinds == {"text"} and all(map(is_plain_integer, distinct))
        self.n_joined = len(distinct) - len(set(map(self, distinct)))

    def __call__(self, name: Value) -> Value:
        if self._as_number and is_plain_integer(name):
            return int(str(name).partition(".")[0])
        return str(name) if self._as_text else name


def _yes_or_no(known: _Question, question: str, value: Value) -> _Question:
    """Whether answers to a question name one of the classes."""

    def names_it(values: tuple[Value, ...]) -> tuple[str]:
        return ("yes" if value in values else "no",)

    return _Question(
        [replace(row, values=None if row.values is None else names_it(row.values)) for row in known.votes],
        [(item, names_it(values)) for item, values in known.truths],
        {key: (names_it(values), confidence) for key, (values, confidence) in known.forecasts.items()},
        ("no", "yes"),
        {**known.details, "question": question, "class": str(value)},
    )


# ------------------ What an adapter is: how one tool's files are recognised, read and written

Basis = Literal["real files", "files that the tool's own code wrote", "the documented layout"]


@dataclass(frozen=True)
class Answer:
    """What is written about an item for another tool.

    Attributes
    ----------
    label : hashable, optional. The class that is suggested; None where an expert should not be swayed.
    confidence : float, optional. How sure it is, from 0 to 1.
    columns : mapping. The columns of the item: its text, its system.
    """

    item: Hashable
    label: Hashable | None = None
    confidence: float | None = None
    columns: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Target:
    """How another tool names the answers: the question, control or score; who suggests; see also `Answers.details`."""

    question: str
    agent: str
    details: Mapping[str, str]


@dataclass(frozen=True)
class Adapter:
    """How the files of one tool are recognised, read and written.

    Another package adds one by an entry point of the group "trueup.adapters".

    Attributes
    ----------
    title : str. The tool and its files, for people.
    sniff : callable. From a `Head` to the marks of this layout that it shows; two are needed to recognise a file.
    read : callable. Takes a `Content` and passes a `Collector` what is in it.
    becomes : str. What becomes votes, gold and predictions, for people.
    basis : str. What the reader was written from.
    write : callable, optional. From answers and a `Target` to the text of a file that the tool takes.
    writes : str. What that is, for people.
    """

    title: str
    sniff: Callable[[Head], list[str]]
    read: Callable[[Content, Collector], None]
    becomes: str
    basis: Basis
    write: Callable[[list[Answer], Target], str] | None = None
    writes: str = ""


def marks(keys: Mapping[str, Any], *names: str) -> list[str]:
    """Those of the names that are keys."""
    return [name for name in names if name in keys]


def sniff_keys(*needed: str, more: Sequence[str] = ()) -> Callable[[Head], list[str]]:
    """The sniffing of layouts whose records have all the keys that are needed, and maybe more that mark them."""
    return lambda head: [*needed, *marks(head.keys, *more)] if head.keys.keys() >= set(needed) else []


def check_adapter(name: str, part: Any) -> None:
    """Stop what is registered and is no adapter."""
    if not isinstance(part, Adapter):
        raise InvalidParameter(f"an adapter must be a trueup.adapters.Adapter, got {type(part).__name__} for {name!r}")
