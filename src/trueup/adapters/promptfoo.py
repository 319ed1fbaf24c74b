"""promptfoo: results as JSON, of versions 2 and 3 and of the first ones.

An answer of a provider to a prompt and a test is an item, and each assertion a labeler that passes it or fails it. An
assertion with a metric answers the question of that name, the others the question "pass". What people click in the
viewer is gold. A grader that failed abstains, and what passed in all is no vote: it joins all assertions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from trueup.adapters.adapter import Adapter, marks
from trueup.adapters.collecting import Collector, plain
from trueup.adapters.content import Content, Head, JsonStream

_PASS = "pass"
_CLASSES = ("fail", "pass")
_DEEPEST_SET = 20


def _sniff(head: Head) -> list[str]:
    results = head.document.get("results")
    rows = results.get("results") if isinstance(results, dict) else results
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return marks(first, "promptIdx", "testCase", "gradingResult", "vars", "response", "provider")


def _read(content: Content, collector: Collector) -> None:
    numbers = _Numbers()
    thumbs: list[tuple[str, str]] = []
    with content.json() as stream:
        for row in collector.objects(_rows(stream), "results"):
            _read_row(row, numbers, thumbs, collector)
    asked = [question for question in collector.asked if question != _PASS]
    question = asked[0] if len(asked) == 1 and len(collector.asked) == 1 else _PASS
    for item, label in thumbs:
        collector.truth(question, item, label)
    if thumbs:
        collector.ask(question, classes=_CLASSES)


def _rows(stream: JsonStream) -> Iterator[Any]:
    for key in stream.members():
        if key != "results":
            stream.value()
        elif stream.next_character() == "[":
            yield from stream.elements()
        elif stream.next_character() == "{":
            for inner in stream.members():
                if inner == "results" and stream.next_character() == "[":
                    yield from stream.elements()
                else:
                    stream.value()
        else:
            stream.value()


class _Numbers:
    """The numbers of tests and prompts that old files lack, in order of appearance, and of repetitions."""

    def __init__(self) -> None:
        self._tests: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        self._runs: Counter[str] = Counter()

    def test(self, row: dict[str, Any]) -> int:
        """The number of the test of a row."""
        number = row.get("testIdx")
        written = json.dumps(row.get("vars"), sort_keys=True, default=str)
        return number if isinstance(number, int) else self._tests.setdefault(written, len(self._tests))

    def prompt(self, row: dict[str, Any]) -> int:
        """The number of the prompt of a row."""
        number, prompt = row.get("promptIdx"), row.get("prompt")
        about = prompt if isinstance(prompt, dict) else {"raw": prompt}
        written = str(about.get("label") or about.get("display") or about.get("raw"))
        return number if isinstance(number, int) else self._prompts.setdefault(written, len(self._prompts))

    def run(self, name: str) -> int:
        """How often this answer was asked for, with this time."""
        self._runs[name] += 1
        return self._runs[name]


def _read_row(row: dict[str, Any], numbers: _Numbers, thumbs: list[tuple[str, str]], collector: Collector) -> None:
    provider = row.get("provider")
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    system = str(plain(provider) or "model")
    test, prompt = numbers.test(row), numbers.prompt(row)
    name = f"{test}/{prompt}/{system}"
    run = numbers.run(name)
    item = name if run == 1 else f"{name}#{run}"
    variables = row.get("vars") if isinstance(row.get("vars"), dict) else {}
    response = row.get("response") if isinstance(row.get("response"), dict) else {}
    output = (response or {}).get("output")
    columns = {"test": test, "prompt_number": prompt, "system": system, "repeat": run}
    columns |= {"output": output} if isinstance(output, str) else {}
    collector.describe(item, {**columns, **{k: v for k, v in (variables or {}).items() if plain(v) is not None}})
    grading = row.get("gradingResult")
    n_read = 0
    seen: Counter[tuple[str, str]] = Counter()
    for part in _parts(grading, collector):
        n_read += 1
        _read_part(part, item, run, seen, thumbs, collector)
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


def _read_part(
    part: dict[str, Any],
    item: str,
    run: int,
    seen: Counter[tuple[str, str]],
    thumbs: list[tuple[str, str]],
    collector: Collector,
) -> None:
    assertion, metadata = part["assertion"], part.get("metadata")
    kind = str(plain(assertion.get("type")) or "assertion")
    passed = part.get("pass")
    if kind == "human":
        if isinstance(passed, bool):
            thumbs.append((item, _CLASSES[passed]))
        return
    metric = plain(assertion.get("metric"))
    question = _PASS if metric is None else str(metric)
    grader = assertion.get("provider")
    grader = (grader.get("label") or grader.get("id")) if isinstance(grader, dict) else grader
    labeler = kind if plain(grader) is None else f"{kind} ({grader})"
    seen[question, labeler] += 1
    if seen[question, labeler] > 1:
        labeler = f"{labeler} {seen[question, labeler]}"  # another assertion of the same kind
    collector.ask(question, classes=_CLASSES)
    if isinstance(metadata, dict) and metadata.get("graderError") is True:
        collector.abstain(question, item, labeler, "graders that failed", run=run)
    elif isinstance(passed, bool):
        collector.vote(question, item, labeler, _CLASSES[passed], run=run)
    else:
        collector.abstain(question, item, labeler, "verdicts that neither pass nor fail", run=run)


PROMPTFOO = Adapter(
    title="promptfoo: results as JSON",
    sniff=_sniff,
    read=_read,
    becomes="votes: assertions; gold: thumbs of people",
    basis="real files",
)
