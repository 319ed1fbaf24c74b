"""COCO's files: instances (annotators) and results (systems)."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_choice
from trueup.detection.masks import boxes_of_masks, mask_areas, read_mask
from trueup.detection.problems import Problems
from trueup.detection.shapes import Images, Mask, Shapes, join_shapes, sorted_names
from trueup.exceptions import DataWarning, InvalidFile

File = str | PathLike[str]
Files = File | Mapping[str, File]
Unknown = Literal["error", "drop"]


def read_coco(files: Files, *, labeler: str | None = None, seen: str | None = "all") -> Shapes:
    """Annotated objects from COCO's instances.

    Parameters
    ----------
    files : path, or mapping from annotators to paths
        JSON, perhaps gzipped. One path alone is an annotator with the file's name.
    labeler : str, optional
        The field of an annotation that names its annotator, where one file holds those of several.
    seen : {"all", None}
        Who looked at which image: each annotator at all images of their file (of the whole file, where a field names
        them), so that not to draw an object is a vote against it; or nobody knows, and it is an abstention.

    Returns
    -------
    Shapes
        With masks where every annotation has one (needs ``trueup[coco]``), else with boxes.
    """
    return join_shapes(
        [_read_instances(name, path, labeler=labeler, seen=seen) for name, path in _named(files).items()]
    )


def read_results(files: Files, objects: Shapes | None = None, *, unknown: Unknown = "error") -> Shapes:
    """Detections from COCO's results.

    Parameters
    ----------
    files : path, or mapping from systems to paths
        JSON lists of ``{"image_id", "category_id", "bbox" or "segmentation", "score"}``.
    objects : Shapes, optional
        What `read_coco` gave: for names of classes and sizes of images. Without it classes are called by their numbers.
    unknown : {"error", "drop"}
        What to do with detections in images, or of classes, that `objects` do not have: refuse the file; or leave them
        out as COCO's program does, with a warning that says how many.
    """
    check_choice(unknown, get_args(Unknown), name="unknown")
    return join_shapes([_read_results(name, path, objects, unknown) for name, path in _named(files).items()])


def _named(files: Files) -> dict[str, File]:
    if isinstance(files, Mapping):
        return {str(name): path for name, path in files.items()}
    return {Path(files).name.split(".")[0]: files}


def load_json(path: File) -> Any:
    """What a JSON file holds, gzipped or not."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{file} cannot be read: {error.strerror or error}; check its name") from None
    try:
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidFile(f"{file} is no JSON: {error}; pass a file in COCO's format") from None


def _read_instances(name: str, path: File, *, labeler: str | None, seen: str | None) -> Shapes:
    content = load_json(path)
    if not isinstance(content, Mapping) or not {"images", "annotations", "categories"} <= set(content):
        kind = type(content).__name__
        raise InvalidFile(
            f"{path} must hold images, annotations and categories, got {_keys(content) or kind}; results of systems "
            "are read with read_results"
        )
    rows = content["annotations"]
    images = _images(content["images"], path)
    numbers = [category["id"] for category in content["categories"]]
    if len(set(numbers)) < len(numbers):
        raise InvalidFile(f"{path} has categories with the same id; give each its own")
    categories = _names_of_categories(content["categories"])
    sources = (name,) if labeler is None else tuple(sorted({str(row.get(labeler, "")) for row in rows}))
    problems = Problems(str(path), len(rows), "annotations")
    problems.refuse_repeated([row.get("id") for row in rows if row.get("id") is not None], "an id that another one has")
    shapes = _shapes(rows, images, categories, numbers, problems, scores=False)
    codes = {source: k for k, source in enumerate(sources)}
    source = [0 if labeler is None else codes[str(row.get(labeler, ""))] for row in rows]
    looked = None if seen is None else np.ones((len(sources), images.n), dtype=bool)
    return Shapes(
        images=images,
        categories=categories,
        sources=sources,
        source=np.array(source, dtype=np.int32),
        category_ids=np.array(numbers, dtype=object),
        seen=looked,
        **shapes,
    )


def _read_results(name: str, path: File, objects: Shapes | None, unknown: Unknown) -> Shapes:
    rows = load_json(path)
    if not isinstance(rows, list):
        raise InvalidFile(
            f"{path} must hold a list of detections, got {_keys(rows) or type(rows).__name__}; annotations are read "
            "with read_coco"
        )
    if objects is None:
        names = sorted_names(dict.fromkeys(row.get("image_id") for row in rows if isinstance(row, Mapping)))
        images = Images(names, np.full((len(names), 2), np.nan))
        numbers = sorted({row.get("category_id") for row in rows if isinstance(row, Mapping)}, key=str)
        categories = tuple(str(number) for number in numbers)
    else:
        images, categories, numbers = objects.images, objects.categories, objects.category_ids.tolist()
        if unknown == "drop":
            rows = _known_rows(rows, images, numbers, path)
    problems = Problems(str(path), len(rows), "detections")
    shapes = _shapes(rows, images, categories, numbers, problems, scores=True)
    return Shapes(
        images=images,
        categories=categories,
        sources=(name,),
        source=np.zeros(len(rows), dtype=np.int32),
        category_ids=np.array(numbers, dtype=object),
        **shapes,
    )


def _names_of_categories(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Each once: classes of the same name are told apart by their numbers."""
    names = [str(row.get("name", row["id"])) for row in rows]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({row['id']})" for name, row in zip(names, rows, strict=True)
    )


def _known_rows(rows: list[Any], images: Images, numbers: Sequence[Any], path: File) -> list[Any]:
    of_images, of_categories = set(images.ids.tolist()), set(numbers)
    known = [row for row in rows if row.get("image_id") in of_images and row.get("category_id") in of_categories]
    if len(known) < len(rows):
        warnings.warn(
            DataWarning(
                f"{path}: {len(rows) - len(known):,} of {len(rows):,} detections are in images or of classes that the "
                "annotations do not have, and were left out"
            ),
            stacklevel=4,
        )
    return known


def _images(rows: Sequence[Mapping[str, Any]], path: File) -> Images:
    ids = [row["id"] for row in rows]
    if len(set(ids)) < len(ids):
        raise InvalidFile(f"{path} has images with the same id; give each its own")
    by_id = {row["id"]: row for row in rows}
    names = sorted_names(ids)
    ordered = [by_id[name] for name in names.tolist()]
    sizes = [[float(row.get("width") or np.nan), float(row.get("height") or np.nan)] for row in ordered]
    return Images(names, np.array(sizes).reshape(-1, 2), tuple(str(row.get("file_name") or "") for row in ordered))


def _shapes(
    rows: Sequence[Any],
    images: Images,
    categories: tuple[str, ...],
    numbers: Sequence[Any],
    problems: Problems,
    *,
    scores: bool,
) -> dict[str, Any]:
    """The arrays of `Shapes` from annotations or detections."""
    at_image, at_category = images.position(), {number: k for k, number in enumerate(numbers)}
    image = [at_image.get(row.get("image_id"), -1) for row in rows]
    category = [at_category.get(row.get("category_id"), -1) for row in rows]
    problems.refuse(np.array(image) < 0, "an image that is not in the set")
    problems.refuse(np.array(category) < 0, "a class that is not in the set")
    with_masks = bool(rows) and all(row.get("segmentation") for row in rows)
    masks: list[Mask] = []
    if with_masks:
        for k, row in enumerate(rows):
            width, height = images.sizes[image[k]]
            try:
                masks.append(read_mask(row["segmentation"], height, width))
            except (ValueError, TypeError) as error:
                problems.refuse_one(k, str(error))
                masks.append({"size": [1, 1], "counts": b"1"})
        problems.raise_if_any()
    # Results with boxes and masks have the areas of their boxes, as in COCO's program.
    with_boxes = not with_masks or all(row.get("bbox") for row in rows)
    boxes = _boxes(rows, problems) if with_boxes else boxes_of_masks(masks)
    areas = boxes[:, 2] * boxes[:, 3] if with_boxes else mask_areas(masks)
    if not scores:
        areas = np.array([float(row.get("area", area)) for row, area in zip(rows, areas, strict=True)])
    problems.refuse_boxes(boxes, images.sizes[np.array(image, dtype=int)] if len(rows) else np.zeros((0, 2)))
    values = None
    if scores:
        values = np.array([_number(row.get("score")) for row in rows])
        problems.refuse_scores(values)
    problems.raise_if_any()
    return {
        "image": np.array(image, dtype=np.int32),
        "category": np.array(category, dtype=np.int32),
        "boxes": boxes,
        "areas": areas,
        "is_crowd": np.array([bool(row.get("iscrowd", 0)) for row in rows], dtype=bool),
        "scores": values,
        "masks": tuple(masks) if with_masks else None,
        "ids": np.array([row.get("id", k) for k, row in enumerate(rows)], dtype=object),
    }


def _boxes(rows: Sequence[Any], problems: Problems) -> Floats:
    boxes = np.full((len(rows), 4), np.nan)
    for k, row in enumerate(rows):
        box = row.get("bbox")
        if isinstance(box, Sequence) and len(box) == 4:
            boxes[k] = [_number(value) for value in box]
        else:
            problems.refuse_one(k, "neither a box of four numbers nor a mask")
    return boxes


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


def _keys(content: Any) -> str:
    return ", ".join(map(str, list(content)[:5])) if isinstance(content, Mapping) else ""
