"""Masks in COCO's run lengths, from whatever a file holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup._base.optional import require
from trueup._base.types import Floats
from trueup.detection.shapes import Mask

_FAR = 10.0  # of the sides of an image
_MOST_PIXELS = 1 << 32
_MOST_DIGITS = 7  # of five bits, in a run length


def read_mask(segmentation: Any, height: float, width: float) -> Mask:
    """Polygons, plain or compressed run lengths as compressed ones."""
    coco = require("pycocotools.mask", purpose="reading masks")
    if isinstance(segmentation, dict):
        size, counts = segmentation.get("size"), segmentation.get("counts")
        if not isinstance(size, list | tuple) or len(size) != 2 or not all(_is_count(side) and side for side in size):
            raise ValueError("run lengths without a size")
        if not np.isnan([height, width]).any() and tuple(size) != (int(height), int(width)):
            raise ValueError(f"run lengths of {size[1]} × {size[0]} in an image of {width:g} × {height:g}")
        if not isinstance(counts, list | str | bytes):
            raise ValueError("run lengths without counts")
        if isinstance(counts, list) and not all(map(_is_count, counts)):
            raise ValueError("run lengths that are no whole numbers from 0 on")
        # Whoever decodes a mask trusts that its runs fill the image and no more.
        lengths = counts if isinstance(counts, list) else unpacked_runs(counts)
        if sum(lengths) != size[0] * size[1]:
            raise ValueError(f"run lengths that add up to {sum(lengths)}, not to {size[0] * size[1]} pixels")
        if isinstance(counts, list):
            return dict(coco.frPyObjects(segmentation, int(size[0]), int(size[1])))
        packed = counts.encode("ascii") if isinstance(counts, str) else counts
        return {"size": [int(size[0]), int(size[1])], "counts": packed}
    if np.isnan([height, width]).any():
        raise ValueError("polygons in an image without width and height")
    if not isinstance(segmentation, list) or not all(isinstance(polygon, list) for polygon in segmentation):
        raise ValueError("a segmentation that is neither polygons nor run lengths")
    for polygon in segmentation:
        if len(polygon) < 6:
            raise ValueError(f"a polygon of {len(polygon) // 2} points")
        if len(polygon) % 2:
            raise ValueError("a polygon with half a point")
        points = np.array([one if isinstance(one, int | float) else np.nan for one in polygon]).reshape(-1, 2)
        if not np.isfinite(points).all():
            raise ValueError("a polygon with points that are no numbers")
        # Far beyond the edge there is only a mistake, whose outline would fill the memory.
        if (np.abs(points) > _FAR * np.array([width, height])).any():
            raise ValueError("a polygon that reaches far out of its image")
    return dict(coco.merge(coco.frPyObjects([list(map(float, p)) for p in segmentation], int(height), int(width))))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_PIXELS


def unpacked_runs(counts: str | bytes) -> list[int]:
    """The run lengths of COCO's compressed text: five bits a character, and differences to the last but one.

    Examples
    --------
    >>> unpacked_runs("112e1")
    [1, 1, 2, 54]
    """
    packed = counts.encode("utf-8") if isinstance(counts, str) else counts
    codes = np.frombuffer(packed, dtype=np.uint8).astype(np.int64) - 48
    goes_on = (codes & 0x20) > 0
    ends = np.flatnonzero(~goes_on)
    if not len(codes) or goes_on[-1] or (codes < 0).any() or (codes > 63).any():
        raise ValueError("compressed run lengths that cannot be read")
    starts = np.r_[0, ends[:-1] + 1]
    n_digits = ends - starts + 1
    if n_digits.max() > _MOST_DIGITS:
        raise ValueError("compressed run lengths that cannot be read")
    place = np.arange(len(codes)) - np.repeat(starts, n_digits)
    values = np.add.reduceat((codes & 0x1F) << (5 * place), starts)
    values -= np.where(codes[ends] & 0x10, np.int64(1) << (5 * n_digits), 0)
    for first in (1, 2):
        values[first::2] = np.cumsum(values[first::2])
    if (values < 0).any() or (values >= _MOST_PIXELS).any():
        raise ValueError("compressed run lengths that cannot be read")
    unpacked: list[int] = values.tolist()
    return unpacked


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
