"""What one more vote tells, on a fresh item and on each item."""

import numpy as np
import pytest

import trueup as tu
from trueup.labelers import marginal_value, mutual_information, symmetric_matrix
from trueup.labelers.information import entropy


def test_gains_add_up_to_the_information():
    found = marginal_value(error=0.2, prior=[0.7, 0.3], max_votes=6)
    assert found.per_item is None
    assert found.gains.sum() == pytest.approx(float(mutual_information(error=0.2, n_labelers=6, prior=[0.7, 0.3])))
    assert np.all(np.diff(found.gains) < 0)
    assert found.to_frame().shape == (6, 3)


def data_and_noise(kind="dawid-skene"):
    data = tu.simulate.dawid_skene(n_items=60, n_classes=3, n_labelers=4, votes_per_item=3, random_state=0)
    return data.labels, tu.noise.fit(data.labels, kind)


def expected_fall(posterior, matrix):
    """Expected fall of the entropy by hand, answer by answer."""
    left = 0.0
    for a in range(matrix.shape[1]):
        joint = posterior * matrix[:, a]
        if joint.sum() > 0:
            left += joint.sum() * float(entropy(joint / joint.sum()))
    return float(entropy(posterior)) - left


@pytest.mark.parametrize("labeler", [None, 2])
def test_each_item_has_its_expected_fall_of_entropy(labeler):
    labels, noise = data_and_noise()
    found = marginal_value(noise, labels, labeler=labeler)
    matrix = noise.pooled_ if labeler is None else noise.confusion_[labeler]
    expected = [expected_fall(p, matrix) for p in noise.posterior(labels)]
    assert found.per_item == pytest.approx(expected, abs=1e-12)
    assert found.to_frame().shape == (60, 2)


def test_what_is_expected_is_what_happens_on_average():
    """Draw the next vote of labeler 2 many times from the model itself, and see by how much entropy falls."""
    rng = np.random.default_rng(0)
    noise = tu.noise.Confusion(symmetric_matrix([0.1, 0.3, 0.2], 2), prior=[0.6, 0.4])
    labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0]], classes=[0, 1])
    two = tu.noise.Confusion(symmetric_matrix([0.1, 0.3], 2), prior=[0.6, 0.4])
    expected = marginal_value(two, labels, labeler=1, max_votes=1).per_item
    posterior = two.posterior(labels)
    matrix = noise.confusion_[1]
    n = 20_000
    for i, p in enumerate(posterior):
        truth = (rng.random(n) < p[1]).astype(int)
        answer = (rng.random(n) < matrix[truth, 1]).astype(int)
        after = p * matrix[:, answer].T
        falls = float(entropy(p)) - entropy(after / after.sum(axis=1, keepdims=True))
        assert abs(falls.mean() - expected[i]) < 3.3 * falls.std() / np.sqrt(n)


def test_plot_returns_its_axes():
    pytest.importorskip("matplotlib")
    ax = marginal_value(error=0.2, max_votes=3).plot()
    assert ax.get_xlabel() == "vote on an item"
    assert marginal_value(error=0.2, max_votes=3).plot(ax=ax) is ax
