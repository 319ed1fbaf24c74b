"""What vetted items say by themselves, beside answers that rest on votes."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu
from trueup.answers.gold_alone import few_vetted_sentence
from trueup.answers.vetted import compare_again, evaluate_again
from trueup.report import build_report, render_html, render_markdown

QUICK = {"check_dependence": False, "n_chains": 2, "n_warmup": 60}


@pytest.fixture(scope="module")
def world():
    return tu.simulate.dawid_skene(n_items=200, n_labelers=5, accuracy=(0.7, 0.9), random_state=1)


@pytest.fixture(scope="module")
def evaluated(world):
    return tu.evaluate(world.predictions, world.labels, metrics=["accuracy"], n_draws=100, **QUICK)


def vetted(world, n):
    drawn = np.random.default_rng(5).permutation(200)[:n]
    return world.labels.with_gold({int(i): int(world.truth[i]) for i in drawn}, drawn="random")


def test_below_twenty_both_stand_side_by_side(world, evaluated):
    ev = evaluate_again(evaluated, vetted(world, 19))
    low, high = ev.gold_alone["accuracy"].interval(0.95)
    assert ev.basis == "votes"
    assert f"; vetted items alone {low:.4f} to {high:.4f}" in repr(ev)
    assert any(
        sentence
        == "19 vetted items were drawn at random; from 20 on accuracy rests on them, before in part on votes. Alone "
        f"they say {low:.3f} to {high:.3f}."
        for sentence in ev.warnings
    )
    assert ev.to_dict()["gold_alone"]["accuracy"]["low"] == low
    data = build_report(ev)
    assert data["systems"][0]["metrics"][0]["alone"]["low"] == low
    assert "Vetted items alone" in render_html(data)
    assert "Vetted items alone" in render_markdown(data)


def test_from_twenty_on_there_is_one_answer(world, evaluated):
    ev = evaluate_again(evaluated, vetted(world, 20))
    assert ev.basis == "gold"
    assert "vetted items alone" not in repr(ev)
    assert "Vetted items alone" not in render_markdown(build_report(ev))
    assert not any("before in part on votes" in sentence for sentence in ev.warnings)
    assert evaluated.gold_alone == {}


def test_each_of_several_systems_has_what_vetted_items_say_of_it(world):
    rng = np.random.default_rng(0)
    rates = {"a": 0.9, "b": 0.7, "c": 0.5}
    systems = {name: np.where(rng.random(200) < right, world.truth, 1 - world.truth) for name, right in rates.items()}
    cmp = compare_again(tu.compare(systems, world.labels, n_draws=100, **QUICK), vetted(world, 15))
    assert list(cmp.gold_alone) == cmp.ranking
    seen = np.flatnonzero(vetted(world, 15).gold_codes >= 0)
    for name, estimate in cmp.gold_alone.items():
        low, high = estimate.interval(0.95)
        assert low < (systems[name] == world.truth)[seen].mean() < high
    assert any("before in part on votes." in sentence and "Alone" not in sentence for sentence in cmp.warnings)


def test_metrics_that_look_at_some_are_counted():
    assert few_vetted_sentence({"accuracy": 19, "recall": 8}, 19).endswith(
        "before in part on votes: accuracy looks at 19, recall at 8."
    )
    assert few_vetted_sentence({"accuracy": 1, "f1": 1}, 1).startswith("1 vetted item was drawn at random; from 20 on")
