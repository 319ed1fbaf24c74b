"""Ratings from the ordinal model."""

from __future__ import annotations

import numpy.typing as npt

from trueup._base.validation import RandomState, as_generator, check_integer, check_prior
from trueup.noise.ordinal import draw_parameters
from trueup.simulate.simulation import Simulation, classifier_matrix, draw_categories, draw_classes, draw_votes


def ratings(
    *,
    n_items: int = 500,
    n_classes: int = 5,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike | None = None,
    classifier_accuracy: float | None = 0.8,
    random_state: RandomState = None,
) -> Simulation:
    """Ratings of labelers with thresholds of their own, from the model and the prior of `trueup.noise.Ordinal`.

    Parameters
    ----------
    n_items, n_classes, n_labelers : int
    votes_per_item : int, optional
        Distinct labelers drawn at random for each item; by default all rate.
    prior : array-like of shape (n_classes,), optional
        Class probabilities; uniform by default.
    classifier_accuracy : float, optional
        Of a classifier whose errors go to all classes alike; None for no classifier.
    random_state : int, Generator or None

    Returns
    -------
    Simulation
        Parameters: ``prior``, ``confusion``.

    Examples
    --------
    >>> from trueup.simulate import ratings
    >>> ratings(n_items=100, random_state=0)
    Simulation(Labels(100 items, 5 labelers, 5 classes, 500 votes), truth, predictions)
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_classes = check_integer(n_classes, name="n_classes", low=2)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior, n_classes=n_classes)
    classifier = classifier_matrix(classifier_accuracy, None, n_classes)
    rng = as_generator(random_state)
    matrices = draw_parameters(n_labelers, n_classes, rng).matrices()
    matrices /= matrices.sum(axis=2, keepdims=True)
    truth = draw_classes(pi, n, rng)
    return Simulation(
        labels=draw_votes(matrices, truth, votes_per_item, rng),
        truth=truth,
        predictions=None if classifier is None else draw_categories(classifier, truth, rng),
        parameters={"prior": pi, "confusion": matrices},
    )
