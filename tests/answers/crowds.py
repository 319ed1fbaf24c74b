"""Votes with their truth, and the options of a quick answer, which the tests of the answers share."""

import numpy as np

import trueup as tu

FAST = {"noise": "dawid-skene", "n_draws": 200, "n_warmup": 100, "check_dependence": False}
CLASSES = np.array(["cat", "dog"])


def crowd(n_items=100, *, seed=0, accuracy=(0.9, 0.85, 0.8, 0.7)):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.4).astype(int)
    votes = np.stack([np.where(rng.random(n_items) < a, truth, 1 - truth) for a in accuracy], axis=1)
    return tu.Labels.from_matrix(CLASSES[votes], classes=CLASSES.tolist()), truth, rng
