"""`trueup monitor`: batches over time, and alarms where a system or its judges changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.wording import interval, level_words, number
from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._app import add_to
from trueup.cli._console import fail_on, json_head, note, print_json, print_table, progress_bar, say, shown
from trueup.cli._files import about_files, check_report_path, class_named, one_system, read_systems, read_votes
from trueup.cli._places import FilePlace, Place, StorageOptions, StoredPlace, place_of
from trueup.exceptions import InvalidFile, InvalidParameter, MissingFile

if TYPE_CHECKING:
    from trueup.monitor import Monitor

app = typer.Typer(
    help="Watch a system and its judges over time. WATCH is a file; --storage and --name keep it in a database that "
    "several processes share. With --fail-on-alarm the exit code is 1 while there is an alarm.",
    no_args_is_help=True,
)

Watch = Annotated[
    str | None, typer.Argument(metavar="WATCH", show_default=False, help="The file of the monitor, such as watch.json.")
]
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[WATCH] VOTES [PREDICTIONS]",
        show_default=False,
        help="The file of the monitor, unless --storage is given; the votes of the batch; its predictions.",
    ),
]
FailOnAlarm = Annotated[
    bool, options.option("--fail-on-alarm", "If there is an alarm.", panel="Exit with 1 on a finding")
]
_begin_panel = "How a new monitor is made"


@dataclass(frozen=True)
class BeginningOptions:
    """What a monitor is made with, and has for good; None leaves it as it is."""

    metric: Annotated[
        str | None,
        options.option("--metric", "What the course shows; accuracy.", "-m", metavar="METRIC", panel=_begin_panel),
    ] = None
    of: Annotated[
        str | None,
        options.option(
            "--of", "Without predictions: the class whose share is followed.", metavar="CLASS", panel=_begin_panel
        ),
    ] = None
    baseline: Annotated[
        int | None,
        options.option("--baseline", "Batches before the first test; 2.", metavar="N", panel=_begin_panel),
    ] = None
    false_alarms: Annotated[
        float | None,
        options.option(
            "--false-alarms",
            "The chance of any alarm, ever, if nothing changes; 0.05.",
            metavar="CHANCE",
            panel=_begin_panel,
        ),
    ] = None
    random_state: Annotated[
        int | None, options.option("--seed", "Seed of all chance; 0.", metavar="SEED", panel=_begin_panel)
    ] = None
    level: Annotated[
        float | None,
        options.option("--level", "Probability of the intervals; 0.95.", metavar="LEVEL", panel=_begin_panel),
    ] = None


@add_to(app)
def add(
    words: Words,
    kept: StorageOptions,
    beginning: BeginningOptions,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    when: Annotated[
        str,
        options.option("--when", "When the batch is of: 2026-11-15, 2026-W47, 2026-11, or a number.", metavar="WHEN"),
    ],
    only_system: options.OnlySystem = None,
    fail_on_alarm: FailOnAlarm = False,
    as_json: options.AsJson = False,
) -> None:
    """Add a batch of votes, with predictions and checked items (--gold, --gold-drawn random) if there are some.

    The first batch begins the monitor. All batches have predictions, or none and --of.
    """
    place, files = place_of(None, kept, *words, create=True)
    if not 1 <= len(files) <= 2:
        raise InvalidParameter(
            f"a batch is VOTES, or VOTES PREDICTIONS, after the file of the monitor or with --storage, got "
            f"{len(files)} files; name them so"
        )
    labels = read_votes(files[0], votes_how)
    said = None
    if len(files) == 2:
        said = one_system(read_systems(files[1], labels, predictions_how, votes_how), only_system)
    settings = asdict(beginning)
    if beginning.of is not None:
        settings["of"] = class_named(labels, beginning.of)
    with _opened(place, may_begin=True, **settings) as watch:
        watch.add(labels, said, when=when)
    about = about_files(votes=files[0], predictions=files[1] if len(files) == 2 else None, gold=votes_how.gold)
    if as_json:
        print_json({**json_head(seed=None, files=about), **_state(watch)})
    else:
        _show_status(watch, place)
    _fail(watch, wanted=fail_on_alarm)


@add_to(app)
def show(
    kept: StorageOptions,
    watch: Watch = None,
    estimates: Annotated[
        bool,
        options.option(
            "--estimates/--no-estimates",
            "Estimate the metric where batches were added.",
        ),
    ] = True,
    report: options.Report = None,
    fail_on_alarm: FailOnAlarm = False,
    as_json: options.AsJson = False,
) -> None:
    """The alarms, the course of the system and the judges."""
    from trueup.report import save_report

    check_report_path(report)
    place, _ = place_of(watch, kept)
    with _opened(place, may_begin=False) as monitor:
        if estimates:
            with progress_bar("estimating") as hear:
                monitor.estimate(progress=hear)
    if as_json:
        courses = {"course": monitor.course_rows(), "judge_rows": monitor.judge_rows()}
        print_json({**json_head(seed=monitor.settings["random_state"], files={}), **_state(monitor), **courses})
    else:
        _show_status(monitor, place)
        _show_course(monitor)
    if report is not None:
        save_report(monitor.report(), report)
        note(f"report: {report}")
    _fail(monitor, wanted=fail_on_alarm)


@add_to(app)
def restart(
    kept: StorageOptions,
    watch: Watch = None,
    why: Annotated[str | None, options.option("--why", "Kept in the log.", metavar="TEXT")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Begin a new baseline with the next batch, after a change that was meant or mended; alarms begin anew."""
    place, _ = place_of(watch, kept)
    with _opened(place, may_begin=False) as monitor:
        monitor.restart(why)
    if as_json:
        print_json({**json_head(seed=None, files={}), **_state(monitor)})
    else:
        say("The next batch begins a new baseline.")


@contextmanager
def _opened(place: Place, *, may_begin: bool, **settings: Any) -> Iterator[Monitor]:
    """The monitor of a place; what happens to it inside is kept."""
    from trueup.monitor import Monitor

    if isinstance(place, StoredPlace):
        with closing(place.storage) as storage:
            if not may_begin:
                storage.open(place.name)
            yield Monitor(**settings, storage=storage, name=place.name)
        return
    if not isinstance(place, FilePlace):
        raise InvalidParameter(f"a monitor is in a file or in a storage, got {place}; name one")
    with place.turn():
        monitor = _read(place.path, **settings) if place.exists() or not may_begin else Monitor(**settings)
        yield monitor
        write_text_safely(place.path, monitor.to_json() + "\n")


def _read(path: Path, **settings: Any) -> Monitor:
    from trueup.monitor import Monitor

    if not path.exists():
        raise MissingFile(
            f"there is no monitor {str(path)!r}, got no such file; begin one with `trueup monitor add WATCH VOTES`"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{str(path)!r} cannot be read, got {error!s:.100}; name a monitor's file") from error
    return Monitor.from_json(text, **settings)


def _state(watch: Monitor) -> dict[str, Any]:
    """Where a monitor stands, for machines."""
    return {
        "settings": watch.settings,
        "batches": list(watch.times),
        "alarm": None if watch.alarm is None else vars(watch.alarm),
        "alarms": [vars(alarm) for alarm in watch.alarms],
        "status": list(watch.status),
        "notes": list(watch.notes),
        "findings": [alarm.sentence for alarm in watch.alarms],
    }


def _show_status(watch: Monitor, place: Place) -> None:
    n = len(watch.times)
    say(f"{shown(place.words)}: {n} batch{'es' if n != 1 else ''}{f', the last of {watch.times[-1]}' if n else ''}.")
    for sentence in watch.status:
        say(sentence)
    for sentence in watch.notes:
        note(sentence)


def _show_course(watch: Monitor) -> None:
    words = level_words(watch.settings["level"])
    rows = watch.course_rows()
    print_table(
        (("when", "left"), watch.metric, f"{words} interval", "agreement", "items", "checked"),
        [
            (
                row["when"],
                number(row["mean"]),
                interval(row["low"], row["high"]),
                number(row["agreement"]),
                f"{row['n']:,}",
                f"{row['n_gold']:,}",
            )
            for row in rows
        ],
    )
    last = {row["judge"]: row for row in watch.judge_rows()}
    print_table(
        ("judge", ("last batch", "left"), "errors", f"{words} interval", "checked", "differs from most"),
        [
            (
                shown(judge),
                row["when"],
                number(row["error"]),
                interval(row["low"], row["high"]),
                f"{row['n_gold']:,}",
                number(row["disagreement"]),
            )
            for judge, row in last.items()
        ],
    )


def _fail(watch: Monitor, *, wanted: bool) -> None:
    if wanted:
        fail_on([alarm.sentence for alarm in watch.alarms])
