"""Vetted items that someone chose, against what models expect of the systems on them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import trueup as tu
from trueup.answers.chosen_gold import Surprise, verdict_on
from trueup.answers.vetted import evaluate_again
from trueup.report import build_report, render_markdown

QUICK = {"check_dependence": False, "n_chains": 2, "n_warmup": 60, "n_draws": 100}
QUICK_COMPARED = {"check_dependence": False, "n_chains": 2, "n_warmup": 60}


@pytest.fixture(scope="module")
def wrong_together():
    """A crowd that a quarter of the items misleads, and a system that errs with it."""
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=400)
    misleading = rng.random(400) < 0.25
    votes = np.where(
        rng.random((400, 5)) < np.where(misleading, 0.05, 0.95)[:, None], truth[:, None], 1 - truth[:, None]
    )
    system = np.where(rng.random(400) < np.where(misleading, 0.1, 0.98), truth, 1 - truth)
    return tu.Labels.from_matrix(votes), truth, system


def gold_of(truth, n, seed=0):
    return {int(i): int(truth[i]) for i in np.random.default_rng(seed).permutation(len(truth))[:n]}


@pytest.mark.parametrize("role", ["fit", "check"])
def test_a_crowd_that_is_wrong_together_is_refused_by_a_hundred_chosen_items(wrong_together, role):
    labels, truth, system = wrong_together
    ev = tu.evaluate(system, labels.with_gold(gold_of(truth, 100), role=role), metrics=["accuracy"], **QUICK)
    assert ev.refused
    assert "models expect the classifier to be right on 9" in ev.warnings[0]
    assert "of the 100 chosen items, and it is on 7" in ev.warnings[0]
    assert np.isnan(ev["accuracy"].interval(0.95)).all()
    assert np.isnan(ev.assuming("shared")["accuracy"].interval(0.95)).all(), "of models that are not believed"
    assert np.isnan(ev.confusion.intervals()).all()
    assert "no interval" in repr(ev)
    page = render_markdown(build_report(ev))
    assert "by models that vetted items contradict, so there is no interval." in page
    assert "What votes alone say" not in page


def test_models_that_are_right_are_not_refused():
    world = tu.simulate.dawid_skene(n_items=300, n_labelers=5, accuracy=(0.7, 0.9), random_state=0)
    ev = tu.evaluate(world.predictions, world.labels, metrics=["accuracy"], **QUICK)
    for seed in range(20):
        labels = world.labels.with_gold(gold_of(world.truth, (10, 100)[seed % 2], seed), role="check")
        assert not evaluate_again(ev, labels).refused


def test_metrics_that_rest_on_votes_are_refused_beside_those_that_rest_on_gold(wrong_together):
    labels, truth, system = wrong_together
    chosen = gold_of(truth, 150)
    rest = [i for i in range(400) if i not in chosen]
    negatives = [i for i in rest if truth[i] == 0][:28]
    positives = [i for i in rest if truth[i] == 1][:8]
    drawn = {i: int(truth[i]) for i in negatives + positives}
    both = labels.with_gold(chosen).with_gold(drawn, drawn=dict.fromkeys(drawn, 0.09))
    ev = tu.evaluate(system, both, metrics=["accuracy", "recall"], **QUICK)
    assert (ev.basis_of("accuracy"), ev.basis_of("recall")) == ("gold", "votes")
    assert ev.refused
    assert np.isfinite(ev["accuracy"].interval(0.95)).all()
    assert np.isnan(ev["recall"].interval(0.95)).all()
    assert tu.gate(ev, at_least={"accuracy": 0.1}).verdict == "passed", "what rests on gold is decided"


def test_scores_are_held_against_chosen_gold_too(wrong_together):
    labels, truth, system = wrong_together
    scores = np.clip(0.3 + 0.4 * system + np.random.default_rng(1).normal(0, 0.05, 400), 0, 1)
    chosen = labels.with_gold(gold_of(truth, 150))
    cmp = tu.compare({"a": scores, "b": 1 - scores}, chosen, metric="auc", **QUICK_COMPARED)
    assert cmp.refused
    assert "by its scores 'a' does worse on the 150 chosen items" in cmp.warnings[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate = tu.auc(scores, chosen, n_chains=2, n_warmup=60)
    ev = tu.evaluate(tu.Predictions.from_scores(scores), chosen, metrics=["auc"], **QUICK)
    assert np.isnan(ev.curve("roc").y_interval).all()
    assert np.isfinite(ev.curve("roc").y).all()
    assert any("contradict the models" in str(one.message) for one in caught)
    assert np.isnan(estimate.interval(0.95)).all()


def test_a_comparison_that_is_refused_prints_no_interval(wrong_together):
    labels, truth, system = wrong_together
    cmp = tu.compare({"a": system, "b": 1 - system}, labels.with_gold(gold_of(truth, 100)), **QUICK_COMPARED)
    assert cmp.refused
    assert "no interval" in repr(cmp)
    assert "nan" not in repr(cmp)
    assert "best with probability" not in repr(cmp)
    data = build_report({}, comparison=cmp)
    (sentence,) = data["verdict"]
    assert "comes first by accuracy from votes, but vetted items contradict the models: nothing is claimed" in sentence
    assert data["comparison"]["assuming"] == []
    assert not cmp.told_apart("a", "b")


def test_nothing_is_refused_where_every_item_is_vetted(wrong_together):
    labels, truth, system = wrong_together
    ev = tu.evaluate(system, labels.with_gold(dict(enumerate(truth.tolist()))), metrics=["accuracy"], **QUICK)
    assert not ev.refused
    assert ev["accuracy"].interval(0.95) == pytest.approx([(system == truth).mean()] * 2)


def test_each_of_many_systems_has_its_part_of_the_false_alarms():
    one = Surprise("a", 100, 0.9, 0.75, for_models=2.5, for_crowds=2.5)
    others = [Surprise(f"s{k}", 100, 0.9, 0.9, 0.0, 0.0) for k in range(19)]
    assert verdict_on([one], "classes", n_systems=1).refused
    among = verdict_on([one, *others], "classes", n_systems=20)
    assert not among.refused
    assert not among.sentences


def test_what_models_leave_open_is_no_contradiction():
    """A gap that the models themselves hold possible, however far beyond the usual errors of crowds."""
    assert not verdict_on(
        [Surprise("a", 100, 0.9, 0.6, for_models=-1.5, for_crowds=-5.0)], "classes", n_systems=1
    ).refused
    said = verdict_on([Surprise("a", 100, 0.9, 0.85, for_models=-3.0, for_crowds=-0.9)], "classes", n_systems=2)
    assert not said.refused
    assert said.sentences[0].startswith("Models expect 'a' to be right on 90 of the 100 chosen items, and it is on 85.")
