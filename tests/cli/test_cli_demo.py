"""trueup demo and simulate."""

import json

import pytest
from cli_helpers import assert_one_sentence

import trueup as tu
from trueup.adapters import read_gold, read_labels, read_predictions
from trueup.cli.demo import N_CHECKED, SIMULATORS, run_demo


@pytest.fixture(scope="module")
def found():
    return run_demo()


def test_the_story_is_true(found):
    better, other = sorted(found.truth, key=lambda name: -found.truth[name])
    assert found.majority[other][0] > found.majority[better][0]  # the majority takes the worse one for the better
    for name in found.truth:
        majority, alone, checked = found.ranges(name).values()
        assert name == other or majority[1] < found.truth[name]
        assert alone[0] <= found.truth[name] <= alone[1]
        assert checked[0] <= found.truth[name] <= checked[1]
        assert checked[1] - checked[0] < 0.6 * (alone[1] - alone[0])
    assert found.decision.verdict == "passed"
    assert found.decision.progress.n_tells < 2 * N_CHECKED


def test_it_says_so_and_writes_a_report(found, run_main, tmp_path, monkeypatch):
    monkeypatch.setattr("trueup.cli.demo.run_demo", lambda **_: found)
    report = tmp_path / "demo.html"
    ran = run_main("demo", "--report", report)
    assert ran.code == 0, ran.err
    assert "narrow and wrong" in ran.out
    assert "more checks: yes" in ran.out
    assert str(report) in ran.out
    assert max(map(len, ran.out.replace(str(report), "").splitlines())) <= 110
    assert "templates" in report.read_text(encoding="utf-8")

    ran = run_main("demo", "--report", tmp_path / "demo.json", "--json")
    assert ran.code == 0, ran.err
    parsed = json.loads(ran.out)
    assert [one["hidden_accuracy"] for one in parsed["systems"]] == list(found.truth.values())
    assert parsed["decision"]["verdict"] == "passed"
    json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))


def test_files_through_the_installed_program(tmp_path, run_trueup):
    ran = run_trueup("simulate", "dependent", "--out", "made/here", "--set", "n_items=50", "--seed", "4")
    assert ran.code == 0, ran.err
    data = tu.simulate.dependent(n_items=50, random_state=4)
    folder = tmp_path / "made" / "here"
    labels = read_labels(folder / "votes.csv")
    assert (labels.votes != data.labels.votes).nnz == 0
    truth = read_gold(folder / "truth.csv", labels=labels)
    assert [truth[item] for item in labels.items.tolist()] == data.truth.tolist()
    predictions = read_predictions(folder / "predictions.csv", labels=labels).align(labels)
    assert predictions.codes[0].tolist() == data.predictions.tolist()
    record = json.loads((folder / "simulation.json").read_text())
    assert record["accuracy"] == data.accuracy
    assert (record["simulator"], record["seed"], record["parameters"]) == ("dependent", 4, {"n_items": 50})


@pytest.mark.parametrize("name", list(SIMULATORS))
def test_every_simulator_writes_what_trueup_reads(name, tmp_path, run_main):
    more = ("--set", "n_classifiers=3", "--set", "labels_per_item=3") if name == "urkullu" else ()
    ran = run_main("simulate", name, "--out", tmp_path / "made", "--set", "n_items=60", *more)
    assert ran.code == 0, ran.err
    labels = read_labels(tmp_path / "made" / "votes.csv")
    truth = read_gold(tmp_path / "made" / "truth.csv", labels=labels)
    assert set(truth) == set(labels.items.tolist())
    system = "system" if name == "urkullu" else None
    predictions = read_predictions(
        tmp_path / "made" / "predictions.csv", labels=labels, system=system, positive=1 if system else None
    )
    assert predictions.n_systems == (3 if system else 1)
    assert predictions.align(labels).n_systems == predictions.n_systems
    if name == "urkullu":
        assert "got no vote" in ran.err  # so that the files fit each other


def test_every_simulator_is_offered_and_listed(run_main):
    others = {"pairs", "urkullu_scores"}  # no votes on items
    offered = {name.replace("_", "-") for name in tu.simulate.__all__ if name.islower() and name not in others}
    assert offered == set(SIMULATORS)
    ran = run_main("simulate", "--list")
    assert ran.code == 0
    assert all(name in ran.out for name in SIMULATORS)
    listed = json.loads(run_main("simulate", "--list", "--json").out)
    assert listed["baseline"]["parameters"]["n_items"] == 500


def test_nothing_is_replaced_without_force(tmp_path, run_main):
    asked = ("simulate", "baseline", "--out", tmp_path / "made", "--set", "n_items=20")
    assert run_main(*asked).code == 0
    before = (tmp_path / "made" / "votes.csv").read_bytes()
    refused = run_main(*asked, "--seed", "9")
    assert_one_sentence(refused)
    assert "--force" in refused.err
    assert (tmp_path / "made" / "votes.csv").read_bytes() == before
    assert run_main(*asked, "--seed", "9", "--force").code == 0
    assert (tmp_path / "made" / "votes.csv").read_bytes() != before
