"""What the command of every experiment keeps to: each of its parts is expected, and what it cannot do it says."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from experiments.su2024.report import expected

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[2] / "experiments").glob("*/expected.json"))


def command(folder):
    return import_module(f"experiments.{folder.name}.__main__").main


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_part_says_where_it_is_from_and_how_near_it_must_come(folder, capsys):
    for name, entry in expected(folder).items():
        assert entry["where"], name
        assert entry["tolerance_is"], name
        assert {**entry["values"], **entry.get("limits", {})}, name
        assert all(value["tolerance"] > 0 for value in entry["values"].values()), name
    with pytest.raises(SystemExit):
        command(folder)(["--runs", "1"] if folder.name == "urkullu2019" else ["table99"])
    said = capsys.readouterr().err
    if folder.name == "urkullu2019":
        assert "at least 2" in said
    else:
        assert "table99" in said
        assert set(expected(folder)) <= set(re.findall(r"[\w.-]+\w", said.partition("table99")[2]))


@pytest.mark.parametrize(("folder", "sentence"), [("nowhere", "must exist, got 'nowhere'"), ("", "must be named")])
@pytest.mark.parametrize(("experiment", "part"), [("lamstork2003", "table3"), ("calderon2025", "wax")])
def test_missing_data_are_said(experiment, part, folder, sentence, capsys, monkeypatch):
    monkeypatch.setenv("TRUEUP_DATA", folder)
    assert import_module(f"experiments.{experiment}.__main__").main([part]) == 0
    assert f"skipped: the data folder {sentence}" in capsys.readouterr().out
