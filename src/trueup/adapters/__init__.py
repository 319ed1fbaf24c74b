"""Votes, gold and predictions straight from the tools people use, and back.

One `Adapter` a tool. `read_export` reads what a tool wrote; `read_labels`, `read_gold` and `read_predictions` take such
files too.
"""

from trueup.adapters.collecting import Adapter, Answer, Collector, Target
from trueup.adapters.content import Content, Head
from trueup.adapters.export import Answers, Export
from trueup.adapters.readers import (
    ADAPTERS,
    export_format,
    list_formats,
    read_export,
    read_gold,
    read_labels,
    read_pairs,
    read_predictions,
    writable_formats,
    write_tasks,
)

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Answer",
    "Answers",
    "Collector",
    "Content",
    "Export",
    "Head",
    "Target",
    "export_format",
    "list_formats",
    "read_export",
    "read_gold",
    "read_labels",
    "read_pairs",
    "read_predictions",
    "writable_formats",
    "write_tasks",
]
