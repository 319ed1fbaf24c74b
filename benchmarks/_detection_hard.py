"""COCO's numbers where the truth is certain: trueup's against those of COCO's program."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from benchmarks._coverage_tally import Section, as_text
from benchmarks._detection_data import COCO_SETS, YOLACT_SYSTEMS, coco_set, lvis_teams, yolact_boxes
from trueup.detection import Shapes, coco_scores
from trueup.detection.shapes import align, boxes_of_masks, mask_areas, read_mask

__all__ = ["hard", "reference_scores"]


def reference_scores(truth: Any, results: Any, kind: str) -> list[float]:
    """The twelve numbers of COCO's program."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats]


def as_coco(found: Shapes, objects: Shapes) -> tuple[Any, Any]:
    """Boxes as the two things that COCO's program reads."""
    found, objects = align(found, objects)
    truth = {
        "images": [{"id": k + 1} for k in range(objects.images.n)],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(objects.categories)],
        "annotations": [
            {
                "id": k + 1,
                "image_id": int(objects.image[k]) + 1,
                "category_id": int(objects.category[k]) + 1,
                "bbox": objects.boxes[k].tolist(),
                "area": float(objects.areas[k]),
                "iscrowd": int(objects.is_crowd[k]),
            }
            for k in range(len(objects))
        ],
    }
    assert found.scores is not None
    results = [
        {
            "image_id": int(found.image[k]) + 1,
            "category_id": int(found.category[k]) + 1,
            "bbox": found.boxes[k].tolist(),
            "score": float(found.scores[k]),
        }
        for k in range(len(found))
    ]
    return truth, results


def _lvis() -> tuple[Shapes, Shapes, Any, Any]:
    """One team as the truth, the other as a detector that is always sure."""
    teams, file = lvis_teams()
    first, second = teams.sources[:2]
    rows = {name: [row for row in file["annotations"] if row["rater_id"] == name] for name in (first, second)}
    truth = {**file, "annotations": [{**row, "id": k + 1} for k, row in enumerate(rows[first])]}
    sizes = {row["id"]: (row["height"], row["width"]) for row in file["images"]}
    results = []
    for row in rows[second]:
        packed = read_mask(row["segmentation"], *sizes[row["image_id"]])
        mask = {**packed, "counts": packed["counts"].decode()}
        results.append(
            {"image_id": row["image_id"], "category_id": row["category_id"], "segmentation": mask, "score": 1.0}
        )
    return teams.of_source(second), teams.of_source(first), truth, results


def hard(quick: bool) -> Section:
    """The largest difference of the twelve numbers, for each set."""
    lines, numbers = [], {}

    def compare(name: str, found: Shapes, objects: Shapes, truth: Any, results: Any, kind: str) -> None:
        ours = coco_scores(found, objects)
        values = np.nan_to_num(np.array(list(ours.summary().values())), nan=-1.0)
        gap = float(np.abs(values - np.array(reference_scores(truth, results, kind))).max())
        lines.append([name, f"{ours.ap():.4f}", f"{ours.ap(iou=0.5):.4f}", f"{gap:.1e}"])
        numbers[name] = {"ap": ours.ap(), "gap": gap}

    for name in COCO_SETS:
        compare(name, *coco_set(name))
    if not quick:
        found, objects, truth, results = _lvis()
        assert found.masks is not None
        # Results without boxes have those of their masks, and their areas.
        found = replace(
            found, scores=np.ones(len(found)), boxes=boxes_of_masks(found.masks), areas=mask_areas(found.masks)
        )
        compare("det-lvis-double, masks", found, objects, truth, results, "segm")
        every, boxes = yolact_boxes()
        for system in YOLACT_SYSTEMS:
            one = every.of_source(system)
            compare(f"det-yolact {system}, boxes", one, boxes, *as_coco(one, boxes), "bbox")
    head = ["set", "AP", "AP50", "largest gap of 12 numbers"]
    return Section(
        f"Against pycocotools, all ranges of areas (asked: 1e-6)\n\n{as_text(head, lines, left=(0,))}", numbers
    )
