"""What more checks would bring, said before and measured after."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import trueup as tu
from trueup.answers.evaluate import evaluate_again
from trueup.answers.next_checks import NextChecks

QUICK = {"metrics": ["accuracy"], "check_dependence": False, "n_draws": 1024}
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


def with_checks(sim, n, seed):
    drawn = np.random.default_rng(seed).permutation(sim.labels.n_items)[:n]
    return sim.labels.with_gold({int(i): int(sim.truth[i]) for i in drawn}, drawn="random")


@pytest.mark.parametrize("n_checked", [0, 20])
def test_another_look_is_what_a_first_look_at_the_same_would_be(n_checked):
    sim = WORLDS["independent"]()
    checked = with_checks(sim, n_checked, 0) if n_checked else sim.labels
    before = tu.evaluate(sim.predictions, with_checks(sim, 10, 1), **QUICK)
    for seed in (0, 5):
        again = evaluate_again(before, checked, random_state=seed)
        first = tu.evaluate(sim.predictions, checked, random_state=seed, **QUICK)
        assert again["accuracy"].mean == first["accuracy"].mean
        assert again["accuracy"].interval() == first["accuracy"].interval()


@pytest.mark.parametrize("target", ["sample", "population"])
@pytest.mark.parametrize("world", list(WORLDS))
def test_the_width_that_is_said_is_about_the_one_that_comes(world, target):
    """Votes of simulated labelers are better than those of real ones, so that intervals may come out narrower."""
    sim = WORLDS[world]()
    ev = tu.evaluate(sim.predictions, sim.labels, target=target, **QUICK)
    for n in (20, 50):
        came = np.mean([width_of(evaluate_again(ev, with_checks(sim, n, seed))) for seed in range(8)])
        assert 0.5 * ev.vettings[n] < came < 1.15 * ev.vettings[n]


def outputs_of_prompts(seed):
    """Verdicts on three systems' outputs for each prompt; judges are misled together, on all outputs of a prompt."""
    rng = np.random.default_rng(seed)
    prompt, system = np.repeat(np.arange(150), 3), np.tile(np.arange(3), 150)
    hard, misled = rng.normal(0, 1.5, 150)[prompt], np.where(rng.random(150) < 0.1, 0.6, 0.05)[prompt]
    truth = (rng.random(450) < expit(np.array([1.4, 1.0, 0.6])[system] + hard)).astype(int)
    wrong = (rng.random(450) < misled)[:, None] | (rng.random((450, 4)) < 0.12)
    labels = tu.Labels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]), classes=[0, 1])
    items = {"item": labels.items.tolist(), "prompt": prompt.tolist(), "system": system.tolist()}
    return labels.with_items(items), truth, system, rng


@pytest.mark.parametrize("cluster", [None, "prompt"])
@pytest.mark.parametrize("by", [None, "system"])
def test_the_number_that_is_advised_brings_the_width_in_the_mean(by, cluster):
    """Of the interval that is shown: with clusters that of the population, and then as narrow as these items can.

    Of 12 runs; of 100 in benchmarks/core.py.
    """
    relative = []
    for seed in range(12):
        labels, truth, system, rng = outputs_of_prompts(seed)
        shares = tu.share(labels, of=1, by=by, cluster=cluster, check_dependence=False, n_draws=512)
        groups = [(n, np.flatnonzero((by is None) | (system == name))) for name, n in shares.vettings.items()]
        drawn = np.concatenate([rng.permutation(members)[:n] for n, members in groups])
        checked = labels.with_gold({int(i): int(truth[i]) for i in drawn}, drawn="random")
        again = replace(shares, evaluation=evaluate_again(shares.evaluation, checked))
        widths = [np.diff(estimate.interval(0.95)) for estimate in again.values()]
        relative.append(np.mean(widths) / shares.vetting_width)
        assert (shares.vetting_width > 0.1) == (cluster is not None)
        words = "on these items." if cluster is None else "on further items of the same kind; ±0.05 takes more items."
        assert shares.next_steps()[0].endswith(words)
    assert 0.85 < np.mean(relative) < 1.15


def test_nothing_is_advised_that_is_no_narrower_than_now():
    sim = WORLDS["families"]()
    ev = tu.evaluate(sim.predictions, sim.labels, **QUICK)
    assert min(ev.vettings) == 20
    assert max(ev.vettings.values()) < width_of(ev)
    assert "20 for about ±" in ev.next_step()
    checked = evaluate_again(ev, with_checks(sim, 60, 0))
    assert min(checked.vettings) == 100
    assert max(checked.vettings.values()) < width_of(checked)
    assert "40 more for about ±" in checked.next_step()
    named = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", metrics=["accuracy"], check_dependence=False)
    assert (named.vettings, named.next_step()) == ({}, None), "checked items do not correct a model that is named"
    every = tu.evaluate(sim.predictions, with_checks(sim, 300, 0), **QUICK)
    assert (every.vettings, every.next_step()) == ({}, None)


def test_a_wide_prior_leaves_what_checks_leave():
    """Of 1,000 items with P(right) of .8 each, 100 checks leave what a share of 100 leaves of the other 900."""
    checks = NextChecks(1000.0, 1000.0, 0, mean=0.8, spread=10.0, variances=np.array([0.16]))
    expected = 2 * 1.96 * 0.9 * np.sqrt(0.16 / 100 + 0.16 / 900)
    assert checks.width(100, 0.95) == pytest.approx(expected, rel=0.001)
    assert checks.number_for(expected, 0.95) == pytest.approx(100, abs=1)
    assert checks.width(1000, 0.95) == 0
    assert checks.number_for(0.0, 0.95) == 1000
