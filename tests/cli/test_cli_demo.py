"""trueup demo, through its entry point."""

import json

import pytest


def test_it_judges_compares_and_writes_a_report(run_main, tmp_path, monkeypatch):
    import trueup.cli.demo as module

    results, run = [], module.run_demo
    monkeypatch.setattr(module, "run_demo", lambda **options: results.append(run(**options)) or results[0])
    report = tmp_path / "demo.html"
    ran = run_main("demo", "--quick", "--report", report)
    assert ran.code == 0, ran.err
    for text in ("support vectors", "naive Bayes", "hidden truth", "better than", str(report)):
        assert text in ran.out
    steps = ["training two classifiers", "evaluating support vectors", "evaluating naive Bayes", "comparing the two"]
    parsed = ran.err.splitlines()
    assert all(line.startswith(step) for line, step in zip(parsed, steps, strict=False)), parsed
    assert "warning" not in ran.err
    assert "naive Bayes" in report.read_text(encoding="utf-8")

    # The same result for machines, without the work.
    result = results[0]
    monkeypatch.setattr(module, "run_demo", lambda **_: result)
    ran = run_main("demo", "--report", tmp_path / "demo.json", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [one["system"] for one in found["systems"]] == ["support vectors", "naive Bayes"]
    assert [one["hidden_accuracy"] for one in found["systems"]] == list(result.truth.values())
    assert found["comparison"]["systems"][0]["system"] == "support vectors"
    json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_installed_program(run_trueup, tmp_path):
    ran = run_trueup("demo")
    assert ran.code == 0, ran.err
    assert (tmp_path / "trueup-demo.html").exists()
    assert "trueup-demo.html" in ran.out
