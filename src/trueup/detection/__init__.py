"""Detection and instance segmentation: average precision with intervals when annotations are noisy or incomplete."""

from trueup.detection.deck import Deck, Vetted, make_deck, read_answers, take_answers
from trueup.detection.evaluating import compare, evaluate, evaluate_at_cuts
from trueup.detection.metrics import CocoScores, coco_scores
from trueup.detection.missed import MissedObjects, Tiles, make_tiles, missed_objects
from trueup.detection.pool import Found, Pool, match
from trueup.detection.reading import read_annotations, read_coco, read_detections, read_results, read_seen
from trueup.detection.reading_tables import (
    SimulatedBoxes,
    boxes_from_arrays,
    read_boxes,
    read_voc,
    read_yolo,
    simulate_boxes,
)
from trueup.detection.shapes import Images, Shapes
from trueup.detection.tile_search import TileSearch, TilesToSearch, read_searched
from trueup.detection.writing import save_cards, save_for_app, write_coco

__all__ = [
    "CocoScores",
    "Deck",
    "Found",
    "Images",
    "MissedObjects",
    "Pool",
    "Shapes",
    "SimulatedBoxes",
    "TileSearch",
    "Tiles",
    "TilesToSearch",
    "Vetted",
    "boxes_from_arrays",
    "coco_scores",
    "compare",
    "evaluate",
    "evaluate_at_cuts",
    "make_deck",
    "make_tiles",
    "match",
    "missed_objects",
    "read_annotations",
    "read_answers",
    "read_boxes",
    "read_coco",
    "read_detections",
    "read_results",
    "read_searched",
    "read_seen",
    "read_voc",
    "read_yolo",
    "save_cards",
    "save_for_app",
    "simulate_boxes",
    "take_answers",
    "write_coco",
]
