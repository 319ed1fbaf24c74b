"""trueup metrics and trueup formats: what can be measured, and which tools' files can be read and written."""

from __future__ import annotations

from typing import Any

from trueup.cli._command import Answer, as_command
from trueup.cli._console import print_records, say

_CLASSES = ("no", "yes")  # of the descriptions; the second is the positive one
_NEEDS = {"counts": "classes", "labels": "classes", "scores": "scores", "probabilities": "probabilities"}


@as_command
def metrics() -> Answer:
    """List the metrics, what they mean, and what of the predictions they need."""
    from trueup.metrics import get_metric, list_metrics

    records = []
    for name in list_metrics():
        metric = get_metric(name, _CLASSES)
        about = {"name": name, "description": metric.description, "needs": _NEEDS[metric.needs]}
        better = {True: "higher", False: "lower", None: "neither"}[metric.higher_is_better]
        records.append({**about, "bounds": list(metric.bounds), "better": better})

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"metric": "name", ("what it is", "left"): "description", ("needs", "left"): "needs"}
        columns |= {"from": lambda row: _end(row["bounds"][0]), "to": lambda row: _end(row["bounds"][1])}
        print_records({**columns, ("better", "left"): "better"}, records)
        say(
            "Also: METRIC:CLASS for one class (recall:yes), macro_, micro_ and weighted_ averages over classes, fN "
            "with any weight of recall (f2), and other numbers after an @ (precision@10)."
        )

    return Answer({"metrics": records}, show, is_bare=True)


@as_command
def formats() -> Answer:
    """List the tools whose exports are read, what becomes of them, and what can be written for them."""
    from trueup.adapters import ADAPTERS

    records = [
        {
            "name": name,
            "title": adapter.title,
            "becomes": adapter.becomes,
            "writes": adapter.writes or None,
            "basis": f"from {adapter.basis}",
        }
        for name, adapter in ((name, ADAPTERS[name]) for name in ADAPTERS)
    ]

    def show(_: Any) -> None:
        columns: dict[Any, Any] = {"format": "name", ("files", "left"): "title"}
        columns |= {("what becomes of them", "left"): "becomes", ("writes", "left"): lambda row: row["writes"] or ""}
        print_records({**columns, ("written from", "left"): "basis"}, records)
        say(
            "Files are recognised by their structure; --format names the tool where that does not tell. Plain tables "
            "(csv, tsv, jsonl, parquet) are read as they are, and written by 'trueup convert'."
        )

    return Answer({"formats": records}, show, is_bare=True)


def _end(bound: float) -> str:
    return "∞" if bound == float("inf") else "−∞" if bound == -float("inf") else f"{bound:g}"
