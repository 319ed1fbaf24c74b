"""The engine that a fit names is the one that works it out."""

import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.noise import kernels


@pytest.fixture(scope="module")
def labels():
    return tu.simulate.dawid_skene(n_items=300, random_state=0).labels


@pytest.mark.parametrize("name", ["scipy", "numba"])
def test_the_named_engine_takes_every_step(labels, name, monkeypatch):
    pytest.importorskip(name)
    used = []
    step = kernels.em_step
    monkeypatch.setattr(
        kernels, "em_step", lambda *args, **kwargs: used.append(kwargs["engine"]) or step(*args, **kwargs)
    )
    tu.noise.fit(labels, "dawid-skene", engine=name)
    assert set(used) == {name}


@pytest.mark.parametrize("model", ["majority", "glad", "auto"])
def test_a_model_without_compiled_steps_refuses_the_name(labels, model):
    with pytest.raises(InvalidParameter, match=r"`engine` of \w+ must be one of 'scipy'.*, got 'numba'; leave it out"):
        tu.noise.fit(labels, model, engine="numba")
