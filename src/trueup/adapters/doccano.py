"""doccano: a zip or folder with a file for each annotator, or one such file.

The labeler is the name of the file. The file of a collaborative project, ``all``, does not tell who said what and is
refused. An example without labels was not confirmed, and so is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueup.adapters.adapter import Adapter
from trueup.adapters.collecting import Collector, hashed, plain
from trueup.adapters.content import Content, Head, without_suffix
from trueup.exceptions import InvalidFile

_QUESTION = "label"
_OWN_KEYS = {"id", "label", "labels", "annotations", "Comments", "comments"}
_SUFFIXES = (".jsonl", ".json")  # of the files that a zip of doccano has


def _sniff(head: Head) -> list[str]:
    rows = head.member_rows if head.shape == "archive" else head.rows if head.shape == "rows" else []
    keys = {key for row in rows for key in row}
    labels = [row.get("label", row.get("labels")) for row in rows]
    if "text" not in keys or any(key.startswith("_") for key in keys):
        return []
    return ["text", "lists as label"] if labels and all(isinstance(one, list) for one in labels) else []


def _read(content: Content, collector: Collector) -> None:
    if content.head.shape == "archive":
        for name in content.archive.ending_in(_SUFFIXES):
            annotator = without_suffix(name.rpartition("/")[2])
            _read_rows(content.member_records(name), annotator, content.who, collector)
    else:
        _read_rows(content.records(), content.stem, content.who, collector)


def _read_rows(rows: Iterator[Any], annotator: str, who: str, collector: Collector) -> None:
    if annotator == "all":
        raise InvalidFile(
            f"{who} does not tell who said what, got the file 'all' of a collaborative project; switch sharing of "
            "annotations off in doccano, and export a file for each annotator"
        )
    labeler = collector.named_person(annotator)
    for row in collector.objects(rows, "examples"):
        item = row.get("id") if plain(row.get("id")) is not None else hashed(row.get("text"))
        collector.describe(item, {name: value for name, value in row.items() if name not in _OWN_KEYS})
        labels = row.get("label", row.get("labels", row.get("annotations")))
        if not labels:
            collector.miss("examples that nobody confirmed")
        elif all(plain(one) is not None for one in (labels if isinstance(labels, list) else [labels])):
            collector.vote(_QUESTION, item, labeler, labels)
        else:
            collector.drop("examples whose labels mark parts of the text")


DOCCANO = Adapter(
    title="doccano: a zip or folder with a JSON Lines file for each annotator",
    sniff=_sniff,
    read=_read,
    becomes="votes: labels; the name of the file is the labeler",
    basis="real files",
)
