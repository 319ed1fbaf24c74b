"""Both engines, for tests that hold one against the other or each against what is exact."""

import pytest


@pytest.fixture(params=["scipy", "numba"])
def engine(request, monkeypatch):
    """The name of the engine that kernels and chains then use."""
    if request.param == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_ENGINE", request.param)
    return request.param
