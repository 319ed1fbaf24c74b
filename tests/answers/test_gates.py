"""Gates: passed, failed or undecided, from one rule for every kind of answer."""

import numpy as np
import pytest

import trueup as tu
from trueup.answers.gates import Gate, judge_gate
from trueup.exceptions import InvalidParameter
from trueup.posteriors import DrawnEstimate

QUICK = {"n_draws": 100}
NAMED = {"noise": "dawid-skene", "n_warmup": 40, "n_draws": 60}
EVENLY = DrawnEstimate(np.arange(100) / 100, name="accuracy")  # 0.00 to 0.99


def verdict_on(side, bound, estimate=EVENLY, *, probability=0.9, **how):
    return judge_gate(
        Gate("accuracy", side, bound), estimate, basis="votes and 40 checked items", probability=probability, **how
    )


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=200)
    votes = np.where(rng.random((200, 5)) < 0.85, truth[:, None], 1 - truth[:, None])
    good, bad = (np.where(rng.random(200) < share, truth, 1 - truth) for share in (0.97, 0.7))
    return tu.Labels.from_matrix(votes, classes=[0, 1]), truth, good, bad


def groups_with_gold(crowd, vetted):
    """The rates of groups "a" and "b" of 100 items each, of which such numbers are vetted, drawn at random."""
    labels, truth, _, _ = crowd
    group = np.repeat(["a", "b"], 100)
    labels = labels.with_items({"item": labels.items.tolist(), "group": group.tolist()})
    chosen = np.concatenate([np.arange(vetted["a"]), 100 + np.arange(vetted["b"])])
    drawn = labels.with_gold({int(i): int(truth[i]) for i in chosen}, drawn="random")
    return tu.share(drawn, of=1, by="group", check_dependence=False, **QUICK)


def test_gold_of_other_groups_is_not_gold_of_this_one(crowd):
    """Judges may favour one group, which the vetted items of others do not show."""
    shares = groups_with_gold(crowd, {"a": 3, "b": 40})
    assert tu.gate(shares, candidate="a", at_least=0.05).results[0].basis == "votes and 43 checked items"
    required = tu.gate(shares, candidate="a", at_least=0.05, require_gold=True)
    assert required.verdict == "undecided"
    assert "20 or more" in required.results[0].sentence
    assert "there are 3" in required.results[0].sentence
    assert tu.gate(shares, candidate="b", at_least=0.05, require_gold=True)
    against = tu.gate(shares, candidate="b", not_worse_than="a", margin=0.9, require_gold=True)
    assert against.verdict == "undecided"


def test_a_share_goes_by_its_class_as_on_the_command_line(crowd):
    shares = groups_with_gold(crowd, {"a": 0, "b": 0})
    by_class, by_name = (tu.gate(shares, candidate="a", at_least={name: 0.4}) for name in (1, "share of 1"))
    assert by_class.results[0].sentence == by_name.results[0].sentence
    with pytest.raises(InvalidParameter, match="about 'share of 1'"):
        tu.gate(shares, candidate="a", at_least={0: 0.4})


def test_a_group_that_is_all_vetted_needs_no_more(crowd):
    shares = groups_with_gold(crowd, {"a": 100, "b": 2})
    assert tu.gate(shares, candidate="a", at_least=0.05, require_gold=True)


@pytest.fixture(scope="module")
def comparison(crowd):
    labels, _, good, bad = crowd
    return tu.compare({"good": good, "bad": bad, "copy": good}, labels, **NAMED)


@pytest.mark.parametrize(
    ("side", "bound", "met"),
    [
        ("at least", 0.1, 0.9),
        ("above", 0.1, 0.89),
        ("at most", 0.1, 0.11),
        ("below", 0.1, 0.1),
        ("at least", 0.0, 1.0),
        ("at most", 0.99, 1.0),
    ],
)
def test_the_bound_itself_counts_where_the_side_says_so(side, bound, met):
    result = verdict_on(side, bound, require_gold=False)
    assert result.probability == pytest.approx(met)
    assert result.probability + result.probability_failed == pytest.approx(1)


@pytest.mark.parametrize(
    ("bound", "verdict"), [(0.05, "passed"), (0.1, "passed"), (0.11, "undecided"), (0.5, "undecided"), (0.9, "failed")]
)
def test_in_between_it_is_undecided(bound, verdict):
    result = verdict_on("at least", bound, require_gold=False)
    assert result.verdict == verdict
    assert result.sentence.startswith(f"{verdict}: accuracy is at least {bound:g} with probability")


def test_truths_without_a_value_count_for_neither_side():
    values = np.r_[np.full(92, 0.9), np.full(8, np.nan)]
    estimate = DrawnEstimate(values, name="recall")
    result = verdict_on("at least", 0.5, estimate, probability=0.95, require_gold=False)
    assert (result.probability, result.probability_failed) == pytest.approx((0.92, 0.0))
    assert result.verdict == "undecided"


def test_every_kind_of_answer_is_gated_by_the_same_rule(crowd, comparison):
    labels, _, good, _ = crowd
    evaluation = tu.evaluate(good, labels, **NAMED)
    report = tu.gate(evaluation, at_least={"accuracy": 0.5, "recall": 0.999}, at_most={"accuracy": 0.6})
    assert [result.verdict for result in report.results] == ["passed", "failed", "failed"]
    assert report.verdict == "failed"
    assert not report
    passed = tu.gate(comparison, at_least=0.5, candidate="good")
    assert passed
    assert passed.results[0].probability == comparison["good"].prob_above(0.5)
    items = {"item": labels.items.tolist(), "system": ["a", "b"] * 100}
    shares = tu.share(labels.with_items(items), of=1, by="system", **QUICK)
    by_group = tu.gate(shares, at_least=0.1, at_most=0.9)
    assert {result.gate.candidate for result in by_group.results} == {"a", "b"}
    assert len(by_group.results) == 4
    overall = tu.gate(tu.share(labels, of=1, **QUICK), at_least=0.1)
    assert [result.gate.what for result in overall.results] == ["share of 1"]


def test_beside_another_system(comparison):
    worse = tu.gate(comparison, not_worse_than="good")
    verdicts = {result.gate.candidate: result.verdict for result in worse.results}
    assert verdicts == {"bad": "failed", "copy": "passed"}  # a copy is not worse, by nothing
    low = comparison.difference("bad", "good").interval(0.999)[0]
    assert tu.gate(comparison, not_worse_than="good", margin=-low + 0.01)
    better = tu.gate(comparison, better_than="bad", candidate="good")
    assert better.results[0].probability == comparison.prob_better("good", "bad")
    assert tu.gate(comparison, better_than="good", candidate="copy").verdict == "failed"  # nor is it better


def test_less_is_better_for_an_error_rate(crowd):
    labels, _, good, bad = crowd
    errors = tu.compare({"good": good, "bad": bad}, labels, metric="error_rate", **NAMED)
    assert tu.gate(errors, better_than="bad")
    assert tu.gate(errors, not_worse_than="good").verdict == "failed"
    margin = errors.difference("bad", "good").interval(0.999)[1] + 0.01
    assert tu.gate(errors, not_worse_than="good", margin=margin)


def test_votes_alone_say_so_and_decide_nothing_where_gold_is_required(crowd):
    labels, truth, good, _ = crowd
    evaluation = tu.evaluate(good, labels, metrics=["accuracy"], **QUICK)
    report = tu.gate(evaluation, at_least=0.5)
    assert report.verdict == "passed"
    assert report.results[0].basis == "votes alone"
    assert "votes alone" in report.results[0].sentence
    required = tu.gate(evaluation, at_least=0.5, require_gold=True)
    assert required.verdict == "undecided"
    assert "there are none" in required.results[0].sentence
    drawn = labels.with_gold({int(i): int(truth[i]) for i in range(0, 200, 5)}, drawn="random")
    vetted = tu.evaluate(good, drawn, metrics=["accuracy"], **QUICK)
    with_gold = tu.gate(vetted, at_least=0.5, require_gold=True)
    assert with_gold.verdict == "passed"
    assert with_gold.results[0].basis == "votes and 40 checked items"
    assert "votes alone" not in with_gold.results[0].sentence
    every = labels.with_gold(dict(enumerate(truth.tolist())))  # chosen, but there is nothing else
    known = tu.gate(tu.evaluate(good, every, metrics=["accuracy"], **QUICK), at_least=0.5, require_gold=True)
    assert (known.verdict, known.results[0].basis) == ("passed", "all items checked")


def test_gold_that_contradicts_the_models_leaves_it_open(crowd):
    labels, truth, good, _ = crowd
    contrary = labels.with_gold({int(i): int(1 - truth[i]) for i in range(15)})
    evaluation = tu.evaluate(good, contrary, metrics=["accuracy"], **QUICK)
    assert evaluation.refused
    report = tu.gate(evaluation, at_least=0.5)
    assert report.verdict == "undecided"
    assert "contradict" in report.results[0].sentence


def test_everything_goes_into_json(comparison):
    told = tu.gate(comparison, not_worse_than="good", margin=0.02).to_dict()
    assert told["verdict"] == "failed"
    assert told["probability"] == 0.95
    first = next(gate for gate in told["gates"] if gate["candidate"] == "bad")
    assert (first["reference"], first["side"], first["bound"]) == ("good", "at least", -0.02)
    assert first["basis"] == "votes alone, by the noise model dawid-skene"
    assert first["estimate"]["mean"] == pytest.approx(comparison.difference("bad", "good").mean)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({}, "needs a condition"),
        ({"at_least": 90}, "0 to 1, got 90"),
        ({"at_least": {"recall": 0.5}}, "this answer is about 'accuracy'"),
        ({"margin": 0.1, "at_least": 0.5}, "without `not_worse_than`"),
        ({"not_worse_than": "nobody"}, "no system or group 'nobody'"),
        ({"not_worse_than": "good", "candidate": "good"}, "another than"),
        ({"not_worse_than": "good", "margin": -0.1}, "margin"),
        ({"not_worse_than": "good", "margin": 2}, "0 to 1, got 2, which allows everything"),
        ({"not_worse_than": "goods"}, "did you mean 'good'"),
        ({"at_least": 0.8, "at_most": {"accuracy": 0.2}}, "got 0.8 and 0.2 for accuracy, which no number meets"),
        ({"at_least": 0.5, "probability": 0.4}, "probability"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_makes_no_sense_is_refused(comparison, how, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        tu.gate(comparison, **how)


def test_an_evaluation_has_nobody_to_be_held_against(crowd):
    labels, _, good, _ = crowd
    evaluation = tu.evaluate(good, labels, **NAMED)
    with pytest.raises(InvalidParameter, match="compare the two"):
        tu.gate(evaluation, better_than="old")
    point = tu.evaluate(good, labels, method="estimated-labels")
    with pytest.raises(InvalidParameter, match="needs an interval"):
        tu.gate(point, at_least=0.5)
    never = tu.evaluate(np.zeros(200, dtype=int), labels, metrics=["precision"], **NAMED)
    with pytest.raises(InvalidParameter, match="undefined here"):
        tu.gate(never, at_least=0.5)


@pytest.fixture(scope="module")
def preferred():
    sim = tu.simulate.pairs(n_contests=150, n_systems=2, n_judges=3, position_bias=0.0, random_state=1)
    return tu.preferences(sim.pairs, noise="mirrored", n_warmup=40, n_draws=60)


def test_a_preferred_system_is_gated_by_its_win_rate(preferred):
    best, worst = preferred.ranking
    wins = preferred.win_rate(best, worst)
    report = tu.gate(preferred, better_than=worst, not_worse_than=worst, margin=0.02)
    not_worse, better = report.results
    assert better.gate.what == f"win rate of {best!r} over {worst!r}"
    assert better.probability == pytest.approx(wins.prob_above(0.5))
    assert not_worse.probability == pytest.approx(wins.prob_above(0.48))
    reverse = tu.gate(preferred, better_than=best)
    assert reverse.results[0].probability == pytest.approx(better.probability_failed)
    with pytest.raises(InvalidParameter, match=r"goes from 0 to 1, got 0\.6"):
        tu.gate(preferred, not_worse_than=worst, margin=0.6)
    required = tu.gate(preferred, better_than=worst, require_gold=True)
    assert required.verdict == "undecided"


def test_a_pair_needs_vetted_contests_of_its_own():
    sim = tu.simulate.pairs(n_contests=240, n_systems=3, n_judges=3, position_bias=0.0, random_state=1)
    pairs, (a, b, c) = sim.pairs, sim.pairs.systems.tolist()
    of_two = [k for k, contest in enumerate(pairs.contests) if contest[1:] == (a, b)][:30]
    gold = {pairs.contests[k]: ("first", "second")[sim.truth[k]] for k in of_two}
    answer = tu.preferences(pairs.with_gold(gold, drawn="random"), noise="mirrored", n_warmup=40, n_draws=60)
    asked = {"not_worse_than": a, "margin": 0.45}
    vetted = tu.gate(answer, candidate=b, require_gold=True, **asked).results[0]
    assert "20 or more" not in vetted.sentence
    other = tu.gate(answer, candidate=c, require_gold=True, **asked).results[0]
    assert other.verdict == "undecided"
    assert "there are none" in other.sentence
    assert tu.gate(answer, candidate=c, **asked).results[0].probability == other.probability


def test_ties_are_half_a_win_in_a_gate_however_they_are_shown(preferred):
    worst = preferred.ranking[-1]
    apart = tu.preferences(preferred.pairs, noise="mirrored", ties="class", n_warmup=40, n_draws=60)
    gates = [tu.gate(answer, better_than=worst).results[0] for answer in (preferred, apart)]
    assert gates[0].probability == pytest.approx(gates[1].probability)
    assert gates[0].estimate.mean == pytest.approx(gates[1].estimate.mean)
    assert "ties as half" in gates[1].sentence


def test_a_rate_of_all_items_has_no_groups(crowd):
    shares = tu.share(crowd[0], of=1, **NAMED)
    with pytest.raises(
        InvalidParameter, match="there are no groups to judge here, got 'good'; name their column by `by`"
    ):
        tu.gate(shares, better_than="good")


def test_a_preference_has_no_bound_of_its_own(preferred):
    with pytest.raises(InvalidParameter, match=r"between two systems, got `at_least` 0\.5"):
        tu.gate(preferred, at_least=0.5)
