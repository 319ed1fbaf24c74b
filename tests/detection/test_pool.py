"""Candidate objects: grouping, votes, detections."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.detection import Images, boxes_from_arrays, match, simulate_boxes
from trueup.exceptions import TrueupError

SEEN = np.ones((3, 1), dtype=bool)


def drawn(boxes, people, **more):
    return boxes_from_arrays(image=["a"] * len(boxes), boxes=boxes, source=people, **more)


def test_shapes_of_one_thing_are_one_candidate_and_votes_say_who_drew_it():
    objects = drawn(
        [[0, 0, 10, 10], [1, 0, 10, 10], [0, 1, 10, 10], [40, 40, 10, 10]], ["ann", "bob", "cid", "bob"], seen=SEEN
    )
    pool = match(None, objects)
    assert pool.votes.tolist() == [[1, 0], [1, 1], [1, 0]]
    assert pool.boxes[0].tolist() == [0, 0, 10, 10]
    assert pool.labels.n_votes == 6
    assert pool.labels.item_column("category").tolist() == ["object", "object"]


def test_who_drew_a_crowd_does_not_say_what_is_in_it():
    objects = boxes_from_arrays(
        image=["a"] * 5,
        boxes=[[0, 0, 100, 50], [20, 5, 10, 10], [20, 5, 10, 10], [40, 5, 10, 10], [40, 80, 10, 10]],
        source=["ann", "ann", "bob", "bob", "bob"],
        seen=np.ones((2, 1), dtype=bool),
    )
    crowd = replace(objects, is_crowd=np.arange(5) == 0)
    assert match(None, crowd).votes.tolist() == [[1, -1, 0], [1, 1, 1]]


def test_one_annotator_is_in_a_candidate_once():
    pool = match(None, drawn([[0, 0, 10, 10], [1, 0, 10, 10], [0, 0, 10, 11]], ["ann", "ann", "bob"]), iou=0.5)
    assert sorted(pool.votes.sum(axis=0).tolist()) == [0, 2]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_annotators_plays_no_part(seed):
    data = simulate_boxes(n_images=6, n_annotators=5, blur=0.12, random_state=seed)
    pool = match(data.found, data.objects)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.objects))
    names = dict(zip(data.objects.sources, rng.permutation(list("abcde")), strict=True))
    shuffled = boxes_from_arrays(
        image=data.objects.image[order],
        boxes=data.objects.boxes[order],
        source=[names[data.objects.sources[k]] for k in data.objects.source[order]],
        images=data.objects.images,
        seen=np.ones((5, 6), dtype=bool),
    )
    other = match(data.found, shuffled)
    rows = [other.annotators.index(names[name]) for name in pool.annotators]
    np.testing.assert_array_equal(other.boxes, pool.boxes)
    np.testing.assert_array_equal(other.votes[rows], pool.votes)
    np.testing.assert_array_equal(other.found["system 1"].candidate, pool.found["system 1"].candidate)


def test_the_surest_detection_is_the_first_and_others_are_duplicates():
    objects = drawn([[0, 0, 10, 10]], ["ann"])
    found = boxes_from_arrays(
        image=["a"] * 3, boxes=[[0, 0, 10, 9], [0, 0, 10, 10], [80, 0, 10, 10]], scores=[0.9, 0.5, 0.7], name="system"
    )
    pool = match(found, objects)
    of = pool.found["system"]
    assert of.is_first.tolist() == [True, False, True]
    assert of.candidate.tolist() == [0, 0, 1]
    assert of.overlap.tolist() == pytest.approx([0.9, 1.0, 1.0])
    assert pool.scores("system").tolist() == [0.9, 0.7]
    assert pool.predictions(0.8)["system"] == {"a/1": "object", "a/2": "nothing"}


@pytest.mark.parametrize(("first", "second"), [("cat", "dog"), ("zebra", "dog")])
def test_of_classes_that_tie_names_and_rows_do_not_decide(first, second):
    def class_of(boxes, sources, categories):
        for order in ([0, 1, 2], [2, 1, 0]):
            rows = [[one[k] for k in order] for one in (boxes, sources, categories)]
            pool = match(None, drawn(rows[0], rows[1], category=rows[2]), same_class=False)
            yield pool.categories[pool.category[pool.boxes[:, 0].argmin()]]

    both, far = [[0, 0, 10, 10], [0, 0, 10, 10]], [80, 80, 10, 10]
    more_elsewhere = class_of([*both, far], ["ann", "bob", "ann"], [first, second, second])
    assert list(more_elsewhere) == [second, second]
    first_annotator = class_of([*both, far], ["ann", "bob", "ann"], [first, second, "bird"])
    assert list(first_annotator) == [first, first]
    further_left = class_of([[1, 0, 10, 10], [0, 0, 10, 10], far], ["ann", "bob", "ann"], [first, second, "bird"])
    assert list(further_left) == [second, second]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"boxes": [[0, 0, 0, 5]]}, "1 with a box without width or height"),
        ({"image": ["b"]}, "1 with an image that is not in the set"),
        ({"scores": [np.nan]}, "1 with no score"),
    ],
)
def test_bad_boxes_get_one_sentence(change, sentence):
    good = {"image": ["a"], "boxes": [[0, 0, 5, 5]], "images": Images(np.array(["a"]), np.array([[100.0, 100.0]]))}
    with pytest.raises(TrueupError, match=sentence):
        boxes_from_arrays(**{**good, **change})


def test_bad_calls_get_one_sentence():
    objects = drawn([[0, 0, 10, 10]], ["ann"])
    with pytest.raises(TrueupError, match="must have scores"):
        match(objects, objects)
    with pytest.raises(TrueupError, match="needs masks"):
        match(None, objects, shape="mask")
    with pytest.raises(TrueupError, match="seen must have a row"):
        drawn([[0, 0, 10, 10]], ["ann"], seen=np.ones((2, 2)))
