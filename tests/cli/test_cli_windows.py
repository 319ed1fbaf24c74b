"""What can be seen of Windows without one: every module imports and the command line works without what it lacks."""

import os
import subprocess
import sys

import pytest

# What others import is imported first: only trueup must not need what Windows does not have.
AS_ON_WINDOWS = """
import os, pathlib, signal, subprocess, sys, tempfile, types
import jinja2, numpy, rich.console, rich.progress, scipy.optimize, scipy.sparse, scipy.special, scipy.stats, typer
import sklearn.datasets, sklearn.linear_model, sklearn.naive_bayes, sklearn.svm
import alembic.command, asyncio, fastapi.responses, multiprocessing.connection, sqlalchemy, uvicorn

sys.modules.update(dict.fromkeys(["fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"]))
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: None)
for module, names in ((os, "fork register_at_fork sched_getaffinity geteuid getuid killpg"),
                      (signal, "SIGKILL SIGALRM SIGPIPE SIGHUP SIGUSR1 alarm setitimer")):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
"""
IMPORT_ALL = """
import trueup
root = pathlib.Path(trueup.__file__).parents[1]
for path in root.glob("trueup/**/[!_]*.py"):
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if "torch" not in name and "compiled" not in name:  # extras that are for Windows or not
        __import__(name)
"""
COMMANDS = """
from trueup.cli import main

def run(*arguments):
    try:
        main(list(arguments))
    except SystemExit as leaving:
        assert not leaving.code, (arguments, leaving.code)

os.chdir(tempfile.mkdtemp())
quick = ("--noise", "dawid-skene", "--draws", "100", "--warmup", "50")
run("simulate", "baseline", "--out", "sim", "--set", "n_items=60")
run("check", "sim/votes.csv", "sim/predictions.csv", "--no-dependence")
run("evaluate", "sim/votes.csv", "sim/predictions.csv", *quick)
run("vet", "start", "session.json", "sim/votes.csv", "sim/predictions.csv", "--noise", "dawid-skene")
run("vet", "status", "session.json")
"""


def test_nothing_needs_what_windows_lacks():
    environment = {**os.environ, "TRUEUP_ENGINE": "scipy"}
    command = [sys.executable, "-c", AS_ON_WINDOWS + IMPORT_ALL + COMMANDS]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("encoding", ["cp437", "ascii"])
def test_a_console_of_few_characters_is_no_error(encoding, run_trueup, votes_csv):
    ran = run_trueup("check", votes_csv, "--no-dependence", PYTHONIOENCODING=encoding)
    assert ran.code == 0, ran.err
    assert "items" in ran.out
