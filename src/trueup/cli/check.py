"""trueup check: do the files fit, and what is in them?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.wording import percent
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import BAD_INPUT, complain, fail_on, json_head, print_json, print_table, say, shown, silenced
from trueup.cli._files import about_files, read_systems, read_votes
from trueup.cli.evaluate import about_independence
from trueup.exceptions import InvalidPredictions

if TYPE_CHECKING:
    from trueup.data.aligned import System
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions


@as_command
def check(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    predictions: options.OptionalPredictionsFile = None,
    dependence: Annotated[
        bool, options.option("--dependence/--no-dependence", "Check whether labelers err together; takes seconds.")
    ] = True,
    as_json: options.AsJson = False,
    fail_if_dependent: options.FailIfDependent = False,
) -> None:
    """Validate the files and say what is in them; exit code 2 if `trueup evaluate` would refuse them."""
    labels = read_votes(votes, votes_how)
    counts = labels.summary()
    systems: list[dict[str, Any]] = []
    problems: list[str] = []
    if predictions is not None:
        read = read_systems(predictions, labels, predictions_how, votes_how)
        systems = about_systems(read, labels)
        problems = problems_with(read, labels, fit.policies)
    about = about_dependence(labels) if dependence or fail_if_dependent else None
    check = None if about is None else about["independence"]
    findings = []
    if fail_if_dependent and check is not None and check["dependent"]:
        findings = [f"{shown(check['sentence'])} {shown(check['advice'])}"]
    notes = [*labels.notes(), *_about_gold(labels)]
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=votes_how.gold, items=votes_how.items)
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


def _about_gold(labels: Labels) -> list[str]:
    """What there is to say of how the gold was drawn."""
    if not labels.gold:
        return []
    from trueup.answers.notes import design_doubts, sampling_unknown

    return [*design_doubts(labels), *sampling_unknown(labels)]


def _show(
    labels: Labels,
    counts: dict[str, Any],
    systems: list[dict[str, Any]],
    about: dict[str, Any] | None,
    notes: list[str],
) -> None:
    per_item, per_labeler, drawn = counts["votes_per_item"], counts["votes_per_labeler"], counts["drawn_gold"]
    rows: list[tuple[str, str]] = [
        ("votes", f"{counts['votes']:,}"),
        ("items", f"{counts['items']:,}"),
        ("labelers", f"{counts['labelers']:,}"),
        ("votes an item", f"{per_item['min']} to {per_item['max']}, {per_item['mean']:.1f} on average"),
        ("votes a labeler", f"{per_labeler['min']} to {per_labeler['max']}, median {per_labeler['median']:.0f}"),
        ("repeated votes", f"{counts['repeated_votes']:,}"),
        ("rows without a vote", f"{counts['missing']:,}"),
        ("abstentions", f"{counts['abstentions']:,}"),
        ("vetted truths", f"{counts['gold']:,}" + (f", {drawn:,} of them drawn" if drawn else "")),
        ("known of the items", ", ".join(labels.item_columns) or "nothing"),
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
        say(f"- {shown(sentence)}")
    if about is not None:
        for part in (about["independence"], about["effective_labelers"]):
            if part is not None:
                say(f"- {shown(part['sentence'])} {shown(part.get('advice', ''))}".rstrip())


_MOST_CLASSES = 20
_MOST_VOTES = 60_000  # dependence is looked for in this many votes at most, of items chosen by chance


def class_shares(labels: Labels) -> list[tuple[Hashable, float]]:
    """The share of votes of each class, the commonest first; of very many classes the commonest only."""
    totals = labels.answer_counts.sum(axis=0)[: labels.n_classes]
    order = sorted(range(labels.n_classes), key=lambda k: -totals[k])[:_MOST_CLASSES]
    names = labels.classes.tolist()
    return [(names[k], float(totals[k] / max(totals.sum(), 1))) for k in order]


def about_systems(predictions: Predictions, labels: Labels) -> list[dict[str, Any]]:
    """Counts for each system: rows, items of the votes predicted and not, items and classes the votes do not have."""
    return [_about(part, labels) for part in predictions.parts]


def _about(system: System, labels: Labels) -> dict[str, Any]:
    gives = [
        what
        for what, values in (
            ("classes", system.codes),
            ("scores", system.scores),
            ("probabilities", system.probabilities),
        )
        if values is not None
    ]
    known = None if system.items is None else labels.find_items(system.items) >= 0
    n_known = system.n if known is None else int(known.sum())
    strange: list[str] = []
    n_strange = 0
    if system.codes is not None and system.classes is not None:
        classes = set(labels.classes.tolist())
        odd = {k: name for k, name in enumerate(system.classes.tolist()) if name not in classes}
        used = [odd[code] for code in system.codes.tolist() if code in odd]
        n_strange, strange = len(used), sorted({str(name) for name in used})
    return {
        "system": str(system.name),
        "gives": ", ".join(gives),
        "rows": system.n,
        "items": n_known,
        "missing": labels.n_items - n_known,
        "unknown_items": system.n - n_known,
        "unknown_classes": n_strange,
        "classes_nobody_voted_for": strange,
    }


def problems_with(predictions: Predictions, labels: Labels, policies: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why an evaluation would refuse the files."""
    problems: list[str] = []
    ignoring: dict[str, Any] = dict.fromkeys(policies, "ignore")
    for name in predictions.systems.tolist():
        one = predictions[name]
        # One policy at a time, so that each reason is told, not only the first.
        for policy, value in policies.items():
            try:
                one.align(labels, **{**ignoring, policy: value})
            except InvalidPredictions as error:
                problems.append(error.sentence)
    return list(dict.fromkeys(problems))


def about_dependence(labels: Labels) -> dict[str, Any]:
    """Whether labelers err together, and how many independent ones the votes are worth."""
    import numpy as np

    from trueup.answers.notes import dependence_of
    from trueup.noise import DawidSkene, effective_labelers

    if labels.n_votes > _MOST_VOTES:
        chosen = np.random.default_rng(0).random(labels.n_items) < _MOST_VOTES / labels.n_votes
        labels = labels.select(items=labels.items[chosen])
    with silenced():
        independence = dependence_of(labels)
        # Where no item has two votes nothing can be said of either.
        effective = None if independence is None else effective_labelers(labels)
    return {
        # For those who name a model of independent errors; the plain answer assumes none.
        "independence": about_independence(independence, DawidSkene()),
        "effective_labelers": None if effective is None else asdict(effective),
        "votes_looked_at": labels.n_votes,
    }
