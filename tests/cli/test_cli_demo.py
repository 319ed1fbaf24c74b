"""trueup demo, through its entry point."""

import json

import pytest

from trueup.cli.demo import N_CHECKED, run_demo


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
