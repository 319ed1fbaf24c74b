"""Batches with a known truth, for the tests of the monitor."""

from datetime import date, timedelta

import numpy as np

import trueup as tu

FIRST_DAY = date(2026, 1, 1)


def day(k: int) -> str:
    return (FIRST_DAY + timedelta(k)).isoformat()


def draw(rng, *, accuracy=0.85, judges=(0.9, 0.9, 0.9), n_items=200, n_gold=10, names=None, classes=(0, 1)):
    """Votes with vetted items drawn at random, and what a system says."""
    truth = rng.integers(2, size=n_items)
    is_right = rng.random((n_items, len(judges) + 1)) < [*judges, accuracy]
    said = np.where(is_right, truth[:, None], 1 - truth[:, None])
    named = np.array(classes, dtype=object)
    labels = tu.Labels.from_matrix(
        named[said[:, :-1]], labelers=names or [f"judge {k}" for k in range(len(judges))], classes=list(classes)
    )
    vetted = rng.choice(n_items, n_gold, replace=False)
    if n_gold:
        labels = labels.with_gold({int(k): classes[truth[k]] for k in vetted}, drawn="random")
    return labels, [classes[code] for code in said[:, -1]]


def filled(watch, rng, n, *, start=0, **how):
    """A monitor with n more batches, a day each."""
    for k in range(start, start + n):
        labels, said = draw(rng, **how)
        watch.add(labels, said, when=day(k))
    return watch
