"""trueup check: do the files fit, and what is in them?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trueup._base.wording import percent
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import print_records, print_table, say, shown, silenced
from trueup.cli._files import read_systems, read_votes
from trueup.cli.evaluate import about_independence
from trueup.exceptions import InvalidPredictions

if TYPE_CHECKING:
    from trueup.data.labels import Labels
    from trueup.data.predictions import Predictions
    from trueup.data.systems import System

_MOST_CLASSES = 20
_MOST_VOTES = 60_000  # dependence is looked for in this many votes at most, of items chosen by chance


@as_command
def check(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    fit: options.FitOptions,
    predictions: options.OptionalPredictionsFile = None,
    dependence: bool = options.opt(
        True, "Check whether labelers err together; takes seconds.", None, "--dependence/--no-dependence"
    ),
    fail_if_dependent: options.FailIfDependent = False,
) -> Answer:
    """Validate the files and say what is in them; exit code 2 if `trueup evaluate` would refuse them."""
    labels = read_votes(votes, votes_how)
    systems, problems = [], []
    if predictions is not None:
        read = read_systems(predictions, labels, predictions_how, votes_how)
        systems = [_about_system(part, labels) for part in read.parts]
        problems = _problems_with(read, labels, vars(fit))
    about: dict[str, Any] = {"independence": None, "effective_labelers": None}
    if dependence or fail_if_dependent:
        about = _about_dependence(labels)
    found = about["independence"]
    findings = []
    if fail_if_dependent and found is not None and found["dependent"]:
        findings = [f"{found['sentence']} {found['advice']}"]
    notes = [*labels.notes(), *_about_gold(labels)]
    body = {"votes": labels.summary(), "notes": notes, "systems": systems, **about, "problems": problems}

    return Answer(body, lambda body: _show(labels, body), findings=findings, problems=problems)


def _about_gold(labels: Labels) -> list[str]:
    """What there is to say of how the gold was drawn."""
    if not labels.gold:
        return []
    from trueup.answers.notes import design_doubts, sampling_unknown

    return [*design_doubts(labels), *sampling_unknown(labels)]


def _show(labels: Labels, body: Mapping[str, Any]) -> None:
    counts = body["votes"]
    per_item, per_labeler, drawn = counts["votes_per_item"], counts["votes_per_labeler"], counts["drawn_gold"]
    rows: list[tuple[str, object]] = [
        ("votes", counts["votes"]),
        ("items", counts["items"]),
        ("labelers", counts["labelers"]),
        ("votes an item", f"{per_item['min']} to {per_item['max']}, {per_item['mean']:.1f} on average"),
        ("votes a labeler", f"{per_labeler['min']} to {per_labeler['max']}, median {per_labeler['median']:.0f}"),
        ("repeated votes", counts["repeated_votes"]),
        ("rows without a vote", counts["missing"]),
        ("abstentions", counts["abstentions"]),
        ("checked items", f"{counts['gold']:,}" + (f", {drawn:,} of them drawn" if drawn else "")),
        ("columns of the items", ", ".join(labels.item_columns) or "none"),
    ]
    print_table(("the votes", ("", "left")), rows)
    print_table(("class", "share of votes"), [(name, percent(share, 1)) for name, share in class_shares(labels)])
    if body["systems"]:
        columns: dict[Any, Any] = {"system": "system", ("gives", "left"): "gives", "rows": "rows"}
        columns |= {"items with votes": "items", "without": "missing"}
        columns |= {"unknown items": "unknown_items", "unknown classes": "unknown_classes"}
        print_records(columns, body["systems"])
    for sentence in body["notes"]:
        say(f"- {shown(sentence)}")
    for part in (body["independence"], body["effective_labelers"]):
        if part is not None:
            say(f"- {shown(part['sentence'])} {shown(part.get('advice', ''))}".rstrip())


def class_shares(labels: Labels) -> list[tuple[Hashable, float]]:
    """The share of votes of each class, the commonest first; of very many classes the commonest only."""
    totals = labels.answer_counts.sum(axis=0)[: labels.n_classes]
    order = sorted(range(labels.n_classes), key=lambda k: -totals[k])[:_MOST_CLASSES]
    names = labels.classes.tolist()
    return [(names[k], float(totals[k] / max(totals.sum(), 1))) for k in order]


def _about_system(system: System, labels: Labels) -> dict[str, Any]:
    """Rows, items of the votes predicted and not, items and classes that the votes do not have."""
    outputs = {"classes": system.codes, "scores": system.scores, "probabilities": system.probabilities}
    n_found = system.n if system.items is None else int((labels.find_items(system.items) >= 0).sum())
    others: list[Hashable] = []
    if system.codes is not None and system.classes is not None:
        names, classes = system.classes.tolist(), set(labels.classes.tolist())
        others = [names[code] for code in system.codes.tolist() if code >= 0 and names[code] not in classes]
    return {
        "system": str(system.name),
        "gives": ", ".join(name for name, values in outputs.items() if values is not None),
        "rows": system.n,
        "items": n_found,
        "missing": labels.n_items - n_found,
        "unknown_items": system.n - n_found,
        "unknown_classes": len(others),
        "classes_nobody_voted_for": sorted({str(name) for name in others}),
    }


def _problems_with(predictions: Predictions, labels: Labels, policies: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why an evaluation would refuse the files."""
    problems: list[str] = []
    ignoring: dict[str, Any] = dict.fromkeys(policies, "ignore")
    for name in predictions.systems.tolist():
        # One policy at a time, so that each reason is found, not only the first.
        for policy, value in policies.items():
            try:
                predictions[name].align(labels, **{**ignoring, policy: value})
            except InvalidPredictions as error:
                problems.append(error.sentence)
    return list(dict.fromkeys(problems))


def _about_dependence(labels: Labels) -> dict[str, Any]:
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
