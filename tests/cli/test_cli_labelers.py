"""trueup labelers and agreement."""

import json

import numpy as np
import pytest
from cli_helpers import write_csv

import trueup as tu
from trueup.adapters import read_labels
from trueup.data.reading import write_labels

QUICK = ("--noise", "majority")  # rough, where the numbers are not the point


@pytest.fixture
def with_spammer(tmp_path):
    """Four who know, and w4 who tosses a coin."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    votes = np.where(rng.random((200, 4)) < 0.9, truth[:, None], 1 - truth[:, None])
    votes = np.column_stack([votes, rng.integers(2, size=200)])
    rows = [(f"i{i}", f"w{t}", ("no", "yes")[v]) for i, row in enumerate(votes) for t, v in enumerate(row)]
    return write_csv(tmp_path / "spam.csv", ("item", "labeler", "label"), rows)


def test_json_is_what_the_library_says(votes_csv, run_main):
    ran = run_main("labelers", votes_csv, "--json", "--seed", "3")
    found = json.loads(ran.out)
    ranking = tu.labelers.rank(read_labels(votes_csv), random_state=3)
    assert [row["labeler"] for row in found["labelers"]] == list(ranking.labelers)
    best = found["labelers"][0]
    assert best["accuracy"]["mean"] == ranking.rows[0].accuracy.mean
    assert best["accuracy"]["low"] <= best["accuracy"]["mean"] <= best["accuracy"]["high"]
    assert found["effective"]["votes_per_item"] == 5
    assert found["independence"]["dependent"] is False


def test_a_spammer_is_found_and_can_fail_the_run(with_spammer, run_main):
    failing = run_main("labelers", with_spammer, "--json", "--sort", "spam", "--fail-if-spam", "0.1")
    assert failing.code == 1
    assert "finding: 20.0% of the votes" in failing.err
    found = json.loads(failing.out)
    assert found["labelers"][0]["labeler"] == "w4"
    assert found["labelers"][0]["spam_probability"] > 0.5 > found["labelers"][1]["spam_probability"]
    assert found["spam_vote_share"] == pytest.approx(0.2)
    assert run_main("labelers", with_spammer, "--fail-if-spam", "0.2").code == 0


def test_labelers_who_err_together_are_told_and_can_fail_the_run(tmp_path, votes_csv, run_main):
    data = tu.simulate.dependent(
        n_items=200, n_labelers=6, subtype_accuracy=(0.97, 0.5), subtype_weights=(0.7, 0.3), random_state=0
    )
    path = tmp_path / "together.csv"
    write_labels(data.labels, path)
    ran = run_main("labelers", path, "--fail-if-dependent", *QUICK)
    assert ran.code == 1
    assert ran.err.startswith("finding: Labelers err together")
    assert "leave --noise out for the plain answer, which does not, and check some items" in ran.out
    assert "What to do" in ran.out
    assert run_main("labelers", votes_csv, "--fail-if-dependent", *QUICK).code == 0


def test_what_the_panel_is_worth(run_main, votes_csv):
    found = json.loads(run_main("labelers", votes_csv, "--panel", "--json", "--seed", "3").out)["panel"]
    panel = tu.labelers.panel(read_labels(votes_csv), random_state=3)
    assert found["effective"]["mean"] == panel.effective.mean
    assert [row["labeler"] for row in found["labelers"]] == list(panel.labelers)
    shown = run_main("labelers", votes_csv, "--panel", "--seed", "3").out
    assert panel.labelers[0] in shown
    assert "independent ones" in shown


@pytest.fixture
def votes(tmp_path):
    labels = tu.simulate.dawid_skene(n_items=60, n_labelers=4, accuracy=[0.9, 0.9, 0.8, 0.7], random_state=0).labels
    write_labels(labels, tmp_path / "votes.csv")
    return labels, tmp_path / "votes.csv"


def test_the_numbers_are_those_of_the_library(votes, run_main, tmp_path):
    labels, path = votes
    page = tmp_path / "page.html"
    ran = run_main(
        "agreement", path, "--scale", "ordinal", "--expert", "0", "--expert", "1", "--json", "--report", page
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    a = tu.agreement(labels, scale="ordinal", experts=[0, 1])
    assert found["coefficients"]["alpha"]["mean"] == pytest.approx(a["alpha"].mean)
    assert len(found["judges"]["judges"]) == len(a.judges.to_dict()["judges"])
    assert page.stat().st_size > 1000


def test_a_table_and_an_error(votes, run_main):
    ran = run_main("agreement", votes[1], "--labelers", "fixed")
    assert ran.code == 0, ran.err
    assert all(name in ran.out for name in ("percent", "cohen", "fleiss", "conger", "alpha", "ac1"))
    assert run_main("agreement", votes[1], "--scale", "ordina").code == 2
