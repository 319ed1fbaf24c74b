"""trueup check: do the files fit, and what is in them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._bundles import unbundled
from trueup.cli._options import (
    AsJson,
    FailIfDependent,
    FitOptions,
    OptionalPredictionsFile,
    PredictionOptions,
    VoteOptions,
    VotesFile,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.labels import Labels

__all__ = ["check"]


@unbundled
def check(
    votes: VotesFile,
    votes_how: VoteOptions,
    predictions_how: PredictionOptions,
    fit: FitOptions,
    predictions: OptionalPredictionsFile = None,
    dependence: Annotated[
        bool, typer.Option("--dependence/--no-dependence", help="Check whether labelers err together; takes seconds.")
    ] = True,
    as_json: AsJson = False,
    fail_if_dependent: FailIfDependent = False,
) -> None:
    """Validate the files and say what is in them; exit code 2 if `trueup evaluate` would refuse them."""
    from trueup.cli._checking import about_dependence, about_systems, problems_with
    from trueup.cli._console import complain, print_json
    from trueup.cli._exit import BAD_INPUT, fail_on
    from trueup.cli._reading import about_files, check_one_stdin, read_systems, read_votes
    from trueup.cli._reporting import json_head
    from trueup.cli._words import for_the_command_line

    check_one_stdin(votes, predictions, votes_how.gold)
    labels = read_votes(votes, votes_how)
    counts = labels.summary()
    systems: list[dict[str, Any]] = []
    problems: list[str] = []
    if predictions is not None:
        found = read_systems(
            predictions, labels, predictions_how, item=votes_how.item, file_format=votes_how.file_format
        )
        systems = about_systems(found, labels)
        problems = problems_with(found, labels, fit.policies)
    about = about_dependence(labels) if dependence or fail_if_dependent else None
    findings = [about["independence"]["sentence"]] if fail_if_dependent and about and _dependent(about) else []
    notes = [for_the_command_line(sentence) for sentence in labels.notes()]
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=votes_how.gold)
        print_json(
            {
                **json_head(seed=None, files=files),
                "votes": counts,
                "notes": notes,
                "systems": systems,
                **(about or {"independence": None, "effective_labelers": None}),
                "problems": problems,
                "findings": findings,
            }
        )
    else:
        _show(labels, counts, systems, about, notes)
    for sentence in problems:
        complain(sentence)
    if problems:
        raise typer.Exit(BAD_INPUT)
    fail_on(findings)


def _dependent(about: Mapping[str, Any]) -> bool:
    return about["independence"] is not None and bool(about["independence"]["dependent"])


def _show(
    labels: Labels,
    counts: dict[str, Any],
    systems: list[dict[str, Any]],
    about: dict[str, Any] | None,
    notes: list[str],
) -> None:
    from trueup.cli._checking import class_shares
    from trueup.cli._console import percent, print_table, say, shown
    from trueup.cli._words import for_the_command_line

    per_item, per_labeler = counts["votes_per_item"], counts["votes_per_labeler"]
    rows: list[tuple[str, str]] = [
        ("votes", f"{counts['votes']:,}"),
        ("items", f"{counts['items']:,}"),
        ("labelers", f"{counts['labelers']:,}"),
        ("votes an item", f"{per_item['min']} to {per_item['max']}, {per_item['mean']:.1f} on average"),
        ("votes a labeler", f"{per_labeler['min']} to {per_labeler['max']}, {per_labeler['median']:.0f} in the middle"),
        ("repeated votes", f"{counts['repeated_votes']:,}"),
        ("rows without a vote", f"{counts['missing']:,}"),
        ("abstentions", f"{counts['abstentions']:,}"),
        ("vetted truths", f"{counts['gold']:,}"),
    ]
    print_table(("the votes", ("", "left")), rows)
    shares = class_shares(labels)
    print_table(("class", "share of votes"), [(shown(name), percent(share, 1)) for name, share in shares])
    if systems:
        columns = (
            "system",
            ("gives", "left"),
            "rows",
            "items with votes",
            "without",
            "unknown items",
            "unknown classes",
        )
        keys = ("system", "gives", "rows", "items", "missing", "unknown_items", "unknown_classes")
        print_table(columns, [[shown(one[key]) for key in keys] for one in systems])
    for sentence in notes:
        say(f"- {sentence}")
    if about is not None:
        for part in (about["independence"], about["effective_labelers"]):
            if part is not None:
                say(f"- {for_the_command_line(part['sentence'])}")
