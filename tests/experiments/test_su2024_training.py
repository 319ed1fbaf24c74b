"""Sections 5.4 and 5.5 of Su (2024): training and testing on votes alone; small versions of the figures."""

import json

import numpy as np
import pytest

from experiments.su2024 import equivalence, training, training_figures
from experiments.su2024.__main__ import main
from experiments.su2024.report import checks, expected


def gaussians(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.36).astype(np.int64)
    return rng.normal(size=(n, 3)) + 1.2 * truth[:, None], truth


@pytest.fixture
def few_strengths(monkeypatch):
    """One value of λ in place of twenty, and nothing kept of what other tests ran."""
    monkeypatch.setattr(training, "STRENGTHS", (2.0,))
    training.ionosphere_runs.cache_clear()
    yield
    training.ionosphere_runs.cache_clear()


@pytest.fixture
def ionosphere(data_folder):
    return training.ionosphere()


def test_estimated_area_is_the_actual_one_where_labelers_never_err():
    X, truth = gaussians(400)
    split = training.split_of(X, truth, 0, fallibility=[0.0] * 3, difficulty=None, participation=(1.0, 1.0))
    scores = training.trained_scores("ml", split, 2.0, split.noise)
    judge = training.Judge(split.test_labels, split.noise)
    # The approximate mean of a ratio and the clipping of operating points cost a little.
    assert abs(judge.auc(scores) - training.actual_auc(split, scores)) < 0.006
    low, high = training.auc_posterior(scores, split.test_labels, split.noise)[1:]
    assert low <= training.actual_auc(split, scores) <= high + 1e-9


def test_training_methods_are_one_where_votes_are_right():
    X, truth = gaussians(300)
    split = training.split_of(X, truth, 2, fallibility=[0.0] * 3, difficulty=None, participation=(1.0, 1.0))
    ideal = training.trained_scores("ideal", split, 1.0, split.noise)
    for name in training.CLASSIFIERS[1:]:
        assert np.abs(training.trained_scores(name, split, 1.0, split.noise) - ideal).max() < 1e-3, name


def test_mediocre_labelers_test_as_well_as_their_equal():
    runs = equivalence.testing_runs(3)
    width = {name: each[:, 4].mean() for name, each in runs.items()}
    assert width["1 mediocre"] > 3 * width["expert"] > 3.5 * width["24 mediocre"]
    assert abs(width["12 mediocre, their equal"] / width["expert"] - 1) < 0.2


@pytest.mark.data
def test_ionosphere_is_the_papers(ionosphere):
    X, truth = ionosphere
    assert X.shape == (351, 34)
    assert truth.sum() == 126


@pytest.mark.data
def test_training_without_truth_on_ionosphere(ionosphere, few_strengths, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(training, "CLASSIFIERS", ("ideal", "ml", "mmse"))
    monkeypatch.setattr(training_figures, "NOISY", ("ml", "mmse"))
    numbers = tmp_path / "numbers.json"
    assert main(["figure20", "--quick", "--out", str(tmp_path), "--json", str(numbers)]) == 0
    assert (tmp_path / "figure20.png").stat().st_size > 20_000
    assert "|error|, Algorithm 1" in capsys.readouterr().out
    errors = checks("figure20", json.loads(numbers.read_text(encoding="utf-8"))["figure20"])
    errors = [c for c in errors if c.label.startswith("T = 13")]
    assert len(errors) == 4
    assert all(c.ours < 2 * c.at_most for c in errors)  # two splits are few


@pytest.mark.slow
@pytest.mark.data
def test_every_figure_is_drawn_and_what_is_compared_is_measured(ionosphere, few_strengths, tmp_path):
    pytest.importorskip("matplotlib")
    for name, draw in {**training_figures.TRAINING_FIGURES, **equivalence.EQUIVALENCE}.items():
        _, ours = draw(tmp_path, quick=True)
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000
        known = [label for label in expected()[name]["limits"] if "T = 5" not in label and "T = 9" not in label]
        assert set(known) <= set(ours), name


@pytest.mark.slow
@pytest.mark.data
def test_thirteen_labelers_train_as_well_as_the_truth(ionosphere):
    runs = training.ionosphere_runs(20, 13)
    ideal = np.array([run.chosen["ideal"].actual for run in runs])
    for name in ("ml", "mmse"):
        actual = np.array([run.chosen[name].actual for run in runs])
        assert abs((actual - ideal).mean()) < 0.01, name
        assert np.abs([run.auc[name][0] - run.chosen[name].actual for run in runs]).mean() < 0.02, name
        assert np.mean([run.chosen[name].regret for run in runs]) < 0.01, name
