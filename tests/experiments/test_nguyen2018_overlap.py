"""The overlap with masks that nobody drew yet: features, the model, and precision from drawn overlaps."""

from dataclasses import replace

import numpy as np
import pytest
from mask_scenes import ellipse, shapes

from experiments.nguyen2018.learned_overlap import FEATURES, design_matrix, fit_overlap, mask_of_box, pair_features
from experiments.nguyen2018.segmentation import by_class, outcomes_by_draw
from trueup.detection import Shapes
from trueup.detection.metrics import THRESHOLDS, overlaps_of, pair_up

SIDE = 100
SCENE = {"side": SIDE, "n_images": 12, "kinds": ["cell", "nucleus"]}


@pytest.fixture(scope="module")
def scene() -> tuple[Shapes, Shapes]:
    """Slanted ellipses, and detections that are off by some pixels; a few are of nothing."""
    rng = np.random.default_rng(0)
    masks, image, kind, found, found_image, found_kind, scores = [], [], [], [], [], [], []
    for k in range(12):
        for _ in range(6):
            what = (*rng.uniform(20, 80, 2), *rng.uniform(8, 18, 2), rng.uniform(-0.9, 0.9))
            name = str(rng.choice(["cell", "nucleus"]))
            masks.append(ellipse(SIDE, *what))
            image.append(k)
            kind.append(name)
            for _ in range(rng.integers(1, 3)):
                moved = np.array(what) + np.array([*rng.normal(scale=2.5, size=2), *rng.normal(scale=1.0, size=2), 0])
                found.append(ellipse(SIDE, *moved))
                found_image.append(k)
                found_kind.append(name)
                scores.append(float(rng.random()))
    return shapes(found, found_image, found_kind, scores, **SCENE), shapes(masks, image, kind, **SCENE)


@pytest.fixture(scope="module")
def problem(scene):
    detections, objects = scene
    pairs = pair_up(detections, objects)
    return (
        detections,
        objects,
        pairs,
        pair_features(pairs, detections, objects),
        overlaps_of(pairs, detections, objects),
    )


def test_the_mask_in_the_box_is_what_the_naive_estimate_compares(problem):
    detections, objects, pairs, features, _ = problem
    own, other = pairs.members
    boxed = replace(objects, masks=tuple(mask_of_box(box, SIDE, SIDE) for box in objects.boxes))
    np.testing.assert_allclose(features.in_box, overlaps_of(pairs, detections, boxed))
    assert features.values.shape == (len(own), len(FEATURES))
    assert len(own) == len(other)


def drawn_problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, overlaps drawn by known chances, and these chances."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, 2))
    chances = 1 / (1 + np.exp(-(1.5 * design[:, :1] - 0.5 * design[:, 1:] - np.linspace(-2, 3, len(THRESHOLDS)))))
    reached = (rng.random(n)[:, None] < chances).sum(axis=1)
    return design, np.concatenate([[0.2], THRESHOLDS + 0.01])[reached], chances


def test_known_chances_are_recovered():
    design, overlaps, chances = drawn_problem(4000, 1)
    model = fit_overlap(design, overlaps)
    np.testing.assert_allclose(model.chances(design), chances, atol=0.1)
    assert np.abs(model.chances(design) - chances).mean() < 0.01
    assert model.weights == pytest.approx([1.5, -0.5], abs=0.1)


def test_half_of_the_masks_teach_the_precision_of_all(problem):
    detections, objects, pairs, features, true = problem
    lists = by_class(pairs, detections, objects)

    def precision(overlaps: np.ndarray) -> float:
        outcomes = outcomes_by_draw(pairs, np.atleast_2d(overlaps), detections, objects)
        return float(lists.average_precision(outcomes.reshape(-1, outcomes.shape[-1])).mean())

    design = design_matrix(features.values, features.can_overlap)
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        known = (rng.random(len(objects)) < 0.5)[pairs.members[1]]
        model = fit_overlap(design[known & features.can_overlap], true[known & features.can_overlap])
        overlaps = np.tile(np.where(known, true, 0.0), (20, 1))
        asked = ~known & features.can_overlap
        overlaps[:, asked] = model.draw(design[asked], n_draws=20, random_state=rng)
        errors.append(precision(overlaps) - precision(true))
    naive = abs(precision(features.in_box) - precision(true))
    boxes = abs(precision(features.boxes) - precision(true))
    assert np.abs(errors).mean() < 0.03
    assert np.abs(errors).mean() < min(naive, boxes) / 3
