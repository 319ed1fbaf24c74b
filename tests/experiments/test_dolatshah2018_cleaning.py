"""A fast part of the reproduction of Dolatshah et al. (2018), advice 2."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.dolatshah2018 import cleaning_figures, cleaning_runs, cleaning_sets
from experiments.dolatshah2018.__main__ import main
from experiments.dolatshah2018.cleaning_runs import Curve, Task, completed, stored


def test_a_mix_has_the_shares_and_rates_it_should():
    data = cleaning_sets.gaussian_set(np.random.default_rng(0), n=30_000, n_test=10)
    item, labeler, vote, _ = data.labels.vote_table()
    assert len(item) == 30_000
    assert np.bincount(labeler).tolist() == [20_000, 10_000]
    for kind, (_, rates) in enumerate(cleaning_sets.MIX):
        for truth, rate in enumerate(rates):
            mine = (labeler == kind) & (data.truth[item] == truth)
            assert np.mean(vote[mine] != truth) == pytest.approx(rate, abs=5 * np.sqrt(0.25 / mine.sum()))
    np.testing.assert_allclose(data.X.std(axis=0), 1)
    assert data.noise.prior_[1] == pytest.approx(0.5, abs=0.03)  # from noisy labels alone


def test_cleaning_leads_from_noisy_labels_towards_the_truth():
    data = cleaning_sets.gaussian_set(np.random.default_rng(1), n=150, apart=3.0, n_test=2000)
    curve = cleaning_runs.learning_curve(data, {"strategy": "random", "split": False}, 150, 0, 10)
    ceiling = cleaning_runs._without_oracle(data, cleaning_runs.CEILING, 0).accuracy[0]
    assert len(curve.accuracy) == 16
    assert curve.accuracy[0] < ceiling - 0.03
    assert curve.accuracy[-1] == pytest.approx(ceiling)  # all labels are clean


def test_finished_curves_are_not_made_again(tmp_path, monkeypatch):
    made = []

    def fake(task):
        made.append(task)
        return Curve(np.array([0.5, 0.25]), np.array([0.1, 0.2]), 0.01)

    monkeypatch.setattr(cleaning_runs, "one", fake)
    tasks = [Task("gaussian", "EMI", r, 1) for r in range(3)]
    path = tmp_path / "new" / "curves.jsonl"
    completed(tasks[:2], path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"task": {"da')  # an interrupt
    again = completed(tasks, path)
    assert made == tasks
    assert list(again) == tasks
    assert set(stored(path)) == set(tasks)
    np.testing.assert_array_equal(stored(path)[tasks[2]].accuracy, [0.5, 0.25])


def test_leads_are_paired_by_repetition():
    def curve(value):
        return Curve(np.array([value, value]), np.zeros(2), 0.0)

    curves = {Task("d", "A", r, 1): curve(0.5 + 0.1 * r) for r in (1, 0, 2)}
    curves |= {Task("d", "B", r, 1): curve(0.4 + 0.1 * r) for r in (0, 2, 1)}
    lead, error = cleaning_figures.paired(curves, "d", "A", "B")
    assert lead == pytest.approx(0.1)
    assert error == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["figure11", "figure12", "figure13"])
def test_a_quick_command_prints_its_table(name, capsys, tmp_path):
    assert main([name, "--quick", "--json", str(tmp_path / "all.json")]) == 0
    shown = capsys.readouterr().out
    assert "labels cleaned" in shown
    assert "agree." in shown


@pytest.mark.data
def test_crowds_keep_rows_and_votes_together(data_folder):
    pytest.importorskip("polars")
    for name, good in (("sentiment", 0.84), ("labelme", 0.7)):
        data = cleaning_sets.cleaning_set(name, 0)
        majority = data.labels.answer_counts.argmax(axis=1)
        assert np.mean(majority == data.truth) > good  # rows in another order would be at chance
        assert data.X.shape[0] == data.labels.n_items
        assert cleaning_runs._without_oracle(data, "truth", 0).accuracy[0] > 0.6
