"""The benchmark of scale, small: what it measures is the same, and the cluster on paper behaves like one."""

from itertools import product

import pytest

from benchmarks._scale_model import COSTS, Case, amounts, fitted_costs, plan, predicted_seconds

ONE = {
    "iteration": 5e-3,
    "task": 1e-4,
    "vote": 1e-8,
    "doubling": 1e-10,
    "shared": 0.0,
    "block": 1e-10,
    "sent": 1e-9,
}


def case(n_workers, *, n_files=64, n_votes=1e8, n_labelers=1e3):
    return Case(n_votes, n_files, n_labelers, n_workers)


def test_workers_share_the_votes():
    one, two = (predicted_seconds(ONE, case(n), 0.1) for n in (1, 2))
    assert one == pytest.approx(1.0, rel=0.1)  # 10⁸ votes at 10 ns
    assert 1.8 < one / two <= 2.01


def test_workers_of_one_machine_share_it():
    crowded = {**ONE, "shared": 1e-8}
    one, two = (predicted_seconds(crowded, case(n), 0.0) for n in (1, 2))
    assert one == pytest.approx(two, rel=0.05)


def test_more_workers_than_files_are_idle():
    assert amounts(case(64), 0.1) == amounts(case(1000), 0.1)


def test_eight_files_of_a_worker_are_one_task():
    assert amounts(case(8), 0.0)["task"] == 8 + 1  # and one that adds up
    assert amounts(case(1, n_files=9), 0.0)["task"] == 2 + 1


def test_stragglers_hold_all_up():
    even, uneven = (amounts(case(64), spread)["vote"] for spread in (0.0, 0.8))
    assert uneven > 2 * even


def test_large_tables_are_what_breaks_first():
    small, large = (plan(ONE, Case(1e9, 640, labelers, 64, classes=10), 0.1) for labelers in (1e3, 1e7))
    assert (small.limit, large.limit) == ("workers", "tables")
    assert large.worker_gigabytes > 50


def test_costs_are_found_again_in_what_they_predict():
    cases = [Case(*sizes) for sizes in product((2e5, 5e6), (4, 24), (1e3, 1e5), (1, 2))]
    costs = {**ONE, "shared": 2e-9}
    found = fitted_costs(cases, [predicted_seconds(costs, one, 0.1) for one in cases], 0.1)
    assert list(found) == list(COSTS)
    assert found == pytest.approx(costs, rel=1e-6)


def test_both_kernels_are_measured_on_the_same_answer():
    pytest.importorskip("numba")
    from benchmarks._scale_machine import kernels

    section = kernels(quick=True)  # raises where they differ
    assert all(ratio > 0 for ratio in section.numbers.values())
    assert len(section.text.splitlines()) == 2 + len(section.numbers)


def test_files_are_written_with_no_item_in_two(tmp_path):
    polars = pytest.importorskip("polars")
    from benchmarks._scale_votes import write_votes

    n_bytes = write_votes(tmp_path, 3000, 3, n_labelers=50)
    frame = polars.read_parquet(tmp_path / "*.parquet")
    assert (frame.height, frame["item"].n_unique()) == (3000, 600)
    assert n_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
