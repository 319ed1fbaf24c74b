"""The reproduction of Calderon, Reichart and Dror (2025): a table of nine sets."""

import pytest

from experiments.calderon2025.__main__ import FOLDER
from experiments.calderon2025.replacing import run_set
from experiments.su2024.report import checks


@pytest.mark.data
@pytest.mark.parametrize("name", ["mtbench", "lesion"])
def test_the_table_is_that_of_the_paper(data_folder, name):
    text, ours = run_set(name, quick=True)
    found = checks(name, ours, FOLDER)
    assert len(found) == 2
    assert all(check.ok for check in found)
    assert "gemini-flash" in text
