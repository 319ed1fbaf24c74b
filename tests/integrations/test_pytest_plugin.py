"""Gates as tests: what becomes of each verdict, what is printed and written, and what a run without gates costs."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from xml.etree import ElementTree

import pytest

import trueup as tu

pytest_plugins = ["pytester"]

PLUGIN = "trueup.integrations.pytest_plugin"
ANSWERS = """
    import numpy as np
    import pytest
    import trueup as tu

    @pytest.fixture(scope="session")
    def shares():
        sim = tu.simulate.dawid_skene(n_items=80, n_labelers=5, random_state=0)
        system = np.where(np.arange(80) % 2, "old", "new").tolist()
        labels = sim.labels.with_items({"item": sim.labels.items.tolist(), "system": system})
        return tu.share(labels, of=1, by="system", n_draws=100, check_dependence=False)
"""
OPEN = """
    def test_is_open(trueup_gate, shares):
        trueup_gate(shares, candidate="new", not_worse_than="old", margin=0.001)
"""
ONE_OF_EACH = f"""
    def test_passes(trueup_gate, shares):
        assert trueup_gate(shares, candidate="new", at_least=0.01).verdict == "passed"

    def test_fails(trueup_gate, shares):
        trueup_gate(shares, candidate="new", at_least=0.99)
{OPEN}"""


@pytest.fixture(scope="module")
def loaded():
    """All modules of an answer: runs inside of this process forget what they load, and numba cannot be loaded twice."""
    sim = tu.simulate.dawid_skene(n_items=80, n_labelers=5, random_state=0)
    shares = tu.share(sim.labels, of=1, by=dict.fromkeys(sim.labels.items.tolist(), "all"), n_draws=100)
    assert tu.gate(shares, at_least=0.01)


@pytest.fixture
def run(loaded, pytester, monkeypatch):
    """Run tests with this plugin and those that are named alone."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(ANSWERS)

    def run(tests: str, *options: str, plugin: str = PLUGIN) -> pytest.RunResult:
        pytester.makepyfile(tests)
        return pytester.runpytest_inprocess("-p", plugin, "-p", "no:cacheprovider", *options)

    return run


def test_a_verdict_is_that_of_the_test(run):
    ran = run(ONE_OF_EACH)
    ran.assert_outcomes(passed=1, failed=2)
    ran.stdout.fnmatch_lines(
        [
            "failed: share of 1 for 'new' is at least 0.99 with probability *, 95% is asked for (95% interval * to *; "
            "rests on votes alone).",
            "undecided: share of 1 for 'new' minus 'old' is at least -0.001 with *). * more checks decide with *",
            "*= gates of trueup =*",
            "verdict *mean *interval *met with *rests on *gate *test",
            "passed *votes alone *share of 1 for 'new' is at least 0.01 *::test_passes",
            "failed *share of 1 for 'new' is at least 0.99 *::test_fails",
            "undecided *share of 1 for 'new' minus 'old' is at least -0.001 *::test_is_open",
        ]
    )
    assert "pytest_plugin.py" not in ran.stdout.str()  # the way through this plugin is no news


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        (["--trueup-undecided=skip"], {"skipped": 1}),
        (["--trueup-undecided=xfail"], {"xfailed": 1}),
        (["--trueup-undecided=fail"], {"failed": 1}),
        (["--trueup-undecided=xfail", "--runxfail"], {"failed": 1}),  # there xfail() does nothing
    ],
    ids=str,
)
def test_what_is_undecided_is_as_the_user_says(run, options, outcome):
    ran = run(OPEN, *options, "-rsx")
    ran.assert_outcomes(**outcome)
    ran.stdout.fnmatch_lines(["*undecided: share of 1*"])


def test_another_word_for_undecided_is_refused(run):
    ran = run(OPEN, "--trueup-undecided=pass")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*--trueup-undecided*invalid choice: 'pass'*"])


def test_junit_has_the_numbers_of_each_gate(run, pytester):
    tests = """
    def test_both(trueup_gate, shares):
        trueup_gate(shares, candidate="new", at_least=0.01)
        trueup_gate(shares, candidate="old", at_most=0.99)
    """
    run(tests, "--junitxml=junit.xml").assert_outcomes(passed=1)
    properties = ElementTree.parse(pytester.path / "junit.xml").iter("property")
    told = {one.get("name"): one.get("value") for one in properties}
    assert told["trueup.1.gate"] == "share of 1 for 'new' is at least 0.01"
    assert told["trueup.2.gate"] == "share of 1 for 'old' is at most 0.99"
    assert told["trueup.2.verdict"] == "passed"
    assert told["trueup.2.basis"] == "votes alone"
    low, mean, high, probability = (float(told[f"trueup.1.{name}"]) for name in ("low", "mean", "high", "probability"))
    assert 0 <= low < mean < high <= 1
    assert probability >= float(told["trueup.1.level"]) == 0.95


def test_what_would_decide_is_the_number_of_the_decision(run, pytester):
    tests = """
    def test_is_open(trueup_gate, shares):
        trueup_gate(shares, candidate="new", not_worse_than="old", margin=0.001, probability=0.9)

    def test_a_named_method_cannot_say(trueup_gate):
        sim = tu.simulate.baseline(n_items=60, random_state=0)
        ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=100, n_warmup=50)
        trueup_gate(ev, at_least=ev["accuracy"].mean)

    def test_the_number_is_that_of_the_library(shares):
        decision = tu.decide(shares, candidate="new", not_worse_than="old", margin=0.001, error=0.1)
        print("needed:", decision.needed.checks)
    """
    ran = run("    import trueup as tu\n" + tests, "--junitxml=junit.xml", "-rP")
    ran.assert_outcomes(passed=1, failed=2)
    needed = next(line.split()[-1] for line in ran.stdout.lines if line.startswith("needed: "))
    properties = [(one.get("name"), one.get("value")) for one in ElementTree.parse("junit.xml").iter("property")]
    assert [value for name, value in properties if name == "trueup.1.checks_needed"] == [needed]
    said = [value for name, value in properties if name == "trueup.1.further_checks"]
    assert said[0].startswith(f"{needed} more checks decide with probability 80%")
    assert not any("decide" in sentence for sentence in said[1:])


def test_gates_of_several_processes_stand_in_one_table(run, monkeypatch):
    source = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYTHONPATH", str(source), prepend=":")
    ran = run(ONE_OF_EACH, "-p", "xdist", "-n", "2", "--trueup-undecided=skip")
    ran.assert_outcomes(passed=1, failed=1, skipped=1)
    ran.stdout.fnmatch_lines_random(["passed *::test_passes", "failed *::test_fails", "undecided *::test_is_open"])


def test_a_test_that_is_tried_again_has_its_last_gates(run, pytester):
    again = """
    def pytest_runtest_protocol(item, nextitem):  # as plugins do that try again
        from _pytest.runner import runtestprotocol
        for outcome in ("rerun", None) if item.name == "test_again" else (None,):
            item._initrequest()
            for report in runtestprotocol(item, nextitem=nextitem, log=False):
                if not outcome or report.when == "call":
                    report.outcome = outcome or report.outcome
                    item.ihook.pytest_runtest_logreport(report=report)
        return True

    def pytest_report_teststatus(report):
        return ("rerun", "R", "RERUN") if report.outcome == "rerun" else None
    """
    pytester.makeconftest(ANSWERS + again)
    tests = """
    tries = []

    def test_first(shares):
        pass

    def test_again(trueup_gate, shares):
        tries.append(1)
        trueup_gate(shares, candidate="new", at_least=0.99 if len(tries) == 1 else 0.01)
    """
    ran = run(tests, "--junitxml=junit.xml")
    assert [line.split()[0] for line in ran.stdout.lines if line.endswith("::test_again")] == ["passed"]
    names = [one.get("name") for one in ElementTree.parse(pytester.path / "junit.xml").iter("property")]
    assert names.count("trueup.1.verdict") == 1


@pytest.mark.parametrize("name", ["terminal", "junitxml", "skipping"])
def test_other_plugins_may_be_missing(run, name):
    ran = run(ONE_OF_EACH, "-p", f"no:{name}", "--trueup-undecided=xfail")
    assert ran.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("trueup_gate('answer', at_least=0.5)", "InvalidParameter: `answer` must be what evaluate*got str*"),
        ("trueup_gate(shares, candidate='nwe', at_least=0.5)", "InvalidParameter: there is no *did you mean 'new'?"),
        ("trueup_gate(shares, not_worse_than='older')", "InvalidParameter: there is no *'older'*"),
        ("trueup_gate(shares)", "InvalidParameter: a gate needs a condition, got none*"),
        ("trueup_gate(shares, at_least='high')", "InvalidParameter: `at_least` must be *'high'*"),
        ("trueup_gate(shares, atleast=0.5)", "TypeError: *unexpected keyword argument 'atleast'"),
    ],
)
def test_what_makes_no_sense_is_an_error_of_one_sentence(run, call, sentence):
    ran = run(f"    def test_it(trueup_gate, shares):\n        {call}", "--trueup-undecided=skip")
    ran.assert_outcomes(failed=1)
    errors = [line for line in ran.stdout.lines if line.startswith("E  ")]
    assert len(errors) == 1
    ran.stdout.fnmatch_lines([f"E  *{sentence}"])
    assert "gates.py" not in ran.stdout.str()


def test_the_entry_point_is_the_plugin():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name, value) = next(iter(project["entry-points"]["pytest11"].items()))
    plugin = EntryPoint(name, value, "pytest11").load()
    assert (name, plugin.__name__) == ("trueup", PLUGIN)


def test_a_run_without_gates_loads_nothing_of_trueup(tmp_path):
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    code = f"""
import os, sys
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
import pytest
status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", {PLUGIN!r}])
loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("trueup", "numpy", "scipy"))
sys.exit(status or loaded != ["trueup", "trueup.integrations", {PLUGIN!r}] and str(loaded))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
