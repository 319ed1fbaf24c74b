"""A fast part of the reproduction of Dolatshah et al. (2018), advice 2."""

import numpy as np
import pytest

from experiments.dolatshah2018 import cleaning_runs, cleaning_sets
from experiments.dolatshah2018.__main__ import main


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
