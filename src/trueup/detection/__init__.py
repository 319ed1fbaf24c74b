"""Detection and instance segmentation: average precision with intervals when annotations are noisy or incomplete."""

from trueup.detection.average_precision import CocoScores, coco_scores
from trueup.detection.cuts import evaluate_at_cuts
from trueup.detection.evaluating import compare, evaluate
from trueup.detection.missed import MissedObjects, Tiles, make_tiles, missed_objects
from trueup.detection.pool import Found, Pool, match
from trueup.detection.reading_coco import read_coco, read_results
from trueup.detection.reading_tables import read_boxes, read_voc, read_yolo
from trueup.detection.shapes import Images, Shapes
from trueup.detection.simulation import SimulatedBoxes, simulate_boxes
from trueup.detection.tables import boxes_from_arrays
from trueup.detection.writing import write_coco

__all__ = [
    "CocoScores",
    "Found",
    "Images",
    "MissedObjects",
    "Pool",
    "Shapes",
    "SimulatedBoxes",
    "Tiles",
    "boxes_from_arrays",
    "coco_scores",
    "compare",
    "evaluate",
    "evaluate_at_cuts",
    "make_tiles",
    "match",
    "missed_objects",
    "read_boxes",
    "read_coco",
    "read_results",
    "read_voc",
    "read_yolo",
    "simulate_boxes",
    "write_coco",
]
