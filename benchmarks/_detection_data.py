"""The open sets of detections, as shapes."""

from __future__ import annotations

import csv
import gzip
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._data import data_folder
from trueup.detection import Images, Shapes, boxes_from_arrays, read_coco, read_results
from trueup.exceptions import DataWarning

COCO_SETS = {
    "coco-val2014-100, masks": ("coco-val2014-100", "dt_segm", "segm"),
    "coco-val2014-100, boxes": ("coco-val2014-100", "dt_bbox", "bbox"),
    "seg-traffic51 a, masks": ("seg-traffic51", "dt_segm_maskrcnn_a", "segm"),
    "seg-traffic51 b, masks": ("seg-traffic51", "dt_segm_maskrcnn_b", "segm"),
}
YOLACT_SYSTEMS = ("yolact_base", "yolact_darknet53", "yolact_im700", "yolact_resnet50")
# What the boxes of the objects call classes, where it is not COCO's name.
_DARKNET = {
    "aeroplane": "airplane",
    "diningtable": "dining table",
    "motorbike": "motorcycle",
    "tvmonitor": "tv",
    "pottedplant": "potted plant",
    "sofa": "couch",
}


def read_json(path: Path) -> Any:
    """A packed file."""
    return json.loads(gzip.decompress(path.read_bytes()))


def coco_set(name: str) -> tuple[Shapes, Shapes, Any, Any, str]:
    """Objects and detections of a set, the two files themselves, and what COCO's program compares."""
    folder, results, kind = COCO_SETS[name]
    where = data_folder() / folder
    objects = read_coco(where / "gt_instances.json.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # one set has detections of classes that its objects lack
        found = read_results(where / f"{results}.json.gz", objects, unknown="drop")
    if kind == "bbox":
        objects = objects.boxes_only()
    return found, objects, read_json(where / "gt_instances.json.gz"), read_json(where / f"{results}.json.gz"), kind


def lvis_teams() -> tuple[Shapes, Any]:
    """Masks of two teams of annotators, and the file itself."""
    file = data_folder() / "det-lvis-double" / "lvis_v1.0_val_doubly_annos_subset200.json.gz"
    return read_coco(file, labeler="rater_id"), read_json(file)


def yolact_boxes() -> tuple[Shapes, Shapes]:
    """Detections of four systems on the same 100 images, and the boxes of the objects there."""
    where = data_folder()
    sizes, rows = _coco_boxes()
    found: list[tuple[str, int, dict[str, Any]]] = []
    for name in YOLACT_SYSTEMS:
        for image in read_json(where / "det-yolact" / f"{name}.json.gz")["images"]:
            found += [(name, int(image["image_id"]), detection) for detection in image["dets"]]
    ids = sorted({image for _, image, _ in found})
    images = Images(np.array(ids), np.array([sizes[k] for k in ids]))
    rows = [row for row in rows if int(row["image_id"]) in set(ids)]
    classes = [_DARKNET.get(row["category"], row["category"].replace("-", " ")) for row in rows]
    categories = sorted({*classes, *(detection["category"] for _, _, detection in found)})
    image = [int(row["image_id"]) for row in rows]
    objects = _boxes_of(rows, image, images, category=classes, categories=categories, name="objects")
    detections = boxes_from_arrays(
        image=[image for _, image, _ in found],
        boxes=[detection["bbox"] for _, _, detection in found],
        category=[detection["category"] for _, _, detection in found],
        source=[name for name, _, _ in found],
        scores=[detection["score"] for _, _, detection in found],
        images=images,
        categories=categories,
        name="detections",
    )
    return detections, objects


def all_coco_boxes() -> Shapes:
    """All boxes of the 5,000 images of COCO's validation set."""
    sizes, rows = _coco_boxes()
    rows = [row for row in rows if _has_area(row)]
    ids = np.array(sorted(sizes))
    images = Images(ids, np.array([sizes[k] for k in ids.tolist()]))
    image = [int(row["image_id"]) for row in rows]
    return _boxes_of(rows, image, images, category=[row["category"] for row in rows], name="objects")


def _coco_boxes() -> tuple[dict[int, tuple[float, float]], list[dict[str, str]]]:
    """Sizes of the images of COCO's validation set, and all its boxes."""
    where = data_folder() / "det-coco-val2017-boxes"
    sizes = {int(row["image_id"]): _size(row) for row in _rows(where / "images.csv.gz")}
    return sizes, _rows(where / "ground_truth_boxes.csv.gz")


def _boxes_of(rows: Sequence[Mapping[str, str]], image: Sequence[Any], images: Images, **more: Any) -> Shapes:
    return boxes_from_arrays(image=image, boxes=[_corners(row) for row in rows], images=images, **more)


def _size(row: Mapping[str, str]) -> tuple[float, float]:
    return float(row["width"]), float(row["height"])


@dataclass(frozen=True)
class Experts:
    """Boxes of cells by ten pathologists in the images that all of them saw, with a reference."""

    drawn: Shapes
    reference: Shapes


def expert_tasks(round_number: int = 1) -> dict[str, Experts]:
    """The two tasks of one round. Classes of cells are left aside: what is asked is where cells are."""
    rows = [row for row in _rows(data_folder() / "det-marzahl" / "annotations.csv.gz") if row["flag"] != "True"]
    rows = [row for row in rows if _has_area(row)]
    certain = [row for row in rows if row["annotator"] == "GT:ground truth"]  # listed with the first round
    rows = [row for row in rows if int(row["round"]) == round_number]
    tasks = {}
    for task in sorted({row["task"] for row in rows}):
        own = [row for row in rows if row["task"] == task]
        people = sorted({row["annotator"] for row in own if not row["annotator"].startswith("GT")})
        by_all = set.intersection(*({row["image"] for row in own if row["annotator"] == name} for name in people))
        reference = [row for row in certain if row["task"] == task]
        by_all &= {row["image"] for row in reference}
        sizes = {row["image"]: _size(row) for row in own}
        ids = np.array(sorted(by_all), dtype=object)
        images = Images(ids, np.array([sizes[name] for name in ids]))
        drawn = [row for row in own if row["annotator"] in people and row["image"] in by_all]
        sure = [row for row in reference if row["image"] in by_all]
        seen = np.ones((len(people), images.n), dtype=bool)
        experts = [row["annotator"] for row in drawn]
        tasks[task] = Experts(
            _boxes_of(drawn, [row["image"] for row in drawn], images, source=experts, seen=seen),
            _boxes_of(sure, [row["image"] for row in sure], images, name="reference"),
        )
    return tasks


def _rows(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _corners(row: Mapping[str, str]) -> list[float]:
    x1, y1, x2, y2 = (float(row[name]) for name in ("x1", "y1", "x2", "y2"))
    return [x1, y1, x2 - x1, y2 - y1]


def _has_area(row: Mapping[str, str]) -> bool:
    box = _corners(row)
    return box[2] > 0 and box[3] > 0
