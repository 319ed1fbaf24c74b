"""Logs of judges: lm-evaluation-harness, DeepEval, Ragas, promptfoo, Langfuse, LangSmith, Phoenix and Inspect."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trueup.adapters.collecting import (
    Adapter,
    Answer,
    Collector,
    Target,
    first_of,
    hashed,
    json_in,
    listed,
    marks,
    member,
    number_of,
    plain,
    sniff_keys,
    with_values,
)
from trueup.adapters.content import Content, Head, JsonStream
from trueup.data.encoding import is_plain_integer
from trueup.exceptions import InvalidFile, InvalidParameter

_RIGHT_OR_WRONG = (0, 1)


def _read_lm_eval(content: Content, collector: Collector) -> None:
    values: dict[str, set[Any]] = {}
    for row in collector.objects(content.records(), "samples"):
        item = first_of(row, "doc_hash", "doc_id")
        collector.describe(item, {"doc_id": plain(row.get("doc_id")), **with_values(member(row, "doc"))})
        chosen = _likeliest(row.get("filtered_resps"))
        # The key of multiple choice is a number; a key in words cannot be compared with the number of a choice.
        if chosen is not None and is_plain_integer(str(row.get("target"))):
            collector.truth("answer", item, str(row["target"]))
            collector.predict("answer", item, "model", str(chosen))
            continue
        for metric in listed(row.get("metrics")):
            used = plain(row.get("filter"))
            labeler = str(metric) if used in (None, "none") else f"{metric} ({used})"
            verdict = plain(row.get(str(metric)))
            if verdict is not None:
                values.setdefault(str(metric), set()).add(verdict)
            collector.vote(str(metric), item, labeler, verdict, abstention="metrics without a value")
    for metric, seen in values.items():
        if seen <= set(_RIGHT_OR_WRONG):
            collector.ask(metric, classes=_RIGHT_OR_WRONG)


def _likeliest(responses: Any) -> int | None:
    """The choice with the highest log-likelihood; None where the responses are texts."""
    scores = [number_of(pair[0] if isinstance(pair, list) and pair else None) for pair in listed(responses)]
    return None if len(scores) < 2 or None in scores else max(range(len(scores)), key=lambda k: scores[k] or 0.0)


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
                has_ended = not metric.get("error") and isinstance(metric.get("success"), bool)
                verdict = ("pass" if metric["success"] else "fail") if has_ended else None
                collector.vote(question, item, labeler, verdict, abstention="metrics that ended in errors")


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
                inputs = member(row, "metric_input")
                item = hashed(*(f"{name}={value}" for name, value in sorted(inputs.items())))
                collector.describe(item, with_values(inputs))
                verdict, accepted = plain(row.get("metric_output")), row.get("is_accepted")
                collector.vote(metric, item, "ragas", verdict, abstention="metrics without a value")
                if verdict is None:
                    continue
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

_VERDICTS = ("fail", "pass")
_DEEPEST_SET = 20


def _sniff_promptfoo(head: Head) -> list[str]:
    results = head.document.get("results")
    rows = results.get("results") if isinstance(results, dict) else results
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return marks(first, "promptIdx", "testCase", "gradingResult", "vars", "response", "provider")


def _read_promptfoo(content: Content, collector: Collector) -> None:
    tests: dict[str, int] = {}  # tests and prompts that old files do not number
    prompts: dict[str, int] = {}
    runs: Counter[str] = Counter()  # how often an answer was asked for
    assertions: Counter[tuple[str, str, str]] = Counter()  # of an item, a question and a labeler
    thumbs: list[tuple[str, str]] = []  # what people clicked
    with content.json() as stream:
        for row in collector.objects(_elements_of(stream, "results", "results"), "results"):
            system = str(plain(_name_of(row.get("provider"))) or "model")
            test, prompt, about = row.get("testIdx"), row.get("promptIdx"), row.get("prompt")
            if not isinstance(test, int):
                written = json.dumps(row.get("vars"), sort_keys=True, default=str)
                test = tests.setdefault(written, len(tests))
            if not isinstance(prompt, int):
                named = (
                    about.get("label") or about.get("display") or about.get("raw") if isinstance(about, dict) else about
                )
                prompt = prompts.setdefault(str(named), len(prompts))
            item = f"{test}/{prompt}/{system}"
            runs[item] += 1
            run = runs[item]
            item += "" if run == 1 else f"#{run}"
            output = member(row, "response").get("output")
            columns = {"test": test, "prompt_number": prompt, "system": system, "repeat": run}
            columns |= {"output": output} if isinstance(output, str) else {}
            collector.describe(item, {**columns, **with_values(member(row, "vars"))})
            results = list(_results_of_assertions(row.get("gradingResult"), collector))
            if not results:
                collector.miss("answers that ended in errors" if row.get("error") else "answers without assertions")
            for result in results:
                assertion, metadata, passed = result["assertion"], member(result, "metadata"), result.get("pass")
                kind = str(plain(assertion.get("type")) or "assertion")
                if kind == "human":
                    # The assertion of trueup.integrations.promptfoo marks what nobody checked.
                    if isinstance(passed, bool) and metadata.get("checked") is not False:
                        thumbs.append((item, _VERDICTS[passed]))
                    continue
                metric, grader = plain(assertion.get("metric")), _name_of(assertion.get("provider"))
                question = "pass" if metric is None else str(metric)
                labeler = kind if plain(grader) is None else f"{kind} ({grader})"
                assertions[item, question, labeler] += 1
                if assertions[item, question, labeler] > 1:  # another assertion of the same kind
                    labeler = f"{labeler} {assertions[item, question, labeler]}"
                collector.ask(question, classes=_VERDICTS)
                has_failed = metadata.get("graderError") is True
                label = _VERDICTS[passed] if isinstance(passed, bool) and not has_failed else None
                why = "graders that failed" if has_failed else "verdicts that neither pass nor fail"
                collector.vote(question, item, labeler, label, run=run, abstention=why)
    question = collector.asked[0] if len(collector.asked) == 1 else "pass"
    for item, label in thumbs:
        collector.truth(question, item, label)
    if thumbs:
        collector.ask(question, classes=_VERDICTS)


def _results_of_assertions(grading: Any, collector: Collector, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The results of single assertions, also those inside of sets."""
    if not isinstance(grading, dict) or depth > _DEEPEST_SET:
        return
    if listed(grading.get("componentResults")):
        for part in collector.objects(grading["componentResults"], "assertions"):
            yield from _results_of_assertions(part, collector, depth + 1)
    elif isinstance(grading.get("assertion"), dict):
        yield grading


def _name_of(provider: Any) -> Any:
    """The name of a provider, which may be an object."""
    return (provider.get("label") or provider.get("id")) if isinstance(provider, dict) else provider


# ------------------ Feedback rows of Langfuse, LangSmith and Phoenix, about traces, runs and spans.
# What people said is gold; what models, code and programs said are votes.


def _inside(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in a row: as it is, as JSON in a cell, or as columns with a dot."""
    value = row.get(name)
    if isinstance(value, str) and value[:1] == "{":
        value = json_in(value)
    if isinstance(value, dict):
        return value
    return {key.removeprefix(f"{name}."): cell for key, cell in row.items() if key.startswith(f"{name}.")}


def _langfuse(row: Mapping[str, Any], collector: Collector) -> None:
    source = str(plain(row.get("source")) or "API").upper()
    is_text = str(plain(row.get("dataType")) or "").upper() != "NUMERIC" and plain(row.get("stringValue")) is not None
    item = first_of(row, "observationId", "traceId", "sessionId", "datasetRunId")
    label, when = row.get("stringValue" if is_text else "value"), row.get("timestamp") or row.get("createdAt")
    _collect(row.get("name"), item, source.lower(), label, collector, by_person=source == "ANNOTATION", when=when)


def _langsmith(row: Mapping[str, Any], collector: Collector) -> None:
    source, corrected = _inside(row, "feedback_source"), row.get("correction")
    kind = str(plain(source.get("type")) or "api")
    who = str(first_of(member(source, "metadata"), "model", "name") or kind)
    if isinstance(corrected, dict):
        corrected = first_of(corrected, "value", "score", "label")
    item, label, when = first_of(row, "run_id", "trace_id"), first_of(row, "value", "score"), row.get("created_at")
    _collect(row.get("key"), item, who, label, collector, by_person=kind == "app", correction=corrected, when=when)


def _phoenix(row: Mapping[str, Any], collector: Collector) -> None:
    kind = str(plain(row.get("annotator_kind")) or "CODE").upper()
    item = first_of(row, "span_id", "context.span_id", "trace_id", "session_id")
    label = first_of({**row, **_inside(row, "result")}, "label", "score")
    question, who = first_of(row, "name", "annotation_name"), str(first_of(row, "identifier") or kind.lower())
    when = row.get("updated_at") or row.get("created_at")
    _collect(question, item, who, label, collector, by_person=kind == "HUMAN", when=when)


def _adapter(tool: str, own: str, read_row: Callable[[Mapping[str, Any], Collector], None], *keys: str) -> Adapter:
    """The adapter of a tool whose rows have a key that the others lack, maybe spread over columns with dots."""

    def sniff(head: Head) -> list[str]:
        spread = [key for key in head.keys if key.startswith(f"{own}.")]
        if own not in head.keys and not spread:
            return []
        return list(dict.fromkeys([*marks(head.keys, own, *keys), *spread]))

    def read(content: Content, collector: Collector) -> None:
        collector.from_text = content.head.shape == "table"
        for row in collector.objects(content.records(), "rows"):
            read_row(row, collector)

    return Adapter(
        title=f"{tool}: feedback rows as JSON, JSON Lines or CSV",
        sniff=sniff,
        read=read,
        becomes="votes: feedback of models and programs; gold: feedback of people, and corrections",
        basis="the documented layout",
    )


def _collect(
    question: Any,
    item: Any,
    labeler: str,
    label: Any,
    collector: Collector,
    *,
    by_person: bool,
    correction: Any = None,
    when: Any = None,
) -> None:
    """Collect what a row of feedback says."""
    if plain(question) is None or plain(item) is None:
        collector.drop("rows without a name or a thing that was judged")
        return
    name, label = str(plain(question)), plain(label)
    if by_person and label is None:
        collector.miss("judgements of people without a value")
    elif by_person:
        collector.map("judgements of people read as gold")
        collector.truth(name, item, label)
    else:
        if plain(correction) is not None:
            collector.map("corrections read as gold")
            collector.truth(name, item, correction)
        collector.vote(name, item, labeler, label, when=when, abstention="verdicts without a value")


# ------------------ Inspect: logs as one JSON object, or packed in an archive.

_FIRST_WITH_UNPARSED_GRADES = (0, 3, 245)  # the version; older ones gave the grade I instead


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
    """The score of a sample."""

    value: Any
    answer: Any
    grader: str | None
    panel: list[Any] | None
    judged: Any  # the value before anybody edited it
    edited: bool

    @classmethod
    def of(cls, score: dict[str, Any]) -> _Score:
        metadata = member(score, "metadata")
        votes = member(metadata, "panel").get("votes")
        graders = [turn.get("model") for turn in listed(metadata.get("grading")) if isinstance(turn, dict)]
        history = [edit for edit in score.get("history") or [] if isinstance(edit, dict)]
        originals = [edit.get("value") for edit in history if not edit.get("provenance")]
        edited = len(originals) < len(history)
        return cls(
            score.get("value"),
            score.get("answer"),
            next((name for name in graders if isinstance(name, str)), None),
            votes if isinstance(votes, list) else None,
            next(iter(originals), None) if edited else score.get("value"),
            edited,
        )


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

    @classmethod
    def of(cls, sample: dict[str, Any]) -> _Sample:
        scores = sample.get("scores")
        if not isinstance(scores, dict):
            scores = {"score": sample.get("score")}
        epoch, texts = sample.get("epoch"), {name: sample.get(name) for name in ("input", "target")}
        return cls(
            sample.get("id"),
            epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else 1,
            sample.get("target"),
            {name: _Score.of(score) for name, score in scores.items() if isinstance(score, dict)},
            {name: text for name, text in texts.items() if isinstance(text, str)}
            | with_values(member(sample, "metadata")),
            bool(sample.get("error")),
            bool(sample.get("invalidation")),
        )


def _read_inspect(content: Content, collector: Collector) -> None:
    header, samples = (_from_archive if content.head.shape == "archive" else _from_json)(content, collector)
    about = member(header, "eval")
    several_epochs = any(sample.epoch > 1 for sample in samples)
    keys = list(dict.fromkeys(key for sample in samples for key in sample.scores))
    panels = _models_of_scorers(about)
    labelers = _labelers(keys, panels, samples)
    question = {
        key: _question_for(sample.scores[key].judged for sample in samples if key in sample.scores) for key in keys
    }
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
                collector.truth("answer", item, sample.target)
                collector.predict("answer", item, system, score.answer)
                continue
            asked = question[key]
            votes = [(asked, labelers[key], score.judged)]
            if score.panel is not None:
                named, asked_panel = panels.get(key, []), _question_for(score.panel)
                numbered = [f"{key} {k + 1}" for k in range(len(score.panel))]
                names = named if len(named) == len(score.panel) else numbered
                votes = [(asked_panel, *vote) for vote in zip(names, score.panel, strict=True)]
            for of_question, labeler, value in votes:
                for criterion, verdict in _by_criterion(of_question, value):
                    if isinstance(verdict, list):
                        collector.drop("scores that are lists")
                        continue
                    why = "grades that could not be parsed"
                    collector.vote(criterion, item, labeler, plain(verdict), run=sample.epoch, abstention=why)
            for criterion, verdict in _by_criterion(asked, score.value) if score.edited else ():
                if plain(verdict) is not None:
                    collector.map("edited scores read as gold")
                    collector.truth(criterion, item, verdict)
    version = member(about, "packages").get("inspect_ai")
    numbers = tuple(map(int, re.findall(r"\d{1,6}", version)[:3])) if isinstance(version, str) else ()
    if len(numbers) == 3 and numbers < _FIRST_WITH_UNPARSED_GRADES and any("graded" in key for key in keys):
        collector.note(
            f"Inspect {'.'.join(map(str, numbers))} gave the grade I where it could not parse a grade, so such "
            "abstentions look like verdicts."
        )
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
                samples += map(_Sample.of, collector.objects(stream.elements(), "samples"))
            else:
                header[key] = stream.value()
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
    members = ["summaries.json"]
    if "summaries.json" not in names:
        journal = [name for name in names if re.fullmatch(r"_journal/summaries/\d+\.json", name)]
        members = sorted(journal, key=lambda name: int(re.findall(r"\d+", name)[-1]))
        starts = ("_journal/summaries/", "samples/")
        members = members or [name for name in content.archive.ending_in("json") if name.startswith(starts)]
    samples = [
        _Sample.of(sample) for name in members for sample in collector.objects(content.member_records(name), "samples")
    ]
    return header if isinstance(header, dict) else {}, samples


def _by_criterion(question: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A score as it is; of an object one for each of its criteria."""
    if isinstance(value, dict):
        for criterion, part in value.items():
            yield from _by_criterion(criterion, part)
    else:
        yield question, value


def _question_for(values: Iterable[Any]) -> str:
    """Grades in letters or words are one question and numbers another; unparseable ones are of what the others are."""
    known = next((value for value in values if plain(value) is not None), "")
    return "grade" if isinstance(known, str | bool) else "score"


def _models_of_scorers(about: dict[str, Any]) -> dict[str, list[str]]:
    """The models behind each key of scores; of several scorers of one name the later keys are numbered."""
    models: dict[str, list[str]] = {}
    for scorer in listed(about.get("scorers")):
        if not isinstance(scorer, dict) or not isinstance(scorer.get("name"), str):
            continue
        name = scorer["name"].rpartition("/")[2]
        n_before = sum(re.fullmatch(re.escape(name) + r"\d*", key) is not None for key in models)
        configured = member(scorer, "options").get("model")
        parts = configured if isinstance(configured, list) else [configured]
        names = [part.get("model") if isinstance(part, dict) else part for part in parts]
        models[f"{name}{n_before or ''}"] = [model for model in names if isinstance(model, str)]
    return models


def _labelers(keys: list[str], panels: dict[str, list[str]], samples: list[_Sample]) -> dict[str, str]:
    """The name of the labeler behind each key: its model if that distinguishes keys, else the key."""
    models: dict[str, str] = {}
    for key in keys:
        configured = panels.get(key, [])
        graders = (sample.scores[key].grader for sample in samples if key in sample.scores)
        model = configured[0] if len(configured) == 1 else next(filter(None, graders), None)
        models[key] = key if model is None else model
    n_keys = Counter(models.values())
    return {key: model if n_keys[model] == 1 else f"{model} ({key})" for key, model in models.items()}


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
        sniff=sniff_keys("filtered_resps", more=("doc_id", "resps")),
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
    "langfuse": _adapter(
        "Langfuse",
        "traceId",
        _langfuse,
        *("observationId", "dataType", "stringValue", "authorUserId", "configId", "queueId"),
    ),
    "langsmith": _adapter(
        "LangSmith",
        "feedback_source",
        _langsmith,
        *("run_id", "key", "feedback_group_id", "comparative_experiment_id", "correction"),
    ),
    "phoenix": _adapter(
        "Phoenix",
        "annotator_kind",
        _phoenix,
        *("span_id", "identifier", "annotation_name", "result", "result.label", "result.score"),
    ),
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
