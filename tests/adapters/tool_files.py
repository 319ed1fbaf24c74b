"""Small exports in the layouts of the tools, made here; and what the tests of adapters share."""

import gzip
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def choice(value: Any, *, control: str = "mood", **more: Any) -> dict[str, Any]:
    values = value if isinstance(value, list) else [value]
    return {"from_name": control, "to_name": "text", "type": "choices", "value": {"choices": values}, **more}


def annotation(who: Any, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"completed_by": who, "result": list(results), "was_cancelled": False, "ground_truth": False, **more}


def task(number: int, *annotations: dict[str, Any], predictions: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "data": {"text": f"text {number}"},
        "annotations": list(annotations),
        "predictions": list(predictions),
        **more,
    }


def label_studio_tasks(n_tasks: int = 6) -> list[dict[str, Any]]:
    """Three people on each task, of whom the third skips the first; gold on the second; a model on all."""
    tasks = []
    for k in range(1, n_tasks + 1):
        label = "good" if k % 2 else "bad"
        answers = [annotation(who, choice(label if who != 2 or k % 3 else "bad")) for who in (1, 2, 3)]
        if k == 1:
            answers[2] = annotation(3, was_cancelled=True)
        if k == 2:
            answers.append(annotation(9, choice("good"), ground_truth=True))
        tasks.append(task(k, *answers, predictions=[{"model_version": "m1", "score": 0.9, "result": [choice(label)]}]))
    return tasks


def graded(value: Any, model: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {} if model is None else {"grading": [{"role": "user"}, {"role": "assistant", "model": model}]}
    return {"value": value, "answer": "x", "metadata": metadata, "history": [], **more}


def sample(name: Any, scores: dict[str, Any], *, epoch: int = 1, **more: Any) -> dict[str, Any]:
    about = {"id": name, "epoch": epoch, "input": f"question {name}", "target": "yes", "metadata": {"topic": "law"}}
    return {**about, "scores": scores, **more}


def inspect_log(samples: list[dict[str, Any]], scorers: Any = (), *, status: str = "success") -> dict[str, Any]:
    about = {"task": "demo", "model": "lab/student", "scorers": list(scorers), "config": {}}
    return {"version": 2, "status": status, "eval": about, "plan": {}, "results": {}, "samples": samples}


def panel_log() -> dict[str, Any]:
    """Two answers, a panel of three; one member's grade cannot be parsed."""
    members = [{"model": f"lab/judge-{name}"} for name in "abc"]
    scores = [["C", "I", "C"], ["C", None, "I"]]
    samples = [
        sample(f"q{k}", {"model_graded_qa": {"value": "C", "metadata": {"panel": {"votes": votes, "size": 3}}}})
        for k, votes in enumerate(scores, start=1)
    ]
    return inspect_log(samples, [{"name": "model_graded_qa", "options": {"model": members}}])


def eval_file(path: Path, log: dict[str, Any], *, packing: str = "deflate", is_running: bool = False) -> Path:
    """The same log as a .eval file, packed by zip itself or with Zstandard."""
    header = {key: value for key, value in log.items() if key != "samples"}
    members = {"_journal/start.json": {"version": 2, "eval": log["eval"], "plan": {}}}
    for one in log["samples"]:
        members[f"samples/{one['id']}_epoch_{one['epoch']}.json"] = one
    if is_running:
        for k, one in enumerate(log["samples"], start=1):
            members[f"_journal/summaries/{k}.json"] = [one]
    else:
        members |= {"summaries.json": log["samples"], "header.json": header}
    texts = {name: json.dumps(value).encode() for name, value in members.items()}
    if packing == "zstandard":
        path.write_bytes(zip_with_zstandard(texts))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
    return path


def zip_with_zstandard(members: dict[str, bytes]) -> bytes:
    """A zip file whose members are packed by method 93, which the standard library cannot write before Python 3.14.

    The members are stored as they are packed, and then the archive is told what they are.
    """
    import zstandard

    stream = io.BytesIO()
    packed = {name: zstandard.ZstdCompressor().compress(text) for name, text in members.items()}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in packed.items():
            archive.writestr(name, content)
        for info in archive.infolist():
            info.compress_type = 93
            info.file_size = len(members[info.filename])
            info.CRC = zlib.crc32(members[info.filename])
    return stream.getvalue()


def asserted(passed: Any, kind: str = "llm-rubric", *, failed: bool = False, **about: Any) -> dict[str, Any]:
    metadata = {"graderError": True} if failed else {}
    return {"pass": passed, "score": 1, "assertion": {"type": kind, **about}, "metadata": metadata}


def promptfoo_row(test: int, *parts: dict[str, Any], provider: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "testIdx": test,
        "promptIdx": 0,
        "provider": provider or {"id": "lab:student", "label": ""},
        "testCase": {"vars": {"topic": f"topic {test}"}},
        "vars": {"topic": f"topic {test}"},
        "response": {"output": f"answer {test}"},
        "success": True,
        "gradingResult": {"pass": True, "score": 1, "componentResults": list(parts)},
        **more,
    }


def promptfoo_file(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"evalId": "e", "results": {"version": 3, "prompts": [], "results": rows, "stats": {}}, "config": {}}


def gzipped(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


def votes_of(export, *more):
    """Item, labeler and label of each vote, and further columns."""
    return list(zip(*(export.votes[name] for name in ("item", "labeler", "label", *more)), strict=True))


USERS = [f"00000000-0000-0000-0000-00000000000{k}" for k in (1, 2, 3)]


def nested(number, values, *, suggestion=None, **more):
    responses = [{"value": value, "user_id": user} for value, user in zip(values, USERS, strict=False)]
    return {
        "id": f"r{number}",
        "fields": {"prompt": f"prompt {number}"},
        "metadata": {"model": "m1"},
        "suggestions": {"label": suggestion} if suggestion else {},
        "responses": {"label": responses} if values else {},
        "vectors": {},
        "status": "pending",
        "_server_id": None,
        **more,
    }


def prodigy(number, answer, *, who="ds-ann", **more):
    return {
        "text": f"t{number}",
        "_input_hash": number,
        "_task_hash": 9,
        "answer": answer,
        "_annotator_id": who,
        **more,
    }


def manifest_line(number, label, **more):
    about = {
        "class-name": label,
        "confidence": 0.9,
        "type": "groundtruth/image-classification",
        "human-annotated": "yes",
    }
    return {"source-ref": f"s3://b/{number}.jpg", "birds": number, "birds-metadata": {**about, **more}}


def langfuse(trace, value, *, source="EVAL", kind="NUMERIC", text=None, name="helpful", **more):
    about = {"id": "s", "traceId": trace, "name": name, "source": source, "dataType": kind, "value": value}
    return {**about, "stringValue": text, "authorUserId": "Ann Doe", **more}


def mt_bench(question, g1, g2, a="alpha", b="beta", **more):
    about = {"question_id": question, "model_1": a, "model_2": b, "g1_winner": g1, "g2_winner": g2}
    return {**about, "judge": ["gpt-4", "pair-v2"], "turn": 1, "tstamp": 1.0, **more}
