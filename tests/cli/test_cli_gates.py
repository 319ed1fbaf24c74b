"""Gates of evaluate, compare and share, through the entry point."""

import json
from xml.etree import ElementTree

import pytest
from cli_helpers import FEW, QUICK, assert_one_sentence, crowd, write_csv

from trueup.cli._console import FINDING, FINE, UNDECIDED


@pytest.mark.parametrize(
    ("option", "code"),
    [
        (("--fail-below", "accuracy=0.1"), FINE),
        (("--fail-below", "accuracy=0.9999"), FINDING),
        (("--fail-below", "accuracy=0.1", "--fail-above", "accuracy=0.2"), FINDING),
        (("--fail-above", "accuracy=0.99"), FINE),
        (("--fail-below", "accuracy=0.1", "--require-gold"), UNDECIDED),
    ],
    ids=["not below", "below", "above", "not above", "no gold"],
)
def test_the_exit_code_tells_the_verdict(run_main, votes_csv, systems_csv, option, code):
    base = ("evaluate", votes_csv, systems_csv, "--only-system", "bad", "-m", "macro_f1", *QUICK)
    ran = run_main(*base, *option)
    assert ran.code == code, ran.err
    verdict = {FINE: "passed", FINDING: "failed", UNDECIDED: "undecided"}[code]
    assert f"gate: {verdict}: " in ran.err
    assert "accuracy of 'bad'" in ran.err
    assert "Macro F1 is between" in ran.out  # the result is printed all the same


def test_a_bound_inside_the_interval_is_undecided(run_main, votes_csv, predictions_csv):
    args = ("evaluate", votes_csv, predictions_csv, "--json", "-m", "accuracy", *QUICK)
    accuracy = json.loads(run_main(*args).out)["metrics"]["accuracy"]
    ran = run_main(*args, "--fail-below", f"accuracy={accuracy['median']}")
    assert ran.code == UNDECIDED
    parsed = json.loads(ran.out)["gate"]
    assert (parsed["verdict"], parsed["probability"]) == ("undecided", 0.95)
    assert 0.05 < parsed["gates"][0]["probability"] < 0.95
    assert "votes alone" in parsed["gates"][0]["sentence"]
    assert run_main(*args, "--fail-below", f"accuracy={accuracy['high'] + 0.01}").code == FINDING
    sure = ("--fail-below", f"accuracy={accuracy['median'] - 1e-4}", "--probability", "0.501")
    assert run_main(*args, *sure).code == FINE


def test_every_system_of_a_file_has_its_gate(run_main, votes_csv, systems_csv):
    args = ("evaluate", votes_csv, systems_csv, "--json", "-m", "accuracy", "--fail-below", "accuracy=0.8", *QUICK)
    ran = run_main(*args)
    verdicts = {gate["candidate"]: gate["verdict"] for gate in json.loads(ran.out)["gate"]["gates"]}
    assert verdicts["bad"] == "failed"
    assert set(verdicts) == {"good", "bad"}
    assert ran.code == FINDING


@pytest.mark.parametrize("metric", ["accuracy", "error_rate"], ids=["more is better", "less is better"])
def test_beside_another_system(run_main, votes_csv, systems_csv, metric):
    args = ("compare", votes_csv, systems_csv, "-m", metric, *QUICK)
    assert run_main(*args, "--better-than", "bad", "--not-worse-than", "bad").code == FINE
    ran = run_main(*args, "--not-worse-than", "good", "--margin", "0.02", "--json")
    assert ran.code == FINDING
    gate = json.loads(ran.out)["gate"]["gates"][0]
    assert (gate["candidate"], gate["reference"]) == ("bad", "good")
    assert gate["bound"] == (-0.02 if metric == "accuracy" else 0.02)
    assert run_main(*args, "--not-worse-than", "good", "--margin", "0.9").code == FINE
    assert run_main(*args, "--better-than", "good").code == FINDING


def test_a_rate_of_a_system(run_main, votes_csv, items_csv):
    args = ("share", votes_csv, "--of", "yes", "--by", "system", "--items", items_csv, *FEW)
    ran = run_main(*args, "--fail-below", "yes=0.01", "--candidate", "beta")
    assert ran.code == FINE, ran.err
    assert "gate: passed: share of 'yes' for 'beta' is at least 0.01" in ran.err
    ran = run_main(*args, "--not-worse-than", "alpha", "--margin", "0.95", "--json")
    assert ran.code == FINE, ran.err
    assert json.loads(ran.out)["gate"]["verdict"] == "passed"
    ran = run_main(*args, "--fail-below", "no=0.5")
    assert_one_sentence(ran)
    assert "share of 'yes'" in ran.err


def test_gold_that_is_required(run_main, votes_csv, predictions_csv, tmp_path):
    truth = crowd()["truth"]
    rows = [(f"i{i}", ("no", "yes")[truth[i]]) for i in range(0, 60, 2)]
    gold = write_csv(tmp_path / "gold.csv", ("item", "label"), rows)
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy", "--fail-below", "accuracy=0.3", *FEW)
    ran = run_main(*args, "--require-gold")
    assert ran.code == UNDECIDED
    assert "trueup plan draw" in ran.err
    assert "--gold-drawn random" in ran.err
    ran = run_main(*args, "--require-gold", "--gold", gold, "--gold-drawn", "random")
    assert ran.code == FINE, ran.err
    assert "votes and 30 checked items" in ran.err


def test_verdicts_as_junit(run_main, votes_csv, systems_csv, tmp_path):
    path = tmp_path / "gate.xml"
    ran = run_main("compare", votes_csv, systems_csv, "--not-worse-than", "good", "--junit", path, *QUICK)
    assert ran.code == FINDING
    assert str(path) in ran.err
    suite = ElementTree.parse(path).getroot()[0]
    assert (suite.attrib["name"], suite.attrib["failures"]) == ("compare", "1")
    assert suite[0][0].tag == "failure"
