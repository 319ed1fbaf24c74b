import pytest
from tool_files import asserted, promptfoo_file, promptfoo_row, votes_of, write_json

import trueup as tu


def read(tmp_path, rows, **how):
    value = promptfoo_file(rows) if isinstance(rows, list) else rows
    return tu.read_export(write_json(tmp_path / "out.json", value), **how)


def test_each_assertion_votes_and_failed_graders_abstain(tmp_path):
    rows = [
        promptfoo_row(0, asserted(True, provider="lab:judge"), asserted(False, "contains")),
        promptfoo_row(1, asserted(False, provider="lab:judge", failed=True), asserted(True, "contains")),
    ]
    export = read(tmp_path, rows)
    assert votes_of(export) == [
        ("0/0/lab:student", "llm-rubric (lab:judge)", "pass"),
        ("0/0/lab:student", "contains", "fail"),
        ("1/0/lab:student", "llm-rubric (lab:judge)", None),
        ("1/0/lab:student", "contains", "pass"),
    ]
    labels = export.labels()
    assert labels.classes.tolist() == ["fail", "pass"]
    assert labels.item_column("system").tolist() == ["lab:student"] * 2


def test_thumbs_are_gold_of_the_one_question_and_metrics_are_questions(tmp_path):
    polite, true = asserted(True, metric="polite"), asserted(True, metric="true")
    export = read(tmp_path, [promptfoo_row(0, polite, asserted(False, "human"))])
    assert export.questions == ("polite",)
    assert export.gold == {"0/0/lab:student": "fail"}
    assert [label for _, _, label in votes_of(export)] == ["pass"]
    export = read(tmp_path, [promptfoo_row(0, polite, true, asserted(True, "human"))])
    assert export.questions == ("polite", "true", "pass")
    assert export.of("pass").gold == {"0/0/lab:student": "pass"}


def test_sets_are_opened_and_like_assertions_told_apart(tmp_path):
    inside = {"pass": True, "assertion": {"type": "assert-set"}, "componentResults": [asserted(True), asserted(False)]}
    assert [row[1:] for row in votes_of(read(tmp_path, [promptfoo_row(0, inside)]))] == [
        ("llm-rubric", "pass"),
        ("llm-rubric 2", "fail"),
    ]


def test_what_passes_in_all_is_no_vote(tmp_path):
    with pytest.raises(tu.exceptions.InvalidFile, match="no question"):
        read(tmp_path, [promptfoo_row(0)]).labels()
