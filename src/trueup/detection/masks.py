"""Masks in COCO's run lengths, from whatever a file holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup._base.optional import require
from trueup._base.types import Floats
from trueup.detection.shapes import Mask


def read_mask(segmentation: Any, height: float, width: float) -> Mask:
    """Polygons, plain or compressed run lengths as compressed ones.

    Raises
    ------
    ValueError
        One sentence on what is wrong with it.
    """
    coco = require("pycocotools.mask", purpose="reading masks")
    if isinstance(segmentation, dict):
        size = segmentation.get("size")
        if not isinstance(size, Sequence) or len(size) != 2 or "counts" not in segmentation:
            raise ValueError("run lengths without a size or counts")
        if not np.isnan([height, width]).any() and tuple(size) != (int(height), int(width)):
            raise ValueError(f"run lengths of {size[1]} × {size[0]} in an image of {width:g} × {height:g}")
        counts = segmentation["counts"]
        if isinstance(counts, list):
            if sum(counts) != size[0] * size[1]:
                raise ValueError(f"run lengths that add up to {sum(counts)}, not to {size[0] * size[1]} pixels")
            return dict(coco.frPyObjects(segmentation, int(size[0]), int(size[1])))
        packed = counts.encode("ascii") if isinstance(counts, str) else bytes(counts)
        return {"size": [int(size[0]), int(size[1])], "counts": packed}
    if np.isnan([height, width]).any():
        raise ValueError("polygons in an image without width and height")
    for polygon in segmentation:
        if len(polygon) < 6 or len(polygon) % 2:
            raise ValueError(f"a polygon of {len(polygon) / 2:g} points")
        if not np.isfinite(np.asarray(polygon, dtype=float)).all():
            raise ValueError("a polygon with points that are no numbers")
    if not len(segmentation):
        raise ValueError("no polygon")
    return dict(coco.merge(coco.frPyObjects([list(map(float, p)) for p in segmentation], int(height), int(width))))


def mask_of_box(box: Floats, height: float, width: float) -> Mask:
    """A box as a mask."""
    x, y, w, h = (float(value) for value in box)
    return read_mask([[x, y, x, y + h, x + w, y + h, x + w, y]], height, width)


def mask_areas(masks: Sequence[Mask]) -> Floats:
    """Pixels of each mask."""
    if not len(masks):
        return np.zeros(0)
    coco = require("pycocotools.mask", purpose="areas of masks")
    # One by one: with numpy 2 some releases count the masks of a list in a byte.
    return np.array([coco.area(mask) for mask in masks], dtype=float)


def boxes_of_masks(masks: Sequence[Mask]) -> Floats:
    """The tight box of each mask."""
    if not len(masks):
        return np.zeros((0, 4))
    coco = require("pycocotools.mask", purpose="boxes of masks")
    return np.array([coco.toBbox(mask) for mask in masks], dtype=float).reshape(-1, 4)


def bitmap(mask: Mask) -> Any:
    """A mask as an array of 0 and 1, shape (height, width)."""
    coco = require("pycocotools.mask", purpose="pixels of masks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some releases are older than numpy 2
        return coco.decode(mask)


def mask_of_bitmap(pixels: Any) -> Mask:
    """The inverse of `bitmap`."""
    coco = require("pycocotools.mask", purpose="masks of pixels")
    return dict(coco.encode(np.asfortranarray(np.asarray(pixels, dtype=np.uint8))))
