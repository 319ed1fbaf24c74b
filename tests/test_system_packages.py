"""Packages of the system are installed where that disturbs nobody; a browser that does not start is no browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chromium import NoBrowser, start_chromium

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell and pipes with numbers")

SCRIPT = Path(__file__).parents[1] / "requirements" / "system.sh"


@pytest.fixture
def place(tmp_path):
    """A folder of programs that are called instead of the machine's own."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def put(name: str, code: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{code}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    put.folder = folder
    return put


@pytest.fixture
def install(tmp_path, place):
    """Ask for a package; returns what was said and what apt-get was asked for. `user` is the number of the user."""
    calls = tmp_path / "calls"
    place("apt-get", f'echo "apt-get $*" >> {calls}')
    place("sudo", f'shift; echo "sudo" >> {calls}; exec "$@"')

    def ask(pair: str, *, user: int = 0, **environment: str) -> tuple[str, list[str]]:
        place("id", f"echo {user}")
        ran = subprocess.run(
            ["sh", str(SCRIPT), pair],
            env={"PATH": f"{place.folder}{os.pathsep}{os.environ['PATH']}", **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stderr == ""
        return ran.stdout, calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []

    return ask


INSTALLED = "apt-get install -yqq --no-install-recommends surfing"


def test_what_is_there_is_left_alone(install, place):
    place("surf", "echo 1.0")
    assert install("surfing=browse-the-web,surf", CI="true") == ("", [])


def test_a_program_may_be_a_pattern(install, place, tmp_path):
    place("surf", "echo 1.0")
    pattern = f"{tmp_path}/*/surf"
    assert install(f"surfing=browse-the-web,{pattern}", CI="true") == ("", [])
    assert install(f"surfing={pattern}-nowhere", CI="true")[1] == [INSTALLED]


def test_the_administrator_of_a_container_installs(install):
    said, calls = install("surfing=surf", container="podman")
    assert said == "Installing surfing\n"
    assert calls == [INSTALLED]


def test_continuous_integration_installs(install):
    assert install("surfing=surf", CI="true")[1] == [INSTALLED]
    assert install("surfing=surf", CI="true", user=1000)[1][1:] == ["sudo", INSTALLED]


def test_nobody_else_is_disturbed(install):
    said, calls = install("surfing=surf", user=1000, container="podman")
    assert said.startswith("Not installed: surfing. Tests that need it are skipped")
    assert calls == []


def test_a_program_that_does_not_start_is_none(install, place):
    place("surf", "echo 'fetch the whole of it first'; exit 1")
    assert install("surfing=surf", CI="true")[1] == [INSTALLED]


def test_a_failure_is_said_and_leaves_it_to_the_tests(install, place):
    place("apt-get", "exit 100")
    said, _ = install("surfing=surf", CI="true")
    assert said == "Installing surfing\nNot installed: surfing. apt-get failed; tests that need it are skipped.\n"


@pytest.mark.parametrize("code", ["exit 1", "exec sleep 1000", "exec /nowhere/at/all"], ids=["ends", "hangs", "breaks"])
def test_a_browser_that_does_not_start_is_none(code, place, monkeypatch):
    monkeypatch.setenv("CHROMIUM", str(place("surf", code)))
    with pytest.raises(NoBrowser, match=r"surf does not start \(.*apt-get install chromium"), start_chromium(wait=1):
        pass


def test_a_browser_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "surf-nowhere")
    with pytest.raises(NoBrowser, match="there is no 'surf-nowhere'"), start_chromium():
        pass
