"""trueup evaluate, through its entry point."""

import json
import re

import numpy as np
import pytest
from cli_helpers import FEW, QUICK, assert_one_sentence, crowd, write_csv

import trueup as tu
from trueup._base.wording import interval


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
        (("--assume", "sharedd"), "did you mean 'shared'"),
        (("--assume", "shared", "--method", "majority"), "--assume chooses"),
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


def test_noise_and_target_are_always_told(run_main, votes_csv, predictions_csv, systems_csv):
    told = [
        run_main("evaluate", votes_csv, predictions_csv, "-m", "accuracy", *FEW).out,
        run_main("compare", votes_csv, systems_csv, *FEW).out,
        run_main("auc", votes_csv, predictions_csv, *FEW).out,
    ]
    for out in told:
        assert "noise all kinds of models, assuming real errors, target sample" in out


def test_the_three_answers_stand_beside_the_headline(run_main, votes_csv, predictions_csv):
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy", "-m", "recall", *FEW)
    out = run_main(*args).out
    found = json.loads(run_main(*args, "--json").out)
    assert "All of this rests on votes, as real crowds err." in out
    assert (found["basis"], found["assumption"]) == ("votes", "real")
    assert list(found["assuming"]) == ["independent", "shared", "real"]
    for metric in ("accuracy", "recall"):
        assert found["assuming"]["real"][metric] == found["metrics"][metric]
        row = next(line for line in out.splitlines() if line.split()[:1] == [metric] and line.count(" to ") == 3)
        answers = [found["assuming"][name][metric] for name in ("independent", "shared", "real")]
        assert re.findall(r"[\d.]+ to [\d.]+", row) == [interval(one["low"], one["high"]) for one in answers]
    assert "independent: each labeler errs on their own; shared:" in out
    width = {int(n): value for n, value in found["vettings"].items()}
    assert (
        f"20 vetted items drawn at random would bring the accuracy to a width of about {width[20]:.2f}, 50 to "
        f"{width[50]:.2f}: trueup plan draw."
    ) in out


def test_another_assumption_is_the_headline_where_it_is_asked_for(run_main, votes_csv, predictions_csv):
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy", *FEW)
    found = json.loads(run_main(*args, "--json", "--assume", "independent").out)
    assert found["metrics"]["accuracy"] == found["assuming"]["independent"]["accuracy"]
    assert found["noise"] == "all kinds of models, assuming independent errors"
    out = run_main(*args, "--assume", "independent").out
    assert "This rests on votes, as if each labeler erred on their own." in out


def test_a_model_that_is_named_gives_its_own_answer_alone(run_main, votes_csv, predictions_csv, systems_csv):
    out = run_main("evaluate", votes_csv, predictions_csv, *QUICK).out
    assert "All of this rests on votes, with the noise model dawid-skene." in out
    assert "independent" not in out
    for args in (("evaluate", votes_csv, predictions_csv), ("compare", votes_csv, systems_csv)):
        ran = run_main(*args, "--assume", "shared", *QUICK)
        assert_one_sentence(ran)
        assert "--assume chooses between the answers of all models" in ran.err
        assert "--noise" in ran.err


def test_gold_that_was_drawn_is_what_the_headline_rests_on(run_main, votes_csv, predictions_csv, tmp_path):
    truth = crowd()["truth"]
    rows = [(f"i{i}", ("no", "yes")[truth[i]], "random") for i in range(0, 60, 2)]
    gold = write_csv(tmp_path / "gold.csv", ("item", "label", "drawn"), rows)
    args = ("evaluate", votes_csv, predictions_csv, "-m", "accuracy", "-m", "recall", "--gold", gold, *FEW)
    out = run_main(*args).out
    found = json.loads(run_main(*args, "--json").out)
    assert found["basis_of"] == {"accuracy": "gold", "recall": "votes"}, "few positives were vetted"
    assert "accuracy rests on 30 vetted items drawn at random; recall rests on votes, as real crowds err." in out
    assert "50 vetted items drawn at random in all would bring" in out


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


def test_vetted_items_that_contradict_the_models_leave_no_interval(run_main, tmp_path):
    rng = np.random.default_rng(2)
    truth, misleading = rng.integers(2, size=300), rng.random(300) < 0.25
    right = rng.random((300, 6)) < np.where(misleading, 0.05, 0.95)[:, None]
    said = np.array(["no", "yes"])[np.where(right, truth[:, None], 1 - truth[:, None])]
    votes = [(f"i{i}", f"l{j}", said[i, j]) for i in range(300) for j in range(5)]
    paths = [tmp_path / name for name in ("votes.csv", "systems.csv", "gold.csv")]
    write_csv(paths[0], ("item", "labeler", "label"), votes)
    systems = [(f"i{i}", system, said[i, k]) for i in range(300) for system, k in (("a", 5), ("b", 0))]
    write_csv(paths[1], ("item", "system", "prediction"), systems)
    write_csv(paths[2], ("item", "label"), [(f"i{i}", ("no", "yes")[truth[i]]) for i in range(0, 300, 2)])
    ran = run_main("evaluate", *paths[:2], "--gold", paths[2], "--only-system", "a", *FEW)
    assert "vetted items contradict it: no interval." in ran.out
    assert "from votes alone" not in ran.out
    assert "models expect the classifier to be right on" in ran.err
    compared = run_main("compare", *paths[:2], "--gold", paths[2], *FEW)
    assert "but vetted items contradict that." in compared.out
    assert "from votes alone" not in compared.out
    assert "%" not in compared.out.split("best with")[1].split("items;")[0].replace("95% interval", "")
