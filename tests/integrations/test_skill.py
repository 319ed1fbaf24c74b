"""The commands of skills/trueup/SKILL.md run, in their order, on verdicts as it describes them."""

import re
import shlex
from pathlib import Path

import pytest
from runner_page import fill_in, write_verdicts

from trueup.cli import main

PAGE = (Path(__file__).parents[2] / "skills" / "trueup" / "SKILL.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]


def run(command):
    program, *arguments = shlex.split(command)
    assert program == "trueup"
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return left.value.code or 0


def test_the_commands_of_the_skill_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = write_verdicts(tmp_path)
    assert len(COMMANDS) >= 6
    *answers, gate = COMMANDS
    for command in answers:
        assert run(command) == 0, capsys.readouterr().err
        if "--out draw.csv" in command:
            assert fill_in(tmp_path / "draw.csv", truth) == 40
    assert run(gate) == 5
    files = []
    for k in range(4):  # as the row of the exit code 5 says
        path = tmp_path / f"filled{k}.csv"
        (tmp_path / "ask.csv").rename(path)
        assert fill_in(path, truth) == 20
        files += ["--gold", str(path)]
        code = run(f"{gate} {shlex.join(files)}")
        if code != 5:
            break
    assert code == 0
    assert "gate: passed" in capsys.readouterr().err


def test_the_page_is_one_page_that_an_assistant_finds():
    head = PAGE.split("---\n")[1]
    assert re.search(r"^name: trueup$", head, re.MULTILINE)
    description = head.partition("description: ")[2]
    assert 100 < len(" ".join(description.split())) <= 1024  # what assistants read of every skill
    assert len(PAGE.split()) <= 700
    for heading in ("Ask the user", "How to read it", "Never claim"):
        assert heading in PAGE
