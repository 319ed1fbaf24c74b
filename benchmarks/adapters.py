"""How fast, how large and how safe is reading the exports of other tools?

Run ``python -m benchmarks.adapters [section ...] [--quick] [--json out.json]``; without names all sections are run.

Sections: speed (a large export of Label Studio and a large log of Inspect, made here, beside `json.load` of the same
file; each in a process of its own, whose growth in memory counts), damaged (2,000 damaged files, made from the exports
in the folder that TRUEUP_ADAPTERS names; each must end in labels or in one sentence, within a bound on memory),
ground_truth (302 pictures with 5 votes each and known truth, of the same folder).
"""

from __future__ import annotations

import itertools
import json
import os
import tarfile
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._mutations import MUTATIONS
from benchmarks._peer_tasks import peak_bytes
from benchmarks._sections import apart, run_sections
from trueup.adapters import read_export
from trueup.exceptions import TrueupError, TrueupWarning

_MEGABYTE = 10**6


# Large files --------------------------------------------------------------------------------------------------------


def label_studio_tasks(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Tasks in the layout of the JSON export, with three annotations and a prediction each, without end."""
    for number in itertools.count(1):
        when = f"2026-03-01T10:{number % 60:02d}:00.000000Z"

        def result(label: str, number: int = number) -> dict[str, Any]:
            about = {"id": f"r{number}", "type": "choices", "origin": "manual", "to_name": "text", "from_name": "mood"}
            return {**about, "value": {"choices": [label]}}

        times = {"created_at": when, "updated_at": when, "project": 7}
        rest = {"ground_truth": False, "prediction": {}, "result_count": 1}
        rest |= dict.fromkeys(("parent_prediction", "parent_annotation"))
        annotations = [
            {
                "id": 3 * number + who,
                "completed_by": who,
                "result": [result(("good", "bad", "odd")[rng.integers(3)])],
                "was_cancelled": bool(rng.random() < 0.02),
                "lead_time": float(rng.random()) * 10,
                "unique_id": f"00000000-0000-4000-8000-{number:012d}",
                "task": number,
                **times,
                **rest,
            }
            for who in range(3)
        ]
        words = " ".join(f"word{k}" for k in rng.integers(1000, size=60))
        prediction = {"id": number, "model_version": "m1", "result": [result("good")], "score": 0.9, "task": number}
        about = {"id": number, "data": {"text": words}, "meta": {}, "drafts": [], "total_annotations": 3, **times}
        yield {**about, "annotations": annotations, "predictions": [prediction]}


def inspect_samples(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Samples of a log, with two graders, messages and events, without end."""
    for number in itertools.count(1):
        text = " ".join(f"word{k}" for k in rng.integers(1000, size=150))
        scores = {
            key: {
                "value": ("C", "I")[rng.integers(2)],
                "answer": text[:40],
                "explanation": text,
                "metadata": {"grading": [{"role": "user", "content": text}, {"role": "assistant", "model": model}]},
                "history": [],
            }
            for key, model in (("model_graded_qa", "judge-a"), ("model_graded_qa1", "judge-b"))
        }
        messages = [{"id": f"m{number}{k}", "role": "user", "content": text} for k in range(3)]
        events = [{"event": "model", "timestamp": "2026-03-01T10:00:00+00:00", "output": {"completion": text}}] * 2
        about = {"id": f"q{number}", "epoch": 1, "input": text, "target": "yes", "metadata": {"topic": "law"}}
        yield {**about, "messages": messages, "output": {"completion": text}, "scores": scores, "events": events}


def write_large(path: Path, tool: str, size: int) -> None:
    """Write a file of about so many bytes."""
    rng = np.random.default_rng(0)
    head, tail = ("[", "]")
    rows = label_studio_tasks(rng)
    if tool == "inspect":
        about = {"version": 2, "status": "success", "eval": {"model": "lab/student", "scorers": []}, "plan": {}}
        head, tail = json.dumps(about)[:-1] + ', "samples": [', '], "reductions": []}'
        rows = inspect_samples(rng)
    with path.open("w", encoding="utf-8") as stream:
        stream.write(head)
        for k, row in enumerate(rows):
            stream.write((", " if k else "") + json.dumps(row))
            if stream.tell() > size:
                break
        stream.write(tail)


def measured(tool: str, path: str) -> dict[str, Any]:
    """Seconds, growth of the memory of this process, and votes read of a file; "json" is a plain `json.load`."""
    before, started = peak_bytes(), time.perf_counter()
    if tool == "json":
        with Path(path).open(encoding="utf-8") as stream:
            read = len(json.load(stream))
    else:
        read = sum(label is not None for label in read_export(path).votes["label"])
    return {"seconds": time.perf_counter() - started, "growth": peak_bytes() - before, "read": read}


def speed(quick: bool) -> str:
    """Time and memory of a large file, beside `json.load`."""
    size = (5 if quick else 100) * _MEGABYTE
    lines = ["tool          votes      time   json.load   times   memory / size"]
    with tempfile.TemporaryDirectory() as folder:
        for tool in ("label-studio", "inspect"):
            path = Path(folder) / f"{tool}.json"
            write_large(path, tool, size)
            runs = [[apart(measured, name, str(path)) for name in ("json", tool)] for _ in range(1 if quick else 5)]
            theirs, ours = (min((pair[k] for pair in runs), key=lambda run: run["seconds"]) for k in (0, 1))
            times, n_bytes = ours["seconds"] / theirs["seconds"], path.stat().st_size
            lines.append(
                f"{tool:12s} {ours['read']:6,.0f} {ours['seconds']:7.2f} s {theirs['seconds']:9.2f} s {times:6.2f}× "
                f"{ours['growth'] / n_bytes:13.2f}× (json.load {theirs['growth'] / n_bytes:.2f}×)"
            )
    return "\n".join(lines)


# Damaged files ------------------------------------------------------------------------------------------------------


def exports_folder() -> Path:
    name = os.environ.get("TRUEUP_ADAPTERS")
    if not name:
        raise FileNotFoundError("the folder of exports must be named, got nothing; name it in TRUEUP_ADAPTERS")
    return Path(name)


def outcome(path: str) -> str:
    """What reading a file ends in: "labels", the sentence of an error, or a failure, which must not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        try:
            export = read_export(path)
            (export.of(export.questions[0]) if export.questions else export).labels()
        except TrueupError as error:
            return f"error: {error}"
        except Exception as failure:  # what the measurement is about
            return f"failure: {type(failure).__name__}: {failure!s:.200}"
    return "labels"


def outcomes_of(paths: list[str]) -> tuple[list[str], int]:
    """What reading each file ends in, and the most memory of this process."""
    return [outcome(path) for path in paths], peak_bytes()


def damaged(quick: bool) -> str:
    """Damaged files: how each kind ends, and the most memory."""
    n_files, per_process = (120 if quick else 2_000), 100
    sources = [path for path in sorted(exports_folder().glob("*/*")) if path.suffix not in (".txt", ".xml")]
    rng = np.random.default_rng(1)
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in MUTATIONS}
    failures: list[str] = []
    peak = 0
    with tempfile.TemporaryDirectory() as folder:
        kinds = [list(MUTATIONS)[k % len(MUTATIONS)] for k in range(n_files)]
        for start in range(0, n_files, per_process):
            paths = []
            for k, kind in enumerate(kinds[start : start + per_process]):
                source = sources[rng.integers(len(sources))]
                path = Path(folder) / f"{k} {source.name}"
                path.write_bytes(MUTATIONS[kind](source.read_bytes(), rng))
                paths.append(str(path))
            said, most = apart(outcomes_of, paths)
            peak = max(peak, most)
            for kind, path, ended in zip(kinds[start:], paths, said, strict=False):
                outcomes[kind][ended.partition(":")[0]] += 1
                if ended.startswith("failure") or "\n" in ended:
                    failures.append(f"{kind}, {Path(path).name}: {ended}")
            for path in paths:
                Path(path).unlink()
    lines = [f"{'damage':16s} {'labels':>7s} {'sentences':>10s} {'failures':>9s}"]
    lines += [f"{k:16s} {c['labels']:7d} {c['error']:10d} {c['failure']:9d}" for k, c in outcomes.items()]
    lines.append(f"most memory of a process: {peak / _MEGABYTE:.0f} MB (libraries and all)")
    lines += failures[:20]
    return "\n".join(lines)


# Known truth --------------------------------------------------------------------------------------------------------


def ground_truth(quick: bool) -> str:
    """How many of 302 pictures the majority and the models have right."""
    path = exports_folder() / "sagemaker_ground_truth" / "ic_data.tar.gz"
    export = read_export(path)
    labels = export.labels()
    with tarfile.open(path) as archive:
        stream = archive.extractfile("ic_data/true_labels.json")
        truth = {row["ImageId"]: row["Label"] for row in json.load(stream)} if stream is not None else {}
    true = np.array([truth[str(item).rpartition("/")[2].split(".")[0]] for item in labels.items])
    rights = {}
    for name in [*tu.noise.list_models(), "auto"]:
        try:
            posterior = tu.noise.fit(labels, name, random_state=0).posterior(labels)
        except TypeError:  # a model without chance
            posterior = tu.noise.fit(labels, name).posterior(labels)
        except TrueupError as error:
            rights[name] = str(error)[:80]
            continue
        rights[name] = int((labels.classes[posterior.argmax(axis=1)] == true).sum())
    lines = [f"{name:20s} {n}" for name, n in rights.items()]
    return f"right of {labels.n_items}\n" + "\n".join(lines)


if __name__ == "__main__":
    run_sections("adapters", __doc__, {"speed": speed, "damaged": damaged, "ground_truth": ground_truth})
