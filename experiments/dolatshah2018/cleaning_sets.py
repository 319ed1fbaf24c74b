"""Training sets with noisy labels for advice 2: the paper's five with a mix of noise rates, and two real crowds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._data import data_folder
from experiments.dolatshah2018.runs import known_rates
from experiments.dolatshah2018.sets import Array, Codes, restaurant, uci_table

__all__ = ["CROWDS", "FIVE", "MIX", "SETS", "CleaningSet", "Mix", "cleaning_set", "gaussian_set"]

# Shares of the items, and their rates (r₋₁₊₁, r₊₁₋₁): how often a 0 is labeled 1, and a 1 is labeled 0.
Mix = tuple[tuple[float, tuple[float, float]], ...]
MIX: Mix = ((2 / 3, (0.4, 0.1)), (1 / 3, (0.3, 0.4)))  # Section 6.3.3
FIVE = ("gaussian", "heart", "cancer", "diabetes", "restaurant")
CROWDS = ("sentiment", "labelme", "restaurant's own crowd")


@dataclass(frozen=True, eq=False)
class CleaningSet:
    """What an advisor gets, and what only the oracle and the examiner know.

    Attributes
    ----------
    X : array or sparse matrix
        Features of the training items, in the order of ``labels.items``.
    labels : Labels
    noise : NoiseModel
    truth : integer array of shape (n_items,)
        Positions in ``labels.classes``; the oracle's.
    X_test, y_test : arrays
        The examiner's.
    """

    X: Any
    labels: tu.Labels
    noise: tu.noise.NoiseModel
    truth: Codes
    X_test: Any
    y_test: Codes


def mixed(X: Array, truth: Codes, X_test: Array, y_test: Codes, mix: Mix, rng: np.random.Generator) -> CleaningSet:
    """One vote an item; each kind of noise is a labeler whose rates are known. Features are standardised."""
    ends = np.round(np.cumsum([share for share, _ in mix]) * len(truth)).astype(int)
    kind = np.searchsorted(ends, rng.permutation(len(truth)), side="right")
    matrices = np.array([[[1 - a, a], [b, 1 - b]] for _, (a, b) in mix])
    votes = np.full((len(truth), len(mix)), -1)
    noisy = (rng.random(len(truth)) < matrices[kind, truth, 1]).astype(int)
    votes[np.arange(len(truth)), kind] = noisy
    # The share of each class that noisy labels show once the known noise is inverted: no look at the truth.
    ones = float(np.linalg.inv(matrices)[kind, noisy, 1].mean())
    prior = np.clip(ones, 0.02, 0.98)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    return CleaningSet(
        (X - mean) / scale,
        tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1]),
        tu.noise.Confusion(matrices, prior=[1 - prior, prior]),
        truth,
        (X_test - mean) / scale,
        y_test,
    )


def gaussian_set(
    rng: np.random.Generator, *, n: int = 667, apart: float = 1.0, mix: Mix = MIX, n_test: int = 10_000
) -> CleaningSet:
    """The Gaussian set with its means so far apart; many test items stand for the population."""
    means = ((0.0, 0.0), (apart, 0.0))
    train, test = (tu.simulate.tars(n_items=m, means=means, random_state=rng) for m in (n, n_test))
    return mixed(train.features, train.truth, test.features, test.truth, mix, rng)


def _divided(X: Array, truth: Codes, rng: np.random.Generator) -> CleaningSet:
    """Two thirds train and the rest tests."""
    order = rng.permutation(len(truth))
    test, train = order[: len(order) // 3], order[len(order) // 3 :]
    return mixed(X[train], truth[train], X[test], truth[test], MIX, rng)


def _restaurants(rng: np.random.Generator) -> CleaningSet:
    _, truth, features = restaurant()
    return _divided(features, truth, rng)


def _own_crowd(rng: np.random.Generator) -> CleaningSet:
    """The votes that the pairs really got: one of the three, with the labelers' rates counted, as the paper has it."""
    labels, truth, features = restaurant()
    noise, one = known_rates(rng)
    order = rng.permutation(len(truth))
    test, train = order[: len(order) // 3], np.sort(order[len(order) // 3 :])
    return CleaningSet(
        features[train], one.select(items=labels.items[train]), noise, truth[train], features[test], truth[test]
    )


@cache
def _crowd(folder: str, table: str) -> tuple[tu.Labels, tu.noise.NoiseModel, Codes, list[Any], list[Any], Codes]:
    """Votes of a crowd, Dawid and Skene's matrices, truths, rows of training and test items, test truths."""
    import polars as pl

    path = data_folder() / folder
    labels = tu.read_labels(path / "labels.csv.gz")
    train, test = (pl.read_parquet(path / f"{table}_{part}.parquet") for part in ("train", "test"))
    place = {str(item): k for k, item in enumerate(train["item"].to_list())}
    at = [place[str(item)] for item in labels.items.tolist()]
    codes = {str(name): k for k, name in enumerate(labels.classes.tolist())}
    truth, test_truth = (np.array([codes[str(c)] for c in part["truth"].to_list()]) for part in (train, test))
    inputs = [part.drop("item", "truth").rows() for part in (train, test)]
    model = tu.noise.DawidSkene().fit(labels)
    noise = tu.noise.Confusion(dict(zip(labels.labelers.tolist(), model.confusion_, strict=True)), prior=model.prior_)
    return labels, noise, truth[at], [inputs[0][k] for k in at], inputs[1], test_truth


def _sentiment(rng: np.random.Generator) -> CleaningSet:
    """A thousand sentences at random to train and the rest to test: TF-IDF of the 600 most frequent words.

    The set's own test part is of fragments, often of one to three words, which no model of whole sentences does well.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, noise, truth, rows, _, _ = _crowd("crowd-sentiment-text", "text")
    order = rng.permutation(len(truth))
    train, test = np.sort(order[:1000]), order[1000:]
    words = TfidfVectorizer(max_features=600, sublinear_tf=True)
    X = words.fit_transform([rows[k][0] for k in train])
    X_test = words.transform([rows[k][0] for k in test])
    return CleaningSet(X, labels.select(items=labels.items[train]), noise, truth[train], X_test, truth[test])


def _labelme(rng: np.random.Generator) -> CleaningSet:
    """Two thirds of the images at random: the first 50 principal components of their 512 features."""
    from sklearn.decomposition import PCA

    labels, noise, truth, rows, test, y_test = _crowd("crowd-labelme-feat", "features")
    some = np.sort(rng.choice(len(truth), len(truth) * 2 // 3, replace=False))
    everything = np.array(rows)[some]
    components = PCA(50, whiten=True, random_state=0).fit(everything)
    X, X_test = components.transform(everything), components.transform(np.array(test))
    return CleaningSet(X, labels.select(items=labels.items[some]), noise, truth[some], X_test, y_test)


def _uci(name: str) -> Callable[[np.random.Generator], CleaningSet]:
    return lambda rng: _divided(*uci_table(name), rng)


def _gaussians(apart: float, mix: Mix) -> Callable[[np.random.Generator], CleaningSet]:
    return lambda rng: gaussian_set(rng, apart=apart, mix=mix)


# Figure 11: the four noise settings, with means as printed and three apart.
_SETTINGS: dict[str, Mix] = {
    "(0.4, 0.2)": ((1.0, (0.4, 0.2)),),
    "(0.2, 0.2)": ((1.0, (0.2, 0.2)),),
    "half (0.4, 0), half (0.2, 0.2)": ((0.5, (0.4, 0.0)), (0.5, (0.2, 0.2))),
    "0.9 (0.4, 0), 0.1 (0.2, 0.2)": ((0.9, (0.4, 0.0)), (0.1, (0.2, 0.2))),
}
SETS: dict[str, Callable[[np.random.Generator], CleaningSet]] = {
    "gaussian": _gaussians(1.0, MIX),
    "heart": _uci("heart"),
    "cancer": _uci("cancer"),
    "diabetes": _uci("diabetes"),
    "restaurant": _restaurants,
    "gaussian, 3 apart": _gaussians(3.0, MIX),
    "sentiment": _sentiment,
    "labelme": _labelme,
    "restaurant's own crowd": _own_crowd,
    **{f"gaussian, {d:g} apart, {name}": _gaussians(d, mix) for d in (1.0, 3.0) for name, mix in _SETTINGS.items()},
}


def cleaning_set(name: str, repetition: int) -> CleaningSet:
    """The set of one repetition: the same for every strategy."""
    return SETS[name](np.random.default_rng([18, repetition, *name.encode()]))
