"""Boxes or masks that annotators drew, or systems found, in images."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.optional import require
from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.wording import some
from trueup.exceptions import InvalidParameter, InvalidShapes

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
        return {"size": list(size), "counts": counts.encode("ascii") if isinstance(counts, str) else counts}
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
    """The run lengths of COCO's compressed text: five bits a character, and differences to the last but one."""
    packed = counts.encode("utf-8") if isinstance(counts, str) else counts
    codes = np.frombuffer(packed, dtype=np.uint8).astype(np.int64) - 48
    goes_on = (codes & 0x20) > 0
    ends = np.flatnonzero(~goes_on)
    starts = np.append(0, ends[:-1] + 1)
    n_digits = ends - starts[: len(ends)] + 1
    is_text = len(codes) and not goes_on[-1] and codes.min() >= 0 and codes.max() <= 63
    if not is_text or n_digits.max() > _MOST_DIGITS:
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


def box_overlaps(first: Floats, second: Floats, is_crowd: Booleans | None = None) -> Floats:
    """Intersection over union of all pairs of boxes as COCO defines it, shape (n_first, n_second)."""
    crowd = np.zeros(len(second), dtype=bool) if is_crowd is None else is_crowd
    return paired_box_overlaps(first[:, None], second[None], crowd[None])


def paired_box_overlaps(first: Floats, second: Floats, is_crowd: Booleans) -> Floats:
    """Intersection over union of each box with the one beside it; arrays of shape (..., 4) and (...)."""
    low = np.maximum(first[..., :2], second[..., :2])
    high = np.minimum(first[..., :2] + first[..., 2:], second[..., :2] + second[..., 2:])
    common = np.maximum(high - low, 0.0).prod(axis=-1)
    own, other = first[..., 2] * first[..., 3], second[..., 2] * second[..., 3]
    union = np.where(is_crowd, own, own + other - common)
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


def mask_overlaps(first: Sequence[Mask], second: Sequence[Mask], is_crowd: Booleans | None = None) -> Floats:
    """Intersection over union of all pairs of masks, shape (n_first, n_second)."""
    if not len(first) or not len(second):
        return np.zeros((len(first), len(second)))
    coco = require("pycocotools.mask", purpose="the overlap of masks")
    crowd = [0] * len(second) if is_crowd is None else is_crowd.astype(int).tolist()
    return np.asarray(coco.iou(list(first), list(second), crowd), dtype=float).reshape(len(first), len(second))


def contains_centre(first: Floats, second: Floats) -> Booleans:
    """Whether the centre of one box lies in the other, both ways; shape (n_first, n_second)."""
    a, b = first[:, None], second[None]
    centre_a, centre_b = a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
    a_in_b = (centre_a >= b[..., :2]) & (centre_a <= b[..., :2] + b[..., 2:])
    b_in_a = (centre_b >= a[..., :2]) & (centre_b <= a[..., :2] + a[..., 2:])
    return np.asarray(a_in_b.all(axis=-1) & b_in_a.all(axis=-1))


def overlaps_between(first: Shapes, second: Shapes, *, by_centre: bool = False) -> Floats:
    """Overlaps of all pairs, of masks where both have them, shape (n_first, n_second)."""
    if first.masks is None or second.masks is None:
        overlaps = box_overlaps(first.boxes, second.boxes, second.is_crowd)
    else:
        overlaps = mask_overlaps(first.masks, second.masks, second.is_crowd)
    if by_centre:  # the overlap still decides between several such shapes
        near = contains_centre(first.boxes, second.boxes)
        overlaps = np.where(near, np.maximum(overlaps, 1.0 - 1e-6 + 1e-7 * overlaps), overlaps)
    return overlaps


Mask = dict[str, Any]  # in COCO's compressed run lengths: ``{"size": [height, width], "counts": bytes}``


@dataclass(frozen=True, eq=False)
class Images:
    """The images that shapes lie in.

    Attributes
    ----------
    ids : array of shape (n_images,). Their names or numbers, each once.
    sizes : array of shape (n_images, 2). Width and height, nan where unknown.
    files : tuple of str. Of the pictures, "" where unknown.
    """

    ids: npt.NDArray[Any]
    sizes: Floats
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.files:
            object.__setattr__(self, "files", ("",) * len(self.ids))

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.ids)

    def position(self) -> dict[Any, int]:
        """Where each name is."""
        return {name: i for i, name in enumerate(self.ids.tolist())}


@dataclass(frozen=True, eq=False)
class Shapes:
    """Boxes, or boxes with masks, by several annotators or systems, in the same images.

    Attributes
    ----------
    categories : tuple of str. Names of the classes, in the order of their codes.
    sources : tuple of str. Names of the annotators or systems.
    image, category, source : integer arrays of shape (n,). Of each shape, as codes.
    boxes : array of shape (n, 4). Left edge, top edge, width, height, in pixels.
    areas : array of shape (n,). In square pixels, of the mask where there is one.
    scores : array of shape (n,) or None. How sure a system is; None for annotators.
    is_crowd : boolean array of shape (n,). Regions with many objects that are not separated.
    ids : array of shape (n,). What the file calls each shape.
    category_ids : array of shape (n_categories,). What the file calls each class.
    seen : boolean array of shape (n_sources, n_images) or None
        Which annotator looked at which image; what they did not draw there has their vote against it.
    """

    images: Images
    categories: tuple[str, ...]
    sources: tuple[str, ...]
    image: Codes = field(repr=False)
    category: Codes = field(repr=False)
    source: Codes = field(repr=False)
    boxes: Floats = field(repr=False)
    areas: Floats = field(repr=False)
    is_crowd: Booleans = field(repr=False)
    scores: Floats | None = field(default=None, repr=False)
    masks: tuple[Mask, ...] | None = field(default=None, repr=False)
    ids: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object), repr=False)
    category_ids: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object), repr=False)
    seen: Booleans | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        shapes = some(len(self), "box" if self.masks is None else "mask")
        by = some(len(self.sources), "annotator" if self.scores is None else "system")
        return f"Shapes({shapes} in {some(self.images.n, 'image')}, {some(len(self.categories), 'class')}, {by})"

    @property
    def shape_kind(self) -> str:
        """``"mask"`` where there are masks, else ``"box"``."""
        return "box" if self.masks is None else "mask"

    def select(self, chosen: npt.ArrayLike) -> Shapes:
        """Some of the shapes, by positions or as a boolean array; images, classes and sources stay as they are."""
        at = np.asarray(chosen)
        at = np.flatnonzero(at) if at.dtype == bool else at
        of_each = ("image", "category", "source", "boxes", "areas", "is_crowd")
        return replace(
            self,
            **{name: getattr(self, name)[at] for name in of_each},
            scores=None if self.scores is None else self.scores[at],
            masks=None if self.masks is None else tuple(self.masks[i] for i in at.tolist()),
            ids=self.ids[at] if len(self.ids) else self.ids,
        )

    def of_source(self, name: str) -> Shapes:
        """The shapes of one annotator or system, who is then the only one."""
        if name not in self.sources:
            raise InvalidParameter(f"there is no source {name!r}; there are {', '.join(self.sources)}")
        code = self.sources.index(name)
        part = self.select(self.source == code)
        seen = None if self.seen is None else self.seen[code : code + 1]
        return replace(part, sources=(name,), source=np.zeros(len(part), dtype=np.int32), seen=seen)

    def boxes_only(self) -> Shapes:
        """The same without masks; areas stay those of the masks, by which COCO calls objects small or large."""
        return replace(self, masks=None)


def join_shapes(parts: Sequence[Shapes]) -> Shapes:
    """Shapes of several files as one; images and classes are joined by their names."""
    if not parts:
        raise InvalidShapes("there is no file to read shapes from; name at least one")
    sources = [name for part in parts for name in part.sources]
    repeated = [name for k, name in enumerate(sources) if name in sources[:k]]
    if repeated:
        raise InvalidShapes(f"the source {repeated[0]!r} is there twice; give each file a name of its own")
    with_masks = [part.masks is not None for part in parts if len(part)]
    if any(with_masks) and not all(with_masks):
        raise InvalidShapes("some sources have masks and others boxes alone; compare all by boxes (`shape='box'`)")
    images = join_images([part.images for part in parts])
    categories = tuple(dict.fromkeys(name for part in parts for name in part.categories))
    ids = dict(pair for part in parts for pair in zip(part.categories, part.category_ids.tolist(), strict=False))
    recoded = [_recoded(part, images, categories) for part in parts]
    firsts = np.cumsum([0, *(len(part.sources) for part in parts[:-1])])

    def joined(name: str) -> Any:
        values = [getattr(part, name) for part in recoded]
        return None if any(value is None for value in values) else np.concatenate(values)

    of_each = ("image", "category", "boxes", "areas", "is_crowd", "scores", "ids", "seen")
    return Shapes(
        images=images,
        categories=categories,
        sources=tuple(sources),
        source=np.repeat(firsts, [len(part) for part in parts]).astype(np.int32) + joined("source"),
        masks=tuple(mask for part in parts for mask in part.masks or ()) if any(with_masks) else None,
        category_ids=np.array([ids.get(name, k + 1) for k, name in enumerate(categories)], dtype=object),
        **{name: joined(name) for name in of_each},
    )


def join_images(parts: Sequence[Images]) -> Images:
    """All images once; a size that two files give differently is refused."""
    first = parts[0]
    if all(
        part.files == first.files
        and np.array_equal(part.ids, first.ids)
        and np.array_equal(part.sizes, first.sizes, equal_nan=True)
        for part in parts
    ):
        return first
    sizes: dict[Any, Floats] = {}
    files: dict[Any, str] = {}
    for part in parts:
        for name, size, file in zip(part.ids.tolist(), part.sizes, part.files, strict=True):
            known = sizes.setdefault(name, size)
            if np.isnan(known).any():
                sizes[name] = size
            elif not np.isnan(size).any() and not np.array_equal(known, size):
                raise InvalidShapes(
                    f"image {name!r} is {known[0]:g} × {known[1]:g} in one file and {size[0]:g} × {size[1]:g} in "
                    "another; check that the files are of the same pictures"
                )
            files[name] = files.get(name) or file
    joined = images_of_sizes(sizes)
    return replace(joined, files=tuple(files[name] for name in joined.ids.tolist()))


def align(found: Shapes, objects: Shapes) -> tuple[Shapes, Shapes]:
    """Both with the images and classes of both, in one order, so that codes mean the same."""
    images = join_images([objects.images, found.images])
    categories = tuple(dict.fromkeys([*objects.categories, *found.categories]))
    return _recoded(found, images, categories), _recoded(objects, images, categories)


def _recoded(shapes: Shapes, images: Images, categories: tuple[str, ...]) -> Shapes:
    at_image = images.position()
    to_image = np.array([at_image[name] for name in shapes.images.ids.tolist()], dtype=np.int32)
    to_category = np.array([categories.index(name) for name in shapes.categories], dtype=np.int32)
    numbers = dict(zip(shapes.categories, shapes.category_ids.tolist(), strict=False))
    seen = None
    if shapes.seen is not None:
        seen = np.zeros((len(shapes.sources), images.n), dtype=bool)
        seen[:, to_image] = shapes.seen
    return replace(
        shapes,
        images=images,
        categories=categories,
        image=to_image[shapes.image] if len(shapes) else shapes.image,
        category=to_category[shapes.category] if len(shapes) else shapes.category,
        category_ids=np.array([numbers.get(name, k + 1) for k, name in enumerate(categories)], dtype=object),
        seen=seen,
    )


def group_by(*codes: Codes) -> tuple[Positions, Positions]:
    """Positions sorted by the codes, and where each group of equal codes begins (with the end of the last one)."""
    order = np.lexsort(codes[::-1]).astype(np.int64)
    if not len(order):
        return order, np.zeros(1, dtype=np.int64)
    is_new = np.any([np.diff(code[order].astype(np.int64)) != 0 for code in codes], axis=0)
    return order, np.concatenate([[0], np.flatnonzero(is_new) + 1, [len(order)]]).astype(np.int64)


def images_of_sizes(sizes: Mapping[Any, Sequence[float] | Floats]) -> Images:
    """Images by their names, with their widths and heights."""
    names = sorted_names(sizes)
    return Images(names, np.array([sizes[name] for name in names.tolist()], dtype=float).reshape(-1, 2))


def sorted_names(names: Iterable[Any]) -> npt.NDArray[Any]:
    """Names in an order that does not depend on the file: numbers as numbers, anything else as words."""
    values = list(names)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return np.array(sorted(values), dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = sorted(values, key=str)
    return array
