"""trueup metrics: what can be measured, and what each metric needs."""

from __future__ import annotations

from typing import Any

from trueup.cli._app import as_command
from trueup.cli._console import print_json, print_table, say
from trueup.cli._options import AsJson

_CLASSES = ("no", "yes")  # of the descriptions; the second is the positive one
_NEEDS = {"counts": "classes", "labels": "classes", "scores": "scores", "probabilities": "probabilities"}


@as_command
def metrics(as_json: AsJson = False) -> None:
    """List the metrics, what they mean, and what of the predictions they need."""
    records = [_about(name) for name in _names()]
    if as_json:
        print_json({"metrics": records})
        return
    print_table(
        ("metric", ("what it is", "left"), ("needs", "left"), "from", "to", ("better", "left")),
        [
            (one["name"], one["description"], one["needs"], *(_bound(end) for end in one["bounds"]), one["better"])
            for one in records
        ],
    )
    say(
        "Also: METRIC:CLASS for one class (recall:yes), macro_, micro_ and weighted_ averages over classes, fN with "
        "any weight of recall (f2), and other numbers after an @ (precision@10)."
    )


def _names() -> list[str]:
    from trueup.metrics import list_metrics

    return list_metrics()


def _about(name: str) -> dict[str, Any]:
    from trueup.metrics import get_metric

    metric = get_metric(name, _CLASSES)
    better = {True: "higher", False: "lower", None: "neither"}[metric.higher_is_better]
    return {
        "name": name,
        "description": metric.description,
        "needs": _NEEDS[metric.needs],
        "bounds": list(metric.bounds),
        "better": better,
    }


def _bound(end: float) -> str:
    return "∞" if end == float("inf") else "−∞" if end == -float("inf") else f"{end:g}"
