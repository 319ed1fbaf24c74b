"""What vetting would bring, said before and measured after."""

from __future__ import annotations

import numpy as np
import pytest
from trueup.answers.vetted import evaluate_again

import trueup as tu
from trueup.estimators.vetting import items_to_vet, variance_left, widths_after_vetting

QUICK = {"metrics": ["accuracy"], "check_dependence": False, "n_chains": 2, "n_warmup": 100, "n_draws": 150}
WORLDS = {
    "independent": lambda: tu.simulate.dawid_skene(
        n_items=600, n_labelers=5, accuracy=(0.7, 0.9), classifier_accuracy=0.6, random_state=3
    ),
    "four classes": lambda: tu.simulate.dawid_skene(
        n_items=400, n_classes=4, n_labelers=5, accuracy=(0.6, 0.9), classifier_accuracy=0.7, random_state=4
    ),
    "families": lambda: tu.simulate.dependent(n_items=300, n_labelers=5, families=[[0, 1, 2]], random_state=3),
}


def width_of(evaluation):
    low, high = evaluation["accuracy"].interval(0.95)
    return high - low


@pytest.mark.parametrize("world", list(WORLDS))
def test_the_width_that_is_said_is_about_the_one_that_comes(world):
    sim = WORLDS[world]()
    ev = tu.evaluate(sim.predictions, sim.labels, **QUICK)
    n = 50
    widths = []
    for seed in range(4):
        drawn = np.random.default_rng(seed).permutation(sim.labels.n_items)[:n]
        gold = {int(i): int(sim.truth[i]) for i in drawn}
        widths.append(width_of(evaluate_again(ev, sim.labels.with_gold(gold, drawn="random"))))
    assert ev.vettings[n] == pytest.approx(np.mean(widths), rel=0.35)


def test_nothing_is_advised_that_is_no_narrower_than_now():
    sim = WORLDS["families"]()
    ev = tu.evaluate(sim.predictions, sim.labels, **QUICK)
    assert list(ev.vettings)[:1] == [20]
    assert max(ev.vettings.values()) < width_of(ev)
    gold = {int(i): int(sim.truth[i]) for i in np.random.default_rng(0).permutation(300)[:60]}
    vetted = evaluate_again(ev, sim.labels.with_gold(gold, drawn="random"))
    assert list(vetted.vettings)[:1] == [100], "60 are vetted"
    assert max(vetted.vettings.values()) < width_of(vetted)
    sure = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", **QUICK)
    assert 20 not in sure.vettings, "a narrow answer hears of no vetting that would make it wider"


def test_what_is_left_is_the_spread_about_the_chance_of_each_item():
    posterior = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
    codes = np.array([0, 1, 1, -1])
    assert variance_left(posterior, codes) == pytest.approx((0.09 + 0.25 + 0.16) / 3)
    known = np.array([False, True, False, False])
    assert variance_left(posterior, codes, known) == pytest.approx((0.09 + 0.16) / 2)
    assert variance_left(np.eye(2)[[0, 1]], np.array([0, 1])) > 0.02, "no model is so sure"


def test_the_number_of_items_gives_the_width_back():
    rng = np.random.default_rng(0)
    right = rng.uniform(0.5, 1, 400)
    posterior = np.stack([right, 1 - right], axis=1)
    codes = np.zeros(400, dtype=int)
    width = widths_after_vetting(posterior, codes, 0.95)[100]
    assert items_to_vet(posterior, codes, 0.95, width=width) == pytest.approx(100, abs=1)
    assert items_to_vet(None, codes, 0.95, width=width) == 0
    assert widths_after_vetting(None, codes, 0.95) == {}
