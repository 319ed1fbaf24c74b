"""What may not happen to an estimate: easy items first, draws that drop out, swayed answers, and lucky stops."""

import numpy as np
import pytest

import trueup as tu
from trueup.active import NONE_OF_THESE
from trueup.active.session import anytime_bound
from trueup.exceptions import InvalidParameter

N = 120


class World:
    """Votes of four labelers and two systems; quick to fit."""

    def __init__(self, n_classes=2, names=None):
        rng = np.random.default_rng(3)
        codes = rng.integers(n_classes, size=N)
        votes = np.where(rng.random((N, 4)) < 0.75, codes[:, None], rng.integers(n_classes, size=(N, 4)))
        self.names = np.array(list(range(n_classes)) if names is None else names)
        self.truth = self.names[codes].tolist()
        self.labels = tu.Labels.from_matrix(self.names[votes], classes=self.names.tolist())
        said = {name: rng.random(N) < skill for name, skill in (("good", 0.9), ("fair", 0.7))}
        other = (codes + 1) % n_classes
        self.systems = {name: self.names[np.where(right, codes, other)] for name, right in said.items()}

    def test(self, labels=None, **settings):
        settings = {"noise": "majority", "strategy": "random", "random_state": 1, **settings}
        return tu.ActiveTest(self.systems, self.labels if labels is None else labels, **settings)

    def tell(self, test, items, **how):
        test.tell({item: self.truth[item] for item in items}, **how)


@pytest.fixture(scope="module")
def world():
    return World()


def test_answers_ahead_of_the_draws_wait_and_change_nothing(world):
    test = world.test()
    items = list(test.ask(40))
    world.tell(test, items[:20])
    before = test.estimate().interval(0.95)
    world.tell(test, items[21:])
    assert (test.n_vetted, test.n_counted) == (39, 20)
    assert test.estimate().interval(0.95) == before
    assert any("19 answers wait to count" in sentence for sentence in test.warnings)
    assert test.status().ahead == 19
    assert not set(items) & set(np.flatnonzero(test.state.available)), "the strategy knows them"
    world.tell(test, items[20:21])
    assert test.n_counted == 40
    assert not any("wait to count" in sentence for sentence in test.warnings)
    in_order = world.test()
    world.tell(in_order, in_order.ask(40))
    np.testing.assert_array_equal(in_order._estimated().values, test._estimated().values)


def test_what_nobody_can_tell_widens_the_interval_by_what_it_could_be(world):
    whole, partly = world.test(), world.test()
    items = list(whole.ask(60))
    world.tell(whole, items)
    partly.ask(60)
    partly.skip(items[10:16], who="ann")
    world.tell(partly, [*items[:10], *items[16:]])
    widths = [np.ptp(test.estimate().interval(0.95)) for test in (whole, partly)]
    assert widths[1] > widths[0]
    low, high = partly.estimate().interval(0.95)
    for right in (True, False):  # whatever the six are, the interval for it is within a trifle
        world_of = partly.replay(partly.log)
        said = world.systems["good"]
        world_of.tell({item: int(said[item] if right else 1 - said[item]) for item in items[10:16]}, who="ann")
        inner = world_of.estimate().interval(0.90)
        assert low - 0.02 <= inner[0]
        assert inner[1] <= high + 0.02
    assert any("nobody could tell: 6" in sentence for sentence in partly.warnings)
    assert partly.status().cannot_tell == 6


@pytest.mark.parametrize("estimator", ["rectified", "vetted-only", "ppi++", "lure", "bayes"])
def test_undecided_draws_bound_every_estimator_and_difference(world, estimator):
    test = world.test(estimator=estimator)
    items = list(test.ask(50))
    test.skip(items[:8])
    world.tell(test, items[8:])
    for system in ("good", "fair"):
        low, high = test.estimate(system).interval(0.95)
        assert high - low > 8 / N
    apart = test.difference("good", "fair")
    differ = sum(world.systems["good"][item] != world.systems["fair"][item] for item in items[:8])
    assert np.ptp(apart.interval(0.95)) > 2 * differ / N
    low, high = test.anytime_interval("good")
    inner = test.estimate("good").interval(0.95)
    assert low <= inner[0]
    assert high >= inner[1]


def test_a_number_without_an_interval_stays_one(world):
    test = world.test(estimator="naive")
    items = list(test.ask(20))
    test.skip(items[:3])
    world.tell(test, items[3:])
    assert np.isnan(test.estimate().interval(0.95)).all()


def test_later_comes_back_and_nothing_drops_out(world):
    test = world.test(overlap=0, checks=0)
    (item,) = test.ask(who="ann")
    test.skip([item], who="ann", later=True)
    assert test.ask(who="ann") != [item]
    assert list(test.ask(who="bob")) == [item]
    world.tell(test, [item], who="bob")
    assert test.progress.draw[item] == 1
    assert test.waiting
    everyone = world.test()
    for asked in [everyone.ask(N)]:
        everyone.skip(list(asked)[:2], later=True)
        world.tell(everyone, list(asked)[2:])
    assert len(everyone.ask(5)) == 2, "what was put off is left at last"


@pytest.mark.parametrize("estimator", ["rectified", "vetted-only", "ppi++", "lure", "bayes", "naive"])
@pytest.mark.parametrize("names", [None, ["ant", "bee", "cat"]])
def test_the_system_is_wrong_where_it_is_none_of_these(estimator, names):
    world = World(n_classes=3, names=names)
    test = world.test(estimator=estimator)
    outside = list(test.ask(N))[::4]
    world.tell(test, [k for k in range(N) if k not in outside])
    test.tell(dict.fromkeys(outside, NONE_OF_THESE), who="ann")
    right = [world.systems["good"][k] == world.truth[k] and k not in outside for k in range(N)]
    assert test.estimate().mean == pytest.approx(np.mean(right))
    assert test.status().none_of_these == len(outside)
    back = tu.ActiveTest.from_json(test.to_json(), world.systems, world.labels)
    assert back.log == test.log
    assert back.estimate().mean == test.estimate().mean


def test_answers_in_sight_of_the_prediction_are_kept_out(world):
    test = world.test()
    items = list(test.ask(60))
    world.tell(test, items[:50])
    test.tell({item: int(world.systems["good"][item]) for item in items[50:]}, blind=False)
    valid, everything = test.estimate(), test.estimate(answers="all")
    assert np.ptp(valid.interval(0.95)) > np.ptp(everything.interval(0.95))
    assert everything.mean > valid.mean
    assert any("the prediction was in sight: 10" in sentence for sentence in test.warnings)
    assert test.status().sighted == 10
    assert [event.blind for event in test.log if event.kind == "tell"] == [True] * 50 + [False] * 10
    open_session = world.test(blind=False)
    world.tell(open_session, open_session.ask(20))
    assert np.ptp(open_session.estimate().interval(0.95)) > 0.9
    with pytest.raises(InvalidParameter, match="answers"):
        test.estimate(answers="some")


def test_two_experts_overlap_and_a_third_settles(world):
    test = world.test(budget=120, checks=0)
    for who in ("ann", "bob") * 10:
        asked = test.ask(5, who=who)
        for one in asked.details:
            wrong = one.purpose == "overlap" and one.item % 2
            test.tell({one.item: 1 - world.truth[one.item] if wrong else world.truth[one.item]}, who=who)
    status = test.status()
    assert status.agreement.n >= 20
    assert 0 < status.agreement.count < status.agreement.n
    assert status.disputed == status.agreement.n - status.agreement.count
    assert any("experts differ" in sentence for sentence in test.warnings)
    for _ in range(8):
        world.tell(test, test.ask(5, who="eve"), who="eve")
    assert test.status().disputed == 0
    assert test.status().errors.count == status.disputed
    assert test.estimate().mean == test.replay(test.to_json()).estimate().mean


@pytest.mark.parametrize("experts", [("ann", "bob"), ("ann", "ann", "ann", "bob"), ("ann", "bob", "eve")])
def test_the_budget_counts_second_opinions_and_is_never_overspent(world, experts):
    """Also one whose chance of a second opinion is raised, and with disputes that a third should settle."""
    test, n_empty, turn = world.test(budget=40, overlap=0.3), 0, 0
    while test.finished is None:
        who = experts[turn % len(experts)]
        asked = test.ask(3, who=who)
        for one in asked.details:
            wrong = one.purpose == "overlap" and one.item % 5 == 0
            test.tell({one.item: 1 - world.truth[one.item] if wrong else world.truth[one.item]}, who=who)
        n_empty, turn = (0 if len(asked) else n_empty + 1), turn + 1
        assert n_empty < len(experts), "nobody has anything to do, and it is not finished"
        assert test.n_paid <= 40
    assert test.n_vetted < test.n_paid
    assert test.finished.startswith("The budget of 40 answers is spent")
    for who in 2 * (*experts, "eve"):  # what was promised to another expert can still be had, and nothing else
        world.tell(test, test.ask(3, who=who), who=who)
    assert test.n_paid == 40
    assert test.finished == "The budget of 40 answers is spent."


def test_known_items_are_asked_silently_and_stay_what_they_are(world):
    gold = {k: world.truth[k] for k in range(30)}
    test = world.test(labels=world.labels.with_gold(gold), checks=0.2)
    purposes = []
    for _ in range(12):
        asked = test.ask(5, who="ann")
        purposes += [one.purpose for one in asked.details]
        test.tell({item: 1 - world.truth[item] if item in gold else world.truth[item] for item in asked}, who="ann")
    assert purposes.count("check") >= 6
    assert test.status().errors.share == 1.0
    assert test.n_vetted == purposes.count(None)
    assert all(test._known_codes[k] == world.truth[k] for k in gold)


def test_the_bound_is_that_of_the_mixture():
    """Robbins' boundary: a normal mean that is looked at after every one of 500 values stays inside in 95 of 100."""
    rng = np.random.default_rng(0)
    sums = np.cumsum(rng.normal(size=(4000, 500)), axis=1)
    n = np.arange(1, 501)
    bounds = np.array([anytime_bound(k, level=0.95) for k in n])
    outside = (np.abs(sums) / np.sqrt(n) > bounds).any(axis=1).mean()
    assert 0.01 < outside <= 0.05
    assert anytime_bound(200, level=0.95, planned=200) <= anytime_bound(200, level=0.95, planned=2000)


def test_an_order_stops_on_what_holds_at_every_look(world):
    test = world.test(half_width=0.12)
    while test.finished is None:
        world.tell(test, test.ask(10))
    assert test.n_counted >= 20
    for system in ("good", "fair"):
        low, high = test.anytime_interval(system)
        inner = test.estimate(system).interval(0.95)
        assert (inner[1] - inner[0]) / 2 <= 0.12
        assert low < inner[0] < inner[1] <= high
    duel = world.test(prob_better=0.95)
    while duel.finished is None:
        world.tell(duel, duel.ask(10))
    low, high = duel.anytime_interval("good", "fair", level=0.9)
    assert low > 0
    assert high > low
    assert duel.prob_order("good", "fair") > 0.95
    surest = world.test(prob_better=1.0)
    world.tell(surest, surest.ask(15))
    assert surest.finished is None
