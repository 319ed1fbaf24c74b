"""The same question after some items were vetted."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.vetted import compare_again, evaluate_again
from trueup.exceptions import InvalidParameter

OPTIONS = {"check_dependence": False, "random_state": 3, "n_warmup": 20}


@pytest.fixture(scope="module")
def world():
    return tu.simulate.dawid_skene(n_items=120, n_labelers=4, random_state=5)


@pytest.fixture(scope="module")
def vetted(world):
    at = np.random.default_rng(0).choice(120, 30, replace=False)
    return world.labels.with_gold(
        {world.labels.items[i]: world.labels.classes[world.truth[i]] for i in at}, drawn="random"
    )


@pytest.fixture(scope="module")
def before(world):
    """The answer from votes alone."""
    return tu.evaluate(world.predictions, world.labels, n_draws=100, **OPTIONS)


def test_an_evaluation_with_gold_is_that_of_the_door(world, vetted, before):
    again = evaluate_again(before, vetted)
    door = tu.evaluate(world.predictions, vetted, n_draws=100, **OPTIONS)
    assert again.basis == door.basis == "gold"
    for metric in door:
        assert again[metric].interval(0.95) == door[metric].interval(0.95)
    assert before.basis == "votes"
    assert again.assuming("real")["accuracy"].mean == door.assuming("real")["accuracy"].mean


def test_a_comparison_with_gold_is_that_of_the_door(world, vetted):
    systems = {"a": world.predictions, "b": np.where(np.arange(120) % 6, world.predictions, 1 - world.predictions)}
    again = compare_again(tu.compare(systems, world.labels, n_draws=200, **OPTIONS), vetted)
    door = tu.compare(systems, vetted, n_draws=200, **OPTIONS)
    assert again.basis == "gold"
    np.testing.assert_array_equal(again.draws, door.draws)


def test_models_are_not_drawn_again(vetted, before):
    again = evaluate_again(before, vetted)
    assert again.engine.readings("classes").kinds is before.engine.readings("classes").kinds


def test_other_votes_are_refused(world, before):
    other = world.labels.without_labeler(world.labels.labelers[0])
    with pytest.raises(InvalidParameter, match="same votes"):
        evaluate_again(before, other)


def test_a_named_model_is_refused(world, vetted):
    named = tu.evaluate(world.predictions, world.labels, noise="dawid-skene", check_dependence=False)
    with pytest.raises(InvalidParameter, match="call the door again"):
        evaluate_again(named, vetted)


@pytest.mark.parametrize("n_drawn", [19, 20])
def test_gold_that_a_named_model_does_not_rest_on_is_told(world, n_drawn):
    truths = {item: world.truth[k] for k, item in enumerate(world.labels.items[:n_drawn].tolist())}
    labels = world.labels.with_gold(truths, drawn="random")
    few = {"noise": "dawid-skene", "n_warmup": 20, "n_draws": 50, "check_dependence": False}
    one = tu.evaluate(world.predictions, labels, **few)
    two = tu.compare({"a": world.predictions, "b": 1 - world.predictions}, labels, **few)
    for answer in (one, two):
        told = [sentence for sentence in answer.warnings if "correct nothing here" in sentence]
        assert len(told) == (n_drawn == 20)
        assert all("leave out noise" in sentence for sentence in told)
