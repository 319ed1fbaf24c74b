"""trueup storage and monitor: the databases that sessions are kept in, and batches over time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._command import Answer, add_to
from trueup.cli._console import note, print_records, progress_bar, say, shown
from trueup.cli._files import about_files, class_named, one_system, read_systems, read_votes, without_predictions
from trueup.cli._options import Option, arg, given, opt
from trueup.cli._vetting import FileLocation, Location, StorageOptions, StoredLocation, location_of, resume
from trueup.exceptions import InvalidFile, InvalidParameter, MissingFile, StorageError

if TYPE_CHECKING:
    from trueup.monitor import Monitor


storage = typer.Typer(
    help="Look after the databases that sessions are kept in: what is in them, backups, copies, upgrades, files, "
    "and people who want to be forgotten. A URL is sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    no_args_is_help=True,
)

Url = Annotated[str, Option("The storage.", "URL", is_argument=True)]
Name = Annotated[str, Option("Of the session.", "NAME")]


def _done(sentence: str, **record: Any) -> Answer:
    """What a command has done."""
    return Answer(record, lambda _: say(sentence))


@add_to(storage, "list")
def list_sessions(url: Url) -> Answer:
    """The sessions of a storage, and how it is kept."""
    from trueup.storage import open_storage

    with closing(open_storage(url, create=False)) as storage:
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

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"session": "name", ("kind", "left"): "kind", "answers": "answers"}
        columns[("begun", "left")] = lambda row: f"{datetime.fromtimestamp(row['created'], tz=UTC):%Y-%m-%d %H:%M UTC}"
        columns[("", "left")] = lambda row: "paused" if row["paused"] else ""
        if rows:
            print_records(columns, rows)
        else:
            say(f"{body['storage']} has no sessions.")
        for sentence in storage.notes:
            note(sentence)

    return Answer(body, show)


@add_to(storage)
def upgrade(
    url: Url, backup: Path | None = opt(None, "Where the backup goes; by default beside the database.", "FILE")
) -> Answer:
    """Bring a storage that an older trueup made to the schema of this one; a backup is made first."""
    from trueup.storage import upgrade as upgrade_storage

    path = upgrade_storage(url, backup=backup)
    if path is None:
        return _done("Nothing to do: the storage has the newest schema.", backup=None)
    return _done(f"Upgraded. What it was before is in {path}.", backup=str(path))


@add_to(storage)
def backup(url: Url, file: Path = arg(..., "FILE", "A new file of SQLite.")) -> Answer:
    """Write a whole storage to a new file, also that of a server; others may go on working."""
    from trueup.storage import back_up

    back_up(url, file)
    return _done(f"Wrote {file}.", backup=str(file))


@add_to(storage)
def restore(file: Annotated[str, Option("What 'storage backup' wrote.", "FILE", is_argument=True)], url: Url) -> Answer:
    """Put a backup into an empty database; nothing that is there is replaced."""
    from trueup._base.writing import check_readable
    from trueup.storage import copy_storage
    from trueup.storage.base import url_of_file

    n = copy_storage(url_of_file(check_readable(file)), url)
    return _done(f"Sessions restored: {n}.", sessions=n)


@add_to(storage)
def copy(
    source: str = arg(..., "FROM", "URL of the storage."), target: str = arg(..., "TO", "URL of an empty database.")
) -> Answer:
    """Copy all sessions into an empty database, from SQLite to PostgreSQL or back."""
    from trueup.storage import copy_storage

    n = copy_storage(source, target)
    return _done(f"Sessions copied: {n}.", sessions=n)


@add_to(storage)
def forget(url: Url, person: str = arg(..., "PERSON", "As in the log.")) -> Answer:
    """Replace a person's name in all sessions by a neutral one, and end their access; the log stays.

    Backups keep the name: make new ones, and remove the old.
    """
    from trueup.storage import open_storage

    with closing(open_storage(url, create=False)) as storage:
        n = storage.forget(person)
    return _done(f"Events whose name was replaced: {n}. Older backups still have the name.", events=n)


@add_to(storage, "import")
def import_file(url: Url, file: Path = arg(..., "SESSION", "A file of 'trueup vet'."), *, name: Name) -> Answer:
    """Read a session file of 'trueup vet' into a storage, where it goes on; the file stays as it is."""
    into = StoredLocation(url, name, create=True)
    if into.storage.find(name) is not None:
        raise StorageError(f"a session file is read into a new session, got {into}, which exists; give another --name")
    location = FileLocation(file)
    with location.turn():
        vetting = resume(location, into=into)
        into.save(vetting.session.seen_from(location, into))
    n = len(vetting.test.log)
    return _done(f"Events read: {n}. Go on with 'trueup vet ask {into.words}'.", events=n)


@add_to(storage)
def export(url: Url, file: Path = arg(..., "SESSION", "A new file."), *, name: Name) -> Answer:
    """Write a session that began on the command line to a session file of 'trueup vet'."""
    from trueup.sessions.log import session_to_json

    stored, location = StoredLocation(url, name, create=False), FileLocation(file)
    if location.exists():
        raise InvalidFile(f"{location} must not exist yet, got a file; name another")
    with closing(stored.storage) as storage:
        session, events = stored.load(), storage.events(name)
    test = json.loads(session_to_json(session.test["settings"], session.test["options"], events))
    location.save(replace(session.seen_from(stored, location), test=test))
    return _done(f"Events written: {len(events)}.", events=len(events))


monitor = typer.Typer(
    help="Watch a system and its judges over time. WATCH is a file; --storage and --name keep it in a database that "
    "several processes share. With --fail-on-alarm the exit code is 1 while there is an alarm.",
    no_args_is_help=True,
)

Watch = Annotated[str | None, Option("The file of the monitor, such as watch.json.", "WATCH", is_argument=True)]
FailOnAlarm = Annotated[bool, Option("Exit with 1 if there is an alarm.")]


@dataclass(frozen=True)
class BeginningOptions:
    """How a new monitor is made."""

    metric: str | None = opt(None, "What the course shows; accuracy.", "METRIC", "-m")
    of: str | None = opt(None, "Without predictions: the class whose share is followed.", "CLASS")
    baseline: int | None = opt(None, "Batches before the first test; 2.", "N")
    false_alarms: float | None = opt(None, "The chance of any alarm, ever, if nothing changes; 0.05.", "CHANCE")
    random_state: int | None = opt(None, "Seed of all chance; 0.", "SEED", "--seed")
    level: float | None = opt(None, "Probability of the intervals; 0.95.", "LEVEL")


@add_to(monitor)
def add(
    kept: StorageOptions,
    beginning: BeginningOptions,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    words: list[str] = arg(
        ...,
        "[WATCH] VOTES [PREDICTIONS]",
        "The file of the monitor, unless --storage is given; the votes of the batch; its predictions.",
    ),
    when: str = opt(..., "When the batch is of: 2026-11-15, 2026-W47, 2026-11, or a number.", "WHEN"),
    only_system: options.OnlySystem = None,
    fail_on_alarm: FailOnAlarm = False,
) -> Answer:
    """Add a batch of votes, with predictions and checked items (--gold, --gold-drawn random) if there are some.

    The first batch begins the monitor. All batches have predictions, or none and --of.
    """
    location, files = location_of(None, kept, *words, create=True)
    if not 1 <= len(files) <= 2:
        raise InvalidParameter(
            f"a batch is VOTES, or VOTES PREDICTIONS, after the file of the monitor or with --storage, got "
            f"{len(files)} files; name them so"
        )
    labels = read_votes(files[0], votes_how)
    predictions = None
    if len(files) == 2:
        labels = without_predictions(labels, files[0], files[1], predictions_how)
        predictions = one_system(read_systems(files[1], labels, predictions_how, votes_how), only_system)
    settings = asdict(beginning)
    if beginning.of is not None:
        settings["of"] = class_named(labels, beginning.of)
    with _opened(location, may_begin=True, **settings) as monitor:
        monitor.add(labels, predictions, when=when)
    named = dict(zip(("votes", "predictions"), files, strict=False))
    head = {"seed": None, "files": about_files(**named, **given(gold=votes_how.gold))}
    return _answer(monitor, location, head=head, fail_on_alarm=fail_on_alarm)


@add_to(monitor)
def show(
    kept: StorageOptions,
    watch: Watch = None,
    estimates: bool = opt(True, "Estimate the metric where batches were added.", None, "--estimates/--no-estimates"),
    report: options.Report = None,
    fail_on_alarm: FailOnAlarm = False,
) -> Answer:
    """The alarms, the course of the system and the judges."""
    location, _ = location_of(watch, kept)
    with _opened(location, may_begin=False) as monitor:
        if estimates:
            with progress_bar("estimating") as progress:
                monitor.estimate(progress=progress)
    rows = {"course": monitor.course_rows(), "judge_rows": monitor.judge_rows()}
    head = {"seed": monitor.settings["random_state"]}
    found = _answer(monitor, location, head=head, fail_on_alarm=fail_on_alarm)
    return replace(found, body={**found.body, **rows}, show=None, page=monitor.report)


@add_to(monitor)
def restart(
    kept: StorageOptions, watch: Watch = None, why: str | None = opt(None, "Kept in the log.", "TEXT")
) -> Answer:
    """Begin a new baseline with the next batch, after a change that was meant or mended; alarms begin anew."""
    location, _ = location_of(watch, kept)
    with _opened(location, may_begin=False) as monitor:
        monitor.restart(why)
    return Answer(_state(monitor), lambda _: say("The next batch begins a new baseline."))


@contextmanager
def _opened(location: FileLocation | StoredLocation, *, may_begin: bool, **settings: Any) -> Iterator[Monitor]:
    """The monitor of a place; what happens to it inside is kept."""
    from trueup.monitor import Monitor

    if isinstance(location, StoredLocation):
        with closing(location.storage) as storage:
            if not may_begin:
                storage.open(location.name)
            yield Monitor(**settings, storage=storage, name=location.name)
        return
    with location.turn():
        if not (may_begin or location.exists()):
            raise MissingFile(f"there is no monitor {location}; begin one with `trueup monitor add WATCH VOTES`")
        monitor = Monitor(**settings)
        if location.exists():
            try:
                text = location.path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise InvalidFile(f"{location} cannot be read, got {error!s:.100}; name a monitor's file") from error
            monitor = Monitor.from_json(text, **settings)
        yield monitor
        write_text_safely(location.path, monitor.to_json() + "\n")


def _answer(monitor: Monitor, location: Location, *, head: Mapping[str, Any], fail_on_alarm: bool) -> Answer:
    """The state of the monitor after its last batch."""
    state = _state(monitor)

    def show(_: Any) -> None:
        last = f", the last of {monitor.times[-1]}" if monitor.times else ""
        say(f"{shown(location.words)}: batches: {len(monitor.times):,}{last}.")
        for sentence in monitor.status:
            say(sentence)
        for sentence in monitor.notes:
            note(sentence)

    return Answer(state, show, findings=state["findings"] if fail_on_alarm else (), head=head)


def _state(monitor: Monitor) -> dict[str, Any]:
    """The state of a monitor, for machines."""
    return {
        "settings": monitor.settings,
        "batches": list(monitor.times),
        "alarm": None if monitor.alarm is None else vars(monitor.alarm),
        "alarms": [vars(alarm) for alarm in monitor.alarms],
        "status": list(monitor.status),
        "notes": list(monitor.notes),
        "findings": [alarm.sentence for alarm in monitor.alarms],
    }
