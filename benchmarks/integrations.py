"""What trueup costs where evaluations run.

Run ``python -m benchmarks.integrations [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: pytest (a run of one empty test with the plugin and without it, in turns; the best of each), and mcp (from the
start of the server to the first answers, the best of several; needs the package mcp). Times are of the clock on this
machine.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks._coverage_tally import as_text
from benchmarks._sections import run_sections
from trueup.data.reading import write_labels
from trueup.simulate import dawid_skene

_PLUGIN = "trueup.integrations.pytest_plugin"


def _pytest_seconds(folder: Path, *plugins: str) -> float:
    """How long pytest takes with no plugin of other packages but these."""
    named = [option for name in plugins for option in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", *named]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def pytest_runs(quick: bool) -> str:
    """One empty test."""
    times = 3 if quick else 40
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        runs = [(_pytest_seconds(folder), _pytest_seconds(folder, _PLUGIN)) for _ in range(times)]
    plain, loaded = (min(column) for column in zip(*runs, strict=True))
    times = {"without the plugin": plain, "with it": loaded, "added": loaded - plain}
    cells = [[what, f"{1000 * took:.0f}"] for what, took in times.items()]
    return as_text(["a run of pytest with one empty test", "ms"], cells)


def _server_seconds(folder: Path) -> list[float]:
    """From the start of the server to each of its answers: the handshake, the list of tools, the first call."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
    call = {"name": "check", "arguments": {"votes": "votes.csv"}}
    requests = [("initialize", client), ("tools/list", {}), ("tools/call", call)]
    started, passed = time.perf_counter(), []
    command = [sys.executable, "-m", "trueup", "mcp", "--root", str(folder)]
    pipe = subprocess.PIPE
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as users have it
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=kept) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, parameters) in enumerate(requests):
            messages = [{"id": number, "method": method, "params": parameters}]
            messages += [] if number else [{"method": "notifications/initialized"}]
            for message in messages:
                print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)
            answer = json.loads(server.stdout.readline())
            if "result" not in answer or answer["result"].get("isError"):
                raise RuntimeError(f"the server must answer {method}, got {answer}")
            passed.append(time.perf_counter() - started)
        server.stdin.close()
    return passed


def mcp_server(quick: bool) -> str:
    """Starts of the server of an assistant."""
    if importlib.util.find_spec("mcp") is None:
        raise FileNotFoundError("it needs the package mcp; run it with the Python of make test-integrations")
    with tempfile.TemporaryDirectory() as name:
        write_labels(dawid_skene(n_items=60, n_labelers=4, random_state=0).labels, Path(name) / "votes.csv")
        runs = [_server_seconds(Path(name)) for _ in range(2 if quick else 20)]
    handshake, tools, call = (min(column) for column in zip(*runs, strict=True))
    rows = [("the handshake", handshake), ("the list of tools", tools), ("check on 240 votes", call)]
    return as_text(["from the start of the server to", "s"], [[what, f"{took:.2f}"] for what, took in rows])


main = partial(run_sections, "integrations", __doc__, {"pytest": pytest_runs, "mcp": mcp_server})


if __name__ == "__main__":
    main()
