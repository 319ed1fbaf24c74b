"""The locks of the tests pin what the project asks for, on every platform, and says nothing about where it is from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "requirements" / "development.txt").read_text(encoding="utf-8").splitlines()
RUNNERS = (ROOT / "requirements" / "integrations.txt").read_text(encoding="utf-8").splitlines()
TORCH = (ROOT / "requirements" / "torch.txt").read_text(encoding="utf-8").splitlines()
PLATFORMS = [
    {"sys_platform": system, "platform_system": name, "platform_machine": machine, "os_name": kind}
    for system, name, machine, kind in (
        ("linux", "Linux", "x86_64", "posix"),
        ("linux", "Linux", "aarch64", "posix"),
        ("darwin", "Darwin", "arm64", "posix"),
        ("win32", "Windows", "AMD64", "nt"),
    )
]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def declared(extras: str) -> list[Requirement]:
    """What the project asks for, with what some tests need; extras that name other extras are followed."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, group = document["project"], document["dependency-groups"].get("integrations", [])
    waiting, requirements = [*project["dependencies"], f"trueup[{extras}]", *(group if "mcp" in extras else [])], []
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name == project["name"]:
            waiting += [line for extra in requirement.extras for line in project["optional-dependencies"][extra]]
        else:
            requirements.append(requirement)
    return requirements


@pytest.mark.parametrize("line", [*LINES, *TORCH, *RUNNERS])
def test_a_line_is_a_name_a_version_and_perhaps_a_marker(line):
    requirement = Requirement(line)
    assert requirement.url is None
    assert not requirement.extras
    assert re.fullmatch(r"==[\w.]+", str(requirement.specifier))


@pytest.mark.parametrize(
    ("lines", "extras"), [(LINES, "dev"), (RUNNERS, "inspect-ai,mlflow,mcp")], ids=["dev", "runners"]
)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda p: f"{p['sys_platform']}-{p['platform_machine']}")
def test_every_platform_has_one_version_of_what_is_declared(platform, python, lines, extras):
    environment = {**platform, "python_version": python, "python_full_version": f"{python}.7"}
    pins = [Requirement(line) for line in lines]
    pins = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(environment)]
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert len(versions) == len(pins)
    for requirement in declared(extras):
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_the_build_of_torch_is_left_to_the_machine():
    assert [Requirement(line).name for line in TORCH] == ["torch"]
    assert not [line for line in LINES if re.match(r"(torch|triton|nvidia|cuda)\b", line)]
