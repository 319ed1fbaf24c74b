import pytest
from tool_files import eval_file, graded, inspect_log, panel_log, sample, votes_of, write_json

import trueup as tu
from trueup.exceptions import InvalidLabels


def read(tmp_path, log, **how):
    return tu.read_export(write_json(tmp_path / "log.json", log), **how)


def test_every_member_of_a_panel_votes(tmp_path):
    export = read(tmp_path, panel_log())
    assert votes_of(export, "run") == [
        ("q1", "lab/judge-a", "C", 1),
        ("q1", "lab/judge-b", "I", 1),
        ("q1", "lab/judge-c", "C", 1),
        ("q2", "lab/judge-a", "C", 1),
        ("q2", "lab/judge-b", None, 1),
        ("q2", "lab/judge-c", "I", 1),
    ]
    assert export.notes == ("Abstentions: grades that could not be parsed (1).",)
    labels = export.labels()
    assert labels.item_column("system").tolist() == ["lab/student"] * 2
    assert labels.item_column("topic").tolist() == ["law"] * 2


@pytest.mark.parametrize("packing", ["deflate", "zstandard"])
@pytest.mark.parametrize("is_running", [False, True])
def test_a_zip_is_the_same_log(tmp_path, packing, is_running):
    pytest.importorskip("zstandard")
    log = panel_log()
    export = tu.read_export(eval_file(tmp_path / "log.eval", log, packing=packing, is_running=is_running))
    assert votes_of(export, "run") == votes_of(read(tmp_path, log), "run")
    assert any("status is 'started'" in note for note in export.notes) == is_running


def test_one_model_with_two_prompts_is_two_labelers(tmp_path):
    scores = {"qa": graded("C", "judge"), "fact": graded("I", "judge")}
    assert read(tmp_path, inspect_log([sample(1, scores)])).votes["labeler"] == ["judge (qa)", "judge (fact)"]


def test_an_epoch_is_a_new_answer_and_a_run(tmp_path):
    samples = [sample("q1", {"qa": graded(value)}, epoch=epoch) for epoch, value in ((1, "C"), (2, "I"))]
    export = read(tmp_path, inspect_log(samples))
    assert votes_of(export, "run") == [("q1#1", "qa", "C", 1), ("q1#2", "qa", "I", 2)]
    labels = export.labels()
    assert labels.item_column("sample").tolist() == ["q1", "q1"]
    assert labels.item_column("epoch").tolist() == [1, 2]
    assert not labels.has_repeats


def test_an_edit_is_gold_and_the_grader_keeps_their_word(tmp_path):
    edited = graded("I", "judge")
    edited["history"] = [{"value": "C"}, {"value": "I", "provenance": {"author": "Ann Doe", "timestamp": "t"}}]
    export = read(tmp_path, inspect_log([sample("q1", {"qa": edited}), sample("q2", {"qa": graded("C")})]))
    assert [row[2] for row in votes_of(export, "run")] == ["C", "C"]
    assert export.gold == {"q1": "I"}
    assert "edited scores read as gold (1)" in export.notes[0]
    assert "Ann" not in repr(export.by_question) + repr(export.notes) + repr(export.items)


def test_multiple_choice_is_gold_and_a_prediction_and_no_vote(tmp_path):
    samples = [sample(k, {"choice": {"value": "C", "answer": "B"}}, target="A") for k in (1, 2)]
    export = read(tmp_path, inspect_log(samples))
    assert export.questions == ("answer",)
    assert export.gold == {1: "A", 2: "A"}
    assert export.predictions().systems.tolist() == ["lab/student"]
    with pytest.raises(InvalidLabels):
        export.labels()


def test_what_was_not_scored_is_missing_and_what_is_invalid_is_dropped(tmp_path):
    samples = [
        sample(1, {"qa": graded("C")}),
        sample(2, {}),
        sample(3, {}, error={"message": "x"}),
        sample(4, {"qa": graded("C")}, invalidation={"author": "x"}),
    ]
    export = read(tmp_path, inspect_log(samples, status="error"))
    assert [row[0] for row in votes_of(export, "run")] == [1]
    said = " ".join(export.notes)
    for words in ("without scores (1)", "ended in errors (1)", "declared invalid (1)", "status is 'error'"):
        assert words in said


def test_single_scores_of_old_logs(tmp_path):
    old = {"id": 1, "epoch": 1, "input": "x", "target": "y", "score": {"value": "C"}}
    assert read(tmp_path, inspect_log([old])).votes["label"] == ["C"]


def test_scores_are_written_by_sample_and_epoch(tmp_path):
    import json

    samples = [sample("q1", {"qa": graded(value)}, epoch=epoch) for epoch, value in ((1, "C"), (2, "I"))]
    labels = read(tmp_path, inspect_log(samples)).labels()
    path = tmp_path / "scores.jsonl"
    tu.adapters.write_tasks(labels, path, file_format="inspect", posterior=[[0.9, 0.1], [0.2, 0.8]], agent="us")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == {"id": "q1", "value": "C", "epoch": 1, "metadata": {"by": "us", "confidence": 0.9}}
    with pytest.raises(tu.exceptions.InvalidParameter, match="need a value each"):
        tu.adapters.write_tasks(labels, path, file_format="inspect")
    assert rows[1] == {"id": "q1", "value": "I", "epoch": 2, "metadata": {"by": "us", "confidence": 0.8}}
