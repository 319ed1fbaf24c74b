"""Shapes from files of any known kind, told by what the files are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from trueup._base.types import Floats
from trueup._base.validation import check_choice, preview
from trueup.data.files import table_suffix
from trueup.data.reading import read_named_rows
from trueup.detection.problems import Problems
from trueup.detection.reading_coco import Unknown, load_json, read_coco, read_results
from trueup.detection.reading_tables import read_boxes, read_voc, read_yolo
from trueup.detection.shapes import Images, Shapes, join_shapes, sorted_names
from trueup.exceptions import DataWarning, InvalidFile, InvalidParameter, InvalidShapes, quoted

FileKind = Literal["coco", "table", "yolo", "voc"]
File = str | PathLike[str]


def kind_of_file(path: File) -> FileKind:
    """What a file or folder is: by its suffix, a folder by what is in it.

    Examples
    --------
    >>> kind_of_file("instances.json.gz"), kind_of_file("boxes.csv")
    ('coco', 'table')
    """
    place = Path(path)
    if place.is_dir():
        for kind, pattern in (("yolo", "*.txt"), ("voc", "*.xml")):
            if next(place.glob(pattern), None) is not None:
                return kind  # type: ignore[return-value]
        raise InvalidFile(
            f"the folder {quoted(str(place))} has neither .txt files of YOLO nor .xml files of Pascal VOC"
        )
    if place.name.lower().endswith((".json", ".json.gz")):
        return "coco"
    if table_suffix(place) is not None:
        return "table"
    raise InvalidFile(
        f"{quoted(str(place))} must be COCO's .json, a table (.csv, .tsv, .jsonl, .parquet), or a folder of YOLO or "
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
    files : mapping from names to paths
        A file or folder for each annotator, or one that holds several (`labeler`).
    labeler : str, optional
        The field of COCO's annotations, or the column of a table, that names the annotator; in tables the columns
        "labeler" and "annotator" are found by themselves.
    seen : {"all", None}
        Whether each annotator looked at all images of their file, or nobody knows.
    categories : sequence of str, optional
        Names of the classes 0, 1, …; YOLO's texts need them.
    sizes : mapping from images to (width, height), optional
        Of images whose file does not tell; these are also images that were looked at and have no box.
    image : str
        The column of a table that names the image.
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
            parts.append(_unless_seen(read_yolo({name: path}, categories=_named(categories), sizes=sizes), seen))
        else:
            parts.append(_unless_seen(read_voc({name: path}), seen))
        if parts[-1].scores is not None:
            raise InvalidShapes(f"{path}: annotations have no scores, got scores; detections are read as such")
    return _joined(parts, shape)


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
    files : mapping from names to paths
        A file or folder for each system, or a table that holds several (`system`).
    objects : Shapes
        What `read_annotations` gave: detections are in these images, which are known by id, file name, or file name
        without its ending.
    system : str, optional
        The column of a table that names the system; "system" is found by itself.
    categories : sequence of str, optional
        As for `read_annotations`.
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
            part = _in_pixels(path, name, _named(categories or objects.categories), sizes, unknown)
        else:
            raise InvalidFile(f"{path} is Pascal VOC, which has no scores; give detections as COCO, a table or YOLO")
        if part.scores is None:
            raise InvalidShapes(f"{path}: of {len(part):,} detections none has a score; add scores from 0 to 1")
        part = _in_known_images(part, objects.images, path, unknown)
        problems = Problems(str(path), len(part), "detections")
        problems.refuse_boxes(part.boxes, part.images.sizes[part.image])
        problems.raise_if_any()
        _warn_of_new_classes(part, objects, path)
        parts.append(part)
    return _joined(parts, shape)


def _joined(parts: Sequence[Shapes], shape: str | None) -> Shapes:
    return join_shapes([part.boxes_only() for part in parts] if shape == "box" else parts)


def _warn_of_new_classes(found: Shapes, objects: Shapes, path: File) -> None:
    """A class that no annotator has may be a typing error, and counts as a class in every mean over classes."""
    strange = [name for name in found.categories if name not in objects.categories]
    is_strange = np.isin(found.category, [found.categories.index(name) for name in strange])
    if is_strange.any():
        warnings.warn(
            DataWarning(
                f"{path}: {int(is_strange.sum()):,} of {len(found):,} detections are of classes that no annotator has "
                f"({preview(strange)}); if they are the same classes, name them alike"
            ),
            stacklevel=3,
        )


def _in_pixels(
    path: File,
    name: str,
    categories: Sequence[str],
    sizes: Mapping[str, tuple[float, ...]],
    unknown: Unknown,
) -> Shapes:
    """YOLO's boxes in the pixels of the images that are known; images without a size are 1 × 1 there as well."""
    stems = [file.stem for file in Path(path).glob("*.txt")]
    table = {stem: sizes.get(stem, (1.0, 1.0)) for stem in stems}
    whole = {stem: (1.0, 1.0) if np.isnan(size).any() else (size[0], size[1]) for stem, size in table.items()}
    return read_yolo({name: path}, categories=categories, sizes=whole)


def names_of_images(images: Images) -> dict[str, int]:
    """Where the image of each name is: its id, its file, or either without folder and ending; each means one image."""
    return {name: meant[0] for name, meant in _meanings(images).items() if len(meant) == 1}


def _meanings(images: Images) -> dict[str, list[int]]:
    """The images that a name may mean: by id, else by file, else without folder and ending."""
    by_id: dict[str, list[int]] = {}
    by_file: dict[str, list[int]] = {}
    in_short: dict[str, list[int]] = {}
    for k, (name, file) in enumerate(zip(images.ids.tolist(), images.files, strict=True)):
        by_id.setdefault(str(name), []).append(k)
        short = {Path(name).stem} if isinstance(name, str) else set()
        if file:
            by_file.setdefault(file, []).append(k)
            short |= {Path(file).stem, Path(file).name}
        for one in short:
            in_short.setdefault(one, []).append(k)
    return in_short | by_file | by_id


def _refuse_ambiguous(names: Iterable[Any], images: Images, where: str) -> None:
    meanings = _meanings(images)
    for name in dict.fromkeys(map(str, names)):
        meant = meanings.get(name, [])
        if len(meant) > 1:
            ids = images.ids.tolist()
            several = [images.files[k] or ids[k] for k in meant]
            raise InvalidShapes(
                f"{where} must name each image so that it is one, got {quoted(name)}, which may be "
                f"{preview(several, most=3)}; name images in full, as the annotations do"
            )


def _in_known_images(found: Shapes, images: Images, path: File, unknown: Unknown) -> Shapes:
    """The same detections in the images of the annotations."""
    _refuse_ambiguous(found.images.ids.tolist(), images, str(path))
    names = names_of_images(images)
    to_known = np.array([names.get(str(name), -1) for name in found.images.ids.tolist()], dtype=np.int64)
    image = to_known[found.image] if len(found) else np.zeros(0, dtype=np.int64)
    strange = image < 0
    if strange.any() and (unknown == "error" or strange.all()):
        first = found.images.ids.tolist()[int(found.image[int(strange.argmax())])]
        raise InvalidShapes(
            f"{path}: {int(strange.sum()):,} of {len(found):,} detections are in images that the annotations do not "
            f"have (the first is {quoted(first)}); these begin with {preview(images.ids.tolist(), most=3)}: check that "
            "both are of the same images"
        )
    if strange.any():
        warnings.warn(
            DataWarning(
                f"{path}: {int(strange.sum()):,} of {len(found):,} detections are in images that the annotations do "
                "not have, and were left out"
            ),
            stacklevel=3,
        )
    kept = found.select(~strange)
    return replace(kept, images=images, image=image[~strange].astype(np.int32))


def with_seen(shapes: Shapes, rows: Iterable[tuple[Any, Any]]) -> Shapes:
    """The same shapes, where it is known who looked at which image."""
    people = {name: k for k, name in enumerate(shapes.sources)}
    images = names_of_images(shapes.images)
    pairs = [(str(who), str(where)) for who, where in rows]
    _refuse_ambiguous((where for _, where in pairs), shapes.images, "seen")
    strange = [who for who, _ in pairs if who not in people] or [where for _, where in pairs if where not in images]
    if strange:
        known = preview(list(people) if strange[0] not in images else list(images), most=5)
        raise InvalidShapes(
            f"seen must name annotators and images that there are, got {len(strange):,} rows with others (the first is "
            f"{quoted(strange[0])}); there are {known}"
        )
    seen = np.zeros((len(people), shapes.images.n), dtype=bool)
    for who, where in pairs:
        seen[people[who], images[where]] = True
    unseen = ~seen[shapes.source, shapes.image]
    if unseen.any():
        raise InvalidShapes(
            f"seen must hold every image in which somebody drew, got {int(unseen.sum()):,} shapes in images that their "
            f"annotator did not see (the first is of {quoted(shapes.sources[shapes.source[int(unseen.argmax())]])})"
        )
    return replace(shapes, seen=seen)


def read_seen(path: File, shapes: Shapes, *, image: str = "image") -> Shapes:
    """Who looked at which image, from a table with the columns labeler (or annotator) and image; see `with_seen`."""
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
    if len(set(images)) < len(images):
        raise InvalidFile(
            f"{path} must have one row for each image, got {len(images) - len(set(images)):,} more; mend the table"
        )
    try:
        rows = np.array([table["width"], table["height"]], dtype=float).T
    except (TypeError, ValueError):
        rows = np.full((1, 2), np.nan)
    if not (np.isfinite(rows).all() and (rows > 0).all()):
        raise InvalidFile(f"{path}: width and height must be numbers above 0 in every row; mend the table")
    return {name: (float(w), float(h)) for name, (w, h) in zip(images, rows, strict=True)}


def images_of_sizes(sizes: Mapping[Any, tuple[float, float]]) -> Images:
    """All images that a table of sizes has."""
    names = sorted_names(sizes)
    table: Floats = np.array([sizes[name] for name in names.tolist()], dtype=float).reshape(-1, 2)
    return Images(names, table)


def _named(categories: Sequence[str] | None) -> Sequence[str]:
    if not categories:
        raise InvalidParameter("YOLO's texts number the classes, got no names; name them in order (⟨categories⟩)")
    return categories


def _unless_seen(shapes: Shapes, seen: str | None) -> Shapes:
    return shapes if seen == "all" else replace(shapes, seen=None)
