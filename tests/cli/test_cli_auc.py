"""trueup auc, through its entry point."""

import json

import pytest
from cli_helpers import QUICK

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
