"""Every metric keeps the contract of trueup.metrics, and the checks notice what breaks it."""

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.metrics import Metric, get_metric, list_metrics
from trueup.testing.metrics import METRIC_CHECKS

BY_NAME = {check.__name__.removeprefix("check_"): check for check in METRIC_CHECKS}


def per_class(n_classes):
    return [f"{name}:{c}" for name in ("precision", "f3", "prevalence") for c in range(n_classes)]


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=list(BY_NAME))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_contract(n_classes, check):
    names = [name for name in list_metrics() if name != "prevalence"] + per_class(n_classes)
    for name in names:
        check(get_metric(name, range(n_classes)), n_classes)


@pytest.mark.parametrize("check", METRIC_CHECKS, ids=list(BY_NAME))
def test_contract_of_a_function_of_labels(check):
    check(Metric("sk", sk.accuracy_score, needs="labels", bounds=(0.0, 1.0), description="accuracy"))


def first_draw_only(counts):
    return np.full(counts.shape[:-2], np.trace(counts.reshape(-1, *counts.shape[-2:])[0]))


def divides(counts):
    return counts[..., 1, 1] / counts[..., 1, :].sum(axis=-1)


def last_item(truths, scores, weights):
    return truths[:, -1].astype(float)


def weighted_sum(truths, scores, weights):
    mass = np.ones(truths.shape) if weights is None else weights
    return (truths * mass).sum(axis=1)


@pytest.mark.parametrize(
    ("check", "metric"),
    [
        ("batches", Metric("m", first_draw_only)),
        ("bounds", Metric("m", lambda c: c[..., 0, 0], bounds=(0.0, 1.0))),
        ("undefined", Metric("m", divides)),
        ("order", Metric("m", last_item, needs="scores")),
        ("scale", Metric("m", lambda c: c[..., 0, 0], bounds=(0.0, 100.0))),
        ("weights", Metric("m", weighted_sum, needs="scores")),
        ("pickle", Metric("m", lambda c: c[..., 0, 0])),
        ("description", Metric("m", divides)),
    ],
)
def test_what_breaks_the_contract_is_noticed(check, metric):
    with pytest.raises(Exception) as caught:
        BY_NAME[check](metric)
    assert not isinstance(caught.value, NameError)
