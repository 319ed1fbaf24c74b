"""A session whose log is kept in a storage: the first process makes it, the others join it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from trueup._base.optional import require
from trueup._base.validation import RandomState, seed_of
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter, StorageError
from trueup.sessions.log import Event, plain_name, read_name
from trueup.sessions.session import Session
from trueup.storage.base import SessionKind, Storage


def _database(purpose: str) -> Any:
    """The module of databases, or which extra is missing for it."""
    for module in ("sqlalchemy", "alembic"):
        require(module, purpose=purpose)
    from trueup.storage.database import storage

    return storage


def open_storage(url: str | Storage, *, create: bool = True) -> Storage:
    """The storage at a URL; an empty database gets its tables.

    Parameters
    ----------
    url : str or Storage
        ``sqlite:///test.db`` (three slashes and a path, four for an absolute one) or
        ``postgresql://user@host/database``. A storage is returned as it is. ``?journal=rollback`` keeps a rollback
        journal where SQLite would keep a write-ahead log.
    create : bool
        Whether a file that is not there is made, and an empty database gets its tables; else that is an error.

    Raises
    ------
    StorageError
        The database is of another version of trueup, on a network file system, or cannot be opened.
    """
    if not isinstance(url, str):
        return url
    opened: Storage = _database("a storage of sessions").DatabaseStorage(url, create=create)
    return opened


def back_up(url: str, path: str | PathLike[str]) -> None:
    """Write a whole storage to a new file of SQLite, also that of a server; others may go on writing.

    Parameters
    ----------
    path : path. Must not exist, and have no question mark. It is a storage itself: ``sqlite:///`` and the path open it.
    """
    _database("a backup").back_up(url, Path(path))


def copy_storage(source: str, target: str) -> int:
    """Copy all sessions of a storage into an empty database, from SQLite to PostgreSQL or back.

    Parameters
    ----------
    source, target : str. URLs.

    Returns
    -------
    int
        How many sessions there are.
    """
    n_sessions: int = _database("a copy of a storage").copy_database(source, target)
    return n_sessions


def upgrade(url: str, *, backup: str | PathLike[str] | None = None) -> Path | None:
    """Bring a storage that an older trueup made to the schema of this one, after a backup.

    Parameters
    ----------
    backup : path, optional
        Where the backup is written; by default beside the database, or for a server in the current folder.

    Returns
    -------
    Path or None
        The backup; None if there was nothing to do.
    """
    made: Path | None = _database("an upgrade").upgrade(url, None if backup is None else Path(backup))
    return made


def fingerprint(*parts: Any) -> str:
    """The SHA-256 of arrays, sparse matrices, data frames, names and numbers; alike on every machine."""
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, part: Any) -> None:
    if part is None or isinstance(part, str):
        digest.update(f"{type(part).__name__} {part!r};".encode())
        return
    if sparse.issparse(part):
        matrix: Any = part
        table = matrix.tocsr(copy=True)
        table.sum_duplicates()
        _add(digest, np.asarray(table.shape))
        for array in (table.indptr, table.indices, table.data):
            _add(digest, array)
        return
    array = np.asarray(part)
    if array.dtype.kind in "iub":
        array = array.astype("<i8")  # platforms differ in their default
    elif array.dtype.kind == "f":
        array = array.astype("<f8") + 0.0  # without negative zeros
    else:
        names = "\0".join(map(repr, array.ravel().tolist()))
        digest.update(f"names {array.shape};{names};".encode(errors="surrogatepass"))
        return
    digest.update(f"{array.dtype.kind} {array.shape};".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


def of_votes(labels: Labels) -> str:
    """Of items, labelers, classes, votes and gold."""
    names = labels.items.tolist(), labels.labelers.tolist(), labels.classes.tolist()
    return fingerprint(*map(_objects, names), *labels.vote_table(), labels.gold_codes)


def of_predictions(aligned: AlignedPredictions) -> str:
    """Of what systems say of the items of the votes."""
    names = _objects(aligned.systems.tolist())
    return fingerprint(names, aligned.codes, aligned.scores, aligned.probabilities)


def _objects(names: list[Any]) -> Any:
    """Names one by one: an array of its own choice would make text of numbers, and tables of tuples."""
    column = np.empty(len(names), dtype=object)
    column[:] = names
    return column


SomeSession = TypeVar("SomeSession", bound=Session)


class StoredLog:
    """The log of one session in a storage."""

    def __init__(self, storage: str | Storage | None, name: str | None) -> None:
        if storage is None or not isinstance(name, str) or not name:
            raise InvalidParameter(
                f"a stored session needs both `storage` and `name`, got storage={storage!r} and name={name!r}; pass "
                "`storage='sqlite:///test.db'` and `name='q3'`",
                parameter="name" if storage is not None else "storage",
            )
        self.storage = open_storage(storage)
        self.name = name

    def seed(self, random_state: RandomState) -> int:
        """The seed of a session: of the one that is there, where none is asked for."""
        record = self.storage.find(self.name) if random_state is None else None
        return seed_of(random_state) if record is None else int(record.settings["random_state"])

    def join(
        self, session: Session, kind: SessionKind, fingerprints: Mapping[str, str], *, stopping: Sequence[str]
    ) -> None:
        """Make the session in the storage, or go on with it if it is the same one; then read its log."""
        check_names("item", session.labels.items.tolist())
        check_names("class", session.labels.classes.tolist())
        settings, options = session.settings_as_json()
        record = self.storage.create(self.name, kind, settings, options=options, fingerprints=fingerprints)
        where = f"session {self.name!r} in {self.storage.url}"
        if record.kind != kind:
            raise StorageError(f"{where} must be of the kind {kind!r}, got {record.kind!r}; name another session")
        changed = [role for role, mark in fingerprints.items() if record.fingerprints.get(role, mark) != mark]
        if changed:
            raise StorageError(
                f"the {' and the '.join(changed)} of {where} must be as they were when it began, got others; pass the "
                "old ones, or name a new session"
            )
        others = {
            name: value
            for name, value in settings.items()
            if name not in stopping and record.settings.get(name, value) != value  # an old session lacks new settings
        }
        if record.options != options:
            others["options"] = options
        if others:
            name, value = next(iter(others.items()))
            before = record.options if name == "options" else record.settings[name]
            raise StorageError(
                f"`{name}` of {where} is fixed when it begins, which was {before!r:.60}, got {value!r:.60}; leave it "
                "so, or name a new session",
            )
        said = {name: settings[name] for name in stopping if settings[name] is not None}
        if any(record.settings[name] != value for name, value in said.items()):
            record = self.storage.change(self.name, settings=said)
        for name in stopping:
            setattr(session, name, record.settings[name])
        session.follow(self)

    def read(self, since: int) -> list[Event]:
        """The events after the first `since`."""
        return self.storage.events(self.name, since=since)

    def append(self, events: Sequence[Event], after: int) -> list[Event] | None:
        """Add events to the first `after`; None if others have written since."""
        return self.storage.append(self.name, events, after=after)


def open_session(kind: type[SomeSession], storage: str | Storage, name: str, *data: Any, **changed: Any) -> SomeSession:
    """A session of a storage, with the settings that it was made with.

    Parameters
    ----------
    kind : type. `ActiveTest` or `CleaningAdvisor`.
    *data
        What the session was made with at first: its arguments that are passed by position.
    **changed
        Rules of stopping that are to be others, and settings that text cannot hold.
    """
    opened = open_storage(storage)
    record = opened.open(name)
    return kind.from_settings(record.settings, record.options, *data, storage=opened, name=name, **changed)


def check_names(what: str, names: Sequence[Any]) -> None:
    """A log is JSON, from which names must come back as they are."""
    try:
        back = read_name(json.loads(json.dumps(names, default=plain_name)))
    except (TypeError, ValueError):
        if len(names) > 1:  # which one is it?
            for name in names:
                check_names(what, [name])
        back = [None for _ in names]
    odd = next((name for name, other in zip(names, back, strict=True) if name != other), None)
    if odd is not None:
        raise InvalidParameter(
            f"every {what} of a stored session must be text, a number or a tuple of these, got {odd!r:.60}; name "
            "them so"
        )
