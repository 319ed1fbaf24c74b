"""Nothing is ever sent anywhere: no connection is opened and no name looked up unless the user named the other end."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "trueup"
NETWORK = {"socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc"}
HARMLESS = {"urllib.parse"}  # words about addresses, no connections
# tu.connect calls the server that it is given, and trueup serve listens.
MAY = {"serve/client.py", "serve/running.py"}

# The hook is told before Python opens a connection or looks up a name, whichever module asks for it.
GUARD = """
import sys

def guard(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"}:
        if event == "socket.connect" and isinstance(arguments[1], (str, bytes)):
            return  # a socket of this machine's own file system
        raise SystemExit(f"{event} {arguments[1:]}")

sys.addaudithook(guard)
"""
USE = """
import contextlib, importlib, pkgutil, warnings
import numpy as np
import trueup as tu

warnings.simplefilter("ignore")  # warnings of other packages are not what is tested here
for info in pkgutil.walk_packages(tu.__path__, "trueup."):
    if not info.name.endswith("__main__"):
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(info.name)

sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
truth = np.asarray(sim.truth)
quick = {"noise": "dawid-skene", "n_draws": 50, "n_warmup": 20, "random_state": 0}
tu.write_labels(sim.labels, "votes.csv")
labels = tu.read_labels("votes.csv")
# Of one labeler: a page on several draws the skill of each, which takes long without compiled kernels.
alone = labels.select(labelers=labels.labelers[:1].tolist())
tu.evaluate(truth, alone, metrics=["accuracy"], **quick).save_html("report.html")
tu.compare({"right": truth, "wrong": 1 - truth}, labels, **quick)
test = tu.ActiveTest(truth, labels, noise="dawid-skene", random_state=0)
test.tell({item: int(truth[int(item)]) for item in test.ask(2)})
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", GUARD + code], cwd=folder, capture_output=True, text=True, check=False)


def test_nothing_is_opened_by_importing_evaluating_and_reporting(tmp_path):
    done = run(USE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()


def test_the_guard_would_notice(tmp_path):
    for code in (
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import trueup as tu; tu.connect('http://127.0.0.1:9', 'token').progress",
    ):
        done = run(code, tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith(("urllib.Request", "socket.getaddrinfo", "socket.connect")), done.stderr


def network_imports(path: Path) -> set[str]:
    """The modules with connections that a file imports, wherever in it."""
    imported = set()
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in NETWORK):
        return imported  # reading the syntax takes longer
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
    return {name for name in imported - HARMLESS if name.split(".")[0] in NETWORK}


def test_only_the_client_and_the_server_know_of_connections():
    importers = {path.relative_to(SOURCE).as_posix(): network_imports(path) for path in SOURCE.rglob("*.py")}
    importers = {name: sorted(modules) for name, modules in importers.items() if modules}
    assert importers.keys() <= MAY, importers
    assert importers  # the rule finds those that may
