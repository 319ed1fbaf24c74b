"""Do intervals hold where twenty experts work at once, hard items take longer, and some have no answer?

The sessions are those of ``benchmarks.serve sessions``, fewer of them. Where every item is answered in the end, it is
the order of the draws that must hold; a right interval holds fewer than `fewest(n)` truths with probability 0.005.
"""

from functools import cache

import numpy as np
import pytest
from coverage_runs import TOO_NARROW, Cases, fewest, power

from benchmarks._serve_sessions import N_OUTCOMES, Experts, World, run_session
from trueup.active.estimators import as_estimate
from trueup.sessions.progress import Counted, count_answers

N_SESSIONS, N_POOLS = 240, 6


@cache
def cases(estimator, *, cannot_tell=0.0, n_sessions=N_SESSIONS):
    """Estimates from the draws that count, and from all answers there are, at the last look of each session."""
    counted, answered = Cases(), Cases()
    worlds = [World(1000 + k) for k in range(N_POOLS)]
    for seed in range(n_sessions):
        world = worlds[seed % N_POOLS]
        run = run_session(world, "random", seed, Experts(later=0.2 - cannot_tell, cannot_tell=cannot_tell))
        progress = run.progress(N_OUTCOMES)
        nothing = np.zeros(len(progress.truth), dtype=bool)
        for found, rule in ((counted, count_answers(progress)), (answered, Counted(progress, nothing, nothing, 0))):
            values = world.estimations[estimator].after(rule, seed=seed).values[:, 0]
            found.add(world.value(), as_estimate(values, (0.0, 1.0), "accuracy"))
    return counted, answered


def test_answers_in_the_order_of_the_draws_hold_the_truth():
    counted, _ = cases("lure")
    assert counted.hits() >= fewest(N_SESSIONS), counted.coverage()


def test_intervals_too_narrow_by_a_fifth_would_be_found():
    counted, _ = cases("lure")
    assert power(N_SESSIONS) > 0.8
    assert counted.hits(shrunk=TOO_NARROW) < fewest(N_SESSIONS)


@pytest.mark.slow
def test_what_nobody_can_tell_is_held_and_leaving_it_out_is_not():
    counted, answered = cases("lure", cannot_tell=0.2)
    assert counted.hits() >= fewest(N_SESSIONS)
    assert answered.hits() < fewest(N_SESSIONS), answered.coverage()


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["rectified", "vetted-only", "ppi++", "lure"])
def test_every_estimator_with_a_warrant_holds(estimator):
    counted, _ = cases(estimator, cannot_tell=0.1, n_sessions=400)
    assert counted.coverage() >= 0.93
