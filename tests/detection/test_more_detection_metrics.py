"""FROC, panoptic quality, F scores, metrics of each class, and how answers move with the cut."""

from dataclasses import replace

import numpy as np
import pytest

from trueup import detection
from trueup.detection import boxes_from_arrays, evaluate_at_cuts, match, metrics, missed_objects, simulate_boxes
from trueup.detection.evaluating import carry_gold
from trueup.detection.metrics import DetectionMetrics, mean_sensitivities
from trueup.exceptions import TrueupError

QUICK = {"noise": "dawid-skene", "n_warmup": 50, "n_draws": 100, "check_dependence": False}


def random_detections(seed, n_draws=30):
    rng = np.random.default_rng(seed)
    real = rng.random((n_draws, 20)) < 0.5
    candidate = np.r_[rng.permutation(20), rng.integers(20, size=10)]
    role = np.r_[np.ones(20), rng.integers(-1, 1, size=10)].astype(int)
    scores = np.round(rng.random(30), 1)
    order = np.argsort(-scores, kind="stable")
    return real, candidate[order], scores[order], role[order], real.sum(axis=1) + rng.integers(0, 2, size=n_draws)


def test_froc_is_that_of_the_definition():
    real, candidate, scores, role, total = random_detections(0)
    rates = (0.5, 1.0, 2.0)
    values = mean_sensitivities(real, candidate, scores, role, total, 4, rates)
    for draw in range(len(real)):
        at = real[draw, candidate]
        shares = []
        for rate in rates:
            found = [0]
            for least in np.unique(scores):
                kept = scores >= least
                if (kept & ~(at & (role >= 0))).sum() <= rate * 4:
                    found.append((kept & at & (role == 1)).sum())
            shares.append(max(found) / total[draw])
        assert values[draw] == pytest.approx(np.mean(shares), abs=1e-12)


def test_compiled_froc_is_the_same(monkeypatch):
    pytest.importorskip("numba", reason="needs trueup[fast]")
    arguments = (*random_detections(1), 4)
    plain = mean_sensitivities(*arguments)
    monkeypatch.setattr(metrics, "WORTH_COMPILING", 0)
    np.testing.assert_array_equal(mean_sensitivities(*arguments), plain)


def two_classes():
    """Two cats, of which one is found well and one twice; a dog that is found half; a dog that is not there."""
    objects = boxes_from_arrays(
        image=["a"] * 3,
        boxes=[[0, 0, 10, 10], [20, 0, 10, 10], [40, 0, 10, 10]],
        category=["cat", "cat", "dog"],
        seen=[[True]],
    )
    found = boxes_from_arrays(
        image=["a"] * 5,
        boxes=[[0, 0, 10, 10], [20, 0, 10, 8], [20, 8, 10, 2], [40, 0, 10, 6], [80, 0, 5, 5]],
        category=["cat", "cat", "cat", "dog", "dog"],
        scores=[0.9, 0.8, 0.7, 0.9, 0.6],
        name="system",
    )
    return match(found, objects)


def values_of(pool, *names, missed=None, category=None, threshold=0.5):
    metrics = DetectionMetrics(pool, np.arange(len(pool)), threshold, missed)
    real = (pool.votes == 1).any(axis=0)[None]
    return [float(metrics.values(name, pool.systems[0], real, category)[0]) for name in names]


def test_panoptic_quality():
    pool = two_classes()
    cats, dogs = 2 * (1.0 + 0.8) / (3 + 2), 2 * 0.6 / (2 + 1)
    assert values_of(pool, "panoptic_quality", category="cat") == pytest.approx([cats])
    assert values_of(pool, "panoptic_quality") == pytest.approx([(cats + dogs) / 2])
    overlapping = match(
        boxes_from_arrays(image=["a"] * 2, boxes=[[0, 0, 10, 10], [5, 0, 10, 10]], scores=[0.9, 0.9], name="s"),
        boxes_from_arrays(image=["a"], boxes=[[0, 0, 10, 10]], seen=[[True]]),
    )
    with pytest.raises(TrueupError, match="overlap in 1 of 1 images"):
        DetectionMetrics(overlapping, np.arange(2)).metric("panoptic_quality").for_system("s")


def test_panoptic_quality_of_masks_that_overlap():
    pytest.importorskip("pycocotools", reason="needs trueup[coco]")
    from trueup.detection.metrics import check_partition
    from trueup.detection.shapes import read_mask

    def pool_of(boxes):
        def with_masks(shapes):
            corners = [[x, y, x, y + h, x + w, y + h, x + w, y] for x, y, w, h in shapes.boxes.tolist()]
            return replace(shapes, masks=tuple(read_mask([points], 50, 50) for points in corners))

        found = with_masks(boxes_from_arrays(image=["a"] * 2, boxes=boxes, scores=[0.9, 0.9], name="s"))
        return match(found, with_masks(boxes_from_arrays(image=["a"], boxes=[[0, 0, 10, 10]])))

    check_partition(pool_of([[0, 0, 10, 10], [10, 0, 10, 10]]), "s", 0.5)
    with pytest.raises(TrueupError, match="partition"):
        check_partition(pool_of([[0, 0, 10, 10], [8, 0, 10, 10]]), "s", 0.5)


def test_f_scores_and_recall_with_and_without_missed_objects():
    pool = two_classes()
    right, reported, objects = 3, 5, 3
    assert values_of(pool, "f0.5", "f1", "f2") == pytest.approx(
        [(1 + b * b) * right / (b * b * objects + reported) for b in (0.5, 1, 2)]
    )
    missed = np.array([[2.0]])  # of classes as the objects are: two to one
    assert values_of(pool, "recall", "pool_recall", missed=missed) == pytest.approx([right / 5, 1.0])
    assert values_of(pool, "recall", missed=missed, category="cat") == pytest.approx([2 / (2 + 2 * 2 / 3)])
    with pytest.raises(TrueupError, match="of each of 2, got 3 columns"):
        DetectionMetrics(pool, np.arange(len(pool)), missed=np.zeros((1, 3)))


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_answers_for_each_class_and_at_other_cuts():
    data = simulate_boxes(n_images=15, n_annotators=4, blur=0.08, random_state=0)
    pool = match(data.found, data.objects)
    evaluation = detection.evaluate(pool, metrics=["ap50"], by_class=True, **QUICK)
    assert evaluation.metrics == ("ap50", "ap50: object")
    assert evaluation["ap50: object"].mean == evaluation["ap50"].mean
    chosen = {item: "object" if k % 2 else "nothing" for k, item in enumerate(pool.items[:30])}
    labels = pool.labels.with_gold(chosen, drawn="random")
    answers = evaluate_at_cuts(pool, labels=labels, metrics=["precision"], missed=missed_objects([0, 1], 4), **QUICK)
    assert list(answers) == [0.4, 0.5, 0.6]
    assert answers[0.5].labels.gold == labels.gold
    strict = answers[0.6].labels
    assert len(strict.items) > len(pool)
    assert len(strict.drawn_gold) > 20


def cells(pool_iou=0.5, *, side=10, shifts=(0, 4), chances=None, **options):
    """A box of each of two annotators in ten images, the second shifted; the first candidates are vetted."""
    n = 10
    images = [f"{k}" for k in range(n)]
    objects = boxes_from_arrays(
        image=images * 2,
        boxes=[[shift, 0, side, side] for shift in shifts for _ in images],
        source=["ann"] * n + ["bob"] * n,
        seen=np.ones((2, n), dtype=bool),
    )
    found = boxes_from_arrays(image=images, boxes=[[0, 0, side, side]] * n, scores=[0.9] * n, name="system")
    pool = match(found, objects, iou=pool_iou, **options)
    first = [item for item in pool.items if item.endswith("/1")]
    drawn = "chosen" if chances is None else dict(zip(first, chances, strict=True))
    return pool, pool.labels.with_gold(dict.fromkeys(first, "object"), drawn=drawn)


def test_carried_gold_is_of_one_candidate_and_keeps_the_chance_of_each():
    chances = [0.9] * 4 + [0.1] * 6
    pool, labels = cells(0.4, chances=chances)
    assert sorted(carry_gold(pool, labels, pool).drawn_gold.values()) == sorted(chances)
    mixed = pool.labels.with_gold(
        labels.gold, drawn={item: "random" if item < "5" else "chosen" for item in pool.items}
    )
    assert carry_gold(pool, mixed, pool).drawn_gold == mixed.drawn_gold
    other, _ = cells(0.45)  # the overlap is 6 / 14: one thing there, two here, both like the one between them
    assert (len(pool), len(other)) == (10, 20)
    carried = carry_gold(pool, labels, other)
    assert sorted(item.split("/")[0] for item in carried.gold) == sorted(pool.images.ids.tolist())


def test_the_order_of_rows_with_equal_scores_plays_no_part():
    data = simulate_boxes(n_images=12, n_annotators=1, random_state=0)
    rounded = replace(data.found, scores=np.round(data.found.scores, 1))
    rng, told = np.random.default_rng(0), []
    for _ in range(4):
        pool = match(rounded.select(rng.permutation(len(rounded))), data.objects)
        told.append(values_of(pool, "precision", "ap50", "ap", "froc", threshold=0.6))
    assert all(values == told[0] for values in told)
