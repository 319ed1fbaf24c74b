"""The open sets that benchmarks measure on.

The folder is the one that TRUEUP_DATA names, and no other. Nothing of it is copied here. Truth is for measuring, never
for input.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import trueup as tu
from trueup._base.types import Codes
from trueup.exceptions import DataWarning

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
# Sets that came in after the models and their defaults were settled on those above.
LATER_CROWD_SETS = (
    "crowd-adult",
    "crowd-dices350",
    "crowd-face",
    "crowd-music-ms",
    "crowd-trec2010",
    "crowd-web",
    "crowd-zencrowd-in",
)
JUDGE_SETS = ("judge-llmbar",)


def data_folder() -> Path:
    """The folder of the open sets, for benchmarks and experiments alike."""
    name = os.environ.get("TRUEUP_DATA")
    if not name:
        raise FileNotFoundError("the data folder must be named, got nothing; name it in TRUEUP_DATA")
    if not Path(name).is_dir():
        raise FileNotFoundError(f"the data folder must exist, got {name!r}; name another in TRUEUP_DATA")
    return Path(name).resolve()


def load_crowd(name: str) -> tuple[tu.Labels, Codes]:
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


def graded_labelers(name: str, labels: tu.Labels) -> Codes:
    """Whom to grade: the eight with most votes, or of LLM judges every fourth by name; positions."""
    if name in JUDGE_SETS:
        names = labels.labelers.tolist()
        return np.array(sorted(range(len(names)), key=lambda k: str(names[k]))[::4])
    return np.argsort(-labels.votes_per_labeler, kind="stable")[:8]


def one_against_others(labels: tu.Labels, t: int) -> tuple[tu.Labels, dict[Any, Any]]:
    """The labels without one labeler, and his votes as predictions (the last of repeated ones)."""
    item, labeler, answer, _ = labels.vote_table()
    mine = labeler == t
    votes = dict(zip(labels.items[item[mine]].tolist(), labels.classes[answer[mine]].tolist(), strict=True))
    return labels.without_labeler(labels.labelers[t]), votes
