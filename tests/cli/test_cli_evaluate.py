"""trueup evaluate, through its entry point."""

import json

import pytest
from cli_helpers import QUICK, assert_one_sentence, write_csv

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
