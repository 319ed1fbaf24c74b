"""Chains are compiled ahead, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trueup.cli._compiling import compile_first
from trueup.noise import compiling

pytest.importorskip("numba", reason="needs numba: pip install 'trueup[fast]'")

ASK = "from trueup.noise import compiling; print(compiling.are_chains_compiled())"


def test_an_empty_folder_has_no_compiled_chains(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "False"


def test_they_are_compiled_here_and_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    here: list[str] = []

    class Helper(subprocess.Popen[bytes]):
        def __init__(self, line: list[str], **options: int) -> None:
            started.append(line)
            super().__init__([*line[:-1], "no such model"], **options)  # one that fails is not waited for in vain

    monkeypatch.setattr(compiling.subprocess, "Popen", Helper)
    monkeypatch.setattr(compiling, "n_cores", lambda: 2)
    monkeypatch.setattr(compiling, "_compile", here.append)
    compiling.compile_chains()
    assert [*here, *(line[-1] for line in started)] == ["dawid-skene", "shared-difficulty"]
    monkeypatch.setattr(compiling, "n_cores", lambda: 1)
    compiling.compile_chains()
    assert len(started) == 1


@pytest.mark.parametrize("name", ["dawid-skene", "shared-difficulty"])
def test_a_chain_that_was_drawn_is_on_the_disk(name: str) -> None:
    subprocess.run([sys.executable, "-m", "trueup.noise.compiling", name], check=True)
    from trueup.noise.kernels import compiled_difficulty, compiled_gibbs

    module = {"dawid-skene": compiled_gibbs, "shared-difficulty": compiled_difficulty}[name]
    assert list(Path(module.run_chain.stats.cache_path).glob("compiled_*.run_chain-*.nbi"))


@pytest.mark.parametrize("is_done", [True, False])
def test_a_command_says_that_it_compiles(
    is_done: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[None] = []
    monkeypatch.setattr(compiling, "are_chains_compiled", lambda: is_done)
    monkeypatch.setattr(compiling, "compile_chains", lambda: calls.append(None))
    compile_first()
    assert ("compiling" in capsys.readouterr().err) == (len(calls) == 1) == (not is_done)


def test_files_of_the_folder_at_hand_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("open('seen', 'w').close()", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiling, "n_cores", lambda: 2)
    monkeypatch.setattr(compiling, "_compile", lambda name: None)
    compiling.compile_chains()
    assert [path.name for path in tmp_path.iterdir()] == ["numpy.py"]
