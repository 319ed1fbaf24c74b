"""Truths drawn from probabilities that are all moved in one direction."""

import numpy as np
import pytest

from trueup.estimators.tilt import (
    Directions,
    independent_directions,
    representative_rows,
    solve_tilts,
    standard_moves,
    tilted_truths,
)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    p = rng.beta(3, 1, 400)
    codes = (rng.random((3, 400)) < 0.7).astype(int)
    codes[1] = codes[0]
    features = (codes[:, :, None] == np.arange(2)).astype(float)
    return np.column_stack([1 - p, p]), codes, features


def accuracies(truths, codes):
    return (truths[:, None, :] == codes).mean(axis=2)


def test_means_move_as_far_as_asked_and_copies_move_together(crowd):
    posterior, codes, features = crowd
    covariance = 0.06**2 * np.array([[1.0, 1.0, 0.4], [1.0, 1.0, 0.4], [0.4, 0.4, 1.0]])
    directions = independent_directions(features, covariance)
    assert directions.n == 2  # a copy adds no direction
    values = accuracies(tilted_truths(posterior, directions, 2000, np.random.default_rng(1)), codes)
    np.testing.assert_array_equal(values[:, 0], values[:, 1])
    expected = np.einsum("fnc,nc->f", features, posterior) / 400
    np.testing.assert_allclose(values.mean(axis=0), expected, atol=0.006)
    # Drawing each item adds its own chance to what was asked for.
    drawing = np.sqrt((posterior[:, 0] * posterior[:, 1]).sum()) / 400
    np.testing.assert_allclose(values.std(axis=0), np.hypot(0.06, drawing), rtol=0.06)
    assert np.corrcoef(values.T)[0, 2] == pytest.approx(0.4, abs=0.1)


def test_means_cannot_leave_what_is_possible():
    posterior = np.tile([0.02, 0.98], (300, 1))
    features = np.broadcast_to(np.array([0.0, 1.0]), (1, 300, 2))
    truths = tilted_truths(posterior, Directions(features, np.array([0.1])), 1000, np.random.default_rng(0))
    low, middle, high = np.quantile(truths.mean(axis=1), [0.025, 0.5, 0.975])
    assert 0.72 < low < 0.84  # 0.98 less 1.96 times 0.1
    assert middle > 0.95
    assert high == pytest.approx(1.0, abs=0.004)


@pytest.mark.parametrize(
    ("yields", "low", "high"),
    [([False, False], 0.86, 0.92), ([False, True], 0.93, 0.99), ([True, False], 0.78, 0.86)],
    ids=["neither", "the share", "the accuracy"],
)
def test_of_targets_that_exclude_each_other_what_yields_is_off(yields, low, high):
    """An accuracy of 0.99 leaves no room for a share that is 0.2 off."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    posterior = np.where(codes[:, None] == np.arange(2), 0.99, 0.01)
    features = np.stack([codes[:, None] == np.arange(2), np.broadcast_to([False, True], (300, 2))]).astype(float)
    directions = independent_directions(features, np.diag([0.1, 0.05]) ** 2, np.array(yields))
    means = (
        directions.features.reshape(2, -1)
        @ features.reshape(2, -1).T
        @ np.linalg.inv(features.reshape(2, -1) @ features.reshape(2, -1).T)
    )
    tilts = solve_tilts(posterior, directions, np.array([[0.0, 0.2]]) @ means.T, rng)
    assert np.isfinite(tilts).all()
    moved = posterior * np.exp(np.tensordot(tilts[0], directions.features, axes=1))
    moved /= moved.sum(axis=1, keepdims=True)
    accuracy = moved[np.arange(300), codes].mean()
    assert low < accuracy < high


def test_what_is_known_stays(crowd):
    posterior, _, features = crowd
    posterior = posterior.copy()
    posterior[:50] = [1.0, 0.0]
    directions = independent_directions(features[:1], np.array([[0.1**2]]))
    truths = tilted_truths(posterior, directions, 600, np.random.default_rng(0))
    assert (truths[:, :50] == 0).all()
    assert truths[:, 50:].std() > 0


def test_rows_that_stand_for_several_items_are_moved_as_these_items(crowd):
    posterior, _, features = crowd
    times = np.random.default_rng(0).integers(1, 5, 400).astype(float)
    each = np.repeat(np.arange(400), times.astype(int))
    moves, scales = np.array([[0.05], [-0.1]]), np.ones(1)
    rng = np.random.default_rng(0)
    by_rows = solve_tilts(posterior, Directions(features[:1], scales), moves, rng, times)
    by_items = solve_tilts(posterior[each], Directions(features[:1, each], scales), moves, rng)
    np.testing.assert_allclose(by_rows, by_items, rtol=1e-6)


def moved_when_few_answered(n_items, seed):
    """How far the accuracy of a system on 60 items moves, over what is asked, and how far its mean is off."""
    rng = np.random.default_rng(seed)
    n_answered, n_classes = 60, 4
    posterior = rng.dirichlet(np.full(n_classes, 0.4), n_items)
    answered = rng.permutation(n_items)[:n_answered]
    codes = rng.integers(n_classes, size=n_answered)
    features = np.zeros((1 + n_classes, n_items, n_classes))
    features[0, answered, codes] = n_items / n_answered  # the mean is its accuracy
    features[1:] = np.eye(n_classes)[:, None, :]
    covariance = np.diag([0.07, 0.03, 0.03, 0.03, 0.03]) ** 2
    truths = tilted_truths(posterior, independent_directions(features, covariance), 400, rng)
    values = (truths[:, answered] == codes).mean(axis=1)
    own = posterior[answered, codes]
    asked = np.hypot(0.07, np.sqrt((own * (1 - own)).sum()) / n_answered)
    return values.std() / asked, values.mean() - own.mean()


@pytest.mark.parametrize("n_items", [6000, pytest.param(25_000, marks=pytest.mark.slow)])
def test_a_system_that_answered_few_of_many_items_moves_as_far_as_asked(n_items):
    """Tilts found on a few hundred items of all had two or three of its own, and moved its accuracy to an end."""
    ratios, errors = np.array([moved_when_few_answered(n_items, seed) for seed in range(3)]).T
    assert np.abs(errors).max() < 0.02
    assert ratios.mean() == pytest.approx(1.0, abs=0.15)  # of one system it is .73 to 1.28
    assert ratios.max() < 1.6


def test_rows_stand_for_all_of_them():
    rng = np.random.default_rng(0)
    reach, times = rng.exponential(size=(2, 5000)), rng.exponential(size=5000)
    reach[1, 40:] = 0.0
    some, masses = representative_rows(reach, times, 200)
    assert len(some) <= 200
    assert masses.sum() == pytest.approx(times.sum())
    assert masses.max() < 2.5 * 5000 / 200 * times.mean()
    assert (some < 40).sum() >= 20
    for row in reach:
        assert row[some] @ masses == pytest.approx(row @ times, rel=0.1)
    everything, same = representative_rows(reach, times, 5000)
    np.testing.assert_array_equal(everything, np.arange(5000))
    np.testing.assert_array_equal(same, times)


def test_many_classes():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.full(12, 0.3), 200)
    codes = posterior.argmax(axis=1)
    features = (codes[:, None] == np.arange(12))[None].astype(float)
    truths = tilted_truths(posterior, Directions(features, np.array([0.05])), 800, rng)
    assert truths.min() >= 0
    assert truths.max() <= 11
    assert (truths == codes).mean() == pytest.approx(posterior.max(axis=1).mean(), abs=0.01)


@pytest.mark.parametrize(("n_directions", "at_most"), [(1, 0.02), (2, 0.06), (6, 0.1)])
def test_moves_are_normal_and_their_quantiles_hang_little_on_the_seed(n_directions, at_most):
    """Random draws of this number have quantiles with a standard deviation of 0.12 between seeds."""
    ends = []
    for seed in range(60):
        moves = standard_moves(512, n_directions, np.random.default_rng(seed))
        np.testing.assert_allclose(np.cov(moves.T, bias=True), np.eye(n_directions).squeeze(), atol=1e-9)
        ends.append(np.quantile(moves.sum(axis=1) / np.sqrt(n_directions), [0.025, 0.975]))
    assert np.mean(ends, axis=0) == pytest.approx([-1.96, 1.96], abs=0.04)
    assert np.std(ends, axis=0).max() < at_most
    assert standard_moves(3, 0, np.random.default_rng(0)).shape == (3, 0)
    assert np.isfinite(standard_moves(1, 4, np.random.default_rng(0))).all()
