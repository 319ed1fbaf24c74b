"""Shapes from files of any known kind."""

from __future__ import annotations

import gzip
import json
import warnings
import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_choice, preview
from trueup.data.files import table_suffix
from trueup.data.reading import read_named_rows
from trueup.detection.reading_tables import Problems, codes_of, images_named, read_boxes, read_voc, read_yolo
from trueup.detection.shapes import (
    Images,
    Mask,
    Shapes,
    boxes_of_masks,
    images_of_sizes,
    join_shapes,
    mask_areas,
    read_mask,
    sorted_names,
)
from trueup.exceptions import DataWarning, InvalidFile, InvalidParameter, InvalidShapes

File = str | PathLike[str]
Files = File | Mapping[str, File]
Unknown = Literal["error", "drop"]


def read_coco(files: Files, *, labeler: str | None = None, seen: str | None = "all") -> Shapes:
    """Annotated objects from COCO's instances: masks where every annotation has one (`trueup[coco]`), else boxes.

    Parameters
    ----------
    files : path, or mapping from annotators to paths
        JSON, perhaps gzipped. One path alone is an annotator with the file's name.
    labeler : str, optional. The field of an annotation that names its annotator, where one file holds those of several.
    seen : {"all", None}
        Whether each annotator looked at all images of their file (of the whole file, where a field names them), so that
        not to draw an object is a vote against it; or nobody knows, and it is an abstention.
    """
    parts = []
    for name, path in _by_source(files).items():
        content = load_json(path)
        if not isinstance(content, Mapping) or not {"images", "annotations", "categories"} <= set(content):
            raise InvalidFile(
                f"{path} must hold images, annotations and categories, got {_keys(content)}; results of systems "
                "are read with read_results"
            )
        rows = _records(content["annotations"], "annotations", path)
        images = _images(_with_ids(content["images"], "images", path), path)
        kinds = _with_ids(content["categories"], "categories", path)
        annotators = [name if labeler is None else str(row.get(labeler, "")) for row in rows]
        sources = (name,) if labeler is None else tuple(sorted(set(annotators)))
        problems = Problems(str(path), len(rows), "annotations")
        if labeler is not None:
            problems.refuse([row.get(labeler) is None for row in rows], f"no field {labeler!r}")
        ids = [row.get("id") for row in rows]
        problems.refuse([not isinstance(name, Hashable) for name in ids], "an id that is no name")
        keys = [_key(name) for name in ids]
        firsts = {key: k for k, key in reversed(list(enumerate(keys)))}
        repeated = [key is not None and firsts[key] < k for k, key in enumerate(keys)]
        problems.refuse(repeated, "an id that another one has")
        numbers = [category["id"] for category in kinds]
        shapes = _shapes(rows, images, _names_of_categories(kinds), numbers, problems, scores=False)
        looked = None if seen is None else np.ones((len(sources), images.n), dtype=bool)
        source = np.array([sources.index(annotator) for annotator in annotators], dtype=np.int32)
        parts.append(Shapes(sources=sources, source=source, seen=looked, **shapes))
    return join_shapes(parts)


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
    parts = []
    for name, path in _by_source(files).items():
        content = load_json(path)
        if not isinstance(content, list):
            raise InvalidFile(
                f"{path} must hold a list of detections, got {_keys(content)}; annotations are read with read_coco"
            )
        rows = _records(content, "detections", path)
        if objects is None:
            images = images_named(key for row in rows if (key := _key(row.get("image_id"))) is not None)
            numbers = sorted({key for row in rows if (key := _key(row.get("category_id"))) is not None}, key=str)
            categories = tuple(str(number) for number in numbers)
        else:
            images, categories, numbers = objects.images, objects.categories, objects.category_ids.tolist()
            if unknown == "drop":
                rows = _known_rows(rows, images, numbers, path)
        problems = Problems(str(path), len(rows), "detections")
        shapes = _shapes(rows, images, categories, numbers, problems, scores=True)
        parts.append(Shapes(sources=(name,), source=np.zeros(len(rows), dtype=np.int32), **shapes))
    return join_shapes(parts)


def _by_source(files: Files) -> dict[str, File]:
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
    except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        raise InvalidFile(f"{file} is no JSON: {error!s:.100}; pass a file in COCO's format") from None


def _records(rows: Any, what: str, path: File) -> list[Mapping[str, Any]]:
    """Rows of a file that are records."""
    if not isinstance(rows, list):
        raise InvalidFile(f"{path}: {what} must be a list of records, got {type(rows).__name__}; mend the file")
    _refuse_rows([not isinstance(row, Mapping) for row in rows], f"{path}: {what} must be records", "that are none")
    return rows


def _refuse_rows(is_wrong: Sequence[bool], rule: str, problem: str) -> None:
    if any(is_wrong):
        raise InvalidFile(
            f"{rule}, got {sum(is_wrong):,} of {len(is_wrong):,} {problem} (the first is number "
            f"{is_wrong.index(True) + 1:,}); mend or remove them: nothing is dropped silently"
        )


def _with_ids(rows: Any, what: str, path: File) -> list[Mapping[str, Any]]:
    """Images or categories, each with an id of its own."""
    records = _records(rows, what, path)
    if not records:
        raise InvalidFile(f"{path} must have {what}, got none; add them")
    ids = [row.get("id") for row in records]
    strange = [not isinstance(name, int | str) or isinstance(name, bool) for name in ids]
    _refuse_rows(strange, f"{path}: {what} must have an id, a number or text", "without")
    n_repeated = len(ids) - len(set(ids))
    if n_repeated:
        raise InvalidFile(f"{path}: {what} must have ids of their own, got {n_repeated:,} with another's; mend them")
    return records


def _key(value: Any) -> Hashable | None:
    """A value by which others can be looked up; None for what cannot be a key."""
    return value if isinstance(value, Hashable) else None


def _names_of_categories(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Each once: classes of the same name are distinguished by their numbers."""
    names = [str(row.get("name", row["id"])) for row in rows]
    pairs = zip(names, rows, strict=True)
    return tuple(name if names.count(name) == 1 else f"{name} ({row['id']})" for name, row in pairs)


def _known_rows(rows: list[Any], images: Images, numbers: Sequence[Any], path: File) -> list[Any]:
    of_images, of_categories = images.position(), set(numbers)
    kept = [
        row for row in rows if _key(row.get("image_id")) in of_images and _key(row.get("category_id")) in of_categories
    ]
    problem = "in images or of classes that the annotations do not have"
    if rows and not kept:
        message = f"{path}: all of {len(rows):,} detections are {problem}; check that both are of the same images"
        raise InvalidFile(message)
    if len(kept) < len(rows):
        message = f"{path}: {len(rows) - len(kept):,} of {len(rows):,} detections are {problem}, and were left out"
        warnings.warn(DataWarning(message), stacklevel=3)
    return kept


def _images(rows: Sequence[Mapping[str, Any]], path: File) -> Images:
    by_id = {row["id"]: row for row in rows}
    names = sorted_names(by_id)
    ordered = [by_id[name] for name in names.tolist()]
    sides = [[row.get("width"), row.get("height")] for row in ordered]
    sizes = np.array([[_number(side) for side in both] for both in sides]).reshape(-1, 2)
    is_given = np.array([[side is not None for side in both] for both in sides], dtype=bool).reshape(-1, 2)
    wrong = (is_given & ~(np.isfinite(sizes) & (sizes > 0))).any(axis=1)
    if wrong.any():
        raise InvalidFile(
            f"{path}: width and height of images must be numbers above 0, got {int(wrong.sum()):,} of {len(wrong):,} "
            f"images with others (the first is {names.tolist()[int(wrong.argmax())]!r}); mend or leave them out"
        )
    return Images(names, sizes, tuple(str(row.get("file_name") or "") for row in ordered))


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
    image = codes_of((_key(row.get("image_id")) for row in rows), images.position())
    category = codes_of((_key(row.get("category_id")) for row in rows), {name: k for k, name in enumerate(numbers)})
    problems.refuse(image < 0, "an image that is not in the set")
    problems.refuse(category < 0, "a class that is not in the set")
    n_masks = sum(bool(row.get("segmentation")) for row in rows)
    with_masks = 0 < n_masks == len(rows)
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
        given = [row.get("area") for row in rows]
        areas = np.array([area if own is None else _number(own) for own, area in zip(given, areas, strict=True)])
        problems.refuse(~(areas >= 0), "an area that is no number from 0 on")
    crowds = [row.get("iscrowd", 0) for row in rows]
    problems.refuse([flag not in (0, 1, None) for flag in crowds], "a crowd flag but 0 or 1")
    problems.refuse_boxes(boxes, images.sizes[image] if len(rows) else np.zeros((0, 2)))
    values = None
    if scores:
        values = np.array([_number(row.get("score")) for row in rows])
        problems.refuse_scores(values)
    problems.raise_if_any()
    if 0 < n_masks < len(rows):
        message = f"{n_masks:,} of {len(rows):,} {problems.rows} have masks and the others have none"
        warnings.warn(DataWarning(f"{problems.file}: {message}; the boxes of all are used"), stacklevel=3)
    return {
        "images": images,
        "categories": categories,
        "category_ids": np.array(numbers, dtype=object),
        "image": image,
        "category": category,
        "boxes": boxes,
        "areas": areas,
        "is_crowd": np.array([bool(flag) for flag in crowds], dtype=bool),
        "scores": values,
        "masks": tuple(masks) if with_masks else None,
        "ids": np.array([row.get("id", k) for k, row in enumerate(rows)], dtype=object),
    }


def _boxes(rows: Sequence[Any], problems: Problems) -> Floats:
    boxes = np.full((len(rows), 4), 1.0)  # what is refused is refused once
    for k, row in enumerate(rows):
        box = row.get("bbox")
        if isinstance(box, list) and len(box) == 4:
            boxes[k] = [_number(value) for value in box]
        elif row.get("segmentation"):
            problems.refuse_one(k, "a mask and no box, where others have no mask")
        else:
            problems.refuse_one(k, "neither a box of four numbers nor a mask")
    return boxes


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")


def _keys(content: Any) -> str:
    """What is in a file, for errors."""
    keys = ", ".join(map(str, list(content)[:5])) if isinstance(content, Mapping) else ""
    return keys or type(content).__name__


FileKind = Literal["coco", "table", "yolo", "voc"]


def kind_of_file(path: File) -> FileKind:
    """What a file or folder is: by its suffix, a folder by what is in it."""
    place = Path(path)
    if place.is_dir():
        for kind, pattern in (("yolo", "*.txt"), ("voc", "*.xml")):
            if next(place.glob(pattern), None) is not None:
                return kind  # type: ignore[return-value]
        raise InvalidFile(f"the folder {str(place)!r} has neither .txt files of YOLO nor .xml files of Pascal VOC")
    if place.name.lower().endswith((".json", ".json.gz")):
        return "coco"
    if table_suffix(place) is not None:
        return "table"
    raise InvalidFile(
        f"{str(place)!r} must be COCO's .json, a table (.csv, .tsv, .jsonl, .parquet), or a folder of YOLO or "
        "Pascal VOC; name it so"
    )


def read_annotations(
    files: Mapping[str, File],
    *,
    labeler: str | None = None,
    seen: str | None = "all",
    categories: Sequence[str] | None = None,
    sizes: Mapping[Any, tuple[float, float]] | None = None,
    image: str = "image",
    shape: str | None = None,
) -> Shapes:
    """What annotators drew, from files of any known kind.

    Parameters
    ----------
    files : mapping from names to paths. A file or folder for each annotator, or one that holds several (`labeler`).
    labeler : str, optional
        The field of COCO's annotations, or the column of a table, that names the annotator; in tables the columns
        "labeler" and "annotator" are found by themselves.
    seen : {"all", None}. Whether each annotator looked at all images of their file, or nobody knows.
    categories : sequence of str, optional. Names of the classes 0, 1, …; YOLO's texts need them.
    sizes : mapping from images to (width, height), optional
        Of images whose file does not have them; these are also images that were looked at and have no box.
    image : str. The column of a table that names the image.
    shape : {"box", "mask"}, optional
        "box" leaves masks aside, so that files with masks and files with boxes alone go together.
    """
    parts = []
    for name, path in files.items():
        kind = kind_of_file(path)
        if kind == "coco":
            parts.append(read_coco({name: path}, labeler=labeler, seen=seen))
        elif kind == "table":
            images = None if sizes is None else images_of_sizes(sizes)
            parts.append(read_boxes(path, image=image, source=labeler, images=images, seen=seen, name=name))
        elif kind == "yolo":
            parts.append(read_yolo({name: path}, categories=_named(categories), sizes=sizes))
        else:
            parts.append(read_voc({name: path}))
        if parts[-1].scores is not None:
            raise InvalidShapes(f"{path}: annotations have no scores, got scores; detections are read as such")
    joined = _joined(parts, shape)
    return joined if seen == "all" else replace(joined, seen=None)


def read_detections(
    files: Mapping[str, File],
    objects: Shapes,
    *,
    system: str | None = None,
    categories: Sequence[str] | None = None,
    unknown: Unknown = "error",
    image: str = "image",
    shape: str | None = None,
) -> Shapes:
    """What systems found, from files of any known kind.

    Parameters
    ----------
    files : mapping from names to paths. A file or folder for each system, or a table that holds several (`system`).
    objects : Shapes
        What `read_annotations` gave: detections are in these images, which are known by id, file name, or file name
        without its ending.
    system : str, optional. The column of a table that names the system; "system" is found by itself.
    categories : sequence of str, optional. As for `read_annotations`.
    unknown : {"error", "drop"}
        What to do with detections in other images: refuse the file, or leave them out with a warning.
    image, shape
        As for `read_annotations`.
    """
    check_choice(unknown, get_args(Unknown), name="unknown")
    parts = []
    for name, path in files.items():
        kind = kind_of_file(path)
        if kind == "coco":
            if not isinstance(load_json(path), list):
                raise InvalidFile(f"{path} must hold a list of detections with scores, got annotations; name results")
            parts.append(read_results({name: path}, objects, unknown=unknown))
            continue
        if kind == "table":
            part = read_boxes(path, image=image, source=system, seen=None, name=name)
        elif kind == "yolo":
            sizes = {known: tuple(objects.images.sizes[k]) for known, k in names_of_images(objects.images).items()}
            whole = {}  # images without a size are 1 × 1
            for stem in (file.stem for file in Path(path).glob("*.txt")):
                size = sizes.get(stem, (np.nan, np.nan))
                whole[stem] = (1.0, 1.0) if np.isnan(size).any() else (size[0], size[1])
            part = read_yolo({name: path}, categories=_named(categories or objects.categories), sizes=whole)
        else:
            raise InvalidFile(f"{path} is Pascal VOC, which has no scores; give detections as COCO, a table or YOLO")
        if part.scores is None:
            raise InvalidShapes(f"{path}: of {len(part):,} detections none has a score; add scores from 0 to 1")
        part = _in_known_images(part, objects.images, path, unknown)
        problems = Problems(str(path), len(part), "detections")
        problems.refuse_boxes(part.boxes, part.images.sizes[part.image])
        problems.raise_if_any()
        # A class that no annotator has may be a typing error, and counts as a class in every mean over classes.
        strange = [name for name in part.categories if name not in objects.categories]
        n_strange = int(np.isin(part.category, [part.categories.index(name) for name in strange]).sum())
        if n_strange:
            message = (
                f"{path}: {n_strange:,} of {len(part):,} detections are of classes that no annotator has "
                f"({preview(strange)}); if they are the same classes, name them alike"
            )
            warnings.warn(DataWarning(message), stacklevel=2)
        parts.append(part)
    return _joined(parts, shape)


def _joined(parts: Sequence[Shapes], shape: str | None) -> Shapes:
    return join_shapes([part.boxes_only() for part in parts] if shape == "box" else parts)


def names_of_images(images: Images) -> dict[str, int]:
    """Where the image of each name is: its id, its file, or either without folder and ending; each means one image."""
    return {name: meant[0] for name, meant in _meanings(images).items() if len(meant) == 1}


def _meanings(images: Images) -> dict[str, list[int]]:
    """The images that a name may mean: by id, else by file, else without folder and ending."""
    tables: list[dict[str, list[int]]] = [{}, {}, {}]  # without folder and ending, by file, by id
    for k, (name, file) in enumerate(zip(images.ids.tolist(), images.files, strict=True)):
        short = {Path(name).stem} if isinstance(name, str) else set()
        short |= {Path(file).stem, Path(file).name} if file else set()
        for table, names in zip(tables, (short, {file} - {""}, {str(name)}), strict=True):
            for meant in names:
                table.setdefault(meant, []).append(k)
    return tables[0] | tables[1] | tables[2]


def _refuse_ambiguous(names: Iterable[Any], images: Images, where: str) -> None:
    meanings, ids = _meanings(images), images.ids.tolist()
    for name in dict.fromkeys(map(str, names)):
        several = [images.files[k] or ids[k] for k in meanings.get(name, [])]
        if len(several) > 1:
            raise InvalidShapes(
                f"{where} must name each image so that it is one, got {name!r}, which may be "
                f"{preview(several, most=3)}; name images in full, as the annotations do"
            )


def _in_known_images(found: Shapes, images: Images, path: File, unknown: Unknown) -> Shapes:
    """The same detections in the images of the annotations."""
    _refuse_ambiguous(found.images.ids.tolist(), images, str(path))
    names = names_of_images(images)
    ids = found.images.ids.tolist()
    image = codes_of(map(str, ids), names)[found.image] if len(found) else np.zeros(0, dtype=np.int32)
    strange = image < 0
    some = f"{path}: {int(strange.sum()):,} of {len(found):,} detections are in images that the annotations do not have"
    if strange.any() and (unknown == "error" or strange.all()):
        first = ids[int(found.image[int(strange.argmax())])]
        raise InvalidShapes(
            f"{some} (the first is {first!r}); these begin with {preview(images.ids.tolist(), most=3)}: check that "
            "both are of the same images"
        )
    if strange.any():
        warnings.warn(DataWarning(f"{some}, and were left out"), stacklevel=3)
    return replace(found.select(~strange), images=images, image=image[~strange])


def with_seen(shapes: Shapes, rows: Iterable[tuple[Any, Any]]) -> Shapes:
    """The same shapes, with the images that each annotator looked at."""
    people = {name: k for k, name in enumerate(shapes.sources)}
    images = names_of_images(shapes.images)
    pairs = [(str(annotator), str(image)) for annotator, image in rows]
    _refuse_ambiguous((image for _, image in pairs), shapes.images, "seen")
    strange = [name for name, _ in pairs if name not in people] or [image for _, image in pairs if image not in images]
    if strange:
        known = preview(list(people) if strange[0] not in images else list(images), most=5)
        raise InvalidShapes(
            f"seen must name annotators and images that there are, got {len(strange):,} rows with others (the first is "
            f"{strange[0]!r}); there are {known}"
        )
    seen = np.zeros((len(people), shapes.images.n), dtype=bool)
    for annotator, image in pairs:
        seen[people[annotator], images[image]] = True
    unseen = ~seen[shapes.source, shapes.image]
    if unseen.any():
        raise InvalidShapes(
            f"seen must hold every image in which somebody drew, got {int(unseen.sum()):,} shapes in images that their "
            f"annotator did not see (the first is of {shapes.sources[shapes.source[int(unseen.argmax())]]!r})"
        )
    return replace(shapes, seen=seen)


def read_seen(path: File, shapes: Shapes, *, image: str = "image") -> Shapes:
    """The images that each annotator looked at, from a table with columns labeler (or annotator) and image."""
    images, table = read_named_rows(str(path), image, role="image")
    people = next((table[name] for name in ("labeler", "annotator") if name in table), None)
    if people is None:
        raise InvalidFile(f"{path} must have the columns labeler and {image}, got {', '.join([image, *table])}")
    return with_seen(shapes, zip(people, images, strict=True))


def read_sizes(path: File, *, image: str = "image") -> dict[Any, tuple[float, float]]:
    """Width and height of images, from a table with the columns image, width and height."""
    images, table = read_named_rows(str(path), image, role="image")
    if not {"width", "height"} <= set(table):
        raise InvalidFile(f"{path} must have the columns {image}, width and height, got {', '.join([image, *table])}")
    n_more = len(images) - len(set(images))
    if n_more:
        raise InvalidFile(f"{path} must have one row for each image, got {n_more:,} more; mend the table")
    try:
        rows = np.array([table["width"], table["height"]], dtype=float).T
    except (TypeError, ValueError):
        rows = np.full((1, 2), np.nan)
    if not (np.isfinite(rows).all() and (rows > 0).all()):
        raise InvalidFile(f"{path}: width and height must be numbers above 0 in every row; mend the table")
    return {name: (float(w), float(h)) for name, (w, h) in zip(images, rows, strict=True)}


def _named(categories: Sequence[str] | None) -> Sequence[str]:
    if not categories:
        raise InvalidParameter("YOLO's texts number the classes, got no names; name them in order (`categories`)")
    return categories
