"""What a hostile reader of the command line found: contradictions, claims of certainty, and words of another world."""

import json
import shlex

import pytest
from cli_helpers import QUICK, assert_one_sentence, write_csv

from trueup.cli._console import chance, interval, level_words, number, percent
from trueup.cli._options import PredictionOptions, VoteOptions, _methods
from trueup.cli._reading import read_systems, read_votes
from trueup.cli.compare import on_judged_items


@pytest.fixture
def all_no_csv(tmp_path):
    return write_csv(tmp_path / "all_no.csv", ("item", "prediction"), [(f"i{i}", "no") for i in range(60)])


# Failing on dependence ----------------------------------------------------------------------------------------------


def test_a_method_that_learns_no_noise_fails_on_dependence_too(run_main, dependent_csv, tmp_path):
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, i % 2) for i in range(300)])
    args = ("evaluate", dependent_csv, systems, "-m", "accuracy", "--method", "majority", "--json")
    ran = run_main(*args, "--fail-if-dependent")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert found["independence"]["dependent"]
    assert len(found["findings"]) == 1
    assert run_main(*args).code == 0


# The report ---------------------------------------------------------------------------------------------------------


def test_the_report_of_a_comparison_judges_each_system_on_the_items_compared_on(
    run_main, votes_csv, uneven_csv, tmp_path
):
    def counts(*options):
        report = tmp_path / "r.json"
        ran = run_main("compare", votes_csv, uneven_csv, "--report", report, "--json", *options, *QUICK)
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["items_predicted"] == {"good": 30, "bad": 60}
        systems = json.loads(report.read_text(encoding="utf-8"))["systems"]
        return {one["name"]: one["n_items"] for one in systems}

    assert counts() == {"good": 30, "bad": 30}
    assert counts("--items", "own") == {"good": 30, "bad": 60}


def test_the_table_of_a_comparison_states_uneven_counts(run_main, votes_csv, uneven_csv, systems_csv):
    ran = run_main("compare", votes_csv, uneven_csv, *QUICK)
    assert "30 items;" in ran.out
    assert "good 30, bad 60" in ran.out
    assert "each has predicted" not in run_main("compare", votes_csv, systems_csv, *QUICK).out


def test_restricting_systems_keeps_their_outputs(votes_csv, uneven_csv):
    import trueup as tu

    labels = read_votes(str(votes_csv), VoteOptions())
    systems = read_systems(str(uneven_csv), labels, PredictionOptions(), item="item")
    compared = tu.compare(systems, labels, noise="dawid-skene", n_draws=100, n_warmup=50)
    kept = on_judged_items(systems, compared).align(labels, missing="ignore").codes
    before = systems.align(labels, missing="ignore").codes
    assert (kept[:, (before >= 0).all(axis=0)] == before[:, (before >= 0).all(axis=0)]).all()
    assert (kept >= 0).sum(axis=1).tolist() == [30, 30]


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_report_is_there_when_the_reader_of_the_pipe_has_gone(
    run_main, votes_csv, systems_csv, tmp_path, monkeypatch, command
):
    def gone(data):
        raise BrokenPipeError

    monkeypatch.setattr("trueup.cli._console.print_json", gone)
    report = tmp_path / "r.md"
    ran = run_main(command, votes_csv, systems_csv, "-m", "accuracy", "--json", "--report", report, *QUICK)
    assert ran.code == 141, ran.err
    assert "accuracy" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_report_holds_the_command_and_what_was_asked_for(run_main, votes_csv, systems_csv, tmp_path, command):
    report = tmp_path / "a report.json"
    args = [command, votes_csv, systems_csv, "--positive", "no", "--level", "0.9", "--report", report, *QUICK]
    assert run_main(*args).code == 0
    told = json.loads(report.read_text(encoding="utf-8"))["reproduction"]
    settings = told["settings"]
    assert shlex.split(told["command"]) == ["trueup", *map(str, args)]
    said = {name: settings[name] for name in ("positive", "level", "draws", "warmup", "noise")}
    assert said == {"positive": "no", "level": 0.9, "draws": 100, "warmup": 50, "noise": "dawid-skene"}
    assert "threshold" not in settings


# Classes nobody voted for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vote", "other"), [("yes", "no"), (1, 0)], ids=["text", "numbers"])
def test_votes_of_one_class_with_the_others_named(run_main, tmp_path, vote, other):
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), [(i, t, vote) for i in range(9) for t in "abc"])
    ran = run_main("check", votes, "--no-dependence")
    assert_one_sentence(ran)
    assert "--class" in ran.err
    assert "classes=" not in ran.err
    assert "np." not in ran.err
    predictions = write_csv(tmp_path / "p.csv", ("item", "prediction"), [(i, other) for i in range(9)])
    named = ("--class", other, "--class", vote)
    ran = run_main("check", votes, predictions, "--no-dependence", "--json", *named)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["votes"]["classes"] == [other, vote]


def test_digits_that_are_text_in_the_file_stay_text(tmp_path):
    path = tmp_path / "v.jsonl"
    rows = [{"item": i, "labeler": "a", "label": "1"} for i in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_votes(str(path), VoteOptions(class_names=["0", "1"])).classes.tolist() == ["0", "1"]


# Undefined metrics --------------------------------------------------------------------------------------------------


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


# Numbers ------------------------------------------------------------------------------------------------------------


def test_numbers_do_not_round_to_certainty():
    assert interval(0.99912, 0.99987) == "0.9991 to 0.9999"
    assert interval(0.00004, 0.3) == "0.00004 to 0.30000"
    assert interval(0.9, 1.0) == "0.900 to 1.000"
    assert (number(0.99996), number(1.0), number(0.0), number(1e-17)) == ("0.99996", "1.000", "0.000", "0.000")
    assert (percent(0.99999, 1), percent(1e-5, 1), percent(1.0, 1)) == ("over 99.9%", "under 0.1%", "100.0%")
    assert (chance(1.0), chance(0.0)) == ("over 99.9%", "under 0.1%")


@pytest.mark.parametrize("level", [0.999, 0.9999, 0.99999])
def test_levels_do_not_round_to_certainty(level):
    assert level_words(level) == f"{level * 100:.10g}%" != "100%"


def test_no_output_claims_certainty(run_main, votes_csv, systems_csv, predictions_csv):
    ran = run_main("compare", votes_csv, systems_csv, "--level", "0.999", *QUICK)
    assert "99.9% interval" in ran.out
    assert "100" not in ran.out.replace("100 draws", "")
    assert "over 99.9%" in ran.out
    ran = run_main("evaluate", votes_csv, predictions_csv, "--level", "0.999", *QUICK)
    assert "99.9% interval" in ran.out
    assert "100%" not in ran.out
    assert "99.9% interval" in run_main("labelers", votes_csv, "--level", "0.999").out
    assert (
        "99.9% interval"
        in run_main("rates", "true-error", "--apparent", "12/100", "--mislabeling", "0.05", "--level", "0.999").out
    )


# One value for the majority, and the positive class -----------------------------------------------------------------


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


# JSON ---------------------------------------------------------------------------------------------------------------


def test_every_json_has_its_head_and_findings(run_main, votes_csv, predictions_csv, tmp_path):
    session = tmp_path / "s.json"
    rate = ("--apparent", "0.2", "--mislabeling", "0.1")
    commands = [
        ("labelers", votes_csv),
        ("plan", votes_csv, predictions_csv, "--budget", "100", "--vote-price", "1", "--fail-above", "0.00001"),
        ("rates", "true-error", *rate, "-n", "100", "--fail-above", "0.01"),
        ("rates", "bounds", *rate),
        ("rates", "worth", "--error", "0.1", "--mislabeling", "0.1"),
        ("vet", "start", session, votes_csv, predictions_csv, "--seed", "3"),
        ("vet", "ask", session, "-n", "2"),
        ("vet", "status", session, "--fail-unless-finished"),
    ]
    found = {}
    for args in commands:
        ran = run_main(*args, "--json")
        found[args[:2]] = json.loads(ran.out)
        assert {"version", "seed", "files", "findings"} <= set(found[args[:2]]), args
        assert bool(found[args[:2]]["findings"]) == (ran.code == 1), args
        assert bool(found[args[:2]]["findings"]) == any("--fail" in str(a) for a in args), args
    assert found["vet", "status"]["seed"] == 3
    assert len(found["vet", "status"]["files"]["votes"]["sha256"]) == 64
    assert found["labelers", votes_csv]["files"]["votes"]["file"] == str(votes_csv)


def test_a_policy_that_never_pays(run_main):
    ran = run_main("rates", "policy", "--error", "0.1", "--mislabeling", "0.1", "--labelers", "2")
    assert "The same items are better for no true error." in ran.out
    assert "0.0000" not in ran.out.splitlines()[-1]


# Help ---------------------------------------------------------------------------------------------------------------


def test_the_help_names_what_can_be_said(run_trueup):
    told = " ".join(run_trueup("evaluate", "--help", COLUMNS="300", TERMINAL_WIDTH="300").out.split())
    for method in _methods():
        assert method in told
    assert "soft-truth" in told
    assert "2000" in told
    assert "1000" in told
    assert "--class" in told
    usage = run_trueup("compare", "--help", COLUMNS="300").out
    assert "PREDICTIONS..." not in usage


def test_a_wrong_noise_model_is_told_all_there_are(run_main, votes_csv, predictions_csv):
    ran = run_main("evaluate", votes_csv, predictions_csv, "--noise", "none")
    assert_one_sentence(ran)
    assert "'auto'" in ran.err
    assert "'soft-truth'" in ran.err
