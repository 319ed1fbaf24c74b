"""Expected precision@k and average precision, and the expected change: against all truths of a few items."""

import itertools

import numpy as np
import pytest
from scipy.special import roots_legendre

from trueup.active.influence import (
    expected_average_precision,
    expected_change,
    expected_precision_at_k,
    paper_change,
    positive_slopes,
    precision_at_k_slopes,
    precision_sum,
)
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import average_precision, get_metric, precision_at_k
from trueup.metrics.score_groups import rank_items


def average_precision_slopes(p, scores, n_positives=None):
    return positive_slopes(get_metric("average_precision", [0, 1]), p, scores, n_positives=n_positives)[1]


def some_list(seed, *, n=8, tied=False, n_vetted=3):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p[rng.permutation(n)[:n_vetted]] = rng.integers(0, 2, n_vetted)
    scores = rng.integers(0, 4, n).astype(float) if tied else rng.normal(size=n)
    return p, scores


def all_truths(p):
    """Every truth of the items, shape (2^n, n), and its probability."""
    truths = np.array(list(itertools.product([0, 1], repeat=len(p))))
    return truths, np.where(truths, p, 1 - p).prod(axis=1)


def mean_ap(p, scores, n_positives=None):
    truths, chances = all_truths(p)
    values = average_precision(truths, scores)
    if n_positives is not None:  # the same sum over another denominator
        values = np.nan_to_num(values) * truths.sum(axis=1) / n_positives
    defined = ~np.isnan(values)
    return chances[defined] @ values[defined] / chances[defined].sum()


LISTS = [(seed, tied) for seed in range(4) for tied in (False, True)]


@pytest.mark.parametrize(("seed", "tied"), LISTS)
def test_precision_at_k_is_the_mean_over_all_truths(seed, tied):
    p, scores = some_list(seed, tied=tied)
    truths, chances = all_truths(p)
    for k in (1, 3, 8):
        expected = chances @ precision_at_k(truths, scores, k=k)
        assert expected_precision_at_k(p, scores, k=k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("seed", "tied"), LISTS)
@pytest.mark.parametrize("n_positives", [None, 5.0])
def test_average_precision_is_the_mean_over_all_truths(seed, tied, n_positives):
    p, scores = some_list(seed, tied=tied)
    found = expected_average_precision(p, scores, n_positives=n_positives)
    assert found == pytest.approx(mean_ap(p, scores, n_positives), abs=1e-10)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])  # few and many expected positives: two rules of integration
def test_long_lists_against_exact_integration_of_the_polynomial(share):
    rng = np.random.default_rng(3)
    n = 600
    p = rng.random(n) * share
    p[:20] = rng.integers(0, 2, 20)
    scores = rng.normal(size=n) + 2 * p
    ranked = rank_items(scores)
    nodes, weights = roots_legendre(n // 2 + 1)  # exact for the degree of the integrand
    exact = 0.0
    for t, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
        base = 1 - p + p * t
        exact += weight * np.exp(np.log(base).sum()) / t * precision_sum(p * t / base, ranked)
    exact /= 1 - np.prod(1 - p)
    assert expected_average_precision(p, scores) == pytest.approx(exact, abs=1e-9)


def test_second_order_is_near_and_the_plain_ratio_is_farther():
    p, scores = some_list(1, n=60, n_vetted=10)
    exact = expected_average_precision(p, scores)
    second = expected_average_precision(p, scores, method="second-order")
    ratio = precision_sum(p, rank_items(scores)) / p.sum()
    assert abs(second - exact) < 5e-4
    assert abs(second - exact) < abs(ratio - exact) / 5


def test_no_positive_possible_is_undefined():
    assert np.isnan(expected_average_precision([0.0, 0.0], [1, 2]))


@pytest.mark.parametrize("metric", ["average_precision", "precision@3"])
@pytest.mark.parametrize(("seed", "tied"), LISTS)
def test_expected_change_by_enumeration(seed, tied, metric):
    p, scores = some_list(seed, tied=tied, n_vetted=2)

    def value(p):
        return expected_precision_at_k(p, scores, k=3) if "@" in metric else mean_ap(p, scores, 4.0)

    changes = []
    for j in range(len(p)):
        forced = [value(np.where(np.arange(len(p)) == j, z, p)) for z in (0, 1)]
        changes.append((1 - p[j]) * abs(forced[0] - value(p)) + p[j] * abs(forced[1] - value(p)))
    at_k = precision_at_k_slopes(scores, k=3)
    slopes = at_k if "@" in metric else average_precision_slopes(p, scores, n_positives=4.0)
    assert expected_change(p, slopes) == pytest.approx(changes, abs=1e-12)


def test_equation_12_as_printed():
    p = np.array([0.5, 1.0, 0.4, 0.3])
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    vetted = np.array([False, True, False, False])
    # r is the share of unvetted items above, of the place: 0/1, -, 1/3, 2/4
    expected = [0.0, 0.0, 1 / 3 * 0.4 * 0.6 / 2.0, 2 / 4 * 0.3 * 0.7 / 2.0]
    assert paper_change(p, scores, vetted, n_positives=2.0) == pytest.approx(expected)
    assert paper_change(p, scores, vetted) == pytest.approx(np.array(expected) * 2.0 / p.sum())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: expected_precision_at_k([0.5, 0.5], [1, 2], k=3), InvalidParameter, "at most the number of items"),
        (lambda: expected_precision_at_k([0.5, 1.5], [1, 2], k=1), InvalidParameter, "probabilities must be"),
        (lambda: expected_precision_at_k([0.5], [1, 2], k=1), InvalidPredictions, "scores must be one for each"),
        (lambda: expected_average_precision([0.5], [np.nan]), InvalidPredictions, "finite"),
        (lambda: expected_average_precision([0.5], [1], n_positives=0), InvalidParameter, "n_positives"),
        (lambda: expected_average_precision([0.5], [1], method="guess"), InvalidParameter, "`method` must be one of"),
        (lambda: paper_change([0.5], [1], [True, False]), InvalidParameter, "vetted must be"),
    ],
    ids=["k", "probability", "length", "nan", "positives", "method", "vetted"],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
