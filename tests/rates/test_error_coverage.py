"""Intervals with an estimated mislabeling rate hold the true error 95% of the time; the plug-in interval does not."""

import itertools

import numpy as np
import pytest
from scipy import stats

from benchmarks.rates import CHECKED, ERRORS, MISLABELINGS, Cell, coverage, matrix_coverage


def tolerance(runs, share=0.95):
    """Where the share of a binomial variable lies with probability 0.999."""
    return np.asarray(stats.binom.interval(0.999, runs, share)) / runs


@pytest.mark.parametrize("n_checked", CHECKED)
def test_score_intervals_hold_and_the_plug_in_does_not(n_checked):
    # 1000 runs; 95 ± 2 percent is asked of the mean, and each cell must be within its sampling error of that.
    cells = [Cell(e, eps, 1000, n_checked) for e, eps in itertools.product((0.03, 0.2), (0.05, 0.2))]
    found = [coverage(cell, runs=1000, seed=5, methods=("score",)) for cell in cells]
    held = np.array([each["score"][0] for each in found])
    assert 0.93 <= held.mean() <= 0.97
    low, _ = tolerance(1000, 0.93)
    _, high = tolerance(1000, 0.97)
    assert (held >= low).all()
    assert (held <= high).all()
    assert np.mean([each["plug-in"][0] for each in found]) < 0.85


def test_more_classes_are_covered_too():
    found = coverage(Cell(0.1, 0.1, 500, 100, n_classes=5), runs=1000, seed=6, methods=("score", "delta"))
    low, high = tolerance(1000)
    assert low <= found["score"][0] <= high
    assert found["plug-in"][0] < low


def test_errors_from_matrices_are_covered():
    found = matrix_coverage(500, 50, runs=300, seed=7)
    low, high = tolerance(300)
    assert low <= found["delta"][0] <= high
    assert low <= found["bootstrap"][0] <= high
    assert found["plug-in"][0] < low


@pytest.mark.slow
@pytest.mark.parametrize("n_checked", CHECKED)
@pytest.mark.parametrize("n", [200, 1000, 5000])
def test_score_intervals_hold_on_the_whole_grid(n, n_checked):
    cells = [Cell(e, eps, n, n_checked) for e, eps in itertools.product(ERRORS, MISLABELINGS)]
    found = [coverage(cell, runs=2000, seed=8, methods=("score",)) for cell in cells]
    held = np.array([each["score"][0] for each in found])
    assert 0.93 <= held.mean() <= 0.97
    assert held.min() >= tolerance(2000, 0.93)[0]
    assert held.max() <= tolerance(2000, 0.97)[1]
