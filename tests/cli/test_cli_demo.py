"""trueup demo, through its entry point."""

import json

import pytest
from cli_helpers import assert_one_sentence


@pytest.fixture
def quick_demo(monkeypatch):
    """The real demonstration on some of the digits and with few draws."""
    import functools

    import trueup.cli.demo as module

    for name in ("evaluate", "compare"):
        whole = getattr(module, name)

        def quick(*args, whole=whole, **options):
            if options.get("method") != "majority":
                options.update(n_draws=40, n_warmup=30, noise="dawid-skene")
            return whole(*args, **options)

        monkeypatch.setattr(module, name, functools.wraps(whole)(quick))
    make, run = module.crowd_on_digits, module.run_demo

    def some(**options):
        labels, truth, predictions = make(**options)
        return labels.select(items=labels.items[:200]), truth[:200], {k: v[:200] for k, v in predictions.items()}

    monkeypatch.setattr(module, "crowd_on_digits", some)

    def remembered(**options):
        remembered.last = run(**options)
        return remembered.last

    monkeypatch.setattr(module, "run_demo", remembered)


def test_it_judges_compares_and_writes_a_report(run_main, quick_demo, tmp_path, monkeypatch):
    import trueup.cli.demo as module

    report = tmp_path / "demo.html"
    ran = run_main("demo", "--report", report)
    assert ran.code == 0, ran.err
    for text in ("support vectors", "naive Bayes", "hidden truth", "better than", str(report)):
        assert text in ran.out
    assert "naive Bayes" in report.read_text(encoding="utf-8")

    # The same result for machines, without the work.
    result = module.run_demo.last  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "run_demo", lambda **_: result)
    ran = run_main("demo", "--report", tmp_path / "demo.json", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [one["system"] for one in found["systems"]] == ["support vectors", "naive Bayes"]
    assert [one["hidden_accuracy"] for one in found["systems"]] == list(result.truth.values())
    assert found["comparison"]["systems"][0]["system"] == "support vectors"
    json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))


def test_a_place_that_cannot_be_written(run_main, tmp_path):
    assert_one_sentence(run_main("demo", "--report", tmp_path / "none" / "demo.html"))


@pytest.mark.slow
def test_the_installed_program(run_trueup, tmp_path):
    ran = run_trueup("demo")
    assert ran.code == 0, ran.err
    assert (tmp_path / "trueup-demo.html").exists()
    assert "trueup-demo.html" in ran.out
