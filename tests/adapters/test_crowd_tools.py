"""Ground Truth, Prodigy, doccano, and the tables of crowd platforms."""

import io
import json
import tarfile
import zipfile

import pytest
from tool_files import manifest_line, prodigy, write_lines

import trueup as tu

# Ground Truth -------------------------------------------------------------------------------------------------------


def ground_truth_files():
    """Two objects with three answers each, one of them of a second iteration."""
    files = {
        "job/manifests/output/output.manifest": "".join(
            json.dumps(manifest_line(k, label)) + "\n" for k, label in enumerate(("Duck", "Swan"))
        )
    }
    answers = {(1, 0): ["Duck", "Duck"], (1, 1): ["Swan", "Duck", "Swan"], (2, 0): ["Swan"]}
    for (iteration, line), labels in answers.items():
        said = [
            {
                "answerContent": {"crowd-image-classifier": {"label": label}},
                "submissionTime": f"2026-01-0{iteration}T00:00:0{k}Z",
                "workerId": f"public.us-east-1.W{k}",
                "workerMetadata": {"identityData": {"email": "a@b.org"}},
            }
            for k, label in enumerate(labels)
        ]
        path = f"job/annotations/worker-response/iteration-{iteration}/{line}/2026-01-01_00:00:00.json"
        files[path] = json.dumps({"answers": said})
    return files


def unpacked(folder, job="job", change=lambda name, text: (name, text)):
    for name, text in (change(*one) for one in ground_truth_files().items()):
        path = folder / name.replace("00:00:00", "000000").replace("job/", f"{job}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / job


def test_worker_responses_are_votes_and_the_manifest_predicts(tmp_path):
    packed = tmp_path / "job.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for name, text in ground_truth_files().items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    for source in (unpacked(tmp_path), packed):
        export = tu.read_export(source)
        assert (export.tool, export.questions) == ("ground-truth", ("birds",))
        assert len(export.votes["item"]) == 6
        assert export.votes["item"].count("s3://b/0.jpg") == 3
        assert max(export.votes["run"]) == 2
        assert export.answers.predictions["prediction"] == ["Duck", "Swan"]
        assert "a@b.org" not in repr(export.by_question)


def test_prodigy_accepts_and_rejects_and_ignores(tmp_path):
    rows = [prodigy(k, answer, label="SPAM") for k, answer in ((1, "accept"), (2, "reject"), (3, "ignore"))]
    export = tu.read_export(write_lines(tmp_path / "out.jsonl", rows))
    assert export.questions == ("SPAM",)
    assert export.votes["label"] == ["accept", "reject", None]
    assert set(export.votes["labeler"]) == {"annotator-1"}
    assert set(tu.read_export(tmp_path / "out.jsonl", keep_names=True).votes["labeler"]) == {"ds-ann"}


def test_prodigy_choices(tmp_path):
    options = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    rows = [
        prodigy(1, "accept", options=options, accept=["a"], _timestamp=20),
        prodigy(1, "accept", options=options, accept=["b"], _timestamp=10),
        prodigy(2, "reject", options=options, accept=["a"]),
        prodigy(3, "ignore", options=options, accept=[]),
    ]
    export = tu.read_export(write_lines(tmp_path / "out.jsonl", rows))
    of_first = [label for item, label in zip(export.votes["item"], export.votes["label"], strict=True) if item == 1]
    assert of_first == ["b", "a"]
    assert export.votes["label"].count(None) == 2
    assert "refused choices (1), ignored tasks (1)" in export.notes[0]


def doccano_zip(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, rows in files.items():
            archive.writestr(f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_doccano_has_a_file_for_each_annotator(tmp_path):
    ann = [{"id": 1, "text": "t", "label": ["good"]}, {"id": 2, "text": "u", "label": []}]
    bob = [{"id": 1, "text": "t", "label": ["bad"]}, {"id": 2, "text": "u", "label": ["bad"], "Comments": []}]
    path = doccano_zip(tmp_path / "out.zip", ann=ann, bob=bob)
    export = tu.read_export(path)
    assert export.tool == "doccano"
    assert export.votes["labeler"] == ["annotator-1", "annotator-2", "annotator-2"]
    assert "examples that nobody confirmed (1)" in export.notes[0]
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "folder")
    assert tu.read_export(tmp_path / "folder", keep_names=True).votes["labeler"] == ["ann", "bob", "bob"]
    assert tu.read_export(tmp_path / "folder" / "bob.jsonl").votes["label"] == ["bad", "bad"]


def table(tmp_path, text, name="table.csv", **how):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return tu.read_export(path, **how)


def test_mechanical_turk(tmp_path):
    export = table(
        tmp_path,
        "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.image,Answer.mood,Answer.tags.red,Answer.tags.big\n"
        "h1,a1,W1,Approved,x.jpg,good,true,false\nh1,a2,W2,Rejected,x.jpg,bad,true,true\n"
        "h2,a3,W1,Submitted,y.jpg,{},true,true\nh2,a4,W3,Approved,y.jpg,bad,false,false\n",
    )
    assert export.tool == "mturk"
    assert export.questions == ("mood", "tags: big", "tags: red")
    mood = export.of("mood").votes
    assert list(zip(mood["item"], mood["labeler"], mood["label"], strict=True)) == [
        ("x.jpg", "W1", "good"),
        ("y.jpg", "W3", "bad"),
    ]
    assert export.of("tags: big").votes["label"] == ["no", "yes", "no"]
    said = " ".join(export.notes)
    assert "assignments that the requester rejected (1)" in said
    assert "blank answers (1)" in said


def test_appen_never_keeps_addresses(tmp_path):
    export = table(
        tmp_path,
        "_unit_id,_id,_worker_id,_tainted,_ip,_city,text,mood,mood_gold\n"
        "1,11,7,false,1.2.3.4,Ulm,t,good,\n1,12,8,true,1.2.3.4,Ulm,t,bad,\n2,13,7,false,1.2.3.4,Ulm,u,bad,bad\n",
    )
    assert export.votes["item"] == [1, 2]
    assert export.gold == {2: "bad"}
    assert list(export.items) == ["item", "text"]
    assert "tainted (1)" in " ".join(export.notes)


def test_toloka(tmp_path):
    names = ["INPUT:text", "OUTPUT:mood", "GOLDEN:mood", *(f"ASSIGNMENT:{n}" for n in ("assignment_id", "task_id"))]
    names += ["ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    rows = [
        ["t", "good", "", "a1", "k1", "w1", "APPROVED"],
        ["u", "bad", "bad", "a2", "k2", "w1", "APPROVED"],
        ["t", "bad", "", "a3", "k1", "w2", "REJECTED"],
        ["t", "", "", "a4", "k1", "w3", "SKIPPED"],
        ["t", "", "", "a5", "k1", "w4", "EXPIRED"],
    ]
    export = table(tmp_path, "\n".join("\t".join(row) for row in [names, *rows]) + "\n", "assignments.tsv")
    assert export.votes["label"] == ["good", "bad", None]
    assert export.votes["labeler"] == ["w1", "w1", "w3"]
    assert export.gold == {"k2": "bad"}
    assert "rejected (1)" in " ".join(export.notes)


def test_crowd_kit(tmp_path):
    export = table(tmp_path, "task,worker,label\n1,w1,0\n1,w2,1\n2,w1,1\n")
    assert (export.tool, export.votes["label"], export.votes["item"]) == ("crowd-kit", [0, 1, 1], [1, 1, 2])
    assert table(tmp_path, "task,performer,label\n1,w1,0\n2,w1,1\n").tool == "crowd-kit"


def test_lm_eval_metrics_and_multiple_choice(tmp_path):
    def row(doc, used, value, responses=("text",), **more):
        about = {"doc_id": doc, "doc_hash": f"h{doc}", "doc": {"q": "x"}, "target": "1", "resps": [], "filter": used}
        return {**about, "filtered_resps": list(responses), "metrics": ["exact_match"], "exact_match": value, **more}

    rows = [row(0, "strict", 1.0), row(0, "flexible", 0.0), row(1, "strict", None)]
    export = tu.read_export(write_lines(tmp_path / "samples.jsonl", rows))
    assert export.votes["labeler"] == ["exact_match (strict)", "exact_match (flexible)", "exact_match (strict)"]
    assert export.votes["label"] == [1.0, 0.0, None]
    assert export.answers.classes == (0, 1)
    choices = [row(k, "none", 1.0, [["-1.5", "False"], ["-0.5", "True"]]) for k in (0, 1)]
    export = tu.read_export(write_lines(tmp_path / "samples.jsonl", choices))
    assert export.gold == {"h0": "1", "h1": "1"}
    assert export.answers.predictions["prediction"] == ["1", "1"]


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_deepeval(tmp_path, is_wrapped):
    def metric(success, **more):
        return {"name": "Correctness", "success": success, "score": 0.5, "evaluationModel": "judge", **more}

    cases = [
        {"name": "test_case_0", "input": "x", "actualOutput": "y", "metricsData": [metric(True)], "success": True},
        {"name": "test_case_1", "input": "z", "actualOutput": "y", "metricsData": [metric(False, error="timeout")]},
    ]
    inside = {"testCases": cases, "metricsScores": []}
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps({"testRunData": inside, "testRunLink": None} if is_wrapped else inside), encoding="utf-8"
    )
    export = tu.read_export(path)
    assert (export.tool, export.questions) == ("deepeval", ("Correctness",))
    assert (export.votes["label"], export.votes["labeler"]) == (["pass", None], ["judge", "judge"])


def test_ragas(tmp_path):
    rows = [
        {"metric_input": {"response": f"r{k}"}, "metric_output": output, "is_accepted": accepted}
        for k, (output, accepted) in enumerate([(1, True), (1, False), (0, False), (None, True)])
    ]
    path = tmp_path / "annotated.json"
    path.write_text(json.dumps({"helpful": rows}), encoding="utf-8")
    export = tu.read_export(path)
    assert export.votes["label"] == [1, 1, 0, None]
    assert list(export.gold.values()) == [1, 0, 1]
