"""Detectors judged by noisy annotations: do the numbers agree with COCO's, and do the intervals hold?

Run ``python -m benchmarks.detection [section ...] [--quick] [--json out.json]``; without names all sections are run.
The sets are found through TRUEUP_DATA. Sections: hard (certain truth, against pycocotools), experts (each of ten
pathologists graded by the nine others, votes alone), vetted (the same with 60 vetted candidates and 20 searched tiles),
missed (the number of cells that all experts missed), speed (5,000 images; TRUEUP_PEERS names a Python that
has hotcoco and pycocotools).
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from scipy.optimize import linear_sum_assignment

from benchmarks._coverage_tally import LEVEL, as_text, say
from benchmarks._detection_data import (
    COCO_SETS,
    YOLACT_SYSTEMS,
    Experts,
    all_coco_boxes,
    coco_set,
    expert_tasks,
    lvis_teams,
    yolact_boxes,
)
from benchmarks._sections import run_sections
from benchmarks.peers import ask
from trueup._base.types import Booleans, Floats, Positions
from trueup.answers.evaluate import evaluate_again
from trueup.answers.evaluation import Evaluation
from trueup.detection import Pool, Shapes, coco_scores, evaluate, make_tiles, match, missed_objects
from trueup.detection.evaluating import candidates_of
from trueup.detection.metrics import DetectionMetrics
from trueup.detection.shapes import align, box_overlaps, boxes_of_masks, mask_areas, read_mask
from trueup.posteriors import Estimate

# ---- COCO's numbers where the truth is certain: trueup's against those of COCO's program


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
    assert found.scores is not None

    def rows(shapes: Shapes, **columns: Any) -> list[dict[str, Any]]:
        columns |= {"image_id": shapes.image + 1, "category_id": shapes.category + 1, "bbox": shapes.boxes}
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]

    truth = {
        "images": [{"id": k + 1} for k in range(objects.images.n)],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(objects.categories)],
        "annotations": rows(
            objects, id=1 + np.arange(len(objects)), area=objects.areas, iscrowd=objects.is_crowd.astype(int)
        ),
    }
    return truth, rows(found, score=found.scores)


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


def hard(quick: bool) -> str:
    """The largest difference of the twelve numbers, for each set."""
    lines = []

    def compare(name: str, found: Shapes, objects: Shapes, truth: Any, results: Any, kind: str) -> None:
        ours = coco_scores(found, objects)
        values = np.nan_to_num(np.array(list(ours.summary().values())), nan=-1.0)
        gap = float(np.abs(values - np.array(reference_scores(truth, results, kind))).max())
        lines.append([name, f"{ours.ap():.4f}", f"{ours.ap(iou=0.5):.4f}", f"{gap:.1e}"])

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
    return f"Against pycocotools, all ranges of areas (asked: 1e-6)\n\n{as_text(head, lines)}"


# ---- How long pairing and average precision take, beside COCO's program and hotcoco, and for many drawn truths


N_DETECTIONS, N_DRAWS, N_TURNS = 180_000, 1_000, 3


def detections_like(objects: Shapes, n: int, seed: int = 0) -> Shapes:
    """Detections near objects, some of them twice or of another class, and some where nothing is."""
    rng = np.random.default_rng(seed)
    at = rng.integers(len(objects), size=n)
    sides = np.tile(objects.boxes[at, 2:], 2)
    is_near = rng.random(n) < 0.6
    spread = np.where(is_near, 0.08, 1.5)[:, None]
    boxes = objects.boxes[at] + rng.normal(size=(n, 4)) * spread * sides
    boxes[:, :2] = np.maximum(boxes[:, :2], 0.0)
    boxes[:, 2:] = np.maximum(np.abs(boxes[:, 2:]), 2.0)
    other = rng.integers(len(objects.categories), size=n)
    scores = np.clip(rng.beta(2, 4, size=n) + 0.3 * is_near, 0, 1)
    category = np.where(rng.random(n) < 0.1, other, objects.category[at]).astype(np.int32)
    found = objects.select(at)
    nobody, no_crowd = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=bool)
    found = replace(found, sources=("detector",), source=nobody, is_crowd=no_crowd, seen=None)
    areas, ids = boxes[:, 2] * boxes[:, 3], np.arange(n).astype(object)
    return replace(found, category=category, boxes=boxes, areas=areas, scores=scores, ids=ids)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, so that other work on the machine does not count."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def speed(quick: bool) -> str:
    """One evaluation, and a thousand draws of the truth."""
    objects = all_coco_boxes()
    found = detections_like(objects, N_DETECTIONS // 20 if quick else N_DETECTIONS)
    coco_scores(found.select(np.arange(5_000)), objects)  # compiled code is loaded
    turns = [seconds(lambda: coco_scores(found, objects)) for _ in range(N_TURNS)]
    own, scores = min(taken for taken, _ in turns), turns[0][1]
    say(f"trueup {own:.2f} s")
    lines = [["trueup", f"{own:.2f}", "1.0", f"{scores.ap():.6f}"]]
    truth, results = (
        np.frombuffer(json.dumps(content).encode(), dtype=np.uint8) for content in as_coco(found, objects)
    )
    absent = ""
    for package, n_turns in (("hotcoco", N_TURNS), ("pycocotools", 1)):
        answer = ask(package, package, [{"truth": truth, "results": results, "turns": np.array(n_turns)}], limit=None)
        if answer.error:
            absent += f"\n{package}: {answer.error}"
            continue
        taken, ap = answer.arrays[0]
        lines.append([package, f"{taken:.2f}", f"{taken / own:.1f}", f"{ap:.6f}"])
    table = as_text(["package", "s", "times trueup's", "AP"], lines)
    text = (
        f"Boxes: {objects.images.n:,} images, {len(objects):,} objects, {len(found):,} detections, one thread, seconds "
        "of the processor; files are read before.\nAsked: at most 2 × hotcoco's time and a tenth of pycocotools'\n\n"
        f"{table}{absent}"
    )
    drawn, matched = _drawn(found, objects, 100 if quick else N_DRAWS)
    return text + (
        f"\n\n{100 if quick else N_DRAWS:,} draws of the truth, AP over ten overlaps: {drawn:.2f} s, {drawn / own:.1f} "
        f"× one evaluation (asked: at most 10); making the pool once: {matched:.1f} s"
    )


def _drawn(found: Shapes, objects: Shapes, n_draws: int) -> tuple[float, float]:
    """Seconds of average precision on drawn truths, and of matching."""
    matched, pool = seconds(lambda: match(found, replace(objects, seen=None)))
    say(f"match {matched:.1f} s, {len(pool):,} candidates")
    chance = np.where((pool.votes == 1).any(axis=0), 0.95, 0.05)
    real = np.random.default_rng(0).random((n_draws, len(pool)), dtype=np.float32) < chance
    metrics = DetectionMetrics(pool, np.arange(len(pool)))
    metrics.values("ap50", "detector", real[:20])  # compiled code is loaded
    taken, _ = seconds(lambda: metrics.values("ap", "detector", real))
    return taken, matched


# ---- Ten pathologists: each is graded as a detector from the boxes of the nine others, and held against a reference


IOU = 0.4  # of boxes of one cell
METRICS = ("precision", "recall", "ap50")
N_CANDIDATES, N_TILES, N_REPETITIONS = 60, 20, 20


@dataclass(frozen=True, eq=False)
class Case:
    """An expert as a detector; which candidates are real by the reference, and its objects that are no candidates."""

    task: str
    expert: str
    pool: Pool
    is_real: Booleans
    missed_boxes: Floats
    missed_images: Positions

    def true_value(self, name: str, *, with_missed: bool) -> float:
        """What the reference says."""
        missed = np.array([[float(len(self.missed_images))]]) if with_missed else None
        metrics = DetectionMetrics(self.pool, np.arange(len(self.pool)), 0.5, missed)
        return float(metrics.values(name, self.expert, self.is_real[None])[0])


def cases(round_number: int, *, quick: bool) -> list[Case]:
    """Every expert of both tasks, or the first of each."""
    made = []
    for task, data in expert_tasks(round_number).items():
        for name in data.drawn.sources[: 2 if quick else None]:
            made.append(_case(task, name, data))
    return made


def _case(task: str, name: str, data: Experts) -> Case:
    drawn, k = data.drawn, data.drawn.sources.index(name)
    assert drawn.seen is not None
    own, others = drawn.of_source(name), drawn.select(drawn.source != k)
    others = replace(
        others,
        sources=(*drawn.sources[:k], *drawn.sources[k + 1 :]),
        source=others.source - (others.source > k).astype(np.int32),
        seen=np.delete(drawn.seen, k, axis=0),
    )
    detector = replace(own, scores=np.ones(len(own)), seen=None)
    pool = match(detector, others, iou=IOU)
    is_real, is_found = pair_with_reference(pool, data.reference)
    left = data.reference.select(~is_found)
    return Case(task, name, pool, is_real, left.boxes, left.image.astype(np.int64))


def pair_with_reference(pool: Pool, reference: Shapes) -> tuple[Booleans, Booleans]:
    """Which candidates are objects of the reference, and which of these are candidates: one to one."""
    is_real, is_found = np.zeros(len(pool), dtype=bool), np.zeros(len(reference), dtype=bool)
    for image in range(pool.images.n):
        mine, theirs = np.flatnonzero(pool.image == image), np.flatnonzero(reference.image == image)
        overlaps = box_overlaps(pool.boxes[mine], reference.boxes[theirs])
        rows, columns = linear_sum_assignment(-np.where(overlaps >= IOU, overlaps, 0.0))
        good = overlaps[rows, columns] >= IOU
        is_real[mine[rows[good]]] = True
        is_found[theirs[columns[good]]] = True
    return is_real, is_found


def experts(quick: bool) -> str:
    """Votes alone; recall is that of the pool."""
    lines = []
    for round_number in (1,) if quick else (1, 2):
        rows: dict[str, list[tuple[bool, float, float]]] = {name: [] for name in METRICS}
        for case in cases(round_number, quick=quick):
            evaluation = _evaluated(case, quick)
            for name in METRICS:
                true = case.true_value(name, with_missed=False)
                low, high = evaluation[name].interval(LEVEL)
                rows[name].append((low <= true <= high, high - low, evaluation[name].mean - true))
            say(f"round {round_number}, {case.task}, {case.expert}")
        for name, results in rows.items():
            held = [inside for inside, _, _ in results]
            width, error = np.mean([r[1] for r in results]), np.mean([abs(r[2]) for r in results])
            metric = "recall of the pool" if name == "recall" else name
            lines.append([str(round_number), metric, f"{sum(held)} of {len(held)}", f"{width:.3f}", f"{error:.3f}"])
    head = ["round", "metric", "holds", "mean width", "mean absolute error"]
    about = (
        "Each of ten experts graded by the nine others, two tasks, votes alone (asked in round 1: at least 18 of 20)"
    )
    return f"{about}\n\n{as_text(head, lines, left=(1,))}"


def _evaluated(case: Case, quick: bool) -> Evaluation:
    few = {"n_draws": 100} if quick else {}
    return evaluate(case.pool, case.expert, metrics=METRICS, check_dependence=False, **few)


def vetted(quick: bool) -> str:
    """With random candidates vetted and random tiles searched: recall over all objects, also those nobody drew."""
    found: dict[str, dict[str, list[tuple[bool, float]]]] = {
        about: {name: [] for name in METRICS} for about in ("candidates and tiles", "whole images, bootstrap")
    }
    for number, case in enumerate(cases(1, quick=quick)):
        before = _evaluated(case, quick)
        before[METRICS[0]]  # draws the truth, which the answers with gold then share
        true = {name: case.true_value(name, with_missed=True) for name in METRICS}
        for repetition in range(2 if quick else N_REPETITIONS):
            rng = np.random.default_rng([number, repetition])
            estimates = _vetted_estimates(case, before, rng)
            shown = {name: estimate.interval(LEVEL) for name, estimate in estimates.items()}
            for about, intervals in zip(found, (shown, _whole_images(case, rng)), strict=True):
                for name, (low, high) in intervals.items():
                    found[about][name].append((low <= true[name] <= high, high - low))
        say(f"{case.task}, {case.expert}")
    lines = []
    for about, results in found.items():
        for name, pairs in results.items():
            held, width = np.mean([inside for inside, _ in pairs]), np.mean([size for _, size in pairs])
            error = np.sqrt(held * (1 - held) / len(pairs))
            lines.append([about, name, f"{100 * held:.1f} ± {100 * error:.1f}", f"{width:.3f}"])
    head = ["vetted", "metric", "holds %", "mean width"]
    text = (
        f"{N_CANDIDATES} vetted candidates and {N_TILES} searched tiles (quarters of images), random; recall and AP50 "
        f"over all objects of\nthe reference (asked: at least 94%). Ten experts of each task, "
        f"{N_REPETITIONS} draws each. Beside it, as many candidates vetted in whole\nrandom images\n\n"
    )
    return text + as_text(head, lines, left=(0, 1))


def _vetted_estimates(case: Case, before: Evaluation, rng: np.random.Generator) -> dict[str, Estimate]:
    """The answers with gold, on what was drawn from the votes before."""
    pool = case.pool
    chosen = rng.choice(len(pool), N_CANDIDATES, replace=False)
    gold = {pool.items[k]: "object" if case.is_real[k] else "nothing" for k in chosen}
    tiles = make_tiles(pool.images)
    searched = tiles.draw(N_TILES, rng)
    missed = missed_objects(_counts(case, searched), len(tiles), random_state=rng).draws
    metrics = DetectionMetrics(pool, candidates_of(pool, before.labels), 0.5, missed)
    task = replace(before.task, metrics={name: metrics.metric(name) for name in METRICS})
    after = evaluate_again(replace(before, task=task), before.labels.with_gold(gold, drawn="random"))
    return {name: after[name] for name in METRICS}


def _counts(case: Case, searched: Positions) -> Positions:
    """Missed objects in each tile that was searched."""
    tiles = make_tiles(case.pool.images)
    centre = case.missed_boxes[:, :2] + case.missed_boxes[:, 2:] / 2
    counts = []
    for tile in searched:
        x, y, width, height = tiles.boxes[tile]
        inside = (centre[:, 0] >= x) & (centre[:, 0] < x + width) & (centre[:, 1] >= y) & (centre[:, 1] < y + height)
        counts.append(int((inside & (case.missed_images == tiles.image[tile])).sum()))
    return np.array(counts)


def _whole_images(case: Case, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Images drawn at random until as many candidates are vetted; their bootstrap interval."""
    pool = case.pool
    per_image = np.bincount(pool.image, minlength=pool.images.n)
    order = rng.permutation(pool.images.n)
    n = int(np.searchsorted(np.cumsum(per_image[order]), N_CANDIDATES)) + 1
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    for _ in range(200):
        chosen = rng.choice(order[:n], n)
        counted = np.bincount(chosen, minlength=pool.images.n)
        for name in METRICS:
            values[name].append(_on_images(case, counted, name))
    return {name: tuple(np.nanquantile(drawn, (0.025, 0.975)).tolist()) for name, drawn in values.items()}


def _on_images(case: Case, times: Positions, name: str) -> float:
    """A metric on some images; an expert is always sure, so that the order of detections says nothing."""
    found = case.pool.found[case.expert]
    image = case.pool.image[found.candidate]
    right = float((times[image] * (case.is_real[found.candidate] & found.is_first)).sum())
    reported = float(times[image].sum())
    objects = float(times[case.pool.image][case.is_real].sum() + times[case.missed_images].sum())
    precision, recall = right / max(reported, 1.0), right / max(objects, 1.0)
    return {"precision": precision, "recall": recall, "ap50": precision * recall}[name]


def missed(quick: bool) -> str:
    """Does the interval of the number of missed objects hold it, over draws of tiles?"""
    lines = []
    by_name = sorted(cases(1, quick=True), key=lambda case: (case.task, case.expert))
    for _, same_task in itertools.groupby(by_name, key=lambda case: case.task):
        case = next(same_task)
        true = len(case.missed_images)
        tiles = make_tiles(case.pool.images)
        held, widths = [], []
        for seed in range(10 if quick else 50):
            searched = tiles.draw(N_TILES, seed)
            low, high = missed_objects(_counts(case, searched), len(tiles), random_state=seed).total.interval(LEVEL)
            held.append(low <= true <= high)
            widths.append(high - low)
        lines.append([case.task, str(true), f"{sum(held)} of {len(held)}", f"{np.mean(widths):.1f}"])
    head = ["task", "missed by all", "holds", "mean width"]
    text = (
        f"Cells that no expert drew, from {N_TILES} random tiles of all quarters of images (asked: 90% of 50 draws)\n\n"
    )
    return text + as_text(head, lines)


SECTIONS = {"hard": hard, "experts": experts, "vetted": vetted, "missed": missed, "speed": speed}
main = partial(run_sections, "detection", __doc__, SECTIONS)


if __name__ == "__main__":
    main()
