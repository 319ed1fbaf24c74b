"""Gates as JUnit XML, which GitLab and Jenkins show beside the tests of a change."""

from __future__ import annotations

from os import PathLike
from xml.etree import ElementTree

from trueup._base.writing import write_text_safely
from trueup.answers.verdicts import GateReport

_SUITE = "trueup"


def render_junit(report: GateReport, *, name: str = "gates") -> str:
    """A test case for each gate: one that failed is a failure, one that is undecided an error.

    Parameters
    ----------
    report : GateReport
    name : str
        Of the suite, and the class of its cases.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> text = render_junit(tu.gate(ev, at_least={"accuracy": 0.999}))
    >>> 'tests="1" failures="1" errors="0"' in text, "<failure" in text
    (True, True)
    """
    verdicts = [result.verdict for result in report.results]
    counts = {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count("failed")),
        "errors": str(verdicts.count("undecided")),
    }
    suites = ElementTree.Element("testsuites", {"name": _SUITE, **counts, "time": "0"})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _allowed(name), **counts, "skipped": "0", "time": "0"})
    for result in report.results:
        about = {"classname": f"{_SUITE}.{_allowed(name)}", "name": _allowed(str(result.gate)), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", about)
        sentence = _allowed(result.sentence)
        if result.verdict == "passed":
            ElementTree.SubElement(case, "system-out").text = sentence
        else:
            kind = "failure" if result.verdict == "failed" else "error"
            problem = ElementTree.SubElement(case, kind, {"message": sentence, "type": result.verdict})
            problem.text = sentence
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def save_junit(report: GateReport, path: str | PathLike[str], *, name: str = "gates") -> None:
    """Write gates as JUnit XML, whole or not at all; see `render_junit`."""
    write_text_safely(path, render_junit(report, name=name))


def _allowed(text: str) -> str:
    """Text with escapes for what XML cannot hold: control characters and halves of characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
