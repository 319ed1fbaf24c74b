"""The data of a report: JSON-able, repeatable, and the numbers of the evaluation itself."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.estimators import majority
from trueup.report import build_report, render_json
from trueup.report.sentences import shorten, text


def test_json_holds_it(any_report):
    assert json.loads(render_json(any_report)) == any_report
    assert any_report["format"] == 1


def test_numbers_are_those_of_the_evaluation(two_classes):
    evaluation, system = two_classes.evaluations, two_classes.data["systems"][0]
    assert [m["name"] for m in system["metrics"]] == list(evaluation.metrics)
    for metric in system["metrics"]:
        estimate = evaluation[metric["name"]]
        assert metric["mean"] == estimate.mean
        assert (metric["low"], metric["high"]) == estimate.interval(evaluation.level)
    assert np.array_equal(system["confusion"]["mean"], evaluation.confusion.mean)
    intervals = evaluation.confusion.intervals()
    assert np.array_equal(system["confusion"]["low"], intervals[..., 0])
    assert np.array_equal(system["confusion"]["high"], intervals[..., 1])


def test_the_majority_vote_is_that_of_the_method_of_this_name(two_systems):
    for name, evaluation in two_systems.evaluations.items():
        counts = majority(evaluation.labels, evaluation.problem.predictions, random_state=0).counts
        system = next(s for s in two_systems.data["systems"] if s["name"] == name)
        accuracy = np.trace(counts.mean_counts) / counts.mean_counts.sum()
        assert system["metrics"][0]["dirty"] == pytest.approx(accuracy)


def test_the_comparison_is_the_comparisons_own(two_systems):
    compared, found = two_systems.comparison, two_systems.data["comparison"]
    assert [row["system"] for row in found["systems"]] == compared.ranking
    for row in found["systems"]:
        assert row["prob_best"] == compared.prob_best[row["system"]]
        assert row["mean"] == compared[row["system"]].mean
    pair = found["pairs"][0]
    difference = compared.difference(pair["a"], pair["b"])
    assert (pair["low"], pair["high"]) == difference.interval(compared.level)
    assert two_systems.data["verdict"][0].startswith("“good” is better than “bad”")


def test_labelers_are_all_there_the_best_first(two_classes):
    rows = two_classes.data["labelers"]["rows"]
    assert sorted(row["labeler"] for row in rows) == ["0", "1", "2", "3", "4"]
    assert rows[-1]["labeler"] == "4"
    assert sum(row["votes"] for row in rows) == two_classes.evaluations.labels.n_votes


def test_what_to_vet_is_in_doubt_and_not_known(two_classes):
    evaluation = two_classes.evaluations
    truth = evaluation.solution.truth
    right = truth[np.arange(len(truth)), evaluation.problem.predictions]
    doubt = right * (1 - right)  # for the accuracy, the worth of vetting an item
    rows = two_classes.data["vet_next"]["rows"]
    at = [int(row["item"]) for row in rows]
    assert np.allclose(doubt[at], np.sort(doubt)[::-1][: len(at)])
    assert np.allclose([row["moves"] for row in rows], np.sqrt(doubt[at]) / len(truth), rtol=0.02)
    first = evaluation.labels.items[at[0]]
    known = evaluation.labels.with_gold({first: evaluation.classes[0]})
    again = tu.evaluate(evaluation.problem.predictions, known, noise="dawid-skene", n_draws=100, n_warmup=50)
    assert str(first) not in [row["item"] for row in build_report(again)["vet_next"]["rows"]]


def test_names_that_no_file_can_hold_are_mended():
    assert text("a\x00b\ud800c\u202e") == "a\ufffdb\ufffdc\ufffd"
    assert len(shorten("x" * 500)) == 60
    assert shorten("one\ntwo") == "one two"


@pytest.mark.parametrize("method", ["majority", "labeler-mean", "mmse", "estimated-labels", "unbiased", "dirty"])
def test_every_method_has_a_report(two_classes, method):
    labels, codes = two_classes.evaluations.labels, two_classes.evaluations.problem.predictions
    data = build_report(tu.evaluate(codes, labels, method=method, noise="dawid-skene"))
    render_json(data)
    assert data["systems"][0]["metrics"][0]["mean"] is not None


def test_few_votes_leave_parts_out():
    labels = tu.Labels.from_matrix(np.array([[0], [1], [1], [0]]))
    evaluation = tu.evaluate(np.array([0, 1, 0, 0]), labels, method="majority")
    data = build_report(evaluation)
    assert data["labelers"] is None
    assert data["dependence"] is None
    assert data["systems"][0]["curves"] == []


def test_where_skill_would_take_long_the_page_says_so():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 60, 400)
    votes = np.where(rng.random((400, 9)) < 0.8, truth[:, None], rng.integers(0, 60, (400, 9)))
    labels = tu.Labels.from_matrix(votes, classes=range(60))
    evaluation = tu.evaluate(truth, labels, method="estimated-labels", noise="majority", check_dependence=False)
    labelers = build_report(evaluation)["labelers"]
    assert labelers["rows"] == []
    assert "too many labelers" in labelers["notes"][0]
