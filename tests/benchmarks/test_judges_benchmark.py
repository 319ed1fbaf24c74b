"""The figures of judges: worlds as they are described, and sums by formula."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._coverage_tally import error_over_runs
from benchmarks._judges_rate import GOLD, gate_errors, summarise_rate, verdicts_of
from benchmarks._judges_slices import (
    FAVOURING,
    N_JUDGES,
    N_SLICES,
    REFITTED,
    SIZES,
    TOGETHER,
    TOGETHER_SAMPLE,
    WORLDS,
    false_discoveries,
    make,
    summarise_slices,
    worst_by_size,
)
from benchmarks.judges import FIGURES


@pytest.mark.parametrize("n_judges", [1, 3])
def test_a_judge_is_right_as_often_as_said(n_judges: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=40_000)
    verdicts = verdicts_of(truth, n_judges, rng)
    assert verdicts.shape == (40_000, n_judges)
    right = verdicts == truth[:, None]
    assert right[truth == 1].mean() == pytest.approx(0.9, abs=0.01)
    assert right[truth == 0].mean() == pytest.approx(0.8, abs=0.01)
    if n_judges == 3:
        errors = 1.0 - right[truth == 1]
        assert np.corrcoef(errors.T)[0, 1] == pytest.approx(0.25, abs=0.03)  # both repeat the family half of the time


@pytest.mark.parametrize("world", WORLDS)
def test_slices_are_of_their_sizes(world: str) -> None:
    made = make(world, np.random.default_rng(1))
    sizes = np.bincount(made.topic)
    assert len(sizes) == N_SLICES
    assert sizes.min() >= SIZES[0]
    assert sizes.max() <= SIZES[1]
    assert made.labels.n_items == len(made.truth) == sizes.sum()
    assert made.labels.item_column("topic").tolist() == made.topic.tolist()


def test_judges_who_favour_a_slice_let_failures_of_it_pass_together() -> None:
    made = make(FAVOURING, np.random.default_rng(2))
    item, _, answer, times = made.labels.vote_table()
    passes = np.bincount(item, answer * times) == N_JUDGES
    failures = made.truth == 0
    favoured = made.topic == made.favoured
    assert passes[failures & favoured].mean() > 0.2
    assert passes[failures & ~favoured].mean() < 0.03  # .2 to the third


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


def test_tables_have_a_row_for_each_answer() -> None:
    ends = {"true": 0.5, "mean": 0.5, "low": 0.4, "high": 0.6, "equal_low": 0.4, "equal_high": 0.6}
    rows = [
        {"world": "1 judge", "seed": 1, "answer": answer, "n_gold": n, "met": 0.5, "missed": 0.5, **ends}
        for answer in ("trueup", "PPI++")
        for n in GOLD
    ]
    assert summarise_rate(rows * 3).numbers["1 judge, 40 vetted, trueup"]["× PPI++"] == 1.0
    world = next(iter(WORLDS))
    about = {"world": world, "lower": True, "named": True, **ends}
    rows = [
        {"seed": k, "slice": k, "n_items": k, "favoured": False, "answer": answer, **about}
        for k in range(6)
        for answer in (TOGETHER, TOGETHER_SAMPLE, REFITTED)
    ]
    numbers = summarise_slices(rows).numbers
    assert numbers[f"{world}, {TOGETHER_SAMPLE}"]["ratio"] == 1.0
    assert "ratio" not in numbers[f"{world}, {TOGETHER}"]
    assert numbers[f"{world}, {TOGETHER}, named"]["false_discoveries"] == 0.0
    assert "favoured" not in numbers[f"{world}, {TOGETHER}, named"]
    numbers = summarise_slices([{**row, "favoured": row["slice"] == 1} for row in rows]).numbers
    assert numbers[f"{world}, {TOGETHER}, named"]["favoured"] == 1.0


def test_every_section_has_runs_and_quick_ones() -> None:
    assert {"rate", "slices", "clusters"} <= FIGURES.keys()
    assert all(figure.n_quick < figure.n_runs for figure in FIGURES.values())
