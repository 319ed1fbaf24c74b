"""promptfoo: its example with the real program, the gate after it, and checks that outlast a run."""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runner_page import ROOT, block, commands

import trueup as tu
from trueup.exceptions import InvalidLabels
from trueup.integrations.promptfoo import get_assert, keep_checks

EXAMPLE = ROOT / "examples" / "promptfoo"


def promptfoo() -> str:
    """The program, or a skipped test."""
    own = Path(sys.prefix) / "node_modules" / ".bin" / "promptfoo"
    program = str(own) if own.exists() else shutil.which("promptfoo")
    if program is None or shutil.which("node") is None:
        pytest.skip("needs node and promptfoo, which `make test-integrations` installs where npm is")
    return program


def evaluate(program, folder, *options):
    """What the program wrote; it must not be asked for more than the example asks."""
    quiet = {f"PROMPTFOO_DISABLE_{name}": "1" for name in ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")}
    own = {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), "PROMPTFOO_PYTHON": sys.executable}
    environment = {**os.environ, **quiet, **own, "PYTHONPATH": str(ROOT / "src")}
    command = [program, "eval", "-o", "results.json", "--no-cache", "--no-table", *options]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode in (0, 100), ran.stdout + ran.stderr  # 100: an answer failed
    return folder / "results.json"


def gate(folder, *more):
    """The gate of the page, without its own --ask."""
    arguments = shlex.split(commands("promptfoo")[1])
    assert arguments[-2:] == ["--ask", "ask.csv"]
    command = [sys.executable, "-m", *arguments[:-2], "--json", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1, 5), ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def fill_in(path, results):
    """What a person says who can add."""
    about = {row["question"]: int(row["a"]) + int(row["b"]) for row in rows_of(EXAMPLE / "answers.csv")}
    items = results.items
    right = {
        item: int(output) == about[question]
        for item, output, question in zip(items["item"], items["output"], items["question"], strict=True)
    }
    rows = rows_of(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, "label": "pass" if right[row["item"]] else "fail"} for row in rows)


@pytest.mark.node
def test_from_an_evaluation_to_a_verdict_and_to_checks_that_stay(tmp_path):
    program = promptfoo()
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    path = evaluate(program, folder)
    export = tu.read_export(path)
    assert len(export.items["item"]) == 48
    assert set(export.votes["labeler"]) == {"javascript", "javascript 2", "javascript 3"}
    assert export.gold == {"1/0/old": "fail", "2/0/old": "pass", "2/1/new": "pass"}  # of checked.csv

    files = ["--ask", "ask0.csv", "--n-ask", "24"]
    for k in range(1, 4):
        code, said = gate(folder, *files)
        if code != 5:
            break
        fill_in(folder / f"ask{k - 1}.csv", export)
        given = [part for n in range(k) for part in ("--gold", f"ask{n}.csv")]
        files = [*given, "--ask", f"ask{k}.csv", "--n-ask", "24"]
    assert (code, said["gate"]["verdict"]) == (0, "passed")

    assert keep_checks(path, folder / "checked.csv", sheet=folder / "ask0.csv", columns=["question", "output"]) > 20
    kept = rows_of(folder / "checked.csv")
    assert {"question": "79 + 15", "output": "85", "label": "fail"} in kept
    again = tu.read_export(evaluate(program, folder, "--filter-first-n", "6"))
    said = {(row["question"], row["output"]): row["label"] for row in kept}
    items = zip(again.items["item"], again.items["question"], again.items["output"], strict=True)
    expected = {item: said[question, output] for item, question, output in items if (question, output) in said}
    assert again.gold == expected
    assert len(expected) > 3


@pytest.mark.node
def test_a_mistake_is_a_sentence_that_votes_nothing(tmp_path):
    program = promptfoo()
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    (folder / "checked.csv").write_text("question,label\n44 + 57,good\n", encoding="utf-8")
    path = evaluate(program, folder, "--filter-first-n", "2")
    failed = [row["gradingResult"]["reason"] for row in json.loads(path.read_text())["results"]["results"]]
    assert any("a checked answer is pass or fail, got good" in reason for reason in failed)
    export = tu.read_export(path)
    assert not export.gold
    assert "python" not in set(export.votes["labeler"])


def test_the_page_and_the_example_say_the_same():
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load((EXAMPLE / "promptfooconfig.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(block("promptfoo", "yaml")) == config["defaultTest"]["assert"][-1]
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    pinned = re.search(r"^PROMPTFOO := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert commands("promptfoo")[0].replace("promptfoo", pinned[1], 1) in readme
    assert commands("promptfoo")[1] in readme


# Without the program ------------------------------------------------------------------------------------------------


def context(path, **variables):
    provider = {"label": "new", "options": {"id": "echo"}}
    return {"vars": variables, "config": {"checked": str(path)}, "provider": provider}


@pytest.mark.parametrize(
    ("table", "passed", "checked"),
    [
        ("output,label\nyes,pass\nno,fail\n", True, True),
        ("output,label\nyes,Fail \n", False, True),
        ("output,label\nyes,\n", True, False),
        ("output,label\nno,fail\n", True, False),
        ("output,system,label\nyes,old,fail\n", True, False),
        ("output,system,label\nyes,new,fail\n", False, True),
        ("topic,output,label,comment\nrefunds,yes,fail,too long\n", False, True),
        ("topic,output,label\nbilling,yes,fail\n", True, False),
        ("\ufefflabel,output\nfail,yes\n", False, True),
        ("output,label\nyes,pass\nyes,fail\n", False, False),  # two that contradict each other
        ("output,label\nyes,maybe\n", False, False),
        ("label\npass\n", False, False),  # of no answer
        ("", False, False),
    ],
)
def test_a_row_is_about_an_answer_where_its_columns_are(tmp_path, table, passed, checked):
    (tmp_path / "checked.csv").write_text(table, encoding="utf-8")
    result = get_assert("yes", context(tmp_path / "checked.csv", topic="refunds"))
    (part,) = result["componentResults"]
    assert (result["pass"], result["score"], part["metadata"]["checked"]) == (passed, float(passed), checked)
    assert "\n" not in result["reason"]


@pytest.mark.parametrize(
    "about", [{}, {"config": None}, {"config": {"checked": 5}}, {"config": {"checked": "nowhere"}}]
)
def test_without_a_file_the_test_fails_with_a_sentence(about):
    result = get_assert("yes", about)
    assert not result["pass"]
    assert "checked" in result["reason"]


def test_the_assertion_loads_nothing_that_takes_long():
    code = "import sys, trueup.integrations.promptfoo; print(sorted({'numpy', 'scipy', 'pandas'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_thumbs_and_formulas_are_kept_as_they_are(tmp_path):
    def row(test, output, thumb):
        parts = [{"pass": True, "score": 1, "assertion": {"type": "llm-rubric"}}]
        parts += [{"pass": thumb, "score": 1, "assertion": {"type": "human"}}] if thumb is not None else []
        about = {"testIdx": test, "promptIdx": 0, "provider": {"id": "echo"}, "vars": {"topic": f"t{test}"}}
        return {**about, "response": {"output": output}, "gradingResult": {"pass": True, "componentResults": parts}}

    rows = [row(0, "=1+1", False), row(1, "fine", True), row(2, "open", None)]
    (tmp_path / "results.json").write_text(json.dumps({"results": {"results": rows}}), encoding="utf-8")
    assert keep_checks(tmp_path / "results.json", tmp_path / "checked.csv", columns=["output"]) == 2
    assert rows_of(tmp_path / "checked.csv")[0]["output"] == "'=1+1"
    assert not get_assert("=1+1", context(tmp_path / "checked.csv"))["pass"]
    with pytest.raises(InvalidLabels, match="`columns` must name columns of the answers"):
        keep_checks(tmp_path / "results.json", tmp_path / "checked.csv", columns=["answer"])
