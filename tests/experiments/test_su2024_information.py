"""Figures 6–8 of Su (2024): the printed values, and what must hold of the surfaces."""

import pytest

from experiments.su2024.information import INFORMATION_FIGURES
from experiments.su2024.report import checks, expected


@pytest.mark.parametrize("name", list(INFORMATION_FIGURES))
def test_a_figure_agrees_with_the_paper(name, tmp_path):
    pytest.importorskip("matplotlib")
    text, ours = INFORMATION_FIGURES[name](tmp_path, quick=True)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    found = checks(name, ours)
    entry = expected()[name]
    assert {c.label for c in found} == {*entry["values"], *entry["limits"]}
    assert not [f"{c.label}: {c.ours}" for c in found if not c.ok]
    assert "T = " in text
