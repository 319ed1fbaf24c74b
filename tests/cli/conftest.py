"""What the tests of the command line share: small files, and two ways to run the program."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import HANGS_AFTER, PROGRAM, Ran, crowd, write_csv

from trueup.cli import main


def environment_with(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", **more}


@pytest.fixture
def run_trueup(tmp_path: Path) -> Callable[..., Ran]:
    """Run the installed program in a process of its own: ``run_trueup("check", path, stdin="…")``."""

    def run(*args: object, stdin: str | bytes = b"", **environment: str) -> Ran:
        done = subprocess.run(
            [str(PROGRAM), *map(str, args)],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=HANGS_AFTER,
            cwd=tmp_path,
            env=environment_with(environment),
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def start_process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a command that a test talks to while it runs: ``start_process(PROGRAM, "check", path, COLUMNS="80")``.

    Its standard output and error are pipes unless the test gives others. Whatever becomes of the test, the process does
    not outlive it.
    """
    started = []

    def start(
        *args: object, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE, **environment: str
    ) -> subprocess.Popen[bytes]:
        command = [str(arg) for arg in args]
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment_with(environment))
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_main(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the entry point in this process, which spares the imports: ``run_main("check", path)``."""

    def run(*args: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([str(a) for a in args])
        out, err = capsys.readouterr()
        code = leaving.value.code
        assert isinstance(code, int)
        return Ran(code, out, err)

    return run


@pytest.fixture
def votes_csv(tmp_path: Path) -> Path:
    """60 items, 5 labelers, classes "no" and "yes": item, labeler, label."""
    votes = crowd()["votes"]
    rows = [(f"i{i}", f"w{t}", ("no", "yes")[v]) for i, row in enumerate(votes) for t, v in enumerate(row)]
    return write_csv(tmp_path / "votes.csv", ("item", "labeler", "label"), rows)


@pytest.fixture
def predictions_csv(tmp_path: Path) -> Path:
    """A good system with scores: item, prediction, score."""
    data = crowd()
    rows = [(f"i{i}", ("no", "yes")[p], s) for i, (p, s) in enumerate(zip(data["good"], data["score"], strict=True))]
    return write_csv(tmp_path / "predictions.csv", ("item", "prediction", "score"), rows)


@pytest.fixture
def systems_csv(tmp_path: Path) -> Path:
    """Two systems, "good" and "bad", in one file: item, system, prediction."""
    data = crowd()
    rows = [(f"i{i}", name, ("no", "yes")[p]) for name in ("good", "bad") for i, p in enumerate(data[name])]
    return write_csv(tmp_path / "systems.csv", ("item", "system", "prediction"), rows)


@pytest.fixture
def uneven_csv(tmp_path: Path) -> Path:
    """Two systems; the good one has predicted the first half only."""
    data = crowd()
    rows = [(f"i{i}", "good", ("no", "yes")[p]) for i, p in enumerate(data["good"][:30])]
    rows += [(f"i{i}", "bad", ("no", "yes")[p]) for i, p in enumerate(data["bad"])]
    return write_csv(tmp_path / "uneven.csv", ("item", "system", "prediction"), rows)


@pytest.fixture
def all_no_csv(tmp_path: Path) -> Path:
    """A system that says no of every item: item, prediction."""
    return write_csv(tmp_path / "all_no.csv", ("item", "prediction"), [(f"i{i}", "no") for i in range(60)])


@pytest.fixture
def truth_csv(tmp_path: Path) -> Path:
    """The truth of the first 20 items: item, label."""
    rows = [(f"i{i}", ("no", "yes")[y]) for i, y in enumerate(crowd()["truth"][:20])]
    return write_csv(tmp_path / "truth.csv", ("item", "label"), rows)


@pytest.fixture
def dependent_csv(tmp_path: Path) -> Path:
    """300 items and 8 labelers, who are wrong together on the hard items: item, labeler, label (0 or 1)."""
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(2, size=300), rng.random(300) < 0.4
    wrong = rng.random((300, 8)) < np.where(hard, 0.45, 0.02)[:, None]
    votes = np.where(wrong, 1 - truth[:, None], truth[:, None])
    rows = [(i, f"w{t}", votes[i, t]) for i in range(300) for t in range(8)]
    return write_csv(tmp_path / "dependent.csv", ("item", "labeler", "label"), rows)


@pytest.fixture
def items_csv(tmp_path):
    """The system and the prompt of each item."""
    rows = [(f"i{i}", ("alpha", "beta")[i % 2], f"p{i // 2}") for i in range(60)]
    return write_csv(tmp_path / "items.csv", ("item", "system", "prompt"), rows)
