"""Slanted ellipses as masks of a few images, for the tests of boxes in place of masks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments.nguyen2018.simulated_masks import mask_of_bitmap
from trueup.detection import Images, Shapes, boxes_from_arrays
from trueup.detection.shapes import Mask, boxes_of_masks, mask_areas


def ellipse(side: int, x: float, y: float, a: float, b: float, slant: float) -> Mask:
    """On a square image."""
    rows, columns = np.mgrid[:side, :side] + 0.5
    u, v = (columns - x) / a, (rows - y) / b
    return mask_of_bitmap(((u**2 + v**2 + 2 * slant * u * v) < 1).astype(np.uint8))


def shapes(
    masks: list, image: list, kind: list, scores: list | None = None, *, side: int, n_images: int, kinds: Sequence[str]
) -> Shapes:
    """Masks of images and classes with the boxes around them."""
    plain = boxes_from_arrays(
        image=image,
        boxes=boxes_of_masks(masks),
        category=kind,
        scores=scores,
        images=Images(np.arange(n_images), np.full((n_images, 2), float(side))),
        categories=kinds,
    )
    return replace(plain, masks=tuple(masks), areas=mask_areas(masks))
