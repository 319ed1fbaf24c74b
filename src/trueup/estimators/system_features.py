"""What the systems under test say of an item, as features of a log-linear prior of its class.

A system's output helps to tell the truth of an item, and leaving it out would pull every metric towards chance. But
systems err together: two checkpoints of one model are not two witnesses. As features of a model of the truth *given*
all outputs they may depend on each other in any way.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from trueup.noise.item_prior import LogLinearPrior
from trueup.predictions import AlignedPredictions

__all__ = ["Used", "system_prior"]

Floats = npt.NDArray[np.float64]
Used = Literal["classes", "scores", "probabilities"]

_INTERCEPT_SCALE = 2.5
_MAIN_SCALE = 3.0  # of a feature that tells right from wrong: log-odds of a system that is right 95 times in 100
_DETAIL_SCALE = 1.5  # of what bends or splits a main feature
_MOST_MAIN = 8  # systems with features of their own; more are summed up by their principal components
_MOST_DETAIL = 30
_COMPONENTS = 6
_GRAM_ROWS = 20_000  # rows from which principal components are found
_LEAST_PROBABILITY = 1e-4
_KNOTS = (-0.8, 0.0, 0.8)  # where the log-odds may bend along normal scores


def system_prior(aligned: AlignedPredictions, n_classes: int, *, used: Used) -> LogLinearPrior:
    """The prior of the class of each item, given what the systems say of it.

    Parameters
    ----------
    aligned : AlignedPredictions
        Of one system or many, with what `used` names.
    n_classes : int
    used : {"classes", "scores", "probabilities"}
        What the metric looks at, and so what must be calibrated. An item without a prediction has features of zero.
    """
    main = _main(aligned, n_classes, used)
    n_systems, n_items = main.shape[:2]
    detail = np.empty((0, n_items, n_classes))
    if n_systems > _MOST_MAIN:
        main = _components(main)
        if used == "scores":
            detail = _bends(main[:1], aligned.positive)
    elif used == "scores" and n_systems * len(_KNOTS) <= _MOST_DETAIL:
        detail = _bends(main, aligned.positive)
    elif used == "classes":
        detail = _splits(aligned.codes, n_classes)
    intercepts = np.broadcast_to(np.eye(n_classes)[1:, None, :], (n_classes - 1, n_items, n_classes))
    features = np.concatenate([intercepts, main, detail])
    scale = np.repeat([_INTERCEPT_SCALE, _MAIN_SCALE, _DETAIL_SCALE], [n_classes - 1, len(main), len(detail)])
    return LogLinearPrior(np.moveaxis(features, 0, 2), scale)


def _main(aligned: AlignedPredictions, n_classes: int, used: Used) -> Floats:
    """One feature for each system, shape (n_systems, n_items, n_classes)."""
    if used == "classes":
        assert aligned.codes is not None
        return np.asarray(aligned.codes[:, :, None] == np.arange(n_classes), dtype=float)
    if used == "scores":
        assert aligned.scores is not None
        assert aligned.positive is not None
        features = np.zeros((*aligned.scores.shape, n_classes))
        features[:, :, aligned.positive] = np.stack([_normal_scores(row) for row in aligned.scores])
        return features
    assert aligned.probabilities is not None
    logs = np.log(np.maximum(aligned.probabilities, _LEAST_PROBABILITY))
    logs = np.nan_to_num(logs - logs.mean(axis=2, keepdims=True))
    spread = logs.std(axis=(1, 2), keepdims=True)
    return np.asarray(logs / np.where(spread > 0, spread, 1.0))


def _normal_scores(scores: Floats) -> Floats:
    """Ranks as quantiles of the normal law, ties at their middle; 0 where there is no score."""
    given = np.flatnonzero(~np.isnan(scores))
    out = np.zeros(len(scores))
    out[given] = ndtri((rankdata(scores[given]) - 0.5) / max(len(given), 1))
    return out


def _bends(main: Floats, positive: int | None) -> Floats:
    """Hinges along the scores: the log-odds of the class need not be a straight line."""
    assert positive is not None
    bent = []
    for one in main[:, :, positive]:
        for knot in _KNOTS:
            hinge = np.zeros(main.shape[1:])
            hinge[:, positive] = np.maximum(one - knot, 0.0)
            bent.append(hinge)
    return np.stack(bent)


def _splits(codes: npt.NDArray[np.int32] | None, n_classes: int) -> Floats:
    """Being right may be likelier for some classes; and two systems together may say more than their sum."""
    assert codes is not None
    n_systems, n_items = codes.shape
    if n_classes == 2:
        if n_systems != 2:
            return np.empty((0, n_items, n_classes))
        both = np.zeros((1, n_items, n_classes))
        both[0, :, 1] = np.where((codes < 0).any(axis=0), 0.0, np.where(codes[0] == codes[1], 1.0, -1.0))
        return both
    if n_systems * n_classes > _MOST_DETAIL:
        return np.empty((0, n_items, n_classes))
    of_class = codes[:, None, :] == np.arange(n_classes)[:, None]
    split = of_class[..., None] * np.eye(n_classes)[:, None, :]
    return np.asarray(split.reshape(-1, n_items, n_classes), dtype=float)


def _components(main: Floats) -> Floats:
    """The principal components of many systems' features, each as large as one feature."""
    n_systems = len(main)
    flat = main.reshape(n_systems, -1)
    some = flat[:, :: max(1, flat.shape[1] // _GRAM_ROWS)]
    _, vectors = np.linalg.eigh(some @ some.T)
    loadings = vectors[:, ::-1][:, :_COMPONENTS].T
    loadings *= np.where(loadings.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    components = loadings @ flat
    size = np.sqrt((flat**2).mean()) / np.sqrt((components**2).mean(axis=1, keepdims=True))
    return np.asarray((components * size).reshape(-1, *main.shape[1:]))
