"""Plots return their axes and say what they show; without matplotlib there is one clear sentence."""

import numpy as np
import pytest

from trueup._base import optional as _optional
from trueup.exceptions import MissingExtra
from trueup.posteriors import (
    DiscreteEstimate,
    DrawnEstimate,
    JointEstimate,
    PointEstimate,
    beta_estimate,
    normal_ratio,
    poisson_binomial_estimate,
)

RNG = np.random.default_rng(0)
ESTIMATES = {
    "drawn": DrawnEstimate(RNG.beta(8, 3, 500), name="accuracy"),
    "constant": DrawnEstimate(np.ones(5), name="accuracy"),
    "discrete": DiscreteEstimate([0.2, 0.6], [0.5, 0.5], name="accuracy"),
    "many atoms": poisson_binomial_estimate(np.full(500, 0.7), scale=1 / 500, name="accuracy"),
    "continuous": beta_estimate(8, 3, name="accuracy"),
    "grid": normal_ratio(0.4, 0.02, 0.5, 0.022, 0.9, name="accuracy"),
    "point": PointEstimate(0.7, name="accuracy"),
    "undefined": DrawnEstimate([np.nan], name="accuracy"),
}


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("kind", list(ESTIMATES))
def test_every_estimate_can_be_drawn(pyplot, kind):
    ax = ESTIMATES[kind].plot(level=0.9)
    assert ax.get_xlabel() == "accuracy"
    ax.figure.canvas.draw()
    assert ESTIMATES[kind].plot(ax=ax) is ax


def test_joint(pyplot):
    joint = JointEstimate.from_draws(*RNG.beta(8, 3, (2, 500)), names=("recall", "precision"))
    ax = joint.plot(level=0.9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("recall", "precision")
    assert len(ax.patches) >= 2
    ax.figure.canvas.draw()


def test_missing_matplotlib(monkeypatch):
    monkeypatch.setattr(_optional, "is_installed", lambda module: False)
    with pytest.raises(MissingExtra, match=r"Estimate.plot\(\) needs matplotlib.*pip install 'trueup\[plot\]'"):
        ESTIMATES["drawn"].plot()
