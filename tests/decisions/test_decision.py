"""Decisions as sessions: they end, hold what they say, and come back from where they are kept."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter, StorageError


@pytest.fixture(scope="module")
def sim():
    return tu.simulate.baseline(n_items=150, random_state=2)


@pytest.fixture(scope="module")
def evaluation(sim):
    return tu.evaluate(sim.predictions, sim.labels)


def go_on(decision, truth, *, most=400, n=5):
    places = {name: k for k, name in enumerate(decision.labels.items.tolist())}
    for _ in range(most):
        if decision.finished is not None:
            break
        decision.tell({item: decision.labels.classes[truth[places[item]]] for item in decision.ask(n)})
    return decision


@pytest.mark.parametrize(("bound", "verdict"), [(0.4, "passed"), (0.98, "failed")])
def test_it_ends_with_the_true_verdict(sim, evaluation, bound, verdict):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": bound}), sim.truth)
    assert decision.verdict == verdict
    assert decision.progress.n_tells < 150
    assert decision.needed.checks == 0


def test_all_items_checked_decide_also_where_the_bound_is_met_exactly(sim, evaluation):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": sim.accuracy}), sim.truth, n=20)
    assert decision.verdict == "passed"


def test_several_conditions_pass_together(sim, evaluation):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": 0.4, "recall": 0.3}), sim.truth)
    assert decision.verdicts == ["passed", "passed"]


def test_items_that_no_condition_is_about_are_not_asked_for(sim):
    other = sim.predictions.copy()
    other[:30] = 1 - other[:30]
    compared = tu.compare({"new": sim.predictions, "old": other}, sim.labels)
    decision = tu.decide(compared, candidate="new", not_worse_than="old", margin=0.02)
    assert set(decision.ask(100)) == set(sim.labels.items[:30].tolist())


def test_batches_give_what_single_draws_of_the_same_items_give_in_the_end(sim, evaluation):
    decision = tu.decide(evaluation, at_least={"accuracy": 0.6})
    first = decision.ask(12)
    answers = {item: int(sim.truth[item]) for item in first}
    decision.tell(answers)
    again = tu.decide(evaluation, at_least={"accuracy": 0.6})
    batch = again.ask(12)
    for item in reversed(list(batch)):  # answers come in any order
        again.tell({item: answers[item]})
    assert decision._standing.log_wealth == pytest.approx(again._standing.log_wealth)


def test_a_log_gives_the_same_standing_and_a_corrected_answer_counts(sim, evaluation):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": 0.7}), sim.truth, most=4, n=3)
    back = tu.Decision.from_json(decision.to_json(), evaluation)
    assert back._standing.log_wealth == pytest.approx(decision._standing.log_wealth)
    item = decision.log[0].item
    decision.tell({item: 1 - int(sim.truth[item])}, correct=True)
    assert not np.allclose(back._standing.known, decision._standing.known)


def test_items_that_were_checked_before_count_as_in_the_answer(sim):
    sample = tu.labelers.draw_sample(sim.labels, 40, random_state=0)
    checked = sim.labels.with_gold({item: int(sim.truth[item]) for item in sample.items.tolist()}, drawn=sample.drawn)
    evaluation = tu.evaluate(sim.predictions, checked)
    decision = tu.decide(evaluation, at_least={"accuracy": 0.7})
    assert decision.estimates[0].mean == pytest.approx(evaluation["accuracy"].mean, abs=0.01)
    item = decision.ask(1)[0]
    decision.tell({item: int(sim.truth[item])})
    assert decision.estimates[0].mean == pytest.approx(evaluation["accuracy"].mean, abs=0.03)


def test_what_nobody_can_tell_helps_neither_side(evaluation):
    decision = tu.decide(evaluation, at_least={"accuracy": 0.5})
    decision.skip(decision.ask(40))
    assert decision.verdict == "undecided"


def test_contests_are_asked_for_by_item_and_systems():
    rng = np.random.default_rng(0)
    rows = [(k, "x", "y", j, "x" if rng.random() < 0.8 else "y") for k in range(80) for j in range(3)]
    pairs = tu.Pairs.from_frame(
        dict(zip(["item", "first", "second", "judge", "winner"], zip(*rows, strict=True), strict=True))
    )
    answer = tu.preferences(pairs, target="sample")
    decision = tu.decide(answer, candidate="x", better_than="y")
    asked = list(decision.ask(4))
    assert asked[0][1:] == ("x", "y")
    for _ in range(20):
        decision.tell(dict.fromkeys(asked, "first"))
        asked = list(decision.ask(4))
    assert decision.verdict == "passed"


def test_the_population_takes_more_than_its_sample(sim, evaluation):
    wide = tu.evaluate(sim.predictions, sim.labels, target="population")
    numbers = [tu.decide(answer, at_least={"accuracy": 0.55}).estimates[0] for answer in (evaluation, wide)]
    assert numbers[1].std > numbers[0].std
    decision = go_on(tu.decide(wide, at_least={"accuracy": sim.accuracy - 0.01}), sim.truth, n=30)
    assert decision.verdict == "undecided"
    assert "still open" in decision.finished


def test_everything_is_in_the_record(sim, evaluation):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": 0.7}), sim.truth, most=2)
    record = json.loads(json.dumps(decision.to_dict()))
    assert record["n_checks"] == 10
    assert record["needed"]["passed"] + record["needed"]["failed"] <= 1
    assert 0 <= record["probability"] <= 1
    assert record["conditions"][0]["condition"] in repr(decision)
    assert decision.sentence.startswith(decision.verdict)


def test_a_session_in_a_storage(sim, evaluation, tmp_path):
    pytest.importorskip("sqlalchemy")
    kept = {"storage": f"sqlite:///{tmp_path}/test.db", "name": "release"}
    one = tu.decide(evaluation, at_least={"accuracy": 0.7}, **kept)
    one.tell({item: int(sim.truth[item]) for item in one.ask(8)})
    other = tu.decide(evaluation, at_least={"accuracy": 0.7}, **kept)
    assert other._standing.log_wealth == pytest.approx(one._standing.log_wealth)
    with pytest.raises(StorageError, match="at_least"):
        tu.decide(evaluation, at_least={"accuracy": 0.8}, **kept)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "needs a condition, got none"),
        ({"at_least": {"accuracy": 1.5}}, "must be a value that accuracy can have"),
        ({"at_least": {"accuracy": 0.7}, "error": 0.7}, "`error` must be"),
        ({"at_least": {"mcc": 0.7}}, "quotient of two counts"),
    ],
)
def test_bad_input(evaluation, asked, message):
    with pytest.raises(InvalidParameter, match=message):
        tu.decide(evaluation, **asked)


def test_a_named_noise_model_is_refused(sim):
    named = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=20, n_warmup=10, n_chains=1)
    with pytest.raises(InvalidParameter, match="needs the plain answer"):
        tu.decide(named, at_least={"accuracy": 0.7})


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_a_page_says_the_verdict_and_how_it_came_about(sim, evaluation, tmp_path, suffix):
    decision = go_on(tu.decide(evaluation, at_least={"accuracy": 0.4}), sim.truth)
    page = decision.save_html(tmp_path / f"gate{suffix}").read_text(encoding="utf-8")
    assert "passed" in page
    assert str(decision.progress.n_tells) in page
    assert ("<svg" in page) == (suffix == ".html")
