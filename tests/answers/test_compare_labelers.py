"""Labelers as systems: those of the votes themselves, and those of other labels."""

import numpy as np
import pytest
from crowds import CLASSES, crowd

import trueup as tu
from trueup.data.predictions import are_in_votes
from trueup.noise import Confusion


def test_judges_of_other_labels_are_systems_like_any_other():
    humans, truth, rng = crowd(300, accuracy=(0.7, 0.7, 0.7))
    said = np.stack([np.where(rng.random(300) < a, truth, 1 - truth) for a in (0.95, 0.9)], axis=1)
    judges = tu.Labels.from_matrix(CLASSES[said], classes=CLASSES.tolist())  # their names are those of humans too
    known = Confusion(np.array([[[0.7, 0.3], [0.3, 0.7]]] * 3), prior=[0.6, 0.4])
    options = {"noise": known, "target": "sample", "n_draws": 400, "check_dependence": False}
    cmp = tu.compare(judges.as_systems(), humans, **options)
    arrays = tu.compare({0: CLASSES[said[:, 0]], 1: CLASSES[said[:, 1]]}, humans, **options)
    np.testing.assert_array_equal(cmp.draws, arrays.draws)
    for k in range(2):  # left out of the model of the truth, they would be pulled a quarter towards chance
        assert cmp[k].mean == pytest.approx((said[:, k] == truth).mean(), abs=0.09)


def test_only_a_labeler_with_all_of_their_votes_is_in_them():
    labels, _, _ = crowd(20)
    aligned = labels.as_systems().align(labels)
    assert are_in_votes(aligned, labels).all()
    aligned.codes[1, 0] = 1 - aligned.codes[1, 0]
    assert are_in_votes(aligned, labels).tolist() == [True, False, True, True]
    assert not are_in_votes(aligned, labels.select(labelers=[0]))[2:].any()
