"""`auc`: what it refuses and what it says; the views themselves are in tests/estimators/test_views.py."""

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidPredictions, TrueupWarning


def test_auc_does_not_leave_items_out_in_silence(vetted):
    labels, _, scores = vetted
    holes = np.where(np.arange(80) < 5, np.nan, scores["a"])
    for view in ("bayes", "deterministic", "subjectivist", "probabilistic"):
        with pytest.raises(InvalidPredictions, match="got none for 5 of 80 items"):
            tu.auc(holes, labels, view=view)


def test_auc_says_what_compare_would_say(vetted):
    labels, _, _ = vetted
    for options in ({"noise": "dawid-skene"}, {"view": "probabilistic"}):
        with pytest.warns(TrueupWarning, match="they rank nothing"):
            assert tu.auc(np.ones(80), labels, **options).mean == pytest.approx(0.5)


@pytest.mark.parametrize("view", ["deterministic", "subjectivist", "probabilistic"])
def test_a_truth_of_one_class_has_no_auc(view):
    labels = tu.Labels.from_matrix(np.ones((20, 3), dtype=int), classes=[0, 1])
    with pytest.raises(InvalidLabels, match="one class only"):
        tu.auc(np.arange(20.0), labels, view=view)
