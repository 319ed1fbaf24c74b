"""trueup metrics, formats and convert, and exports as the files of other commands."""

import json

import pytest
from cli_helpers import QUICK, assert_one_sentence, rows_of, write_csv

import trueup as tu
from trueup.metrics import get_metric, list_metrics
from trueup.report import render_html, render_markdown


@pytest.fixture
def export(tmp_path):
    """Twelve tasks of Label Studio: three people, one of whom skips the first task; gold on one; two models."""

    def answer(label):
        return {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label]}}

    tasks = []
    for k in range(1, 13):
        truth = "good" if k % 2 else "bad"
        other = "bad" if truth == "good" else "good"
        labels = [truth, truth if k % 5 else other, other if k % 4 == 0 else truth]
        people = [
            {"completed_by": f"p{person}@lab.org", "result": [answer(label)], "was_cancelled": k == 1 and person == 2}
            for person, label in enumerate(labels)
        ]
        if k == 3:
            people.append({"completed_by": 9, "result": [answer(truth)], "ground_truth": True})
        models = [
            {"model_version": name, "score": 0.8, "result": [answer(truth if k % every else other)]}
            for name, every in (("strong", 6), ("weak", 3))
        ]
        tasks.append({"id": k, "data": {"text": f"text {k}"}, "annotations": people, "predictions": models})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def test_formats_are_listed(run_main):
    ran = run_main("formats")
    assert ran.code == 0
    for name in tu.adapters.list_formats():
        assert name in ran.out
    records = json.loads(run_main("formats", "--json").out)["formats"]
    assert [one["name"] for one in records] == tu.adapters.list_formats()
    bases = {"from real files", "from files that the tool's own code wrote", "from the documented layout"}
    assert {one["basis"] for one in records} <= bases


def test_every_command_takes_an_export(run_main, export, tmp_path):
    report = tmp_path / "r.json"
    ran = run_main("evaluate", export, export, "--only-system", "strong", "--report", report, *QUICK, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["system"] == "strong"
    assert "Abstentions: skipped answers (1)." in ran.err
    assert "3 labelers called annotator-1" in ran.err
    assert "--keep-names keeps the names" in ran.err
    data = json.loads(report.read_text(encoding="utf-8"))
    for page in (render_html(data), render_markdown(data)):
        assert "When the votes were read: Abstentions: skipped answers" in page
    about = data["about"]
    assert about["n_gold"] == 1
    assert about["notes"][0] == "Abstentions: skipped answers (1)."
    assert "--keep-names" in about["notes"][1]
    checked = json.loads(run_main("check", export, export, "--no-dependence", "--json", "--keep-names").out)
    assert checked["votes"]["votes"] == 35
    assert [one["system"] for one in checked["systems"]] == ["strong", "weak"]
    assert checked["notes"][0] == "Abstentions: skipped answers (1)."


def test_from_an_export_to_tables_and_back(run_main, export, tmp_path):
    out = {name: tmp_path / f"{name}.csv" for name in ("votes", "gold", "predictions", "items")}
    beside = [word for name in ("gold", "predictions", "items") for word in (f"--{name}-out", out[name])]
    ran = run_main("convert", export, out["votes"], *beside, "--with-text")
    assert ran.code == 0, ran.err
    assert "Wrote 35 votes" in ran.out
    assert "1 abstentions are not in it" in ran.out
    votes = rows_of(out["votes"])
    assert votes[0] == {"item": "1", "labeler": "annotator-1", "label": "good", "run": "1"}
    assert rows_of(out["gold"]) == [{"item": "3", "label": "good"}]
    predicted = {"item": "1", "system": "strong", "prediction": "good", "confidence": "0.8"}
    assert rows_of(out["predictions"])[0] == predicted
    assert rows_of(out["items"])[0] == {"item": "1", "text": "text 1"}
    labels = tu.read_labels(out["votes"]).with_gold(tu.read_gold(out["gold"]))
    assert (labels.n_votes, labels.gold) == (35, tu.read_labels(export).gold)
    assert_one_sentence(run_main("convert", export, out["votes"]))
    tasks = tmp_path / "tasks.json"
    ran = run_main("convert", out["votes"], tasks, "--to", "label-studio", "--items", out["items"], "--with-text")
    assert ran.code == 0, ran.err
    first = json.loads(tasks.read_text(encoding="utf-8"))[0]
    assert first["data"] == {"text": "text 1", "trueup_item": 1}
    assert first["predictions"][0]["model_version"] == "trueup-dawid-skene"
    assert 0.5 <= first["predictions"][0]["score"] <= 1


def test_mistakes_are_one_sentence(run_main, export, tmp_path, votes_csv):
    (tmp_path / "folder").mkdir()
    for call in (
        ("check", export, "--question", "moods"),
        ("check", votes_csv, "--question", "mood"),
        ("check", export, "--item", "id"),
        ("check", export, "--format", "lable-studio"),
        ("check", tmp_path / "folder"),
        ("convert", votes_csv, tmp_path / "x.csv", "--predictions-out", tmp_path / "p.csv"),
        ("convert", export, tmp_path / "x.json", "--to", "promptfoo"),
    ):
        assert_one_sentence(run_main(*call))


def test_vetting_in_a_tool_and_back(run_main, export, tmp_path):
    session, tasks, answers = tmp_path / "s.json", tmp_path / "tasks.json", tmp_path / "answers.json"
    begin = ("vet", "ask", session, export, export, "-n", 3, "--noise", "majority")
    assert_one_sentence(run_main(*begin, "--to", "label-studio"))
    assert_one_sentence(run_main(*begin, "--to", "promptfoo", "--out", tasks))
    ran = run_main(*begin, "--to", "label-studio", "--out", tasks, "--with-text")
    assert ran.code == 0, ran.err
    assert "label-studio and export" in ran.err
    asked = json.loads(tasks.read_text(encoding="utf-8"))
    assert all(one["data"]["text"].startswith("text") and "predictions" not in one for one in asked)
    result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    done = [
        {**one, "id": 900 + k, "annotations": [{"completed_by": 1, "result": [result]}]} for k, one in enumerate(asked)
    ]
    answers.write_text(json.dumps(done), encoding="utf-8")
    ran = run_main("vet", "tell", session, "--from", answers)
    assert ran.code == 0, ran.err
    assert "Answers taken: 3, of which new: 3." in ran.out
    unanswered = run_main("vet", "tell", session, "--from", tasks)
    assert unanswered.code == 2
    assert "is not known, got records with the keys 'data'" in unanswered.err


@pytest.mark.parametrize("name", ["yes", "1"])
def test_a_file_with_one_class(run_main, tmp_path, name):
    votes = write_csv(tmp_path / "votes.csv", ("item", "labeler", "label"), [(f"i{k}", "a", name) for k in range(3)])
    ran = run_main("convert", votes, tmp_path / "out.csv")
    assert ran.code == 0, ran.err
    assert [row["label"] for row in rows_of(tmp_path / "out.csv")] == [name] * 3
    assert run_main("convert", votes, tmp_path / "tasks.json", "--to", "label-studio").code == 2


def test_every_metric_is_listed_with_what_it_needs(run_main):
    records = {one["name"]: one for one in json.loads(run_main("metrics", "--json").out)["metrics"]}
    assert sorted(records) == list_metrics()
    assert records["accuracy"]["needs"] == "classes"
    assert records["auc"]["needs"] == "scores"
    assert records["log_loss"]["needs"] == "probabilities"
    assert records["log_loss"]["better"] == "lower"
    assert records["log_loss"]["bounds"] == [0.0, None]
    assert records["f1"]["description"] == get_metric("f1", ["no", "yes"]).description
    out = run_main("metrics").out
    assert all(name in out for name in list_metrics())
