"""Metrics of detections on drawn truths, and the doors."""

from dataclasses import replace

import numpy as np
import pytest

from trueup import detection
from trueup.detection import coco_scores, match, metrics, missed_objects, simulate_boxes
from trueup.detection.metrics import NAMES, DetectionMetrics, mean_average_precisions
from trueup.exceptions import TrueupError


def test_one_certain_annotator_gives_cocos_ap50():
    data = simulate_boxes(n_images=30, random_state=1)
    pool = match(data.found, data.truth)
    metrics = DetectionMetrics(pool, np.arange(len(pool)))
    real = (pool.votes[0] == 1)[None]
    value = metrics.values("ap50", "system 1", real)[0]
    assert value == pytest.approx(coco_scores(data.found, data.truth).ap(iou=0.5), abs=1e-12)


def drawn_detections(seed, n_draws):
    """Detections of two classes, by falling score, each with how many of three thresholds it reaches."""
    rng = np.random.default_rng(seed)
    real = rng.random((n_draws, 24)) < 0.5
    candidate, level = rng.permutation(np.r_[np.arange(24), 3, 4]), rng.integers(0, 4, size=26)
    category = rng.integers(2, size=26)
    total = np.stack([real[:, :12].sum(axis=1), real[:, 12:].sum(axis=1)], axis=1) + rng.integers(
        0, 3, size=(n_draws, 2)
    )
    total[0] = 0, total[0, 1]
    return real, category, candidate, level, 3, total


def test_average_precision_is_that_of_the_definition():
    real, category, candidate, level, n_levels, total = drawn_detections(0, 40)
    values = mean_average_precisions(real, category, candidate, level, n_levels, total)
    for draw in range(40):
        parts = []
        for k in np.flatnonzero(total[draw]):
            own = category == k
            for threshold in range(n_levels):
                right = (real[draw, candidate] & (level > threshold))[own]
                precision = np.cumsum(right) / np.arange(1, own.sum() + 1)
                recall = np.cumsum(right) / total[draw, k]
                at = [precision[recall >= r].max(initial=0.0) for r in np.linspace(0, 1, 101)]
                parts.append(np.mean(at))
        assert values[draw] == pytest.approx(np.mean(parts), abs=1e-12)


def test_compiled_average_precision_is_the_same(monkeypatch):
    pytest.importorskip("numba", reason="needs trueup[fast]")
    arguments = drawn_detections(1, 20)
    plain = mean_average_precisions(*arguments)
    monkeypatch.setattr(metrics, "WORTH_COMPILING", 0)
    np.testing.assert_array_equal(mean_average_precisions(*arguments), plain)
    flags = np.random.default_rng(2).random((2, len(arguments[1]))) < 0.5
    of_area = {"is_inside": flags[0], "can_be_wrong": flags[1]}
    compiled = mean_average_precisions(*arguments, **of_area)
    monkeypatch.undo()
    np.testing.assert_array_equal(mean_average_precisions(*arguments, **of_area), compiled)
    everything = dict.fromkeys(of_area, np.ones(len(arguments[1]), dtype=bool))
    np.testing.assert_allclose(mean_average_precisions(*arguments, **everything), plain, rtol=1e-12)


def test_precision_recall_and_f1_count_duplicates_and_missed_objects():
    objects = detection.boxes_from_arrays(image=["a"] * 2, boxes=[[0, 0, 10, 10], [50, 50, 10, 10]], name="ann")
    found = detection.boxes_from_arrays(
        image=["a"] * 4,
        boxes=[[0, 0, 10, 9], [0, 0, 10, 10], [50, 50, 10, 10], [80, 0, 10, 10]],
        scores=[0.9, 0.8, 0.3, 0.7],
        name="system",
    )
    pool = match(found, objects)
    metrics = DetectionMetrics(pool, np.arange(3), missed=np.array([[2.0]]))
    real = np.array([[True, True, False]])
    values = {name: float(metrics.values(name, "system", real)[0]) for name in ("precision", "recall", "f1")}
    assert values == pytest.approx({"precision": 1 / 3, "recall": 1 / 4, "f1": 2 / 7})


@pytest.mark.parametrize(
    ("counts_of", "n_searched", "n_runs", "least"),
    [
        # Intervals 20% too narrow would hold some 88%.
        (lambda rng: rng.negative_binomial(0.8, 0.8 / (0.8 + 0.3), size=80), 20, 200, 0.91),
        *(
            (lambda rng, n=n, mean=mean: rng.poisson(mean * rng.gamma(20, 1 / 20, n)), searched, 40, 0.85)
            for searched, n, mean in ((20, 80, 0.3), (400, 1600, 5.0), (20, 200, 250.0))
        ),
    ],
)
def test_missed_objects_hold_their_number(counts_of, n_searched, n_runs, least):
    rng = np.random.default_rng(0)
    inside = []
    for seed in range(n_runs):
        counts = counts_of(rng)
        searched = rng.choice(counts, n_searched, replace=False)
        low, high = missed_objects(searched, len(counts), n_draws=500, random_state=seed).total.interval(0.95)
        inside.append(low <= counts.sum() <= high)
    assert np.mean(inside) > least


def test_all_tiles_leave_nothing_unknown():
    assert missed_objects([1, 0, 2], 3).total.interval(0.95) == (3.0, 3.0)


def test_bad_calls_get_one_sentence():
    data = simulate_boxes(n_images=5, n_systems=2, random_state=0)
    pool = match(data.found, data.objects)
    image = detection.Images(np.array([1]), np.array([[640.0, 640.0]]))
    others = pool.labels.select(items=pool.items[:3])
    for call, sentence in (
        (lambda: detection.evaluate(pool), "system must be one of system 1, system 2"),
        (lambda: detection.evaluate(pool, "system 1", metrics=["map"]), "metric must be one of precision"),
        (lambda: detection.compare(pool, labels=others), "labels must be those of the pool"),
        (lambda: detection.make_tiles(image, 1000), "at most 50, got 1000"),
        *((lambda c=c: missed_objects(*c), "must be|tiles") for c in (([-1], 3), ([0.5], 3), ([], 3), ([1, 1], 1))),
    ):
        with pytest.raises(TrueupError, match=sentence):
            call()


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_a_detector_is_judged_and_compared():
    data = simulate_boxes(n_images=40, n_annotators=5, n_systems=2, random_state=3)
    pool = match(data.found, data.objects)
    true = {name: coco_scores(data.found.of_source(name), data.truth).ap(iou=0.5) for name in pool.systems}
    quick = {"noise": "dawid-skene", "n_warmup": 100, "n_draws": 200, "check_dependence": False}
    names = [name for name in NAMES if name != "panoptic_quality"]  # these boxes overlap
    evaluation = detection.evaluate(pool, "system 1", metrics=names, **quick)
    assert any("do not count" in sentence for sentence in evaluation.warnings)
    for name in names:
        low, high = evaluation[name].interval(0.95)
        assert 0 <= low <= high <= 1
    assert evaluation["ap50"].mean == pytest.approx(true["system 1"], abs=0.1)
    comparison = detection.compare(pool, metric="ap50", **quick)
    assert comparison.ranking[0] == max(true, key=true.get)
    assert comparison["system 1"].mean == pytest.approx(evaluation["ap50"].mean, abs=0.02)


@pytest.mark.parametrize("area", ["small", "medium"])
def test_small_and_medium_are_told_by_the_area_of_the_object_as_coco_does(area):
    """An object that fills a third of its box is small where its box is not."""
    data = simulate_boxes(n_images=30, n_annotators=1, n_systems=1, random_state=3)
    truth = replace(data.truth, areas=data.truth.areas / 3)
    pool = match(data.found, truth)
    of = DetectionMetrics(pool, np.arange(len(pool)))
    real = (pool.votes[0] == 1)[None]
    value = of.values(f"ap_{area}", pool.systems[0], real)[0]
    by_box = DetectionMetrics(replace(pool, areas=np.empty(0)), np.arange(len(pool)))
    assert by_box.values(f"ap_{area}", pool.systems[0], real)[0] != pytest.approx(value, abs=0.01)
    assert value == pytest.approx(coco_scores(data.found, truth).ap(area=area), abs=1e-3)
