"""What is no plain file: pipes to read from, a full disk to write to, files that are not there."""

import json
import subprocess
import sys

import pytest
from cli_helpers import HANGS_AFTER, PROGRAM, QUICK, assert_one_sentence, write_csv

from trueup.cli._console import DISK_FULL

needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="a shell with process substitution is needed")
needs_full = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the full device is Linux's")


def in_bash(command, cwd):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=HANGS_AFTER, cwd=cwd)


@needs_bash
def test_process_substitution_works_for_every_file(votes_csv, systems_csv, truth_csv, run_main, tmp_path):
    items = write_csv(tmp_path / "items.csv", ("item", "topic"), [("i0", "sport"), ("i1", "news")])
    options = " ".join(["--json", "-m", "accuracy", *QUICK])
    command = (
        f"{PROGRAM} evaluate <(cat {votes_csv}) <(cat {systems_csv}) --gold <(cat {truth_csv}) "
        f"--items <(cat {items}) {options}"
    )
    ran = in_bash(command, tmp_path)
    assert ran.returncode == 0, ran.stderr
    piped = json.loads(ran.stdout)
    plain = run_main("evaluate", votes_csv, systems_csv, "--gold", truth_csv, "--items", items, *options.split())
    read = json.loads(plain.out)
    assert [one["metrics"] for one in piped["systems"]] == [one["metrics"] for one in read["systems"]]
    assert piped["files"]["votes"]["sha256"] == read["files"]["votes"]["sha256"]


@needs_bash
def test_a_pipe_is_named_in_errors_and_has_a_format(votes_csv, tmp_path):
    ran = in_bash(f"{PROGRAM} check <(printf 'a,b\\n1,2\\n')", tmp_path)
    assert ran.returncode == 2
    assert "/dev/fd/" in ran.stderr or "/proc/" in ran.stderr
    ran = in_bash(f"{PROGRAM} check <(tr , '\\t' < {votes_csv}) --format tsv --no-dependence --json", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["votes"]["votes"] == 300


def test_a_session_refuses_a_pipe(run_main, predictions_csv, tmp_path, monkeypatch):
    ran = run_main("vet", "start", tmp_path / "s.json", "-", predictions_csv)
    assert_one_sentence(ran)
    assert "find its files again" in ran.err


@needs_full
def test_a_full_disk_is_one_sentence_with_its_own_exit_code(votes_csv, predictions_csv, run_main, tmp_path):
    with open("/dev/full", "w") as full:  # noqa: PTH123  the device itself
        ran = subprocess.run([PROGRAM, "check", votes_csv, "--no-dependence"], stdout=full, stderr=subprocess.PIPE)
    assert ran.returncode == DISK_FULL
    lines = ran.stderr.decode().splitlines()
    assert lines == ["error: standard output cannot be written whole, got a full disk; make room and run it again"]
    report = tmp_path / "r.html"
    report.symlink_to("/dev/full")
    ran = run_main("evaluate", votes_csv, predictions_csv, "-m", "accuracy", "--report", report, *QUICK)
    assert_one_sentence(ran, code=DISK_FULL)
    assert "No space left" in ran.err


@pytest.mark.usefixtures("votes_csv", "predictions_csv")
def test_a_missing_file_is_told_before_anything_is_loaded(tmp_path):
    """What takes long to import cannot have been: then it is found in a fraction of a second."""
    calls = ["evaluate votes.csv nowhere.csv", "compare votes.csv predictions.csv nowhere.csv"]
    calls += ["check votes.csv --gold nowhere.csv", "check votes.csv --items nowhere.csv", "labelers nowhere.csv"]
    calls += ["plan nowhere.csv --budget 10", "vet start s.json nowhere.csv predictions.csv"]
    program = (
        "import sys, trueup.cli\n"
        "for call in sys.argv[1:]:\n"
        "    try:\n"
        "        trueup.cli.main(call.split())\n"
        "    except SystemExit as leaving:\n"
        "        loaded = {'numpy', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "        print(leaving.code, *loaded)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, *calls], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout.splitlines() == ["2"] * len(calls), ran.stderr
    assert ["'nowhere.csv' does not exist" in line for line in ran.stderr.splitlines()] == [True] * len(calls)
