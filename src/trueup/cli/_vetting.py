"""A vetting session: where it is kept, its files, its test in memory, names typed by people understood."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.cells import plain_cell
from trueup._base.writing import locked, write_text_safely
from trueup.cli._files import STANDARD_INPUT, by_name, fingerprint, is_pipe, read_both, source_of
from trueup.cli._options import PredictionOptions, VoteOptions, given, opt, parse_pairs
from trueup.exceptions import InvalidFile, InvalidParameter, MissingFile, SessionMissing

if TYPE_CHECKING:
    from trueup.active import ActiveTest
    from trueup.data.labels import Labels
    from trueup.storage import Storage

_FORMAT, _VERSION = "trueup vet", 1


@dataclass(frozen=True)
class StorageOptions:
    """Where the session is kept, in place of a session file."""

    storage: str | None = opt(None, "URL of a database, such as sqlite:///test.db; then no SESSION.", "URL")
    name: str | None = opt(None, "Of the session in the storage.", "NAME")


class Location:
    """Where a session is kept. What is defined here holds for a database."""

    words: str  # how a command names it
    folder: Path | None = None  # where other files are seen from; None is anywhere

    def notes(self) -> tuple[str, ...]:
        """What to know of it before a session begins."""
        return ()

    def made_with(self) -> dict[str, Any]:
        """What a session is made with in addition to its data."""
        return {}

    def turn(self) -> AbstractContextManager[None]:
        """Hold the session for as long as it is read, changed and written; another command waits."""
        return nullcontext()

    def exists(self) -> bool:
        """Whether a session has begun."""
        raise NotImplementedError

    def load(self) -> SessionFile:
        """What it rests on and was made with, and its log; else one sentence that says why not."""
        raise NotImplementedError

    def save(self, session: SessionFile) -> None:
        """Keep what is not kept yet."""
        raise NotImplementedError


class FileLocation(Location):
    """A session in a file of its own; other files are seen from its folder, so that it can be moved."""

    def __init__(self, path: Path) -> None:
        self.path, self.words, self.folder = path, str(path), path.resolve().parent

    def __str__(self) -> str:
        return repr(str(self.path))

    def turn(self) -> AbstractContextManager[None]:
        return locked(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def load(self) -> SessionFile:
        if not self.exists():
            raise MissingFile(
                f"there is no session {self}, got no such file; begin one with `trueup vet start` or "
                "`trueup vet ask SESSION VOTES PREDICTIONS`"
            )
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidFile(f"{self} cannot be read, got {error!s:.100}; name a session file") from error
        except (ValueError, RecursionError) as error:
            raise InvalidFile(f"{self} is no session, got {error!s:.100}; name a session file") from error
        is_session = isinstance(record, dict) and record.get("format") == _FORMAT
        session = SessionFile.of(record) if is_session else None
        if session is None:
            raise InvalidFile(f"{self} is no session of `trueup vet`, got other JSON; name a session file")
        if record.get("version") != _VERSION:
            raise InvalidFile(
                f"{self} must be of version {_VERSION}, got {record.get('version')!r}; use another trueup"
            )
        return session

    def save(self, session: SessionFile) -> None:
        record = {"format": _FORMAT, "version": _VERSION, **asdict(session)}
        write_text_safely(self.path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


class StoredLocation(Location):
    """A session in a storage, whose log is written there as it grows."""

    def __init__(self, url: str, name: str, *, create: bool) -> None:
        self.url, self.name, self.create = url, name, create
        self.words = f"--storage {url} --name {name}"

    @cached_property
    def storage(self) -> Storage:
        """The storage, opened when it is first needed."""
        from trueup.storage import open_storage

        return open_storage(self.url, create=self.create)

    def notes(self) -> tuple[str, ...]:
        return self.storage.notes

    def __str__(self) -> str:
        return f"{self.name!r} in {self.storage.url}"

    def made_with(self) -> dict[str, Any]:
        return {"storage": self.storage, "name": self.name}

    def exists(self) -> bool:
        # One that was cut off while it began does not know its files.
        record = self.storage.find(self.name)
        return record is not None and "files" in record.source

    def load(self) -> SessionFile:
        record = self.storage.open(self.name)
        test = {"format": 1, "settings": record.settings, "options": record.options, "log": []}
        found = SessionFile.of({**record.source, "test": test}) if record.kind == "active test" else None
        if found is None:
            raise SessionMissing(
                f"the session {self} did not begin on the command line, got no files that it rests on; open it as it "
                "was made"
            )
        return found

    def save(self, session: SessionFile) -> None:
        source = {name: asdict(session)[name] for name in ("files", "reading")}
        if self.storage.open(self.name).source != source:
            self.storage.change(self.name, source=source)


def location_of(
    session: str | None, kept: StorageOptions, *rest: str | None, create: bool = False
) -> tuple[FileLocation | StoredLocation, list[str]]:
    """Where the session is kept, and the words that follow; in a storage there is no session file among them."""
    words = [word for word in (session, *rest) if word is not None]
    if kept.storage is not None and kept.name is not None:
        return StoredLocation(kept.storage, kept.name, create=create), words
    if kept.storage is not None or kept.name is not None:
        raise InvalidParameter("a session in a storage needs both --storage and --name, got one of them; give both")
    if not words:
        raise InvalidParameter("a session is named by its file or by --storage and --name, got neither; name the file")
    return FileLocation(Path(words[0])), words[1:]


@dataclass(frozen=True)
class KnownFile:
    """A file that a session rests on: where it lies, seen from the session's folder, and what was in it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path, location: Location) -> KnownFile:
        """The file as it is now."""
        if is_pipe(str(path)):
            pipe = "standard input" if str(path) == STANDARD_INPUT else f"the pipe {str(path)!r}"
            raise InvalidFile(f"a session must find its files again, got {pipe}; save it to a file and name that")
        return cls(_seen_from(path, location.folder), _fingerprint(path))

    def find(self, location: Location) -> Path:
        """Where the file lies now; an error if its content is another one."""
        path = (location.folder or Path()) / self.path
        if not path.exists():
            raise MissingFile(
                f"{location} rests on {str(path)!r}, got no such file; put it back, or start a new session"
            )
        if _fingerprint(path) != self.sha256:
            raise InvalidFile(
                f"{str(path)!r} must be as it was when the session {location} began, got other content; "
                "put the old file back, or start a new session"
            )
        return path


@dataclass(frozen=True)
class SessionFile:
    """What the file holds."""

    files: dict[str, KnownFile]  # by role: "votes", "predictions", "predictions 2", …, and "gold" where there is one
    reading: dict[str, Any]  # how the files are read: columns and other options
    test: dict[str, Any]  # what `ActiveTest.to_json` gave
    reasons: list[list[Any]] = field(default_factory=list)  # of the items that wait for an answer

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> SessionFile | None:
        """What a record holds; None where it is no session."""
        reasons = record.get("reasons", [])
        try:
            files = {role: KnownFile(**known) for role, known in record["files"].items()}
            found = cls(files, record["reading"], record["test"], reasons)
            is_whole = "votes" in files and all(isinstance(reason, list) and len(reason) == 2 for reason in reasons)
        except (KeyError, TypeError, AttributeError):
            return None
        texts = [text for known in files.values() for text in (known.path, known.sha256)]
        is_whole = is_whole and isinstance(found.reading, dict) and isinstance(found.test, dict)
        return found if is_whole and all(isinstance(text, str) for text in texts) else None

    def seen_from(self, location: Location, other: Location) -> SessionFile:
        """The same with its files seen from another location."""
        files = {
            role: replace(known, path=_seen_from((location.folder or Path()) / known.path, other.folder))
            for role, known in self.files.items()
        }
        return replace(self, files=files)


def _seen_from(path: Path, folder: Path | None) -> str:
    """Relative, so that the folder can be moved; absolute where there is no way from one to the other."""
    try:
        return str(path.resolve()) if folder is None else Path(os.path.relpath(path.resolve(), folder)).as_posix()
    except ValueError:  # another drive
        return str(path.resolve())


def _fingerprint(path: Path) -> str:
    try:
        return fingerprint(str(path))
    except OSError as error:
        raise InvalidFile(f"{str(path)!r} cannot be read, got {error!s:.100}; check its name and rights") from error


_OTHER_FILES = ("gold", "items")  # files of `VoteOptions`


@dataclass(frozen=True)
class SessionOptions:
    """How to test (fixed when the session begins, but for the last three)."""

    metric: str | None = opt(None, "What is measured; accuracy by default.", "NAME")
    strategy: str | None = opt(None, "propensity by default; one of STRATEGIES.", "NAME", chosen="STRATEGIES")
    estimator: str | None = opt(None, "rectified by default; one of ESTIMATORS.", "NAME", chosen="ESTIMATORS")
    noise: str | None = opt(None, "How labelers err; one of NOISE_MODELS.", "NAME", chosen="NOISE_MODELS")
    categories: str | None = opt(None, "item, category; the metric is their mean.", "FILE", reads=True)
    target: str | None = opt(None, "sample (the default) or population.", "WHAT")
    level: float | None = opt(None, "Probability of the intervals; 0.95 by default.", "P")
    option: list[str] | None = opt(None, "An option of the strategy, e.g. floor=0.5.", "NAME=VALUE")
    fallible_experts: bool | None = opt(
        None, "Answers may be wrong: each counts by the error rate of its expert.", None, "--fallible-experts"
    )
    seed: int | None = opt(None, "Seed of all chance; 0 by default.", "N")
    budget: int | None = opt(None, "Answers that can be paid for.", "N")
    half_width: float | None = opt(None, "Stop once the interval is ± this.", "W")
    prob_better: float | None = opt(None, "Stop once the better of two systems is so surely better.", "P")

    @property
    def named(self) -> dict[str, Any]:
        """What was given, as `ActiveTest` names it; categories and options of the strategy apart."""
        apart = ("categories", "option", "seed", "fallible_experts")
        named = {name: value for name, value in vars(self).items() if name not in apart}
        return given(**named, experts="fallible" if self.fallible_experts else None, random_state=self.seed)


@dataclass
class Vetting:
    """An open session."""

    location: Location  # where it is kept
    file: SessionFile  # what it rests on, as it was read
    labels: Labels
    systems: list[Hashable]  # the names of the systems under test
    test: ActiveTest
    reasons: dict[Hashable, str] = field(default_factory=dict)  # of a file whose log does not have them

    @property
    def session(self) -> SessionFile:
        """As it is now."""
        waiting = [[item, why] for item, why in self.waiting()]
        return replace(self.file, test=json.loads(self.test.to_json()), reasons=waiting)

    def save(self) -> None:
        """Keep the session where it is kept."""
        self.location.save(self.session)

    def waiting(self) -> list[tuple[Hashable, str]]:
        """The items that wait for an answer, and why they were asked."""
        asked = {event.item: event.why for event in self.test.log if event.kind == "ask" and event.why is not None}
        return [(item, asked.get(item) or self.reasons.get(item, "")) for item in self.test.waiting]

    @cached_property
    def items(self) -> dict[str, Hashable]:
        """The items by how they are written."""
        return by_name(self.labels.items.tolist())

    @cached_property
    def classes(self) -> dict[str, Hashable]:
        """The classes by how they are written."""
        return by_name(self.labels.classes.tolist())

    def item(self, text: str) -> Hashable:
        """The item that a text means."""
        if text not in self.items:
            raise InvalidParameter(f"there is no item {text!r} in the votes, got it; use the names that 'vet ask' gave")
        return self.items[text]

    def _class(self, text: str) -> Hashable | None:
        """The class that a text means: as it is, without blanks around it, or in other case if that is clear."""
        for written in (text, text.strip(), plain_cell(text, self.classes)):
            if written in self.classes:
                return self.classes[written]
        alike = [name for name in self.classes if name.casefold() == text.strip().casefold()]
        return self.classes[alike[0]] if len(alike) == 1 else None

    def typed(self, texts: Iterable[str]) -> dict[Hashable, Hashable]:
        """Answers written ITEM=CLASS, where both names may hold equals signs themselves."""
        found: dict[Hashable, Hashable] = {}
        for text in texts:
            cuts = [(text[:k], text[k + 1 :]) for k, sign in enumerate(text) if sign == "="]
            meant = [(self.items[item], self._class(name)) for item, name in cuts if item in self.items]
            answers = [(item, truth) for item, truth in meant if truth is not None]
            if len(answers) != 1:
                raise InvalidParameter(self._what_is_wrong(text, cuts, len(answers)))
            ((item, truth),) = answers
            if found.setdefault(item, truth) != truth:
                raise InvalidParameter(f"an item has one truth, got two for {str(item)!r}; give one of them")
        return found

    def _what_is_wrong(self, text: str, cuts: Sequence[tuple[str, str]], n_meant: int) -> str:
        from trueup._base.validation import preview

        if not cuts:
            return f"answers must be written ITEM=CLASS, got {text!r}; put the item before the class"
        if n_meant:
            return f"{text!r} can be read in several ways, got {n_meant} of them; give the answers with --from FILE"
        item, name = next((cut for cut in reversed(cuts) if cut[0] in self.items), (None, ""))
        if item is None:
            return f"there is no item {cuts[0][0]!r} in the votes, got {text!r}; use the names that 'vet ask' gave"
        classes = preview(list(self.classes), most=10)
        return f"the truth of {item!r} must be one of the classes {classes}, got {name!r}; use one of them"

    def read(self, source: str, *, item: str, truth: str, question: str | None = None) -> dict[Hashable, Hashable]:
        """Answers from a file, or from the export of a tool; rows without one are left out."""
        from trueup.adapters import export_format, read_export
        from trueup.data.files import open_table
        from trueup.data.gold import gold_from

        tool = export_format(source_of(source), item=item)
        answers: Mapping[Hashable, Hashable]
        if tool is not None:
            answers = read_export(source, file_format=tool, question=question).vetted()
            empty = f"an export of {tool} that nobody answered; check the tasks"
        else:
            with open_table(source_of(source)) as table:
                answers = gold_from(table, item, truth, drawn="chosen", missing=[None], labels=self.labels)
            empty = f"an empty column {truth!r}; fill it in and save the file"
        if not answers:
            raise InvalidFile(f"{source!r} has no answers, got {empty}")
        meant = {name: self._class(str(answer)) for name, answer in answers.items()}
        return {plain_cell(name, self.items): answers[name] if c is None else c for name, c in meant.items()}


def begin(
    location: Location,
    votes: str,
    predictions: Sequence[str],
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
) -> Vetting:
    """A new session on these files."""
    from trueup.active import ActiveTest

    roles = {"votes": votes} | {role: path for role in _OTHER_FILES if (path := getattr(how, role)) is not None}
    roles |= {f"predictions {k + 1}": path for k, path in enumerate(predictions)}
    files = {role: KnownFile.of(Path(path), location) for role, path in roles.items()}
    labels, systems, positive = read_both(votes, predictions, how, how_predicted)
    for what, names in (("item", labels.items.tolist()), ("class", labels.classes.tolist())):
        odd = next((name for name in names if not isinstance(name, str | int | float)), None)
        if odd is not None:  # a session is JSON, which has text and numbers only
            raise InvalidFile(
                f"every {what} of a session must be text or a number, got {odd!r:.60}; write them as text"
            )
    test = ActiveTest(systems, labels, **all_settings(settings, labels, how, positive), **location.made_with())
    reading = {"votes": asdict(how), "predictions": asdict(how_predicted)}
    file = SessionFile(files, reading, json.loads(test.to_json()))
    return Vetting(location, file, labels, list(systems.systems.tolist()), test)


def all_settings(
    settings: SessionOptions, labels: Labels, how: VoteOptions, positive: Hashable | None
) -> dict[str, Any]:
    """The settings of a new session, as `ActiveTest` takes them."""
    named = settings.named | given(positive=positive)
    if settings.categories is not None:
        from trueup.data.files import open_table
        from trueup.data.gold import gold_from

        with open_table(source_of(settings.categories)) as table:
            categories = gold_from(table, how.item, "category", drawn="chosen", missing=(), labels=labels)
        # As text, and kept in the session file itself.
        named["categories"] = {name: str(category) for name, category in categories.items()}
    return {**named, **parse_pairs(settings.option or [], option="--option")}


def resume(
    location: Location,
    settings: SessionOptions | None = None,
    how: VoteOptions | None = None,
    how_predicted: PredictionOptions | None = None,
    *,
    files: Sequence[str] = (),
    into: StoredLocation | None = None,
) -> Vetting:
    """A session as it was left; its files must be as they were, and its log is read into another location if wished."""
    from trueup.active import ActiveTest

    file = location.load()
    paths = {role: str(known.find(location)) for role, known in file.files.items()}
    roles = [role for role in paths if role.startswith("predictions")]
    again = [KnownFile.of(Path(path), location).sha256 for path in files]
    known = [file.files[role].sha256 for role in ("votes", *roles)]
    if again not in ([], known[:1], known):
        raise InvalidParameter(
            f"the files of a session are fixed when it begins, got others for {location}; leave them out, or "
            "name a new session"
        )
    try:
        stored = VoteOptions(**file.reading["votes"]), PredictionOptions(**file.reading["predictions"])
    except (KeyError, TypeError) as error:
        raise InvalidFile(f"{location} is damaged, got no way to read its files; begin a new one") from error
    for now, before in zip((how, how_predicted), stored, strict=True):
        if now is not None and now not in (type(now)(), before):
            raise InvalidParameter(
                f"how files are read is fixed when a session begins, got other options for {location}; begin a new "
                "session"
            )
    other_files: dict[str, Any] = {role: paths[role] for role in _OTHER_FILES if role in paths}
    predictions = [paths[role] for role in roles]
    labels, systems, _ = read_both(paths["votes"], predictions, replace(stored[0], **other_files), stored[1])
    changed = {} if settings is None else _changed(location, settings, file.test.get("settings", {}))
    try:
        test = ActiveTest.from_json(json.dumps(file.test), systems, labels, **changed, **(into or location).made_with())
    except (TypeError, KeyError) as error:
        raise InvalidFile(f"{location} is damaged, got {error!s:.80}; begin a new session") from error
    reasons = {item: why for item, why in file.reasons if isinstance(item, Hashable)}
    return Vetting(location, file, labels, list(systems.systems.tolist()), test, reasons)


def _changed(location: Location, settings: SessionOptions, was: Mapping[str, Any]) -> dict[str, Any]:
    """The rules of stopping that are new; an error where another setting differs."""
    from trueup.active.session import STOPPING

    named = settings.named
    fixed = [name for name, value in named.items() if name not in STOPPING and was.get(name) != value]
    fixed += [name for name in ("categories", "option") if getattr(settings, name)]
    if fixed:
        flag = "--seed" if fixed[0] == "random_state" else "--" + fixed[0].replace("_", "-")
        raise InvalidParameter(
            f"{flag} is fixed when a session begins, got another for {location}; begin a new session"
        )
    return {name: value for name, value in named.items() if name in STOPPING}
