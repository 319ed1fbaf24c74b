"""The alternative annotator test: by hand, on simulated people, and the core's answer beside it."""

import json

import numpy as np
import pytest
import scipy

import trueup as tu
from trueup.answers.replacement import EPSILONS, compare_people
from trueup.exceptions import InvalidLabels, InvalidParameter

PEOPLE = ["h1", "h2", "h3", "h4"]


def crowd(judge=0.9, people=0.75, n_items=300, n_classes=2, seed=0, own=4):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    accuracy = np.array([people] * own + [judge])
    is_right = rng.random((n_items, own + 1)) < accuracy
    votes = np.where(
        is_right, truth[:, None], (truth[:, None] + rng.integers(1, n_classes, (n_items, own + 1))) % n_classes
    )
    return tu.Labels.from_matrix(votes, labelers=[f"h{k + 1}" for k in range(own)] + ["gpt"])


def test_scores_by_hand():
    # Beside h1 the judge agrees with more of the others twice, with as many once, with fewer once.
    judge = np.tile([1, 1, 0, 0], 10)
    humans = np.stack([np.tile(row, 10) for row in ([0, 1, 0, 1], [1, 1, 0, 1], [1, 0, 1, 1])])
    rows, influence, left_out = compare_people(judge, humans, ["a", "b", "c"], None, 0.2, 0.05)
    assert not left_out
    assert (rows[0].judge_as_good, rows[0].human_as_good) == (0.75, 0.75)
    shortfall = np.tile([-1.0, 0.0, 0.0, 1.0], 10)
    assert rows[0].p_value == pytest.approx(scipy.stats.ttest_1samp(shortfall, 0.2, alternative="less").pvalue)
    assert influence.sum() == pytest.approx(0.0, abs=1e-12)
    p_values = [row.p_value for row in rows]
    assert [row.won for row in rows] == (scipy.stats.false_discovery_control(p_values, method="by") <= 0.05).tolist()


def test_ratings_by_hand():
    # The others say 2 and 4: a judge's 3 is nearer than a person's 5, and a judge's 1 is as near as that.
    humans = np.stack([np.full(40, 4), np.full(40, 1), np.full(40, 3)])
    values = np.arange(1.0, 6.0)
    rows, _, _ = compare_people(np.tile([2, 0], 20), humans, ["a", "b", "c"], values, 0.2, 0.05)
    assert (rows[0].judge_as_good, rows[0].human_as_good) == (1.0, 0.5)
    nominal, _, _ = compare_people(np.tile([2, 0], 20), humans, ["a", "b", "c"], None, 0.2, 0.05)
    assert (nominal[0].judge_as_good, nominal[0].human_as_good) == (1.0, 1.0)


def test_of_two_classes_the_scale_does_not_matter():
    votes = crowd()
    found = [tu.may_replace(votes, judges="gpt", scale=scale)["gpt"] for scale in ("nominal", "ordinal", "interval")]
    assert len({(one.winning_rate, one.advantage.mean) for one in found}) == 1


@pytest.mark.parametrize(("judge", "passed"), [(0.9, True), (0.75, True), (0.4, False)])
def test_a_judge_passes_as_it_is_good(judge, passed):
    answer = tu.may_replace(crowd(judge), judges=["gpt"], humans=PEOPLE, epsilon=0.2)["gpt"]
    assert answer.passed is passed
    assert answer.winning_rate == float(passed)
    low, high = answer.advantage.interval(0.95)
    assert low < answer.advantage.mean < high
    assert answer.difference.mean == pytest.approx(judge - 0.75, abs=0.08)
    assert (answer.prob_better > 0.85) == (judge == 0.9)
    assert (answer.prob_better < 0.1) == (judge == 0.4)


def test_checked_items_correct_the_core_and_not_the_test():
    votes = crowd(0.75)
    # Where people and judge differ, experts side with people.
    people = votes.select(labelers=PEOPLE).answer_counts.argmax(axis=1)
    checked = dict(zip(votes.items[:150].tolist(), people[:150].tolist(), strict=True))
    with_checks = votes.with_gold(checked, drawn="random")
    plain, corrected = (tu.may_replace(one, judges=["gpt"])["gpt"] for one in (votes, with_checks))
    assert corrected.winning_rate == plain.winning_rate
    assert corrected.advantage.mean == plain.advantage.mean
    assert corrected.difference.std < plain.difference.std
    assert corrected.difference.mean < plain.difference.mean


def test_the_advantage_has_the_width_of_a_bootstrap():
    answer = tu.may_replace(crowd(n_items=200), judges=["gpt"])["gpt"]
    votes = crowd(n_items=200)
    codes = votes.votes.toarray().reshape(200, 5, 2).argmax(axis=2).T
    where = {name: k for k, name in enumerate(votes.labelers.tolist())}
    judge, humans = codes[where["gpt"]], codes[[where[name] for name in PEOPLE]]
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        at = rng.integers(200, size=200)
        rows, _, _ = compare_people(judge[at], humans[:, at], PEOPLE, None, 0.2, 0.05)
        found.append(np.mean([row.judge_as_good for row in rows]))
    assert answer.advantage.std == pytest.approx(np.std(found), rel=0.2)


def test_the_answer_as_data():
    answer = tu.may_replace(crowd(n_classes=3), judges=["gpt"], epsilon="crowd")
    assert answer.epsilon == EPSILONS["crowd"] == 0.1
    assert len(answer) == 1
    assert "gpt" in answer
    assert json.loads(json.dumps(answer.to_dict()))["judges"][0]["winning_rate"] == answer["gpt"].winning_rate
    assert answer.to_frame()["judge"].tolist() == ["gpt"]
    assert answer["gpt"].to_frame()["human"].tolist() == PEOPLE
    assert answer.warnings  # classes that are numbers may be ratings
    assert "gpt" in repr(answer)


def test_who_shares_too_few_items_is_left_out():
    votes = crowd().to_frame(backend="pandas")
    few = votes[(votes["labeler"] != "h4") | (votes["item"] < 20)]
    answer = tu.may_replace(tu.Labels.from_frame(few), judges=["gpt"])
    assert [row.human for row in answer["gpt"].humans] == ["h1", "h2", "h3"]
    assert any("h4" in note for note in answer.warnings)


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"humans": ["h1", "h2"]}, "humans"),
        ({"humans": ["h1", "h2", "gpt"]}, "humans"),
        ({"humans": 3}, "humans"),
        ({"humans": "h1"}, "humans"),
        ({"judges": []}, "judges"),
        ({"epsilon": 2.0}, "epsilon"),
        ({"epsilon": "expert"}, "epsilon"),
        ({"scale": "ratio"}, "scale"),
        ({"error": 0.0}, "error"),
    ],
)
def test_wrong_parameters(changed, parameter):
    with pytest.raises(InvalidParameter) as raised:
        tu.may_replace(crowd(n_items=60), **{"judges": ["gpt"], **changed})
    assert raised.value.parameter == parameter


def test_labels_that_cannot_answer():
    with pytest.raises(InvalidLabels):
        tu.may_replace(crowd(n_items=60), judges=["gtp"])
    with pytest.raises(InvalidLabels):
        tu.may_replace({"item": [1]}, judges=["gpt"])
    apart = crowd(n_items=60).to_frame(backend="pandas")  # nobody shares items with the judge
    apart = apart[(apart["labeler"] == "gpt") == (apart["item"] < 30)]
    with pytest.raises(InvalidLabels) as raised:
        tu.may_replace(tu.Labels.from_frame(apart), judges=["gpt"])
    assert raised.value.parameter == "humans"
    named = crowd(n_items=60).to_frame(backend="pandas")
    named["label"] = named["label"].map({0: "no", 1: "yes"})
    words = tu.Labels.from_frame(named)
    with pytest.raises(InvalidParameter) as refused:
        tu.may_replace(words, judges=["gpt"], scale="interval")
    assert refused.value.parameter == "scale"


def test_classes_have_an_order_if_they_are_named_in_one():
    codes = crowd(n_items=60, n_classes=3).votes.toarray().reshape(60, 5, 3).argmax(axis=2)
    names = np.array(["low", "mid", "high"])
    with pytest.raises(InvalidParameter) as raised:
        tu.may_replace(tu.Labels.from_matrix(names[codes]), judges=[4], scale="ordinal")
    assert raised.value.parameter == "scale"
    named = tu.Labels.from_matrix(names[codes], classes=names.tolist())
    numbers = tu.Labels.from_matrix(codes)
    found = [tu.may_replace(one, judges=[4], scale="ordinal")[4].advantage.mean for one in (named, numbers)]
    assert found[0] == found[1]
    far = tu.Labels.from_matrix(np.array(["1", "2", "10"])[codes])  # of texts the alphabet has 10 before 2
    assert tu.may_replace(far, judges=[4], scale="ordinal")[4].advantage.mean == found[0]
