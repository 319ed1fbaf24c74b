"""What is seen of a candidate: a crop with a margin, a thumbnail of its image, a tile with all outlines.

Everything is plain data for `trueup.report.crops`, drawn from the shapes; a photograph lies below where there is one.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.types import Floats
from trueup.detection.pool import Pool
from trueup.detection.shapes import Images, Mask, bitmap
from trueup.exceptions import InvalidParameter

_MARGIN = 0.75  # of the larger side of a shape, on each side
_LEAST_SIDE = 24.0  # pixels of an image that a crop shows at least
_MOST_CELLS = 96  # of a side of a mask, from which on it is drawn coarser
_LARGEST_PHOTO = 20 << 20
_PHOTO_TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif", ".bmp": "bmp"}
Photos = Mapping[int, str]
"""For some images, the address of the photograph."""


def image_size(pool: Pool, image: int) -> tuple[float, float]:
    """Width and height of an image; where nobody said, as far as shapes in it reach."""
    width, height = pool.images.sizes[image]
    if np.isfinite([width, height]).all():
        return float(width), float(height)
    boxes = pool.boxes[pool.image == image]
    if not len(boxes):
        return 1.0, 1.0
    reach = (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
    return float(max(reach[0], 1.0)), float(max(reach[1], 1.0))


def candidate_crop(pool: Pool, candidate: int, photos: Photos | None = None) -> dict[str, Any]:
    """A candidate with a margin around it, outline only; others nearby are drawn faintly where there is no photo."""
    outline = {"role": "candidate", **_outline(pool, candidate)}
    return shape_crop(pool, int(pool.image[candidate]), pool.boxes[candidate], [outline], photos, leave_out=candidate)


def shape_crop(
    pool: Pool, image: int, box: Floats, shapes: list[dict[str, Any]], photos: Photos | None = None, leave_out: int = -1
) -> dict[str, Any]:
    """A part of an image with a margin around a box, and these shapes in it."""
    view = _view(box, image_size(pool, image))
    photo = (photos or {}).get(image)
    nearby = [] if photo else [k for k in _inside(pool, image, view) if k != leave_out]
    return {
        "view": view,
        "size": list(image_size(pool, image)),
        "shapes": [*({"role": "other", **_outline(pool, k)} for k in nearby), *shapes],
        "photo": photo,
    }


def thumbnail(pool: Pool, image: int, box: Floats, photos: Photos | None = None) -> dict[str, Any]:
    """A whole image with the place of a crop in it."""
    size = image_size(pool, image)
    place = {"role": "tile", "box": _view(box, size)}
    return {"view": [0.0, 0.0, *size], "size": list(size), "shapes": [place], "photo": (photos or {}).get(image)}


def tile_picture(
    pool: Pool, image: int, box: Floats, photos: Photos | None = None, leave_out: int = -1
) -> dict[str, Any]:
    """A tile with all outlines in it but that of one candidate, and some of what is around it."""
    size = image_size(pool, image)
    margin = 0.08 * max(float(box[2]), float(box[3]))
    view = _clipped(float(box[0]) - margin, float(box[1]) - margin, box[2] + 2 * margin, box[3] + 2 * margin, size)
    shapes = [{"role": "candidate", **_outline(pool, k)} for k in _inside(pool, image, view) if k != leave_out]
    frame = {"role": "tile", "box": [float(value) for value in box]}
    return {"view": view, "size": list(size), "shapes": [*shapes, frame], "photo": (photos or {}).get(image)}


def _outline(pool: Pool, candidate: int) -> dict[str, Any]:
    if pool.masks is None:
        return {"box": pool.boxes[candidate].tolist()}
    return {"edges": mask_edges(pool.masks[candidate], pool.boxes[candidate])}


def mask_edges(mask: Mask, box: Floats) -> list[list[float]]:
    """The outline of a mask as lines between pixels: x1, y1, x2, y2."""
    pixels = np.asarray(bitmap(mask), dtype=bool)
    height, width = pixels.shape
    x0, y0 = max(int(box[0]) - 1, 0), max(int(box[1]) - 1, 0)
    x1, y1 = min(int(box[0] + box[2]) + 2, width), min(int(box[1] + box[3]) + 2, height)
    step = max(int(np.ceil(max(x1 - x0, y1 - y0, 1) / _MOST_CELLS)), 1)
    part = np.pad(pixels[y0:y1:step, x0:x1:step], 1)
    edges = []
    for changes, is_upright in ((part[:, 1:] != part[:, :-1], True), ((part[1:] != part[:-1]).T, False)):
        for at in np.flatnonzero(changes.any(axis=0)).tolist():
            along = np.flatnonzero(np.diff(np.r_[0, changes[:, at].astype(np.int8), 0]))
            for first, last in along.reshape(-1, 2).tolist():
                ends = [at, first - 1, at, last - 1] if is_upright else [first - 1, at, last - 1, at]
                edges.append([float(value * step + (y0 if k % 2 else x0)) for k, value in enumerate(ends)])
    return edges


def _view(box: Floats, size: tuple[float, float]) -> list[float]:
    x, y, w, h = (float(value) for value in box)
    side = max(w, h) * (1 + 2 * _MARGIN)
    side = max(side, min(_LEAST_SIDE, *size))
    return _clipped(x + w / 2 - side / 2, y + h / 2 - side / 2, side, side, size)


def _clipped(x: float, y: float, w: float, h: float, size: tuple[float, float]) -> list[float]:
    """A part that is moved into its image, and no larger than that."""
    w, h = min(float(w), size[0]), min(float(h), size[1])
    return [min(max(float(x), 0.0), size[0] - w), min(max(float(y), 0.0), size[1] - h), w, h]


def _inside(pool: Pool, image: int, view: list[float]) -> list[int]:
    """Candidates that reach into a part of an image."""
    own = np.flatnonzero(pool.image == image)
    boxes = pool.boxes[own]
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    meets = (high > view[:2]).all(axis=1) & (low < np.add(view[:2], view[2:])).all(axis=1)
    return [int(k) for k in own[meets]]


def find_photos(folder: str | os.PathLike[str], images: Images, which: list[int]) -> dict[int, Path]:
    """The files of some images below a folder; by the name of the file, or by the name of the image."""
    root = Path(os.path.realpath(folder))
    if not root.is_dir():
        raise InvalidParameter(f"`images` must be a folder, got {str(folder)!r}; name the folder of the images")
    ids, found, missing = images.ids.tolist(), {}, []
    for k in which:
        names = [images.files[k], str(ids[k]), *(f"{ids[k]}{suffix}" for suffix in _PHOTO_TYPES)]
        places = [Path(os.path.realpath(root / name)) for name in names if name]
        good = [
            place
            for place in places
            if place.is_relative_to(root) and place.is_file() and place.suffix.lower() in _PHOTO_TYPES
        ]
        if good:
            found[k] = good[0]
        else:
            missing.append(names[0] or str(ids[k]))
    if missing:
        raise InvalidParameter(
            f"{str(folder)!r} must hold the images, got none for {len(missing):,} of {len(which):,} (the first "
            f"is {missing[0]!r}); name their folder, or leave it out to draw from shapes alone"
        )
    return found


def photo_address(path: Path) -> str:
    """A picture as an address that holds it."""
    if path.stat().st_size > _LARGEST_PHOTO:
        raise InvalidParameter(f"{path.name!r} is larger than 20 MB; make smaller copies of the images")
    kind = _PHOTO_TYPES[path.suffix.lower()]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
