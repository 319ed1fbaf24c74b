"""Tests of classes that are tilted together."""

from __future__ import annotations

import numpy as np
import pytest

from trueup.estimators import tilt
from trueup.estimators.equal_classes import group_equal_classes
from trueup.estimators.tilt import Directions, tilted_truths


def example(n_items: int = 6, n_classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    posterior = rng.dirichlet(np.full(n_classes, 0.7), size=n_items)
    codes = rng.integers(n_classes, size=(2, n_items))
    return posterior, (codes[:, :, None] == np.arange(n_classes)).astype(float)


def test_groups_are_the_classes_with_equal_features() -> None:
    posterior, features = example()
    groups = group_equal_classes(posterior, features, np.random.default_rng(0))
    assert groups.posterior.shape == (6, 3)
    np.testing.assert_allclose(groups.posterior.sum(axis=1), 1.0)
    items, classes = np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6)
    places = np.argmax(groups.order[items] == classes[:, None], axis=1)
    group = (groups.starts[items, 1:] <= places[:, None]).sum(axis=1)
    np.testing.assert_array_equal(groups.features[:, items, group], features[:, items, classes])
    for item in range(6):
        sums = np.bincount(group[items == item], weights=posterior[item], minlength=3)
        np.testing.assert_allclose(groups.posterior[item], sums)


def test_without_features_classes_are_drawn_by_their_probabilities() -> None:
    posterior, _ = example()
    groups = group_equal_classes(posterior, np.empty((0, *posterior.shape)), np.random.default_rng(0))
    classes = groups.draw_classes(np.zeros((20_000, 6), dtype=np.int8), np.random.default_rng(1))
    shares = (classes[:, :, None] == np.arange(5)).mean(axis=0)
    assert np.abs(shares - posterior).max() < 5 * 0.5 / np.sqrt(20_000)


def test_truths_are_distributed_as_with_each_class_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, features = example(n_items=12)
    directions = Directions(features, np.array([0.1, 0.05]))

    def shares() -> np.ndarray:
        drawn = tilted_truths(posterior, directions, 20_000, np.random.default_rng(5))
        return (drawn[:, :, None] == np.arange(5)).mean(axis=0)

    apart = shares()
    monkeypatch.setattr(tilt, "_FEW_CLASSES", 3)
    # 500 tilts: the shares of one item differ by chance and no more.
    assert np.abs(shares() - apart).max() < 0.03


def test_what_is_certain_stays() -> None:
    posterior = np.full((2, 100), 0.005)
    posterior[:, 7] = 1 - 99 * 0.005
    posterior[1] = np.eye(100)[30]
    features = np.zeros((1, 2, 100))
    features[0, :, 7] = 1.0
    truths = tilted_truths(posterior, Directions(features, np.array([0.2])), 400, np.random.default_rng(0))
    assert (truths[:, 1] == 30).all()
    assert len(np.unique(truths[:, 0])) > 20
