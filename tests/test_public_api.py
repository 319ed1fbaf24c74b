"""The typed public API is what tests/public_api.txt says, so that no change of it goes unseen."""

import difflib
import subprocess
import sys
import textwrap

import pytest

import public_api


def test_the_public_api_is_the_frozen_one():
    frozen, now = public_api.expected(), public_api.lines()
    changes = [
        line for line in difflib.unified_diff(frozen, now, lineterm="", n=0) if line[:2] not in {"--", "++", "@@"}
    ]
    assert not changes, (
        "the public API is not the one of tests/public_api.txt:\n"
        + "\n".join(changes)
        + f"\nIf this was meant, run `{public_api.COMMAND}`, commit the file, and say it in CHANGELOG.md; what is "
        "taken away or changed has been deprecated first (CONTRIBUTING.md, Deprecation)."
    )


def test_everything_public_has_types():
    untyped = [line for line in public_api.lines() if "untyped" in line or "(…)" in line]
    assert not untyped


SAMPLE = """
    from __future__ import annotations

    from dataclasses import dataclass, field
    from functools import cached_property

    __all__ = ["COUNT", "Thing", "Twin", "work"]
    COUNT = 3

    @dataclass
    class Thing:
        size: int
        names: list[str] = field(default_factory=list)

        @cached_property
        def area(self) -> float:
            return 1.0

        @classmethod
        def made(cls, *parts: str, deep: bool = False) -> Thing:
            return cls(len(parts))

        def __len__(self) -> int:
            return self.size

        def _hidden(self) -> None: ...

    Twin = Thing

    def work(data: list[int], *, level: float = 0.95) -> Thing:
        return Thing(len(data))
"""


@pytest.fixture
def sample(tmp_path, monkeypatch):
    folder = tmp_path / "trueup_sample"
    folder.mkdir()
    (folder / "__init__.py").write_text(textwrap.dedent(SAMPLE), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(public_api, "_ours", lambda base: base.__module__ == "trueup_sample")
    yield "trueup_sample"
    sys.modules.pop("trueup_sample", None)


def test_names_signatures_types_and_defaults_are_told(sample):
    assert list(public_api.of_module(sample, {})) == [
        "trueup_sample.COUNT: int",
        "class trueup_sample.Thing()",
        "trueup_sample.Thing.__init__(self, size: int, names: list[str] = <factory>) -> None",
        "trueup_sample.Thing.__len__(self) -> int",
        "trueup_sample.Thing.area: property -> float",
        "trueup_sample.Thing.made(cls, *parts: str, deep: bool = False) -> Thing [classmethod]",
        "trueup_sample.Thing.names: list[str]",
        "trueup_sample.Thing.size: int",
        "trueup_sample.Twin is trueup_sample.Thing",
        "trueup_sample.work(data: list[int], *, level: float = 0.95) -> Thing",
    ]


def test_without_torch_its_part_is_neither_asked_for_nor_lost():
    code = (
        "import sys; sys.path.insert(0, 'tests'); sys.modules['torch'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "import public_api\n"
        "assert not [line for line in public_api.expected() if line.startswith('trueup.training.torch.')]\n"
        "assert public_api.main() == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=public_api.FILE.parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "torch must be installed" in done.stderr
