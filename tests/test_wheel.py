"""The wheel and the source distribution: what is in them, and that all works from the wheel alone.

The wheel is installed without extras into an empty environment: all doors open, and the quickstart can be followed in
an empty folder. What the wheel asks for is linked from the tests' own environment, and once brought by pip, on every
Python that is found here.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
MOST_BYTES = 1_400_000  # 1 MB is asked; docs/figures/structure.md says what it is
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of a folder or a source distribution."""
    if importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("pip") is None:
        pytest.skip("the wheel cannot be built without hatchling and pip; make setup installs them")
    built = pip("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("trueup-*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("the source distribution cannot be built without hatchling; make setup installs it")
    folder = tmp_path_factory.mktemp("sdist")
    built = run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("trueup-*.tar.gz"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and links to what it asks for, for the Python that runs the tests."""
    folder = tmp_path_factory.mktemp("installed") / "environment"
    if os.name == "nt":  # where links are a privilege
        return install(wheel, sys.executable, folder)
    venv.create(folder, with_pip=False)
    own = folder / "bin" / "python"
    link_packages(PROJECT["dependencies"], next(folder.glob("lib/python*/site-packages")))
    installed = pip("install", "--quiet", "--no-compile", "--no-deps", wheel, python=own)
    assert installed.returncode == 0, installed.stderr
    return own


def link_packages(requirements: list[str], site: Path) -> None:
    """Make links to the packages that are required, and to those that they require, and to nothing else."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            package = distribution(requirement.name)
            for name in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
                if not (site / name).exists():
                    (site / name).symlink_to(package.locate_file(name))
            link_packages(package.requires or [], site)


def install(wheel: Path, python: str, folder: Path) -> Path:
    """An environment with the wheel and what it asks for, in the versions that the tests know; its Python."""
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


def metadata_of(wheel: Path) -> Message:
    """What an index and pip read of it."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size <= MOST_BYTES


def test_the_wheel_says_what_it_is(wheel):
    told = metadata_of(wheel)
    source = (ROOT / "src" / "trueup" / "__init__.py").read_text(encoding="utf-8")
    assert told["Name"] == "trueup"
    assert told["Version"] == re.search(r'^__version__ = "(.*)"$', source, re.MULTILINE)[1]
    assert told["Requires-Python"] == PROJECT["requires-python"]
    assert told["Summary"] == PROJECT["description"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    required = [line for line in told.get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(required) == sorted(PROJECT["dependencies"])
    assert set(told.get_all("Provides-Extra")) == PROJECT["optional-dependencies"].keys()


def test_the_wheel_has_its_licence_and_its_types(wheel):
    told = metadata_of(wheel)
    assert told["License-Expression"] == "BSD-3-Clause"
    assert set(told.get_all("License-File")) == {"LICENSE", "THIRD_PARTY_NOTICES.md"}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "trueup/py.typed" in names
        licence = next(name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
        assert archive.read(licence).decode("utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_source_distribution_has_all_that_tests_and_figures_need(sdist):
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    for folder in ("src", "tests", "docs", "examples", "benchmarks", "experiments", "requirements"):
        there = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")}
        assert there <= names, sorted(there - names)[:5]
    top = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "SECURITY.md", "THIRD_PARTY_NOTICES.md"}
    assert top | {"LICENSE", "Makefile", "pyproject.toml", "mkdocs.yml"} <= names
    strays = [name for name in names if re.search(r"__pycache__|\.pyc$|(?:^|/)\.venv|\.nb[ic]$", name)]
    assert not strays


def test_the_source_distribution_rebuilds_the_same_wheel(sdist, wheel, tmp_path):
    again = build_wheel(sdist, tmp_path)
    assert again.name == wheel.name
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(wheel.read_bytes()).digest()


def steps_of(page: str) -> list[tuple[str, str]]:
    """What a reader does, in order: ("python", all blocks up to the next command), ("console", one command)."""
    steps: list[tuple[str, str]] = []
    for language, text in FENCE.findall(page):
        if language == "python" and steps and steps[-1][0] == "python":
            steps[-1] = ("python", f"{steps[-1][1]}\n{text}")
        elif language == "python":
            steps.append(("python", text))
        elif language == "console":
            steps += [("console", line[2:]) for line in text.splitlines() if line.startswith("$ ")]
    return steps


def follow(page: Path, python: Path, folder: Path) -> list[str]:
    """Do what a page says in a folder; what was done."""
    steps = []
    for kind, text in steps_of(page.read_text(encoding="utf-8")):
        words = shlex.split(text) if kind == "console" else []
        if words[:1] == ["pip"]:
            continue  # installed already
        program = [python.with_name("trueup.exe" if os.name == "nt" else "trueup"), *words[1:]]
        done = run(*([python, "-c", text] if kind == "python" else program), cwd=folder)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
        steps.append(text if kind == "console" else "python")
    return steps


def test_the_quickstart_can_be_followed_in_an_empty_folder(environment, tmp_path):
    steps = follow(ROOT / "docs" / "quickstart.md", environment, tmp_path)
    assert "python" in steps
    assert [step for step in steps if step.startswith("trueup evaluate")]
    assert list(tmp_path.rglob("*.html")), "no report was written"


QUICK = """# Small

```python
import trueup as tu

data = tu.simulate.baseline(n_items=60, n_labelers=3, random_state=3)
tu.write_labels(data.labels, "votes.csv")
print(tu.read_labels("votes.csv"))
```

```console
$ trueup check votes.csv
```
"""


def test_a_small_page_can_be_followed_in_an_empty_folder(environment, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(QUICK, encoding="utf-8")
    assert follow(page, environment, tmp_path) == ["python", "trueup check votes.csv"]
    assert (tmp_path / "votes.csv").exists()


def check_doors(python: Path, folder: Path) -> None:
    """What the wheel asks for is there, and every door opens."""
    checked = pip("check", python=python)
    assert checked.returncode == 0, checked.stdout
    doors = run(python, ROOT / "tests" / "wheel_doors.py", python.parents[1], cwd=folder)
    assert doors.returncode == 0, doors.stderr
    assert doors.stdout.splitlines() == DOORS


def test_every_door_opens_without_extras(environment, tmp_path):
    check_doors(environment, tmp_path)


@pytest.mark.parametrize("version", interpreters())
def test_pip_installs_all_that_the_demo_needs(version, wheel, tmp_path):
    python = install(wheel, interpreters()[version], tmp_path / "environment")
    check_doors(python, tmp_path)
    demo = run(python.with_name("trueup.exe" if os.name == "nt" else "trueup"), "demo", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert "After 10 more checks: yes" in demo.stdout
    assert (tmp_path / "trueup-demo.html").exists()
