import json

import pytest
import tool_files
from tool_files import annotation, choice, task, votes_of, write_json

import trueup as tu
from trueup.exceptions import InvalidParameter


def read(tmp_path, tasks, **how):
    return tu.read_export(write_json(tmp_path / "export.json", tasks), **how)


def test_skips_abstain_and_ground_truth_is_no_vote(tmp_path):
    export = read(tmp_path, tool_files.label_studio_tasks())
    assert export.tool == "label-studio"
    labels = export.labels()
    assert (labels.n_items, labels.n_votes, labels.labelers.tolist()) == (6, 17, [1, 2, 3])
    assert labels.abstentions.tolist() == [0, 0, 1]
    assert labels.gold == {2: "good"}
    assert labels.item_column("text")[0] == "text 1"
    assert labels.reading_notes == ("Abstentions: skipped answers (1).",)
    assert labels.notes()[0] == labels.reading_notes[0]
    predictions = export.predictions()
    assert predictions.systems.tolist() == ["m1"]
    assert export.answers.predictions["confidence"] == [0.9] * 6
    only_truth = task(7, annotation(9, choice("good"), ground_truth=True))  # of an item that nobody else saw
    labels = read(tmp_path, [*tool_files.label_studio_tasks(), only_truth]).labels()
    assert (labels.gold, labels.votes_per_item[-1]) == ({2: "good", 7: "good"}, 0)


def test_people_keep_their_numbers_and_lose_their_mails(tmp_path):
    who = [{"id": 7, "email": "a@b.org", "first_name": "Ann"}, "bob@b.org", "Cy Doe", "10.0.0.1", 8]
    tasks = [task(1, *(annotation(one, choice("good")) for one in who))]
    export = read(tmp_path, tasks)
    assert export.votes["labeler"] == ["7", "annotator-1", "annotator-2", "annotator-3", "8"]
    assert "3 labelers called annotator-1" in export.notes[-1]
    assert read(tmp_path, tasks, keep_names=True).votes["labeler"] == ["7", "bob@b.org", "Cy Doe", "10.0.0.1", "8"]


def test_answers_that_began_with_a_model_are_counted_and_can_go(tmp_path):
    tasks = [
        task(1, annotation(1, choice("good"), parent_prediction=5), annotation(2, choice("bad"))),
        task(2, annotation(1, choice("bad", origin="prediction-changed")), annotation(2, choice("bad"))),
    ]
    assert "2 of 4 answers (50%) began" in read(tmp_path, tasks).notes[0]
    less = read(tmp_path, tasks, exclude_prelabeled=True)
    assert set(less.votes["labeler"]) == {2}
    assert "they are left out" in less.notes[0]


def test_answers_given_again_are_runs_in_the_order_of_time(tmp_path):
    late = annotation(1, choice("good"), updated_at="2026-02-02T00:00:00Z")
    early = annotation(1, choice("bad"), updated_at="2026-01-01T00:00:00Z")
    export = read(tmp_path, [task(1, late, early, annotation(2, choice("good")))])
    mine = [row for row in zip(*(export.votes[c] for c in ("labeler", "label", "run")), strict=True) if row[0] == 1]
    assert mine == [(1, "bad", 1), (1, "good", 2)]
    with pytest.warns(tu.exceptions.DataWarning, match="repeat a labeler"):
        assert export.labels().has_repeats
    assert export.labels(duplicates="last", classes=["good", "bad"]).answer_counts.tolist() == [[2.0, 0.0]]


def test_several_questions_are_listed_and_one_is_chosen(tmp_path):
    tasks = [task(k, annotation(1, choice("good"), choice("law", control="topic"))) for k in (1, 2)]
    path = write_json(tmp_path / "e.json", tasks)
    export = tu.read_export(path)
    assert export.questions == ("mood", "topic")
    with pytest.raises(InvalidParameter):
        export.labels()
    assert tu.read_export(path, question="topic").votes["label"] == ["law", "law"]
    with pytest.raises(InvalidParameter):
        export.of("topics")


def test_answers_with_several_classes_are_a_question_for_each(tmp_path):
    tasks = [
        task(1, annotation(1, choice(["a", "b"])), annotation(2, choice(["a"]))),
        task(2, annotation(1, choice([])), annotation(2, choice("b"))),
    ]
    export = read(tmp_path, tasks)
    assert export.questions == ("mood: a", "mood: b")
    assert votes_of(export.of("mood: b")) == [(1, 1, "yes"), (1, 2, "no"), (2, 1, "no"), (2, 2, "yes")]


def test_exports_of_the_time_before_1_0(tmp_path):
    old = [
        {
            "id": 1,
            "data": {"text": "t"},
            "completions": [{"result": [choice("good")]}, {"skipped": True, "result": []}],
        },
        {"id": 2, "data": {"text": "u"}, "completions": [{"result": [choice("bad")]}]},
    ]
    export = read(tmp_path, old)
    assert votes_of(export) == [(1, "unknown 1", "good"), (2, "unknown 1", "bad"), (1, "unknown 2", None)]


def rows_of(tasks):
    rows = []
    for one in tasks:
        for k, answer in enumerate(one["annotations"]):
            if answer["result"]:
                value = answer["result"][0]["value"]["choices"][0]
                about = {"annotator": answer["completed_by"], "annotation_id": 10 * one["id"] + k, "lead_time": 1.5}
                rows.append({**one["data"], "id": one["id"], "mood": value, **about})
    return rows


def test_csv_is_the_same_but_for_mails(tmp_path):
    lines = ["annotation_id,annotator,id,lead_time,mood,text"]
    lines += [
        f"{row['annotation_id']},{'ann@b.org' if row['annotator'] == 1 else row['annotator']},{row['id']},1.5,"
        f"{row['mood']},{row['text']}"
        for row in rows_of(tool_files.label_studio_tasks())
    ]
    path = tmp_path / "export.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    labels = tu.read_labels(path)  # a warning would be an error
    assert labels.items.tolist() == [1, 2, 3, 4, 5, 6]
    assert labels.labelers.tolist() == ["2", "3", "9", "annotator-1"]
    assert tu.read_labels(path, file_format="label-studio").n_votes == 18


def test_what_is_written_is_read_back(tmp_path):
    export = read(tmp_path, tool_files.label_studio_tasks())
    labels = export.labels()
    posterior = tu.noise.fit(labels, "majority").posterior(labels)
    path = tmp_path / "tasks.json"
    tu.adapters.write_tasks(labels, path, file_format="label-studio", posterior=posterior, like=export)
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert tasks[0]["data"] == {"text": "text 1", "trueup_item": 1}
    assert tasks[0]["predictions"][0]["result"][0] == choice(labels.classes[posterior[0].argmax()])
    back = tu.read_export(path)
    assert back.predictions().systems.tolist() == ["trueup"]
    assert back.answers.predictions["confidence"] == pytest.approx(posterior.max(axis=1).tolist())
    assert back.answers.predictions["item"] == labels.items.tolist()


def test_vetting_goes_there_and_back(tmp_path):
    """Export, ask, tasks, answers of an expert in the tool, tell."""
    export = read(tmp_path, tool_files.label_studio_tasks(12))
    labels = export.labels()
    test = tu.ActiveTest(export.predictions(), labels, noise="majority", random_state=0)
    batch = list(test.ask(3))
    path = tmp_path / "tasks.json"
    tu.adapters.write_tasks(labels, path, file_format="label-studio", items=batch, like=export)
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert all("predictions" not in one for one in tasks)
    # Label Studio numbers the tasks anew, and its expert answers all but the last, which they skip.
    for k, one in enumerate(tasks):
        one |= {"id": 501 + k, "annotations": [annotation(77, choice("good"))]}
    tasks[-1]["annotations"] = [annotation(77, was_cancelled=True)]
    answers = read(tmp_path, tasks).vetted()
    assert answers == dict.fromkeys(batch[:2], "good")
    test.tell(answers)
    assert test.n_vetted == 2
