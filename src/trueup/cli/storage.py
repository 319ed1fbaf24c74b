"""`trueup storage`: look after the databases that sessions are kept in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._command import Answer, add_to
from trueup.cli._console import note, print_records, say
from trueup.cli._options import Option, arg, opt
from trueup.exceptions import InvalidFile, StorageError

if TYPE_CHECKING:
    from trueup.storage import Storage

app = typer.Typer(
    help="Look after the databases that sessions are kept in: what is in them, backups, copies, upgrades, files, "
    "and people who want to be forgotten. A URL is sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    no_args_is_help=True,
)

Url = Annotated[str, Option("The storage.", "URL", is_argument=True)]
Name = Annotated[str, Option("Of the session.", "NAME")]


def _open(url: str) -> Storage:
    """A storage that is there."""
    from trueup.storage import open_storage

    return open_storage(url, create=False)


def _done(sentence: str, **record: Any) -> Answer:
    """What a command has done."""
    return Answer(record, lambda _: say(sentence))


@add_to(app, "list")
def list_sessions(url: Url) -> Answer:
    """The sessions of a storage, and how it is kept."""
    with closing(_open(url)) as storage:
        rows = [
            {
                "name": record.name,
                "kind": record.kind,
                "answers": len({event.item for event in storage.events(record.name) if event.kind == "tell"}),
                "events": record.n_events,
                "created": record.created,
                "paused": record.paused,
            }
            for record in storage.sessions()
        ]
        body = {"storage": storage.url, "notes": storage.notes, "sessions": rows}

    def show(body: Mapping[str, Any]) -> None:
        columns: dict[Any, Any] = {"session": "name", ("kind", "left"): "kind", "answers": "answers"}
        columns[("begun", "left")] = lambda row: f"{datetime.fromtimestamp(row['created'], tz=UTC):%Y-%m-%d %H:%M UTC}"
        columns[("", "left")] = lambda row: "paused" if row["paused"] else ""
        if rows:
            print_records(columns, rows)
        else:
            say(f"{body['storage']} has no sessions.")
        for sentence in body["notes"]:
            note(sentence)

    return Answer(body, show)


@add_to(app)
def upgrade(
    url: Url, backup: Path | None = opt(None, "Where the backup goes; by default beside the database.", "FILE")
) -> Answer:
    """Bring a storage that an older trueup made to the schema of this one; a backup is made first."""
    from trueup.storage import upgrade as upgrade_storage

    path = upgrade_storage(url, backup=backup)
    if path is None:
        return _done("Nothing to do: the storage has the newest schema.", backup=None)
    return _done(f"Upgraded. What it was before is in {path}.", backup=str(path))


@add_to(app)
def backup(url: Url, file: Path = arg(..., "FILE", "A new file of SQLite.")) -> Answer:
    """Write a whole storage to a new file, also that of a server; others may go on working."""
    from trueup.storage import back_up

    back_up(url, file)
    return _done(f"Wrote {file}.", backup=str(file))


@add_to(app)
def restore(file: Annotated[str, Option("What 'storage backup' wrote.", "FILE", is_argument=True)], url: Url) -> Answer:
    """Put a backup into an empty database; nothing that is there is replaced."""
    from trueup._base.writing import check_readable
    from trueup.storage import copy_storage
    from trueup.storage.base import url_of_file

    n = copy_storage(url_of_file(check_readable(file)), url)
    return _done(f"Sessions restored: {n}.", sessions=n)


@add_to(app)
def copy(
    source: str = arg(..., "FROM", "URL of the storage."), target: str = arg(..., "TO", "URL of an empty database.")
) -> Answer:
    """Copy all sessions into an empty database, from SQLite to PostgreSQL or back."""
    from trueup.storage import copy_storage

    n = copy_storage(source, target)
    return _done(f"Sessions copied: {n}.", sessions=n)


@add_to(app)
def forget(url: Url, person: str = arg(..., "PERSON", "As in the log.")) -> Answer:
    """Replace a person's name in all sessions by a neutral one, and end their access; the log stays.

    Backups keep the name: make new ones, and remove the old.
    """
    with closing(_open(url)) as storage:
        n = storage.forget(person)
    return _done(f"Events whose name was replaced: {n}. Older backups still have the name.", events=n)


@add_to(app, "import")
def import_file(url: Url, file: Path = arg(..., "SESSION", "A file of 'trueup vet'."), *, name: Name) -> Answer:
    """Read a session file of 'trueup vet' into a storage, where it goes on; the file stays as it is."""
    from trueup.cli._vetting import ImportedPlace, StoredPlace, resume

    into = StoredPlace(url, name, create=True)
    if into.storage.find(name) is not None:
        raise StorageError(f"a session file is read into a new session, got {into}, which exists; give another --name")
    place = ImportedPlace(file, into=into)
    with place.turn():
        vetting = resume(place)
        vetting.save()
    n = len(vetting.test.log)
    return _done(f"Events read: {n}. Go on with 'trueup vet ask {into.words}'.", events=n)


@add_to(app)
def export(url: Url, file: Path = arg(..., "SESSION", "A new file."), *, name: Name) -> Answer:
    """Write a session that began on the command line to a session file of 'trueup vet'."""
    import json
    from dataclasses import replace

    from trueup.cli._vetting import FilePlace, StoredPlace
    from trueup.sessions.log import session_to_json

    stored, place = StoredPlace(url, name, create=False), FilePlace(file)
    if place.exists():
        raise InvalidFile(f"{place} must not exist yet, got a file; name another")
    with closing(stored.storage) as storage:
        session, events = stored.load(), storage.events(name)
    test = json.loads(session_to_json(session.test["settings"], session.test["options"], events))
    place.save(replace(session.seen_from(stored, place), test=test))
    return _done(f"Events written: {len(events)}.", events=len(events))
