"""Judges that leave a verdict for each metric: samples of lm-evaluation-harness, test runs of DeepEval, Ragas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueup.adapters.adapter import Adapter, marks
from trueup.adapters.collecting import Collector, hashed, plain
from trueup.adapters.content import Content, Head, JsonStream
from trueup.data.encoding import is_plain_integer

_RIGHT_OR_WRONG = (0, 1)

# lm-evaluation-harness ----------------------------------------------------------------------------------------------


def _sniff_lm_eval(head: Head) -> list[str]:
    return marks(head.keys, "doc_id", "filtered_resps", "resps") if "filtered_resps" in head.keys else []


def _read_lm_eval(content: Content, collector: Collector) -> None:
    values: dict[str, set[Any]] = {}
    for row in collector.objects(content.records(), "samples"):
        item = row.get("doc_hash") if plain(row.get("doc_hash")) is not None else row.get("doc_id")
        doc = row.get("doc") if isinstance(row.get("doc"), dict) else {}
        about = {name: value for name, value in (doc or {}).items() if plain(value) is not None}
        collector.describe(item, {"doc_id": plain(row.get("doc_id")), **about})
        chosen = _likeliest(row.get("filtered_resps"))
        # The key of multiple choice is a number; a key in words cannot be held against the number of a choice.
        if chosen is not None and is_plain_integer(str(row.get("target"))):
            collector.truth("answer", item, str(row["target"]))
            collector.predict("answer", item, "model", str(chosen))
            continue
        metrics = row.get("metrics")
        for metric in metrics if isinstance(metrics, list) else []:
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
    numbers = [_number(score) for score in scores]
    return None if None in numbers else max(range(len(numbers)), key=lambda k: numbers[k] or 0.0)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


LM_EVAL = Adapter(
    title="lm-evaluation-harness: samples, JSON Lines",
    sniff=_sniff_lm_eval,
    read=_read_lm_eval,
    becomes="votes: metrics of answers; gold and predictions: multiple choice",
    basis="real files",
)

# DeepEval -----------------------------------------------------------------------------------------------------------


def _sniff_deepeval(head: Head) -> list[str]:
    inside = head.document.get("testRunData", head.document)
    cases = inside.get("testCases") if isinstance(inside, dict) else None
    first = cases[0] if isinstance(cases, list) and cases and isinstance(cases[0], dict) else {}
    return ["testCases", *marks(first, "metricsData", "actualOutput", "input")] if first else []


def _read_deepeval(content: Content, collector: Collector) -> None:
    with content.json() as stream:
        for number, case in enumerate(collector.objects(_cases(stream), "test cases")):
            item = hashed(case.get("input"), case.get("actualOutput")) if plain(case.get("input")) else f"case {number}"
            columns = {"name": case.get("name"), "input": case.get("input"), "output": case.get("actualOutput")}
            collector.describe(item, {name: value for name, value in columns.items() if plain(value) is not None})
            for metric in collector.objects(case.get("metricsData"), "metrics"):
                question = str(plain(metric.get("name")) or "metric")
                labeler = str(plain(metric.get("evaluationModel")) or question)
                collector.ask(question, classes=("fail", "pass"))
                if metric.get("error") or not isinstance(metric.get("success"), bool):
                    collector.abstain(question, item, labeler, "metrics that ended in errors")
                else:
                    collector.vote(question, item, labeler, "pass" if metric["success"] else "fail")


def _cases(stream: JsonStream) -> Iterator[Any]:
    for key in stream.members():
        if key == "testCases" and stream.next_character() == "[":
            yield from stream.elements()
        elif key == "testRunData" and stream.next_character() == "{":
            yield from _cases(stream)
        else:
            stream.value()


DEEPEVAL = Adapter(
    title="DeepEval: .latest_test_run.json",
    sniff=_sniff_deepeval,
    read=_read_deepeval,
    becomes="votes: metrics that pass or fail",
    basis="the documented layout",
)

# Ragas --------------------------------------------------------------------------------------------------------------


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
    given = row.get("metric_input") if isinstance(row.get("metric_input"), dict) else {}
    item = hashed(*(f"{name}={value}" for name, value in sorted((given or {}).items())))
    collector.describe(item, {name: value for name, value in (given or {}).items() if plain(value) is not None})
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


RAGAS = Adapter(
    title="Ragas: annotations of metrics, JSON",
    sniff=_sniff_ragas,
    read=_read_ragas,
    becomes="votes: outputs of metrics; gold: what people accepted, or the opposite of what they rejected",
    basis="real files",
)
