"""Worlds with a known truth for the figures of the engine: independent errors, and six ways to err together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trueup as tu
from trueup.simulate import Simulation

__all__ = [
    "DEPENDENT",
    "WORLDS",
    "World",
    "better_system",
    "equal_system",
    "family_of_systems",
    "lookalikes",
    "make",
    "scored_systems",
]

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

N_LABELERS = 5
PRIOR = (0.6, 0.4)
SKILL = (0.65, 0.9)


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


def independent(n_items: int, seed: int, prior: Sequence[float] = PRIOR) -> World:
    """Labelers with one accuracy each, 65 to 90%, and a classifier of 80%, independent given the class."""
    return _as_world(
        tu.simulate.dawid_skene(
            n_items=n_items,
            n_classes=len(prior),
            n_labelers=N_LABELERS,
            prior=prior,
            accuracy=SKILL,
            random_state=seed,
        )
    )


def families(n_items: int, seed: int, prior: Sequence[float] = PRIOR) -> World:
    """Two pairs of labelers repeat the verdict of their family with 60%; the classifier is of the first family."""
    return _with_last_as_classifier(
        tu.simulate.dependent(
            n_items=n_items,
            n_labelers=N_LABELERS + 1,
            prior=prior,
            subtype_weights=[1.0],
            subtype_accuracy=[0.8],
            families=[[0, 1, N_LABELERS], [2, 3]],
            copying=0.6,
            classifier_accuracy=None,
            random_state=seed,
        )
    )


def difficulty(n_items: int, seed: int, prior: Sequence[float] = PRIOR) -> World:
    """Items are hard by degrees, for labelers and the classifier alike."""
    return _as_world(
        tu.simulate.shared_difficulty(
            n_items=n_items, n_labelers=N_LABELERS, prior=prior, accuracy=SKILL, slope=2.0, random_state=seed
        )
    )


def kinds(n_items: int, seed: int, prior: Sequence[float] = PRIOR) -> World:
    """A quarter of the items of each class is a hard kind, on which labelers are right with 60%, elsewhere with 90%."""
    return _as_world(
        tu.simulate.dependent(
            n_items=n_items,
            n_labelers=N_LABELERS,
            prior=prior,
            subtype_weights=(0.75, 0.25),
            subtype_accuracy=(0.9, 0.6),
            shared_difficulty=1.0,
            random_state=seed,
        )
    )


def lookalikes(n_items: int, seed: int, prior: Sequence[float]) -> World:
    """As kinds, but three of four errors on hard items are the class that follows theirs; three classes or more."""
    n_classes = len(prior)
    easy = np.full((n_classes, n_classes), 0.1 / (n_classes - 1))
    hard = np.full((n_classes, n_classes), 0.1 / (n_classes - 2))
    np.fill_diagonal(easy, 0.9)
    np.fill_diagonal(hard, 0.6)
    hard[np.arange(n_classes), (np.arange(n_classes) + 1) % n_classes] = 0.3
    return _with_last_as_classifier(
        tu.simulate.dependent(
            n_items=n_items,
            n_labelers=N_LABELERS + 1,
            prior=prior,
            subtype_weights=(0.75, 0.25),
            subtype_confusion=np.stack([easy, hard], axis=1),
            classifier_accuracy=None,
            random_state=seed,
        )
    )


def blind_spot(n_items: int, seed: int) -> World:
    """One item in twenty looks like the other class to everyone; errors are independent elsewhere."""
    return _as_world(
        tu.simulate.shared_difficulty(
            n_items=n_items,
            n_labelers=N_LABELERS,
            prior=PRIOR,
            accuracy=SKILL,
            slope=0.0,
            blind_spot=0.05,
            random_state=seed,
        )
    )


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


WORLDS: dict[str, Callable[..., World]] = {
    "independent": independent,
    "families": families,
    "difficulty": difficulty,
    "kinds": kinds,
    "blind spot": blind_spot,
    "misled crowd": misled,
}
DEPENDENT = ("families", "difficulty", "kinds")


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


def family_of_systems(predictions: Codes, n_systems: int, altered: float, rng: np.random.Generator) -> dict[str, Codes]:
    """The system itself as "a", and others of whose answers a share is turned."""
    n = max(1, round(altered * len(predictions))) if altered else 0
    others = {
        f"a{k}": _turned(predictions, rng.choice(len(predictions), n, replace=False)) for k in range(1, n_systems)
    }
    return {"a": predictions, **others}


def scored_systems(world: World, n_systems: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Scores of systems that lean on the truth more or less and on the classifier, so that they err with the crowd."""
    n = len(world.truth)
    common = rng.standard_normal(n)
    crowd = 2.0 * world.predictions - 1
    signal = 2.0 * world.truth - 1
    leans = rng.permutation(np.linspace(0.2, 0.8, n_systems))
    return {
        f"s{k}": 0.6 * crowd + lean * signal + 0.7 * common + 0.7 * rng.standard_normal(n)
        for k, lean in enumerate(leans.tolist())
    }


def _turned(classes: Codes, at: npt.NDArray[np.int64]) -> Codes:
    """The classes with those of some items exchanged for the other of two."""
    turned = classes.copy()
    turned[at] = 1 - turned[at]
    return turned


def _with_last_as_classifier(data: Simulation) -> World:
    """The last labeler is the classifier, and errs as the others do."""
    _, labeler, answer, _ = data.labels.vote_table()
    predictions = answer[labeler == N_LABELERS].astype(np.int64)  # everyone votes, in the order of items
    return World(data.labels.without_labeler(N_LABELERS), data.truth, predictions)


def _as_world(data: Simulation) -> World:
    assert data.predictions is not None
    return World(data.labels, data.truth, data.predictions)
