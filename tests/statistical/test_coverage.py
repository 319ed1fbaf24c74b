"""Do 95% intervals hold the truth 95% of the time? Seeded simulations with a known truth.

Binomial tolerance: a right interval holds fewer than `fewest(n)` of n truths with probability 0.005; the seeds are
fixed, so a test that passes keeps passing until the intervals change. Intervals 20% too narrow cover 88.3%, and are
found from 300 independent cases with probability 0.96 (`power(300)`), from 150 with 0.69 and from 60 with 0.26. So the
small test of learned noise is a guard against gross faults, as the majority vote is one: it covers one case in four.
"""

import numpy as np
import pytest
from coverage_runs import KNOWN_METRICS, TOO_NARROW, fewest, known_runs, learned_runs, many_class_runs, power


def few_known():
    return known_runs(150, 300, 1000)


def few_learned():
    return learned_runs(60, 500, (150, 350), 2000)


def test_tolerance_would_find_narrow_intervals():
    assert power(300) > 0.95
    assert power(60) < 0.5


def test_known_noise_covers():
    cases = few_known()
    # Recall and false-alarm rate rest on the items of different classes: nearly 300 independent cases.
    both = cases["bayes", "recall"] + cases["bayes", "false_alarm_rate"]
    assert both.hits() >= fewest(len(both))
    for name in KNOWN_METRICS:
        assert cases["bayes", name].hits() >= fewest(len(cases["bayes", name])), name
    assert both.coverage() < 0.99


def test_narrower_intervals_would_be_found_on_these_runs():
    cases = few_known()
    both = cases["bayes", "recall"] + cases["bayes", "false_alarm_rate"]
    assert both.hits(shrunk=TOO_NARROW) < fewest(len(both))


def test_mmse_regions_cover_clearly_less_at_the_same_error():
    cases = few_known()
    for name in ("accuracy", "recall", "false_alarm_rate"):
        mmse, bayes = cases["mmse", name], cases["bayes", name]
        assert 0.55 < mmse.coverage() < 0.85, name
        assert mmse.coverage() < bayes.coverage() - 0.08, name
        assert bayes.mean_absolute_error() < mmse.mean_absolute_error() + 0.002, name


def test_learned_noise_covers_where_the_majority_does_not():
    cases = few_learned()
    assert cases["classifier"].hits() >= fewest(60)
    assert cases["majority"].coverage() < 0.5


def test_learned_noise_covers_with_many_classes():
    """Of eleven votes of a labeler on each class: with priors of their own, intervals held in 9 of 24, .03 too high."""
    cases = many_class_runs(24, 300, (100, 200), 3000)
    assert cases.hits() >= fewest(24)
    assert abs(np.mean(np.subtract(cases.mean, cases.true))) < 0.012


def test_learned_noise_covers_the_labelers_too():
    cases = few_learned()["labelers"]
    # Labelers of one data set share its items, so this is not binomial with all of them; 0.925 is what a right
    # interval stays above if they are worth a third of their number.
    assert len(cases) > 500
    assert cases.hits() >= fewest(len(cases) // 3) / (len(cases) // 3) * len(cases)


def test_learned_noise_is_nearly_unbiased():
    cases = few_learned()["classifier"]
    error = np.array(cases.mean) - cases.true
    assert abs(error.mean()) < 3 * error.std(ddof=1) / np.sqrt(len(error)) + 0.003


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", KNOWN_METRICS)
def test_known_noise_covers_in_many_runs(name):
    cases = known_runs(1000, 500, 10_000)["bayes", name]
    assert 0.935 <= cases.coverage() <= 0.965  # 2.2 standard errors either way


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("n_items", "most"), [(20, 0.995), (40, 0.985), (70, 0.98)])
def test_known_noise_covers_in_small_samples(n_items, most):
    cases = known_runs(600, n_items, 20_000)
    for name in KNOWN_METRICS:
        # With few items the shortest set of values that holds 95% holds more.
        assert 0.93 <= cases["bayes", name].coverage() <= most, name


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_learned_noise_covers_in_many_runs():
    cases = learned_runs(400, 1000, (300, 1000), 30_000)
    assert cases["classifier"].hits() >= fewest(400)
    assert cases["majority"].coverage() < 0.4
    assert power(400) > 0.97
