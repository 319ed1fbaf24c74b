"""`trueup vet`: active testing with a session file: ask which items to check, tell the answers, see the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.wording import chance, interval, number
from trueup._base.writing import check_readable, write_text_safely
from trueup.cli._command import Answer, add_to, this_call
from trueup.cli._console import ends_of, interval_head, note, print_records, say, shown
from trueup.cli._files import STANDARD_INPUT, check_writable_format, sheet_text
from trueup.cli._options import Force, Option, Plot, PredictionOptions, VoteOptions, arg, opt
from trueup.cli._vetting import Location, SessionOptions, StorageOptions, begin, location_of, resume
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.cli._vetting import Vetting

vet = typer.Typer(
    help="Let an expert look at the items that matter: ask which, tell what they found, see the estimate. Everything "
    "is kept in one session file or, with --storage and --name, in a database that several people share.",
    no_args_is_help=True,
)

SessionPath = Annotated[str | None, Option("The session file (JSON); not with --storage.", "SESSION", is_argument=True)]
VotesPath = Annotated[str | None, Option("The votes, the first time.", "VOTES", is_argument=True)]
PredictionPaths = Annotated[
    list[str] | None, Option("The predictions, the first time.", "PREDICTIONS", is_argument=True)
]
Who = Annotated[str | None, Option("The expert, for the log.", "NAME")]


@add_to(vet)
def start(
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    kept: StorageOptions,
    session: SessionPath = None,
    votes: VotesPath = None,
    predictions: PredictionPaths = None,
) -> Answer:
    """Begin a session; 'vet ask' does the same if there is none yet."""
    location, files = location_of(session, kept, votes, *(predictions or []), create=True)
    with location.turn():
        if location.exists():
            raise InvalidFile(
                f"{location} must not exist yet, got a session; go on with 'trueup vet ask {location.words}', or name "
                "another"
            )
        vetting = _begin(location, files, settings, how, how_predicted)
        vetting.save()
    return _answer(vetting, lambda _: say(f"Began {location.words}: {vetting.test!r}."))


def _begin(location: Location, files: Sequence[str], *how: Any) -> Vetting:
    """A new session; stop where the files that it begins with are not named or not there."""
    if len(files) < 2:
        raise InvalidParameter(
            f"a session begins with votes and predictions, got {len(files)} files; use 'trueup vet "
            f"{this_call().name} {location.words} VOTES PREDICTIONS'"
        )
    for path in files:
        if path != STANDARD_INPUT:
            check_readable(path, folders=True)
    for sentence in location.notes():
        note(sentence)
    return begin(location, files[0], files[1:], *how)


@add_to(vet)
def ask(
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
    kept: StorageOptions,
    session: SessionPath = None,
    votes: VotesPath = None,
    predictions: PredictionPaths = None,
    n: int = opt(10, "How many items.", "N", "-n", "--number", show=True, min=1),
    again: bool = opt(False, "No new items: those that wait for an answer."),
    out: Path | None = opt(
        None, "Also write them for a spreadsheet: item, truth (to be filled in), why.", "FILE", "-o", writes=True
    ),
    to: str | None = opt(
        None,
        "Write the file of --out for a tool, with nothing suggested: one of WRITABLE.",
        "FORMAT",
        chosen="WRITABLE",
    ),
    blind: bool = opt(False, "Do not say why: that shows what the votes say, which sways an expert."),
    with_text: bool = opt(False, "Write the columns of --items to the file of --out, too."),
    force: Force = False,
) -> Answer:
    """Which items to check next, and why. The first time it needs the files; later only the session."""
    if to is not None:
        check_writable_format(to)
        if out is None:
            raise InvalidParameter(f"--to is about the file of --out, got {to!r} and no --out; name the file")
    location, files = location_of(session, kept, votes, *(predictions or []), create=votes is not None)
    with location.turn():
        if location.exists():
            vetting = resume(location, settings, how, how_predicted, files=files)
        elif not files:
            raise InvalidParameter(
                f"there is no session {location} yet, got no files to begin one; use 'trueup vet ask {location.words} "
                "VOTES PREDICTIONS'"
            )
        else:
            vetting = _begin(location, files, settings, how, how_predicted)
        asked = vetting.waiting() if again else [(card.item, card.why) for card in vetting.test.ask(n).details]
        vetting.save()
    items = [item for item, _ in asked]
    records = [{"item": item} if blind else {"item": item, "why": why} for item, why in asked]
    if out is not None and to is not None:
        from trueup.adapters import write_tasks

        write_tasks(vetting.labels, out, file_format=to, items=items, with_text=with_text)
    elif out is not None:
        columns: dict[str, list[Any]] = {"item": items, "truth": [""] * len(items)}
        columns |= {} if blind else {"why": [why for _, why in asked]}
        write_text_safely(out, sheet_text(columns, vetting.labels, items, with_text=with_text))
    then = f"answer with: trueup vet tell {location.words} ITEM=CLASS …"
    if out is not None:
        what = "fill in its column 'truth'" if to is None else f"check it in {to} and export"
        then = f"wrote {out}; {what}, then: trueup vet tell {location.words} --from {out if to is None else 'EXPORT'}"
    return _answer(vetting, lambda _: _show_asked(vetting, records, then, blind=blind), items=records)


def _show_asked(vetting: Vetting, records: Sequence[Mapping[str, Any]], then: str, *, blind: bool) -> None:
    if not records:
        reason = "The items that wait use up the budget." if vetting.test.waiting else "No item waits for an answer."
        say(f"No item to ask. {vetting.test.finished or reason}")
        return
    if blind:
        say("\n".join(shown(record["item"]) for record in records))
    else:
        print_records({"item": "item", ("why", "left"): "why"}, records)
    note(f"classes: {', '.join(shown(name) for name in vetting.labels.classes.tolist())}")
    note(then)


@add_to(vet)
def tell(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    answers: list[str] = arg([], "ITEM=CLASS", "What the expert found.", show=False),
    source: str | None = opt(
        None,
        "Answers from a file with columns item and truth, such as 'vet ask --out' wrote; rows with an empty truth are "
        "left open; - is standard input. Or the export of a tool, see 'trueup formats'.",
        "FILE",
        "--from",
    ),
    item: str = opt("item", "Column of the items.", "COLUMN", show=True),
    truth: str = opt("truth", "Column of the answers.", "COLUMN", show=True),
    question: str | None = opt(None, "Of an export that asks several questions, this one.", "NAME"),
    who: Who = None,
    correct: bool = opt(False, "Allow answers that differ from earlier ones."),
    none: list[str] = opt([], "An item that is none of the classes; may be repeated.", "ITEM"),
    sighted: bool = opt(False, "The prediction was in sight: such answers are kept out of the interval."),
) -> Answer:
    """Tell what the expert found; all answers are checked before any is taken."""
    from trueup.active import NONE_OF_THESE

    location, typed = location_of(session, kept, *answers)
    if ((typed or none) and source is not None) or not (typed or none or source):
        raise InvalidParameter("answers come as ITEM=CLASS or with --from FILE, got both or none; give one of them")
    with location.turn():
        vetting = resume(location)
        new = vetting.typed(typed)
        if source is not None:
            new = vetting.read(source, item=item, truth=truth, question=question)
        new |= dict.fromkeys([vetting.item(text) for text in none], NONE_OF_THESE)
        before = vetting.test.n_vetted
        vetting.test.tell(new, who=who, correct=correct, blind=False if sighted else None)
        n_new = vetting.test.n_vetted - before
        vetting.save()

    def show(body: Mapping[str, Any]) -> None:
        say(f"Answers taken: {len(new)}, of which new: {n_new}.")
        _show_status(vetting, body)

    return _answer(vetting, show, warn=True, told=len(new), new=n_new)


@add_to(vet)
def skip(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    items: list[str] = arg([], "ITEM", "Items the expert passes on.", show=False),
    who: Who = None,
    later: bool = opt(False, "Put them back into the queue, in place of: nobody can tell."),
) -> Answer:
    """The expert cannot tell the class of these items: they count as open either way, and are not asked again."""
    location, names = location_of(session, kept, *items)
    if not names:
        raise InvalidParameter("items to skip must be named, got none; use the names that 'vet ask' gave")
    with location.turn():
        vetting = resume(location)
        vetting.test.skip([vetting.item(text) for text in names], who=who, later=later)
        vetting.save()
    sentence = f"Items skipped: {len(names)}; waiting for an answer: {len(vetting.test.waiting)}."
    return _answer(vetting, lambda _: say(sentence), skipped=names)


@add_to(vet)
def status(
    *,
    kept: StorageOptions,
    session: SessionPath = None,
    history: bool = opt(False, "Also the estimate as answers came in."),
    every: int = opt(10, "A step of the history.", "N", show=True, min=1),
    plot: Plot = None,
    fail_unless_finished: bool = opt(False, "Exit with 1 while the session should go on."),
) -> Answer:
    """The estimate and its interval, what to know before trusting it, and whether it is time to stop."""
    location, more = location_of(session, kept)
    if more:
        raise InvalidParameter(f"a session in a storage has no file, got {more[0]!r}; leave it out")
    vetting = resume(location)
    test = vetting.test
    rows = test.history(every=every) if history else []
    unfinished = fail_unless_finished and test.finished is None
    findings = [f"the session is not finished after {test.n_vetted} answers"] if unfinished else []

    def show(body: Mapping[str, Any]) -> None:
        _show_status(vetting, body)
        if history:
            columns: dict[Any, Any] = {"answers": lambda row: int(row["n"]), test.pool.metric.name: "mean"}
            print_records({**columns, interval_head(test.level): "interval"}, rows)

    answer = _answer(vetting, show, findings, warn=True, **({"history": rows} if history else {}))
    return replace(answer, picture=lambda: test.plot(every=every))


def _answer(
    vetting: Vetting, show: Callable[[Any], None], findings: Sequence[str] = (), *, warn: bool = False, **more: Any
) -> Answer:
    """The state of a session, and more; its warnings are printed where its estimate is."""
    test = vetting.test

    def body() -> Mapping[str, Any]:
        estimates = {
            str(name): {**ends_of(test.estimate(name), test.level), "at_every_look": test.anytime_interval(name)}
            for name in vetting.systems
        }
        return {
            "session": vetting.location.words,
            **more,
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
            **({"ranking": test.ranking} if len(vetting.systems) > 1 else {}),
        }

    files = {role: {"file": known.path, "sha256": known.sha256} for role, known in vetting.file.files.items()}
    head = {"seed": test.seed, "files": files}
    warnings = test.warnings if warn else ()
    return Answer(body() if warn else body, show, findings=findings, warnings=warnings, head=head)


def _show_status(vetting: Vetting, body: Mapping[str, Any]) -> None:
    test, waiting = vetting.test, vetting.test.waiting
    columns: dict[Any, Any] = {"system": "system", test.pool.metric.name: "mean"}
    columns |= {interval_head(test.level): "interval", "at every look": lambda row: tuple(row["at_every_look"])}
    print_records(columns, [{"system": name, **body["estimates"][str(name)]} for name in test.ranking])
    listed = ": " * bool(waiting) + ", ".join(map(shown, waiting[:5])) + ", …" * (len(waiting) > 5)
    say(f"{test.n_vetted:,} of {vetting.labels.n_items:,} items checked, {len(waiting):,} waiting{listed}.")
    for sentence in test.status().sentences()[1:]:
        say(sentence)
    if len(vetting.systems) > 1:
        best, second = test.ranking[:2]
        apart = test.difference(best, second)
        say(
            f"{shown(best)} minus {shown(second)}: {number(apart.mean)} ({interval(*apart.interval(test.level))}); "
            f"better with probability {chance(test.prob_order(best, second))}."
        )
    say(f"Finished: {test.finished}" if test.finished else "Not finished: 'trueup vet ask' has more items.")
