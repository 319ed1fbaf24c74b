"""The blocks of the page "Where evaluations run" do what it says; those of GitHub and promptfoo with their tests."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from runner_page import PAGE, ROOT, SECTIONS, block, commands, write_checked, write_verdicts

from trueup.cli import main

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page."""
    monkeypatch.chdir(tmp_path)
    write_checked(tmp_path, write_verdicts(tmp_path))
    return tmp_path


def test_there_is_a_section_for_each_program_with_a_block():
    assert list(SECTIONS) == ["pytest", "Inspect", "MLflow", "promptfoo", "GitHub", "Assistants"]
    assert all("```" in text for text in SECTIONS.values())


def test_the_files_are_made_as_the_page_says(folder):
    (folder / "checked.csv").unlink()
    (command,) = [line for line in PAGE.replace("\n", " ").split("`") if line.startswith("trueup plan draw")]
    with pytest.raises(SystemExit) as left:
        main(shlex.split(command)[1:])
    assert left.value.code in (None, 0)
    assert (folder / "checked.csv").read_text(encoding="utf-8").startswith("item,")


def test_pytest(folder):
    (folder / "test_release.py").write_text(block("pytest", "py"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "trueup.integrations.pytest_plugin", "--junitxml=junit.xml"]
    ran = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    properties = {one.get("name"): one.get("value") for one in ElementTree.parse("junit.xml").iter("property")}
    assert properties["trueup.1.verdict"] == "passed"
    assert properties["trueup.1.basis"] == "votes and 60 checked items"


@pytest.mark.integrations("inspect_ai")
def test_inspect(folder):
    """The task of the page is run with mock models: the one that answers, and the one that grades, wrongly at times."""
    (folder / "task.py").write_text(block("Inspect", "py"), encoding="utf-8")
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        for k in range(24):
            checked = {"metadata": {"gold": "CI"[k % 3 == 0]}} if k < 12 else {}
            file.write(json.dumps({"id": k, "input": f"question {k}", "target": "yes", **checked}) + "\n")
    code = """
from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model
import task

def mock(name, texts):
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model(f"mockllm/{name}", custom_outputs=outputs)

grades = mock("grader", ["GRADE: " + "CI"[k % 6 == 0] for k in range(24)])
log = run(task.helpdesk(), model=mock("new", ["yes"] * 24), model_roles={"grader": grades}, log_dir="logs",
          display="none", max_samples=1)[0]
assert log.status == "success", log.error
values = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
assert values["checked"] == 12, values
assert values["low"] < values["mean"] < values["accuracy"], values
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (command,) = commands("Inspect")
    shell = f"{shlex.quote(sys.executable)} -m {command} --json"
    ran = subprocess.run(["bash", "-c", shell], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["basis"] == "votes and 12 checked items"


@pytest.mark.integrations("mlflow")
def test_mlflow(folder):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("page")
    try:
        names = {}
        exec(compile(block("MLflow", "py"), "page", "exec"), names)
        run = mlflow.get_run(mlflow.active_run().info.run_id)
    finally:
        mlflow.end_run()
    assert run.data.tags["trueup.basis"] == "votes and 60 checked items"
    assert 0 < run.data.metrics["trueup.share of pass.new.low"] < 1
    assert callable(names["labels_from_traces"])


@pytest.mark.integrations("mcp")
def test_assistants(folder):
    from mcp import ClientSession, StdioServerParameters, stdio_client

    (about,) = json.loads(block("Assistants", "json"))["mcpServers"].values()
    assert about["command"] == "trueup"
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "trueup", *about["args"]], env=ENVIRONMENT, cwd=folder
    )
    question = {"votes": "verdicts.csv", "of": "pass", "by": "system", "gold": "checked.csv", "gold_drawn": "random"}

    async def ask():
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            return names, (await session.call_tool("share", question)).content[0].text

    names, text = asyncio.run(ask())
    assert all(name in SECTIONS["Assistants"] for name in names)
    assert json.loads(text)["sentence"].endswith("rests on votes and 60 checked items.")
