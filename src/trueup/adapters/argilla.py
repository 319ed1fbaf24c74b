"""Argilla: records as JSON, nested or flat, and as parquet; also of version 1. Records with suggestions back.

The nested export has lost the status of responses: discarded answers and drafts look like submitted ones there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from trueup.adapters.adapter import Adapter, Answer, Target, marks
from trueup.adapters.collecting import Collector, hashed, plain
from trueup.adapters.content import Content, Head

ITEM_KEY = "trueup_item"  # in the metadata of records that were written here
_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTION = ".suggestion"
_OWN_COLUMNS = {"id", "_server_id", "status", "inserted_at", "updated_at"}


def _sniff(head: Head) -> list[str]:
    flat = [name for name in head.keys if name.endswith((_USERS, _STATUS))]
    if flat:
        return [*flat[:3], *(name for name in head.keys if name.endswith((_RESPONSES, _SUGGESTION)))][:4]
    fields, responses = head.keys.get("fields"), head.keys.get("responses")
    if isinstance(fields, dict) and isinstance(responses, dict | list):
        return ["fields", "responses", *marks(head.keys, "suggestions", "_server_id")]
    return []


def _read(content: Content, collector: Collector) -> None:
    is_flat = any(name.endswith((_USERS, _STATUS)) for name in content.head.keys)
    for number, record in enumerate(collector.objects(content.records(), "records"), start=1):
        if is_flat:
            _read_flat(record, number, collector)
        else:
            _read_nested(record, number, collector)


# Nested -------------------------------------------------------------------------------------------------------------


def _read_nested(record: dict[str, Any], number: int, collector: Collector) -> None:
    metadata = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
    fields = record.get("fields") if isinstance(record.get("fields"), dict) else {}
    item = _item_of(record, metadata or {}, number)
    about = {name: value for name, value in (metadata or {}).items() if name != ITEM_KEY}
    collector.describe(item, {**(fields or {}), **about})
    n_read = 0
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, answers in responses.items():
            for answer in collector.objects(answers, "responses"):
                n_read += 1
                _answer(question, item, answer.get("user_id"), answer.get("value"), answer.get("status"), collector)
                if "status" not in answer:
                    collector.note(
                        "Nested exports of Argilla have lost the status of answers, so that discarded ones and drafts "
                        "count as votes; to_list(flatten=True) and to_datasets() keep it."
                    )
    for response in collector.objects(responses if isinstance(responses, list) else None, "responses"):  # version 1
        values = response.get("values")
        for question, value in values.items() if isinstance(values, dict) else ():
            n_read += 1
            inner = value.get("value") if isinstance(value, dict) else value
            _answer(question, item, response.get("user_id"), inner, response.get("status"), collector)
    if not n_read:
        collector.miss("records without answers")
    for question, suggestion in _suggestions(record.get("suggestions"), collector):
        value = _classes(suggestion.get("value"))
        if value is not None:
            collector.predict(question, item, suggestion.get("agent") or "model", value, suggestion.get("score"))


def _suggestions(suggestions: Any, collector: Collector) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(suggestions, dict):
        for question, suggestion in suggestions.items():
            yield from ((question, one) for one in collector.objects(suggestion, "suggestions"))
    elif isinstance(suggestions, list):  # version 1
        for one in collector.objects(suggestions, "suggestions"):
            yield str(one.get("question_name") or one.get("question_id")), one


def _item_of(record: dict[str, Any], metadata: dict[str, Any], number: int) -> Any:
    for name in (metadata.get(ITEM_KEY), record.get("id"), record.get("external_id"), record.get("_server_id")):
        if plain(name) is not None:
            return name
    return f"record {number}"


# Flat ---------------------------------------------------------------------------------------------------------------


def _read_flat(record: dict[str, Any], number: int, collector: Collector) -> None:
    item = _item_of(record, record, number)
    questions = [name.removesuffix(_RESPONSES) for name in record if name.endswith(_RESPONSES)]
    suggested = [name.removesuffix(_SUGGESTION) for name in record if name.endswith(_SUGGESTION)]
    own = {
        f"{question}{suffix}"
        for question in (*questions, *suggested)
        for suffix in (_RESPONSES, _USERS, _STATUS, _SUGGESTION, f"{_SUGGESTION}.score", f"{_SUGGESTION}.agent")
    }
    columns = {name: value for name, value in record.items() if name not in own | _OWN_COLUMNS | {ITEM_KEY}}
    collector.describe(item, columns)
    n_read = 0
    for question in questions:
        values = _listed(record.get(f"{question}{_RESPONSES}"))
        users, statuses = _listed(record.get(f"{question}{_USERS}")), _listed(record.get(f"{question}{_STATUS}"))
        for place, value in enumerate(values):
            n_read += 1
            user = users[place] if place < len(users) else None
            status = statuses[place] if place < len(statuses) else None
            _answer(question, item, user, value, status, collector)
    if not n_read:
        collector.miss("records without answers")
    for question in suggested:
        value = _classes(record.get(f"{question}{_SUGGESTION}"))
        if value is not None:
            agent = record.get(f"{question}{_SUGGESTION}.agent") or "model"
            collector.predict(question, item, agent, value, record.get(f"{question}{_SUGGESTION}.score"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# Both ---------------------------------------------------------------------------------------------------------------


def _answer(question: str, item: Any, user: Any, value: Any, status: Any, collector: Collector) -> None:
    labeler = collector.person(user)
    if status == "draft":
        collector.drop("drafts")
    elif status == "discarded":
        collector.abstain(question, item, labeler, "discarded answers")
    elif value is None:
        collector.abstain(question, item, labeler, "empty answers")
    elif (classes := _classes(value)) is None:
        collector.drop("answers that rank or mark parts of a text")
    else:
        collector.vote(question, item, labeler, classes)


def _classes(value: Any) -> Any:
    """The class or classes of an answer; None where it ranks, or marks parts of a text."""
    if isinstance(value, list):
        return value if all(plain(one) is not None for one in value) else None
    return plain(value)


# Back ---------------------------------------------------------------------------------------------------------------


def _write(answers: Iterable[Answer], target: Target) -> str:
    """Records for ``records.from_json``, each with what is suggested."""
    records = []
    for answer in answers:
        columns = dict(answer.columns or {})
        fields = {name: value for name, value in columns.items() if isinstance(value, str)}
        metadata = {name: value for name, value in columns.items() if name not in fields}
        suggestions: dict[str, Any] = {}
        if answer.label is not None:
            suggestions[target.question] = {"value": answer.label, "score": answer.confidence, "agent": target.agent}
        records.append(
            {
                "id": str(answer.item) if isinstance(answer.item, str | int) else hashed(answer.item),
                "fields": fields,
                "metadata": {**metadata, ITEM_KEY: answer.item},
                "suggestions": suggestions,
                "responses": {},
                "vectors": {},
            }
        )
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


ARGILLA = Adapter(
    title="Argilla: records as JSON (nested or flat) or parquet",
    sniff=_sniff,
    read=_read,
    becomes="votes: responses; predictions: suggestions",
    basis="files that the tool's own code wrote",
    write=_write,
    writes="records with suggestions",
)
