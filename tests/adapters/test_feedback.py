from tool_files import langfuse, votes_of, write_json, write_lines

import trueup as tu


def read(tmp_path, rows, **how):
    return tu.read_export(write_json(tmp_path / "rows.json", rows), **how)


def test_langfuse_categories_are_texts_and_people_are_gold(tmp_path):
    rows = [
        langfuse("t1", 0, kind="CATEGORICAL", text="good"),
        langfuse("t1", 0, kind="CATEGORICAL", text="bad", source="ANNOTATION"),
        langfuse("t2", 0, kind="CATEGORICAL", text="bad", observationId="o2"),
        langfuse("t3", None, kind="CATEGORICAL", source="API"),
    ]
    export = read(tmp_path, rows)
    assert export.tool == "langfuse"
    assert votes_of(export) == [("t1", "eval", "good"), ("o2", "eval", "bad"), ("t3", "api", None)]
    assert export.gold == {"t1": "bad"}
    assert "Ann" not in repr(export.by_question) + repr(export.items)


def langsmith(run, value, kind="model", *, score=None, correction=None, **source):
    return {
        "id": "f",
        "run_id": run,
        "key": "correct",
        "score": score,
        "value": value,
        "correction": correction,
        "feedback_source": {"type": kind, "user_name": "Ann Doe", **source},
    }


def test_langsmith_corrections_and_people_are_gold(tmp_path):
    rows = [
        langsmith("r1", "yes", metadata={"model": "judge-a"}),
        langsmith("r1", "no", metadata={"model": "judge-b"}, correction={"value": "yes"}),
        langsmith("r2", None, score=None),
        langsmith("r2", "no", "app"),
    ]
    export = tu.read_export(write_lines(tmp_path / "rows.jsonl", rows))
    assert votes_of(export) == [("r1", "judge-a", "yes"), ("r1", "judge-b", "no"), ("r2", "model", None)]
    assert export.gold == {"r1": "yes", "r2": "no"}
    assert "corrections read as gold (1)" in " ".join(export.notes)


def phoenix(span, label, kind="LLM", **more):
    return {"span_id": span, "name": "toxic", "annotator_kind": kind, "result": {"label": label, "score": 1}, **more}


def test_phoenix_rows_and_people_who_differ(tmp_path):
    rows = [
        phoenix("s1", "yes", identifier="judge-a"),
        phoenix("s1", "yes", "CODE"),
        *(phoenix("s1", label, "HUMAN") for label in ("no", "no", "yes")),
        *(phoenix("s2", label, "HUMAN") for label in ("no", "yes")),
        {**phoenix("s2", None), "result": {"label": None, "score": None}},
    ]
    export = read(tmp_path, rows)
    assert votes_of(export) == [("s1", "judge-a", "yes"), ("s1", "code", "yes"), ("s2", "llm", None)]
    assert export.gold == {"s1": "no"}
    said = " ".join(export.notes)
    assert "items whose truths differ, settled by more than half (1)" in said
    assert "items whose truths differ, left without one (1)" in said
