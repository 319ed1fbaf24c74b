"""Concordance and grouped AUC: brute force over pairs, scipy, scikit-learn, both engines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from trueup._base.optional import is_installed
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import GroupedItems, concordance, concordance_draws
from trueup.metrics.score_groups import ascending_order

ENGINES = ["scipy", pytest.param("numba", marks=pytest.mark.skipif(not is_installed("numba"), reason="no numba"))]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    monkeypatch.setenv("TRUEUP_ENGINE", request.param)
    return request.param


def by_pairs(scores, truth, weights=None):
    weights = np.ones(len(scores)) if weights is None else weights
    higher = (truth[:, None] > truth[None]) * weights[:, None] * weights[None]
    right = (scores[:, None] > scores[None]) + 0.5 * (scores[:, None] == scores[None])
    return (higher * right).sum() / higher.sum() if higher.sum() else np.nan


def cases(seed, n_cases):
    """Lists of 1 to 40 items with from none to all scores and truths tied."""
    rng = np.random.default_rng(seed)
    for _ in range(n_cases):
        n = rng.integers(1, 41)
        scores = rng.integers(0, rng.integers(1, 41), (3, n)) - 3.0
        scores[0] = rng.normal(size=n)
        yield scores, rng.integers(0, rng.integers(1, 41), n), rng


def test_all_pairs_with_weights(engine):
    for scores, truth, rng in cases(1, 100):
        weights = rng.exponential(size=(4, len(truth))) * (rng.random((4, len(truth))) < 0.8)
        for row in scores:
            expected = [by_pairs(row, truth, w) for w in weights]
            np.testing.assert_allclose(concordance_draws(row, truth, weights), expected, atol=1e-12)
            assert concordance(row, truth, weights=weights[0]) == pytest.approx(expected[0], nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("n_levels", [2, 16, 5000])
def test_many_items_against_somers(engine, n_levels):
    """Somers' D of scores given the truth is (concordant − discordant) / pairs of different truth."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, n_levels, 20_000)
    scores = np.round(truth / n_levels + rng.normal(size=20_000), 2)
    tau = stats.kendalltau(scores, truth, variant="b").statistic
    ties = [sum(c * (c - 1) // 2 for c in np.unique(x, return_counts=True)[1]) for x in (scores, truth)]
    pairs = 20_000 * 19_999 // 2
    somers = tau * np.sqrt((pairs - ties[0]) / (pairs - ties[1]))
    assert concordance(scores, truth) == pytest.approx((1 + somers) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: concordance([1, 2], [1, 2, 3]), InvalidPredictions, "one for each of 3 items"),
        (lambda: concordance([1, np.nan], [1, 2]), InvalidPredictions, "finite"),
        (lambda: concordance([1, 2], [1, np.nan]), InvalidParameter, "truth must be one finite number"),
        (lambda: concordance([1, 2], [[1, 2]]), InvalidParameter, "truth must be"),
        (lambda: concordance([1, 2], [1, 2], weights=[1, -1]), InvalidParameter, "not negative"),
        (lambda: concordance([1, 2], [1, 2], weights=[1, 1, 1]), InvalidParameter, "weights must have the shape"),
    ],
)
def test_bad_input_is_one_sentence(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@settings(max_examples=150)
@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(1, 3), st.integers(1, 40)),
        elements=st.one_of(
            st.floats(-1e300, 1e300),
            st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, -1.0, -1.0 - 2**-52, 5e-324]),
        ),
    )
)
def test_order_is_that_of_argsort(scores):
    order, moved = ascending_order(scores)
    np.testing.assert_array_equal(order, np.argsort(scores, axis=1, kind="stable"))
    np.testing.assert_array_equal(moved, np.take_along_axis(scores, order, axis=1))


@pytest.mark.parametrize("width", [1e-14, 1e-12, 1e-9, 1.0])
def test_order_of_scores_that_are_packed_alike(width):
    """From almost all to almost no scores lose what tells them apart."""
    rng = np.random.default_rng(6)
    scores = 1 + width * rng.normal(size=(4, 3000))
    np.testing.assert_array_equal(ascending_order(scores)[0], np.argsort(scores, axis=1, kind="stable"))


def group_auc_by_pairs(scores, item, group, positive, mass, n_groups):
    values = np.full(n_groups, np.nan)
    for g in range(n_groups):
        member = group == g
        if positive[member].any() and not positive[member].all():
            values[g] = by_pairs(scores[item[member]], positive[member].astype(int), mass[member])
    return values


def test_groups_by_pairs(engine):
    rng = np.random.default_rng(7)
    for _ in range(60):
        n_entries = rng.integers(0, 60)
        scores = rng.normal(size=(3, 12))
        scores[1] = rng.integers(0, 3, 12)
        item, group = rng.integers(0, 12, n_entries), rng.integers(0, 5, n_entries)
        positive, mass = rng.random(n_entries) < 0.4, rng.integers(1, 3, n_entries).astype(float)
        groups = GroupedItems.from_entries(item, group, positive, n_items=12, n_groups=5, mass=mass)
        expected = [group_auc_by_pairs(row, item, group, positive, mass, 5) for row in scores]
        np.testing.assert_allclose(groups.auc(scores), expected, atol=1e-12)
