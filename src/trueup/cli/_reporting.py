"""What commands that judge systems share at their end: the head of the JSON, and the report file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.cli._console import note
from trueup.exceptions import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels

__all__ = ["check_report_path", "json_head", "write_report"]

_SUFFIXES = (".html", ".md", ".json")


def check_report_path(path: str | None) -> None:
    """Stop before the work if the report could not be written afterwards."""
    from trueup._base.writing import check_writable

    if path is None:
        return
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise InvalidFile(
            f"a report must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}, got {path!r}; "
            "name it e.g. report.html"
        )
    check_writable(path)


def json_head(*, seed: int | None, files: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a result reproducible: the version, the seed and the files."""
    from importlib.metadata import version

    return {"version": version("trueup"), "seed": seed, "files": dict(files)}


def write_report(
    path: str | None,
    evaluations: Mapping[str, Evaluation],
    labels: Labels,
    *,
    comparison: Comparison | None = None,
    title: str | None = None,
    seed: int,
    settings: Mapping[str, Any],
    tell: bool = True,
) -> None:
    """Write the report, if one is wanted, and tell where on standard error."""
    from trueup.report import build_report, save_report

    if path is None:
        return
    data = build_report(
        evaluations, labels=labels, comparison=comparison, title=title, seed=seed, settings=dict(settings)
    )
    save_report(data, path)
    if tell:
        note(f"report: {path}")
