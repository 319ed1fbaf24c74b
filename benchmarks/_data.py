"""The open sets that benchmarks measure on.

The folder is named by TRUEUP_DATA, by default ``../shared/data`` from the root of the project. Nothing of it is copied
here. Truth is for measuring, never for input.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

import trueup as tu
from trueup.exceptions import DataWarning

__all__ = ["CROWD_SETS", "JUDGE_SETS", "data_folder", "load_crowd"]

CROWD_SETS = (
    "crowd-snow-rte",
    "crowd-snow-temp",
    "crowd-bluebird",
    "crowd-dog",
    "crowd-d-sentiment",
    "crowd-weather-cf-amt",
    "crowd-product-er",
    "crowd-restaurant-er",
    "crowd-sentiment-text",
    "crowd-labelme-feat",
    "crowd-leaves",
)
JUDGE_SETS = ("judge-llmbar",)


def data_folder() -> Path:
    """The folder of the open sets."""
    named = os.environ.get("TRUEUP_DATA")
    folder = Path(named) if named else Path(__file__).parents[1] / ".." / "shared" / "data"
    if not folder.is_dir():
        raise FileNotFoundError(f"the data folder must exist, got {str(folder)!r}; name it in TRUEUP_DATA")
    return folder.resolve()


def load_crowd(name: str) -> tuple[tu.Labels, npt.NDArray[np.int64]]:
    """The votes of a set, and the true class of each of its items as a position in ``labels.classes``, or -1."""
    folder = data_folder() / name
    with warnings.catch_warnings():
        # Labelers who voted twice on an item are known (5 pairs in weather-cf-amt) and kept as two votes.
        warnings.simplefilter("ignore", DataWarning)
        labels = tu.read_labels(folder / "labels.csv.gz")
    truths = tu.read_gold(folder / "truth.csv.gz", labels=labels)
    code_of = {label: code for code, label in enumerate(labels.classes.tolist())}
    truth = np.full(labels.n_items, -1)
    for position, item in enumerate(labels.items.tolist()):
        if item in truths:
            truth[position] = code_of[truths[item]]  # a class without any vote is an error: no model could name it
    return labels, truth
