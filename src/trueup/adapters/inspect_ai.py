"""Inspect: logs as .json and as .eval (a zip, today packed with Zstandard), finished, running or crashed; scores back.

A sample is an answer of the model to a question, and each scorer a labeler of it. A panel of graders is one score with
the votes of its members in the metadata. An epoch is a new answer, and so an item of its own, whose votes are of that
run. A score that somebody edited holds what the grader said in its history; the edit is gold. The scorer "choice"
compares letters with the key: the key is gold and the letter a prediction, and nobody votes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from trueup.adapters.adapter import Adapter, Answer, Target
from trueup.adapters.collecting import Collector, listed, member, plain
from trueup.adapters.content import Content, Head
from trueup.exceptions import InvalidFile, InvalidParameter

_GRADE, _SCORE, _ANSWER = "grade", "score", "answer"
_UNPARSEABLE = "grades that could not be parsed"
_HEADER_KEYS = ("eval", "status", "invalidated")
_UNPARSED_WERE_WRONG_BEFORE = (0, 3, 245)


def _sniff(head: Head) -> list[str]:
    if head.shape == "archive":
        parts = {"_journal/start.json", "header.json", "summaries.json"} & set(head.members)
        return sorted(parts) + (["samples/"] if any(name.startswith("samples/") for name in head.members) else [])
    about = head.document.get("eval")
    if not isinstance(about, dict) or "model" not in about:
        return []
    return [
        "eval.model",
        *(name for name in ("samples", "plan", "results", "stats", "status") if name in head.document),
    ]


# Samples ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Score:
    """What a scorer said of a sample."""

    value: Any
    answer: Any
    grader: str | None
    panel: list[Any] | None
    original: Any
    edited: bool


@dataclass(frozen=True)
class _Sample:
    """What is needed of a sample; the rest of it is long."""

    name: Any
    epoch: int
    target: Any
    scores: dict[str, _Score]
    columns: dict[str, Any]
    failed: bool
    invalid: bool


def _sample_of(sample: dict[str, Any]) -> _Sample:
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        scores = {"score": sample["score"]} if isinstance(sample.get("score"), dict) else {}
    epoch, metadata = sample.get("epoch"), sample.get("metadata")
    columns = {"input": sample["input"]} if isinstance(sample.get("input"), str) else {}
    columns |= {"target": sample["target"]} if isinstance(sample.get("target"), str) else {}
    if isinstance(metadata, dict):
        columns |= {name: value for name, value in metadata.items() if plain(value) is not None}
    return _Sample(
        sample.get("id"),
        epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else 1,
        sample.get("target"),
        {name: _score_of(score) for name, score in scores.items() if isinstance(score, dict)},
        columns,
        bool(sample.get("error")),
        bool(sample.get("invalidation")),
    )


def _score_of(score: dict[str, Any]) -> _Score:
    metadata = member(score, "metadata")
    panel = metadata.get("panel")
    votes = panel.get("votes") if isinstance(panel, dict) else None
    grading = metadata.get("grading")
    graders = [turn.get("model") for turn in listed(grading) if isinstance(turn, dict)]
    history = [edit for edit in score.get("history") or [] if isinstance(edit, dict)]
    originals = [edit.get("value") for edit in history if not edit.get("provenance")]
    return _Score(
        score.get("value"),
        score.get("answer"),
        next((name for name in graders if isinstance(name, str)), None),
        votes if isinstance(votes, list) else None,
        originals[0] if originals else None,
        any(edit.get("provenance") for edit in history),
    )


def _read(content: Content, collector: Collector) -> None:
    header, samples = (_from_archive if content.head.shape == "archive" else _from_json)(content, collector)
    about = member(header, "eval")
    _tell(about, samples, collector)
    if header.get("status") not in ("success", None):
        collector.note(f"The run has not ended well: its status is {str(header['status'])[:20]!r}.")
    if header.get("invalidated") is True:
        collector.note("The log holds samples that were declared invalid.")


def _from_json(content: Content, collector: Collector) -> tuple[dict[str, Any], list[_Sample]]:
    header: dict[str, Any] = {}
    samples: list[_Sample] = []
    with content.json() as stream:
        for key in stream.members():
            if key == "samples" and stream.next_character() == "[":
                samples += [_sample_of(one) for one in collector.objects(stream.elements(), "samples")]
            else:
                value = stream.value()
                header |= {key: value} if key in _HEADER_KEYS else {}
    return header, samples


def _from_archive(content: Content, collector: Collector) -> tuple[dict[str, Any], list[_Sample]]:
    names = set(content.archive.names)
    if "header.json" in names:
        header = next(content.member_records("header.json"), None)
    elif "_journal/start.json" in names:
        start = next(content.member_records("_journal/start.json"), None)
        header = {"eval": start.get("eval"), "status": "started"} if isinstance(start, dict) else {}
    else:
        raise InvalidFile(f"{content.who} must have header.json or _journal/start.json, got neither; copy it whole")
    if "summaries.json" in names:
        members = ["summaries.json"]
    else:
        journal = [name for name in names if re.fullmatch(r"_journal/summaries/\d+\.json", name)]
        members = sorted(journal, key=lambda name: int(re.findall(r"\d+", name)[-1]))
        members = members or content.archive.ending_in("json")
        members = [name for name in members if name.startswith(("_journal/summaries/", "samples/"))]
    samples = [
        _sample_of(one) for name in members for one in collector.objects(content.member_records(name), "samples")
    ]
    return header if isinstance(header, dict) else {}, samples


# Votes --------------------------------------------------------------------------------------------------------------


def _tell(about: dict[str, Any], samples: list[_Sample], collector: Collector) -> None:
    several_epochs = any(sample.epoch > 1 for sample in samples)
    keys = list(dict.fromkeys(key for sample in samples for key in sample.scores))
    members = _members(about)
    labelers = _labelers(keys, members, samples)
    question = {key: _question_of(key, samples) for key in keys}
    system = plain(about.get("model"))
    for number, sample in enumerate(samples, start=1):
        name = sample.name if plain(sample.name) is not None else number
        item = f"{name}#{sample.epoch}" if several_epochs else name
        if sample.invalid:
            collector.drop("samples that were declared invalid")
            continue
        if not sample.scores:
            collector.miss("samples that ended in errors" if sample.failed else "samples without scores")
            continue
        collector.describe(item, {"sample": name, "epoch": sample.epoch, "system": system, **sample.columns})
        for key, score in sample.scores.items():
            if key == "choice":
                collector.truth(_ANSWER, item, sample.target)
                collector.predict(_ANSWER, item, system, score.answer)
            elif score.panel is not None:
                _tell_panel(key, score, item, sample.epoch, members.get(key, []), collector)
            else:
                _tell_value(question[key], item, labelers[key], _judged(score), sample.epoch, collector)
            if score.edited and key != "choice":
                _tell_edit(question[key], item, score.value, collector)
    _warn_of_version(about, keys, collector)


def _judged(score: _Score) -> Any:
    """What the scorer said, before anybody edited it."""
    return score.original if score.edited else score.value


def _tell_value(question: str, item: Any, labeler: str, value: Any, run: int, collector: Collector) -> None:
    if isinstance(value, dict):
        for criterion, part in value.items():
            _tell_value(criterion, item, labeler, part, run, collector)
    elif isinstance(value, list):
        collector.drop("scores that are lists")
    elif plain(value) is None:
        collector.abstain(question, item, labeler, _UNPARSEABLE, run=run)
    else:
        collector.vote(question, item, labeler, value, run=run)


def _tell_panel(key: str, score: _Score, item: Any, run: int, members: list[str], collector: Collector) -> None:
    votes = score.panel or []
    names = members if len(members) == len(votes) else [f"{key} {k + 1}" for k in range(len(votes))]
    question = _question_for(votes)
    for labeler, vote in zip(names, votes, strict=True):
        _tell_value(question, item, labeler, vote, run, collector)


def _tell_edit(question: str, item: Any, value: Any, collector: Collector) -> None:
    if isinstance(value, dict):
        for criterion, part in value.items():
            _tell_edit(criterion, item, part, collector)
    elif plain(value) is not None:
        collector.map("edited scores read as gold")
        collector.truth(question, item, value)


def _question_of(key: str, samples: list[_Sample]) -> str:
    """The question of a key of scores."""
    return _question_for(_judged(sample.scores[key]) for sample in samples if key in sample.scores)


def _question_for(values: Iterable[Any]) -> str:
    """Grades in letters or words are one question and numbers another; unparseable ones are of what the others are."""
    known = next((value for value in values if plain(value) is not None), "")
    return _GRADE if isinstance(known, str | bool) else _SCORE


def _members(about: dict[str, Any]) -> dict[str, list[str]]:
    """The models behind each key of scores; of several scorers of one name the later keys are numbered."""
    members: dict[str, list[str]] = {}
    scorers = about.get("scorers")
    for scorer in listed(scorers):
        if not isinstance(scorer, dict) or not isinstance(scorer.get("name"), str):
            continue
        name = scorer["name"].rpartition("/")[2]
        n_before = sum(re.fullmatch(re.escape(name) + r"\d*", key) is not None for key in members)
        options = scorer.get("options")
        model = options.get("model") if isinstance(options, dict) else None
        models = [
            one.get("model") if isinstance(one, dict) else one
            for one in (model if isinstance(model, list) else [model])
        ]
        members[f"{name}{n_before or ''}"] = [one for one in models if isinstance(one, str)]
    return members


def _labelers(keys: list[str], members: dict[str, list[str]], samples: list[_Sample]) -> dict[str, str]:
    """The name of the labeler behind each key: its model if that tells keys apart, else the key."""
    models: dict[str, str] = {}
    for key in keys:
        graders = (sample.scores[key].grader for sample in samples if key in sample.scores)
        configured = members.get(key, [])
        model = configured[0] if len(configured) == 1 else next((one for one in graders if one), None)
        models[key] = key if model is None else model
    listed = list(models.values())
    return {key: model if listed.count(model) == 1 else f"{model} ({key})" for key, model in models.items()}


def _warn_of_version(about: dict[str, Any], keys: list[str], collector: Collector) -> None:
    packages = about.get("packages")
    version = packages.get("inspect_ai") if isinstance(packages, dict) else None
    numbers = tuple(map(int, re.findall(r"\d{1,6}", version)[:3])) if isinstance(version, str) else ()
    if len(numbers) == 3 and numbers < _UNPARSED_WERE_WRONG_BEFORE and any("graded" in key for key in keys):
        collector.note(
            f"Inspect {'.'.join(map(str, numbers))} gave the grade I where it could not parse a grade, so such "
            "abstentions cannot be told from verdicts."
        )


# Back ---------------------------------------------------------------------------------------------------------------


def _write(answers: Iterable[Answer], target: Target) -> str:
    """Rows for the scorer ``precomputed_scores``."""
    lines = []
    for answer in answers:
        columns = answer.columns or {}
        if answer.label is None:
            raise InvalidParameter(
                f"scores need a value each, got none for {answer.item!r}; pass `posterior=…`", parameter="posterior"
            )
        row: dict[str, Any] = {"id": columns.get("sample", answer.item), "value": answer.label}
        if columns.get("epoch") is not None:
            row["epoch"] = columns["epoch"]
        about = {"by": target.agent}
        row["metadata"] = about if answer.confidence is None else {**about, "confidence": answer.confidence}
        lines.append(json.dumps(row, ensure_ascii=False))
    return "\n".join(lines) + "\n"


INSPECT = Adapter(
    title="Inspect: logs as .json and .eval",
    sniff=_sniff,
    read=_read,
    becomes="votes: scores, and each member of a panel; gold: edited scores, the key of multiple choice; "
    "predictions: the letters of multiple choice",
    basis="real files",
    write=_write,
    writes="rows for precomputed_scores",
)
