"""Data that the tests of the answers share."""

import pytest
from crowds import CLASSES, crowd


@pytest.fixture(scope="session")
def vetted():
    """Labels with gold on every item, so that all answers are exact; and scores for the second class, "dog"."""
    labels, truth, rng = crowd(80)
    labels = labels.with_gold(dict(zip(labels.items.tolist(), CLASSES[truth].tolist(), strict=True)))
    return labels, truth, {"a": truth + rng.normal(size=80), "b": truth + 2 * rng.normal(size=80)}
