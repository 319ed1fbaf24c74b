"""Logs of judges: lm-evaluation-harness, DeepEval, Ragas, promptfoo, Langfuse, LangSmith, Phoenix and Inspect."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueup.adapters.collecting import (
    Adapter,
    Answer,
    Collector,
    Target,
    first_of,
    hashed,
    listed,
    marks,
    member,
    number_of,
    plain,
    with_values,
)
from trueup.adapters.content import Content, Head, JsonStream
from trueup.data.encoding import is_plain_integer
from trueup.exceptions import InvalidFile, InvalidParameter

_RIGHT_OR_WRONG = (0, 1)


def _sniff_lm_eval(head: Head) -> list[str]:
    return marks(head.keys, "doc_id", "filtered_resps", "resps") if "filtered_resps" in head.keys else []


def _read_lm_eval(content: Content, collector: Collector) -> None:
    values: dict[str, set[Any]] = {}
    for row in collector.objects(content.records(), "samples"):
        item = first_of(row, "doc_hash", "doc_id")
        collector.describe(item, {"doc_id": plain(row.get("doc_id")), **with_values(member(row, "doc"))})
        chosen = _likeliest(row.get("filtered_resps"))
        # The key of multiple choice is a number; a key in words cannot be held against the number of a choice.
        if chosen is not None and is_plain_integer(str(row.get("target"))):
            collector.truth("answer", item, str(row["target"]))
            collector.predict("answer", item, "model", str(chosen))
            continue
        for metric in listed(row.get("metrics")):
            used = plain(row.get("filter"))
            labeler = str(metric) if used in (None, "none") else f"{metric} ({used})"
            verdict = plain(row.get(str(metric)))
            if verdict is None:
                collector.abstain(str(metric), item, labeler, "metrics without a value")
            else:
                values.setdefault(str(metric), set()).add(verdict)
                collector.vote(str(metric), item, labeler, verdict)
    for metric, seen in values.items():
        if seen <= set(_RIGHT_OR_WRONG):
            collector.ask(metric, classes=_RIGHT_OR_WRONG)


def _likeliest(responses: Any) -> int | None:
    """The choice with the highest log-likelihood; None where the responses are texts."""
    if not isinstance(responses, list) or len(responses) < 2:
        return None
    scores = [one[0] if isinstance(one, list) and one else None for one in responses]
    numbers = [number_of(score) for score in scores]
    return None if None in numbers else max(range(len(numbers)), key=lambda k: numbers[k] or 0.0)


def _sniff_deepeval(head: Head) -> list[str]:
    inside = head.document.get("testRunData", head.document)
    cases = inside.get("testCases") if isinstance(inside, dict) else None
    first = cases[0] if isinstance(cases, list) and cases and isinstance(cases[0], dict) else {}
    return ["testCases", *marks(first, "metricsData", "actualOutput", "input")] if first else []


def _read_deepeval(content: Content, collector: Collector) -> None:
    with content.json() as stream:
        for number, case in enumerate(collector.objects(_elements_of(stream, "testCases", "testRunData"), "cases")):
            item = hashed(case.get("input"), case.get("actualOutput")) if plain(case.get("input")) else f"case {number}"
            columns = {"name": case.get("name"), "input": case.get("input"), "output": case.get("actualOutput")}
            collector.describe(item, with_values(columns))
            for metric in collector.objects(case.get("metricsData"), "metrics"):
                question = str(plain(metric.get("name")) or "metric")
                labeler = str(plain(metric.get("evaluationModel")) or question)
                collector.ask(question, classes=("fail", "pass"))
                if metric.get("error") or not isinstance(metric.get("success"), bool):
                    collector.abstain(question, item, labeler, "metrics that ended in errors")
                else:
                    collector.vote(question, item, labeler, "pass" if metric["success"] else "fail")


def _elements_of(stream: JsonStream, name: str, inside: str) -> Iterator[Any]:
    """The elements of a list of this name in an object, or in the one `inside` it."""
    for key in stream.members():
        if key == name and stream.next_character() == "[":
            yield from stream.elements()
        elif key == inside and stream.next_character() == "{":
            yield from _elements_of(stream, name, inside)
        else:
            stream.value()


def _sniff_ragas(head: Head) -> list[str]:
    lists = [value for value in head.document.values() if isinstance(value, list) and value]
    firsts = [value[0] for value in lists if isinstance(value[0], dict)]
    return marks(firsts[0], "metric_input", "metric_output", "is_accepted") if firsts else []


def _read_ragas(content: Content, collector: Collector) -> None:
    with content.json() as stream:
        for metric in stream.members():
            if stream.next_character() != "[":
                stream.value()
                continue
            rows = list(collector.objects(stream.elements(), "annotations"))
            is_binary = all(row.get("metric_output") in (0, 1, None) for row in rows)
            if is_binary:
                collector.ask(metric, classes=_RIGHT_OR_WRONG)
            for row in rows:
                _read_annotation(metric, row, collector, is_binary=is_binary)


def _read_annotation(metric: str, row: dict[str, Any], collector: Collector, *, is_binary: bool) -> None:
    given = member(row, "metric_input")
    item = hashed(*(f"{name}={value}" for name, value in sorted(given.items())))
    collector.describe(item, with_values(given))
    verdict, accepted = plain(row.get("metric_output")), row.get("is_accepted")
    if verdict is None:
        collector.abstain(metric, item, "ragas", "metrics without a value")
        return
    collector.vote(metric, item, "ragas", verdict)
    if accepted is True:
        collector.truth(metric, item, verdict)
    elif accepted is False and is_binary:
        collector.map("verdicts that people rejected, whose opposite is gold")
        collector.truth(metric, item, 0 if verdict else 1)
    elif accepted is False:
        collector.drop("verdicts that people rejected and that have no one opposite")


# ------------------ promptfoo: results as JSON, of versions 2 and 3 and of the first ones.
# An answer of a provider to a prompt and a test is an item, and each assertion a labeler of the question of its metric,
# or "pass". What people click in the viewer is gold.

_PASS = "pass"
_CLASSES = ("fail", "pass")
_DEEPEST_SET = 20


def _sniff_promptfoo(head: Head) -> list[str]:
    results = head.document.get("results")
    rows = results.get("results") if isinstance(results, dict) else results
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return marks(first, "promptIdx", "testCase", "gradingResult", "vars", "response", "provider")


def _read_promptfoo(content: Content, collector: Collector) -> None:
    seen = _Seen()
    with content.json() as stream:
        for row in collector.objects(_elements_of(stream, "results", "results"), "results"):
            _read_row(row, seen, collector)
    asked = [question for question in collector.asked if question != _PASS]
    question = asked[0] if len(asked) == 1 and len(collector.asked) == 1 else _PASS
    for item, label in seen.thumbs:
        collector.truth(question, item, label)
    if seen.thumbs:
        collector.ask(question, classes=_CLASSES)


@dataclass
class _Seen:
    """What rows before have shown: the tests and prompts that old files do not number, and the clicks of people."""

    tests: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)  # how often an answer was asked for
    assertions: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # of an item, a question and a labeler
    thumbs: list[tuple[str, str]] = field(default_factory=list)


def _read_row(row: dict[str, Any], seen: _Seen, collector: Collector) -> None:
    system = str(plain(_label_of(row.get("provider"))) or "model")
    test, prompt, about = row.get("testIdx"), row.get("promptIdx"), row.get("prompt")
    if not isinstance(test, int):
        written = json.dumps(row.get("vars"), sort_keys=True, default=str)
        test = seen.tests.setdefault(written, len(seen.tests))
    if not isinstance(prompt, int):
        named = about.get("label") or about.get("display") or about.get("raw") if isinstance(about, dict) else about
        written = str(named)
        prompt = seen.prompts.setdefault(written, len(seen.prompts))
    name = f"{test}/{prompt}/{system}"
    seen.runs[name] += 1
    run = seen.runs[name]
    item = name if run == 1 else f"{name}#{run}"
    output = member(row, "response").get("output")
    columns = {"test": test, "prompt_number": prompt, "system": system, "repeat": run}
    columns |= {"output": output} if isinstance(output, str) else {}
    collector.describe(item, {**columns, **with_values(member(row, "vars"))})
    n_read = 0
    for part in _parts(row.get("gradingResult"), collector):
        n_read += 1
        _read_part(part, item, run, seen, collector)
    if not n_read:
        collector.miss("answers that ended in errors" if row.get("error") else "answers without assertions")


def _parts(grading: Any, collector: Collector, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The results of single assertions, also those inside of sets."""
    if not isinstance(grading, dict) or depth > _DEEPEST_SET:
        return
    inside = grading.get("componentResults")
    if isinstance(inside, list) and inside:
        for part in collector.objects(inside, "assertions"):
            yield from _parts(part, collector, depth + 1)
    elif isinstance(grading.get("assertion"), dict):
        yield grading


def _label_of(provider: Any) -> Any:
    """The name of a provider, which may be an object."""
    return (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider


def _read_part(part: dict[str, Any], item: str, run: int, seen: _Seen, collector: Collector) -> None:
    assertion, metadata = part["assertion"], part.get("metadata")
    kind = str(plain(assertion.get("type")) or "assertion")
    passed = part.get("pass")
    if kind == "human":
        # The assertion of trueup.integrations.promptfoo marks what nobody checked.
        if isinstance(passed, bool) and not (isinstance(metadata, dict) and metadata.get("checked") is False):
            seen.thumbs.append((item, _CLASSES[passed]))
        return
    metric = plain(assertion.get("metric"))
    question = _PASS if metric is None else str(metric)
    grader = _label_of(assertion.get("provider"))
    labeler = kind if plain(grader) is None else f"{kind} ({grader})"
    seen.assertions[item, question, labeler] += 1
    if seen.assertions[item, question, labeler] > 1:
        labeler = f"{labeler} {seen.assertions[item, question, labeler]}"  # another assertion of the same kind
    collector.ask(question, classes=_CLASSES)
    if isinstance(metadata, dict) and metadata.get("graderError") is True:
        collector.abstain(question, item, labeler, "graders that failed", run=run)
    elif isinstance(passed, bool):
        collector.vote(question, item, labeler, _CLASSES[passed], run=run)
    else:
        collector.abstain(question, item, labeler, "verdicts that neither pass nor fail", run=run)


# ------------------ Feedback rows of Langfuse, LangSmith and Phoenix: who said what of which trace, run or span.
# What people said is gold; what models, code and programs said are votes.

_LANGFUSE_KEYS = ("traceId", "observationId", "dataType", "stringValue", "authorUserId", "configId", "queueId")
_LANGSMITH_KEYS = ("run_id", "feedback_source", "key", "feedback_group_id", "comparative_experiment_id", "correction")
_PHOENIX_KEYS = ("annotator_kind", "span_id", "identifier", "annotation_name", "result", "result.label", "result.score")


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


def _langfuse(row: Mapping[str, Any], collector: Collector) -> None:
    source = str(plain(row.get("source")) or "API").upper()
    is_text = str(plain(row.get("dataType")) or "").upper() != "NUMERIC" and plain(row.get("stringValue")) is not None
    item = first_of(row, "observationId", "traceId", "sessionId", "datasetRunId")
    label, when = row.get("stringValue" if is_text else "value"), row.get("timestamp") or row.get("createdAt")
    _tell(row.get("name"), item, source.lower(), label, collector, by_person=source == "ANNOTATION", when=when)


def _langsmith(row: Mapping[str, Any], collector: Collector) -> None:
    source, corrected = _inside(row, "feedback_source"), row.get("correction")
    kind = str(plain(source.get("type")) or "api")
    who = str(first_of(member(source, "metadata"), "model", "name") or kind)
    if isinstance(corrected, dict):
        corrected = first_of(corrected, "value", "score", "label")
    item, label, when = first_of(row, "run_id", "trace_id"), first_of(row, "value", "score"), row.get("created_at")
    _tell(row.get("key"), item, who, label, collector, by_person=kind == "app", correction=corrected, when=when)


def _phoenix(row: Mapping[str, Any], collector: Collector) -> None:
    kind = str(plain(row.get("annotator_kind")) or "CODE").upper()
    item = first_of(row, "span_id", "context.span_id", "trace_id", "session_id")
    label = first_of({**row, **_inside(row, "result")}, "label", "score")
    question, who = first_of(row, "name", "annotation_name"), str(first_of(row, "identifier") or kind.lower())
    when = row.get("updated_at") or row.get("created_at")
    _tell(question, item, who, label, collector, by_person=kind == "HUMAN", when=when)


def _adapter(
    tool: str, own: str, tell: Callable[[Mapping[str, Any], Collector], None], keys: tuple[str, ...]
) -> Adapter:
    """The adapter of a tool whose rows have a key that the others lack, maybe spread over columns with dots."""

    def sniff(head: Head) -> list[str]:
        spread = [key for key in head.keys if key.startswith(f"{own}.")]
        if own not in head.keys and not spread:
            return []
        return list(dict.fromkeys([*marks(head.keys, own, *keys), *spread]))

    def read(content: Content, collector: Collector) -> None:
        collector.from_text = content.head.shape == "table"
        for row in collector.objects(content.records(), "rows"):
            tell(row, collector)

    return Adapter(
        title=f"{tool}: feedback rows as JSON, JSON Lines or CSV",
        sniff=sniff,
        read=read,
        becomes="votes: feedback of models and programs; gold: feedback of people, and corrections",
        basis="the documented layout",
    )


def _tell(
    question: Any,
    item: Any,
    who: str,
    said: Any,
    collector: Collector,
    *,
    by_person: bool,
    correction: Any = None,
    when: Any = None,
) -> None:
    """What a row says, in common terms."""
    if plain(question) is None or plain(item) is None:
        collector.drop("rows without a name or a thing that was judged")
        return
    name, label = str(plain(question)), plain(said)
    if by_person and label is None:
        collector.miss("judgements of people without a value")
    elif by_person:
        collector.map("judgements of people read as gold")
        collector.truth(name, item, label)
    else:
        if plain(correction) is not None:
            collector.map("corrections read as gold")
            collector.truth(name, item, correction)
        if label is None:
            collector.abstain(name, item, who, "verdicts without a value", when=when)
        else:
            collector.vote(name, item, who, label, when=when)


_GRADE, _SCORE, _ANSWER = "grade", "score", "answer"
_UNPARSEABLE = "grades that could not be parsed"
_HEADER_KEYS = ("eval", "status", "invalidated")
_UNPARSED_WERE_WRONG_BEFORE = (0, 3, 245)


def _sniff_inspect(head: Head) -> list[str]:
    if head.shape == "archive":
        parts = {"_journal/start.json", "header.json", "summaries.json"} & set(head.members)
        return sorted(parts) + (["samples/"] if any(name.startswith("samples/") for name in head.members) else [])
    about = head.document.get("eval")
    if not isinstance(about, dict) or "model" not in about:
        return []
    return ["eval.model", *marks(head.document, "samples", "plan", "results", "stats", "status")]


@dataclass(frozen=True)
class _Score:
    """What a scorer said of a sample."""

    value: Any
    answer: Any
    grader: str | None
    panel: list[Any] | None
    judged: Any  # what it said before anybody edited it
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
    columns |= with_values(metadata) if isinstance(metadata, dict) else {}
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
    votes = member(metadata, "panel").get("votes")
    graders = [turn.get("model") for turn in listed(metadata.get("grading")) if isinstance(turn, dict)]
    history = [edit for edit in score.get("history") or [] if isinstance(edit, dict)]
    originals = [edit.get("value") for edit in history if not edit.get("provenance")]
    edited = len(originals) < len(history)
    return _Score(
        score.get("value"),
        score.get("answer"),
        next((name for name in graders if isinstance(name, str)), None),
        votes if isinstance(votes, list) else None,
        next(iter(originals), None) if edited else score.get("value"),
        edited,
    )


def _read_inspect(content: Content, collector: Collector) -> None:
    header, samples = (_from_archive if content.head.shape == "archive" else _from_json)(content, collector)
    about = member(header, "eval")
    _tell_samples(about, samples, collector)
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


def _tell_samples(about: dict[str, Any], samples: list[_Sample], collector: Collector) -> None:
    several_epochs = any(sample.epoch > 1 for sample in samples)
    keys = list(dict.fromkeys(key for sample in samples for key in sample.scores))
    members = _members(about)
    labelers = _labelers(keys, members, samples)
    said = {key: [sample.scores[key].judged for sample in samples if key in sample.scores] for key in keys}
    question = {key: _question_for(values) for key, values in said.items()}
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
                named, votes = members.get(key, []), score.panel
                names = named if len(named) == len(votes) else [f"{key} {k + 1}" for k in range(len(votes))]
                for labeler, vote in zip(names, votes, strict=True):
                    _tell_value(_question_for(votes), item, labeler, vote, sample.epoch, collector)
            else:
                _tell_value(question[key], item, labelers[key], score.judged, sample.epoch, collector)
            if score.edited and key != "choice":
                _tell_edit(question[key], item, score.value, collector)
    _warn_of_version(about, keys, collector)


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


def _tell_edit(question: str, item: Any, value: Any, collector: Collector) -> None:
    if isinstance(value, dict):
        for criterion, part in value.items():
            _tell_edit(criterion, item, part, collector)
    elif plain(value) is not None:
        collector.map("edited scores read as gold")
        collector.truth(question, item, value)


def _question_for(values: Iterable[Any]) -> str:
    """Grades in letters or words are one question and numbers another; unparseable ones are of what the others are."""
    known = next((value for value in values if plain(value) is not None), "")
    return _GRADE if isinstance(known, str | bool) else _SCORE


def _members(about: dict[str, Any]) -> dict[str, list[str]]:
    """The models behind each key of scores; of several scorers of one name the later keys are numbered."""
    members: dict[str, list[str]] = {}
    for scorer in listed(about.get("scorers")):
        if not isinstance(scorer, dict) or not isinstance(scorer.get("name"), str):
            continue
        name = scorer["name"].rpartition("/")[2]
        n_before = sum(re.fullmatch(re.escape(name) + r"\d*", key) is not None for key in members)
        model = member(scorer, "options").get("model")
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
    version = member(about, "packages").get("inspect_ai")
    numbers = tuple(map(int, re.findall(r"\d{1,6}", version)[:3])) if isinstance(version, str) else ()
    if len(numbers) == 3 and numbers < _UNPARSED_WERE_WRONG_BEFORE and any("graded" in key for key in keys):
        collector.note(
            f"Inspect {'.'.join(map(str, numbers))} gave the grade I where it could not parse a grade, so such "
            "abstentions cannot be told from verdicts."
        )


def _write_inspect(answers: Iterable[Answer], target: Target) -> str:
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


TOOLS: dict[str, Adapter] = {
    "lm-eval": Adapter(
        title="lm-evaluation-harness: samples, JSON Lines",
        sniff=_sniff_lm_eval,
        read=_read_lm_eval,
        becomes="votes: metrics of answers; gold and predictions: multiple choice",
        basis="real files",
    ),
    "deepeval": Adapter(
        title="DeepEval: .latest_test_run.json",
        sniff=_sniff_deepeval,
        read=_read_deepeval,
        becomes="votes: metrics that pass or fail",
        basis="the documented layout",
    ),
    "ragas": Adapter(
        title="Ragas: annotations of metrics, JSON",
        sniff=_sniff_ragas,
        read=_read_ragas,
        becomes="votes: outputs of metrics; gold: what people accepted, or the opposite of what they rejected",
        basis="real files",
    ),
    "promptfoo": Adapter(
        title="promptfoo: results as JSON",
        sniff=_sniff_promptfoo,
        read=_read_promptfoo,
        becomes="votes: assertions; gold: thumbs of people",
        basis="real files",
    ),
    "langfuse": _adapter("Langfuse", "traceId", _langfuse, _LANGFUSE_KEYS),
    "langsmith": _adapter("LangSmith", "feedback_source", _langsmith, _LANGSMITH_KEYS),
    "phoenix": _adapter("Phoenix", "annotator_kind", _phoenix, _PHOENIX_KEYS),
    "inspect": Adapter(
        title="Inspect: logs as .json and .eval",
        sniff=_sniff_inspect,
        read=_read_inspect,
        becomes="votes: scores, and each member of a panel; gold: edited scores, the key of multiple choice; "
        "predictions: the letters of multiple choice",
        basis="real files",
        write=_write_inspect,
        writes="rows for precomputed_scores",
    ),
}
