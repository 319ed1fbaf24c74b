"""Tables of crowd platforms, told by their columns: Mechanical Turk, Appen (or CrowdFlower), Toloka, crowd-kit.

Columns of places, addresses and the platform's own book-keeping are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trueup._base.validation import preview
from trueup.adapters.collecting import (
    Adapter,
    Basis,
    Collector,
    differing_columns,
    is_address,
    is_personal_column,
    marks,
    member,
    plain,
)
from trueup.adapters.content import Content, Head
from trueup.exceptions import InvalidFile

Row = dict[str, Any]
_BLANK = {"", "{}", "NA", "nan"}


def _cell(row: Row, name: str) -> Any:
    """A cell, or None where it is blank."""
    value = row.get(name)
    return None if value is None or (isinstance(value, str) and value.strip() in _BLANK) else value


def _rows(content: Content, collector: Collector) -> list[Row]:
    collector.from_text = content.head.shape == "table"
    return list(collector.objects(content.records(), "rows"))


def _columns(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _read_mturk(content: Content, collector: Collector) -> None:
    rows = _rows(content, collector)
    columns = _columns(rows)
    inputs = [name for name in columns if name.startswith("Input.")]
    item_column = _item_column(rows, inputs)
    if item_column is None:
        collector.note("Items are HITs: no column Input.… has a value of its own for each of them.")
    for row in rows:
        item = _cell(row, item_column or "HITId")
        if str(row.get("AssignmentStatus")) == "Rejected":
            collector.drop("assignments that the requester rejected")
            continue
        labeler = collector.person(_cell(row, "WorkerId"))
        collector.describe(item, {name.removeprefix("Input."): row.get(name) for name in inputs if name != item_column})
        for question, label in _mturk_answers(row, columns).items():
            if label is None:
                collector.miss("blank answers")
            else:
                collector.vote(question, item, labeler, label)


def _item_column(rows: list[Row], inputs: list[str]) -> str | None:
    """The first column of the input that has one value for each HIT and another for every other, no person's own."""
    for name in inputs:
        if is_personal_column(name.removeprefix("Input.")) or any(is_address(row.get(name)) for row in rows):
            continue
        pairs = {(str(row.get("HITId")), str(row.get(name))) for row in rows}
        n_hits, n_values = len({hit for hit, _ in pairs}), len({value for _, value in pairs})
        if len(pairs) == n_hits == n_values and all(_cell(row, name) is not None for row in rows):
            return name
    return None


def _mturk_answers(row: Row, columns: list[str]) -> dict[str, Any]:
    """The answers of an assignment by question; ticked boxes are columns of their own, and newer pages hold JSON."""
    if isinstance(row.get("Answer.taskAnswers"), str):
        try:
            pages = json.loads(row["Answer.taskAnswers"])
        except (ValueError, RecursionError):
            pages = None
        page = pages[0] if isinstance(pages, list) and pages else pages
        answered = page.items() if isinstance(page, dict) else ()
        return {
            str(name): [one for one in value if value[one] is True] if isinstance(value, dict) else plain(value)
            for name, value in answered
        }
    answers: dict[str, Any] = {}
    for name in columns:
        if not name.startswith("Answer."):
            continue
        question, dot, option = name.removeprefix("Answer.").partition(".")
        value = _cell(row, name)
        if not dot:
            answers[question] = value
        elif str(value).lower() in ("true", "false"):
            answers.setdefault(question, [])
            answers[question] += [option] if str(value).lower() == "true" else []
        elif value is not None:
            answers[f"{question}.{option}"] = value
    return answers


def _read_appen(content: Content, collector: Collector) -> None:
    rows = _rows(content, collector)
    columns = [name for name in _columns(rows) if not name.startswith("_")]
    golds = [name for name in columns if name.endswith("_gold") and name.removesuffix("_gold") in columns]
    differing = differing_columns(rows, columns, "_unit_id")
    questions = [name.removesuffix("_gold") for name in golds]
    if collector.question in columns:
        questions = [str(collector.question)]
    if not questions and differing:
        questions, listed = differing, ", ".join(map(repr, differing))
        collector.note(f"Guessed that {listed} are questions, since judgements of one unit differ in them.")
    if not questions:
        listed = ", ".join(map(repr, columns)) or "none"
        raise InvalidFile(
            f"the column of the answers in {content.who} is not known, got the columns {listed}; name it with "
            "`question=…`"
        )
    for row in rows:
        item, labeler = _cell(row, "_unit_id"), collector.person(_cell(row, "_worker_id"))
        if str(row.get("_tainted")).lower() == "true":
            collector.drop("judgements that the platform called tainted")
            continue
        collector.describe(item, {name: row.get(name) for name in columns if name not in {*questions, *golds}})
        for question in questions:
            gold = _cell(row, f"{question}_gold")
            if gold is not None and "\n" in str(gold):
                collector.drop("test questions with several right answers")
            elif gold is not None:
                collector.truth(question, item, str(gold))
            label = _cell(row, question)
            if label is None:
                collector.miss("blank answers")
            else:
                answers = str(label).split("\n")
                collector.vote(question, item, labeler, answers if len(answers) > 1 else label)


def _read_toloka(content: Content, collector: Collector) -> None:
    rows = _rows(content, collector)
    columns = _columns(rows)
    inputs = [name for name in columns if name.startswith("INPUT:")]
    for row in rows:
        status = str(_cell(row, "ASSIGNMENT:status") or "APPROVED")
        item = _cell(row, "ASSIGNMENT:task_id") or "|".join(str(row.get(name)) for name in inputs)
        labeler = collector.person(_cell(row, "ASSIGNMENT:worker_id"))
        collector.describe(item, {name.removeprefix("INPUT:"): row.get(name) for name in inputs})
        for name in columns:
            if not name.startswith("OUTPUT:"):
                continue
            question = name.removeprefix("OUTPUT:")
            gold, label = _cell(row, f"GOLDEN:{question}"), _cell(row, name)
            if gold is not None:
                collector.truth(question, item, gold)
            if status == "REJECTED":
                collector.drop("assignments that the requester rejected")
            elif status == "SKIPPED":
                collector.abstain(question, item, labeler, "skipped assignments")
            elif status == "EXPIRED" or label is None:
                collector.miss("assignments without an answer")
            else:
                collector.vote(question, item, labeler, label, when=_cell(row, "ASSIGNMENT:submitted"))


def _sniff_crowd_kit(head: Head) -> list[str]:
    who = marks(head.keys, "worker", "performer")
    return ["task", *who, "label"] if who and {"task", "label"} <= head.keys.keys() else []


def _read_crowd_kit(content: Content, collector: Collector) -> None:
    for row in _rows(content, collector):
        labeler = collector.person(row.get("worker", row.get("performer")))
        if _cell(row, "label") is None:
            collector.miss("blank answers")
        else:
            collector.vote("label", _cell(row, "task"), labeler, row["label"])


def _preset(
    title: str, names: tuple[str, ...], read: Callable[[Content, Collector], None], becomes: str, basis: Basis
) -> Adapter:
    def sniff(head: Head) -> list[str]:
        return list(names) if set(names) <= head.keys.keys() else []

    return Adapter(title=title, sniff=sniff, read=read, becomes=becomes, basis=basis)


# ------------------ SageMaker Ground Truth: output manifests, and folders, tar or zip files of worker responses.
# A manifest has one consolidated label for each object, which is a prediction of the job and no vote. The votes lie in
# ``worker-response/iteration-<n>/<line of the manifest>/<time>.json``.

_RESPONSE = re.compile(r"(?P<job>.*/)?worker-response/iteration-\d+/(?P<line>\d+)/[^/]+\.json")
_SOURCES = ("source-ref", "source")


def _sniff(head: Head) -> list[str]:
    if head.shape == "archive":
        responses = [name for name in head.members if _RESPONSE.fullmatch(name)]
        manifests = [name for name in head.members if name.endswith(".manifest")]
        # The folders of a response are two marks themselves: of what it is, and of the object it is about.
        return [name for name in ("worker-response/", "iteration-") if responses] + manifests[:1]
    sources = [name for name in _SOURCES if name in head.keys]
    metadata = {name: member(head.keys, name) for name in head.keys if name.endswith("-metadata")}
    about = [name for name, value in metadata.items() if str(value.get("type", "")).startswith("groundtruth/")]
    return [*sources, *about] if sources else []


def _read(content: Content, collector: Collector) -> None:
    if content.head.shape != "archive":
        _read_manifest(content.records(), collector)
        return
    output = _manifests_of_one_job(content)
    items: list[Any] = []
    jobs: list[str] = []
    if output:
        items, jobs = _read_manifest(content.member_records(output[0]), collector)
    answers = list(_answers(content, items, collector))
    keys = list(dict.fromkeys(key for _, _, _, key, _ in answers))
    for item, worker, when, key, value in answers:
        # The element of the page is the question of the job, if each has one only.
        question = jobs[0] if len(jobs) == len(keys) == 1 else key
        collector.vote(question, item, collector.person(worker), value, when=when)


def _manifests_of_one_job(content: Content) -> list[str]:
    """The manifest whose lines the responses are about, if there is one; several jobs have each their own lines."""
    manifests = content.archive.ending_in(".manifest")
    output = [name for name in manifests if name.endswith("output.manifest")] or manifests
    folders = {match["job"] or "" for name in content.archive.names if (match := _RESPONSE.fullmatch(name))}
    for several in (sorted(folders), output if folders else []):
        if len(several) > 1:
            raise InvalidFile(
                f"{content.who} must be of one labeling job, got {len(several)}: {preview(several)}; name one"
            )
    return output


def _read_manifest(lines: Iterable[Any], collector: Collector) -> tuple[list[Any], list[str]]:
    """Tell the consolidated labels; returns the object of each line, and the attributes that are labels."""
    items: list[Any] = []
    jobs: dict[str, None] = {}
    for number, one in enumerate(lines):
        line = next(collector.objects([one], "lines of the manifest"), {})  # what is none is a line all the same
        item = next((line[name] for name in _SOURCES if plain(line.get(name)) is not None), number)
        items.append(item)
        for name, about in line.items():
            if not name.endswith("-metadata") or not isinstance(about, dict):
                continue
            job = name.removesuffix("-metadata")
            label = _consolidated(line.get(job), about)
            if label is None:
                collector.drop("objects with boxes, or without a label")
                continue
            jobs[job] = None
            by_people = about.get("human-annotated") != "no"
            system = "ground-truth" if by_people else "ground-truth-auto"
            if not by_people:
                collector.map("labels of the service's own model, kept apart as ground-truth-auto")
            collector.predict(job, item, system, label, about.get("confidence"))
    return items, list(jobs)


def _consolidated(value: Any, about: dict[str, Any]) -> Any:
    """The class of an object, by name if the metadata has it; None where there is none."""
    if about.get("failure-reason") or isinstance(value, dict):
        return None
    names = about.get("class-name")
    if plain(names) is not None:
        return names
    class_map = about.get("class-map")
    if isinstance(value, list):
        listed = class_map if isinstance(class_map, dict) else {}
        return [listed.get(str(code), code) for code in value]
    return plain(value)


def _answers(content: Content, items: list[Any], collector: Collector) -> Iterator[tuple[Any, Any, Any, str, Any]]:
    """Object, worker, time, element and class of each answer."""
    for name in content.archive.names:
        match = _RESPONSE.fullmatch(name)
        if match is None or name.rpartition("/")[2].startswith("._"):
            continue
        line = int(match["line"][:9])
        item = items[line] if line < len(items) else line
        for response in collector.objects(content.member_records(name), "responses"):
            for answer in collector.objects(response.get("answers"), "answers"):
                inside = answer.get("answerContent")
                for key, value in inside.items() if isinstance(inside, dict) else ():
                    chosen = _chosen(value)
                    if chosen is None:
                        collector.drop("answers that choose no class")
                    else:
                        yield item, answer.get("workerId"), answer.get("submissionTime"), key, chosen


def _chosen(value: Any) -> Any:
    """What an element of a page holds: a label, several, a plain value, or boxes that were ticked."""
    if not isinstance(value, dict):
        return plain(value)
    if plain(value.get("label")) is not None:
        return value["label"]
    if isinstance(value.get("labels"), list):
        return value["labels"]
    if value and all(isinstance(ticked, bool) for ticked in value.values()):
        return [name for name, ticked in value.items() if ticked]
    return None


TOOLS: dict[str, Adapter] = {
    "mturk": _preset(
        "Mechanical Turk: batch results, CSV",
        ("HITId", "AssignmentId", "WorkerId"),
        _read_mturk,
        "votes: columns Answer.…",
        "real files",
    ),
    "appen": _preset(
        "Appen, CrowdFlower, Figure Eight: full reports, CSV",
        ("_unit_id", "_worker_id", "_id"),
        _read_appen,
        "votes: judgements; gold: columns …_gold",
        "real files",
    ),
    "toloka": _preset(
        "Toloka: assignments, TSV",
        ("ASSIGNMENT:assignment_id", "ASSIGNMENT:worker_id"),
        _read_toloka,
        "votes: columns OUTPUT:…; gold: columns GOLDEN:…",
        "the documented layout",
    ),
    "crowd-kit": Adapter(
        title="crowd-kit: tables of task, worker and label",
        sniff=_sniff_crowd_kit,
        read=_read_crowd_kit,
        becomes="votes: rows",
        basis="the documented layout",
    ),
    "ground-truth": Adapter(
        title="SageMaker Ground Truth: output manifests, and folders (also tar, zip) of worker responses",
        sniff=_sniff,
        read=_read,
        becomes="votes: worker responses; predictions: consolidated labels",
        basis="real files",
    ),
}
