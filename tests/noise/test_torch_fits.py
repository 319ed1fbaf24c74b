"""Fits with torch are those of the processor, on every device; where memory is short they say so and go on."""

from dataclasses import replace

import numpy as np
import pytest
from torch_devices import DEVICES, NEEDS_GPU

import trueup as tu
from trueup.data.votes import shared_votes
from trueup.exceptions import InvalidParameter, TrueupWarning, silenced_warnings
from trueup.noise import torch as device_module

MODELS = {
    "one-coin": {},
    "one-coin, likeliest": {"right": 0.0, "wrong": 0.0},
    "dawid-skene": {},
    "dawid-skene, not pooled": {"pooling": 0.0},
    "dawid-skene, pooled as learned": {"pooling": "auto"},
    "soft-truth": {},
    "glad": {},
    "glad, prior learned": {"prior": "learn"},
}


def fitted(labels, name, engine, **more):
    return tu.noise.fit(labels, name.split(",")[0], engine=engine, **MODELS[name], **more)


@pytest.fixture(scope="module", params=["plain", "gold", "repeated votes and abstentions"])
def labels(request):
    sim = tu.simulate.dawid_skene(n_items=300, n_classes=3, n_labelers=9, votes_per_item=5, random_state=4)
    if request.param == "gold":
        return sim.labels.with_gold({sim.labels.items[i]: sim.labels.classes[sim.truth[i]] for i in range(30)})
    if request.param == "plain":
        return sim.labels
    rng = np.random.default_rng(5)
    said = np.array(["x", "y", "z", "?"])[rng.choice(4, size=2400, p=[0.4, 0.3, 0.2, 0.1])]
    columns = {"item": rng.integers(300, size=2400), "labeler": rng.integers(5, size=2400), "label": said}
    with silenced_warnings():  # of votes that repeat others
        return tu.Labels.from_frame(columns, abstain="?", abstain_policy="answer")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_fits_are_those_of_the_processor(labels, name, device):
    settings = {"max_iter": 30, "tol": 0.0}
    plain, placed = (fitted(labels, name, engine, **settings) for engine in ("scipy", f"torch:{device}"))
    tolerance = 1e-9 if device == "cpu" else 1e-6
    assert placed.n_iter_ == plain.n_iter_
    np.testing.assert_allclose(placed.loss_history_, plain.loss_history_, atol=tolerance)
    np.testing.assert_allclose(placed.prior_, plain.prior_, atol=tolerance)
    np.testing.assert_allclose(placed.posterior(labels), plain.posterior(labels), atol=tolerance)
    for attribute in ("confusion_", "pooled_", "shape_", "accuracy_", "pooling_", "ability_", "easiness_"):
        if hasattr(plain, attribute):
            assert isinstance(getattr(placed, attribute), np.ndarray | float)
            np.testing.assert_allclose(
                getattr(placed, attribute), getattr(plain, attribute), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("name", ["one-coin", "dawid-skene", "soft-truth"])
def test_votes_of_a_labeler_that_share_one_are_the_same_to_all_engines(name):
    pytest.importorskip("numba", reason="one of the engines is numba: pip install 'trueup[fast]'")
    rng = np.random.default_rng(5)
    columns = {"item": rng.integers(200, size=2400), "labeler": rng.integers(4, size=2400)}
    with silenced_warnings():  # of votes that repeat others
        labels = tu.Labels.from_frame({**columns, "label": (columns["item"] + (rng.random(2400) < 0.3)) % 2})
    labels = replace(labels, votes=shared_votes(labels))
    assert (labels.votes.data % 1 > 0).any()
    with silenced_warnings():
        plain, *others = (fitted(labels, name, e, max_iter=30) for e in ("scipy", "numba", "torch:cpu"))
    for other in others:
        np.testing.assert_allclose(other.loss_history_, plain.loss_history_, atol=1e-9)
        np.testing.assert_allclose(other.posterior(labels), plain.posterior(labels), atol=1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_the_plain_answer_is_that_of_the_processor(device):
    sim = tu.simulate.dawid_skene(n_items=300, n_classes=3, n_labelers=9, votes_per_item=5, random_state=4)
    plain, placed = (tu.evaluate(sim.predictions, sim.labels, engine=engine) for engine in ("scipy", f"torch:{device}"))
    np.testing.assert_allclose(placed.core.base, plain.core.base, atol=1e-9 if device == "cpu" else 1e-6)
    assert placed["accuracy"].interval() == pytest.approx(plain["accuracy"].interval(), abs=0.005)


@NEEDS_GPU
@pytest.mark.parametrize("name", ["one-coin", "dawid-skene"])
def test_the_fused_pass_fits_alike(name):
    labels = tu.simulate.dawid_skene(n_items=60_000, n_labelers=300, votes_per_item=5, random_state=4).labels
    settings = {"max_iter": 20, "tol": 0.0}
    plain, placed = (fitted(labels, name, engine, **settings) for engine in ("scipy", "torch:cuda"))
    np.testing.assert_allclose(placed.confusion_, plain.confusion_, atol=1e-6)
    np.testing.assert_allclose(placed.prior_, plain.prior_, atol=1e-6)
    np.testing.assert_allclose(placed.loss_history_, plain.loss_history_, atol=1e-6)
    again = fitted(labels, name, "torch:cuda", **settings)
    np.testing.assert_array_equal(again.confusion_, placed.confusion_)


@pytest.mark.parametrize("name", ["dawid-skene", "glad"])
def test_a_fit_goes_on_without_the_device_where_memory_is_short(labels, name, monkeypatch):
    monkeypatch.setattr(device_module, "free_bytes", lambda device: 1000.0)
    with pytest.warns(TrueupWarning, match=r"too little memory for [\d,]+ votes \(about .* GB are needed on cpu and"):
        placed = fitted(labels, name, "torch:cpu")
    np.testing.assert_allclose(placed.posterior(labels), fitted(labels, name, "scipy").posterior(labels), atol=1e-9)


@pytest.mark.parametrize("name", ["torch:cuda:99", "torch:mps", "torch:abacus"])
def test_a_device_that_is_not_here_is_refused(labels, name):
    with pytest.raises(InvalidParameter, match=r"`engine` must name a device that is here, torch:cpu.*got 'torch:"):
        tu.noise.fit(labels, "dawid-skene", engine=name)


def test_the_model_that_is_picked_is_that_of_the_processor(labels, monkeypatch):
    expected = tu.noise.fit(labels, "auto").posterior(labels)
    monkeypatch.setenv("TRUEUP_ENGINE", "torch:cpu")
    np.testing.assert_allclose(tu.noise.fit(labels, "auto").posterior(labels), expected, atol=1e-9)
