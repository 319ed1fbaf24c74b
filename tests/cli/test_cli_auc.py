"""trueup auc, through its entry point."""

import json

import pytest
from cli_helpers import QUICK, crowd, write_csv

import trueup as tu


def test_all_views_are_those_of_the_library(run_main, votes_csv, predictions_csv):
    ran = run_main("auc", votes_csv, predictions_csv, "--view", "all", "--json", *QUICK)
    assert ran.code == 0, ran.err
    found = {one["view"]: one["mean"] for one in json.loads(ran.out)["results"]}
    assert list(found) == ["bayes", "deterministic", "subjectivist", "probabilistic"]
    labels = tu.read_labels(votes_csv)
    scores = tu.read_predictions(predictions_csv, labels=labels)
    for view in ("deterministic", "probabilistic"):
        assert found[view] == pytest.approx(tu.auc(scores, labels, view=view, n_draws=100, random_state=0).mean)


def test_scores_that_speak_for_the_other_class(run_main, votes_csv, tmp_path):
    score = crowd()["score"]
    for_yes = write_csv(tmp_path / "a.csv", ("item", "score"), [(f"i{i}", s) for i, s in enumerate(score)])
    for_no = write_csv(tmp_path / "b.csv", ("item", "score"), [(f"i{i}", 1 - s) for i, s in enumerate(score)])

    def area(*args):
        ran = run_main("auc", votes_csv, *args, "--view", "probabilistic", "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)["results"][0]["mean"]

    assert area(for_yes) > 0.7
    assert area(for_no) < 0.3
    assert area(for_no, "--positive", "no") == pytest.approx(area(for_yes), abs=0.02)
