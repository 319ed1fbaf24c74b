"""Prodigy: what ``db-out`` writes, JSON Lines.

An item is an input. In a choice the class is the option that was taken; else the class is whether the proposed label
was accepted. Ignored tasks abstain, and so do refused choices.
"""

from __future__ import annotations

import re
from typing import Any

from trueup.adapters.adapter import Adapter, marks
from trueup.adapters.collecting import Collector, hashed, plain
from trueup.adapters.content import Content, Head

_STAMP = re.compile(r".*\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_OWN_KEYS = {"answer", "accept", "options", "label", "spans", "tokens", "config", "priority", "score", "style"}
_ANSWERS = ("accept", "reject")


def _sniff(head: Head) -> list[str]:
    names = marks(head.keys, "_input_hash", "_task_hash")
    return [*names, *marks(head.keys, "answer", "_view_id")] if names else []


def _read(content: Content, collector: Collector) -> None:
    stamps: set[Any] = set()
    names: set[Any] = set()
    n_nameless = 0
    for task in collector.objects(content.records(), "tasks"):
        name = next((task[key] for key in ("_annotator_id", "_session_id") if plain(task.get(key)) is not None), None)
        if name is None:
            n_nameless += 1
            labeler: Any = collector.named_person(content.stem)
        else:
            (stamps if _STAMP.fullmatch(str(name)) else names).add(name)
            labeler = collector.named_person(name)
        _read_task(task, labeler, collector)
    if n_nameless:
        collector.note(f"{n_nameless:,} answers name nobody; they are taken for those of one person, after the file.")
    if stamps and not names:
        collector.note(
            f"All {len(stamps)} annotators are named by the time of a session, so one person may be several; name the "
            "sessions, or convert the file and name the labelers there."
        )


def _read_task(task: dict[str, Any], labeler: Any, collector: Collector) -> None:
    item = task.get("_input_hash")
    if plain(item) is None:
        item = hashed(task.get("text"))
    columns = {k: v for k, v in task.items() if not k.startswith("_") and k not in _OWN_KEYS and plain(v) is not None}
    collector.describe(item, columns)
    answer, when = task.get("answer"), task.get("_timestamp")
    time = f"{when:020.3f}" if isinstance(when, int | float) and not isinstance(when, bool) else None
    options = task.get("options")
    label = plain(task.get("label"))
    if isinstance(options, list) or isinstance(task.get("accept"), list):
        question = "choice"
        taken = task.get("accept")
        if answer == "accept" and isinstance(taken, list):
            collector.vote(question, item, labeler, taken, when=time)
        elif answer == "reject":
            collector.abstain(question, item, labeler, "refused choices", when=time)
        else:
            collector.abstain(question, item, labeler, "ignored tasks", when=time)
        return
    if isinstance(task.get("spans"), list) and label is None:
        collector.drop("tasks that mark parts of a text")
        return
    question = "accept" if label is None else str(label)
    collector.ask(question, classes=_ANSWERS)
    if answer in _ANSWERS:
        collector.vote(question, item, labeler, answer, when=time)
    else:
        collector.abstain(question, item, labeler, "ignored tasks", when=time)


PRODIGY = Adapter(
    title="Prodigy: db-out, JSON Lines",
    sniff=_sniff,
    read=_read,
    becomes="votes: accepted and rejected tasks, or choices",
    basis="real files",
)
