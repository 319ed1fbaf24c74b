"""Where a vetting session is kept: in a file of its own, or under a name in a storage that several processes share."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.locking import locked
from trueup._base.writing import write_text_safely
from trueup.cli._files import STANDARD_INPUT, fingerprint, is_pipe
from trueup.cli._options import opt
from trueup.exceptions import InvalidFile, InvalidParameter, MissingFile, SessionMissing

if TYPE_CHECKING:
    from trueup.storage import Storage

_FORMAT, _VERSION = "trueup vet", 1


@dataclass(frozen=True)
class StorageOptions:
    """Where the session is kept, in place of a session file."""

    storage: str | None = opt(None, "URL of a database, such as sqlite:///test.db; then no SESSION.", "URL")
    name: str | None = opt(None, "Of the session in the storage.", "NAME")


@dataclass(frozen=True)
class FilePlace:
    """A session in a file of its own."""

    path: Path
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """How a command names it."""
        return str(self.path)

    @property
    def folder(self) -> Path | None:
        """Where other files are seen from: the session's folder, so that it can be moved."""
        return self.path.resolve().parent

    @property
    def made_with(self) -> dict[str, Any]:
        """What a session is made with beside its data: nothing, its log is in memory until it is saved."""
        return {}

    def __str__(self) -> str:
        return repr(str(self.path))

    def turn(self) -> AbstractContextManager[None]:
        """Hold the session for as long as it is read, changed and written; another command waits."""
        return locked(self.path)

    def exists(self) -> bool:
        """Whether a session has begun."""
        return self.path.exists()

    def load(self) -> SessionFile:
        """What it rests on and was made with, and its log."""
        return SessionFile.load(self.path)

    def save(self, session: SessionFile) -> None:
        """Write the file, whole or not at all."""
        session.save(self.path)


@dataclass(frozen=True)
class StoredPlace:
    """A session in a storage, whose log is written there as it grows."""

    url: str
    name: str
    create: bool

    @cached_property
    def storage(self) -> Storage:
        """The storage, opened when it is first needed."""
        from trueup.storage import open_storage

        return open_storage(self.url, create=self.create)

    @property
    def words(self) -> str:
        """How a command names it: the two options."""
        return f"--storage {self.url} --name {self.name}"

    @property
    def folder(self) -> Path | None:
        """None: a database is seen from anywhere."""
        return None

    @property
    def made_with(self) -> dict[str, Any]:
        """The storage and the name."""
        return {"storage": self.storage, "name": self.name}

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the storage: which journal it keeps, and why."""
        return self.storage.notes

    def __str__(self) -> str:
        return f"{self.name!r} in {self.storage.url}"

    def turn(self) -> AbstractContextManager[None]:
        """The database keeps several writers apart."""
        return nullcontext()

    def exists(self) -> bool:
        """Whether there is a session that knows its files; one that was cut off while it began does not."""
        record = self.storage.find(self.name)
        return record is not None and "files" in record.source

    def load(self) -> SessionFile:
        """What it rests on and was made with; the log stays in the storage."""
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
        """Keep the files that it rests on; everything else is kept already."""
        source = {name: asdict(session)[name] for name in ("files", "reading")}
        if self.storage.open(self.name).source != source:
            self.storage.change(self.name, source=source)


@dataclass(frozen=True)
class ImportedPlace(FilePlace):
    """A file whose log is read into a storage, where the session goes on."""

    into: StoredPlace = field(kw_only=True)

    @property
    def made_with(self) -> dict[str, Any]:
        """The storage and the name."""
        return self.into.made_with

    def save(self, session: SessionFile) -> None:
        """Keep it in the storage; the file stays as it is."""
        self.into.save(session.seen_from(self, self.into))


Place = FilePlace | StoredPlace


def place_of(
    session: str | None, kept: StorageOptions, *rest: str | None, create: bool = False
) -> tuple[Place, list[str]]:
    """Where the session is kept, and the words that follow; in a storage there is no session file among them.

    Examples
    --------
    >>> place, words = place_of("session.json", StorageOptions(), "votes.csv", None)
    >>> place.words, words
    ('session.json', ['votes.csv'])
    >>> place, words = place_of("votes.csv", StorageOptions("sqlite:///test.db", "q3"), "predictions.csv")
    >>> place.words, words
    ('--storage sqlite:///test.db --name q3', ['votes.csv', 'predictions.csv'])
    """
    words = [word for word in (session, *rest) if word is not None]
    if kept.storage is not None and kept.name is not None:
        return StoredPlace(kept.storage, kept.name, create), words
    if kept.storage is not None or kept.name is not None:
        raise InvalidParameter("a session in a storage needs both --storage and --name, got one of them; give both")
    if not words:
        raise InvalidParameter("a session is named by its file or by --storage and --name, got neither; name the file")
    return FilePlace(Path(words[0])), words[1:]


@dataclass(frozen=True)
class KnownFile:
    """A file that a session rests on: where it lies, seen from the session's folder, and what was in it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path, place: Place) -> KnownFile:
        """The file as it is now."""
        if is_pipe(str(path)):
            pipe = "standard input" if str(path) == STANDARD_INPUT else f"the pipe {str(path)!r}"
            raise InvalidFile(f"a session must find its files again, got {pipe}; save it to a file and name that")
        return cls(_seen_from(path, place.folder), _fingerprint(path))

    def find(self, place: Place) -> Path:
        """Where the file lies now; an error if its content is another one."""
        path = (place.folder or Path()) / self.path
        if not path.exists():
            raise MissingFile(
                f"{place} rests on {str(path)!r}, got no such file; put it back there, or start a new session"
            )
        if _fingerprint(path) != self.sha256:
            raise InvalidFile(
                f"{str(path)!r} must be as it was when the session {place} began, got other content; "
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
        files, reasons = record.get("files"), record.get("reasons", [])
        is_whole = (
            isinstance(files, dict)
            and "votes" in files
            and all(isinstance(known, dict) for known in files.values())
            and all(isinstance(known.get(part), str) for known in files.values() for part in ("path", "sha256"))
            and all(isinstance(record.get(part), dict) for part in ("reading", "test"))
            and isinstance(reasons, list)
            and all(isinstance(pair, list) and len(pair) == 2 for pair in reasons)
        )
        if not is_whole:
            return None
        known_files = {role: KnownFile(known["path"], known["sha256"]) for role, known in record["files"].items()}
        return cls(known_files, record["reading"], record["test"], reasons)

    def seen_from(self, place: Place, other: Place) -> SessionFile:
        """The same with its files seen from another place."""
        files = {
            role: replace(known, path=_seen_from((place.folder or Path()) / known.path, other.folder))
            for role, known in self.files.items()
        }
        return replace(self, files=files)

    def save(self, path: Path) -> None:
        """Write it whole or not at all."""
        record = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        write_text_safely(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> SessionFile:
        """Read it back, or say in one sentence why not."""
        if not path.exists():
            raise MissingFile(
                f"there is no session {str(path)!r}, got no such file; begin one with `trueup vet start` or "
                "`trueup vet ask SESSION VOTES PREDICTIONS`"
            )
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidFile(f"{str(path)!r} cannot be read, got {error!s:.100}; name a session file") from error
        except (ValueError, RecursionError) as error:
            raise InvalidFile(f"{str(path)!r} is no session, got {error!s:.100}; name a session file") from error
        session = cls.of(record) if isinstance(record, dict) and record.get("format") == _FORMAT else None
        if session is None:
            raise InvalidFile(f"{str(path)!r} is no session of `trueup vet`, got other JSON; name a session file")
        if record.get("version") != _VERSION:
            raise InvalidFile(
                f"{str(path)!r} must be of version {_VERSION}, got {record.get('version')!r}; use the trueup that "
                "wrote it"
            )
        return session


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
