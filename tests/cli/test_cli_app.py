"""The program itself: help, version, completion, exit codes, what becomes of errors."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, assert_one_sentence

from trueup import __version__
from trueup.cli import _console
from trueup.cli._app import COMMANDS
from trueup.cli._options import lists


def test_help_lists_every_command_and_loads_nothing_heavy(run_trueup):
    ran = run_trueup("--help", COLUMNS="120")
    assert ran.code == 0
    assert ran.err == ""
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", ran.out)
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, trueup.cli; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
    )
    assert loaded.stdout.strip() == "[]"


def test_completion_offers_commands_and_values(run_trueup, run_main, monkeypatch):
    asked = {"_TRUEUP_COMPLETE": "complete_bash", "COMP_WORDS": "trueup ev", "COMP_CWORD": "1"}
    assert run_trueup(**asked).out.split() == ["evaluate"]
    for name, value in {**asked, "COMP_WORDS": "trueup auc --noise gl", "COMP_CWORD": "3"}.items():
        monkeypatch.setenv(name, value)
    assert run_main().out.split() == ["glad"]


def test_without_a_command_the_help_is_shown(run_main):
    ran = run_main()
    assert ran.code == 2
    assert "Usage" in ran.out + ran.err


@pytest.mark.parametrize("args", [("--debug", "check"), ("check", "--debug")], ids=["before", "after"])
def test_debug_shows_where_and_keeps_the_exit_code(run_main, args):
    ran = run_main(*args, "nowhere.csv")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "MissingFile" in ran.err


def test_a_bug_is_one_sentence_and_exit_code_3(run_main, monkeypatch, votes_csv):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("trueup.adapters.read_labels", broken)
    ran = run_main("check", votes_csv)
    assert_one_sentence(ran, code=_console.BUG)
    assert "ZeroDivisionError" in ran.err
    assert "--debug" in ran.err
    assert "Traceback" in run_main("check", votes_csv, "--debug").err


def read_until(terminal: int, word: bytes | None) -> bytes:
    """What a program prints on its terminal until it has printed the word, or until it has left."""
    printed = b""
    while word is None or word not in printed:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # on Linux, the end of what a terminal had to say
            piece = b""
        if not piece:
            break
        printed += piece
    return printed


def wait_for_chains(process: subprocess.Popen[bytes]) -> None:
    """Wait until the chains run, in threads beside the program's own and that of the bar, where threads can be seen."""
    tasks = Path(f"/proc/{process.pid}/task")
    while tasks.is_dir() and process.poll() is None and len(list(tasks.iterdir())) <= 2:
        time.sleep(0.05)


def test_an_interrupted_run_leaves_at_once_and_writes_nothing(tmp_path, votes_csv, predictions_csv, start_process):
    pty = pytest.importorskip("pty", reason="there are no terminals of this kind here")
    report = tmp_path / "report.html"
    report.write_text("old", encoding="utf-8")
    before = {path.name for path in tmp_path.iterdir()}
    ours, its = pty.openpty()
    options = ("--noise", "dawid-skene", "--draws", "3000000", "--report", report)
    arguments = ["evaluate", votes_csv, predictions_csv, *options]
    # What it says goes to a terminal, on which it shows a bar; from then on an interrupt is heard, not before.
    running = start_process(PROGRAM, *arguments, stderr=its, COLUMNS="200", TERM="xterm")
    os.close(its)
    try:
        assert b"evaluating" in read_until(ours, b"evaluating")
        wait_for_chains(running)
        running.send_signal(signal.SIGINT)
        printed = read_until(ours, None)
    finally:
        os.close(ours)
    assert running.stdout.read() == b""
    assert running.wait() == _console.INTERRUPTED, printed
    assert b"interrupted; nothing was written" in printed
    assert b"Traceback" not in printed
    assert report.read_text(encoding="utf-8") == "old"
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "table"])
def test_a_reader_that_leaves_early_is_no_error(tmp_path, form, start_process):
    """More than a pipe holds is printed, and nobody reads it."""
    rows = "".join(f"i{i},w{i % 7},{'x' * 2000}{i % 400}\n" for i in range(800))
    many = tmp_path / "many.csv"
    many.write_text("item,labeler,label\n" + rows, encoding="utf-8")
    running = start_process(PROGRAM, "check", many, "--no-dependence", *form)
    first = running.stdout.readline()
    running.stdout.close()
    err = running.stderr.read()
    running.stderr.close()
    assert running.wait() == _console.PIPE_CLOSED
    assert first.strip() == (b"{" if form else b"")
    assert err == b""


def test_names_are_shown_and_never_obeyed(capsys):
    _console.print_table(("[bold]name", "n"), [("[red]x[/red]", 1), ("a\nb\x1b[31m", ":smile:")], title="[i]t")
    out = capsys.readouterr().out
    for text in ("[bold]name", "[red]x[/red]", "a\\nb\\x1b[31m", ":smile:", "[i]t"):
        assert text in out
    assert "\x1b" not in out


def test_a_table_in_a_pipe_is_as_wide_as_it_needs(capsys):
    _console.print_table(("name", "n"), [("x" * 300, 1)])
    assert "x" * 300 in capsys.readouterr().out


def test_json_has_no_nan_and_only_text_as_keys(capsys):
    import numpy as np

    _console.print_json({1: np.float64("nan"), "a": np.arange(2), "b": (np.int64(3), True, None), "c": {"é"}})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"1": None, "a": [0, 1], "b": [3, True, None], "c": ["é"]}


def test_every_json_has_its_head_and_findings(run_main, votes_csv, predictions_csv, tmp_path):
    session = tmp_path / "s.json"
    rate = ("--apparent", "0.2", "--mislabeling", "0.1")
    commands = [
        ("labelers", votes_csv),
        ("plan", votes_csv, predictions_csv, "--budget", "100", "--vote-price", "1", "--fail-above", "0.00001"),
        ("rates", "true-error", *rate, "-n", "100", "--fail-above", "0.01"),
        ("rates", "bounds", *rate),
        ("rates", "worth", "--error", "0.1", "--mislabeling", "0.1"),
        ("vet", "start", session, votes_csv, predictions_csv, "--seed", "3"),
        ("vet", "ask", session, "-n", "2"),
        ("vet", "status", session, "--fail-unless-finished"),
    ]
    found = {}
    for args in commands:
        ran = run_main(*args, "--json")
        found[args[:2]] = json.loads(ran.out)
        assert {"version", "seed", "files", "findings"} <= set(found[args[:2]]), args
        assert bool(found[args[:2]]["findings"]) == (ran.code == 1), args
        assert bool(found[args[:2]]["findings"]) == any("--fail" in str(a) for a in args), args
    assert found["vet", "status"]["seed"] == 3
    assert len(found["vet", "status"]["files"]["votes"]["sha256"]) == 64
    assert found["labelers", votes_csv]["files"]["votes"]["file"] == str(votes_csv)


def test_the_help_names_what_can_be_said(run_main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    parsed = " ".join(run_main("evaluate", "--help").out.split())
    for names in ("METHODS", "NOISE_MODELS"):
        assert all(name in parsed for name in lists[names]())
    assert "soft-truth" in parsed
    assert "--class" in parsed
    usage = run_main("compare", "--help").out
    assert "PREDICTIONS..." not in usage


def test_the_package_runs_as_a_module_and_a_command_loads_no_other():
    ran = subprocess.run([sys.executable, "-m", "trueup", "--version"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"trueup {__version__}\n")
    program = (
        "import sys, trueup.cli\n"
        "try:\n"
        "    trueup.cli.main(['check', 'nowhere.csv'])\n"
        "except SystemExit:\n"
        "    print(sorted(m for m in sys.modules if m.startswith('trueup.cli.') and '._' not in m))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "trueup.cli.demo" not in loaded
    assert "trueup.cli.judge" in loaded
