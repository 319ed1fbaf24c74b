"""Training on votes: how good are the classifiers, can a model be chosen without truth, and what does it cost?

Run ``python -m benchmarks.training [section ...] [--quick] [--json out.json]``; without names all sections are run. The
data are found through TRUEUP_DATA; crowd-kit and cleanlab are run by the Python that TRUEUP_PEERS names and left out
where it is not set. Costs are ratios of times in the same run. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import timeit
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import trueup as tu
from benchmarks._coverage_tally import as_text
from benchmarks._sections import run_sections
from benchmarks._training_crowds import SETS, crowd
from benchmarks._training_ionosphere import ionosphere, selection
from benchmarks._training_torch import torch_cost
from trueup.training import NoisyLabelClassifier, NoisyLogisticRegression


def cost(quick: bool) -> str:
    """Training of logistic regression on votes, in units of training on one class for each item."""
    n, d, turns = (5_000, 20, 2) if quick else (100_000, 50, 5)
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    X = rng.normal(size=(n, d))
    X[:, 0] += truth
    votes = np.where(rng.random((n, 3)) < 0.75, truth[:, None], 1 - truth[:, None])
    labels = tu.Labels.from_matrix(votes)
    learned = tu.noise.DawidSkene().fit(labels)
    known = tu.noise.Confusion(learned.confusion_for(labels).mean(axis=0), prior=learned.prior_)
    posterior = known.posterior(labels)
    hard = posterior.argmax(axis=1)
    plain = LogisticRegression(C=1.0, tol=1e-4, max_iter=1000)
    models: dict[str, Any] = {
        "plain logistic regression": plain,
        "NoisyLabelClassifier, mmse": NoisyLabelClassifier(plain, noise=known),
        "the same with the noise model learned": NoisyLabelClassifier(plain),
        "NoisyLogisticRegression, mmse": NoisyLogisticRegression(method="mmse", tol=1e-4, noise=known),
        "NoisyLogisticRegression, map": NoisyLogisticRegression(tol=1e-4, noise=known),
    }
    taken: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(turns):
        for name, model in models.items():
            fresh, y = clone(model), hard if model is plain else labels
            taken[name].append(timeit.timeit(lambda fresh=fresh, y=y: fresh.fit(X, y), number=1))
    first = np.array(next(iter(taken.values())))
    ratios = {name: np.array(times) / first for name, times in taken.items()}
    rows = [
        [name, f"{np.median(taken[name]):.2f}", f"{np.median(ratio):.2f}", f"{ratio.min():.2f} – {ratio.max():.2f}"]
        for name, ratio in ratios.items()
    ]
    return as_text([f"{n:,} × {d}, two classes", "seconds", "ratio", "range"], rows)


SECTIONS: dict[str, Callable[[bool], str]] = {
    **{name: partial(crowd, name) for name in SETS},
    "ionosphere": ionosphere,
    "selection": selection,
    "cost": cost,
    "torch": partial(torch_cost, "cpu"),
    "gpu": partial(torch_cost, "cuda"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of searches that stop early at large C
        run_sections("training", __doc__, SECTIONS, arguments)


if __name__ == "__main__":
    main()
