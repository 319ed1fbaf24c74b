"""The side-by-side with other libraries: what is asked of them, counted and said."""

import sys

import numpy as np
import pytest

import trueup as tu
from benchmarks import peers
from benchmarks._peer_tasks import INTERVAL_TASKS, LABEL_TASKS


def test_our_own_answers_come_back_from_a_process_of_their_own():
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    answer = peers.ask("trueup Dawid–Skene", "trueup", [peers.votes_of(sim.labels)] * 2)
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
