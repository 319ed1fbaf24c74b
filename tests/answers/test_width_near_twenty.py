"""The answer changes from votes to gold as vetted items come in: its width must not jump at twenty."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.vetted import evaluate_again
from trueup.estimators.truth_draws import mixed_draws

FEW = {"n_warmup": 50, "n_draws": 200, "check_dependence": False}
WORLDS = {
    "difficulty": tu.simulate.shared_difficulty(n_items=300, n_labelers=5, random_state=0),
    "families": tu.simulate.dependent(n_items=300, n_labelers=5, families=[[0, 1, 2]], random_state=3),
    "independent": tu.simulate.dawid_skene(
        n_items=400, n_labelers=5, accuracy=(0.7, 0.9), classifier_accuracy=0.6, random_state=3
    ),
}


def vetted(data, order):
    truths = {data.labels.items[i]: data.truth[i] for i in order}
    return data.labels.with_gold(truths, drawn="random")


def width_of(evaluation):
    low, high = evaluation["accuracy"].interval(0.95)
    return high - low


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
@pytest.mark.parametrize("world", WORLDS)
def test_the_width_does_not_jump_between_19_and_20_vetted_items(world):
    data = WORLDS[world]
    before = tu.evaluate(data.predictions, data.labels, random_state=0, **FEW)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(data.labels.n_items)
        few, enough = (evaluate_again(before, vetted(data, order[:n])) for n in (19, 20))
        assert (few.basis, enough.basis) == ("votes", "gold")
        assert 0.75 < width_of(enough) / width_of(few) < 1.25


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_few_vetted_items_have_their_share_of_the_draws():
    """Half of twenty: the mean lies between that of the votes and that of the truths as gold corrects them."""
    data = WORLDS["families"]
    before = tu.evaluate(data.predictions, data.labels, random_state=0, **FEW)
    order = np.random.default_rng(1).permutation(data.labels.n_items)
    after = evaluate_again(before, vetted(data, order[:10]))
    metric, codes = after.metric("accuracy"), after.predictions

    def accuracies(truth):
        return (truth.truths == codes).mean(axis=1)

    votes, gold = after.engine.assuming(metric, "real"), after.engine.rectified(metric)
    ends = sorted(float(accuracies(truth).mean()) for truth in (votes, gold))
    assert ends[0] < after["accuracy"].mean < ends[1]
    of_gold = {row.tobytes() for row in gold.truths}
    drawn = after.engine.headline(metric, "real").truths
    assert np.mean([row.tobytes() in of_gold for row in drawn]) == pytest.approx(0.5, abs=0.01)


def test_mixed_draws_are_rows_of_either():
    first, second = np.zeros((7, 2, 2), dtype=int), np.ones((9, 2, 2), dtype=int)
    mixed = mixed_draws(first, second, 3 / 7, np.random.default_rng(0))
    assert mixed.shape == (7, 2, 2)
    assert sorted(mixed.reshape(7, 4).mean(axis=1).tolist()) == [0.0] * 4 + [1.0] * 3
