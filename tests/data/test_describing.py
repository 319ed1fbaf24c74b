"""Names that were probably mistyped are told, others are left alone."""

import pytest

from trueup.data.describing import find_suspect_names
from trueup.data.labels import Labels


def labels_of(counts: dict[object, int], labelers: list[str] | None = None) -> Labels:
    names = [name for name, times in counts.items() for _ in range(times)]
    who = [(labelers or ["ann"])[k % len(labelers or ["ann"])] for k in range(len(names))]
    return Labels.from_frame({"item": list(range(len(names))), "labeler": who, "label": names})


@pytest.mark.parametrize(
    "counts",
    [
        {"Cat": 5, "cat": 5, "dog": 5},
        {"cat": 5, "cat ": 5, "dog": 5},
        {"not sure": 5, "notsure": 5, "dog": 5},
        {"positive": 200, "postive": 1, "neg": 9},
        {"positive": 200, "positvie": 2, "neg": 9},
        {"NaN": 3, "dog": 5, "cat": 5},
        {"None": 3, "dog": 5, "cat": 5},
        {"null": 3, "dog": 5, "cat": 5},
        {k / 7: 1 for k in range(1, 140)},
    ],
)
def test_a_probable_typing_error_is_told(counts):
    labels = labels_of(counts)
    (sentence,) = find_suspect_names(labels)
    assert sentence in labels.notes()


@pytest.mark.parametrize(
    "counts",
    [
        {"cat": 5, "dog": 5},
        {"positive": 200, "negative": 1},
        {"legal": 200, "illegal": 100},  # both are frequent
        {"cat": 500, "car": 1},  # short names are near by chance
        {"grade 1": 500, "grade 2": 1},  # numbers are meant to differ
        {1: 500, 2: 1, 3: 4},
        dict.fromkeys(range(100), 1),
        {(1, 2): 5, (1, 3): 5},
    ],
)
def test_honest_names_are_left_alone(counts):
    assert find_suspect_names(labels_of(counts)) == []
