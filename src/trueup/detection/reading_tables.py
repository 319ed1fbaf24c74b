"""Boxes from tables, from YOLO's texts and from Pascal VOC's XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator
from trueup.data.encoding import is_null
from trueup.data.files import Format, Source
from trueup.data.reading import read_named_rows
from trueup.detection.shapes import Images, Shapes, images_of_sizes, join_shapes
from trueup.exceptions import InvalidFile, InvalidShapes

_MOST_KINDS = 4


class Problems:
    """Problems of the rows of one file."""

    def __init__(self, file: str, n: int, rows: str) -> None:
        self.file, self.n, self.rows = file, n, rows
        self._positions: dict[str, list[int]] = {}

    def refuse_one(self, position: int, problem: str) -> None:
        """A row with a problem."""
        self._positions.setdefault(problem, []).append(position)

    def refuse(self, is_wrong: npt.ArrayLike, problem: str) -> None:
        """Rows with a problem."""
        for position in np.flatnonzero(np.asarray(is_wrong)).tolist():
            self.refuse_one(position, problem)

    def refuse_boxes(self, boxes: Floats, sizes: Floats) -> None:
        """Boxes that are no numbers, have no size, or lie wholly outside their image; many reach over its edge."""
        is_number = np.isfinite(boxes).all(axis=1)
        flat = is_number & (boxes[:, 2:] <= 0).any(axis=1)
        with np.errstate(invalid="ignore"):
            ends = boxes[:, :2] + boxes[:, 2:]
            outside = (ends <= 0).any(axis=1) | (boxes[:, :2] >= sizes).any(axis=1)
        self.refuse(~is_number, "a box with numbers missing")
        self.refuse(flat, "a box without width or height")
        self.refuse(is_number & ~flat & outside, "a box outside its image")

    def refuse_scores(self, scores: Floats) -> None:
        """Scores that are missing or are no probabilities."""
        self.refuse(np.isnan(scores), "no score")
        with np.errstate(invalid="ignore"):
            self.refuse((scores < 0) | (scores > 1), "a score outside 0 to 1")

    def raise_if_any(self) -> None:
        """One sentence on all of them."""
        if not self._positions:
            return
        kinds = sorted(self._positions.items(), key=lambda pair: -len(pair[1]))
        parts = [
            f"{len(at):,} with {problem} (the first is number {at[0] + 1:,})" for problem, at in kinds[:_MOST_KINDS]
        ]
        n_more = len(kinds) - _MOST_KINDS
        rest = f" and {n_more} more kinds of problems" if n_more > 0 else ""
        raise InvalidShapes(
            f"{self.file}: of {self.n:,} {self.rows} there are {'; '.join(parts)}{rest}; mend or remove them: "
            "nothing is dropped silently"
        )


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
    image : sequence of length n. The name of the image of each box.
    boxes : array of shape (n, 4). Left edge, top edge, width, height.
    category, source : sequences of length n, optional. Classes and annotators (or systems); by default all are one.
    scores : array of shape (n,), optional. From 0 to 1, for systems.
    images : sequence of names, or Images, optional. All images, also those in which nothing is.
    categories : sequence, optional. All classes in their order.
    seen : boolean array of shape (n_sources, n_images), optional
        Which annotator looked at which image, in the order of the sorted sources and images.
    name : str. The source where none is given.
    file : str, optional. The name of the boxes in errors; by default `name`.
    """
    table = np.asarray(boxes, dtype=float).reshape(-1, 4)
    n = len(table)
    sides = {"image": image, "category": category, "source": source, "scores": scores}
    for what, values in sides.items():
        if values is not None and len(values) != n:  # type: ignore[arg-type]
            raise InvalidShapes(f"{what} must be one for each of {n} boxes, got {len(values)}")  # type: ignore[arg-type]
    image_names = [_plain(value) for value in image]
    all_images = images if isinstance(images, Images) else images_named([*(images or ()), *image_names])
    classes = [str(value) for value in (["object"] * n if category is None else category)]
    all_classes = tuple(sorted(set(classes) or {"object"})) if categories is None else tuple(map(str, categories))
    people = [str(value) for value in ([name] * n if source is None else source)]
    sources = tuple(sorted(set(people) or {name}))
    problems = Problems(name if file is None else file, n, "boxes")
    image_codes = codes_of(image_names, all_images.position())
    codes = codes_of(classes, {value: k for k, value in enumerate(all_classes)})
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


def codes_of(values: Iterable[Any], position: Mapping[Any, int]) -> Codes:
    """The position of each value, -1 where it has none."""
    return np.array([position.get(value, -1) for value in values], dtype=np.int32)


def images_named(names: Iterable[Any]) -> Images:
    """Images of which nothing but the names is known."""
    return images_of_sizes({_plain(name): (np.nan, np.nan) for name in names})


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


_SIZES = (("x", "y", "w", "h"), ("x", "y", "width", "height"))
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
Folders = str | PathLike[str] | Mapping[str, str | PathLike[str]]


def read_boxes(
    path: Source,
    *,
    image: str = "image",
    source: str | None = None,
    category: str | None = None,
    score: str = "score",
    images: Images | Sequence[Any] | None = None,
    seen: str | None = "all",
    name: str = "boxes",
    file_format: Format | None = None,
) -> Shapes:
    """Boxes from a table with a row for each.

    Parameters
    ----------
    path : path, "-" or file-like
        csv, tsv, jsonl or parquet, with columns x, y, w, h (or width, height), or x1, y1, x2, y2 (or xmin, …).
    image : str. The column that names the image.
    source : str, optional
        The column of the annotator or system; by default "labeler", "annotator" or "system" where there is one.
    category : str, optional. The column of the class; by default "category", "class" or "label" where there is one.
    score : str. The column of scores; without it these are annotations.
    images : Images or sequence of names, optional. All images, also those in which nothing was drawn.
    seen : {"all", None}. Of annotations: whether everybody looked at all images, or nobody knows who looked at which.
    name : str. The annotator or system where no column names them.
    file_format : {"csv", "tsv", "jsonl", "parquet"}, optional

    Examples
    --------
    >>> import io
    >>> read_boxes(io.StringIO("image,labeler,x,y,w,h" + chr(10) + "a.png,ann,0,0,5,5")).sources
    ('ann',)
    """
    image_of_row, table = read_named_rows(path, image, role="image", file_format=file_format)
    boxes = _box_columns(table, str(path))
    people = _column(table, source, ("labeler", "annotator", "system"))
    classes = _column(table, category, ("category", "class", "label"))
    scores = table.get(score)
    problems = Problems(str(path), len(boxes), "boxes")
    for what, column in (("image", image_of_row), ("class", classes), ("annotator or system", people)):
        problems.refuse([is_null(value) for value in column or ()], f"no {what}")
    problems.raise_if_any()
    n_sources = len({str(name) for name in people or ()}) or 1
    known = images if isinstance(images, Images) else images_named([*(images or ()), *image_of_row])
    return boxes_from_arrays(
        image=image_of_row,
        boxes=boxes,
        category=classes,
        source=people,
        scores=None if scores is None else _numbers(scores, f"{path}: the column {score}"),
        images=known,
        seen=np.ones((n_sources, known.n), dtype=bool) if scores is None and seen == "all" else None,
        name=name,
        file=str(path),
    )


def _column(table: Mapping[str, list[Any]], name: str | None, usual: Sequence[str]) -> list[Any] | None:
    if name is not None:
        if name not in table:
            raise InvalidFile(f"there is no column {name!r}; there are {', '.join(table)}")
        return table[name]
    return next((table[one] for one in usual if one in table), None)


def _box_columns(table: Mapping[str, list[Any]], who: str) -> Floats:
    for names in (*_SIZES, *_CORNERS):
        if all(name in table for name in names):
            values = np.array([_numbers(table[name], f"{who}: the column {name}") for name in names]).T.reshape(-1, 4)
            if names in _CORNERS:
                values[:, 2:] -= values[:, :2]
            return values
    raise InvalidFile(f"{who} has no columns of boxes, got {', '.join(table)}; call them x, y, w, h or x1, y1, x2, y2")


def _numbers(values: Sequence[Any], what: str) -> Floats:
    """A column of numbers, nan where there is none; text is refused with its row."""
    numbers, wrong = np.full(len(values), np.nan), []
    for k, value in enumerate(values):
        try:
            numbers[k] = np.nan if is_null(value) else value
        except (TypeError, ValueError):
            wrong.append(k)
    if wrong:
        raise InvalidFile(
            f"{what} must be numbers, got {len(wrong):,} of {len(values):,} rows without (the first is "
            f"`row {wrong[0]}` with {values[wrong[0]]!r}); mend the table"
        )
    return numbers


def read_yolo(
    folders: Folders, *, categories: Sequence[str], sizes: Mapping[str, tuple[float, float]] | None = None
) -> Shapes:
    """Boxes from YOLO's texts: a file for each image, a line ``class x y width height [score]`` for each box.

    Parameters
    ----------
    folders : path, or mapping from annotators or systems to paths
        Folders of .txt files named as the images. An image without boxes has an empty file.
    categories : sequence of str. The names of the classes 0, 1, …
    sizes : mapping from images to (width, height), optional
        In pixels. Without it images are 1 × 1, which leaves overlaps as they are, and areas without meaning.
    """
    parts = []
    for name, folder, files in _files_in(folders, ".txt"):
        rows = [(file.stem, row) for file in files for row in _yolo_rows(file, len(categories))]
        n_values = {len(values) for _, values in rows}
        if len(n_values) > 1:
            raise InvalidFile(f"{folder}: some lines have a score and others not; give all or none")
        missing = [] if sizes is None else [file.stem for file in files if file.stem not in sizes]
        if missing:
            raise InvalidFile(f"sizes must have all images of {folder}, got none for {missing[0]!r}")
        whole = {file.stem: (1.0, 1.0) if sizes is None else sizes[file.stem] for file in files}
        boxes = np.array([values[1:5] for _, values in rows]).reshape(-1, 4)
        scale = np.array([whole[image] for image, _ in rows]).reshape(-1, 2)
        boxes[:, :2] -= boxes[:, 2:] / 2
        has_scores = n_values == {6}
        parts.append(
            boxes_from_arrays(
                image=[image for image, _ in rows],
                boxes=boxes * np.tile(scale, 2),
                category=[categories[int(values[0])] for _, values in rows],
                scores=[values[5] for _, values in rows] if has_scores else None,
                images=images_of_sizes(whole),
                categories=categories,
                seen=None if has_scores else np.ones((1, len(files)), dtype=bool),
                name=name,
                file=str(folder),
            )
        )
    return join_shapes(parts)


def _files_in(folders: Folders, suffix: str) -> Iterator[tuple[str, Path, list[Path]]]:
    """Each annotator or system, their folder and the files in it."""
    named = folders if isinstance(folders, Mapping) else {Path(folders).name: folders}
    for name, folder in named.items():
        files = sorted(Path(folder).glob(f"*{suffix}"))
        if not files:
            raise InvalidFile(f"{Path(folder)} has no {suffix} files; pass a folder with one for each image")
        yield str(name), Path(folder), files


def _yolo_rows(file: Path, n_classes: int) -> Iterator[list[float]]:
    """The numbers of each line of a text: class, box, and perhaps a score."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{file} is no text of YOLO: {error!s:.100}; mend or remove it") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values = [float(word) for word in line.split()]
        except ValueError:
            values = []
        if len(values) not in (5, 6) or not values[0].is_integer() or not 0 <= values[0] < n_classes:
            raise InvalidFile(
                f"{file.name}, line {number}, must be a class below {n_classes}, four numbers and perhaps a score, got "
                f"{line[:60]!r}"
            )
        yield values


def read_voc(folders: Folders) -> Shapes:
    """Boxes from Pascal VOC's XML: a file for each image.

    Parameters
    ----------
    folders : path, or mapping from annotators to paths. Folders of .xml files.
    """
    parts = []
    for name, folder, files in _files_in(folders, ".xml"):
        sizes: dict[str, tuple[float, float]] = {}
        image, category, boxes = [], [], []
        for file in files:
            try:
                root = ElementTree.fromstring(file.read_bytes())
                width, height = (float(root.findtext(f"size/{side}") or "nan") for side in ("width", "height"))
                for thing in root.iter("object"):
                    corners = [float(thing.findtext(f"bndbox/{side}") or "nan") for side in _CORNERS[1]]
                    boxes.append([*corners[:2], corners[2] - corners[0], corners[3] - corners[1]])
                    category.append((thing.findtext("name") or "").strip())
                    image.append(file.stem)
            except (ElementTree.ParseError, ValueError, OSError, LookupError) as error:
                raise InvalidFile(f"{file.name} is no annotation of Pascal VOC: {error}; mend or remove it") from None
            sizes[file.stem] = width, height
        problems = Problems(str(folder), len(boxes), "boxes")
        problems.refuse([not kind for kind in category], "no class")
        problems.raise_if_any()
        table, seen = np.array(boxes).reshape(-1, 4), np.ones((1, len(files)), dtype=bool)
        given: dict[str, Any] = {"image": image, "boxes": table, "category": category, "seen": seen}
        parts.append(boxes_from_arrays(images=images_of_sizes(sizes), name=name, file=str(folder), **given))
    return join_shapes(parts)


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
    found, scores = [], []
    for k in range(n_systems):
        chosen = _draw_boxes(boxes, is_object, hardness, miss * (1 + 0.5 * k), invent, rng)
        found.append(chosen)
        scores.append(1 / (1 + np.exp(-(2.0 * is_object[chosen] - hardness[chosen] + rng.normal(size=len(chosen))))))
    every = np.concatenate(found)
    detections = boxes_from_arrays(
        image=image[every],
        boxes=_blurred(boxes[every], 2 * blur, rng),
        source=np.repeat([f"system {k + 1}" for k in range(n_systems)], [len(chosen) for chosen in found]),
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
    moved = boxes + rng.normal(scale=blur, size=boxes.shape) * np.tile(boxes[:, 2:], 2)
    moved[:, 2:] = np.maximum(moved[:, 2:], 2.0)
    return moved
