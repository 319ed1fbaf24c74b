"""trueup agreement."""

import json

import pytest

import trueup as tu
from trueup.data.reading import write_labels


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
