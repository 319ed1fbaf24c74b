import json

from tool_files import USERS, nested, write_json

import trueup as tu


def flat(number, values, statuses, **more):
    return {
        "id": f"r{number}",
        "status": "pending",
        "_server_id": None,
        "prompt": f"prompt {number}",
        "label.responses": values,
        "label.responses.users": USERS[: len(values or [])],
        "label.responses.status": statuses,
        "label.suggestion": "good",
        "label.suggestion.score": 0.7,
        "label.suggestion.agent": "judge",
        **more,
    }


def read(tmp_path, records, **how):
    return tu.read_export(write_json(tmp_path / "records.json", records), **how)


def test_nested_records_say_what_they_lost(tmp_path):
    about = {"value": "good", "score": 0.5, "agent": "judge"}
    export = read(tmp_path, [nested(1, ["good", "bad", "good"], suggestion=about), nested(2, ["bad"]), nested(3, [])])
    assert export.tool == "argilla"
    assert export.votes["label"] == ["good", "bad", "good", "bad"]
    assert export.answers.predictions == {
        "item": ["r1"],
        "system": ["judge"],
        "prediction": ["good"],
        "confidence": [0.5],
    }
    assert any("lost the status" in note for note in export.notes)
    assert any("records without answers (1)" in note for note in export.notes)
    assert export.labels().item_column("model").tolist() == ["m1", "m1"]


def test_flat_records_keep_the_status(tmp_path):
    records = [
        flat(1, ["good", "bad", "good"], ["submitted", "discarded", "draft"]),
        flat(2, ["bad", "bad"], ["submitted", "submitted"]),
        flat(3, None, None),
    ]
    export = read(tmp_path, records)
    rows = export.votes
    assert list(zip(rows["item"], rows["label"], strict=True)) == [
        ("r1", "good"),
        ("r1", None),
        ("r2", "bad"),
        ("r2", "bad"),
    ]
    said = " ".join(export.notes)
    assert "discarded answers (1)" in said
    assert "drafts (1)" in said
    assert "lost the status" not in said
    assert export.predictions().systems.tolist() == ["judge"]


def test_records_of_version_1(tmp_path):
    old = {
        "external_id": "r1",
        "fields": {"text": "t"},
        "responses": [
            {"user_id": USERS[0], "status": "submitted", "values": {"label": {"value": "good"}}},
            {"user_id": USERS[1], "status": "discarded", "values": {"label": {"value": "bad"}}},
        ],
        "suggestions": [{"question_name": "label", "value": "bad", "score": 0.2, "agent": "judge"}],
    }
    export = read(tmp_path, [old])
    assert export.votes["label"] == ["good", None]
    assert export.answers.predictions["prediction"] == ["bad"]


def test_tasks_are_written_with_their_text_and_with_or_without_suggestions(tmp_path):
    export = read(tmp_path, [nested(1, ["good", "bad"]), nested(2, ["bad"])])
    labels, path = export.labels(), tmp_path / "out.json"
    tu.adapters.write_tasks(labels, path, file_format="argilla", posterior=[[0.4, 0.6], [0.9, 0.1]], question="label")
    back = tu.read_export(path)
    assert back.answers.predictions["prediction"] == ["good", "bad"]
    assert back.answers.predictions["confidence"] == [0.6, 0.9]
    assert back.answers.predictions["system"] == ["trueup", "trueup"]
    tu.adapters.write_tasks(labels, path, file_format="argilla", items=["r2"], like=export)
    (record,) = json.loads(path.read_text(encoding="utf-8"))
    assert (record["id"], record["fields"]["prompt"], record["suggestions"]) == ("r2", "prompt 2", {})
    record["responses"] = {"label": [{"value": "bad", "user_id": USERS[0]}]}
    assert read(tmp_path, [record]).vetted() == {"r2": "bad"}
