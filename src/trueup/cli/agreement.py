"""trueup agreement: do the labelers agree, and judges with experts?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import as_json, interval_head, note, print_records, say
from trueup.cli._files import by_name, class_named, read_votes
from trueup.cli._gates import numbers_by_name

_MOST_PAIRS = 10


@as_command
def agreement(
    votes: options.VotesFile,
    how: options.VoteOptions,
    scale: str = options.opt("nominal", "How far apart classes are: nominal, ordinal, interval or ratio."),
    labelers: str = options.opt("random", "Whether the labelers are a sample, too: random or fixed."),
    values: list[str] = options.opt([], "The number of a class that is none; once for each.", "CLASS=NUMBER"),
    expert: list[str] = options.opt([], "A labeler that the others are held against; once for each.", "NAME"),
    weighting: str = options.opt("quadratic", "Of the weighted kappa: quadratic or linear."),
    weights: options.Weights = None,
    by: options.By = None,
    level: options.Level = 0.95,
    report: options.Report = None,
) -> Answer:
    """How far labelers agree: kappas, alpha and the like with intervals, pairs, and the items they disagree on."""
    from trueup.reliability import agreement as entry_point
    from trueup.report import save_report
    from trueup.report.agreement import agreement_report

    labels = read_votes(votes, how)
    numbers = numbers_by_name(values, "--values", "class")
    names = by_name(labels.labelers.tolist())
    answer = entry_point(
        labels,
        scale=scale,  # type: ignore[arg-type]  # these are checked by the callee, with a sentence
        labelers=labelers,  # type: ignore[arg-type]
        weighting=weighting,  # type: ignore[arg-type]
        values={class_named(labels, name): number for name, number in numbers.items()} or None,
        weights=weights,
        by=by,
        experts=[names.get(name, name) for name in expert],
        level=level,
    )
    if report is not None:
        save_report(as_json(agreement_report(answer)), report)
        note(f"report: {report}")
    return Answer(answer.to_dict, _show)


def _show(body: Mapping[str, Any]) -> None:
    """The tables for people."""
    ends = interval_head(body["level"])
    columns: dict[Any, Any] = {
        "coefficient": "name",
        ("what it is", "left"): "meaning",
        "mean": "mean",
        ends: "interval",
    }
    for name, part in [(None, body), *body["by"].items()]:
        print_records(columns, list(part["coefficients"].values()), title=name)
    pairs = body["pairs"]
    if len(pairs) > _MOST_PAIRS:
        pairs = [*pairs[: _MOST_PAIRS // 2], *pairs[-_MOST_PAIRS // 2 :]]
    if pairs:
        columns = {"labeler": "a", ("with", "left"): "b", "items": "n_items", "same": "percent", "kappa": "kappa"}
        print_records(columns | {ends: "interval"}, pairs)
    notes = list(body["notes"])
    if body["judges"] is not None:
        judges = [{"judge": "an expert", "measure": k, "class": "", **v} for k, v in body["judges"]["ceiling"].items()]
        judges += [row | {"class": row["class"] or ""} for row in body["judges"]["judges"]]
        columns = {"judge": "judge", ("measure", "left"): "measure", ("class", "left"): "class", "mean": "mean"}
        print_records(columns | {ends: "interval"}, judges)
        notes += body["judges"]["notes"]
    if body["disputed"]:

        def votes_on(row: Mapping[str, Any]) -> str:
            return ", ".join(f"{name} {n:g}" for name, n in row["votes"].items())

        print_records({"disputed item": "item", ("votes", "left"): votes_on}, body["disputed"][:5])
    say(body["sentence"])
    for sentence in notes:
        say(f"- {sentence}")
