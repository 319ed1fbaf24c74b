"""Worlds with a known truth: labelers who err independently, and four ways to err together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import trueup as tu
from trueup._base.types import Codes
from trueup.simulate import Simulation

N_LABELERS = 5
PRIOR = (0.6, 0.4)
_CROWD: dict[str, Any] = {"n_labelers": N_LABELERS, "prior": PRIOR, "accuracy": (0.65, 0.9)}


@dataclass(frozen=True, eq=False)
class World:
    """The votes, the truth, and a classifier that errs as the labelers do."""

    labels: tu.Labels
    truth: Codes
    predictions: Codes

    @property
    def accuracy(self) -> float:
        """Of the classifier on exactly these items."""
        return float(np.mean(self.predictions == self.truth))


def independent(n_items: int, seed: int) -> World:
    """Labelers with one accuracy each, 65 to 90%, and a classifier of 80%, independent given the class."""
    return _as_world(tu.simulate.dawid_skene(n_items=n_items, n_classes=2, **_CROWD, random_state=seed))


def families(n_items: int, seed: int) -> World:
    """Two pairs of labelers repeat the verdict of their family with 60%; the classifier is of the first family."""
    data = tu.simulate.dependent(
        n_items=n_items,
        n_labelers=N_LABELERS + 1,
        prior=PRIOR,
        subtype_weights=[1.0],
        subtype_accuracy=[0.8],
        families=[[0, 1, N_LABELERS], [2, 3]],
        copying=0.6,
        classifier_accuracy=None,
        random_state=seed,
    )
    _, labeler, answer, _ = data.labels.vote_table()
    predictions = answer[labeler == N_LABELERS].astype(np.int64)  # everyone votes, in the order of items
    return World(data.labels.without_labeler(N_LABELERS), data.truth, predictions)


def difficulty(n_items: int, seed: int) -> World:
    """Items are hard by degrees, for labelers and the classifier alike."""
    return _as_world(tu.simulate.shared_difficulty(n_items=n_items, slope=2.0, **_CROWD, random_state=seed))


def blind_spot(n_items: int, seed: int) -> World:
    """One item in twenty looks like the other class to everyone; errors are independent elsewhere."""
    data = tu.simulate.shared_difficulty(n_items=n_items, slope=0.0, blind_spot=0.05, **_CROWD, random_state=seed)
    return _as_world(data)


def misled(n_items: int, seed: int) -> World:
    """A quarter of the items misleads everyone: labelers are right on it with 30%, elsewhere with 90%."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < PRIOR[1]).astype(np.int64)
    is_misleading = rng.random(n_items) < 0.25
    accuracy = np.where(is_misleading, 0.3, 0.9)
    votes = np.where(rng.random((N_LABELERS, n_items)) < accuracy, truth, 1 - truth)
    errs_alone = seed % 2 == 0  # the classifier errs with the crowd, or on items of its own
    right = 0.8 if errs_alone else np.where(is_misleading, 0.25, 0.93)
    predictions = np.where(rng.random(n_items) < right, truth, 1 - truth)
    return World(tu.Labels.from_matrix(votes.T), truth, predictions)


WORLDS: dict[str, Callable[[int, int], World]] = {
    "independent": independent,
    "families": families,
    "difficulty": difficulty,
    "blind spot": blind_spot,
    "misled crowd": misled,
}


def make(world: str, n_items: int, seed: int) -> World:
    """A world by its name."""
    return WORLDS[world](n_items, seed)


def better_system(world: World, gain: float, rng: np.random.Generator) -> Codes:
    """A system that errs on items of its own, truly better than the classifier by `gain` on exactly these items."""
    n = len(world.truth)
    n_errors = round(n * (1 - world.accuracy - gain))
    wrong = rng.choice(n, max(n_errors, 0), replace=False)
    return _turned(world.truth, wrong)


def equal_system(world: World, n_exchanged: int, rng: np.random.Generator) -> Codes:
    """A system that shares the classifier's errors but for some, and is exactly as often right."""
    right = np.flatnonzero(world.predictions == world.truth)
    wrong = np.flatnonzero(world.predictions != world.truth)
    n = min(n_exchanged, len(wrong))
    moved = np.concatenate([rng.choice(right, n, replace=False), rng.choice(wrong, n, replace=False)])
    return _turned(world.predictions, moved)


def _turned(classes: Codes, at: Codes) -> Codes:
    """The classes with those of some items exchanged for the other of two."""
    turned = classes.copy()
    turned[at] = 1 - turned[at]
    return turned


def _as_world(data: Simulation) -> World:
    assert data.predictions is not None
    return World(data.labels, data.truth, data.predictions)
