"""The confusion matrix and pairs of metrics where vetted items carry the answer: right in every cell."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu

N_ITEMS, N_VETTED = 500, 120


@pytest.fixture(scope="module")
def world():
    """A quarter of the negatives looks positive to everyone; nobody errs on the positives in that way."""
    rng = np.random.default_rng(5)
    truth = (rng.random(N_ITEMS) < 0.4).astype(int)
    seen = np.where((truth == 0) & (rng.random(N_ITEMS) < 0.25), 1, truth)
    votes = np.where(rng.random((N_ITEMS, 5)) < 0.85, seen[:, None], 1 - seen[:, None])
    predictions = np.where(rng.random(N_ITEMS) < 0.93, seen, 1 - seen)
    drawn = rng.choice(N_ITEMS, N_VETTED, replace=False)
    gold = {int(item): int(truth[item]) for item in drawn}
    labels = tu.Labels.from_matrix(votes).with_gold(gold, drawn="random")
    return labels, predictions, truth


@pytest.fixture(scope="module")
def evaluation(world):
    labels, predictions, _ = world
    return tu.evaluate(predictions, labels, check_dependence=False, n_warmup=100, n_draws=200)


def test_every_cell_is_corrected(world, evaluation):
    """Draws that were corrected for the accuracy alone would not know on which side the errors are."""
    _, predictions, truth = world
    assert evaluation.basis == "gold"
    assert evaluation.metrics[0] == "accuracy"
    by_accuracy = evaluation.engine.rectified(evaluation.metric("accuracy")).truths
    for y in (0, 1):
        for predicted in (0, 1):
            here = predictions == predicted
            true = int((here & (truth == y)).sum())
            cell = evaluation.confusion.cell(y, predicted)
            assert abs(cell.mean - true) < 3 * cell.std, (y, predicted)
    false_alarms = (by_accuracy[:, predictions == 1] == 0).sum(axis=1)
    true = int(((predictions == 1) & (truth == 0)).sum())
    assert abs(false_alarms.mean() - true) > 2 * abs(evaluation.confusion.cell(0, 1).mean - true)


def test_a_pair_agrees_with_each_metric_by_itself(evaluation):
    for pair in (("precision", "recall"), ("accuracy", "recall")):
        joint = evaluation.joint(*pair)
        for axis, name in enumerate(pair):
            alone = evaluation[name]
            assert joint.marginal(axis).mean == pytest.approx(alone.mean, abs=0.5 * alone.std), (pair, name)


def test_from_votes_alone_a_pair_rests_on_votes(evaluation):
    from_votes = evaluation.assuming("independent")
    precision = from_votes.joint("precision", "recall").marginal(0).mean
    assert precision == pytest.approx(from_votes["precision"].mean, abs=0.01)
    assert precision > evaluation["precision"].mean + 0.1  # the crowd hides the false alarms
