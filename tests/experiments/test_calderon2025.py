"""The reproduction of Calderon, Reichart and Dror (2025): a table of nine sets."""

from __future__ import annotations

import pytest

from experiments.calderon2025.__main__ import FOLDER, main
from experiments.calderon2025.replacing import SETS, run_set
from experiments.su2024.report import checks, expected


def test_each_set_has_its_expectations():
    assert set(expected(FOLDER)) == set(SETS)
    assert sum(len(entry["values"]) for entry in expected(FOLDER).values()) == 104


@pytest.mark.data
@pytest.mark.parametrize("name", ["mtbench", "lesion"])
def test_the_table_is_that_of_the_paper(data_folder, name):
    text, ours = run_set(name, quick=True)
    found = checks(name, ours, FOLDER)
    assert len(found) == 2
    assert all(check.ok for check in found)
    assert "gemini-flash" in text


@pytest.mark.parametrize("folder", ["nowhere", ""])
def test_missing_data_are_said(folder, capsys, monkeypatch):
    monkeypatch.setenv("TRUEUP_DATA", folder)
    assert main(["wax"]) == 0
    assert "wax was skipped" in capsys.readouterr().out


def test_an_unknown_set_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["kilogram"])
    assert "kilogram" in capsys.readouterr().err
