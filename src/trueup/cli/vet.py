"""`trueup vet`: active testing with a session file: ask which items to vet, tell the answers, see where it stands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.cells import csv_text, safe_cell
from trueup._base.wording import chance, interval, level_words, number
from trueup._base.writing import check_readable, write_text_safely
from trueup.cli._app import STANDARD_INPUT, add_to
from trueup.cli._console import complain, fail_on, json_head, note, print_json, print_table, say, shown
from trueup.cli._files import Plot, check_picture, save_plot
from trueup.cli._options import AsJson, OutputFile, PredictionOptions, VoteOptions, option
from trueup.cli._places import Place, StorageOptions, place_of
from trueup.cli._vetting import SessionOptions, begin, resume
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.active import ActiveTest
    from trueup.cli._vetting import Vetting


app = typer.Typer(
    help="Let an expert look at the items that matter: ask which, tell what they found, see the estimate. Everything "
    "is kept in one session file or, with --storage and --name, in a database that several people share.",
    no_args_is_help=True,
)

SessionPath = Annotated[
    str | None,
    typer.Argument(metavar="SESSION", show_default=False, help="The session file (JSON); not with --storage."),
]
Who = Annotated[str | None, option("--who", "The expert, for the log.", metavar="NAME")]


@add_to(app)
def start(
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    kept: StorageOptions,
    session: SessionPath = None,
    votes: Annotated[
        str | None, typer.Argument(metavar="VOTES", show_default=False, help="The votes: item, labeler, label.")
    ] = None,
    predictions: Annotated[
        list[str] | None, typer.Argument(metavar="PREDICTIONS", show_default=False, help="The predictions.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a session; 'vet ask' does the same if there is none yet."""
    place, files = place_of(session, kept, votes, *(predictions or []), create=True)
    check_begins(place, files, command="start")
    with place.turn():
        if place.exists():
            raise InvalidFile(
                f"{place} must not exist yet, got a session; go on with 'trueup vet ask {place.words}', or name another"
            )
        vetting = begin(place, files[0], files[1:], settings, how, how_predicted)
        vetting.save()
    _tell_how_kept(place)
    if as_json:
        print_json({**_head(vetting), **_standing(vetting), "findings": []})
    else:
        say(f"Began {place.words}: {vetting.test!r}.")


def _tell_how_kept(place: Place) -> None:
    for line in place.notes:
        note(line)


def check_begins(place: Place, files: Sequence[str], *, command: str) -> None:
    """Stop where the files that a session begins with are not named or not there."""
    if len(files) < 2:
        raise InvalidParameter(
            f"a session begins with votes and predictions, got {len(files)} files; use 'trueup vet {command} "
            f"{place.words} VOTES PREDICTIONS'"
        )
    for path in files:
        if path != STANDARD_INPUT:
            check_readable(path, folders=True)


@add_to(app)
def ask(
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    kept: StorageOptions,
    session: SessionPath = None,
    votes: Annotated[
        str | None, typer.Argument(metavar="VOTES", show_default=False, help="The votes, the first time.")
    ] = None,
    predictions: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREDICTIONS", show_default=False, help="The predictions, the first time."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", min=1, help="How many items.")] = 10,
    again: Annotated[bool, typer.Option("--again", help="No new items: those that wait for an answer.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            show_default=False,
            help="Also write them for a spreadsheet: csv with the columns item, truth (to be filled in) and why.",
        ),
        OutputFile(),
    ] = None,
    to: Annotated[
        str | None,
        option(
            "--to",
            "Write the file of --out for a tool, with nothing suggested: one of WRITABLE.",
            metavar="FORMAT",
            chosen_from="WRITABLE",
            show_default="a csv for a spreadsheet",
        ),
    ] = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="Do not say why: that tells what the votes say, which sways an expert.")
    ] = False,
    with_text: Annotated[
        bool, option("--with-text", "Write the columns of --items to the file of --out, too.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out if it is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Which items to vet next, and why. The first time it needs the files; later only the session."""
    if to is not None:
        _check_tool(to, out)
    if out is not None and out.exists() and not force:
        raise InvalidFile(
            f"{str(out)!r} must not exist yet, since answers in it would be lost, got a file; name another, or use "
            "--force"
        )
    place, files = place_of(session, kept, votes, *(predictions or []), create=votes is not None)
    with place.turn():
        if place.exists():
            vetting = resume(place, settings, how, how_predicted, votes=next(iter(files), None), predictions=files[1:])
        elif not files:
            raise InvalidParameter(
                f"there is no session {place} yet, got no files to begin one; use 'trueup vet ask {place.words} VOTES "
                "PREDICTIONS'"
            )
        else:
            check_begins(place, files, command="ask")
            vetting = begin(place, files[0], files[1:], settings, how, how_predicted)
            _tell_how_kept(place)
        asked = vetting.waiting() if again else vetting.ask(n)
        vetting.save()
    whys = [(item, "" if blind else why) for item, why in asked]
    if out is not None and to is not None:
        from trueup.adapters import write_tasks

        items = [item for item, _ in asked]
        write_tasks(vetting.labels, out, file_format=to, items=items, with_text=with_text)
    elif out is not None:
        write_text_safely(out, _sheet(vetting, whys, blind=blind, with_text=with_text))
    if as_json:
        listed = [{"item": item, **({} if blind else {"why": why})} for item, why in asked]
        print_json({**_head(vetting), "items": listed, **_standing(vetting), "findings": []})
        return
    _print_asked(vetting, whys, out, blind=blind, tool=to)


def _check_tool(to: str, out: Path | None) -> None:
    """Stop where tasks for a tool cannot be written."""
    from trueup._base.validation import check_choice
    from trueup.adapters import writable_formats

    check_choice(to, writable_formats(), name="to")
    if out is None:
        raise InvalidParameter(f"--to is about the file of --out, got {to!r} and no --out; name the file")


def _sheet(vetting: Vetting, asked: Sequence[tuple[Hashable, str]], *, blind: bool, with_text: bool) -> str:
    """The items as csv for a spreadsheet, with what is known of them if asked for."""
    labels = vetting.labels
    known = labels.item_table.given if with_text else ()
    places = labels.find_items([item for item, _ in asked])
    header = ["item", "truth", *([] if blind else ["why"]), *known]
    rows = [
        [item, "", *([] if blind else [why]), *(labels.item_column(name)[at] for name in known)]
        for (item, why), at in zip(asked, places, strict=True)
    ]
    return csv_text(header, [[safe_cell(cell) for cell in row] for row in rows])


def _print_asked(
    vetting: Vetting, asked: Sequence[tuple[Hashable, str]], out: Path | None, *, blind: bool, tool: str | None
) -> None:
    if not asked:
        n_waiting = len(vetting.test.waiting)
        reason = "No item waits for an answer." if not n_waiting else "The items that wait use up the budget."
        say(f"No item to ask. {vetting.test.finished or reason}")
        return
    if blind:
        for item, _ in asked:
            say(shown(item))
    else:
        print_table(("item", ("why", "left")), asked)
    note(f"classes: {', '.join(shown(name) for name in vetting.labels.classes.tolist())}")
    if out is None:
        note(f"answer with: trueup vet tell {vetting.place.words} ITEM=CLASS …")
    elif tool is not None:
        note(f"wrote {out}; vet it in {tool} and export, then: trueup vet tell {vetting.place.words} --from EXPORT")
    else:
        note(f"wrote {out}; fill in its column 'truth', then: trueup vet tell {vetting.place.words} --from {out}")


@add_to(app)
def tell(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    answers: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM=CLASS", show_default=False, help="What the expert found.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="Answers from a file with columns item and truth, such as 'vet ask --out' wrote; rows with an empty "
            "truth are left open; - is standard input. Or the export of a tool, see 'trueup formats'.",
        ),
    ] = None,
    item: Annotated[str, typer.Option("--item", metavar="COLUMN", help="Column of the items.")] = "item",
    truth: Annotated[str, typer.Option("--truth", metavar="COLUMN", help="Column of the answers.")] = "truth",
    question: Annotated[
        str | None, option("--question", "Of an export that asks several questions, this one.", metavar="NAME")
    ] = None,
    who: Who = None,
    correct: Annotated[bool, typer.Option("--correct", help="Allow answers that differ from earlier ones.")] = False,
    none: Annotated[
        list[str] | None, option("--none", "An item that is none of the classes; may be repeated.", metavar="ITEM")
    ] = None,
    sighted: Annotated[
        bool, typer.Option("--sighted", help="The prediction was in sight: such answers are kept out of the interval.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what the expert found; all answers are checked before any is taken."""
    place, typed = place_of(session, kept, *(answers or []))
    if ((typed or none) and source is not None) or not (typed or none or source):
        raise InvalidParameter("answers come as ITEM=CLASS or with --from FILE, got both or none; give one of them")
    with place.turn():
        vetting = resume(place)
        new_answers = (
            vetting.typed(typed) if source is None else vetting.read(source, item=item, truth=truth, question=question)
        )
        new_answers |= vetting.outside(none or [])
        new = vetting.tell(new_answers, who=who, correct=correct, blind=False if sighted else None)
        vetting.save()
    if as_json:
        print_json({**_head(vetting), "told": len(new_answers), "new": new, **_standing(vetting), "findings": []})
    else:
        say(f"Answers taken: {len(new_answers)}, of which new: {new}.")
        _print_standing(vetting)


@add_to(app)
def skip(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM", show_default=False, help="Items the expert passes on.")
    ] = None,
    who: Who = None,
    later: Annotated[
        bool, typer.Option("--later", help="Put them back into the queue, in place of: nobody can tell.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The expert cannot tell the class of these items: they count as open either way, and are not asked again."""
    place, names = place_of(session, kept, *(items or []))
    if not names:
        raise InvalidParameter("items to skip must be named, got none; use the names that 'vet ask' gave")
    with place.turn():
        vetting = resume(place)
        vetting.test.skip([vetting.item(text) for text in names], who=who, later=later)
        vetting.save()
    if as_json:
        print_json({**_head(vetting), "skipped": names, **_standing(vetting), "findings": []})
    else:
        say(f"Items skipped: {len(names)}; waiting for an answer: {len(vetting.test.waiting)}.")


@add_to(app)
def status(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    history: Annotated[bool, typer.Option("--history", help="Also the estimate as answers came in.")] = False,
    every: Annotated[int, typer.Option("--every", metavar="N", min=1, help="A step of the history.")] = 10,
    plot: Plot = None,
    fail_unless_finished: Annotated[
        bool, typer.Option("--fail-unless-finished", help="Exit with 1 while the session should go on.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The estimate and its interval, what to know before trusting it, and whether it is time to stop."""
    picture = check_picture(plot)
    place, more = place_of(session, kept)
    if more:
        raise InvalidParameter(f"a session in a storage has no file, got {more[0]!r}; leave it out")
    vetting = resume(place)
    test = vetting.test
    if picture is not None:
        save_plot(test.plot(every=every), picture)
    rows = test.history(every=every) if history else []
    unfinished = fail_unless_finished and test.finished is None
    findings = [f"the session is not finished after {test.n_vetted} answers"] if unfinished else []
    if as_json:
        record = {**_head(vetting), **_standing(vetting), "findings": findings}
        print_json({**record, "history": rows} if history else record)
    else:
        _print_standing(vetting)
        if history:
            print_table(
                ("answers", test.pool.metric.name, f"{level_words(test.level)} interval"),
                [(int(row["n"]), number(row["mean"]), interval(row["low"], row["high"])) for row in rows],
            )
    fail_on(findings)


def _head(vetting: Vetting) -> dict[str, Any]:
    """What makes a result reproducible, for machines."""
    files = {role: {"file": known.path, "sha256": known.sha256} for role, known in vetting.file.files.items()}
    return {**json_head(seed=vetting.test.seed, files=files), "session": vetting.place.words}


def _standing(vetting: Vetting) -> dict[str, Any]:
    """Where a session stands, for machines."""
    test = vetting.test
    estimates = {}
    for name in vetting.systems:
        estimate = test.estimate(name)
        low, high = estimate.interval(test.level)
        estimates[str(name)] = {
            "mean": estimate.mean,
            "low": low,
            "high": high,
            "at_every_look": test.anytime_interval(name),
        }
    status: dict[str, Any] = {
        "metric": test.pool.metric.name,
        "level": test.level,
        "estimates": estimates,
        "n_vetted": test.n_vetted,
        "n_items": vetting.labels.n_items,
        "waiting": test.waiting,
        "progress": test.status().to_dict(),
        "finished": test.finished,
        "warnings": test.warnings,
        "classes": vetting.labels.classes,
    }
    if len(vetting.systems) > 1:
        status["ranking"] = test.ranking
    return status


def _print_standing(vetting: Vetting) -> None:
    test = vetting.test
    rows = []
    for name in test.ranking:
        estimate = test.estimate(name)
        ends = interval(*estimate.interval(test.level)), interval(*test.anytime_interval(name))
        rows.append((shown(name), number(estimate.mean), *ends))
    head = "system", test.pool.metric.name, f"{level_words(test.level)} interval", "at every look"
    print_table(head, rows)
    waiting = test.waiting
    say(
        f"{test.n_vetted:,} of {vetting.labels.n_items:,} items vetted, {len(waiting):,} waiting for an answer"
        + (
            ": " + ", ".join(shown(item) for item in waiting[:5]) + (", …" if len(waiting) > 5 else "")
            if waiting
            else ""
        )
        + "."
    )
    for sentence in test.status().sentences()[1:]:
        say(sentence)
    _print_order(test, vetting.systems)
    say(f"Finished: {test.finished}" if test.finished else "Not finished: 'trueup vet ask' has more items.")
    for sentence in test.warnings:
        complain(sentence, kind="warning")


def _print_order(test: ActiveTest, systems: Sequence[Hashable]) -> None:
    if len(systems) < 2:
        return
    best, second = test.ranking[:2]
    apart = test.difference(best, second)
    say(
        f"{shown(best)} minus {shown(second)}: {number(apart.mean)} ({interval(*apart.interval(test.level))}); "
        f"better with probability {chance(test.prob_order(best, second))}."
    )
