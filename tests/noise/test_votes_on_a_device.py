"""Sums over votes on a device are those of the reference; on a GPU, also those of the fused pass."""

import numpy as np
import pytest
from torch_devices import DEVICES, NEEDS_GPU, torch
from vote_problems import CLASSES, PROBLEMS, make_problem

from trueup._base.engines import using_engine
from trueup.noise import kernels
from trueup.noise import torch as module
from trueup.noise.torch import DevicePasses


def on(device, array):
    return torch.as_tensor(array).to(device)


def expected_and_stepped(problem, device):
    expected = kernels.em_step(**problem, engine="scipy", keep_posterior=True)
    n_classes = int(problem["state_class"].max()) + 1
    with using_engine(f"torch:{device}"):
        passes = DevicePasses(problem["votes"], problem["gold"], n_classes, n_classes)
    step = passes.expect(on(device, problem["table"]), on(device, problem["weights"]), problem["state_class"])
    return expected, passes, step


def assert_same(step, expected, tolerance):
    """The same counts, to a share of the votes that they are parts of."""
    volume = expected.counts.sum(axis=1, keepdims=True)
    assert (np.abs(step.counts.cpu().numpy() - expected.counts) <= tolerance * (1 + volume)).all()
    np.testing.assert_allclose(step.state_counts.cpu(), expected.state_counts, rtol=tolerance, atol=tolerance)
    assert step.log_likelihood == pytest.approx(expected.log_likelihood, rel=tolerance)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_step_is_that_of_the_reference(name, n_classes, device, monkeypatch):
    problem = make_problem(n_classes=n_classes, **PROBLEMS[name])
    monkeypatch.setattr(module, "BLOCK", 50)  # several blocks
    expected, passes, step = expected_and_stepped(problem, device)
    assert set(passes._fused_for.values()) == {None}
    assert_same(step, expected, 1e-10)


@NEEDS_GPU
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("name", [name for name in PROBLEMS if "repeated" not in name])
def test_the_fused_pass_is_the_reference_too(name, n_classes, monkeypatch):
    monkeypatch.setattr(module, "_FEWEST_VOTES", 0)
    problem = make_problem(n_classes=n_classes, **PROBLEMS[name])
    expected, passes, step = expected_and_stepped(problem, "cuda")
    assert (set(passes._fused_for.values()) != {None}) == (len(problem["weights"]) <= 16)
    assert_same(step, expected, 1e-6)
