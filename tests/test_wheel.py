"""The wheel, installed without extras into an empty environment: all doors open, on every Python that is found here."""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOORS = [
    "evaluate",
    "compare",
    "auc",
    "ActiveTest",
    "CleaningAdvisor",
    "NoisyLabelClassifier",
    "labelers.rank",
    "plan",
    "read_labels",
    "report",
]
NEWEST = 15  # of the Pythons 3.x to look for


def version_of(python: str) -> str | None:
    """E.g. 3.12, or None if it does not start."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else None


@cache
def interpreters() -> dict[str, str]:
    """The Pythons on the path and those of pyenv, by version; the one that runs the tests first."""
    here = f"3.{sys.version_info.minor}"
    pythons = {here: sys.executable}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in (f"3.{minor}" for minor in range(11, NEWEST + 1)):
        places = [
            shutil.which(f"python{version}"),
            *map(str, sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)),
        ]
        for python in places:
            if version not in pythons and python and version_of(python) == version:
                pythons[version] = python
    return pythons


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that sees neither this project's sources nor its variables."""
    hidden = ("PYTHON", "TRUEUP_", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8"
    )


def pip(*arguments: object, python: Path | None = None) -> subprocess.CompletedProcess[str]:
    """pip of the tests' environment, working for another one."""
    target = () if python is None else ("--python", python)
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *target, *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("pip") is None:
        pytest.skip("the wheel cannot be built without hatchling and pip; make setup installs them")
    folder = tmp_path_factory.mktemp("wheel")
    built = pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("trueup-*.whl"))


def install(wheel: Path, python: str, folder: Path) -> Path:
    """An environment with the wheel and what it asks for, in the versions that the tests know; its Python."""
    if python == sys.executable:
        venv.create(folder, with_pip=False)
    else:
        made = run(python, "-m", "venv", "--without-pip", folder)
        assert made.returncode == 0, made.stderr
    own = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lock = ROOT / "requirements" / "development.txt"
    installed = pip(
        "install", "--quiet", "--no-compile", "--only-binary", ":all:", "--constraint", lock, wheel, python=own
    )
    if "from versions: none" in installed.stderr or "NewConnectionError" in installed.stderr:
        pytest.skip("no package index can be reached: " + installed.stderr.strip().splitlines()[-1])
    assert installed.returncode == 0, installed.stderr
    return own


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"trueup", f"{wheel.name.split('-py3')[0]}.dist-info"}
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("trueup/")} == {
        name for name in expected if "__pycache__" not in name
    }


def versions() -> list[object]:
    """The Python that runs the tests; others, which take half a minute each, with the slow tests."""
    here = f"3.{sys.version_info.minor}"
    return [here, *(pytest.param(version, marks=pytest.mark.slow) for version in interpreters() if version != here)]


@pytest.mark.parametrize("version", versions())
def test_every_door_opens_without_extras(version, wheel, tmp_path):
    python = install(wheel, interpreters()[version], tmp_path / "environment")
    checked = pip("check", python=python)
    assert checked.returncode == 0, checked.stdout
    doors = run(python, ROOT / "tests" / "wheel_doors.py", tmp_path / "environment", cwd=tmp_path)
    assert doors.returncode == 0, doors.stderr
    assert doors.stdout.splitlines() == DOORS
    program = python.with_name("trueup.exe" if os.name == "nt" else "trueup")
    if version == f"3.{sys.version_info.minor}":
        demo = run(program, "demo", "--quick", cwd=tmp_path)
        assert demo.returncode == 0, demo.stderr
        assert "hidden truth" in demo.stdout
        assert (tmp_path / "trueup-demo.html").exists()
    else:
        assert run(program, "--version", cwd=tmp_path).returncode == 0
