"""The test of one share: exact, soon, and false with the chance that is promised."""

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from trueup.monitor import change as module
from trueup.monitor.change import WINDOWS, find_change, spent

SIZES = np.full(14, 200)


def counts_with(last: int) -> np.ndarray:
    """Twelve batches that hardly differ, one that is as they are, and a last one with so many hits."""
    return np.array([*np.tile([165, 167, 166, 166], 3), 166, last])


def p_value(hits: np.ndarray, window: int) -> float:
    """Twice the smaller tail, from scipy."""
    law = hypergeom(SIZES.sum(), hits.sum(), SIZES[-window:].sum())
    newest = hits[-window:].sum()
    return min(2 * min(law.cdf(newest), law.sf(newest - 1)), 1.0)


def from_items_alone(log_value: float, log_likelihoods: np.ndarray, factor: float) -> float:
    """In place of `_given_dispersion`: batches differ by their items and nothing else."""
    return np.exp(log_value)


def part_of(window: int) -> float:
    """Of the look at the last batch, with ten batches of a baseline."""
    return (spent(14, baseline=10) - spent(13, baseline=10)) * WINDOWS[window] / sum(WINDOWS[w] for w in (1, 2, 3))


def is_due(hits: np.ndarray, budget: float) -> bool:
    """Whether a look at the last batch must raise an alarm."""
    return any(p_value(hits, w) <= budget * part_of(w) for w in (1, 2, 3))


def test_the_parts_of_looks_and_windows_are_one_together():
    assert sum(WINDOWS.values()) == pytest.approx(1)
    for baseline in (2, 10):
        parts = spent(np.arange(1, 10**6), baseline=baseline)
        assert (np.diff(parts) >= 0).all()
        assert (parts[:baseline] == 0).all()
        assert 0.99 < parts[-1] < 1


def test_an_alarm_is_raised_exactly_where_the_p_value_is_within_its_part(monkeypatch):
    monkeypatch.setattr(module, "_given_dispersion", from_items_alone)
    due = [is_due(counts_with(last), 0.05) for last in range(200)]
    raised = [find_change(counts_with(last), SIZES, false_alarms=0.05, baseline=10) for last in range(200)]
    assert [change is not None for change in raised] == due
    assert 120 < due.index(False) < 166 < 199 - due[::-1].index(False) + 1
    # The threshold is met to a count: a fifth more would raise an alarm where this does not.
    edge = due.index(False)
    just_enough = 1.001 * min(p_value(counts_with(edge), w) / part_of(w) for w in (1, 2, 3))
    assert find_change(counts_with(edge), SIZES, false_alarms=0.8 * just_enough, baseline=10) is None
    assert find_change(counts_with(edge), SIZES, false_alarms=just_enough, baseline=10) is not None


@pytest.mark.parametrize("share", [0.5, 0.83, 0.99])
def test_false_alarms_are_rarer_than_promised_at_every_look_at_once(share):
    """At a permitted 40% there is enough to count."""
    rng = np.random.default_rng([1, int(100 * share)])
    sizes = np.full(120, 50)
    runs = [find_change(rng.binomial(50, share, 120), sizes, false_alarms=0.4, baseline=2) for _ in range(200)]
    assert np.mean([run is not None for run in runs]) < 0.25


def test_the_p_values_are_not_smaller_than_chance_makes_them():
    """Under exchangeability a p-value is below u with a chance of at most u; twice as often would be seen."""
    rng = np.random.default_rng(2)
    n_all, hits_all, n = 1000, 800, 200
    drawn = rng.hypergeometric(hits_all, n_all - hits_all, n, size=4000)
    values = np.exp([module._log_two_sided(int(x), n, hits_all, n_all) for x in drawn])
    for level in (0.05, 0.2, 0.5):
        share = (values <= level).mean()
        assert 0.7 * level < share < level + 3 * np.sqrt(level / 4000)


def runs_of(shares: np.ndarray, n_items: int, *, false_alarms: float, baseline: int, seed: int) -> list:
    """What is found in each run of batches with these shares."""
    hits = np.random.default_rng(seed).binomial(n_items, np.clip(shares, 0, 1))
    sizes = np.full(hits.shape[1], n_items)
    return [find_change(run, sizes, false_alarms=false_alarms, baseline=baseline) for run in hits]


@pytest.mark.parametrize("baseline", [2, 3, 4])
def test_a_fall_after_four_batches_is_seen_by_the_sixth(baseline):
    """The step itself does not count as dispersion; of 500 runs benchmarks/judges.py."""
    before = np.random.default_rng(7).uniform(0.83, 0.87, (300, 4))
    shares = np.hstack([before, np.tile([0.67, 0.71], (300, 1))])
    found = runs_of(shares, 150, false_alarms=0.04, baseline=baseline, seed=8)
    assert np.mean([change is not None and change.first >= 3 for change in found]) >= 0.87


@pytest.mark.parametrize(("n_items", "spread"), [(150, 0.0), (150, 0.02), (2000, 0.02)])
@pytest.mark.parametrize("baseline", [2, 10])
def test_how_much_batches_differ_is_not_taken_for_known(n_items, spread, baseline):
    """Few batches tell of it; taken for known, great batches raised two to six times what is permitted."""
    shares = 0.85 + spread * np.random.default_rng([5, n_items]).standard_normal((150, 50))
    found = runs_of(shares, n_items, false_alarms=0.05, baseline=baseline, seed=6)
    assert sum(change is not None for change in found) <= binom(len(found), 0.05).ppf(0.999)


def test_batches_that_differ_among_themselves_raise_fewer_alarms_than_they_would(monkeypatch):
    shares = 0.83 + 0.04 * np.random.default_rng(3).standard_normal((40, 110))

    def n_alarms() -> int:
        return sum(change is not None for change in runs_of(shares, 200, false_alarms=0.05, baseline=10, seed=4))

    allowed_for = n_alarms()
    monkeypatch.setattr(module, "_given_dispersion", from_items_alone)
    assert allowed_for <= 6
    assert n_alarms() >= 30


def test_p_values_are_the_mean_over_the_deviations_between_batches():
    """Against the same integral on a finer grid, and without bounds on how small a p-value is."""
    hits, sizes = np.array([127, 124, 130, 127, 126, 101]), np.full(6, 150)
    likelihoods = module._log_likelihoods(hits[:5], sizes[:5]).sum(axis=0)
    value = module._given_dispersion(-12.0, likelihoods, 125.0)
    assert value > np.exp(-12.0)
    dense = np.exp(np.linspace(np.log(1e-5), np.log(3.0), 20_000))
    weights = dense / (1 + dense**2 / (3 * 0.017**2)) ** 2
    given = np.interp(np.log(dense), np.log(module._DEVIATIONS), likelihoods)
    score = -hypergeom_score(-12.0) / np.sqrt(1 + 4 * 125.0 * dense**2)
    expected = (weights * np.exp(given) * 2 * module.ndtr(score)).sum() / (weights * np.exp(given)).sum()
    assert value == pytest.approx(expected, rel=0.1)
    assert 0 < module._given_dispersion(-1e5, likelihoods, 125.0) < 1


def hypergeom_score(log_value: float) -> float:
    """The normal score of a two-sided p-value."""
    return -float(module.ndtri_exp(log_value - np.log(2)))


@pytest.mark.parametrize("hits", [np.zeros(30, dtype=int), np.full(30, 200)])
def test_a_share_of_nothing_or_all_is_no_alarm(hits):
    assert find_change(hits, np.full(30, 200), false_alarms=0.05, baseline=2) is None
