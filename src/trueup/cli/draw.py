"""`trueup plan draw`: which items or contests to check so that they stand for all, as a file to be filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.cells import csv_text, safe_cell
from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._command import Answer
from trueup.cli._console import note
from trueup.cli._files import one_system, predicted_classes, read_systems, read_votes, source_of
from trueup.exceptions import InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.data.labels import Labels
    from trueup.labelers.drawing import Sample

_PREDICTION = "prediction"

SheetFile = Annotated[
    str | None,
    options.Option("Where to write them (csv); else standard output.", "FILE", ("--out", "-o"), writes=(".csv",)),
]


def draw(
    votes: options.VotesFile,
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    *,
    predictions: options.OptionalPredictionsFile = None,
    n: int = options.opt(..., "How many items.", "N", "-n", "--n", min=1),
    by: str | None = options.opt(
        None,
        "Draw from each stratum by itself: votes (the class most of them name), prediction (that of PREDICTIONS), or a "
        "column of --items.",
        "WHAT",
    ),
    allocation: str = options.opt("equal", "Items from each stratum: equal (as many of each) or proportional."),
    only_system: options.OnlySystem = None,
    out: SheetFile = None,
    with_text: bool = options.opt(False, "Write the columns of --items, too."),
    force: options.Force = False,
    seed: options.Seed = 0,
) -> Answer:
    """Draw items at random for an expert to check, with the chance of each, so that the answers hold for all items.

    The column of the labels is to be filled in; then the file is what --gold takes.
    """
    from trueup.labelers.drawing import draw_sample

    if (predictions is not None) != (by == _PREDICTION):
        got = "none" if predictions is None else "them without it"
        raise InvalidParameter(f"PREDICTIONS and --by prediction go together, got {got}; give both or neither")
    labels = read_votes(votes, how)
    strata: Any = by
    if predictions is not None:
        systems = one_system(read_systems(predictions, labels, how_predicted, how), only_system)
        if systems.n_systems > 1:
            raise InvalidPredictions(
                f"one system must divide the items, got {systems.n_systems} in {predictions!r}; name it with "
                "--only-system"
            )
        strata = predicted_classes(systems, labels)
    sample = draw_sample(
        labels,
        n,
        by=strata,
        allocation=allocation,  # type: ignore[arg-type]  # checked by the callee, with a sentence
        random_state=seed,
    )
    columns = sample.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    about = {"n_items": labels.n_items, "n_known": len(sample.known), "by": by, "sample": rows}
    strata = "" if sample.strata is None else f" from {len(set(sample.strata))} strata"
    known = f", of which {len(sample.known):,} are known already and filled in" if sample.known else ""
    drawn = f"drew {len(sample):,} of {labels.n_items:,} items{strata}{known}"
    sheet = _sheet(sample, labels, how, with_text=with_text)
    return _answer(about, sheet, out, drawn, f"{how.gold_column or how.label!r}", "pass it as --gold")


def draw_pairs(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    *,
    n: int = options.opt(..., "How many contests.", "N", "-n", "--n", min=1),
    out: SheetFile = None,
    force: options.Force = False,
    seed: options.Seed = 0,
) -> Answer:
    """Draw contests of two systems at random for people to judge; which system comes first is by chance, too.

    The column of the winners is to be filled in; then the file is what --gold takes, with --gold-drawn random.
    """
    from trueup.adapters import read_pairs
    from trueup.labelers.drawing import draw_contests

    verdicts = read_pairs(source_of(pairs), **vars(columns))
    contests = draw_contests(verdicts, n, random_state=seed)
    names = (columns.item, columns.first, columns.second, columns.winner)
    sheet = csv_text(list(names), [[safe_cell(cell) for cell in (*contest, None)] for contest in contests])
    rows = [dict(zip(("item", "first", "second"), contest, strict=True)) for contest in contests]
    drawn = f"drew {len(contests):,} of {verdicts.n_contests:,} contests"
    then = "pass it to trueup preferences as --gold with --gold-drawn random"
    return _answer({"n_contests": verdicts.n_contests, "sample": rows}, sheet, out, drawn, "'winner'", then)


def _answer(body: dict[str, Any], sheet: str, out: str | None, drawn: str, column: str, then: str) -> Answer:
    """What was drawn: in the file, or as it is on standard output, where another program may read it."""
    if out is not None:
        write_text_safely(out, sheet)

    def show(_: Any) -> None:
        if out is None:
            typer.echo(sheet, nl=False)
        note(drawn)
        note(f"fill in the column {column} of {out or 'the file'}, then {then}")

    return Answer(body, show)


def _sheet(sample: Sample, labels: Labels, how: options.VoteOptions, *, with_text: bool) -> str:
    """The items as csv, with the columns named as the gold file is read, and those of the items if asked for."""
    columns = sample.columns()
    items, key = columns.pop("item"), [name.strip() for name in how.item.split(",")]
    is_joint = len(key) > 1 and all(isinstance(name, tuple) for name in items)
    parts = zip(key, map(list, zip(*items, strict=True)), strict=True) if is_joint else [(how.item, items)]
    named: dict[str, list[Any]] = dict(parts)
    named |= {how.gold_column or how.label: columns.pop("label"), **columns}
    rows = labels.find_items(sample.items)
    for name in labels.item_table.given if with_text else ():
        named.setdefault(name, labels.item_column(name)[rows].tolist())
    return csv_text(list(named), [[safe_cell(cell) for cell in row] for row in zip(*named.values(), strict=True)])
