"""Tables of crowd platforms, recognised by their columns: Mechanical Turk, Appen (or CrowdFlower), Toloka, crowd-kit.

Columns of places, addresses and the platform's own book-keeping are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trueup._base.validation import preview
from trueup.adapters.collecting import (
    Adapter,
    Collector,
    differing_columns,
    is_address,
    is_personal_column,
    json_in,
    marks,
    member,
    plain,
    sniff_keys,
)
from trueup.adapters.content import Content, Head
from trueup.exceptions import InvalidFile

Row = dict[str, Any]
_BLANK = {"", "{}", "NA", "nan"}


def _cell(row: Row, name: str) -> Any:
    """A cell, or None where it is blank."""
    value = row.get(name)
    return None if isinstance(value, str) and value.strip() in _BLANK else value


def _rows(content: Content, collector: Collector) -> tuple[list[Row], list[str]]:
    """The rows of a table, and all of its columns."""
    collector.from_text = content.head.shape == "table"
    rows = list(collector.objects(content.records(), "rows"))
    return rows, list(dict.fromkeys(name for row in rows for name in row))


def _read_mturk(content: Content, collector: Collector) -> None:
    rows, columns = _rows(content, collector)
    inputs = [name for name in columns if name.startswith("Input.")]
    item_column = next((name for name in inputs if _names_items(rows, name)), None)
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


def _names_items(rows: list[Row], name: str) -> bool:
    """Whether a column of the input has one value for each HIT and another for every other, no person's own."""
    if is_personal_column(name.removeprefix("Input.")) or any(is_address(row.get(name)) for row in rows):
        return False
    pairs = {(str(row.get("HITId")), str(row.get(name))) for row in rows}
    n_hits, n_values = len({hit for hit, _ in pairs}), len({value for _, value in pairs})
    return len(pairs) == n_hits == n_values and all(_cell(row, name) is not None for row in rows)


def _mturk_answers(row: Row, columns: list[str]) -> dict[str, Any]:
    """The answers of an assignment by question; ticked boxes are columns of their own, and newer pages hold JSON."""
    if isinstance(row.get("Answer.taskAnswers"), str):
        pages = json_in(row["Answer.taskAnswers"])
        page = pages[0] if isinstance(pages, list) and pages else pages
        return {
            str(name): [option for option in value if value[option] is True]
            if isinstance(value, dict)
            else plain(value)
            for name, value in (page.items() if isinstance(page, dict) else ())
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
    rows, columns = _rows(content, collector)
    columns = [name for name in columns if not name.startswith("_")]
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
    rows, columns = _rows(content, collector)
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
    for row in _rows(content, collector)[0]:
        labeler = collector.person(row.get("worker", row.get("performer")))
        if _cell(row, "label") is None:
            collector.miss("blank answers")
        else:
            collector.vote("label", _cell(row, "task"), labeler, row["label"])


# ------------------ SageMaker Ground Truth: output manifests, and folders, tar or zip files of worker responses.
# A manifest has one consolidated label for each object, which is a prediction of the job and no vote. The votes lie in
# ``worker-response/iteration-<n>/<line of the manifest>/<time>.json``.

_RESPONSE = re.compile(r"(?P<job>.*/)?worker-response/iteration-\d+/(?P<line>\d+)/[^/]+\.json")
_SOURCES = ("source-ref", "source")


def _sniff_ground_truth(head: Head) -> list[str]:
    if head.shape == "archive":
        has_responses = any(_RESPONSE.fullmatch(name) for name in head.members)
        manifests = [name for name in head.members if name.endswith(".manifest")]
        # The folders of a response are two marks themselves: of what it is, and of the object it is about.
        return ["worker-response/", "iteration-"] * has_responses + manifests[:1]
    sources = marks(head.keys, *_SOURCES)
    metadata = [name for name in head.keys if name.endswith("-metadata")]
    about = [name for name in metadata if str(member(head.keys, name).get("type", "")).startswith("groundtruth/")]
    return [*sources, *about] if sources else []


def _read_ground_truth(content: Content, collector: Collector) -> None:
    if content.head.shape != "archive":
        _read_manifest(content.records(), collector)
        return
    manifests = content.archive.ending_in(".manifest")
    output = [name for name in manifests if name.endswith("output.manifest")] or manifests
    matches = [(name, match) for name in content.archive.names if (match := _RESPONSE.fullmatch(name))]
    folders = sorted({match["job"] or "" for _, match in matches})
    for several in (folders, output if folders else []):  # several jobs have each their own lines
        if len(several) > 1:
            raise InvalidFile(
                f"{content.who} must be of one labeling job, got {len(several)}: {preview(several)}; name one"
            )
    items: list[Any] = []
    jobs: list[str] = []
    if output:
        items, jobs = _read_manifest(content.member_records(output[0]), collector)
    answers = []
    for name, match in matches:
        if name.rpartition("/")[2].startswith("._"):
            continue
        line = int(match["line"][:9])
        item = items[line] if line < len(items) else line
        for response in collector.objects(content.member_records(name), "responses"):
            for answer in collector.objects(response.get("answers"), "answers"):
                for key, value in member(answer, "answerContent").items():
                    chosen = _chosen(value)
                    if chosen is None:
                        collector.drop("answers that choose no class")
                    else:
                        answers.append((key, item, answer.get("workerId"), chosen, answer.get("submissionTime")))
    # The element of the page is the question of the job, if each has one only.
    question = jobs[0] if len(jobs) == len({key for key, *_ in answers}) == 1 else None
    for key, item, worker, chosen, when in answers:
        collector.vote(key if question is None else question, item, collector.person(worker), chosen, when=when)


def _read_manifest(lines: Iterable[Any], collector: Collector) -> tuple[list[Any], list[str]]:
    """Collect the consolidated labels; returns the object of each line, and the attributes that are labels."""
    items: list[Any] = []
    jobs: dict[str, None] = {}
    for number, content in enumerate(lines):
        line = next(collector.objects([content], "lines of the manifest"), {})  # what is none is a line all the same
        item = next((line[name] for name in _SOURCES if plain(line.get(name)) is not None), number)
        items.append(item)
        for name, about in line.items():
            if not name.endswith("-metadata") or not isinstance(about, dict):
                continue
            job = name.removesuffix("-metadata")
            label, class_map = line.get(job), member(about, "class-map")
            if plain(about.get("class-name")) is not None:
                label = about["class-name"]
            elif isinstance(label, list):
                label = [class_map.get(str(code), code) for code in label]
            else:
                label = plain(label)
            if label is None or about.get("failure-reason") or isinstance(line.get(job), dict):
                collector.drop("objects with boxes, or without a label")
                continue
            jobs[job] = None
            system = "ground-truth"
            if about.get("human-annotated") == "no":
                system = "ground-truth-auto"
                collector.map("labels of the service's own model, kept apart as ground-truth-auto")
            collector.predict(job, item, system, label, about.get("confidence"))
    return items, list(jobs)


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
    "mturk": Adapter(
        title="Mechanical Turk: batch results, CSV",
        sniff=sniff_keys("HITId", "AssignmentId", "WorkerId"),
        read=_read_mturk,
        becomes="votes: columns Answer.…",
        basis="real files",
    ),
    "appen": Adapter(
        title="Appen, CrowdFlower, Figure Eight: full reports, CSV",
        sniff=sniff_keys("_unit_id", "_worker_id", "_id"),
        read=_read_appen,
        becomes="votes: judgements; gold: columns …_gold",
        basis="real files",
    ),
    "toloka": Adapter(
        title="Toloka: assignments, TSV",
        sniff=sniff_keys("ASSIGNMENT:assignment_id", "ASSIGNMENT:worker_id"),
        read=_read_toloka,
        becomes="votes: columns OUTPUT:…; gold: columns GOLDEN:…",
        basis="the documented layout",
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
        sniff=_sniff_ground_truth,
        read=_read_ground_truth,
        becomes="votes: worker responses; predictions: consolidated labels",
        basis="real files",
    ),
}
