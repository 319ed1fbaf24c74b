"""trueup evaluate, compare, auc and check, through their entry points."""

import json

import pytest
from cli_helpers import QUICK, assert_one_sentence, crowd, write_csv

import trueup as tu


def test_json_holds_the_numbers_of_the_library_and_nothing_else_is_printed(run_main, votes_csv, predictions_csv):
    ran = run_main("evaluate", votes_csv, predictions_csv, "--json", "--seed", "1", "--metric", "accuracy", *QUICK)
    assert ran.code == 0, ran.err
    got = json.loads(ran.out)
    labels = tu.read_labels(votes_csv)
    predictions = tu.read_predictions(predictions_csv, labels=labels)
    how = {"metrics": ["accuracy"], "noise": "dawid-skene", "n_draws": 100, "n_warmup": 50, "random_state": 1}
    expected = tu.evaluate(predictions, labels, **how).to_dict()
    assert {key: got[key] for key in ("metrics", "classes", "n_items", "noise", "level")}.items() <= expected.items()
    assert (got["version"], got["seed"], got["findings"]) == (tu.__version__, 1, [])
    assert got["files"]["votes"]["file"] == str(votes_csv)
    assert len(got["files"]["votes"]["sha256"]) == 64


def test_failing_on_dependence(run_main, dependent_csv, tmp_path):
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, i % 2) for i in range(300)])
    ran = run_main("evaluate", dependent_csv, systems, "-m", "accuracy", "--fail-if-dependent", "--json", *QUICK)
    assert json.loads(ran.out)["independence"]["dependent"]
    assert ran.code == 1
    assert "finding: Labelers err together" in ran.err
    assert run_main("evaluate", dependent_csv, systems, "-m", "accuracy", *QUICK).code == 0


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


BY = "--items items.csv --by system --draws 60"
PRINTED = {
    f"evaluate votes.csv predictions.csv -m accuracy {BY} --cluster prompt": "accuracy by system",
    f"compare votes.csv systems.csv {BY}": "good minus bad by system",
    f"labelers votes.csv {BY.removesuffix('--draws 60')} --noise majority": "alpha",
    f"share votes.csv --of yes {BY}": "First is higher",
    "compare votes.csv uneven.csv --draws 60": "good 30",
    "auc votes.csv predictions.csv --draws 60": "target sample",
}


@pytest.mark.parametrize(("call", "words"), PRINTED.items(), ids=PRINTED)
def test_answers_are_printed_for_people(
    run_main, votes_csv, predictions_csv, systems_csv, uneven_csv, all_no_csv, items_csv, monkeypatch, call, words
):
    monkeypatch.chdir(votes_csv.parent)
    ran = run_main(*call.split())
    assert ran.code == 0, ran.err
    assert words in ran.out


@pytest.fixture
def two_files(tmp_path):
    found = []
    for name in ("good", "bad"):
        rows = [(f"i{i}", ("no", "yes")[p]) for i, p in enumerate(crowd()[name])]
        found.append(write_csv(tmp_path / f"{name}.v1.csv", ("item", "prediction"), rows))
    return found


def test_a_file_for_each_system_gives_the_same(run_main, votes_csv, systems_csv, two_files):
    def numbers(*files):
        ran = run_main("compare", votes_csv, *files, "--json", *QUICK)
        assert ran.code == 0, ran.err
        return {one["system"]: one["mean"] for one in json.loads(ran.out)["systems"]}

    assert numbers(*reversed(two_files)) == numbers(systems_csv)


def test_json_holds_the_numbers_of_the_library(run_main, votes_csv, systems_csv):
    got = json.loads(run_main("compare", votes_csv, systems_csv, "--json", "--seed", 2, *QUICK).out)
    labels = tu.read_labels(votes_csv)
    systems = tu.read_predictions(systems_csv, labels=labels, system="system")
    expected = tu.compare(systems, labels, noise="dawid-skene", n_draws=100, n_warmup=50, random_state=2)
    assert got["systems"] == expected.to_dict()["systems"]
    assert got["pairs"][0]["prob_a_better"] == expected.prob_better("good", "bad")
    assert got["groups"] == [list(group) for group in expected.groups]


def test_the_report_of_a_comparison_has_its_numbers_and_no_others(run_main, votes_csv, uneven_csv, tmp_path):
    report = tmp_path / "r.json"
    ran = run_main("compare", votes_csv, uneven_csv, "--report", report, "--json", *QUICK)
    assert ran.code == 0, ran.err
    said, page = json.loads(ran.out), json.loads(report.read_text(encoding="utf-8"))
    assert said["items_predicted"] == page["reproduction"]["settings"]["items_predicted"] == {"good": 30, "bad": 60}
    assert page["systems"] == []
    for of_page, one in zip(page["comparison"]["systems"], said["systems"], strict=True):
        assert one.items() <= of_page.items()
    assert page["dependence"]["ratio"] is not None  # the check was made, and the page says so


def test_all_views_are_those_of_the_library(run_main, votes_csv, predictions_csv):
    ran = run_main("auc", votes_csv, predictions_csv, "--view", "all", "--json", *QUICK)
    assert ran.code == 0, ran.err
    found = {one["view"]: one["mean"] for one in json.loads(ran.out)["results"]}
    assert list(found) == ["bayes", "deterministic", "subjectivist", "probabilistic"]
    labels = tu.read_labels(votes_csv)
    scores = tu.read_predictions(predictions_csv, labels=labels)
    for view in ("deterministic", "probabilistic"):
        assert found[view] == pytest.approx(tu.auc(scores, labels, view=view, n_draws=100, random_state=0).mean)


def test_json_counts_everything(run_main, tmp_path):
    rows = [("a", "u", "x"), ("a", "u", "x"), ("a", "v", "y"), ("b", "u", "NA"), ("b", "v", "?"), ("b", "w", "y")]
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), rows)
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [("a", "x"), ("c", "z"), ("b", "y")])
    args = ("--no-vote", "NA", "--abstain", "?", "--unknown", "ignore", "--unknown-class", "ignore", "--json")
    ran = run_main("check", votes, systems, *args)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    counts = {key: found["votes"][key] for key in ("votes", "items", "labelers", "repeated_votes", "missing")}
    assert counts == {"votes": 4, "items": 2, "labelers": 3, "repeated_votes": 1, "missing": 1}
    assert found["votes"]["abstentions"] == 1
    assert found["systems"][0]["unknown_items"] == 1
    assert found["systems"][0]["classes_nobody_voted_for"] == ["z"]
    assert found["problems"] == []


def test_files_that_do_not_fit_are_told_in_full_and_refused(run_main, votes_csv, tmp_path):
    rows = [(f"i{i}", "perhaps" if i == 3 else "yes") for i in range(50)] + [("stranger", "no")]
    path = write_csv(tmp_path / "p.csv", ("item", "prediction"), rows)
    ran = run_main("check", votes_csv, path, "--json", "--no-dependence")
    assert ran.code == 2
    problems = json.loads(ran.out)["problems"]
    assert len(problems) == 3
    for text in ("'i50'", "'stranger'", "'perhaps'"):
        assert any(text in sentence for sentence in problems)
    assert "--missing ignore" in ran.err
    ran = run_main("check", votes_csv, path, "--missing", "ignore", "--unknown", "ignore", "--no-dependence")
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
