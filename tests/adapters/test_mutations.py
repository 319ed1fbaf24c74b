"""Damaged exports end in a sentence, never in a traceback, and take no more memory than they should."""

import json
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
import tool_files
from tool_files import (
    asserted,
    graded,
    inspect_log,
    langfuse,
    manifest_line,
    mt_bench,
    nested,
    prodigy,
    promptfoo_file,
    promptfoo_row,
    sample,
)

import trueup as tu
from benchmarks._mutations import MUTATIONS
from trueup.exceptions import TrueupError, TrueupWarning


def samples(folder) -> dict[str, bytes]:
    """A small file in each layout, by a name with its suffix."""
    record = nested(1, ["good", "bad"], suggestion={"value": "good", "score": 0.5, "agent": "judge"})
    score = langfuse("t", None, kind="CATEGORICAL", text="good")
    case = {"input": "x", "actualOutput": "y", "metricsData": [{"name": "c", "success": True}]}
    annotated = {"metric_input": {"response": "r"}, "metric_output": 1, "is_accepted": True}
    metric = {"doc_id": 0, "resps": [], "filtered_resps": ["x"], "metrics": ["m"], "m": 1.0, "target": "a"}
    log = inspect_log([sample(f"q{k}", {"qa": graded("C", "judge"), "b": graded("I")}) for k in (1, 2)])
    files = {
        "label-studio.json": tool_files.label_studio_tasks(3),
        "inspect.json": log,
        "panel.json": tool_files.panel_log(),
        "promptfoo.json": promptfoo_file([promptfoo_row(k, asserted(True), asserted(False, "human")) for k in (0, 1)]),
        "argilla.json": [record, {**record, "id": "r2"}],
        "deepeval.json": {"testRunData": {"testCases": [case]}},
        "ragas.json": {"helpful": [annotated]},
    }
    contents = {name: json.dumps(value).encode() for name, value in files.items()}
    lines = {"mt-bench": mt_bench(1, "model_1", "tie"), "manifest": manifest_line(1, "Duck"), "lm-eval": metric}
    lines |= {"prodigy": prodigy(1, "accept", label="X"), "langfuse": score}
    contents |= {f"{name}.jsonl": (json.dumps(row) + "\n").encode() * 2 for name, row in lines.items()}
    contents["inspect.eval"] = tool_files.eval_file(folder / "log.eval", log).read_bytes()
    contents["mturk.csv"] = b"HITId,AssignmentId,WorkerId,Answer.mood\nh1,a1,W1,good\nh2,a2,W1,bad\n"
    contents["appen.csv"] = b"_unit_id,_id,_worker_id,text,mood\n1,11,7,t,good\n1,12,8,t,bad\n"
    return contents


def outcome(path) -> str:
    """What reading a file ends in: labels, or the sentence of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        try:
            export = tu.read_export(path)
            return repr(export.of(export.questions[0]).labels() if export.questions else export.labels())
        except TrueupError as error:
            return f"error: {error}"


@pytest.mark.parametrize("n_files", [6, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("damage", MUTATIONS)
def test_damage_ends_in_a_sentence(damage, n_files, tmp_path):
    """So many files of each kind, damaged by chance."""
    outcomes = []
    for name, content in samples(tmp_path).items():
        rng = np.random.default_rng(zlib.crc32(f"{damage} {name}".encode()))
        path = tmp_path / f"damaged {name}"
        path.write_bytes(content)
        assert tu.read_export(path).questions, name
        for _ in range(n_files if damage != "nested deeply" else 5):
            path.write_bytes(MUTATIONS[damage](content, rng))
            tracemalloc.start()
            outcomes.append(outcome(path))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 50e6, f"{name}: {outcomes[-1]}"
    sentences = [text for text in outcomes if text.startswith("error: ")]
    assert sentences
    assert all("\n" not in text and len(text) < 2000 for text in sentences)
    if damage == "sizes claimed":
        assert any("would unpack to more" in text for text in sentences)
