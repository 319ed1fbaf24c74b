"""A fast part of the reproduction of Dolatshah et al. (2018), advice 1."""

import numpy as np
import pytest

from experiments.dolatshah2018 import figures, runs, sets
from experiments.dolatshah2018.__main__ import FOLDER, main
from experiments.su2024.report import checks


def test_equation_15_at_values_worked_out_by_hand():
    # β = 0.1: ab = −0.09/0.64; variance 0.140625 + 0.16
    assert figures.equation_15(1000, 0.1, 0.8) == pytest.approx(1.959964 * np.sqrt(0.300625 / 1000), rel=1e-6)
    assert figures.equation_15(100, 0.0, 0.5) == pytest.approx(1.959964 * 0.05, rel=1e-6)


def test_a_command_prints_the_comparison(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figures, "_half_width", lambda n, beta, n_sets: figures.equation_15(n, beta, 0.8))
    assert main(["figure4", "--quick", "--out", str(tmp_path), "--json", str(tmp_path / "all.json")]) == 0
    shown = capsys.readouterr().out
    assert "times smaller" in shown
    assert "4 of 4 agree" in shown
    assert (tmp_path / "figure4.png").stat().st_size > 5000
    with pytest.raises(SystemExit):
        main(["figure99"])


@pytest.mark.data
def test_real_sets_have_the_sizes_of_the_paper(data_folder):
    sizes = {name: len(sets.uci_table(name)[1]) for name in sets.REAL_SETS}
    assert sizes == {"heart": 270, "cancer": 683, "diabetes": 768}  # 16 of 699 cancers lack a value
    outcome = runs.real_runs("heart", 4)
    assert outcome.mae[0, 0] < outcome.mae[1, 0]  # TARS is nearer than labels taken for true


@pytest.mark.data
def test_restaurants_have_their_crowd(data_folder):
    pytest.importorskip("polars")
    labels, truth, features = sets.restaurant()
    assert (labels.n_items, int(truth.sum()), features.shape) == (2004, 102, (2004, 5))
    one = runs._one_vote(labels, np.random.default_rng(0))
    assert one.n_votes == 2004
    np.testing.assert_array_equal(one.items, labels.items)


@pytest.mark.slow
def test_figure_7_agrees():
    _, ours = figures.figure7(None, quick=False)
    assert not [c.label for c in checks("figure7", ours, FOLDER) if not (c.ok or c.differs)]
