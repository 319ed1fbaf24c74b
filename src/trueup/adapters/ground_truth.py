"""SageMaker Ground Truth: output manifests, and the folder of worker responses, also as tar or zip.

A manifest has one consolidated label for each object, which is a prediction of the job and no vote. The votes lie in
``worker-response/iteration-<n>/<line of the manifest>/<time>.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from trueup._base.validation import preview
from trueup.adapters.adapter import Adapter
from trueup.adapters.collecting import Collector, plain
from trueup.adapters.content import Content, Head
from trueup.exceptions import InvalidFile

_RESPONSE = re.compile(r"(?P<job>.*/)?worker-response/iteration-\d+/(?P<line>\d+)/[^/]+\.json")
_SOURCES = ("source-ref", "source")


def _sniff(head: Head) -> list[str]:
    if head.shape == "archive":
        responses = [name for name in head.members if _RESPONSE.fullmatch(name)]
        manifests = [name for name in head.members if name.endswith(".manifest")]
        # The folders of a response are two marks themselves: of what it is, and of the object it is about.
        return [name for name in ("worker-response/", "iteration-") if responses] + manifests[:1]
    sources = [name for name in _SOURCES if name in head.keys]
    about = [
        name
        for name, value in head.keys.items()
        if name.endswith("-metadata")
        and isinstance(value, dict)
        and str(value.get("type", "")).startswith("groundtruth/")
    ]
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
                f"{content.who} must be of one labeling job, got {len(several)}: {preview(several)}; "
                "name the folder of one of them"
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


GROUND_TRUTH = Adapter(
    title="SageMaker Ground Truth: output manifests, and folders (also tar, zip) of worker responses",
    sniff=_sniff,
    read=_read,
    becomes="votes: worker responses; predictions: consolidated labels",
    basis="real files",
)
