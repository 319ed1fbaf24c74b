"""Boxes from arrays and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup.detection.problems import Problems
from trueup.detection.shapes import Images, Shapes, sorted_names
from trueup.exceptions import InvalidShapes


def boxes_from_arrays(
    *,
    image: Sequence[Any] | npt.NDArray[Any],
    boxes: npt.ArrayLike,
    category: Sequence[Any] | npt.NDArray[Any] | None = None,
    source: Sequence[Any] | npt.NDArray[Any] | None = None,
    scores: npt.ArrayLike | None = None,
    images: Sequence[Any] | Images | None = None,
    categories: Sequence[Any] | None = None,
    seen: npt.ArrayLike | None = None,
    name: str = "boxes",
    file: str | None = None,
) -> Shapes:
    """Boxes of annotators or systems.

    Parameters
    ----------
    image : sequence of length n
        The name of the image of each box.
    boxes : array of shape (n, 4)
        Left edge, top edge, width, height.
    category, source : sequences of length n, optional
        Classes and annotators (or systems); by default all are one.
    scores : array of shape (n,), optional
        From 0 to 1, for systems.
    images : sequence of names, or Images, optional
        All images, also those in which nothing is.
    categories : sequence, optional
        All classes in their order.
    seen : boolean array of shape (n_sources, n_images), optional
        Who looked at which image, in the order of the sorted sources and images.
    name : str
        The source where none is told.
    file : str, optional
        What errors call the boxes; by default as `name`.
    """
    table = np.asarray(boxes, dtype=float).reshape(-1, 4)
    n = len(table)
    sides = {"image": image, "category": category, "source": source, "scores": scores}
    for what, values in sides.items():
        if values is not None and len(values) != n:  # type: ignore[arg-type]
            raise InvalidShapes(f"{what} must be one for each of {n} boxes, got {len(values)}")  # type: ignore[arg-type]
    image_names = [_plain(value) for value in image]
    if isinstance(images, Images):
        all_images = images
    else:
        names = sorted_names(dict.fromkeys([*map(_plain, images or ()), *image_names]))
        all_images = Images(names, np.full((len(names), 2), np.nan))
    at_image = all_images.position()
    classes = [str(value) for value in (category if category is not None else ["object"] * n)]
    all_classes = tuple(map(str, categories)) if categories is not None else tuple(sorted(set(classes) or {"object"}))
    people = [str(value) for value in (source if source is not None else [name] * n)]
    sources = tuple(sorted(set(people) or {name}))
    problems = Problems(name if file is None else file, n, "boxes")
    image_codes = np.array([at_image.get(value, -1) for value in image_names], dtype=np.int32)
    at_class = {value: k for k, value in enumerate(all_classes)}
    codes = np.array([at_class.get(value, -1) for value in classes], dtype=np.int32)
    problems.refuse(image_codes < 0, "an image that is not in the set")
    problems.refuse(codes < 0, "a class that is not in the set")
    problems.refuse_boxes(table, all_images.sizes[image_codes] if n else np.zeros((0, 2)))
    values = None
    if scores is not None:
        values = np.asarray(scores, dtype=float)
        problems.refuse_scores(values)
    problems.raise_if_any()
    looked = None if seen is None else np.asarray(seen, dtype=bool)
    if looked is not None and looked.shape != (len(sources), all_images.n):
        raise InvalidShapes(
            f"seen must have a row for each of {len(sources)} sources and a column for each of {all_images.n} images, "
            f"got the shape {looked.shape}"
        )
    return Shapes(
        images=all_images,
        categories=all_classes,
        sources=sources,
        image=image_codes,
        category=codes,
        source=np.array([sources.index(one) for one in people], dtype=np.int32),
        boxes=table,
        areas=table[:, 2] * table[:, 3],
        is_crowd=np.zeros(n, dtype=bool),
        scores=values,
        ids=np.arange(n).astype(object),
        category_ids=np.arange(1, len(all_classes) + 1).astype(object),
        seen=looked,
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
