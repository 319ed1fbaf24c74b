"""Masks drawn into given boxes: what several systems agree on there, with an outline that is off here and there.

Of the objects that four systems looked for, the boxes are open and the masks are not. The mean of the shapes that the
systems found in a box, each stretched onto it, plus a smooth random field, cut at one half, is the mask; so it favours
no system, and is near what they found without being what any of them found. Where no system found the object, the
shape of another detection of its class stands in, else an ellipse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from benchmarks._data import data_folder
from benchmarks._detection_data import YOLACT_SYSTEMS, read_json, yolact_boxes
from trueup._base.optional import require
from trueup.detection import Shapes
from trueup.detection.metrics import overlaps_of, pair_up
from trueup.detection.shapes import Mask, bitmap, boxes_of_masks

__all__ = ["MaskSimulation", "draw_masks", "mask_of_bitmap", "shapes_in_boxes", "yolact_masks"]

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GRID = 28  # rows and columns of a shape
SMOOTHNESS = 3.0  # of the field, in cells
STRENGTH = 0.2  # standard deviation of the field, beside shapes from 0 to 1; AP is then as YOLACT has it on real masks
NEAR = 0.5  # overlap of boxes from which on a detection is of an object


def yolact_masks() -> tuple[dict[str, Shapes], Shapes]:
    """Detections with masks of four systems on the same 100 images, and the boxes of the objects there."""
    boxes, objects = yolact_boxes()
    detections = {}
    for name in YOLACT_SYSTEMS:
        masks: list[Mask] = []
        for image in read_json(data_folder() / "det-yolact" / f"{name}.json.gz")["images"]:
            masks += [{**one["mask"], "counts": one["mask"]["counts"].encode("ascii")} for one in image["dets"]]
        tight = boxes_of_masks(masks)
        part = replace(boxes.of_source(name), masks=tuple(masks), boxes=tight)
        detections[name] = part.select((tight[:, 2] > 0) & (tight[:, 3] > 0))  # some masks have no pixel
    return detections, objects


@dataclass(frozen=True, eq=False)
class MaskSimulation:
    """What masks are drawn from.

    Attributes
    ----------
    objects : Shapes
        With boxes.
    agreed : array of shape (n_objects, GRID, GRID)
        The share of systems that cover each cell of the box; nan where none found the object.
    others : mapping from classes to arrays of shape (n_shapes, GRID, GRID)
        Shapes of detections of a class.
    """

    objects: Shapes
    agreed: Array
    others: Mapping[int, Array]


def shapes_in_boxes(detections: Mapping[str, Shapes], objects: Shapes) -> MaskSimulation:
    """The mean of what systems found in each box; of each system its surest detection there."""
    total, n_systems = np.zeros((len(objects), GRID, GRID)), np.zeros(len(objects))
    by_class: dict[int, list[Array]] = {}
    for one in detections.values():
        assert one.scores is not None
        assert one.masks is not None
        pairs = pair_up(one, objects)
        own, other = pairs.members
        near = np.flatnonzero(overlaps_of(pairs, one.boxes_only(), objects) >= NEAR)
        near = near[np.argsort(one.scores[own[near]], kind="stable")]
        surest = dict(zip(other[near].tolist(), own[near].tolist(), strict=True))  # the last one stays
        for position, detection in surest.items():
            shape = _on_grid(one.masks[detection], one.boxes[detection])
            total[position] += shape
            n_systems[position] += 1
            by_class.setdefault(int(objects.category[position]), []).append(shape)
    agreed = total / np.where(n_systems > 0, n_systems, np.nan)[:, None, None]
    return MaskSimulation(objects, agreed, {kind: np.stack(shapes) for kind, shapes in by_class.items()})


def _on_grid(mask: Mask, box: Array) -> Array:
    """A mask in its own box, on the grid."""
    pixels = bitmap(mask)
    middles = (np.arange(GRID) + 0.5) / GRID
    rows = np.minimum((box[1] + middles * box[3]).astype(int), pixels.shape[0] - 1)
    columns = np.minimum((box[0] + middles * box[2]).astype(int), pixels.shape[1] - 1)
    return np.asarray(pixels[np.ix_(rows, columns)], dtype=float)


def draw_masks(simulation: MaskSimulation, rng: np.random.Generator) -> Shapes:
    """The objects with drawn masks."""
    objects = simulation.objects
    fields = gaussian_filter(rng.standard_normal((len(objects), GRID, GRID)), (0, SMOOTHNESS, SMOOTHNESS))
    fields *= STRENGTH / fields.std()
    masks = []
    for position in range(len(objects)):
        shape = simulation.agreed[position]
        if np.isnan(shape[0, 0]):
            shape = _stand_in(simulation, int(objects.category[position]), rng)
        width, height = objects.images.sizes[objects.image[position]]
        masks.append(_in_box(_tight(shape + fields[position] > 0.5), objects.boxes[position], int(height), int(width)))
    return replace(objects, masks=tuple(masks))


def _stand_in(simulation: MaskSimulation, kind: int, rng: np.random.Generator) -> Array:
    if kind in simulation.others:
        shapes = simulation.others[kind]
        return np.asarray(shapes[rng.integers(len(shapes))])
    middles = (np.arange(GRID) + 0.5) / GRID * 2 - 1
    return np.asarray(middles[:, None] ** 2 + middles**2 < 1, dtype=float)


def _tight(cells: Flags) -> Flags:
    """The part with cells, so that the mask reaches all sides of its box; a full box where there are none."""
    if not cells.any():
        return np.ones((1, 1), dtype=bool)
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    return cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def mask_of_bitmap(pixels: Flags) -> Mask:
    """The inverse of `bitmap`."""
    coco = require("pycocotools.mask", purpose="masks of pixels")
    return dict(coco.encode(np.asfortranarray(np.asarray(pixels, dtype=np.uint8))))


def _in_box(cells: Flags, box: Array, height: int, width: int) -> Mask:
    pixels = np.zeros((height, width), dtype=np.uint8, order="F")
    left, top = min(max(int(box[0]), 0), width - 1), min(max(int(box[1]), 0), height - 1)
    right = min(max(int(np.ceil(box[0] + box[2])), left + 1), width)
    bottom = min(max(int(np.ceil(box[1] + box[3])), top + 1), height)
    rows = np.arange(bottom - top) * cells.shape[0] // (bottom - top)
    columns = np.arange(right - left) * cells.shape[1] // (right - left)
    pixels[top:bottom, left:right] = cells[np.ix_(rows, columns)]
    return mask_of_bitmap(pixels)
