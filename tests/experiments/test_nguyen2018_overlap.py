"""The overlap with masks that nobody drew yet: features, the model, and precision from drawn overlaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.nguyen2018.learned_overlap import (
    FEATURES,
    LEAST_OVERLAP,
    design_matrix,
    fit_overlap,
    pair_features,
    with_box_masks,
)
from experiments.nguyen2018.segmentation import by_class, outcomes_by_draw
from trueup.detection import Images, Shapes, boxes_from_arrays, coco_scores
from trueup.detection.coco_matching import THRESHOLDS, overlaps_of, pair_up
from trueup.detection.shapes import bitmap, boxes_of_masks, mask_areas, mask_of_bitmap, mask_of_box
from trueup.exceptions import InvalidParameter, InvalidShapes

SIDE = 100


def ellipse(x: float, y: float, a: float, b: float, slant: float) -> np.ndarray:
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    u, v = (columns - x) / a, (rows - y) / b
    return ((u**2 + v**2 + 2 * slant * u * v) < 1).astype(np.uint8)


def shapes(masks: list, image: list, kind: list, scores: list | None = None) -> Shapes:
    boxes = boxes_of_masks(masks)
    n_images = 12
    plain = boxes_from_arrays(
        image=image,
        boxes=boxes,
        category=kind,
        scores=scores,
        images=Images(np.arange(n_images), np.full((n_images, 2), float(SIDE))),
        categories=["cell", "nucleus"],
    )
    return replace(plain, masks=tuple(masks), areas=mask_areas(masks))


@pytest.fixture(scope="module")
def scene() -> tuple[Shapes, Shapes]:
    """Slanted ellipses, and detections that are off by some pixels; a few are of nothing."""
    rng = np.random.default_rng(0)
    masks, image, kind, found, found_image, found_kind, scores = [], [], [], [], [], [], []
    for k in range(12):
        for _ in range(6):
            what = (*rng.uniform(20, 80, 2), *rng.uniform(8, 18, 2), rng.uniform(-0.9, 0.9))
            name = str(rng.choice(["cell", "nucleus"]))
            masks.append(mask_of_bitmap(ellipse(*what)))
            image.append(k)
            kind.append(name)
            for _ in range(rng.integers(1, 3)):
                moved = np.array(what) + np.array([*rng.normal(scale=2.5, size=2), *rng.normal(scale=1.0, size=2), 0])
                found.append(mask_of_bitmap(ellipse(*moved)))
                found_image.append(k)
                found_kind.append(name)
                scores.append(float(rng.random()))
    return shapes(found, found_image, found_kind, scores), shapes(masks, image, kind)


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


# ---------------------------------------------------------------------- features


def test_the_mask_in_the_box_is_what_the_naive_estimate_compares(problem):
    detections, objects, pairs, features, _ = problem
    own, other = pairs.members
    boxed = replace(objects, masks=tuple(mask_of_box(box, SIDE, SIDE) for box in objects.boxes))
    np.testing.assert_allclose(features.in_box, overlaps_of(pairs, detections, boxed))
    assert features.values.shape == (len(own), len(FEATURES))
    assert len(own) == len(other)


def test_pairs_that_are_left_aside_do_not_overlap_by_half(problem):
    *_, features, true = problem
    assert true[~features.can_overlap].max() < 0.5
    assert features.boxes[features.can_overlap].min() >= LEAST_OVERLAP


def test_a_mask_that_is_the_right_one_elsewhere_overlaps_as_it_says(scene):
    _, objects = scene
    moved = []  # each object again, three pixels to the right and two down
    for mask in objects.masks:
        moved.append(mask_of_bitmap(np.roll(bitmap(mask), (2, 3), axis=(0, 1))))
    copies = replace(
        objects,
        masks=tuple(moved),
        boxes=boxes_of_masks(moved),
        scores=np.linspace(0.1, 0.9, len(moved)),
        sources=("x",),
    )
    pairs = pair_up(copies, objects)
    features = pair_features(pairs, copies, objects, features=["stretched"])
    own, other = pairs.members
    inside = (objects.boxes[:, :2] + objects.boxes[:, 2:] < SIDE - 3).all(axis=1)  # else it would wrap around
    same = (own == other) & inside[own]
    said = 1 / (1 + np.exp(-features.values[same, 0]))
    true = overlaps_of(pairs, copies, objects)[same]
    np.testing.assert_allclose(said, true, atol=0.03)


def test_crowd_regions_keep_their_masks(scene):
    objects = replace(scene[1], is_crowd=np.arange(len(scene[1])) == 3)
    boxed = with_box_masks(objects)
    assert boxed.masks[3] == objects.masks[3]
    assert mask_areas(boxed.masks)[4] > mask_areas(objects.masks)[4]


def test_what_is_lacking_is_one_sentence(scene):
    detections, objects = scene
    pairs = pair_up(detections, objects)
    with pytest.raises(InvalidShapes, match="detections need masks"):
        pair_features(pairs, detections.boxes_only(), objects)
    with pytest.raises(InvalidParameter, match="features must be some of boxes"):
        pair_features(pairs, detections, objects, features=["colour"])
    nowhere = replace(objects, images=Images(objects.images.ids, np.full((12, 2), np.nan)))
    with pytest.raises(InvalidShapes, match="known width and height"):
        with_box_masks(nowhere)
    with pytest.raises(InvalidParameter, match="vet an object first"):
        fit_overlap(np.zeros((0, 2)), np.zeros(0))


# ---------------------------------------------------------------------- the model


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


@pytest.mark.parametrize("n", [1, 3, 60])
def test_chances_fall_with_the_threshold_however_few_teach_them(n):
    design, overlaps, _ = drawn_problem(n, 2)
    chances = fit_overlap(design, overlaps).chances(design * 10)
    assert (np.diff(chances, axis=1) <= 0).all()
    assert chances.min() >= 0
    assert chances.max() <= 1


def test_an_overlap_at_a_threshold_reaches_it():
    design = np.zeros((50, 1))
    chances = fit_overlap(design, np.full(50, 0.75)).chances(design[:1])[0]
    assert chances[THRESHOLDS < 0.76].min() > 0.6
    assert chances[THRESHOLDS > 0.76].max() < 0.4


def test_draws_have_the_chances_and_are_repeatable():
    design, overlaps, _ = drawn_problem(300, 3)
    model = fit_overlap(design, overlaps)
    draws = model.draw(design, n_draws=40, random_state=0)
    assert draws.shape == (40, 300)
    for k, threshold in enumerate(THRESHOLDS):
        share = (draws >= threshold).mean(axis=0)
        np.testing.assert_allclose(share, model.chances(design)[:, k], atol=1 / 40 + 1e-9)
    np.testing.assert_array_equal(draws, model.draw(design, n_draws=40, random_state=0))


def test_constant_columns_are_no_trouble():
    values = np.column_stack([np.ones(20), np.arange(20.0)])
    design = design_matrix(values, np.ones(20, dtype=bool))
    assert np.isfinite(design).all()
    assert design.shape == (20, 5)
    assert not design_matrix(values, np.zeros(20, dtype=bool)).any()


# ---------------------------------------------------------------------- precision


def test_true_overlaps_give_cocos_numbers(problem):
    detections, objects, pairs, _, true = problem
    lists = by_class(pairs, detections, objects)
    outcomes = outcomes_by_draw(pairs, np.stack([true, true * 0]), detections, objects)
    precision = lists.average_precision(outcomes[0])
    expected = coco_scores(detections, objects)
    for place, k in enumerate(lists.classes):
        assert precision[:, place].mean() == pytest.approx(expected.ap(category=objects.categories[k]))
    assert not lists.average_precision(outcomes[1]).any()


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
