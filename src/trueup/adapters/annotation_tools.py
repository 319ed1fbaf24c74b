"""Tools in which people annotate: Prodigy, doccano, Label Studio and Argilla."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from itertools import islice, zip_longest
from typing import Any

from trueup.adapters.collecting import (
    Adapter,
    Answer,
    Collector,
    Target,
    differing_columns,
    first_of,
    hashed,
    json_in,
    listed,
    marks,
    member,
    plain,
    with_values,
)
from trueup.adapters.content import Content, Head, without_suffix
from trueup.exceptions import InvalidFile, InvalidParameter

# ------------------ Prodigy: what ``db-out`` writes, JSON Lines.
# In a choice the class is the option that was taken; else it is whether the proposed label was accepted. Ignored tasks
# abstain, and so do refused choices.

_STAMP = re.compile(r".*\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_PRODIGY_KEYS = {"answer", "accept", "options", "label", "spans", "tokens", "config", "priority", "score", "style"}


def _sniff_prodigy(head: Head) -> list[str]:
    names = marks(head.keys, "_input_hash", "_task_hash")
    return [*names, *marks(head.keys, "answer", "_view_id")] if names else []


def _read_prodigy(content: Content, collector: Collector) -> None:
    stamps: set[Any] = set()
    names: set[Any] = set()
    n_nameless = 0
    for task in collector.objects(content.records(), "tasks"):
        name = first_of(task, "_annotator_id", "_session_id")
        if name is None:
            n_nameless += 1
        else:
            (stamps if _STAMP.fullmatch(str(name)) else names).add(name)
        labeler = collector.named_person(content.stem if name is None else name)
        item = hashed(task.get("text")) if plain(task.get("_input_hash")) is None else task["_input_hash"]
        own = {key: value for key, value in task.items() if not key.startswith("_") and key not in _PRODIGY_KEYS}
        collector.describe(item, with_values(own))
        answer, time, taken, label = task.get("answer"), task.get("_timestamp"), task.get("accept"), task.get("label")
        when = f"{time:020.3f}" if isinstance(time, int | float) and not isinstance(time, bool) else None
        if isinstance(task.get("options"), list) or isinstance(taken, list):
            chosen = taken if answer == "accept" and isinstance(taken, list) else None
            why = "refused choices" if answer == "reject" else "ignored tasks"
            collector.vote("choice", item, labeler, chosen, when=when, abstention=why)
            continue
        if isinstance(task.get("spans"), list) and plain(label) is None:
            collector.drop("tasks that mark parts of a text")
            continue
        question = "accept" if plain(label) is None else str(plain(label))
        collector.ask(question, classes=("accept", "reject"))
        verdict = answer if answer in ("accept", "reject") else None
        collector.vote(question, item, labeler, verdict, when=when, abstention="ignored tasks")
    if n_nameless:
        collector.note(f"{n_nameless:,} answers name nobody; they are taken for those of one person, after the file.")
    if stamps and not names:
        collector.note(
            f"All {len(stamps)} annotators are named by the time of a session, so one person may be several; name the "
            "sessions, or convert the file and name the labelers there."
        )


# ------------------ doccano: a zip or folder with a file for each annotator, or one such file.
# The labeler is the name of the file. The file of a collaborative project, ``all``, does not name annotators and is
# refused. An example without labels was not confirmed, and so is missing.

_OWN_KEYS = {"id", "label", "labels", "annotations", "Comments", "comments"}


def _sniff_doccano(head: Head) -> list[str]:
    rows = head.member_rows if head.shape == "archive" else head.rows if head.shape == "rows" else []
    keys = {key for row in rows for key in row}
    labels = [row.get("label", row.get("labels")) for row in rows]
    if "text" not in keys or any(key.startswith("_") for key in keys):
        return []
    return ["text", "lists as label"] if labels and all(isinstance(label, list) for label in labels) else []


def _read_doccano(content: Content, collector: Collector) -> None:
    files = [(content.stem, content.records)]
    if content.head.shape == "archive":
        names = content.archive.ending_in((".jsonl", ".json"))
        files = [(without_suffix(name.rpartition("/")[2]), partial(content.member_records, name)) for name in names]
    for annotator, records in files:
        if annotator == "all":
            raise InvalidFile(
                f"{content.who} does not name annotators, got the file 'all' of doccano; export one for each annotator"
            )
        labeler = collector.named_person(annotator)
        for row in collector.objects(records(), "examples"):
            item = hashed(row.get("text")) if plain(row.get("id")) is None else row["id"]
            collector.describe(item, {name: value for name, value in row.items() if name not in _OWN_KEYS})
            labels = row.get("label", row.get("labels", row.get("annotations")))
            if not labels:
                collector.miss("examples that nobody confirmed")
            elif all(plain(label) is not None for label in (labels if isinstance(labels, list) else [labels])):
                collector.vote("label", item, labeler, labels)
            else:
                collector.drop("examples whose labels mark parts of the text")


# ------------------ Label Studio: JSON (also of the time before 1.0), JSON-MIN and CSV; tasks and suggestions back.
# In JSON a task has annotations (``completions`` before 1.0), each with results by control. A control that chooses
# among classes is a question. JSON-MIN and CSV have a row for each annotation, with the answers among the columns of
# the task; skipped answers, marks of ground truth and predictions are gone there.

ITEM_KEY = "trueup_item"  # in the data of tasks that were written here: Label Studio numbers tasks anew
_ROW_COLUMNS = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", ITEM_KEY}
_REGION_KEYS = {"start", "x", "points", "rle", "vertices", "ranges"}  # of an answer about a part of the item


def _sniff_label_studio(head: Head) -> list[str]:
    if {"annotation_id", "annotator"} <= head.keys.keys():
        return marks(head.keys, "annotation_id", "annotator", "lead_time")
    lists = [name for name in ("annotations", "completions", "predictions") if isinstance(head.keys.get(name), list)]
    is_task = head.shape == "rows" and isinstance(head.keys.get("data"), dict) and lists
    return ["data", *lists] if is_task else []


def _read_label_studio(content: Content, collector: Collector) -> None:
    if "annotation_id" in content.head.keys:
        _read_rows(content, collector)
        return
    for number, task in enumerate(collector.objects(content.records(), "tasks"), start=1):
        data = member(task, "data")
        item = _item_of(task, data, number, "id")
        collector.describe(item, {name: value for name, value in data.items() if name != ITEM_KEY})
        annotations = list(collector.objects(task.get("annotations", task.get("completions")), "annotations"))
        for place, annotation in enumerate(annotations, start=1):
            _read_annotation(annotation, item, place, collector)
        if not annotations:
            collector.miss("tasks without annotations")
        collector.drop("drafts", len(listed(task.get("drafts"))))
        predictions = task.get("predictions")
        if isinstance(predictions, list):
            n_numbers = sum(isinstance(prediction, int) for prediction in predictions)
            collector.drop("predictions of which the export has the numbers only", n_numbers)
            predictions = [prediction for prediction in predictions if not isinstance(prediction, int)]
        for prediction in collector.objects(predictions, "predictions"):
            for question, values in _answers_of(prediction.get("result"), collector).items():
                system = prediction.get("model_version") or "model"
                collector.predict(question, item, system, values, prediction.get("score"))


def _item_of(record: dict[str, Any], about: dict[str, Any], unnamed: Any, *names: str) -> Any:
    """The name that was written here, or that the tool has."""
    found = (first_of(about, ITEM_KEY), first_of(record, *names), unnamed)
    return next(name for name in found if name is not None)


def _read_annotation(annotation: dict[str, Any], item: Any, place: int, collector: Collector) -> None:
    person = annotation.get("completed_by")
    person = first_of(person, "id", "email") if isinstance(person, dict) else person
    if plain(person) is None:
        labeler: Any = f"unknown {place}"
        collector.map("annotations that name no annotator, numbered within their tasks")
    else:
        labeler = collector.person(person)
    results, is_gold = annotation.get("result"), annotation.get("ground_truth")
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        collector.abstain(None, item, labeler, "skipped answers")
        return
    origins = [str(result.get("origin", "")) for result in listed(results) if isinstance(result, dict)]
    prelabeled = annotation.get("parent_prediction") is not None or any(o.startswith("prediction") for o in origins)
    when = annotation.get("updated_at") or annotation.get("created_at")
    for question, values in _answers_of(results, collector).items():
        if is_gold:
            collector.truth(question, item, values)
        else:
            collector.vote(question, item, labeler, values, when=when, prelabeled=prelabeled)
    if not results and not is_gold:
        collector.abstain(None, item, labeler, "empty answers")


def _answers_of(results: Any, collector: Collector) -> dict[str, list[Any]]:
    """The classes that each control was answered with."""
    answers: dict[str, list[Any]] = defaultdict(list)
    for result in collector.objects(results, "results"):
        name, kind, value = result.get("from_name"), result.get("type"), result.get("value")
        if not isinstance(value, dict) or not isinstance(name, str):
            collector.drop("results without a control or a value")
            continue
        chosen = _chosen(value)
        if chosen is None or _REGION_KEYS & value.keys():
            collector.drop(f"results of type {kind!r}, which choose no class of the whole item")
            continue
        if name not in answers:
            collector.ask(name, to_name=str(result.get("to_name") or ""), type=str(kind or "choices"))
        answers[name] += chosen
    return dict(answers)


def _chosen(value: dict[str, Any]) -> list[Any] | None:
    """The classes in the value of a result; None where it holds something else."""
    if isinstance(value.get("choices"), list):
        return list(value["choices"])
    if isinstance(value.get("taxonomy"), list):
        return [" / ".join(map(str, path)) for path in value["taxonomy"] if isinstance(path, list)]
    for name in ("rating", "number", "selected"):
        if plain(value.get(name)) is not None:
            return [value[name]]
    return None


def _read_rows(content: Content, collector: Collector) -> None:
    """The rows of JSON-MIN and CSV; the question is the column that was named, or that differs among answers."""
    collector.from_text = content.head.shape == "table"
    rows = list(collector.objects(content.records(), "rows"))
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in _ROW_COLUMNS))
    question = collector.question
    if question is None or question not in columns:
        differing = differing_columns(rows, columns, "id")
        candidates = differing or columns
        if len(candidates) != 1:
            names = ", ".join(map(repr, candidates)) or "none"
            raise InvalidParameter(
                f"the column of the answers in {content.who} is not known, got the columns {names}; name it with "
                "`question=…`",
                parameter="question",
            )
        question = candidates[0]
        why = "differs among answers to one task" if differing else "is no column of the tool's own"
        collector.note(f"Guessed that {question!r} is the question, since it alone {why}.")
    for number, row in enumerate(rows, start=1):
        item, labeler = _item_of(row, row, number, "id"), collector.person(row.get("annotator"))
        collector.describe(item, {k: v for k, v in row.items() if k != question and k not in _ROW_COLUMNS})
        cell = row.get(question)  # text, a list, or either as JSON
        if isinstance(cell, str) and cell[:1] in ("[", "{"):
            in_cell = json_in(cell)
            cell = cell if in_cell is None else in_cell
        if isinstance(cell, dict):
            cell = _chosen(cell)
        chosen = None if cell == [] else cell
        when = None if chosen is None else row.get("updated_at")
        collector.vote(question, item, labeler, chosen, when=when, abstention="empty answers")
    collector.note(
        "JSON-MIN and CSV of Label Studio have no skipped answers and no predictions, and ground truth looks like one "
        "more annotator; the JSON export has them."
    )


def _write_label_studio(answers: Iterable[Answer], target: Target) -> str:
    """Tasks for import, each with what is suggested as a prediction."""
    details = target.details
    kind, class_name = details.get("type") or "choices", details.get("class")
    control = details.get("question") or target.question  # of one class of several, the control of all
    if class_name is None and kind not in ("rating", "number", "taxonomy", "pairwise"):
        kind = "choices"
    tasks = []
    for answer in answers:
        task: dict[str, Any] = {"data": {**(answer.columns or {}), ITEM_KEY: answer.item}}
        label = answer.label
        if label is not None:
            if class_name is not None:
                value: dict[str, Any] = {kind: [class_name] if label == "yes" else []}
            elif kind in ("rating", "number"):
                value = {kind: label}
            elif kind == "taxonomy":
                value = {"taxonomy": [str(label).split(" / ")]}
            else:
                value = {"selected": label} if kind == "pairwise" else {"choices": [str(label)]}
            result = {
                "from_name": control,
                "to_name": details.get("to_name") or "text",
                "type": kind,
                "value": value,
            }
            prediction: dict[str, Any] = {"model_version": target.agent, "result": [result]}
            if answer.confidence is not None:
                prediction["score"] = answer.confidence
            task["predictions"] = [prediction]
        tasks.append(task)
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


# ------------------ Argilla: records as JSON, nested or flat, and as parquet; also of version 1.

_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTION, _OF_SUGGESTION = ".suggestion", ("agent", "value", "score")
_OWN_COLUMNS = {"id", "_server_id", "status", "inserted_at", "updated_at"}


def _sniff_argilla(head: Head) -> list[str]:
    flat = [name for name in head.keys if name.endswith((_USERS, _STATUS))]
    if flat:
        return [*flat[:3], *(name for name in head.keys if name.endswith((_RESPONSES, _SUGGESTION)))][:4]
    fields, responses = head.keys.get("fields"), head.keys.get("responses")
    if isinstance(fields, dict) and isinstance(responses, dict | list):
        return ["fields", "responses", *marks(head.keys, "suggestions", "_server_id")]
    return []


def _read_argilla(content: Content, collector: Collector) -> None:
    is_flat = any(name.endswith((_USERS, _STATUS)) for name in content.head.keys)
    for number, record in enumerate(collector.objects(content.records(), "records"), start=1):
        about, columns, answers, suggestions = _of_flat(record) if is_flat else _of_nested(record, collector)
        item = _item_of(record, about, f"record {number}", "id", "external_id", "_server_id")
        collector.describe(item, columns)
        for question, user, value, status in answers:
            labeler = collector.person(user)
            if status == "draft":
                collector.drop("drafts")
            elif status == "discarded":
                collector.abstain(question, item, labeler, "discarded answers")
            elif value is None:
                collector.abstain(question, item, labeler, "empty answers")
            elif not _names_classes(value):
                collector.drop("answers that rank or mark parts of a text")
            else:
                collector.vote(question, item, labeler, value)
        if not answers:
            collector.miss("records without answers")
        for question, agent, value, score in suggestions:
            if _names_classes(value):
                collector.predict(question, item, agent or "model", value, score)


# Where a name may be, the columns of the item, its answers and its suggestions.
_Parts = tuple[dict[str, Any], dict[str, Any], list[tuple[Any, ...]], list[tuple[Any, ...]]]


def _of_nested(record: dict[str, Any], collector: Collector) -> _Parts:
    """Of a record whose answers are inside of it, as objects or as lists in version 1."""
    metadata = member(record, "metadata")
    columns = {**member(record, "fields"), **{name: value for name, value in metadata.items() if name != ITEM_KEY}}
    answers: list[tuple[Any, ...]] = []
    for question, several in member(record, "responses").items():
        for answer in collector.objects(several, "responses"):
            answers.append((question, answer.get("user_id"), answer.get("value"), answer.get("status")))
            if "status" not in answer:
                collector.note(
                    "Nested exports of Argilla have lost the status of answers, so that discarded ones and drafts "
                    "count as votes; to_list(flatten=True) and to_datasets() keep it."
                )
    for response in collector.objects(listed(record.get("responses")), "responses"):
        for question, value in member(response, "values").items():
            inner = value.get("value") if isinstance(value, dict) else value
            answers.append((question, response.get("user_id"), inner, response.get("status")))
    by_question = [*member(record, "suggestions").items(), (None, listed(record.get("suggestions")))]
    suggestions = [
        (question or str(part.get("question_name") or part.get("question_id")), *map(part.get, _OF_SUGGESTION))
        for question, several in by_question
        for part in collector.objects(several, "suggestions")
    ]
    return metadata, columns, answers, suggestions


def _of_flat(record: dict[str, Any]) -> _Parts:
    """Of a record whose keys are questions with what is said of them."""
    questions = [name.removesuffix(_RESPONSES) for name in record if name.endswith(_RESPONSES)]
    suggested = [name.removesuffix(_SUGGESTION) for name in record if name.endswith(_SUGGESTION)]
    ends = (_RESPONSES, _USERS, _STATUS, _SUGGESTION, f"{_SUGGESTION}.score", f"{_SUGGESTION}.agent")
    own = {f"{question}{end}" for question in (*questions, *suggested) for end in ends}
    columns = {name: value for name, value in record.items() if name not in own | _OWN_COLUMNS | {ITEM_KEY}}
    answers: list[tuple[Any, ...]] = []
    for question in questions:
        users, values, statuses = (listed(record.get(f"{question}{end}")) for end in (_USERS, _RESPONSES, _STATUS))
        rows = islice(zip_longest(users, values, statuses), len(values))
        answers += [(question, *row) for row in rows]
    parts = [f"{_SUGGESTION}{end}" for end in (".agent", "", ".score")]
    suggestions = [(question, *(record.get(f"{question}{part}") for part in parts)) for question in suggested]
    return record, columns, answers, suggestions


def _names_classes(value: Any) -> bool:
    """Whether an answer is a class or several; not if it ranks, or marks parts of a text."""
    return all(plain(part) is not None for part in (value if isinstance(value, list) else [value]))


def _write_argilla(answers: Iterable[Answer], target: Target) -> str:
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


TOOLS: dict[str, Adapter] = {
    "prodigy": Adapter(
        title="Prodigy: db-out, JSON Lines",
        sniff=_sniff_prodigy,
        read=_read_prodigy,
        becomes="votes: accepted and rejected tasks, or choices",
        basis="real files",
    ),
    "doccano": Adapter(
        title="doccano: a zip or folder with a JSON Lines file for each annotator",
        sniff=_sniff_doccano,
        read=_read_doccano,
        becomes="votes: labels; the name of the file is the labeler",
        basis="real files",
    ),
    "label-studio": Adapter(
        title="Label Studio: JSON (also of before 1.0), JSON-MIN, CSV",
        sniff=_sniff_label_studio,
        read=_read_label_studio,
        becomes="votes: annotations; gold: ground_truth; predictions: predictions",
        basis="files that the tool's own code wrote",
        write=_write_label_studio,
        writes="tasks with predictions, for import",
    ),
    "argilla": Adapter(
        title="Argilla: records as JSON (nested or flat) or parquet",
        sniff=_sniff_argilla,
        read=_read_argilla,
        becomes="votes: responses; predictions: suggestions",
        basis="files that the tool's own code wrote",
        write=_write_argilla,
        writes="records with suggestions",
    ),
}
