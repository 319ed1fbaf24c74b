"""trueup evaluate, through its entry point."""

import json

import numpy as np
import pytest
from cli_helpers import FEW, QUICK, assert_one_sentence, crowd, write_csv

import trueup as tu


def test_the_contract_with_a_report(run_trueup, votes_csv, predictions_csv, tmp_path):
    report = tmp_path / "report.html"
    ran = run_trueup("evaluate", votes_csv, predictions_csv, "--metric", "accuracy", "--report", report, *QUICK)
    assert ran.code == 0, ran.err
    assert "accuracy is between" in ran.out
    assert str(report) in ran.err
    page = report.read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html")
    assert "accuracy" in page


def test_json_holds_the_numbers_of_the_library_and_nothing_else_is_printed(run_main, votes_csv, predictions_csv):
    ran = run_main("evaluate", votes_csv, predictions_csv, "--json", "--seed", "1", "--metric", "accuracy", *QUICK)
    assert ran.code == 0, ran.err
    got = json.loads(ran.out)
    labels = tu.read_labels(votes_csv)
    expected = tu.evaluate(
        tu.read_predictions(predictions_csv, labels=labels),
        labels,
        metrics=["accuracy"],
        noise="dawid-skene",
        n_draws=100,
        n_warmup=50,
        random_state=1,
    ).to_dict()
    assert got["metrics"] == expected["metrics"]
    assert {key: got[key] for key in ("classes", "n_items", "noise", "level")} == {
        key: expected[key] for key in ("classes", "n_items", "noise", "level")
    }
    assert (got["version"], got["seed"], got["findings"]) == (tu.__version__, 1, [])
    assert got["files"]["votes"]["file"] == str(votes_csv)
    assert len(got["files"]["votes"]["sha256"]) == 64


def test_the_same_seed_gives_the_same_answer(run_main, votes_csv, predictions_csv):
    args = ("evaluate", votes_csv, predictions_csv, "--json", *QUICK)
    first, again, other = (json.loads(run_main(*args, "--seed", seed).out) for seed in (3, 3, 4))
    assert first == again
    assert first["metrics"] != other["metrics"]


def test_metrics_of_scores_and_of_a_named_class(run_main, votes_csv, predictions_csv):
    ran = run_main("evaluate", votes_csv, predictions_csv, "-m", "auc", "-m", "recall", "--json", *QUICK)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["metrics"]["auc"]["mean"] > 0.8
    other = run_main("evaluate", votes_csv, predictions_csv, "-m", "recall", "--json", "--positive", "no", *QUICK)
    assert json.loads(ran.out)["metrics"]["recall"] != json.loads(other.out)["metrics"]["recall"]


def test_several_systems_are_each_evaluated(run_main, votes_csv, systems_csv):
    ran = run_main("evaluate", votes_csv, systems_csv, "--json", "-m", "accuracy", *QUICK)
    found = {one["system"]: one["metrics"]["accuracy"]["mean"] for one in json.loads(ran.out)["systems"]}
    assert found["good"] > found["bad"]
    ran = run_main("evaluate", votes_csv, systems_csv, "--only-system", "bad", "--json", "-m", "accuracy", *QUICK)
    assert json.loads(ran.out)["metrics"]["accuracy"]["mean"] == found["bad"]
    ran = run_main("evaluate", votes_csv, systems_csv, "--only-system", "god", *QUICK)
    assert_one_sentence(ran)
    assert "did you mean 'good'" in ran.err


def test_failing_on_dependence(run_main, dependent_csv, tmp_path):
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, i % 2) for i in range(300)])
    ran = run_main("evaluate", dependent_csv, systems, "-m", "accuracy", "--fail-if-dependent", "--json", *QUICK)
    assert json.loads(ran.out)["independence"]["dependent"]
    assert ran.code == 1
    assert "finding: Labelers err together" in ran.err
    assert run_main("evaluate", dependent_csv, systems, "-m", "accuracy", *QUICK).code == 0


def test_gold_enters(run_main, votes_csv, predictions_csv, truth_csv):
    args = ("evaluate", votes_csv, predictions_csv, "--json", "-m", "accuracy", *QUICK)
    with_gold = json.loads(run_main(*args, "--gold", truth_csv).out)
    assert with_gold["files"]["gold"]["file"] == str(truth_csv)
    assert with_gold["metrics"] != json.loads(run_main(*args).out)["metrics"]


def test_probabilities_by_class(run_main, votes_csv, tmp_path):
    score = crowd()["score"]
    rows = [(f"i{i}", round(1 - s, 4), s) for i, s in enumerate(score)]
    path = write_csv(tmp_path / "p.csv", ("item", "p0", "p1"), rows)
    args = ("--class-probability", "no=p0", "--class-probability", "yes=p1", "-m", "log_loss", *QUICK)
    ran = run_main("evaluate", votes_csv, path, *args)
    assert ran.code == 0, ran.err
    assert "log_loss is between" in ran.out


def test_other_methods_have_no_interval_to_fail_on(run_main, votes_csv, predictions_csv):
    ran = run_main("evaluate", votes_csv, predictions_csv, "--method", "estimated-labels", "-m", "accuracy")
    assert ran.code == 0, ran.err
    assert "no interval" in ran.out
    args = ("--method", "estimated-labels", "--fail-below", "accuracy=0.5")
    assert_one_sentence(run_main("evaluate", votes_csv, predictions_csv, *args))


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (("--metric", "acuracy"), "did you mean 'accuracy'"),
        (("--method", "magic"), "magic"),
        (("--assume", "shared"), "one plain answer since version 0.3, got --assume; leave it out"),
        (("--warmup", "10"), "--warmup is for a --noise model"),
        (("--noise", "none"), "none"),
        (("--level", "2"), "level"),
        (("--target", "moon"), "target"),
        (("--positive", "maybe"), "'maybe'"),
        (("--missing", "perhaps"), "missing"),
        (("--fail-below", "accuracy"), "NAME=VALUE"),
        (("--fail-below", "accuracy=high"), "METRIC=NUMBER"),
        (("--report", "report.docx"), ".html"),
        (("--report", "no/such/folder/report.html"), "does not exist"),
        (("--method", "majority", "--draws", "10"), "--draws"),
        (("--noise", "glad", "--warmup", "10"), "--warmup"),
        (("--item", "image"), "'image'"),
        (("--prediction", "guess"), "'guess'"),
        (("--duplicates", "some"), "duplicates"),
    ],
    ids=lambda value: value[0][2:] + "-" + value[1].replace("/", "_") if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_sentence(run_main, votes_csv, predictions_csv, option, sentence):
    ran = run_main("evaluate", votes_csv, predictions_csv, *option)
    assert_one_sentence(ran)
    assert sentence in ran.err


def test_a_method_that_learns_no_noise_fails_on_dependence_too(run_main, dependent_csv, tmp_path):
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, i % 2) for i in range(300)])
    args = ("evaluate", dependent_csv, systems, "-m", "accuracy", "--method", "majority", "--json")
    ran = run_main(*args, "--fail-if-dependent")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert found["independence"]["dependent"]
    assert len(found["findings"]) == 1
    assert run_main(*args).code == 0


def test_an_undefined_metric_is_called_so(run_main, votes_csv, all_no_csv):
    args = ("evaluate", votes_csv, all_no_csv, *QUICK)
    ran = run_main(*args, "-m", "precision")
    assert "precision is undefined on these items: no item is predicted as yes." in ran.out
    assert "no interval" not in ran.out
    ran = run_main(*args, "-m", "accuracy", "-m", "precision")
    assert "precision is undefined on these items" in ran.out
    ran = run_main(*args, "--fail-below", "precision=0.5")
    assert_one_sentence(ran)
    assert "defined" in ran.err
    assert "--method" not in ran.err


def test_the_share_of_undefined_draws_is_told(run_main, tmp_path):
    # One vote in 36 is positive: in some draws no item is, and then recall is undefined.
    rows = [(i, t, int(i == 0 and t == "a")) for i in range(12) for t in "abc"]
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), rows)
    predictions = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, int(i == 0)) for i in range(12)])
    ran = run_main("evaluate", votes, predictions, "-m", "recall", *QUICK)
    assert ran.code == 0, ran.err
    assert "recall is undefined on " in ran.out
    assert "of the drawn truths" in ran.out


def test_the_majority_value_is_the_same_everywhere(run_main, votes_csv, predictions_csv, tmp_path):
    report = tmp_path / "r.json"
    args = ("evaluate", votes_csv, predictions_csv, "-m", "auc", "-m", "accuracy", "--report", report, *QUICK)
    dirty = json.loads(run_main(*args, "--json").out)["majority_as_truth"]
    metrics = json.loads(report.read_text(encoding="utf-8"))["systems"][0]["metrics"]
    assert dirty == {one["name"]: one["dirty"] for one in metrics}
    out = run_main(*args).out
    for value in dirty.values():
        assert f" {value:.3f} \n" in out


def test_the_positive_class_is_told(run_main, votes_csv, predictions_csv):
    args = ("evaluate", votes_csv, predictions_csv, "-m", "recall", *QUICK)
    assert "positive class yes." in run_main(*args).out
    assert json.loads(run_main(*args, "--positive", "no", "--json").out)["positive"] == "no"


@pytest.mark.parametrize(
    ("bound", "sentence"),
    [
        ("accuracy=90", "0 to 1, got 90"),
        ("mcc=-2", "-1 to 1, got -2"),
        ("acuracy=0.9", "--fail-below"),
        ("accuracy=high", "METRIC=NUMBER"),
        ("accuracy=nan", "METRIC=NUMBER"),
        ("accuracy", "NAME=VALUE"),
    ],
)
def test_a_bound_that_a_metric_cannot_have_is_refused(run_main, votes_csv, predictions_csv, bound, sentence):
    ran = run_main("evaluate", votes_csv, predictions_csv, "--fail-below", bound)
    assert_one_sentence(ran)
    assert sentence in ran.err


def test_columns_of_the_items_are_told_and_their_texts_are_not(run_main, votes_csv, predictions_csv, tmp_path):
    rows = [(f"i{i}", f"topic{i % 3}", f"a secret prompt about {i}") for i in range(60)]
    items = write_csv(tmp_path / "items.csv", ("item", "topic", "prompt"), rows)
    page = tmp_path / "r.md"
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy", "--items", items, "--report", page, *QUICK)
    assert run_main(*args).code == 0
    report = page.read_text(encoding="utf-8")
    assert "Known of the items: topic and prompt." in report
    assert "topic: topic" in report
    assert "secret" not in report
    assert run_main(*args, "--with-text").code == 0
    assert "secret" in page.read_text(encoding="utf-8")


def test_noise_and_target_are_always_told(run_main, votes_csv, predictions_csv, systems_csv):
    for args in (("evaluate", votes_csv, predictions_csv), ("compare", votes_csv, systems_csv)):
        assert "noise as real sets err, target sample" in run_main(*args, *FEW).out
        assert "rests on votes alone, by the noise model dawid-skene." in run_main(*args, *QUICK).out
    assert "noise as real sets err, target sample" in run_main("auc", votes_csv, predictions_csv, *FEW).out


def test_checked_items_narrow_the_answer_as_was_said(run_main, votes_csv, predictions_csv, tmp_path):
    truth = crowd()["truth"]
    rows = [(f"i{i}", ("no", "yes")[truth[i]], "random") for i in range(0, 60, 3)]
    gold = write_csv(tmp_path / "gold.csv", ("item", "label", "drawn"), rows)
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy")
    said, with_gold = run_main(*args).out, run_main(*args, "--gold", gold).out
    before, after = (json.loads(run_main(*args, *more, "--json").out) for more in ((), ("--gold", gold)))
    assert (before["basis"], after["basis"]) == ("votes alone", "votes and 20 checked items")
    assert "This rests on votes alone." in said
    assert "This rests on votes and 20 checked items." in with_gold
    half = {int(n): f"{width / 2:.2f}" for n, width in before["vettings"].items()}
    assert f"20 checked items drawn at random would bring the accuracy to about ±{half[20]}, 50 to ±{half[50]}" in said
    assert "50 checked items drawn at random in all would bring" in with_gold
    width = after["metrics"]["accuracy"]["high"] - after["metrics"]["accuracy"]["low"]
    assert width == pytest.approx(before["vettings"]["20"], rel=0.5)


def test_chosen_items_that_contradict_the_votes_leave_no_interval(run_main, tmp_path):
    rng = np.random.default_rng(2)
    truth, misleading = rng.integers(2, size=300), rng.random(300) < 0.25
    right = rng.random((300, 6)) < np.where(misleading, 0.05, 0.95)[:, None]
    said = np.array(["no", "yes"])[np.where(right, truth[:, None], 1 - truth[:, None])]
    votes = [(f"i{i}", f"l{j}", said[i, j]) for i in range(300) for j in range(5)]
    paths = [tmp_path / name for name in ("votes.csv", "systems.csv", "gold.csv")]
    write_csv(paths[0], ("item", "labeler", "label"), votes)
    systems = [(f"i{i}", system, said[i, k]) for i in range(300) for system, k in (("a", 5), ("b", 0))]
    write_csv(paths[1], ("item", "system", "prediction"), systems)
    chosen = np.flatnonzero(misleading)[:40]
    write_csv(paths[2], ("item", "label"), [(f"i{i}", ("no", "yes")[truth[i]]) for i in chosen])
    ran = run_main("evaluate", *paths[:2], "--gold", paths[2], "--only-system", "a", *FEW)
    assert "no interval" in ran.out
    assert "contradict the votes: the classifier is right on" in ran.err
    compared = run_main("compare", *paths[:2], "--gold", paths[2], *FEW)
    assert "contradict" in compared.out
    assert "%" not in compared.out.split("best with")[1].split("items;")[0].replace("95% interval", "")
