"""Both engines do the same, on every shape of votes."""

import subprocess
import sys

import numpy as np
import pytest
from vote_problems import CLASSES, PROBLEMS, make_problem

from trueup.data.partitions import VoteBlock
from trueup.noise import kernels

pytest.importorskip("numba", reason="compiled kernels need numba: pip install 'trueup[fast]'")


@pytest.fixture(params=[(name, n) for name in PROBLEMS for n in CLASSES], ids=lambda p: f"{p[0]}, {p[1]} classes")
def problem(request):
    name, n_classes = request.param
    return make_problem(n_classes=n_classes, **PROBLEMS[name])


def assert_same_expectation(a, b):
    np.testing.assert_allclose(a.counts, b.counts, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.state_counts, b.state_counts, rtol=1e-9, atol=1e-9)
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-9)
    assert (a.posterior is None) == (b.posterior is None)
    if a.posterior is not None:
        np.testing.assert_allclose(a.posterior, b.posterior, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prepared", [False, True])
def test_em_step_is_the_same_in_both_engines(problem, prepared):
    votes = VoteBlock.of_matrix(problem["votes"], problem["gold"]) if prepared else problem["votes"]
    steps = [
        kernels.em_step(**{**problem, "votes": votes}, engine=engine, keep_posterior=True)
        for engine in ("scipy", "numba")
    ]
    assert_same_expectation(*steps)
    assert steps[1].counts.flags.c_contiguous


def test_em_step_on_many_blocks():
    problem = make_problem(n_items=60_000, votes_per_item=5, n_classes=3, n_gold=100)
    edges = kernels.edges_of(VoteBlock.of_matrix(problem["votes"], problem["gold"]))
    assert len(edges) > 2
    assert edges[0] == 0
    assert edges[-1] == 60_000
    steps = [kernels.em_step(**problem, engine=engine, keep_posterior=True) for engine in ("scipy", "numba")]
    assert_same_expectation(*steps)


@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_posterior_is_that_of_a_step(problem, engine, monkeypatch):
    monkeypatch.setenv("TRUEUP_ENGINE", engine)
    expected = kernels.em_step(**problem, engine="scipy", keep_posterior=True).posterior
    np.testing.assert_allclose(kernels.posterior(**problem), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_a_state_without_weight_is_impossible(engine):
    problem = make_problem(n_classes=3)
    problem["weights"] = np.array([0.5, 0.0, 0.5])
    step = kernels.em_step(**problem, engine=engine, keep_posterior=True)
    assert (step.posterior[:, 1] == 0).all()
    assert np.isfinite(step.log_likelihood)


def test_steps_do_not_change_their_arguments(problem):
    before = {name: value.copy() for name, value in problem.items()}
    kernels.em_step(**problem, engine="numba", keep_posterior=True)
    for name, value in before.items():
        same = (value != problem[name]).nnz == 0 if name == "votes" else np.array_equal(value, problem[name])
        assert same, name


def test_the_engine_can_be_forced(monkeypatch):
    votes = make_problem()["votes"]
    monkeypatch.delenv("TRUEUP_ENGINE", raising=False)
    assert kernels.engine_for(votes, 1) == "scipy"
    assert kernels.engine_for(votes, 10**6) == "numba"
    monkeypatch.setenv("TRUEUP_ENGINE", "numba")
    assert kernels.engine_for(votes, 1) == "numba"
    monkeypatch.setenv("TRUEUP_ENGINE", "scipy")
    assert kernels.engine_for(votes, 10**6) == "scipy"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_threads_survive_a_fork():
    script = """
import os, sys, warnings
import numpy as np
from scipy import sparse
from trueup.noise import kernels
warnings.simplefilter("ignore")
n = 40_000
votes = sparse.csr_array((np.ones(3 * n), np.tile(np.arange(3) * 2, n), np.arange(0, 3 * n + 1, 3)), shape=(n, 6))
def step():
    return kernels.em_step(votes, np.full((6, 2), 0.5), np.full(2, 0.5), gold=np.full(n, -1, np.int32),
                            state_class=np.arange(2, dtype=np.int32), engine="numba").log_likelihood
first = step()
child = os.fork()
if child == 0:
    os._exit(0 if step() == first else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=500, check=False).returncode == 0
