"""What the systems under test say of an item, as features of a log-linear prior of its class.

A system's output helps to tell the truth of an item, and leaving it out would pull every metric towards chance. But
systems err together: two checkpoints of one model are not two witnesses. As features of a model of the truth *given*
all outputs they may depend on each other in any way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy.sparse.linalg import eigsh
from scipy.special import ndtri

from trueup._base.types import Codes, Floats
from trueup.data.aligned import AlignedPredictions
from trueup.noise.item_prior import LogLinearPrior

Used = Literal["classes", "scores", "probabilities"]

_INTERCEPT_SCALE = 2.5
_MAIN_SCALE = 3.0  # of what tells right from wrong, in one system: log-odds of one that is right 95 times in 100
_DETAIL_SCALE = 1.5  # of what bends or splits a main feature
_MOST_MAIN = 8  # systems with features of their own; more are summed up by their principal components
_MOST_DETAIL = 30
_COMPONENTS = 6
_GRAM_ROWS = 20_000  # rows from which principal components are found
_BLOCK = 20_000_000  # numbers held at once
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
        What the metric looks at, and so what must be calibrated. An item without a prediction has features of zero,
        and an intercept of its own: nothing says that its class is as likely as that of a middling prediction.
    """
    n_systems, n_items = aligned.n_systems, _given(aligned, used).shape[1]
    detail = np.empty((0, n_items, n_classes))
    main = (
        main_features(aligned, n_classes, used)
        if n_systems <= _MOST_MAIN
        else principal_features(aligned, n_classes, used)
    )
    if n_systems > _MOST_MAIN:
        if used == "scores":
            detail = bends(main[:1], aligned.positive)
    elif used == "scores" and n_systems * len(_KNOTS) <= _MOST_DETAIL:
        detail = bends(main, aligned.positive)
    elif used == "classes":
        detail = _splits(aligned.codes, n_classes)
    intercepts = np.broadcast_to(np.eye(n_classes)[1:, None, :], (n_classes - 1, n_items, n_classes))
    intercepts = np.concatenate([intercepts, _absences(_given(aligned, used), n_classes)])
    features = np.concatenate([intercepts, main, detail])
    # Together the systems are no likelier to know the truth than one: with a scale that does not shrink, eight of them
    # would be believed almost without votes. The first component is what many agree on: as one system, at full scale.
    each = 1 / np.sqrt(len(main))
    of_main = np.full(len(main), _MAIN_SCALE * each)
    if n_systems > _MOST_MAIN:
        of_main[0] = _MAIN_SCALE
    scale = np.concatenate(
        [np.full(len(intercepts), _INTERCEPT_SCALE), of_main, np.full(len(detail), _DETAIL_SCALE * each)]
    )
    return LogLinearPrior(np.moveaxis(features, 0, 2), scale)


def main_features(aligned: AlignedPredictions, n_classes: int, used: Used) -> Floats:
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


def _given(aligned: AlignedPredictions, used: Used) -> npt.NDArray[np.bool_]:
    """Which system says something of which item, shape (n_systems, n_items)."""
    if used == "classes":
        assert aligned.codes is not None
        return np.asarray(aligned.codes >= 0)
    table = aligned.scores if used == "scores" else aligned.probabilities
    assert table is not None
    return ~np.isnan(table if table.ndim == 2 else table[:, :, 0])


def _absences(given: npt.NDArray[np.bool_], n_classes: int) -> Floats:
    """An intercept for the items that a system says nothing of; systems that lack the same items share it."""
    patterns = np.unique(~given, axis=0).astype(float)
    patterns = patterns[(patterns.min(axis=1) < 1) & (patterns.max(axis=1) > 0)]
    if len(patterns) * (n_classes - 1) > _MOST_DETAIL:
        patterns = (~given).mean(axis=0, keepdims=True)
    of_class = patterns[:, None, :, None] * np.eye(n_classes)[None, 1:, None, :]
    return np.asarray(of_class.reshape(-1, given.shape[1], n_classes))


def _normal_scores(scores: Floats) -> Floats:
    """Ranks as quantiles of the normal law, ties at their middle; 0 where there is no score."""
    given = np.flatnonzero(~np.isnan(scores))
    out = np.zeros(len(scores))
    out[given] = ndtri((scipy.stats.rankdata(scores[given]) - 0.5) / max(len(given), 1))
    return out


def bends(main: Floats, positive: int | None) -> Floats:
    """Hinges along the scores: the log-odds of the class need not be a straight line."""
    assert positive is not None
    bent = []
    for one in main[:, :, positive]:
        for knot in _KNOTS:
            hinge = np.zeros(main.shape[1:])
            hinge[:, positive] = np.maximum(one - knot, 0.0)
            bent.append(hinge)
    return np.stack(bent)


def _splits(codes: Codes | None, n_classes: int) -> Floats:
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


def principal_features(aligned: AlignedPredictions, n_classes: int, used: Used) -> Floats:
    """The principal components of many systems' features, each as large as one feature.

    Found from some of the items, and added up from some systems at a time: the features of all are never held.
    """
    n_systems, n_items = _given(aligned, used).shape
    some = np.arange(0, n_items, max(1, n_items * n_classes // _GRAM_ROWS))
    step = max(1, _BLOCK // (n_items * n_classes))
    blocks = [slice(first, first + step) for first in range(0, n_systems, step)]
    flat = np.concatenate([main_features(_systems(aligned, b), n_classes, used)[:, some] for b in blocks])
    flat = flat.reshape(n_systems, -1)
    # A fixed start, so that the same systems have the same components each time.
    _, vectors = eigsh(flat @ flat.T, k=_COMPONENTS, v0=np.ones(n_systems))
    loadings = vectors[:, ::-1].T
    loadings *= np.where(loadings.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
    components = sum(
        np.tensordot(loadings[:, b], main_features(_systems(aligned, b), n_classes, used), axes=1) for b in blocks
    )
    size = np.sqrt((flat**2).mean()) / np.sqrt(np.mean(np.square(components), axis=(1, 2), keepdims=True))
    return np.asarray(components * size)


def _systems(aligned: AlignedPredictions, chosen: slice) -> AlignedPredictions:
    """Some systems' outputs."""
    return replace(
        aligned,
        systems=aligned.systems[chosen],
        codes=None if aligned.codes is None else aligned.codes[chosen],
        scores=None if aligned.scores is None else aligned.scores[chosen],
        probabilities=None if aligned.probabilities is None else aligned.probabilities[chosen],
    )
