"""Feedback rows of Langfuse, LangSmith and Phoenix: who said what of which trace, run or span.

The three keep the same thing under other names. What people said is gold; what models, code and programs said are votes
of labelers by the name that the row has for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trueup.adapters.adapter import Adapter, marks
from trueup.adapters.collecting import Collector, plain
from trueup.adapters.content import Content, Head


@dataclass(frozen=True)
class _Feedback:
    """A row in common terms."""

    item: Any
    question: Any
    who: str
    label: Any
    by_person: bool
    correction: Any = None
    when: Any = None


def _first(row: Mapping[str, Any], *names: str) -> Any:
    """The first of these that the row has a name under."""
    return next((row[name] for name in names if plain(row.get(name)) is not None), None)


def _inside(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in a row: as it is, as JSON in a cell, or as columns with a dot."""
    value = row.get(name)
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, dict):
        return value
    return {key.removeprefix(f"{name}."): cell for key, cell in row.items() if key.startswith(f"{name}.")}


# Langfuse -----------------------------------------------------------------------------------------------------------

_LANGFUSE_KEYS = ("traceId", "observationId", "dataType", "stringValue", "authorUserId", "configId", "queueId")


def _langfuse(row: Mapping[str, Any]) -> _Feedback:
    source = str(plain(row.get("source")) or "API").upper()
    kind = str(plain(row.get("dataType")) or "").upper()
    label = row.get("value") if kind == "NUMERIC" or plain(row.get("stringValue")) is None else row.get("stringValue")
    return _Feedback(
        _first(row, "observationId", "traceId", "sessionId", "datasetRunId"),
        row.get("name"),
        source.lower(),
        label,
        source == "ANNOTATION",
        when=row.get("timestamp") or row.get("createdAt"),
    )


# LangSmith ----------------------------------------------------------------------------------------------------------

_LANGSMITH_KEYS = ("run_id", "feedback_source", "key", "feedback_group_id", "comparative_experiment_id", "correction")


def _langsmith(row: Mapping[str, Any]) -> _Feedback:
    source = _inside(row, "feedback_source")
    kind = str(plain(source.get("type")) or "api")
    metadata = source.get("metadata") if isinstance(source.get("metadata"), dict) else {}
    corrected = row.get("correction")
    if isinstance(corrected, dict):
        corrected = _first(corrected, "value", "score", "label")
    return _Feedback(
        _first(row, "run_id", "trace_id"),
        row.get("key"),
        str(_first(metadata or {}, "model", "name") or kind),
        _first(row, "value", "score"),
        kind == "app",
        correction=corrected,
        when=row.get("created_at"),
    )


# Phoenix ------------------------------------------------------------------------------------------------------------

_PHOENIX_KEYS = ("annotator_kind", "span_id", "identifier", "annotation_name", "result", "result.label", "result.score")


def _phoenix(row: Mapping[str, Any]) -> _Feedback:
    kind = str(plain(row.get("annotator_kind")) or "CODE").upper()
    result = {**row, **_inside(row, "result")}
    return _Feedback(
        _first(row, "span_id", "context.span_id", "trace_id", "session_id"),
        _first(row, "name", "annotation_name"),
        str(_first(row, "identifier") or kind.lower()),
        _first(result, "label", "score"),
        kind == "HUMAN",
        when=row.get("updated_at") or row.get("created_at"),
    )


# All ----------------------------------------------------------------------------------------------------------------


def _adapter(tool: str, own: str, convert: Callable[[Mapping[str, Any]], _Feedback], keys: tuple[str, ...]) -> Adapter:
    """The adapter of a tool whose rows have a key that the others lack, maybe spread over columns with dots."""

    def sniff(head: Head) -> list[str]:
        spread = [key for key in head.keys if key.startswith(f"{own}.")]
        if own not in head.keys and not spread:
            return []
        return list(dict.fromkeys([*marks(head.keys, own, *keys), *spread]))

    def read(content: Content, collector: Collector) -> None:
        collector.from_text = content.head.shape == "table"
        for row in collector.objects(content.records(), "rows"):
            _tell(convert(row), collector)

    return Adapter(
        title=f"{tool}: feedback rows as JSON, JSON Lines or CSV",
        sniff=sniff,
        read=read,
        becomes="votes: feedback of models and programs; gold: feedback of people, and corrections",
        basis="the documented layout",
    )


def _tell(feedback: _Feedback, collector: Collector) -> None:
    question = plain(feedback.question)
    if question is None or plain(feedback.item) is None:
        collector.drop("rows without a name or a thing that was judged")
        return
    label = plain(feedback.label)
    if feedback.by_person:
        if label is None:
            collector.miss("judgements of people without a value")
        else:
            collector.map("judgements of people read as gold")
            collector.truth(str(question), feedback.item, label)
        return
    if plain(feedback.correction) is not None:
        collector.map("corrections read as gold")
        collector.truth(str(question), feedback.item, feedback.correction)
    if label is None:
        collector.abstain(str(question), feedback.item, feedback.who, "verdicts without a value", when=feedback.when)
    else:
        collector.vote(str(question), feedback.item, feedback.who, label, when=feedback.when)


LANGFUSE = _adapter("Langfuse", "traceId", _langfuse, _LANGFUSE_KEYS)
LANGSMITH = _adapter("LangSmith", "feedback_source", _langsmith, _LANGSMITH_KEYS)
PHOENIX = _adapter("Phoenix", "annotator_kind", _phoenix, _PHOENIX_KEYS)
