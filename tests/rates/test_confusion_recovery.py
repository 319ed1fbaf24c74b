"""Confusion matrices behind noisy labels: exact recovery, invariances, uncertainty, and what cannot be recovered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup import rates
from trueup.exceptions import InvalidParameter
from trueup.rates.matrices import _truncated


def drawn_problem(n_classes, seed):
    rng = np.random.default_rng(seed)
    own = 0.6 * np.eye(n_classes) + 0.4 * rng.dirichlet(np.ones(n_classes), n_classes)
    confusion = rng.dirichlet(np.ones(n_classes), n_classes)
    return confusion, own, rng.dirichlet(np.full(n_classes, 3.0))


@given(n_classes=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_recovery_undoes_the_noise(n_classes, seed):
    confusion, own, prior = drawn_problem(n_classes, seed)
    joint = rates.joint_distribution(confusion=confusion, labeler=own, prior=prior)
    assert joint.sum() == pytest.approx(1)
    found = rates.recover_confusion(joint=joint, labeler=own)
    np.testing.assert_allclose(found.confusion, confusion, atol=1e-7)
    np.testing.assert_allclose(found.prior, prior, atol=1e-9)
    assert not found.truncated
    assert found.error == pytest.approx(1 - prior @ np.diag(confusion))
    assert found.raw_error == pytest.approx(found.error)


def test_joint_distribution_is_that_of_enumeration():
    confusion, own, prior = drawn_problem(3, 4)
    joint = rates.joint_distribution(confusion=confusion, labeler=own, prior=prior)
    for z, p in np.ndindex(3, 3):
        assert joint[z, p] == pytest.approx(sum(prior[y] * own[y, z] * confusion[y, p] for y in range(3)))


def test_standard_error_is_that_of_simulation():
    confusion, own, prior = drawn_problem(3, 3)
    joint = rates.joint_distribution(confusion=confusion, labeler=own, prior=prior)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2000, joint.ravel(), 4000).reshape(-1, 3, 3)
    checked = np.stack([rng.multinomial(400, row, 4000) for row in own], axis=1)
    many = rates.recover_confusion(joint=counts, labeler=checked)
    one = rates.recover_confusion(joint=joint, labeler=own, n=2000, n_checked=400)
    assert one.error_std == pytest.approx(np.std(many.raw_error), rel=0.05)
    assert many.raw_error.mean() == pytest.approx(one.error, abs=4 * one.error_std / np.sqrt(4000) + 0.002)
    assert one.error_std > rates.recover_confusion(joint=joint, labeler=own, n=2000).error_std


def test_estimates_carry_the_uncertainty_of_checked_labels():
    joint, checked = [[430, 60], [80, 430]], [[45, 5], [5, 45]]
    found = rates.recover_confusion(joint=joint, labeler=checked)
    known = rates.recover_confusion(joint=joint, labeler=np.divide(checked, 50))
    precise, wide = known.estimate("precision"), found.estimate("precision")
    assert wide.std > precise.std > 0
    assert precise.interval()[0] < known.metric("precision") < precise.interval()[1]
    assert found.estimate("recall:0").name == "recall:0"
    again = rates.recover_confusion(joint=joint, labeler=checked).estimate("precision")
    assert again.mean == wide.mean
    low, high = found.error_interval()
    assert 0 <= low < found.error < high <= 1
    assert found.error_interval(method="bootstrap") == pytest.approx((low, high), abs=0.03)
    assert "95% interval" in repr(found)


def test_negative_cells_are_reported_and_truncated():
    found = rates.recover_confusion(joint=[[50, 0], [0, 50]], labeler=[[0.9, 0.1], [0.1, 0.9]])
    assert found.truncated is True
    assert found.raw.min() < 0
    assert found.raw_error == pytest.approx(-0.125)
    assert found.error == 0
    assert found.confusion.tolist() == [[1, 0], [0, 1]]
    assert "truncated" in repr(found)
    low, high = found.error_interval()
    assert low == 0 <= high


def test_truncation_is_the_nearest_matrix_of_the_same_error_rate():
    """Against a search over many proper matrices of that error rate."""
    raw = np.array([[0.5, -0.06, 0.02], [0.03, 0.3, -0.01], [0.02, 0.04, 0.16]])
    found = _truncated(raw)
    assert np.trace(found) == pytest.approx(np.trace(raw))
    rng, on = np.random.default_rng(0), np.eye(3, dtype=bool)
    others = np.empty((20_000, 3, 3))
    others[:, on] = np.trace(raw) * rng.dirichlet(100 * np.diag(raw), 20_000)
    others[:, ~on] = (1 - np.trace(raw)) * rng.dirichlet(50 * (found[~on] + 0.005), 20_000)
    assert ((found - raw) ** 2).sum() <= ((others - raw) ** 2).sum(axis=(1, 2)).min()
    np.testing.assert_allclose(_truncated(found), found, atol=1e-12)


@pytest.mark.parametrize(
    ("labeler", "complaint"),
    [
        ([[0.7, 0.3], [0.7, 0.3]], "for the labeler: classes 0 and 1 get the same labels"),
        ([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]], "singular one for labeler 1: .*cannot be identified"),
        ([[0.9, 0.1], [0.0, 0.0]], "got none for class 1"),
        ([[0.9, 0.1, 0.0]], r"shape \(..., classes, classes\)"),
        ([[0.9, -0.1], [0.1, 0.9]], "counts or probabilities"),
        (np.eye(3), "the same classes, got 2 and 3"),
    ],
    ids=["guessing", "which-labeler", "zero-row", "shape", "negative", "classes"],
)
def test_what_cannot_be_inverted_is_refused_and_named(labeler, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        rates.recover_confusion(joint=[[40, 10], [10, 40]], labeler=labeler)
