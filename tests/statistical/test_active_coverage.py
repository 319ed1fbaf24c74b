"""Do the intervals of an active test hold the truth, although the items were chosen and the votes can be wrong?

40 of 400 items are vetted. Four worlds: the noise model is right and items are drawn evenly; the crowd errs together on
one item in five, which no model of the votes alone can see, with even and with uneven draws; and a crowd that is right
with uneven draws. A right interval holds fewer than `fewest(n)` truths with probability 0.005.
"""

from functools import cache

import numpy as np
import pytest
from coverage_runs import TOO_NARROW, Cases, fewest

import trueup as tu

N_ITEMS, N_VETTED, N_VOTES = 400, 40, 5
WORLDS = {
    "right-even": (0.0, "random"),
    "wrong-even": (0.2, "random"),
    "right-uneven": (0.0, "propensity"),
    "wrong-uneven": (0.2, "propensity"),
}


def world(seed, together):
    """Truth, votes and predictions; on a share of the items every labeler votes for the wrong class."""
    rng = np.random.default_rng([seed, 77])
    truth = rng.integers(2, size=N_ITEMS)
    right = rng.random((N_ITEMS, N_VOTES)) < 0.8
    right[rng.random(N_ITEMS) < together] = False
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    predictions = np.where(rng.random(N_ITEMS) < rng.uniform(0.65, 0.95), truth, 1 - truth)
    return truth, tu.Labels.from_matrix(votes), predictions


@cache
def cases(name, n_runs, **options):
    together, strategy = WORLDS[name]
    found = Cases()
    for seed in range(n_runs):
        truth, labels, predictions = world(seed, together)
        test = tu.ActiveTest(predictions, labels, strategy=strategy, random_state=seed, **options)
        test.tell({item: int(truth[item]) for item in test.ask(N_VETTED)})
        found.add(float((truth == predictions).mean()), test.estimate())
    return found


@pytest.mark.parametrize("name", ["wrong-even", pytest.param("wrong-uneven", marks=pytest.mark.slow)])
def test_few_intervals_hold_the_truth(name):
    """The worlds in which intervals are not too wide anyway: only there a fault of 20% can show."""
    found = cases(name, 60)
    assert found.hits() >= fewest(60), name
    # An interval that holds everything would pass too: it must be no wider than 40 items drawn evenly would give.
    assert np.mean(np.array(found.high) - found.low) < 2 * 1.96 * np.sqrt(0.16 / N_VETTED)


def test_intervals_too_narrow_by_a_fifth_would_be_found():
    assert cases("wrong-even", 60).hits(shrunk=TOO_NARROW) < fewest(60)


def test_believing_the_crowd_would_be_found():
    """The same measure fails the estimator that believes votes which are wrong together."""
    assert cases("wrong-even", 4, estimator="bayes", noise="dawid-skene").hits() < fewest(4)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORLDS))
def test_intervals_hold_the_truth(name):
    found = cases(name, 300)
    assert found.hits() >= fewest(300), (name, found.coverage())
    assert found.coverage() >= 0.92
    if name.startswith("wrong"):  # elsewhere they are wide enough to lose a fifth
        assert found.hits(shrunk=TOO_NARROW) < fewest(300)
