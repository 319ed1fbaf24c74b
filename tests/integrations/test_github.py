"""The steps of action.yml, run in a shell with the variables that a runner sets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from runner_page import ROOT, block, write_checked, write_verdicts

import trueup as tu
from trueup.cli import app

yaml = pytest.importorskip("yaml")
pytestmark = [
    pytest.mark.workshop,  # a process for each step
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{ (inputs|steps\.gate\.outputs)\.([\w-]+) \}\}")
HOSTILE = "x'; touch stolen; $(touch stolen) `touch stolen` ::add-mask::y"
INPUTS_OF_THE_ACTION = {"options", "undecided", "artifact", "python-version", "command", "votes", "predictions"}


class Runner:
    """What a runner does with the steps of a composite action: expressions, variables, files for outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace, self.temp = folder / "workspace", folder / "temp"
        self.summary, self.outputs_file = folder / "summary", folder / "outputs"
        for place in (self.workspace, self.temp):
            place.mkdir(exist_ok=True)
        self.log = ""

    def run(self, *names: str, **inputs: str) -> int:
        """Run the steps with these names; the exit code is that of the first that fails."""
        for file in (self.summary, self.outputs_file):
            file.write_text("", encoding="utf-8")
        self.log, code = "", 0
        given = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
        self.inputs = given | {name.replace("_", "-"): value for name, value in inputs.items()}
        for step in ACTION["runs"]["steps"]:
            if step.get("name") in names and "run" in step and self._is_due(step, code):
                ran = self._run_step(step)
                self.log += ran.stdout + ran.stderr
                code = code or ran.returncode
        return code

    @property
    def outputs(self) -> dict[str, str]:
        lines = self.outputs_file.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _is_due(self, step, code: int) -> bool:
        if "if" not in step:
            return not code
        assert step["if"] == "always() && steps.gate.outputs.verdict != ''"
        return bool(self.outputs.get("verdict"))

    def _value(self, text: str) -> str:
        known = {"inputs": self.inputs, "steps.gate.outputs": self.outputs}
        return EXPRESSION.sub(lambda match: known[match[1]].get(match[2], ""), str(text))

    def _run_step(self, step):
        script = self.folder / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.outputs_file),
            "RUNNER_TEMP": str(self.temp),
            **{name: self._value(text) for name, text in step.get("env", {}).items()},
        }
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(
            shell, cwd=self.workspace, env=environment, capture_output=True, text=True, timeout=300, check=False
        )


@pytest.fixture
def runner(tmp_path):
    runner = Runner(tmp_path)
    sim = tu.simulate.dawid_skene(n_items=80, n_labelers=5, random_state=0)
    tu.write_labels(sim.labels, runner.workspace / "votes.csv")
    return runner


STEPS = ("Gate", "Report", "Verdict")


@pytest.mark.parametrize(
    ("bound", "undecided", "code", "verdict", "command"),
    [
        ("1=0.01", "fail", 0, "passed", None),
        ("1=0.99", "warn", 1, "failed", "::error title=trueup::The gate failed"),
        ("1=0.5", "fail", 5, "undecided", "::error title=trueup::The gate is undecided"),
        ("1=0.5", "warn", 0, "undecided", "::warning title=trueup::The gate is undecided"),
    ],
)
def test_the_exit_code_is_that_of_the_verdict(runner, bound, undecided, code, verdict, command):
    ask = str(verdict == "undecided").lower()
    ended = runner.run("Gate", "Verdict", votes="votes.csv", of="1", fail_below=bound, ask=ask, undecided=undecided)
    assert ended == code, runner.log
    assert runner.outputs["verdict"] == verdict
    said = [line for line in runner.log.splitlines() if line.startswith(("::error", "::warning"))]
    assert len(said) == (command is not None)
    assert command is None or said[0].startswith(command)
    assert runner.summary.read_text(encoding="utf-8").startswith(f"## trueup share: {verdict}")
    kept = {path.name for path in Path(runner.outputs["folder"]).iterdir()}
    assert kept == {"summary.md", "report.html"} | ({"ask.csv"} if verdict == "undecided" else set())


def test_the_workflow_of_the_page_runs(tmp_path):
    runner = Runner(tmp_path)
    write_checked(runner.workspace, write_verdicts(runner.workspace))
    (job,) = yaml.safe_load(block("GitHub", "yaml"))["jobs"].values()
    inputs = {name.replace("-", "_"): str(value) for name, value in job["steps"][-1]["with"].items()}
    assert runner.run(*STEPS, **inputs) == 0, runner.log
    assert runner.outputs["verdict"] == "passed"
    assert "votes and 60 checked items" in runner.summary.read_text(encoding="utf-8")


def test_options_with_several_values_have_one_a_line(runner):
    (runner.workspace / "gold.csv").write_text("item,label\n0,1\n", encoding="utf-8")
    code = runner.run(
        *("Gate", "Verdict"),
        command="mean-score",
        votes="votes.csv",
        gold="gold.csv\n",
        gold_drawn="random",
        fail_below="mean=0",
        fail_above="mean=1",
        options="--class=0\n--class=1",
    )
    assert code == 0, runner.log
    assert "votes and 1 checked item" in runner.log


def test_no_input_is_run_as_a_command(runner):
    assert runner.run(*STEPS[::2], votes=HOSTILE, of=HOSTILE, fail_below=f"{HOSTILE}=1", options=HOSTILE) == 2
    assert runner.outputs["verdict"] == "error"
    assert sorted(path.name for path in runner.workspace.iterdir()) == ["votes.csv"]
    stopped = re.search(r"^::stop-commands::(\w{32})$", runner.log, re.MULTILINE)
    assert stopped, "what the command prints must not be obeyed"
    assert f"\n::{stopped[1]}::\n" in runner.log


@pytest.mark.parametrize("inputs", [{"undecided": "pass"}, {"command": "serve"}, {"command": "-c"}])
def test_what_cannot_be_meant_stops_before_anything_runs(runner, inputs):
    assert runner.run("Gate", "Verdict", votes="votes.csv", **inputs) == 2
    assert "::error title=trueup::" in runner.log
    assert "verdict" not in runner.outputs


def test_a_file_of_the_workspace_is_not_imported(runner):
    (runner.workspace / "trueup.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    assert runner.run("Gate", "Verdict", votes="votes.csv", of="1", fail_below="1=0.01") == 0, runner.log


def test_no_script_has_an_expression_and_every_option_exists():
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert not [script for script in scripts if "${{" in script]
    gate = next(step for step in ACTION["runs"]["steps"] if step.get("name") == "Gate")
    assert set(gate["env"]) == {
        name.upper().replace("-", "_") for name in ACTION["inputs"] if name not in ("artifact", "python-version")
    }
    group = typer.main.get_command(app)
    commands = [group.get_command(typer.Context(group), name) for name in ("share", "compare")]
    known = {option for command in commands for part in command.params for option in part.opts}
    assert {f"--{name}" for name in ACTION["inputs"] if name not in INPUTS_OF_THE_ACTION} <= known


def test_the_first_step_installs_the_checkout(runner, monkeypatch):
    for name, value in {"NO_DEPS": "1", "NO_INDEX": "1", "NO_BUILD_ISOLATION": "0"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_TARGET", str(runner.folder / "installed"))
    assert runner.run("Install") == 0, runner.log
    assert (runner.folder / "installed" / "trueup" / "cli" / "__init__.py").is_file()
