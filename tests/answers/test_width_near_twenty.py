"""The answer changes from votes to gold at 20 vetted items: its width must not jump there."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.vetted import evaluate_again


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_the_width_does_not_jump_between_19_and_20_vetted_items():
    data = tu.simulate.shared_difficulty(n_items=300, n_labelers=5, random_state=0)
    few = {"n_warmup": 200, "n_draws": 800, "check_dependence": False}
    before = tu.evaluate(data.predictions, data.labels, random_state=0, **few)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(300)
        widths = {}
        for n, basis in ((19, "votes"), (20, "gold")):
            truths = {data.labels.items[i]: data.truth[i] for i in order[:n]}
            after = evaluate_again(before, data.labels.with_gold(truths, drawn="random"))
            assert after.basis == basis
            low, high = after["accuracy"].interval(0.95)
            widths[n] = high - low
        assert 0.75 < widths[20] / widths[19] < 1.25
