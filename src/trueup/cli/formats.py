"""trueup formats: which tools' files can be read and written."""

from __future__ import annotations

from typing import Any

from trueup.cli._app import as_command
from trueup.cli._console import print_json, print_table, say
from trueup.cli._options import AsJson


@as_command
def formats(as_json: AsJson = False) -> None:
    """List the tools whose exports are read, what becomes of them, and what can be written for them."""
    records = _records()
    if as_json:
        print_json({"formats": records})
        return
    print_table(
        ("format", ("files", "left"), ("what becomes of them", "left"), ("writes", "left"), ("written from", "left")),
        [(one["name"], one["title"], one["becomes"], one["writes"] or "", one["basis"]) for one in records],
    )
    say(
        "Files are recognised by their structure; --format names the tool where that does not tell. Plain tables (csv, "
        "tsv, jsonl, parquet) are read as they are, and written by 'trueup convert'."
    )


def _records() -> list[dict[str, Any]]:
    from trueup.adapters import ADAPTERS

    return [
        {
            "name": name,
            "title": ADAPTERS[name].title,
            "becomes": ADAPTERS[name].becomes,
            "writes": ADAPTERS[name].writes or None,
            "basis": _basis(ADAPTERS[name].basis),
        }
        for name in ADAPTERS
    ]


def _basis(basis: str) -> str:
    return f"from {basis}"
