"""`trueup plan draw`: which items or contests to vet so that they stand for all, as a file to be filled in."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.cells import csv_text, safe_cell
from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._console import json_head, note, print_json
from trueup.cli._files import about_files, one_system, read_systems, read_votes, source_of
from trueup.exceptions import InvalidFile, InvalidParameter, InvalidPredictions

if TYPE_CHECKING:
    from trueup.data.labels import Labels
    from trueup.labelers.drawing import Sample

_PREDICTION = "prediction"
_BY = (
    "Draw from each stratum by itself: votes (the class most of them name), prediction (that of PREDICTIONS), or a "
    "column of --items."
)
SheetFile = Annotated[
    Path | None,
    options.option("--out", "Where to write them (csv); else standard output.", "-o", metavar="FILE"),
    options.OutputFile(),
]
Force = Annotated[bool, options.option("--force", "Replace the file of --out if it is there.")]


def draw(
    votes: options.VotesFile,
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    *,
    predictions: options.OptionalPredictionsFile = None,
    n: Annotated[int, options.option("--n", "How many items.", "-n", metavar="N", min=1)],
    by: Annotated[str | None, options.option("--by", _BY, metavar="WHAT")] = None,
    allocation: Annotated[
        str, options.option("--allocation", "Items from each stratum: equal (as many of each) or proportional.")
    ] = "equal",
    only_system: options.OnlySystem = None,
    out: SheetFile = None,
    with_text: Annotated[bool, options.option("--with-text", "Write the columns of --items, too.")] = False,
    force: Force = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Draw items at random for an expert to vet, with the chance of each, so that the answers hold for all items.

    The column of the labels is to be filled in; then the file is what --gold takes.
    """
    from trueup.labelers.drawing import draw_sample

    _check_out(out, force=force)
    if (predictions is not None) != (by == _PREDICTION):
        got = "none" if predictions is None else "them without it"
        raise InvalidParameter(f"PREDICTIONS and --by prediction go together, got {got}; give both or neither")
    labels = read_votes(votes, how)
    strata: Any = by
    if predictions is not None:
        strata = _predicted(predictions, labels, how, how_predicted, only_system)
    sample = draw_sample(
        labels,
        n,
        by=strata,
        allocation=allocation,  # type: ignore[arg-type]  # checked by the callee, with a sentence
        random_state=seed,
    )
    sheet = _sheet(sample, labels, how, with_text=with_text)
    if out is not None:
        write_text_safely(out, sheet)
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=how.gold, items=how.items)
        columns = sample.columns()
        items = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        about = {"n_items": labels.n_items, "n_known": len(sample.known), "by": by, "sample": items}
        print_json({**json_head(seed=seed, files=files), **about, "findings": []})
        return
    if out is None:
        typer.echo(sheet, nl=False)  # as it is: another program may read it
    _tell(sample, labels, how, out)


def draw_pairs(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    *,
    n: Annotated[int, options.option("--n", "How many contests.", "-n", metavar="N", min=1)],
    out: SheetFile = None,
    force: Force = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Draw contests of two systems at random for people to judge; which system comes first is by chance, too.

    The column of the winners is to be filled in; then the file is what --gold takes, with --gold-drawn random.
    """
    from trueup.adapters import read_pairs
    from trueup.labelers.drawing import draw_contests

    _check_out(out, force=force)
    verdicts = read_pairs(source_of(pairs), **asdict(columns))
    contests = draw_contests(verdicts, n, random_state=seed)
    rows = [(item, first, second, None) for item, first, second in contests]
    names = (columns.item, columns.first, columns.second, columns.winner)
    sheet = csv_text(list(names), [[safe_cell(cell) for cell in row] for row in rows])
    if out is not None:
        write_text_safely(out, sheet)
    if as_json:
        drawn = [dict(zip(("item", "first", "second"), contest, strict=True)) for contest in contests]
        about = {"n_contests": verdicts.n_contests, "sample": drawn, "findings": []}
        print_json({**json_head(seed=seed, files=about_files(pairs=pairs)), **about})
        return
    if out is None:
        typer.echo(sheet, nl=False)
    where = "the file" if out is None else str(out)
    note(f"drew {len(contests):,} of {verdicts.n_contests:,} contests")
    note(
        f"fill in the column 'winner' of {where}, then pass it to trueup preferences as --gold with --gold-drawn random"
    )


def _check_out(out: Path | None, *, force: bool) -> None:
    """Stop before the work where the file is no csv or would replace answers."""
    if out is None:
        return
    if out.suffix.lower() != ".csv":
        raise InvalidFile(f"the list must be a csv file, got {str(out)!r}; name it so")
    if out.exists() and not force:
        raise InvalidFile(
            f"{str(out)!r} must not exist yet, since answers in it would be lost, got a file; name another, or use "
            "--force"
        )


def _predicted(
    predictions: str,
    labels: Labels,
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    only_system: str | None,
) -> list[Any]:
    """The class that a system predicts for each item; None where it predicts none."""
    systems = read_systems(predictions, labels, how_predicted, how)
    systems = one_system(systems, only_system)
    if systems.n_systems > 1:
        raise InvalidPredictions(
            f"items are told apart by one system, got {systems.n_systems} in {predictions!r}; name it with "
            "--only-system"
        )
    codes = systems.align(labels, missing="ignore").codes
    if codes is None:
        raise InvalidPredictions("predictions must name classes, got scores alone; add a column 'prediction'")
    classes = [*labels.classes.tolist(), None]  # the last serves the code of an item without a prediction
    return [classes[code] for code in codes[0].tolist()]


def _sheet(sample: Sample, labels: Labels, how: options.VoteOptions, *, with_text: bool) -> str:
    """The items as csv, with the columns named as the gold file is read, and what is known of them if asked for."""
    columns = sample.columns()
    items, key = columns.pop("item"), [name.strip() for name in how.item.split(",")]
    is_joint = len(key) > 1 and all(isinstance(name, tuple) for name in items)
    parts = zip(key, map(list, zip(*items, strict=True)), strict=True) if is_joint else [(how.item, items)]
    named: dict[str, list[Any]] = dict(parts)
    named |= {how.gold_column or how.label: columns.pop("label"), **columns}
    places = labels.find_items(sample.items)
    for name in labels.item_table.given if with_text else ():
        named.setdefault(name, labels.item_column(name)[places].tolist())
    return csv_text(list(named), [[safe_cell(cell) for cell in row] for row in zip(*named.values(), strict=True)])


def _tell(sample: Sample, labels: Labels, how: options.VoteOptions, out: Path | None) -> None:
    """Say on standard error what was drawn and what to do with it."""
    strata = "" if sample.strata is None else f" from {len(set(sample.strata))} strata"
    known = ""
    if sample.known:
        known = f", of which {len(sample.known):,} are known already and filled in"
    where = "the file" if out is None else str(out)
    note(f"drew {len(sample):,} of {labels.n_items:,} items{strata}{known}")
    note(f"fill in the column {how.gold_column or how.label!r} of {where}, then pass it as --gold")
