"""Compile what most tests run, once, so that not every worker of the tests does it anew; see the Makefile."""

import numpy as np

import trueup as tu
from trueup._base.optional import is_installed

FEW = {"n_draws": 10, "n_warmup": 5}


def main() -> None:
    """Call what is compiled, on little data."""
    crowd = tu.simulate.baseline(n_items=30, random_state=0)
    scores = crowd.truth + np.random.default_rng(0).normal(0.0, 1.0, 30)
    tu.evaluate(crowd.predictions, crowd.labels, n_draws=10)
    tu.compare({"a": scores, "b": -scores}, crowd.labels, metric="auc", n_draws=10)
    tu.evaluate(crowd.predictions, crowd.labels, noise="dawid-skene", **FEW)
    tu.preferences(tu.simulate.pairs(n_contests=30, random_state=0).pairs, noise="mirrored", **FEW)
    tu.mean_score(tu.simulate.ratings(n_items=30, random_state=0).labels, noise="ordinal", **FEW)


if __name__ == "__main__" and is_installed("numba"):
    main()
