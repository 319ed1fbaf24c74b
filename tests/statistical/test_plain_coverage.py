"""Do plain 95% intervals hold the truth 95% of the time where crowds err as the prior says?

Coefficients are drawn from the prior, truths given these, and items to check at random: the right interval of such
worlds holds exactly. `fewest` and `TOO_NARROW` are as in test_coverage. Intervals 20% too narrow are found from all
cases together (`power`); 50 of one kind find gross faults of that kind alone.
"""

from dataclasses import replace

import numpy as np
import pytest
from coverage_runs import TOO_NARROW, Cases, fewest, power

import trueup as tu
from trueup.answers.compare import compare_again
from trueup.answers.evaluate import evaluate_again
from trueup.core import truth as truth_of_core
from trueup.core.posterior import draw_theta, draw_truths

N_ITEMS = 300
N_CASES = 50


def worlds(core, seed):
    """Truths of all items, one for each θ of the prior."""
    core = replace(core, may_sample=False)
    rng = np.random.default_rng(seed)
    theta = draw_theta(core.recalibration, None, n_points=128, rng=rng)
    truths, _ = draw_truths(core.rows, theta, np.full(len(core.base), -1), each=1, rng=rng)
    return rng.permutation(truths)


def with_checks(labels, truth, n_checks, seed):
    """Labels with some random items checked."""
    at = np.random.default_rng(seed).choice(len(truth), n_checks, replace=False)
    names, classes = labels.items.tolist(), labels.classes.tolist()
    return labels.with_gold({names[i]: classes[truth[i]] for i in at}, drawn="random")


def crowd(n_classes):
    return tu.simulate.dawid_skene(
        n_items=N_ITEMS, n_classes=n_classes, n_labelers=5, accuracy=0.75, random_state=n_classes
    )


def of_one(n_classes, metric, n_checks, seed):
    sim = crowd(n_classes)
    first = tu.evaluate(sim.predictions, sim.labels, metrics=[metric], check_dependence=False)
    cases, outputs = Cases(), first.core.codes[0]
    for k, truth in enumerate(worlds(first.core, seed)[:N_CASES]):
        again = evaluate_again(first, with_checks(sim.labels, truth, n_checks, [seed, k]), random_state=k)
        asked = truth == 1 if metric == "recall" else np.ones(N_ITEMS, dtype=bool)
        cases.add(float((outputs[asked] == truth[asked]).mean()), again[metric])
    return cases


def of_differences(n_systems, n_checks, seed):
    """The first minus the second of some systems, in worlds of these two."""
    sim, rng = crowd(2), np.random.default_rng(seed)
    flipped = rng.random((n_systems - 1, N_ITEMS)) < np.linspace(0.25, 0.1, n_systems - 1)[:, None]
    systems = {"s0": sim.predictions}
    systems |= {
        f"s{k}": np.where(row, 1 - np.asarray(sim.predictions), sim.predictions) for k, row in enumerate(flipped, 1)
    }
    first = tu.compare(systems, sim.labels, check_dependence=False)
    cases, (one, other) = Cases(), first.core.codes[:2]
    for k, truth in enumerate(worlds(first.core.of_systems([0, 1]), seed)[:N_CASES]):
        again = compare_again(first, with_checks(sim.labels, truth, n_checks, [seed, k]), random_state=k)
        cases.add(float((one == truth).mean() - (other == truth).mean()), again.difference("s0", "s1"))
    return cases


@pytest.fixture
def some_for_all(monkeypatch):
    """Pools so large that some items stand for all: the interval is that of all items."""
    with monkeypatch.context() as patch:
        patch.setattr(truth_of_core, "MOST_ITEMS", N_ITEMS // 2)
        patch.setattr("trueup.core.parts._OF_ALL", N_ITEMS // 3)
        patch.setattr("trueup.core.parts._OF_A_GROUPING", N_ITEMS // 6)
        sim = crowd(2)
        core = tu.evaluate(sim.predictions, sim.labels, check_dependence=False).core
        assert core.truth.times.sum() == pytest.approx(N_ITEMS)
        return of_one(2, "accuracy", 20, 5)


@pytest.fixture
def of_two_among_many(monkeypatch):
    """Systems so many that each has a model of its own, and each pair that is compared."""
    with monkeypatch.context() as patch:
        patch.setattr(truth_of_core, "MOST_TOGETHER", 2)
        return of_differences(3, 20, 6)


def test_plain_intervals_cover_and_narrower_ones_would_not(some_for_all, of_two_among_many):
    kinds = {
        "accuracy, 5 checks": of_one(2, "accuracy", 5, 20),
        "accuracy, 20 checks": of_one(2, "accuracy", 20, 21),
        "recall, 20 checks": of_one(2, "recall", 20, 20),
        "four classes, 20 checks": of_one(4, "accuracy", 20, 20),
        "difference, 20 checks": of_differences(2, 20, 4),
        "some items for all, 20 checks": some_for_all,
    }
    # Of many systems each has a model of its own, so differences of two are approximate: 88% of 250 held.
    assert of_two_among_many.hits() >= fewest(len(of_two_among_many), level=0.88)
    for name, cases in kinds.items():
        assert cases.hits() >= fewest(len(cases)), name
    together = sum(kinds.values(), Cases())
    assert power(len(together)) > 0.95
    assert together.hits() >= fewest(len(together))
    assert together.hits(shrunk=TOO_NARROW) < fewest(len(together))
    assert together.coverage() < 0.99
