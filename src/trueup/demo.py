"""The main job on data the project makes itself: two real classifiers, a simulated crowd, and the truth kept aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trueup._compare import compare
from trueup._evaluate import evaluate
from trueup.comparison import Comparison
from trueup.estimators import majority
from trueup.evaluation import Evaluation
from trueup.labels import Labels
from trueup.noise import EffectiveLabelers, effective_labelers

__all__ = ["Demo", "crowd_on_digits", "run_demo"]


@dataclass(frozen=True)
class Demo:
    """What the demonstration found, and what it had hidden.

    Attributes
    ----------
    labels : Labels
    effective : EffectiveLabelers
    evaluations : dict from classifier to Evaluation
    comparison : Comparison
        Of the two, by accuracy, on exactly these items.
    majority : dict from classifier to the accuracy that the majority of votes as truth would give
    truth : dict from classifier to the true accuracy
    """

    labels: Labels
    effective: EffectiveLabelers
    evaluations: dict[str, Evaluation]
    comparison: Comparison
    majority: dict[str, float]
    truth: dict[str, float]


def crowd_on_digits(
    *, n_labelers: int = 12, votes_per_item: int = 5, random_state: int = 0
) -> tuple[Labels, npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Votes of a simulated crowd on scikit-learn's digits, the truth, and the predictions of two classifiers.

    Difficulty is shared: a digit that a plain nearest-centroid rule finds ambiguous is one that labelers, too, tend to
    take for that other digit. Both classifiers are trained on a third of the data and predict the rest.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    images, digits = load_digits(return_X_y=True)
    train, test, y_train, truth = train_test_split(images, digits, train_size=1 / 3, random_state=random_state)
    predictions = {
        "support vectors": SVC(gamma=0.001).fit(train, y_train).predict(test),
        "naive Bayes": GaussianNB(var_smoothing=1e-2).fit(train, y_train).predict(test),
    }
    centres = np.array([images[digits == digit].mean(axis=0) for digit in range(10)])
    distance = np.linalg.norm(test[:, None, :] - centres, axis=2)
    lookalike = np.where(np.arange(10) == truth[:, None], np.inf, distance).argmin(axis=1)
    margin = distance[np.arange(len(truth)), lookalike] - distance[np.arange(len(truth)), truth]
    rng = np.random.default_rng(random_state)
    hard = 1 / (1 + np.exp((margin - np.quantile(margin, 0.12)) / 3))
    skill = rng.uniform(0.75, 0.97, n_labelers)
    n_items = len(truth)
    item = np.repeat(np.arange(n_items), votes_per_item)
    labeler = np.argsort(rng.random((n_items, n_labelers)), axis=1)[:, :votes_per_item].ravel()
    chance = skill[labeler] * (1 - 0.5 * hard[item])
    slip = np.where(rng.random(len(item)) < 0.8 * hard[item] + 0.1, lookalike[item], rng.integers(10, size=len(item)))
    vote = np.where(rng.random(len(item)) < chance, truth[item], slip)
    names = np.array([f"labeler {t + 1:02d}" for t in range(n_labelers)], dtype=object)
    labels = Labels.from_frame({"item": item, "labeler": names[labeler], "label": vote}, classes=list(range(10)))
    return labels, truth, predictions


def run_demo(*, random_state: int = 0, progress: Callable[[str, float], None] | None = None) -> Demo:
    """Evaluate and compare both classifiers from the crowd's votes alone, and only then look at the truth."""
    labels, truth, predictions = crowd_on_digits(random_state=random_state)

    def told(step: str) -> Callable[[float], None] | None:
        return None if progress is None else (lambda share: progress(step, share))

    evaluations = {
        name: evaluate(
            predicted,
            labels,
            metrics=["accuracy", "macro_f1", "balanced_accuracy"],
            n_warmup=300,
            n_draws=700,
            random_state=random_state,
            progress=told(f"evaluating {name}"),
        )
        for name, predicted in predictions.items()
    }
    comparison = compare(
        predictions,
        labels,
        target="sample",
        n_warmup=300,
        n_draws=700,
        check_dependence=False,  # the evaluations did it on the same votes
        random_state=random_state,
        progress=told("comparing the two"),
    )
    dirty = {}
    for name, predicted in predictions.items():
        counts = majority(labels, predicted, ties="split", random_state=random_state).counts.mean_counts
        dirty[name] = float(np.trace(counts) / counts.sum())
    hidden = {name: float((predicted == truth).mean()) for name, predicted in predictions.items()}
    return Demo(labels, effective_labelers(labels), evaluations, comparison, dirty, hidden)
