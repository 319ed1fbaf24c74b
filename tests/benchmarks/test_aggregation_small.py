"""The aggregation benchmark runs from end to end on a small set, and counts right answers as numpy does."""

import csv
import gzip
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SET = "crowd-bluebird"

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def run(tmp_path_factory, data_folder):
    out = tmp_path_factory.mktemp("aggregation") / "out.json"
    environment = {k: v for k, v in os.environ.items() if k != "TRUEUP_PEERS"}
    command = [sys.executable, "-m", "benchmarks.aggregation", "--quick", "--sets", SET, "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return done.stdout, json.loads(out.read_text(encoding="utf-8"))["sets"][SET]


def rows_of(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def majority_accuracy(folder):
    """Share of items whose most frequent answer is the truth; a tie counts for its part."""
    votes = rows_of(folder / "labels.csv.gz")
    truth = {row["item"]: row["label"] for row in rows_of(folder / "truth.csv.gz")}
    items, item = np.unique([row["item"] for row in votes], return_inverse=True)
    classes, label = np.unique([row["label"] for row in votes], return_inverse=True)
    counts = np.zeros((len(items), len(classes)))
    np.add.at(counts, (item, label), 1)
    top = counts == counts.max(axis=1, keepdims=True)
    right = np.array([[truth[name] == c for c in classes] for name in items])
    return float(((top & right).sum(axis=1) / top.sum(axis=1)).mean())


def test_every_number_is_finite(run):
    _, numbers = run
    for kind in ("accuracy", "seconds"):
        assert numbers[kind]
        assert all(map(math.isfinite, numbers[kind].values()))
    assert all(0 <= value <= 1 for value in numbers["accuracy"].values())
    assert sum(candidate["weight"] for candidate in numbers["auto"]["candidates"]) == pytest.approx(1)


def test_majority_is_counted_as_numpy_counts_it(run, data_folder):
    assert run[1]["accuracy"]["Majority"] == pytest.approx(majority_accuracy(data_folder / SET), abs=1e-12)
