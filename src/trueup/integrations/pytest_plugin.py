"""Gates in pytest: the fixture `trueup_gate`, a table at the end of the run, numbers as properties in JUnit.

pytest loads this file in every run of every project, so what takes long is imported where a gate is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from trueup.answers.gates import GateReport, GateResult

_MARK = "trueup."  # what the names of our properties begin with


def pytest_addoption(parser: pytest.Parser) -> None:
    """What becomes of tests whose gate is undecided is the user's choice."""
    parser.getgroup("trueup", "gates of trueup").addoption(
        "--trueup-undecided",
        choices=("fail", "skip", "xfail"),
        default="fail",
        help="what a gate that is undecided makes of its test: fail (the default), skip or xfail",
    )


@pytest.fixture
def trueup_gate(request: pytest.FixtureRequest) -> Callable[..., GateReport]:
    """The function `trueup.gate`, whose verdict is that of the test: passed, failed, or what --trueup-undecided says.

    ``trueup_gate(answer, **conditions)`` takes what `trueup.gate` takes, and returns its report where all gates passed.
    """
    properties = request.node.user_properties
    properties[:] = [known for known in properties if not str(known[0]).startswith(_MARK)]  # of an earlier try
    undecided = request.config.getoption("--trueup-undecided")
    numbers = count(1)

    def check(answer: Any, **conditions: Any) -> GateReport:
        __tracebackhide__ = True
        report = _judged(answer, conditions)
        further = _further_checks(answer, conditions, report) if report.verdict == "undecided" else {}
        for result in report.results:
            about = _numbers(result, report.level) | (further if result.verdict == "undecided" else {})
            number = next(numbers)
            properties.extend((f"{_MARK}{number}.{name}", value) for name, value in about.items())
        if report.verdict != "passed":
            message = f"{report.sentence}. {further.get('further_checks', '')}".strip()
            _end(message, "fail" if report.verdict == "failed" else undecided)
        return report

    return check


def _judged(answer: Any, conditions: dict[str, Any]) -> GateReport:
    """The verdict; what makes no sense is an error without the way through the library."""
    __tracebackhide__ = True
    from trueup.answers.gates import gate
    from trueup.exceptions import TrueupError

    try:
        return gate(answer, **conditions)
    except (TrueupError, TypeError) as error:
        raise error.with_traceback(None) from None


def _further_checks(answer: Any, conditions: dict[str, Any], report: GateReport) -> dict[str, Any]:
    """How many more checks would decide, in words and as a number; in other words where the answer cannot say."""
    from trueup.decisions import decide
    from trueup.exceptions import TrueupError

    asked = {name: value for name, value in conditions.items() if name not in ("probability", "require_gold")}
    try:
        needed = decide(answer, **asked, error=round(1 - report.required, 9)).needed
    except TrueupError:  # an answer of a named method, or a metric that is no sum over items
        return {"further_checks": " ".join(report.next_steps)} if report.next_steps else {}
    count = {} if needed.checks is None else {"checks_needed": needed.checks}
    return {"further_checks": str(needed), **count}


def _numbers(result: GateResult, level: float) -> dict[str, Any]:
    """A gate in names and numbers that any process and JUnit can take."""
    low, high = result.estimate.interval(level)
    return {
        "gate": str(result.gate),
        "verdict": result.verdict,
        "probability": float(result.probability),
        "mean": float(result.estimate.mean),
        "low": float(low),
        "high": float(high),
        "level": float(level),
        "basis": result.basis,
    }


def _end(message: str, outcome: str) -> NoReturn:
    """End the test that runs."""
    __tracebackhide__ = True
    if outcome == "skip":
        pytest.skip(message)
    if outcome == "xfail":
        pytest.xfail(message)
    pytest.fail(message, pytrace=False)  # also under --runxfail, which lets xfail() return


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each gate of the run, of whichever process."""
    rows = list(_gates_of(terminalreporter.stats))
    if not rows:
        return
    from trueup._base.wording import chance, interval, level_words, number

    table = [("verdict", "mean", "interval", "met with", "rests on", "gate", "test")]
    for test, gate in rows:
        ends = f"{interval(gate['low'], gate['high'])} ({level_words(gate['level'])})"
        words = (gate["verdict"], number(gate["mean"]), ends, chance(gate["probability"]), gate["basis"], gate["gate"])
        table.append((*words, test))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    terminalreporter.section("gates of trueup")
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line("  ".join(cells).rstrip())


def _gates_of(stats: dict[str, list[Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The test and the numbers of each gate."""
    by_test: dict[str, list[tuple[str, Any]]] = {}
    for report in chain.from_iterable(stats.values()):
        known = getattr(report, "user_properties", None)  # other plugins have reports of their own
        if known and report.outcome != "rerun" and len(known) >= len(by_test.get(report.nodeid, ())):
            by_test[report.nodeid] = known
    for test, known in by_test.items():
        gates: dict[str, dict[str, Any]] = {}
        for name, value in known:
            if str(name).startswith(_MARK):
                _, number, key = name.split(".", 2)
                gates.setdefault(number, {})[key] = value
        yield from ((test, gate) for gate in gates.values())
