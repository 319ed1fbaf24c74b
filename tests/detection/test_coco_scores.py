"""COCO's numbers where the truth is certain, against COCO's own program."""

import contextlib
import gzip
import io
import json

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from trueup.detection import coco_scores, read_coco, read_results
from trueup.detection.shapes import read_mask


def reference(truth: dict, results: list, kind: str) -> np.ndarray:
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


def made_up(seed: int, *, masks: bool = False) -> tuple[dict, list]:
    """Images with objects of three classes, some in crowds, and detections near them, with equal scores among them."""
    rng = np.random.default_rng(seed)
    annotations, results = [], []
    for image in range(1, 25):
        for _ in range(rng.integers(0, 8)):
            box = [*rng.uniform(0, 150, size=2), *rng.choice([8.0, 40.0, 150.0], size=2) * rng.uniform(0.5, 1.2)]
            kind = int(rng.integers(1, 4))
            number = len(annotations) + 1
            crowd = int(rng.random() < 0.1)
            row = {"id": number, "image_id": image, "category_id": kind, "bbox": box, "iscrowd": crowd}
            annotations.append({**row, "area": box[2] * box[3]})
            for _ in range(rng.integers(0, 4)):
                near = np.array(box) + rng.normal(scale=0.08, size=4) * np.array([box[2], box[3]] * 2)
                near[2:] = np.maximum(near[2:], 2.0)
                near[:2] = np.maximum(near[:2], 0.0)
                other = int(rng.integers(1, 4)) if rng.random() < 0.1 else kind
                score = float(np.round(rng.random(), 1))
                results.append({"image_id": image, "category_id": other, "bbox": near.tolist(), "score": score})
    if masks:
        for row in [*annotations, *results]:
            x, y, w, h = row["bbox"]
            packed = read_mask([[x, y, x, y + h, x + w, y + h, x + w, y]], 400, 400)
            row["segmentation"] = {**packed, "counts": packed["counts"].decode()}
    truth = {
        "images": [{"id": image, "width": 400, "height": 400} for image in range(1, 25)],
        "categories": [{"id": k, "name": f"class {k}"} for k in range(1, 4)],
        "annotations": annotations,
    }
    return truth, results


def scores_of(truth: dict, results: list, folder) -> np.ndarray:
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json.gz").write_bytes(gzip.compress(json.dumps(results).encode()))
    objects = read_coco(folder / "truth.json")
    found = read_results(folder / "results.json.gz", objects)
    return np.nan_to_num(np.array(list(coco_scores(found, objects).summary().values())), nan=-1.0)


@pytest.mark.parametrize("seed", range(6))
def test_boxes_have_the_numbers_of_cocos_program(seed, tmp_path):
    truth, results = made_up(seed)
    np.testing.assert_allclose(scores_of(truth, results, tmp_path), reference(truth, results, "bbox"), atol=1e-12)


def test_masks_have_the_numbers_of_cocos_program(tmp_path):
    truth, results = made_up(7, masks=True)
    np.testing.assert_allclose(scores_of(truth, results, tmp_path), reference(truth, results, "segm"), atol=1e-12)


def test_more_than_a_hundred_detections_of_an_image_and_class(tmp_path):
    truth, results = made_up(8)
    rng = np.random.default_rng(0)
    results += [
        {**results[0], "bbox": [*rng.uniform(0, 200, 2), 30.0, 30.0], "score": rng.random()} for _ in range(150)
    ]
    np.testing.assert_allclose(scores_of(truth, results, tmp_path), reference(truth, results, "bbox"), atol=1e-12)


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "results", "kind"),
    [
        ("coco-val2014-100", "dt_segm", "segm"),
        ("coco-val2014-100", "dt_bbox", "bbox"),
        ("seg-traffic51", "dt_segm_maskrcnn_a", "segm"),
        ("seg-traffic51", "dt_segm_maskrcnn_b", "segm"),
    ],
)
@pytest.mark.filterwarnings("ignore::trueup.exceptions.DataWarning")
def test_real_sets_have_the_numbers_of_cocos_program(folder, results, kind, data_folder):
    where = data_folder / folder
    truth = json.loads(gzip.decompress((where / "gt_instances.json.gz").read_bytes()))
    rows = json.loads(gzip.decompress((where / f"{results}.json.gz").read_bytes()))
    objects = read_coco(where / "gt_instances.json.gz")
    found = read_results(where / f"{results}.json.gz", objects, unknown="drop")
    ours = np.nan_to_num(np.array(list(coco_scores(found, objects).summary().values())), nan=-1.0)
    np.testing.assert_allclose(ours, reference(truth, rows, kind), atol=1e-6)
