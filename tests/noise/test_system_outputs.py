"""Systems inside the states of the labelers: copies add nothing, and what is expected of them."""

import numpy as np
import pytest

from trueup import Labels, simulate
from trueup.noise import DawidSkene, sample
from trueup.noise.system_outputs import SystemOutputs

VOTES = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])
SAID = np.array([[0, 1, 0, -1], [1, 1, 0, 0]])


def outputs_of(codes, power):
    return SystemOutputs(np.asarray(codes, np.int64), np.full(len(codes), 2), np.full(len(codes), power))


@pytest.mark.parametrize("model", [DawidSkene(), DawidSkene(pooling="auto")], ids=["rows apart", "pooled rows"])
@pytest.mark.parametrize("n_copies", [2, 20])
def test_copies_that_share_a_witness_say_what_one_says(model, n_copies):
    pytest.importorskip("numba")
    sim = simulate.baseline(n_items=300, random_state=0)
    said, labels = np.asarray(sim.predictions), sim.labels

    def drawn(n):
        outputs = outputs_of(np.repeat(said[None], n, axis=0), 1 / n)
        return sample(labels, model, outputs=outputs, n_draws=2000, random_state=0, warn=False)

    one, many = drawn(1), drawn(n_copies)
    right = [(draws.truths == said).mean(axis=1) for draws in (one, many)]
    assert abs(right[0].mean() - right[1].mean()) < 0.3 * right[0].std()
    assert 0.85 < right[1].std() / right[0].std() < 1.15


def test_what_is_expected_of_a_system_falls_with_the_distance_of_classes_in_each_state():
    codes = np.array([[0, 0, 1, 2], [2, 2, 2, -1]])
    outputs = SystemOutputs.of_classes(codes, 3, np.ones(2))
    closeness = np.exp(-np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))))
    prior = outputs.row_prior(3, closeness)
    plain = outputs.row_prior(3)
    np.testing.assert_allclose(prior[0] / prior[2], plain[0] / plain[2] * closeness[0] / closeness[2])
    np.testing.assert_allclose(np.add.reduceat(prior, outputs.first[:-1]), [[2.0] * 3, [2.0] * 3])
    np.testing.assert_allclose(SystemOutputs(codes, np.array([3, 3]), np.ones(2)).row_prior(3, closeness), plain[:6])


def test_a_system_that_always_says_the_same_tells_nothing():
    labels = Labels.from_matrix(VOTES)
    constant, varied = np.ones(len(VOTES), np.int64), np.asarray(SAID, np.int64)[:1]
    unsure = np.where(np.arange(len(VOTES)) == 0, -1, constant)
    how = {"n_chains": 1, "n_warmup": 20, "n_draws": 20, "random_state": 0, "warn": False}
    for model in ("dawid-skene", "ordinal"):
        for said, alone in (([constant, unsure], np.empty((0, len(VOTES)), np.int64)), ([*varied, constant], varied)):
            both = SystemOutputs.of_classes(np.array(said), 2, np.ones(2))
            one = SystemOutputs.of_classes(alone, 2, np.ones(len(alone)))
            truths = [sample(labels, model, outputs=outputs, **how).truths for outputs in (both, one)]
            np.testing.assert_array_equal(*truths)
