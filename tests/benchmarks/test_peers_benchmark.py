"""The side-by-side with other libraries: what is asked of them, counted and said."""

import sys

import numpy as np
import pytest

import trueup as tu
from benchmarks import peers
from benchmarks._peer_tasks import INTERVAL_TASKS, LABEL_TASKS


def test_votes_are_handed_over_as_they_are():
    columns = {"item": [0, 0, 1, 1], "labeler": ["a", "b", "a", "a"], "label": [0, 1, 1, 1]}
    with pytest.warns(tu.exceptions.DataWarning, match="repeat a labeler's vote"):
        votes = tu.Labels.from_frame(columns, duplicates="keep")
    arrays = peers._votes_of(votes)
    rows = sorted(zip(arrays["item"].tolist(), arrays["labeler"].tolist(), arrays["label"].tolist(), strict=True))
    assert rows == [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 0, 1)]
    assert arrays["shape"].tolist() == [2, 2, 2]


def test_who_is_ahead_of_the_default_is_said():
    rows = [["trueup best (1)", "0.97"], ["trueup auto (1)", "0.9"], ["other (2)", "0.95"], ["third (1)", "0.8"]]
    more = {"default": "trueup auto", "highest": True}
    assert peers._ahead(rows, 1, "finds more", **more) == "Ahead of trueup auto (finds more): other (2)."
    less = {"default": "trueup auto", "highest": False}
    assert peers._ahead(rows, 1, "quicker", **less) == "Ahead of trueup auto (quicker): third (1)."
    assert peers._ahead(rows[:2], 1, "finds more", **more) == "Ahead of trueup auto (finds more): none."


def test_our_own_answers_come_back_from_a_process_of_their_own():
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    answer = peers.ask("trueup Dawid–Skene", "trueup", [peers._votes_of(sim.labels)] * 2)
    assert (answer.error, answer.version, len(answer.arrays)) == ("", tu.__version__, 2)
    assert np.allclose(answer.arrays[0], tu.noise.fit(sim.labels, "dawid-skene").posterior(sim.labels))
    assert answer.peak > 1e6


@pytest.mark.parametrize("python", [None, sys.executable], ids=["unnamed", "without it"])
def test_a_library_that_is_not_there_is_left_out_with_a_sentence(monkeypatch, python):
    if python is None:
        monkeypatch.delenv("TRUEUP_PEERS", raising=False)
    else:
        monkeypatch.setenv("TRUEUP_PEERS", python)
    sample = {"judge": np.ones(20, dtype=int), "at": np.arange(10), "truth": np.ones(10, dtype=int)}
    answer = peers.ask("truescore ppi", "truescore", [sample])
    assert answer.arrays == []
    assert answer.error.startswith("left out: set TRUEUP_PEERS" if python is None else "failed: ModuleNotFoundError")


def test_every_library_that_was_asked_for_has_a_task():
    packages = {package for package, _ in (*LABEL_TASKS.values(), *INTERVAL_TASKS.values())}
    assert {"crowd-kit", "cleanlab", "ppi-python", "truescore", "snorkel", "scikit-activeml"} <= packages
