"""Experts who err: answers that count by what is known of who gave them."""

import numpy as np
import pytest

import trueup as tu
from trueup.active.fallible import ExpertErrors
from trueup.exceptions import InvalidParameter
from trueup.sessions.progress import Rate


def world(seed, n=300):
    """A crowd, a system that is right on 80%, and the truth by item."""
    sim = tu.simulate.dawid_skene(n_items=n, n_labelers=5, random_state=seed)
    rng = np.random.default_rng([seed, 1])
    truth = np.asarray(sim.truth)
    system = np.where(rng.random(n) < 0.8, truth, 1 - truth)
    return dict(zip(sim.labels.items.tolist(), system.tolist(), strict=True)), sim.labels, truth


def answered(seed, *, wrong, n_answers=120, **settings):
    """A session in which three experts err at a rate, and the accuracy of the system."""
    system, labels, truth = world(seed)
    place = {item: k for k, item in enumerate(labels.items.tolist())}
    rng = np.random.default_rng([seed, 2])
    test = tu.ActiveTest(system, labels, strategy="random", noise="dawid-skene", random_state=seed, **settings)
    turn = 0
    while test.n_vetted < n_answers:
        who = ("ann", "bob", "eve")[turn % 3]
        turn += 1
        said = {item: int(truth[place[item]]) for item in test.ask(6, who=who)}
        test.tell({item: 1 - code if rng.random() < wrong else code for item, code in said.items()}, who=who)
    return test, float(np.mean(np.array(list(system.values())) == truth))


def test_answers_that_are_wrong_pull_the_estimate_less():
    off = []
    for seed in range(6):
        plain, accuracy = answered(seed, wrong=0.1)
        allowing = tu.ActiveTest.from_json(plain.to_json(), *world(seed)[:2], experts="fallible")
        off.append([plain.estimate().mean - accuracy, allowing.estimate().mean - accuracy])
        assert allowing.estimate().std > 0.9 * plain.estimate().std
    without, allowed = np.mean(off, axis=0)
    assert without < -0.03  # of ten answers that contradict a system that is right on 80%
    assert abs(allowed) < 0.6 * abs(without)


def test_experts_who_were_right_on_many_known_items_count_as_before():
    plain, _ = answered(0, wrong=0.0, overlap=1.0)
    assert plain.status().errors.n > 100
    allowing = tu.ActiveTest.from_json(plain.to_json(), *world(0)[:2], experts="fallible")
    assert allowing.estimate().mean == pytest.approx(plain.estimate().mean, abs=0.01)
    assert allowing.estimate().std == pytest.approx(plain.estimate().std, rel=0.25)


def test_a_pool_that_is_checked_as_a_whole_is_not_certain():
    system, labels, truth = world(1, n=60)
    test = tu.ActiveTest(system, labels, noise="dawid-skene", strategy="random", experts="fallible", random_state=1)
    test.ask(60)
    test.tell(dict(zip(labels.items.tolist(), truth.tolist(), strict=True)), who="ann")
    accuracy = np.mean(np.array(list(system.values())) == truth)
    low, high = test.estimate().interval()
    assert low < accuracy < high
    assert high - low > 0.02


def test_rates_are_those_of_beta_laws():
    errors = ExpertErrors(Rate.of(6, 60, 0.95), {"ann": Rate.of(6, 40, 0.95), "bob": Rate.of(0, 20, 0.95)})
    drawn = [errors.draw(np.random.default_rng(seed)) for seed in range(4000)]
    # ann: 30 answers at the rate (1 + 0) / (16 + 20) of the others, then 6 of 40; bob: at (1 + 6) / (16 + 40), 0 of 20
    expected = {"ann": (30 / 36 + 6) / 70, "bob": 30 * 7 / 56 / 50}
    for who, mean in expected.items():
        assert np.mean([one[who] for one in drawn]) == pytest.approx(mean, abs=0.003)


def test_the_answer_says_how_much_wider_it_is():
    test, _ = answered(2, wrong=0.1, experts="fallible")
    rate = test.status().errors
    (note,) = [note for note in test.warnings if "times as wide" in note]
    assert f"{rate.count} of {rate.n} answers" in note


def test_other_estimators_take_answers_as_right():
    system, labels, _ = world(0)
    with pytest.raises(InvalidParameter) as refused:
        tu.ActiveTest(system, labels, estimator="ppi++", experts="fallible")
    assert refused.value.parameter == "experts"
    with pytest.raises(InvalidParameter):
        tu.ActiveTest(system, labels, experts="honest")
