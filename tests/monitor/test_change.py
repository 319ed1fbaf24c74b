"""The test of one share: exact, and false with the chance that is promised."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import hypergeom, t

from trueup.monitor import change as module
from trueup.monitor.change import WINDOWS, dispersions, find_change, share_of_look

SIZES = np.full(14, 200)


def counts_with(last: int) -> np.ndarray:
    """Twelve batches that hardly differ, one that is as they are, and a last one with so many hits."""
    return np.array([*np.tile([165, 167, 166, 166], 3), 166, last])


def p_value(hits: np.ndarray, window: int) -> float:
    """Twice the smaller tail, from scipy."""
    law = hypergeom(SIZES.sum(), hits.sum(), SIZES[-window:].sum())
    newest = hits[-window:].sum()
    return min(2 * min(law.cdf(newest), law.sf(newest - 1)), 1.0)


def from_items_alone(log_values: np.ndarray, squares: np.ndarray, n_telling: np.ndarray) -> np.ndarray:
    """In place of `_given_dispersion`: batches differ by their items and nothing else."""
    return np.exp(log_values)


def is_due(hits: np.ndarray, budget: float) -> bool:
    """Whether a look at the last batch must raise an alarm, with ten batches of a baseline."""
    return any(p_value(hits, w) <= budget * share_of_look(4) * WINDOWS[w] for w in (1, 2, 3))


def test_the_shares_of_looks_and_windows_are_at_most_one():
    assert sum(WINDOWS.values()) == pytest.approx(1)
    looks = np.arange(1, 10**6)
    assert 0.7 < share_of_look(looks).sum() < 1 - 1 / np.log(10**7)  # what is beyond is the integral


def test_an_alarm_is_raised_exactly_where_the_p_value_is_within_its_share(monkeypatch):
    monkeypatch.setattr(module, "_given_dispersion", from_items_alone)
    due = [is_due(counts_with(last), 0.05) for last in range(200)]
    raised = [find_change(counts_with(last), SIZES, false_alarms=0.05, baseline=10) for last in range(200)]
    assert [one is not None for one in raised] == due
    assert 120 < due.index(False) < 166 < 199 - due[::-1].index(False) + 1
    # The threshold is met to a count: a fifth more would raise an alarm where this does not.
    edge = due.index(False)
    values = [p_value(counts_with(edge), w) / WINDOWS[w] for w in (1, 2, 3)]
    just_enough = 1.001 * min(values) / share_of_look(4)
    assert find_change(counts_with(edge), SIZES, false_alarms=0.8 * just_enough, baseline=10) is None
    assert find_change(counts_with(edge), SIZES, false_alarms=just_enough, baseline=10) is not None


def test_what_is_told_of_a_change():
    hits = np.array([*np.tile([165, 167, 166, 166], 4), 130, 131, 128])
    change = find_change(hits, np.full(19, 200), false_alarms=0.05, baseline=10)
    assert (change.first, change.look) == (16, 16)
    assert change.before == pytest.approx(hits[:16].sum() / 3200)
    assert change.after == 0.65
    assert (change.n_before, change.n_after) == (3200, 200)
    assert 0 < change.chance <= 0.05


@pytest.mark.parametrize("share", [0.5, 0.83, 0.99])
def test_false_alarms_are_rarer_than_promised_at_every_look_at_once(share):
    """At a permitted 40% there is enough to count."""
    rng = np.random.default_rng([1, int(100 * share)])
    sizes = np.full(120, 50)
    runs = [find_change(rng.binomial(50, share, 120), sizes, false_alarms=0.4, baseline=5) for _ in range(200)]
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


def test_batches_that_differ_among_themselves_raise_fewer_alarms_than_they_would(monkeypatch):
    rng = np.random.default_rng(3)
    sizes = np.full(110, 200)
    runs = [rng.binomial(200, np.clip(0.83 + 0.04 * rng.standard_normal(110), 0, 1)) for _ in range(40)]

    def n_alarms() -> int:
        return sum(find_change(hits, sizes, false_alarms=0.05, baseline=10) is not None for hits in runs)

    allowed_for = n_alarms()
    monkeypatch.setattr(module, "_given_dispersion", from_items_alone)
    assert allowed_for <= 6
    assert n_alarms() >= 30


@pytest.mark.parametrize(
    ("n_items", "spread", "baseline"), [(200, 0.02, 10), (2000, 0.02, 10), (2000, 0.05, 5), (2000, 0.05, 3)]
)
def test_how_much_batches_differ_is_not_taken_for_known(n_items, spread, baseline):
    """Few batches tell of it; taken for known, great batches raised two to six times what is permitted."""
    rng = np.random.default_rng([5, n_items, baseline])
    n_batches, sizes = baseline + 80, np.full(baseline + 80, n_items)
    shares = np.clip(0.82 + spread * rng.standard_normal((200, n_batches)), 0, 1)
    runs = [find_change(hits, sizes, false_alarms=0.05, baseline=baseline) for hits in rng.binomial(n_items, shares)]
    assert np.mean([run is not None for run in runs]) <= 0.05


def test_a_fall_is_still_seen_soon_where_items_explain_how_batches_differ():
    """From 84.4% to 74.6% after 30 batches: with the test of Student alone 7 of 10 are seen within three batches."""
    rng = np.random.default_rng(6)
    shares = np.where(np.arange(33) < 30, 0.844, 0.746)
    runs = rng.binomial(200, shares, size=(300, 33))
    found = [find_change(hits, np.full(33, 200), false_alarms=0.03, baseline=10) for hits in runs]
    assert np.mean([one is not None and one.look >= 30 for one in found]) > 0.85


def test_p_values_are_exact_or_those_of_student_where_that_is_clear():
    scores, n = np.array([2.0, 4.0, 6.0]), np.full(3, 200)
    exact = log_ndtr(-scores) + np.log(2)
    assert np.exp(exact) == pytest.approx(module._given_dispersion(exact, n * 0.9, n), rel=0.1)
    far = log_ndtr(-10 * scores) + np.log(2)
    assert module._given_dispersion(far, n * 100.0, n) == pytest.approx(2 * t(200).sf(scores), rel=0.05)
    few = np.full(3, 5)  # here the prior is a fifth of a residual more
    assert module._given_dispersion(far, few * 100.0, few) == pytest.approx(2 * t(5).sf(scores), rel=0.25)
    # Beyond what a number can hold, still a matter of how much batches differ.
    beyond = np.array([-1e5])
    assert 0.01 < module._given_dispersion(beyond, np.array([9 * 1e5]), np.array([9]))[0] < 1


def test_dispersion_is_one_for_items_alone_and_knows_only_what_was_before():
    rng = np.random.default_rng(4)
    even = dispersions(rng.binomial(200, 0.8, 2000), np.full(2000, 200))
    assert even[-1] == pytest.approx(1, abs=0.1)
    hits = rng.binomial(200, 0.8, 30)
    other = np.concatenate([hits[:20], np.zeros(10, dtype=int)])
    assert (dispersions(hits, np.full(30, 200))[:21] == dispersions(other, np.full(30, 200))[:21]).all()
    assert (even >= 1).all()


@pytest.mark.parametrize("hits", [np.zeros(30, dtype=int), np.full(30, 200)])
def test_a_share_of_nothing_or_all_is_no_alarm(hits):
    assert find_change(hits, np.full(30, 200), false_alarms=0.05, baseline=10) is None
