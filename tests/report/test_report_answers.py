"""Pages of shares, mean scores and preferences."""

import html
import json

import numpy as np
import pytest
import scipy

import trueup as tu
from trueup.report import render_html, render_markdown
from trueup.report.saving import preferences
from trueup.report.summary import agreement_report


def test_the_numbers_of_rates_are_those_of_the_answer(rates):
    answer, data = rates.answer, rates.data
    assert [group["group"] for group in data["groups"]] == [str(name) for name in answer.ranking]
    for group, name in zip(data["groups"], answer.ranking, strict=True):
        assert (group["mean"], group["low"], group["high"]) == (answer[name].mean, *answer[name].interval(0.95))
        members = answer.slicing.members(name)
        votes = answer.evaluation.labels.answer_counts[members]
        assert group["counted"] == pytest.approx(votes[:, 1].sum() / votes.sum())
    assert (data["n_checked"], data["reproduction"]["method"]) == (30, "share")
    page = render_html(data)
    assert page.count('class="bar"') == 3
    assert all(f"{group['vettings']:,}" in page for group in data["groups"])


def test_what_next_names_the_groups_and_how_many_more(rates):
    answer = rates.answer
    (step,) = answer.next_steps()
    for name in answer:
        drawn = sum(
            item in answer.evaluation.labels.drawn_gold for item in np.flatnonzero(answer.slicing.members(name))
        )
        assert f"{answer.vettings[name] - drawn} of {name!r}" in step
    assert step in html.unescape(render_markdown(rates.data)).replace("\\", "")
    assert "<script" not in render_html(rates.data) + render_markdown(rates.data)


def test_the_leaderboard_is_in_shares_of_wins_beside_log_odds(contests):
    answer, data = contests.answer, contests.data
    strengths = answer.comparison.draws
    for row in data["systems"]:
        own = scipy.special.expit(strengths[:, answer.pairs.systems.tolist().index(row["system"])])
        assert row["wins"]["mean"] == pytest.approx(own.mean(), abs=1e-6)
        assert 0 < row["wins"]["low"] < row["wins"]["mean"] < row["wins"]["high"] < 1
        assert row["mean"] == answer.strength(row["system"]).mean
    assert render_html(data).count('class="bar"') == 3


def test_judges_have_a_column_of_both_orders_where_contests_were_shown_in_both(contests):
    """And not an empty one."""
    data = contests.data
    shown = {**data, "consistency": dict.fromkeys(data["position_bias"], 0.5)}
    heads = [preferences(one)["parts"][-1]["tables"][0]["head"] for one in ({**data, "consistency": {}}, shown)]
    assert [len(head) for head in heads] == [3, 4]


def test_parameters_in_notes_are_code():
    votes = np.random.default_rng(0).integers(0, 2, (40, 3))
    page = render_html(agreement_report(tu.agreement(tu.Labels.from_matrix(votes))))
    assert "<code>labelers=&#34;fixed&#34;</code>" in page
    assert "`" not in page


def test_so_many_checks_separate_in_about_half_of_the_cases():
    # The advice holds if the win rate stays what it is; it moves both ways, so about half of the pairs are separated.
    separated = []
    for seed in range(12):
        sim = tu.simulate.pairs(n_contests=150, n_systems=2, random_state=seed)
        answer = tu.preferences(sim.pairs, n_draws=400, check_dependence=False)
        for one in answer.to_separate():
            if one.n_checks is None:
                continue
            rng = np.random.default_rng(seed)
            chosen = rng.choice(sim.pairs.n_contests, one.n_checks, replace=False)
            gold = {sim.pairs.contests[k]: ("first", "second", "tie")[sim.truth[k]] for k in chosen}
            again = tu.preferences(sim.pairs.with_gold(gold, drawn="random"), n_draws=400, check_dependence=False)
            separated.append(again.comparison.is_significant(one.a, one.b))
    assert len(separated) >= 4
    assert np.mean(separated) >= 0.25


def test_answers_save_themselves_in_every_form(rates, contests, tmp_path):
    scores = tu.mean_score(rates.answer.evaluation.labels, values={0: 1, 1: 5}, n_draws=100, check_dependence=False)
    for answer in (rates.answer, contests.answer, scores):
        page = answer.save_html(tmp_path / "a.html", title="<b>Mine").read_text(encoding="utf-8")
        assert "<h1>&lt;b&gt;Mine</h1>" in page
        assert answer.save_html(tmp_path / "a.md").read_text(encoding="utf-8").startswith("# ")
        assert json.loads(answer.save_html(tmp_path / "a.json").read_text(encoding="utf-8"))["format"] == 1
