"""The figures of judges: worlds as they are described, and sums by formula."""

import numpy as np
import pytest

from benchmarks._coverage_tally import error_over_runs
from benchmarks._judges_rate import gate_errors
from benchmarks._judges_slices import false_discoveries, worst_by_size


def test_errors_of_gates_and_false_discoveries_are_counted() -> None:
    rows = [{"met": met, "missed": 1 - met} for met in (0.96, 0.5, 0.03, 0.99)]
    assert gate_errors(rows) == (0.5, 0.25)
    named = [
        {"seed": 1, "named": True, "lower": True},
        {"seed": 1, "named": True, "lower": False},
        {"seed": 2, "named": False, "lower": False},
    ]
    rate, _, n_named = false_discoveries(named)
    assert (rate, n_named) == (0.25, 1.0)


def test_the_worst_slice_is_found_by_its_place_among_the_sizes_of_its_data_set() -> None:
    def row(seed: int, n_items: int, high: float) -> dict[str, float]:
        ends = {"low": 0.0, "high": high, "equal_low": 0.0, "equal_high": high}
        return {"seed": seed, "n_items": n_items, "true": 0.5, "mean": 0.3, **ends}

    # The small slice of the second data set misses; it is larger than any of the first.
    assert worst_by_size([row(1, 40, 0.6), row(1, 50, 0.6), row(2, 300, 0.4), row(2, 400, 0.6)]) == 0.5


def test_cases_of_one_run_are_one_for_the_standard_error() -> None:
    held = [True, True, False, False]
    assert error_over_runs(held, [1, 1, 2, 2]) == pytest.approx(0.5)  # shares of 1 and 0
    assert error_over_runs(held, [1, 2, 1, 2]) == 0.0
    assert np.isnan(error_over_runs(held, [1, 1, 1, 1]))
