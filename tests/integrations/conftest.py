"""Tests with the real packages: each names those that it needs by ``@pytest.mark.integrations("mlflow")``."""

import pytest


@pytest.fixture(autouse=True)
def packages(request: pytest.FixtureRequest) -> None:
    """Skip where a package is missing; `make test-integrations` takes that for a failure."""
    for mark in request.node.iter_markers("integrations"):
        for name in mark.args:
            pytest.importorskip(name)
