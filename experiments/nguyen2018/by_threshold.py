"""The paper's own learned estimator: one model for each threshold of overlap (Section 4.2)."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import LogisticRegression

from experiments.nguyen2018.segmentation import N_DRAWS, Array, Flags, Segmentation, System, outcomes_by_draw
from trueup.detection.metrics import THRESHOLDS

__all__ = ["by_threshold"]


def by_threshold(data: Segmentation, vetted: Flags, rng: np.random.Generator) -> Array:
    """Average precision by system and class, shape (n_systems, n_classes).

    The features are the paper's: class, noisy overlap (the detection's mask with the object's box) and the sizes of
    both boxes, in the feature map of the additive χ² kernel; a logistic regression stands in for the support vector
    machine, whose scores are no chances. A detection belongs to the object whose box its mask overlaps most. As in the
    paper, two detections of one object know nothing of each other.
    """
    systems = list(data.systems.values())
    nearest = [system.nearest(system.features.in_box, system.features.can_overlap) for system in systems]
    columns = [_columns(data, system, pair) for system, pair in zip(systems, nearest, strict=True)]
    most = np.concatenate(columns).max(axis=0)
    mapped = [
        _mapped(data, system, pair, own / most) for system, pair, own in zip(systems, nearest, columns, strict=True)
    ]
    is_known = [
        vetted[system.object_of_pair[pair]] & (pair >= 0) for system, pair in zip(systems, nearest, strict=True)
    ]
    overlaps = [system.true[pair] for system, pair in zip(systems, nearest, strict=True)]
    chances = [np.zeros((len(THRESHOLDS), len(pair))) for pair in nearest]
    rows = np.concatenate([own[known] for own, known in zip(mapped, is_known, strict=True)])
    target = np.concatenate([own[known] for own, known in zip(overlaps, is_known, strict=True)])
    for k, threshold in enumerate(THRESHOLDS):
        right = target >= threshold - 1e-12
        if len(np.unique(right)) < 2:  # nothing tells them apart: the share, kept from certainty
            for own in chances:
                own[k] = (right.sum() + 0.5) / (len(right) + 1)
            continue
        model = LogisticRegression(solver="liblinear").fit(rows, right)
        for own, features in zip(chances, mapped, strict=True):
            own[k] = model.predict_proba(features)[:, 1]
    values = []
    for system, pair, known, p in zip(systems, nearest, is_known, chances, strict=True):
        certain = np.where((vetted | data.objects.is_crowd)[system.object_of_pair], system.true, 0.0)
        outcomes = np.repeat(outcomes_by_draw(system.pairs, certain[None], system.detections, data.objects), N_DRAWS, 0)
        asked = ~known & (pair >= 0)
        uniform = (rng.permuted(np.tile(np.arange(N_DRAWS), (len(pair), 1)), axis=1).T + 0.5) / N_DRAWS
        drawn = uniform[:, None] < p[None]
        outcomes[:, :, asked] = drawn[:, :, asked]
        rows_of_outcomes = outcomes.reshape(-1, outcomes.shape[-1])
        values.append(system.lists.average_precision(rows_of_outcomes).mean(axis=0))
    return np.stack(values)


def _columns(data: Segmentation, system: System, pair: Array) -> Array:
    """Noisy overlap and the roots of both areas, of each detection."""
    own, other = system.detections.boxes[system.pairs.order], data.objects.boxes[system.object_of_pair[pair]]
    sides = [np.sqrt(np.maximum(box[:, 2] * box[:, 3], 1.0)) for box in (own, other)]
    return np.stack([system.features.in_box[pair], *sides], axis=1)


def _mapped(data: Segmentation, system: System, pair: Array, shares: Array) -> Array:
    is_class = system.detections.category[system.pairs.order][:, None] == np.arange(len(data.objects.categories))
    return np.concatenate([AdditiveChi2Sampler().fit_transform(shares), is_class], axis=1)
