"""Conditions as sums over items: the number is the metric, and the sign of the sum is the condition."""

from functools import partial

import numpy as np
import pytest

import trueup as tu
from trueup.answers.gates import Subject
from trueup.decisions.conditions import conditions_of, parts_of
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric, as_metrics
from trueup.metrics.counts import fbeta


@pytest.fixture(scope="module")
def sim():
    return tu.simulate.baseline(n_items=200, random_state=1)


def condition_on(answer, **asked):
    subject = Subject(answer)
    return conditions_of(subject, subject.conditions(**asked))[0]


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [
        *((name, 2) for name in ("accuracy", "error_rate", "precision", "recall", "f1", "specificity")),
        *((name, 4) for name in ("accuracy", "micro_f1")),
    ],
)
def test_parts_give_the_metric_of_any_counts(name, n_classes):
    metric = as_metrics([name], list(range(n_classes)), 1)[name]
    above, below = parts_of(metric, n_classes)
    counts = np.random.default_rng(5).integers(1, 30, (20, n_classes, n_classes))
    assert (counts * above).sum(axis=(1, 2)) / (counts * below).sum(axis=(1, 2)) == pytest.approx(metric(counts))


def test_parts_of_one_class_of_several():
    metric = Metric("f1 of class 2", partial(fbeta, of=2))
    above, below = parts_of(metric, 3)
    assert above.round(6).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert below.round(6).tolist() == [[0, 0, 0.5], [0, 0, 0.5], [0.5, 0.5, 1]]


@pytest.mark.parametrize("name", ["macro_f1", "mcc", "kappa", "balanced_accuracy"])
def test_what_is_no_quotient_is_refused(name):
    with pytest.raises(InvalidParameter, match=rf"quotient of two counts.*got '{name}'"):
        parts_of(as_metrics([name], [0, 1], 1)[name], 2)


@pytest.mark.parametrize("metric", ["accuracy", "recall", "precision", "f1"])
def test_of_one_system_the_number_is_the_metric(sim, metric):
    evaluation = tu.evaluate(sim.predictions, sim.labels)
    found = condition_on(evaluation, at_least={metric: 0.7})
    wanted = tu.evaluate(sim.predictions, sim.labels, method="ideal", truth=sim.truth)[metric].mean
    assert found.numbers(sim.truth[None])[0] == pytest.approx(wanted)
    total = found.terms[np.arange(200), sim.truth].sum()
    assert (total >= 0) == (wanted >= 0.7)


@pytest.mark.parametrize("metric", ["accuracy", "recall", "precision"])
def test_of_two_systems_the_number_is_the_difference(sim, metric):
    rng = np.random.default_rng(0)
    other = np.where(rng.random(200) < 0.3, 1 - sim.truth, sim.truth)
    compared = tu.compare({"new": sim.predictions, "old": other}, sim.labels, metric=metric)
    found = condition_on(compared, candidate="new", not_worse_than="old", margin=0.02)
    truth = {"method": "ideal", "truth": sim.truth}
    wanted = [tu.evaluate(codes, sim.labels, **truth)[metric].mean for codes in (sim.predictions, other)]
    assert found.numbers(sim.truth[None])[0] == pytest.approx(wanted[0] - wanted[1])


def test_a_difference_of_quotients_with_other_items_below_the_line_is_refused(sim):
    compared = tu.compare({"new": sim.predictions, "old": 1 - sim.predictions}, sim.labels, metric="f1")
    with pytest.raises(InvalidParameter, match="same items below the line"):
        condition_on(compared, candidate="new", better_than="old")


def test_of_groups_the_number_is_the_difference_of_their_shares(sim):
    group = ["a" if k % 3 else "b" for k in range(200)]
    by = dict(zip(sim.labels.items.tolist(), group, strict=True))
    answer = tu.share(sim.labels, of=1, by=by)
    found = condition_on(answer, candidate="a", better_than="b")
    is_a = np.array(group) == "a"
    wanted = sim.truth[is_a].mean() - sim.truth[~is_a].mean()
    assert found.numbers(sim.truth[None])[0] == pytest.approx(wanted)
    alone = condition_on(answer, candidate="b", at_most=0.5)
    assert alone.numbers(sim.truth[None])[0] == pytest.approx(sim.truth[~is_a].mean())
    assert (np.ptp(alone.terms, axis=1)[is_a] == 0).all()


def test_of_contests_the_number_is_the_win_rate():
    rows = [
        {"item": k, "first": "x", "second": "y", "judge": j, "winner": "x" if (k + j) % 3 else "tie"}
        for k in range(30)
        for j in range(3)
    ]
    answer = tu.preferences(tu.Pairs.from_frame({key: [row[key] for row in rows] for key in rows[0]}))
    found = condition_on(answer, candidate="x", not_worse_than="y", margin=0.05)
    truth = np.zeros((1, answer.evaluation.labels.n_items), dtype=int)
    truth[0, :6] = 2
    assert found.numbers(truth)[0] == pytest.approx((24 + 3) / 30)
