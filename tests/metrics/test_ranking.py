"""Metrics of scores on drawn truths: against scikit-learn row by row, brute force, and bootstrap lists."""

import itertools

import numpy as np
import pytest
from sklearn import metrics as sk

from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import (
    auc,
    auc_draws,
    auc_ovo,
    auc_ovr,
    average_precision,
    ndcg,
    partial_auc,
    precision_at_k,
    recall_at_k,
)
from trueup.metrics import score_groups as _score_groups

N_DRAWS, N_ITEMS = 8, 40
SCORES = {
    "distinct": lambda rng: rng.normal(size=N_ITEMS),
    "tied": lambda rng: rng.integers(0, 5, N_ITEMS).astype(float),
    "constant": lambda rng: np.full(N_ITEMS, 0.3),
}
# ours, scikit-learn's (y, scores, sample_weight)
BINARY = {
    "auc": (auc, lambda y, s, w: sk.roc_auc_score(y, s, sample_weight=w)),
    "partial_auc 0.1": (
        lambda t, s, w=None: partial_auc(t, s, w, max_fpr=0.1),
        lambda y, s, w: sk.roc_auc_score(y, s, sample_weight=w, max_fpr=0.1),
    ),
    "partial_auc 0.5": (
        lambda t, s, w=None: partial_auc(t, s, w, max_fpr=0.5),
        lambda y, s, w: sk.roc_auc_score(y, s, sample_weight=w, max_fpr=0.5),
    ),
    "partial_auc 1": (
        lambda t, s, w=None: partial_auc(t, s, w, max_fpr=1),
        lambda y, s, w: sk.roc_auc_score(y, s, sample_weight=w, max_fpr=1),
    ),
    "average_precision": (average_precision, lambda y, s, w: sk.average_precision_score(y, s, sample_weight=w)),
}
WEIGHTED = {
    **{name: ours for name, (ours, _) in BINARY.items()},
    "precision_at_k": lambda t, s, w=None: precision_at_k(t, s, w, k=7),
    "recall_at_k": lambda t, s, w=None: recall_at_k(t, s, w, k=7),
    "ndcg": ndcg,
    "ndcg_at_k": lambda t, s, w=None: ndcg(t, s, w, k=7),
}


def draws_of_truth(rng, n_draws=N_DRAWS, n_items=N_ITEMS, chance=0.3):
    truths = rng.random((n_draws, n_items)) < chance
    truths[:, 0], truths[:, 1] = True, False  # both classes occur
    return truths


@pytest.mark.parametrize("kind", list(SCORES))
@pytest.mark.parametrize("name", list(BINARY))
def test_as_scikit_learn_row_by_row(name, kind):
    ours, theirs = BINARY[name]
    rng = np.random.default_rng(2)
    truths, scores = draws_of_truth(rng), SCORES[kind](rng)
    weights = rng.exponential(size=truths.shape)
    weights[:, 5:8] = 0.0
    np.testing.assert_allclose(ours(truths, scores), [theirs(y, scores, None) for y in truths], atol=1e-12)
    expected = [theirs(y, scores, w) for y, w in zip(truths, weights, strict=True)]
    np.testing.assert_allclose(ours(truths, scores, weights), expected, atol=1e-12)


@pytest.mark.parametrize("k", [None, 1, 7, N_ITEMS])
@pytest.mark.parametrize("kind", list(SCORES))
def test_ndcg_as_scikit_learn(kind, k):
    rng = np.random.default_rng(3)
    truths, scores = draws_of_truth(rng), SCORES[kind](rng)
    expected = [sk.ndcg_score(y[None].astype(float), scores[None], k=k) for y in truths]
    np.testing.assert_allclose(ndcg(truths, scores, k=k), expected, atol=1e-12)


@pytest.mark.parametrize("kind", list(SCORES))
@pytest.mark.parametrize("name", list(WEIGHTED))
def test_whole_weights_are_a_list_with_repeats(name, kind):
    function = WEIGHTED[name]
    rng = np.random.default_rng(4)
    truths, scores = draws_of_truth(rng), SCORES[kind](rng)
    counts = rng.multinomial(N_ITEMS, np.full(N_ITEMS, 1 / N_ITEMS), size=N_DRAWS)
    repeated = [function(np.repeat(y, c)[None], np.repeat(scores, c))[0] for y, c in zip(truths, counts, strict=True)]
    assert np.isfinite(repeated).sum() > N_DRAWS // 2
    np.testing.assert_allclose(function(truths, scores, counts), repeated, atol=1e-12)


def pairs_ordered_right(truth, scores):
    positive, negative = scores[truth == 1], scores[truth == 0]
    wins = [1.0 if p > m else 0.5 if p == m else 0.0 for p in positive for m in negative]
    return np.mean(wins) if wins else np.nan


def test_auc_by_pairs_of_all_truths_of_six_items():
    scores = np.array([0.2, 0.2, 0.7, 0.1, 0.7, 0.7])
    truths = np.array(list(itertools.product([0, 1], repeat=6)))
    expected = [pairs_ordered_right(truth, scores) for truth in truths]
    assert np.isnan(expected).sum() == 2
    np.testing.assert_allclose(auc(truths, scores), expected, atol=1e-15)
    np.testing.assert_allclose(auc(truths, scores, np.ones(truths.shape)), expected, atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_ties_at_the_boundary_are_the_mean_over_all_orders(k):
    scores = np.array([0.5, 0.9, 0.5, 0.5, 0.1])
    truths = np.array(list(itertools.product([0, 1], repeat=5)))[1:]
    hits = []
    for order in itertools.permutations(range(5)):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            hits.append(truths[:, list(order[:k])].sum(axis=1))
    mean_hits = np.mean(hits, axis=0)
    np.testing.assert_allclose(precision_at_k(truths, scores, k=k), mean_hits / k, atol=1e-14)
    np.testing.assert_allclose(recall_at_k(truths, scores, k=k), mean_hits / truths.sum(axis=1), atol=1e-14)


def test_undefined_is_nan():
    one_class = np.array([[1, 1, 1], [0, 0, 0]])
    scores = [0.1, 0.2, 0.3]
    for function in (auc, lambda t, s, w=None: partial_auc(t, s, w, max_fpr=0.2)):
        assert np.isnan(function(one_class, scores)).all()
        assert np.isnan(function(one_class, scores, np.full(one_class.shape, 0.1))).all()
    for function in (average_precision, ndcg, lambda t, s, w=None: recall_at_k(t, s, w, k=2)):
        for weights in (None, np.full(one_class.shape, 0.1)):
            values = function(one_class, scores, weights)
            assert np.isfinite(values[0])
            assert np.isnan(values[1])
    assert precision_at_k(one_class, scores, k=2).tolist() == [1.0, 0.0]


def test_drawn_truths_have_the_exact_distribution():
    """Four items: the mean over all 16 truths with two classes; 20,000 draws, five standard errors."""
    chance, scores = np.array([0.2, 0.6, 0.5, 0.9]), np.array([[0.1, 0.3, 0.2, 0.3], [4.0, 3.0, 2.0, 1.0]])
    truths = np.array(list(itertools.product([0, 1], repeat=4)))
    probability = np.where(truths == 1, chance, 1 - chance).prod(axis=1)
    draws = auc_draws(chance, scores, 20_000, random_state=0)
    undefined = probability[[0, -1]].sum()
    assert abs(np.isnan(draws[:, 0]).mean() - undefined) < 5 * np.sqrt(undefined * (1 - undefined) / 20_000)
    for s in range(2):
        values = np.array([pairs_ordered_right(truth, scores[s]) for truth in truths])
        exact = np.nansum(values * probability) / (1 - undefined)
        sample = draws[:, s][~np.isnan(draws[:, s])]
        assert abs(sample.mean() - exact) < 5 * sample.std() / np.sqrt(len(sample))


def test_drawn_truths_are_shared_by_systems_and_repeatable(monkeypatch):
    rng = np.random.default_rng(9)
    chance, scores = rng.random(50), rng.random((3, 50))
    scores[2] = -scores[0]
    draws = auc_draws(chance, scores, 30, random_state=5)
    np.testing.assert_allclose(draws[:, 0] + draws[:, 2], 1, atol=1e-14)
    monkeypatch.setattr(_score_groups, "_BLOCK", 120)
    np.testing.assert_array_equal(auc_draws(chance, scores, 30, random_state=5), draws)
    np.testing.assert_array_equal(auc_draws(chance, scores[1], 30, random_state=5)[:, 0], draws[:, 1])


def test_certain_items_are_certain():
    draws = auc_draws([0.0, 1.0, 1.0, 0.0], [1.0, 2.0, 3.0, 2.5], 500, random_state=1)
    assert np.unique(draws).tolist() == [0.75]


def class_data(seed, n_classes=4, tied=False):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(n_classes), N_ITEMS)
    if tied:
        probabilities = np.round(probabilities * 5 + 0.2)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    truths = rng.integers(0, n_classes, (N_DRAWS, N_ITEMS))
    truths[:, :n_classes] = np.arange(n_classes)  # all classes occur, else scikit-learn refuses
    return truths, probabilities, rng


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_ovr_as_scikit_learn(n_classes, average, tied):
    truths, probabilities, rng = class_data(10, n_classes, tied)
    weights = rng.exponential(size=truths.shape)
    kwargs = {"multi_class": "ovr", "average": average}
    expected = [sk.roc_auc_score(y, probabilities, **kwargs) for y in truths]
    np.testing.assert_allclose(auc_ovr(truths, probabilities, average=average), expected, atol=1e-12)
    expected = [
        sk.roc_auc_score(y, probabilities, sample_weight=w, **kwargs) for y, w in zip(truths, weights, strict=True)
    ]
    np.testing.assert_allclose(auc_ovr(truths, probabilities, weights, average=average), expected, atol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_hand_till_as_scikit_learn(n_classes, tied):
    truths, probabilities, rng = class_data(11, n_classes, tied)
    expected = [sk.roc_auc_score(y, probabilities, multi_class="ovo") for y in truths]
    np.testing.assert_allclose(auc_ovo(truths, probabilities), expected, atol=1e-12)
    counts = rng.multinomial(N_ITEMS, np.full(N_ITEMS, 1 / N_ITEMS), size=N_DRAWS)
    repeated = [
        auc_ovo(np.repeat(y, c)[None], np.repeat(probabilities, c, axis=0))[0]
        for y, c in zip(truths, counts, strict=True)
    ]
    np.testing.assert_allclose(auc_ovo(truths, probabilities, counts), repeated, atol=1e-12)


WRONG_CALLS = {
    InvalidParameter: [
        lambda: auc([[0, 2]], [1, 2]),
        lambda: auc([[[0]]], [1]),
        lambda: auc([[0, 1]], [1, 2], [[1, -1]]),
        lambda: auc([[0, 1]], [1, 2], [[1, 1, 1]]),
        lambda: partial_auc([[0, 1]], [1, 2], max_fpr=0),
        lambda: partial_auc([[0, 1]], [1, 2], max_fpr=1.5),
        lambda: precision_at_k([[0, 1]], [1, 2], k=3),
        lambda: recall_at_k([[0, 1]], [1, 2], k=0),
        lambda: ndcg([[0, 1]], [1, 2], k=9),
        lambda: auc_draws([0.5, 2], [1, 2], 10),
        lambda: auc_ovr([[0, 2]], [[0.5, 0.5]] * 2),
        lambda: auc_ovo([[0.5, 1]], [[0.5, 0.5]] * 2),
        lambda: auc_ovr([[0, 1]], [[0.5, 0.5]] * 2, average="mean"),
    ],
    InvalidPredictions: [
        lambda: auc([[0, 1]], [1, 2, 3]),
        lambda: auc([[0, 1]], [1, np.nan]),
        lambda: auc([[0, 1]], ["a", "b"]),
        lambda: auc_draws([0.5, 0.5], [1, 2, 3], 10),
        lambda: auc_ovr([[0, 1]], [0.5, 0.5]),
        lambda: auc_ovr([[0, 1]], [[0.5, 0.5]] * 3),
        lambda: auc_ovo([[0, 1]], [[0.5, 0.9]] * 2),
    ],
}


@pytest.mark.parametrize("error", WRONG_CALLS)
def test_bad_input_is_one_sentence(error):
    for call in WRONG_CALLS[error]:
        with pytest.raises(error) as caught:
            call()
        assert "\n" not in str(caught.value)
