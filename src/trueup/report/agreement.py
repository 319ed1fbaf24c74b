"""A page about how far labelers agree, and the few lines of it that every report has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueup._base.wording import interval, level_words, number
from trueup.data.labels import Labels
from trueup.exceptions import TrueupError
from trueup.reliability.agreement import agreement
from trueup.report.sentences import plain, shorten
from trueup.report.tables import table

if TYPE_CHECKING:
    from trueup.reliability import Agreement

_MOST_VOTES = 200_000  # of a report that is about something else


def agreement_report(answer: Agreement) -> dict[str, Any]:
    """All that the page says, as a dict that JSON can hold."""
    title = "Do the labelers agree?"
    return {"format": 1, "page": "agreement", "title": title, **answer.to_dict()}


def agreement_page(report: Mapping[str, Any]) -> dict[str, Any]:
    """The page in parts, as `trueup.report.pages` has those of other answers."""
    ends = f"{level_words(report['level'])} interval"

    def numbers(row: Mapping[str, Any]) -> tuple[str, str]:
        return number(row["mean"]), interval(row["low"], row["high"])

    coefficients = [
        table(name, ["Coefficient", "Mean", ends], [(row["meaning"], *numbers(row)) for row in rows.values()])
        for name, rows in [
            ("All items", report["coefficients"]),
            *((shorten(name, 60), part["coefficients"]) for name, part in report["by"].items()),
        ]
    ]
    classes = [(shorten(row["class"], 60), *numbers(row)) for row in report["by_class"]]
    pairs = []
    for row in report["pairs"][:_MOST_PAIRS]:
        two = shorten(row["a"], 60), shorten(row["b"], 60)
        pairs.append((*two, f"{row['n_items']:,}", number(row["percent"]), number(row["kappa"])))
    disputed = [
        (shorten(row["item"], 60), ", ".join(f"{shorten(name, 30)} {n:g}" for name, n in row["votes"].items()))
        for row in report["disputed"]
    ]
    parts = [
        _part("coefficients", "Coefficients", "", *coefficients),
        _part(
            "classes", "Classes", "If one says it, how often another does.", table("", ["Class", "Mean", ends], classes)
        ),
        _part("pairs", "Pairs", "", table("", ["Labeler", "With", "Items", "Same", "Kappa"], pairs, n_words=2)),
    ]
    if report["judges"] is not None:
        judges = [
            (shorten(row["judge"], 60), row["measure"], shorten(row["class"] or "", 40), *numbers(row))
            for row in report["judges"]["judges"]
        ]
        lead = str(report["judges"]["sentence"])
        head = ["Judge", "Measure", "Class", "Mean", ends]
        parts.append(_part("judges", "Judges", lead, table("", head, judges, n_words=3)))
    parts.append(
        _part("disputed", "Disputed items", "", table("", ["Item", "Votes"], disputed, n_words=2)) if disputed else {}
    )
    also = "items and labelers are samples" if report["labelers"] == "random" else "these labelers alone"
    return {
        "format": 1,
        "page": "agreement",
        "title": "Do the labelers agree?",
        **data,
        "verdict": [plain(data["sentence"])],
        "notes": [plain(note) for note in data["notes"]],
        "n_votes": answer.labels.n_votes,
    }


def _part(name: str, heading: str, lead: str, *tables: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": name, "heading": heading, "lead": lead, "figures": [], "tables": tables}


def agreement_data(labels: Labels) -> Mapping[str, Any] | None:
    """What every report says of agreement; None where no two labelers voted on an item."""
    if labels.n_votes > _MOST_VOTES:
        labels = labels.select(items=labels.items[:: -(-labels.n_votes // _MOST_VOTES)])
    try:
        answer = agreement(labels)
    except TrueupError:
        return None
    shown = [name for name in ("percent", "alpha", "ac1") if name in answer]
    return {
        "sentence": plain(answer.sentence),
        "coefficients": {name: answer[name].to_dict(answer.level) for name in shown},
    }
