"""`trueup storage`: look after the databases that sessions are kept in."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._app import add_to
from trueup.cli._console import json_head, note, print_json, print_table, say, shown
from trueup.cli._options import AsJson, option
from trueup.exceptions import InvalidFile, StorageError

if TYPE_CHECKING:
    from trueup.storage import Storage

app = typer.Typer(
    help="Look after the databases that sessions are kept in: what is in them, backups, copies, upgrades, files, "
    "and people who want to be forgotten. A URL is sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    no_args_is_help=True,
)

Url = Annotated[str, typer.Argument(metavar="URL", show_default=False, help="The storage.")]
Name = Annotated[str, option("--name", "Of the session.", metavar="NAME", show_default=False)]


def _open(url: str) -> Storage:
    """A storage that is there."""
    from trueup.storage import open_storage

    return open_storage(url, create=False)


@add_to(app, "list")
def list_sessions(url: Url, as_json: AsJson = False) -> None:
    """The sessions of a storage, and how it is kept."""
    with closing(_open(url)) as storage:
        records, notes = storage.sessions(), storage.notes
        answers = [_n_answers(storage, record.name) for record in records]
        place = storage.url
    if as_json:
        rows = [
            {
                "name": record.name,
                "kind": record.kind,
                "answers": n,
                "events": record.n_events,
                "created": record.created,
                "paused": record.paused,
            }
            for record, n in zip(records, answers, strict=True)
        ]
        print_json(
            {**json_head(seed=None, files={}), "storage": place, "notes": notes, "sessions": rows, "findings": []}
        )
        return
    if records:
        print_table(
            (("session", "left"), ("kind", "left"), "answers", ("begun", "left"), ("", "left")),
            [
                (shown(record.name), record.kind, n, _day(record.created), "paused" if record.paused else "")
                for record, n in zip(records, answers, strict=True)
            ],
        )
    else:
        say(f"{place} has no sessions.")
    for line in notes:
        note(line)


def _n_answers(storage: Storage, name: str) -> int:
    """Items with an answer."""
    return len({event.item for event in storage.events(name) if event.kind == "tell"})


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


@add_to(app)
def upgrade(
    url: Url,
    backup: Annotated[
        Path | None,
        option("--backup", "Where the backup goes; by default beside the database.", metavar="FILE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring a storage that an older trueup made to the schema of this one; a backup is made first."""
    from trueup.storage import upgrade as upgrade_storage

    path = upgrade_storage(url, backup=backup)
    if as_json:
        _print_record({"backup": None if path is None else str(path)})
    elif path is None:
        say("Nothing to do: the storage has the newest schema.")
    else:
        say(f"Upgraded. What it was before is in {path}.")


@add_to(app)
def backup(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A new file of SQLite.")],
    as_json: AsJson = False,
) -> None:
    """Write a whole storage to a new file, also that of a server; others may go on working."""
    from trueup.storage import back_up

    back_up(url, file)
    _done({"backup": str(file)}, f"Wrote {file}.", as_json=as_json)


@add_to(app)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="What 'storage backup' wrote.")],
    url: Url,
    as_json: AsJson = False,
) -> None:
    """Put a backup into an empty database; nothing that is there is replaced."""
    from trueup._base.writing import check_readable
    from trueup.storage import copy_storage
    from trueup.storage.base import url_of_file

    check_readable(file)
    n = copy_storage(url_of_file(file), url)
    _done({"sessions": n}, f"Sessions restored: {n}.", as_json=as_json)


@add_to(app)
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", show_default=False, help="URL of the storage.")],
    target: Annotated[str, typer.Argument(metavar="TO", show_default=False, help="URL of an empty database.")],
    as_json: AsJson = False,
) -> None:
    """Copy all sessions into an empty database, from SQLite to PostgreSQL or back."""
    from trueup.storage import copy_storage

    n = copy_storage(source, target)
    _done({"sessions": n}, f"Sessions copied: {n}.", as_json=as_json)


@add_to(app)
def forget(
    url: Url,
    person: Annotated[str, typer.Argument(metavar="PERSON", show_default=False, help="As in the log.")],
    as_json: AsJson = False,
) -> None:
    """Replace a person's name in all sessions by a neutral one, and end their access; the log stays.

    Backups keep the name: make new ones, and remove the old.
    """
    with closing(_open(url)) as storage:
        n = storage.forget(person)
    _done({"events": n}, f"Events whose name was replaced: {n}. Older backups still have the name.", as_json=as_json)


@add_to(app, "import")
def import_file(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="SESSION", show_default=False, help="A file of 'trueup vet'.")],
    *,
    name: Name,
    as_json: AsJson = False,
) -> None:
    """Read a session file of 'trueup vet' into a storage, where it goes on; the file stays as it is."""
    from trueup.cli._places import ImportedPlace, StoredPlace
    from trueup.cli._vetting import resume

    into = StoredPlace(url, name, create=True)
    if into.storage.find(name) is not None:
        raise StorageError(
            f"a session file is read into a new session, got {into}, which is there; give another --name"
        )
    place = ImportedPlace(file, into)
    with place.turn():
        vetting = resume(place)
        vetting.save()
    n = len(vetting.test.log)
    _done({"events": n}, f"Events read: {n}. Go on with 'trueup vet ask {into.words}'.", as_json=as_json)


@add_to(app)
def export(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="SESSION", show_default=False, help="A new file.")],
    *,
    name: Name,
    as_json: AsJson = False,
) -> None:
    """Write a session that began on the command line to a session file of 'trueup vet'."""
    import json
    from dataclasses import replace

    from trueup.cli._places import FilePlace, StoredPlace
    from trueup.sessions.log import session_to_json

    stored, place = StoredPlace(url, name, create=False), FilePlace(file)
    if place.exists():
        raise InvalidFile(f"{place} must not exist yet, got a file; name another")
    with closing(stored.storage) as storage:
        session, events = stored.load(), storage.events(name)
    test = json.loads(session_to_json(session.test["settings"], session.test["options"], events))
    place.save(replace(session.seen_from(stored, place), test=test))
    _done({"events": len(events)}, f"Events written: {len(events)}.", as_json=as_json)


def _done(record: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    if as_json:
        _print_record(record)
    else:
        say(sentence)


def _print_record(record: dict[str, Any]) -> None:
    print_json({**json_head(seed=None, files={}), **record, "findings": []})
