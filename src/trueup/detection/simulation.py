"""Made-up images with objects, annotators who miss and invent some, and detectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._base.types import Booleans, Floats, Positions
from trueup._base.validation import RandomState, as_generator
from trueup.detection.reading_tables import boxes_from_arrays
from trueup.detection.shapes import Images, Shapes

_SIDE = 640.0


@dataclass(frozen=True, eq=False)
class SimulatedBoxes:
    """Drawn and found boxes, with the objects behind them.

    Attributes
    ----------
    objects, found, truth : Shapes. What annotators drew, what systems found, and what is there.
    """

    objects: Shapes
    found: Shapes
    truth: Shapes


def simulate_boxes(
    *,
    n_images: int = 50,
    objects_per_image: float = 6.0,
    n_annotators: int = 3,
    n_systems: int = 1,
    miss: float = 0.15,
    invent: float = 0.3,
    blur: float = 0.05,
    random_state: RandomState = None,
) -> SimulatedBoxes:
    """Boxes of annotators and systems.

    Parameters
    ----------
    objects_per_image : float. On average; the same share of decoys looks like objects.
    miss : float. The share of objects that an annotator does not draw, on average: some objects are harder than others.
    invent : float. The share of decoys that an annotator takes for objects.
    blur : float. By how much edges are off, as a share of a side.
    """
    rng = as_generator(random_state)
    n_things = rng.poisson(objects_per_image * 1.3, size=n_images)
    image = np.repeat(np.arange(n_images), n_things)
    is_object = rng.random(len(image)) < 1 / 1.3
    sides = rng.uniform(20, 120, size=(len(image), 2))
    boxes = np.column_stack([rng.uniform(0, _SIDE - 120, size=(len(image), 2)), sides])
    hardness = rng.normal(size=len(image))
    images = Images(np.arange(n_images), np.full((n_images, 2), _SIDE))
    drawn = [_draw_boxes(boxes, is_object, hardness, miss, invent, rng) for _ in range(n_annotators)]
    objects = boxes_from_arrays(
        image=np.concatenate([image[chosen] for chosen in drawn]),
        boxes=np.concatenate([_blurred(boxes[chosen], blur, rng) for chosen in drawn]),
        source=np.repeat([f"annotator {k + 1}" for k in range(n_annotators)], [len(chosen) for chosen in drawn]),
        images=images,
        seen=np.ones((n_annotators, n_images), dtype=bool),
    )
    found, scores, names = [], [], []
    for k in range(n_systems):
        chosen = _draw_boxes(boxes, is_object, hardness, miss * (1 + 0.5 * k), invent, rng)
        found.append(chosen)
        scores.append(1 / (1 + np.exp(-(2.0 * is_object[chosen] - hardness[chosen] + rng.normal(size=len(chosen))))))
        names += [f"system {k + 1}"] * len(chosen)
    every = np.concatenate(found)
    detections = boxes_from_arrays(
        image=image[every],
        boxes=_blurred(boxes[every], 2 * blur, rng),
        source=names,
        scores=np.concatenate(scores),
        images=images,
    )
    truth = boxes_from_arrays(image=image[is_object], boxes=boxes[is_object], images=images, name="truth")
    return SimulatedBoxes(objects, detections, truth)


def _draw_boxes(
    boxes: Floats, is_object: Booleans, hardness: Floats, miss: float, invent: float, rng: np.random.Generator
) -> Positions:
    """Positions of what one annotator draws."""
    chance = np.where(is_object, 1 - miss * np.exp(hardness - 0.5), invent * np.exp(-hardness - 0.5))
    return np.flatnonzero(rng.random(len(boxes)) < np.clip(chance, 0.01, 0.99))


def _blurred(boxes: Floats, blur: float, rng: np.random.Generator) -> Floats:
    sides = np.tile(boxes[:, 2:], 2)
    shift = rng.normal(scale=blur, size=boxes.shape) * sides
    moved = boxes + shift
    moved[:, 2:] = np.maximum(moved[:, 2:], 2.0)
    return np.asarray(moved)
