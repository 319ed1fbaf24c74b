"""What `evaluate` gives can be pickled, so that it can come back from another process."""

import pickle

import numpy as np
import pytest

import trueup as tu
from trueup.estimators import METHODS

OF_A_SAMPLE = [name for name in METHODS if "sample" in METHODS[name].targets]


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["bayes-known", *OF_A_SAMPLE])
def test_an_evaluation_is_the_same_after_pickling(method, n_classes):
    sim = tu.simulate.dawid_skene(n_items=24, n_classes=n_classes, n_labelers=3, accuracy=0.8, random_state=0)
    predictions = np.where(np.arange(24) % 5 == 0, 0, sim.truth)
    settings = {"method": method, "random_state": 0, "target": "sample"}
    if method == "bayes-known":
        known = tu.noise.Confusion(np.full((n_classes, n_classes), 0.2) + np.eye(n_classes) * (1 - 0.2 * n_classes))
        settings |= {"method": "bayes", "noise": known}
    elif method == "ideal":
        settings["truth"] = sim.truth
    before = tu.evaluate(predictions, sim.labels, **settings)
    after = pickle.loads(pickle.dumps(before))
    for name in before:
        np.testing.assert_array_equal(after[name].interval(0.9), before[name].interval(0.9))
    np.testing.assert_array_equal(after.confusion.intervals(), before.confusion.intervals())
