"""Simulated votes, and what crowd-kit needs for them.

TRUEUP_PEERS names a Python that has crowd-kit and need not have trueup.
"""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._peers import seconds

__all__ = ["Columns", "Size", "ask_crowdkit", "fit_and_label", "make_votes"]

Columns = dict[str, npt.NDArray[np.int64]]
_PEERS = Path(__file__).with_name("_peers.py")


@dataclass(frozen=True)
class Size:
    """How many votes of what kind."""

    n_items: int
    n_labelers: int
    n_classes: int
    votes_per_item: int = 5

    @property
    def n_votes(self) -> int:
        """All votes."""
        return self.n_items * self.votes_per_item


def make_votes(size: Size, seed: int = 0) -> Columns:
    """Votes of labelers with accuracies between 50% and 90%, errors uniform, distinct labelers for each item."""
    rng = np.random.default_rng(seed)
    shape = (size.n_items, size.votes_per_item)
    truth = rng.integers(size.n_classes, size=size.n_items)
    # Steps that cannot go once round the circle of labelers never meet the same one twice.
    steps = rng.integers(1, size.n_labelers // size.votes_per_item, size=shape, endpoint=True)
    steps[:, 0] = rng.integers(size.n_labelers, size=size.n_items)
    labeler = np.cumsum(steps, axis=1) % size.n_labelers
    right = rng.random(shape) < rng.uniform(0.5, 0.9, size=size.n_labelers)[labeler]
    wrong = (truth[:, None] + rng.integers(1, size.n_classes, size=shape)) % size.n_classes
    return {
        "item": np.repeat(np.arange(size.n_items), size.votes_per_item),
        "labeler": labeler.ravel(),
        "label": np.where(right, truth[:, None], wrong).ravel(),
    }


def fit_and_label(model: tu.noise.NoiseModel, labels: tu.Labels) -> tuple[float, npt.NDArray[Any]]:
    """Seconds for a fit and the labels of all items, and these labels."""
    fresh = replace(labels)  # without cached properties
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        return seconds(lambda: labels.classes[model.fit(fresh).posterior(fresh).argmax(axis=1)])


def ask_crowdkit(votes: Columns, folder: Path) -> dict[str, Any] | None:
    """What crowd-kit needs for twenty iterations of Dawid–Skene, or None where there is no crowd-kit."""
    python = os.environ.get("TRUEUP_PEERS")
    if python is None:
        return None
    np.savez(folder / "votes.npz", item=votes["item"], labeler=votes["labeler"], label=votes["label"])
    call = [python, str(_PEERS), str(folder / "votes.npz"), str(folder / "labels.npy")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"crowd-kit failed, left out: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return {**json.loads(done.stdout.splitlines()[-1]), "labels": np.load(folder / "labels.npy")}
