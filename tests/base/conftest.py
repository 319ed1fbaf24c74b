"""Packages that other people might install."""

import sys

import pytest


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that puts a distribution with a module and entry points where Python looks for them."""

    def put(module: str, code: str, entries: str) -> None:
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(entries, encoding="utf-8")
        (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return put
