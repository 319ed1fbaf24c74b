"""The benchmark of scale, small: what it measures is the same, and the cluster on paper behaves like one."""

import numpy as np
import pytest

from benchmarks._scale_model import Costs, iteration_seconds, plan

COSTS = Costs(vote=1e-8, task=1e-4, byte=1e-9, spread=0.1)


def seconds(n_workers, *, n_files=64, n_votes=1e8, table=1e5, costs=COSTS):
    return iteration_seconds(costs, n_votes, n_workers, n_files, table, np.random.default_rng(0))


def test_workers_share_the_votes():
    one, two = seconds(1)[0], seconds(2)[0]
    assert one == pytest.approx(1.0, rel=0.1)  # 10⁸ votes at 10 ns
    assert 1.8 < one / two <= 2.01


def test_more_workers_than_files_are_idle():
    assert seconds(64)[1]["workers"] == seconds(1000)[1]["workers"]


def test_stragglers_hold_all_up():
    even, uneven = (seconds(64, costs=Costs(1e-8, 1e-4, 1e-9, spread))[1]["workers"] for spread in (0.0, 0.8))
    assert uneven > 2 * even


def test_large_tables_are_what_breaks_first():
    small, large = (plan(COSTS, 1e9, labelers, 10, 64, 640) for labelers in (1e3, 1e7))
    assert (small.limit, large.limit) == ("workers", "tables")
    assert large.worker_gigabytes > 50


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
