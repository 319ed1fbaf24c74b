"""Gates as JUnit XML: what GitHub, GitLab and Jenkins read."""

from xml.etree import ElementTree

import numpy as np
import pytest

from trueup.answers.gates import Gate, GateReport, judge_gate
from trueup.posteriors import DrawnEstimate
from trueup.report import render_junit, save_junit

# What the schema of Jenkins (junit-10.xsd), the strictest of the three, allows: attributes and children of each.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname", "time", "assertions", "status"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}
REQUIRED = {"testsuite": {"name", "tests"}, "testcase": {"name", "classname"}}


@pytest.fixture
def report():
    estimate = DrawnEstimate(np.arange(100) / 100, name="accuracy")
    results = [
        judge_gate(
            Gate(f"accuracy of {name!r}", "at least", bound),
            estimate,
            basis="votes alone",
            probability=0.9,
            require_gold=False,
        )
        for name, bound in (("a<&>\x1b[31m\ud800", 0.05), ("b", 0.5), ('"c"\n', 0.95), ("d", 0.96))
    ]
    return GateReport(tuple(results), 0.9, False)


def test_every_element_is_one_that_is_read(report):
    root = ElementTree.fromstring(render_junit(report, name="compare"))
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib)
        for count in {"tests", "failures", "errors", "skipped"} & set(element.attrib):
            assert element.attrib[count].isdigit()


def test_a_failure_is_a_failure_and_what_is_undecided_an_error(report, tmp_path):
    path = tmp_path / "gate.xml"
    save_junit(report, path)
    suite = ElementTree.parse(path).getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("4", "2", "1")
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [["system-out"], ["error"], ["failure"], ["failure"]]
    assert suite[1][0].attrib["type"] == "undecided"
    assert suite[1][0].attrib["message"] == report.results[1].sentence


def test_names_that_xml_cannot_hold_are_escaped(report):
    first = ElementTree.fromstring(render_junit(report))[0][0]
    assert "\\x1b[31m" in first.attrib["name"]
    assert "a<&>" in first.attrib["name"]
