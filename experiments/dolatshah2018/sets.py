"""The paper's data sets: a Gaussian one, three of the UCI repository with simulated labels, and a crowd's own."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import trueup as tu
from benchmarks._data import data_folder

__all__ = ["REAL_SETS", "Part", "gaussian", "labelled", "real_set", "restaurant", "trained", "uci_table"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

# File, column of the class, its positive value, columns to leave out.
REAL_SETS = {
    "heart": ("heart_statlog.csv.gz", "1", ()),
    "cancer": ("breast_cancer_wisconsin.csv.gz", "4", ("id",)),
    "diabetes": ("pima.csv.gz", "1", ()),
}


@dataclass(frozen=True, eq=False)
class Part:
    """A test set with a model's predictions.

    Attributes
    ----------
    features : array of shape (n_items, n_features)
    truth, predictions : integer arrays of shape (n_items,)
    population : dict
        The metrics on the distribution the items came from, where they can be had; else on these items.
    """

    features: Array
    truth: Codes
    predictions: Codes
    population: dict[str, float]


def metrics_of(joint: Array) -> dict[str, float]:
    """The paper's four metrics of shares or counts (truth × prediction)."""
    names = ("accuracy", "precision", "recall", "f1")
    return {name: float(tu.metrics.get_metric(name, [0, 1])(joint)) for name in names}


def trained(features: Array, labels: Codes) -> Any:
    """A logistic regression, as in the paper."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression()).fit(features, labels)


def labelled(truth: Codes, rate: float, votes: int, rng: np.random.Generator) -> tu.Labels:
    """Votes of `votes` labelers who each err on every item with the same rate."""
    wrong = rng.random((len(truth), votes)) < rate
    return tu.Labels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]), classes=[0, 1])


def gaussian(n: int, rate: float, rng: np.random.Generator) -> Part:
    """The paper's Gaussian set: n test items, a model trained on twice as many with noisy labels.

    The metrics on the population are exact: a linear rule cuts each Gaussian class along a line.
    """
    train, test = (tu.simulate.tars(n_items=m, noise_rates=rate, random_state=rng) for m in (2 * n, n))
    model = trained(train.features, np.asarray(train.labels.votes.indices) % 2)
    scaler, linear = model[0], model[1]
    weights = linear.coef_[0] / scaler.scale_
    offset = float(linear.intercept_[0] - weights @ scaler.mean_)
    ones = stats.norm.cdf((np.array([[0.0, 0.0], [1.0, 0.0]]) @ weights + offset) / np.linalg.norm(weights))
    joint = 0.5 * np.column_stack([1 - ones, ones])
    return Part(test.features, test.truth, model.predict(test.features), metrics_of(joint))


@cache
def uci_table(name: str) -> tuple[Array, Codes]:
    """Features and classes of a set of the UCI repository; rows that lack a value are left out."""
    file, positive, left_out = REAL_SETS[name]
    with gzip.open(data_folder() / "uci" / file, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    columns = [c for c in rows[0] if c != "label" and c not in left_out]
    whole = [row for row in rows if all(row[c] not in ("", "?", "nan") for c in columns)]  # as scikit-learn needs
    features = np.array([[float(row[c]) for c in columns] for row in whole])
    return features, np.array([int(row["label"] == positive) for row in whole])


def real_set(name: str, rate: float, rng: np.random.Generator) -> Part:
    """A set of the UCI repository: a random third to test on, a model trained on the rest with noisy labels."""
    features, truth = uci_table(name)
    order = rng.permutation(len(truth))
    test, train = order[: len(order) // 3], order[len(order) // 3 :]
    noisy = np.where(rng.random(len(train)) < rate, 1 - truth[train], truth[train])
    predictions = trained(features[train], noisy).predict(features[test])
    joint = tu.metrics.confusion_counts(truth[test], predictions, 2)
    return Part(features[test], truth[test], predictions, metrics_of(joint))


@cache
def restaurant() -> tuple[tu.Labels, Codes, Array]:
    """Votes of the crowd on pairs of restaurants, which pairs truly match, and how alike their fields are."""
    folder = data_folder() / "crowd-restaurant-er"
    labels = tu.read_labels(folder / "labels.csv.gz")
    truths = tu.read_gold(folder / "truth.csv.gz", labels=labels)
    names = labels.classes.tolist()
    truth = np.array([names.index(truths[item]) for item in labels.items.tolist()])
    return labels, truth, _similarities(folder, labels.items.tolist())


def _similarities(folder: Path, items: list[str]) -> Array:
    import polars as pl

    records = {row["id"]: row for row in pl.read_parquet(folder / "records.parquet").iter_rows(named=True)}
    fields = ("name", "addr", "city", "phone", "type")
    table = []
    for item in items:
        a, b = (records[int(part)] for part in item.split("_"))
        words = [(set(str(a[field]).split()), set(str(b[field]).split())) for field in fields]
        table.append([len(x & y) / max(len(x | y), 1) for x, y in words])
    return np.array(table)
