"""trueup plan."""

import json

import pytest

import trueup as tu

PRICES = ("--vote-price", "0.05", "--expert-price", "2")
RATES = ("--labeler-accuracy", "0.8", "--error", "0.1")


def test_json_is_what_the_library_says(run_main):
    found = json.loads(run_main("plan", "--budget", "500", *PRICES, *RATES, "--correlation", "0.2", "--json").out)
    plan = tu.plan(
        budget=500, vote_price=0.05, expert_price=2, labeler_accuracy=0.8, error=0.1, correlation=0.2, n_classes=2
    )
    assert found["half_width"] == plan.half_width
    assert [d["kind"] for d in found["alternatives"]] == [d.kind for d in plan.alternatives]
    assert found["learned"] == []


def test_what_is_not_given_is_learned_from_votes_and_predictions(votes_csv, predictions_csv, run_main):
    ran = run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES, "--json")
    found = json.loads(ran.out)
    assert found["learned"] == ["correlation", "error", "labeler_accuracy", "n_classes", "prior"]
    assert found["assumed"]["labeler_accuracy"] == pytest.approx(0.85, abs=0.06)
    assert found["assumed"]["error"] == pytest.approx(0.05, abs=0.06)
    assert found["assumed"]["n_classes"] == 2
    given = json.loads(
        run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES, "--error", "0.3", "--json").out
    )
    assert given["assumed"]["error"] == 0.3
    assert "From the votes" in run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES).out


def test_a_precision_that_is_not_reached_can_fail_the_run(run_main):
    asked = ("plan", "--budget", "500", *PRICES, *RATES)
    ran = run_main(*asked, "--fail-above", "0.01")
    assert ran.code == 1
    assert "finding: the half-width is 0.0146" in ran.err
    assert run_main(*asked, "--fail-above", "0.02").code == 0


def test_a_plot(tmp_path, run_main):
    assert run_main("plan", "--budget", "500", *PRICES, *RATES, "--plot", tmp_path / "plan.svg").code == 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()
