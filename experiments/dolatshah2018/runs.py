"""What the three methods say of a test set, many times over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import trueup as tu
from experiments.dolatshah2018.sets import Codes, Part, gaussian, labelled, metrics_of, real_set, restaurant, trained

__all__ = ["METHODS", "METRICS", "Outcome", "gaussian_runs", "known_rates", "real_runs", "repeated", "restaurant_runs"]

Array = npt.NDArray[np.float64]
METRICS = ("accuracy", "precision", "recall", "f1")
# The paper's names and ours.
METHODS = {"TARS": "unbiased", "DirtyEval": "dirty", "NoiseRemove": "noise-removal"}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Repetitions of one setting; arrays of shape (n_runs, n_methods, n_metrics).

    Attributes
    ----------
    truth : array of shape (n_runs, n_metrics)
    said : array
        The estimates.
    low, high : arrays
        The ends of the nominal 95% intervals.
    """

    truth: Array
    said: Array
    low: Array
    high: Array

    @property
    def errors(self) -> Array:
        """Estimate − truth."""
        return self.said - self.truth[:, None]

    @property
    def spread(self) -> Array:
        """What 95% of the absolute errors stay below, shape (n_methods, n_metrics): the paper's estimation error."""
        return np.asarray(np.quantile(np.abs(self.errors), 0.95, axis=0))

    @property
    def mae(self) -> Array:
        """Mean absolute error, shape (n_methods, n_metrics)."""
        return np.asarray(np.abs(self.errors).mean(axis=0))

    @property
    def half_width(self) -> Array:
        """Mean half-width of the intervals, shape (n_methods, n_metrics)."""
        return np.asarray((self.high - self.low).mean(axis=0) / 2)

    @property
    def held(self) -> Array:
        """How often the intervals hold the truth, shape (n_methods, n_metrics)."""
        true = self.truth[:, None]
        return np.asarray(((self.low <= true) & (true <= self.high)).mean(axis=0))


def asked(part: Part, labels: tu.Labels, noise: tu.noise.NoiseModel, seed: int) -> Array:
    """Estimates and intervals of all methods, shape (n_methods, n_metrics, 3)."""
    table = []
    for method in METHODS.values():
        options = {"features": part.features} if method == "noise-removal" else {}
        ev = tu.evaluate(
            dict(zip(labels.items.tolist(), labels.classes[part.predictions].tolist(), strict=True)),
            labels,
            noise=noise,
            metrics=METRICS,
            method=method,
            check_dependence=False,
            random_state=seed,
            **options,
        )
        table.append([[ev[name].mean, *ev[name].interval(0.95)] for name in METRICS])
    return np.array(table)


def repeated(n_runs: int, one: Callable[[int], tuple[Part, tu.Labels, tu.noise.NoiseModel]]) -> Outcome:
    """`n_runs` test sets, seeds 0, 1, …"""
    truth, said = [], []
    for seed in range(n_runs):
        part, labels, noise = one(seed)
        truth.append([part.population[name] for name in METRICS])
        said.append(asked(part, labels, noise, seed))
    values = np.array(said)
    return Outcome(np.array(truth), values[..., 0], values[..., 1], values[..., 2])


def known(rate: float, prior: Sequence[float]) -> tu.noise.Confusion:
    return tu.noise.Confusion([[1 - rate, rate], [rate, 1 - rate]], prior=prior)


def gaussian_runs(n_runs: int, *, n: int = 1000, rate: float = 0.2, votes: int = 1) -> Outcome:
    """The Gaussian set; the truth is the metric on the population."""

    def one(seed: int) -> tuple[Part, tu.Labels, tu.noise.NoiseModel]:
        rng = np.random.default_rng([n, round(1000 * rate), votes, seed])
        part = gaussian(n, rate, rng)
        return part, labelled(part.truth, rate, votes, rng), known(rate, [0.5, 0.5])

    return repeated(n_runs, one)


def real_runs(name: str, n_runs: int, *, rate: float = 0.2) -> Outcome:
    """A set of the UCI repository with one vote an item; the truth is the metric on the test items, as in the paper."""

    def one(seed: int) -> tuple[Part, tu.Labels, tu.noise.NoiseModel]:
        rng = np.random.default_rng([seed, 7])
        part = real_set(name, rate, rng)
        return part, labelled(part.truth, rate, 1, rng), known(rate, [0.5, 0.5])

    return repeated(n_runs, one)


def restaurant_runs(n_runs: int, *, votes: int = 3, rates: str = "learned") -> Outcome:
    """The restaurants with their crowd: all three votes of a pair, or one of them at random.

    Noise rates are learned from all votes by Dawid and Skene's model, or counted against the truth ("counted"), which
    is what the paper must have done: it takes them as given and has one vote a pair, from which they cannot be known.
    """
    labels, truth, features = restaurant()
    noise = _counted(labels, truth) if rates == "counted" else _learned(labels)

    def one(seed: int) -> tuple[Part, tu.Labels, tu.noise.NoiseModel]:
        rng = np.random.default_rng([seed, 11])
        cast = labels if votes == 3 else _one_vote(labels, rng)
        order = rng.permutation(len(truth))
        test, train = np.sort(order[: len(order) // 3]), order[len(order) // 3 :]
        noisy = cast.answer_counts.argmax(axis=1)
        predictions = trained(features[train], noisy[train]).predict(features[test])
        joint = tu.metrics.confusion_counts(truth[test], predictions, 2)
        part = Part(features[test], truth[test], predictions, metrics_of(joint))
        return part, cast.select(items=labels.items[test]), noise

    return repeated(n_runs, one)


def known_rates(rng: np.random.Generator) -> tuple[tu.noise.Confusion, tu.Labels]:
    """One vote of each pair of restaurants, and the labelers' rates as counted against the truth."""
    labels, truth, _ = restaurant()
    return _counted(labels, truth), _one_vote(labels, rng)


def _one_vote(labels: tu.Labels, rng: np.random.Generator) -> tu.Labels:
    """One vote of each item, drawn at random."""
    item, labeler, answer, _ = labels.vote_table()
    shuffled = rng.permutation(len(item))
    first = shuffled[np.unique(item[shuffled], return_index=True)[1]]
    columns = {
        "item": labels.items[item[first]],
        "labeler": labels.labelers[labeler[first]],
        "label": labels.classes[answer[first]],
    }
    return tu.Labels.from_frame(columns, classes=labels.classes.tolist())


def _learned(labels: tu.Labels) -> tu.noise.Confusion:
    model = tu.noise.DawidSkene().fit(labels)
    return tu.noise.Confusion(dict(zip(labels.labelers.tolist(), model.confusion_, strict=True)), prior=model.prior_)


def _counted(labels: tu.Labels, truth: Codes) -> tu.noise.Confusion:
    """Rates counted against the truth, pooled a little as Dawid and Skene's model does."""
    known = dict(zip(labels.items.tolist(), labels.classes[truth].tolist(), strict=True))
    return _learned(labels.with_gold(known))
