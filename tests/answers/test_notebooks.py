"""Answers as notebooks and people see them: tables with bars, no types of numpy, one sentence for gates."""

import re

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter

FEW = {"n_draws": 100, "check_dependence": False}


@pytest.fixture(scope="module")
def answers():
    """Everything named by numbers and strings of numpy, and one class that is code."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=90)
    said = np.where(rng.random((90, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    names = np.array(["no", "<script>"])
    labels = tu.Labels.from_matrix(names[said], labelers=np.arange(4), items=np.arange(90))
    labels = labels.with_items({"item": np.arange(90), "part": np.arange(90) % 3})
    labels = labels.with_gold({k: names[truth[k]] for k in np.arange(0, 90, 9)}, drawn="random")
    systems = {np.int64(k): names[np.where(rng.random(90) < 0.9, truth, 1 - truth)] for k in (1, 2)}
    pairs = tu.simulate.pairs(n_contests=60, n_systems=3, random_state=0).pairs
    evaluation = tu.evaluate(systems[1], labels, metrics=["accuracy", "recall"], **FEW)
    return {
        "labels": (labels, 2),
        "evaluation": (evaluation, 2),
        "comparison": (tu.compare(systems, labels, **FEW), 2),
        "shares": (tu.share(labels, of=names[1], by="part", **FEW), 4),
        "preferences": (tu.preferences(pairs, **FEW), 3),
        "estimate": (evaluation["accuracy"], 1),
    }


@pytest.mark.parametrize("name", ["labels", "evaluation", "comparison", "shares", "preferences", "estimate"])
def test_a_table_with_a_bar_in_each_row(answers, name):
    answer, n_rows = answers[name]
    page = answer._repr_html_()
    assert page.count("<tr>") == n_rows + 1
    assert "<script" not in page
    bars = re.findall(r"left:(-?[\d.]+)%;width:([\d.]+)%", page)
    assert len(bars) == n_rows
    assert all(float(left) >= 0 and float(left) + float(wide) <= 101 for left, wide in bars)
    assert "np." not in page + repr(answer)


def test_no_type_of_numpy_where_a_person_reads(answers):
    labels = answers["labels"][0]
    for asked in (np.int64(7), np.str_("maybe"), np.float64(1.5)):
        with pytest.raises(InvalidParameter) as caught:
            tu.share(labels, of=asked)
        assert "np." not in str(caught.value)
    with pytest.raises(InvalidParameter) as caught:
        answers["comparison"][0].difference(np.int64(1), np.int64(9))
    assert "np." not in str(caught.value)
    numbers = tu.Labels.from_matrix(np.random.default_rng(0).integers(2, size=(40, 3)))
    share = tu.share(numbers, of=np.int64(1), **FEW)
    assert "np." not in share.name + repr(share) + repr(tu.gate(share, at_least=0.1)) + repr(numbers.gold)


def test_a_report_of_gates_is_one_sentence(answers):
    evaluation = answers["evaluation"][0]
    passed, failed = (tu.gate(evaluation, at_least={"accuracy": bound}) for bound in (0.1, 0.999))
    assert passed.sentence == passed.results[0].sentence
    both = passed.joined(failed)
    assert both.sentence == failed.sentence
    assert both.to_dict()["sentence"] == both.sentence


def test_nobody_asked_of_a_share_hears_of_a_classifier_or_a_slice():
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=120)
    labels = tu.Labels.from_matrix(np.where(rng.random((120, 5)) < 0.9, truth[:, None], 1 - truth[:, None]))
    contrary = labels.with_gold(dict.fromkeys(np.flatnonzero(truth)[:40].tolist(), 0))
    share = tu.share(contrary, of=1, **FEW)
    assert share.evaluation.refused
    weak = tu.share(labels.select(labelers=[0]), of=1, **FEW)
    for sentence in (*share.warnings, *weak.warnings):
        assert not re.search(r"classifier|slice|system", sentence)
    assert not any("no interval" in one for one in weak.warnings)


def test_checks_are_not_advised_after_they_were_made():
    truth = np.random.default_rng(2).integers(2, size=100)
    unanimous = tu.Labels.from_matrix(np.repeat(truth[:, None], 3, axis=1))
    checked = unanimous.with_gold({k: int(truth[k]) for k in range(0, 80, 2)}, drawn="random")
    advised = [
        any("draw_sample" in one for one in tu.share(votes, of=1, **FEW).warnings) for votes in (unanimous, checked)
    ]
    assert advised == [True, False]
