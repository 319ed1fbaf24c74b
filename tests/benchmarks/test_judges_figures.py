"""The figures of ratings and preferences: small runs have the rows that are summed up, and rivals are counted right."""

import numpy as np
import pytest

import trueup as tu
from benchmarks import _judges_preferences, _judges_ratings
from benchmarks._results import tables_in
from benchmarks._runs import Case

FEW = {"n_chains": 2, "n_warmup": 60, "n_draws": 80}


def rows_of(run, world, seed):
    return [{"world": world, "seed": seed, **row} for row in run(Case(world, seed))]


def test_ratings_are_held_against_the_truth(monkeypatch):
    monkeypatch.setattr(_judges_ratings, "SAMPLING", FEW)
    monkeypatch.setattr(_judges_ratings, "N_ITEMS", 60)
    rows = rows_of(_judges_ratings.run_ratings, _judges_ratings.MODEL, 1)
    assert [row["quantity"] for row in rows] == list(_judges_ratings.QUANTITIES)
    (table,) = tables_in(_judges_ratings.summarise_ratings(rows))
    assert [row[0] for row in table.rows] == list(_judges_ratings.QUANTITIES)
    assert "coverage %" in table.head


@pytest.mark.parametrize("world", ["eight systems", "one order"])
def test_preferences_are_held_against_the_truth(world, monkeypatch):
    monkeypatch.setattr(_judges_preferences, "SAMPLING", FEW)
    monkeypatch.setattr(_judges_preferences, "N_CONTESTS", 200)
    text = _judges_preferences.summarise_preferences(rows_of(_judges_preferences.run_preferences, world, 1))
    table = tables_in(text)[0]
    assert table.head[-3:] == list(_judges_preferences.RANKINGS)
    assert 0 <= float(table.cell(world, "trueup")) <= 50
    assert abs(float(table.cell(world, "bias off"))) < 0.2


def test_rivals_count_as_they_say():
    rows = [(1, "j", "a", "b", 0, 0), (1, "k", "a", "b", 0, 0), (1, "l", "a", "b", 0, 1), (2, "j", "a", "b", 0, 1)]
    sim = tu.simulate.PairSimulation(tu.Pairs.from_rows(rows), np.array([0, 1]), np.array([1.0, 0.0]), np.empty(0))
    assert _judges_preferences._by_counting(sim).tolist() == [0.5, 0.5]
    assert _judges_preferences._by_majority(sim).tolist() == [0.5, 0.5]
    assert _judges_preferences._swaps(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0])) == pytest.approx(1 / 3)
