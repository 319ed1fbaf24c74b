"""Urkullu's three views: by hand, by brute force, against each other, and their bootstrap."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

import trueup as tu
from trueup._base.optional import is_installed
from trueup.estimators.published.urkullu2019 import VIEWS, bootstrap_view, deterministic, probabilistic, subjectivist
from trueup.exceptions import DataWarning, InvalidParameter, InvalidPredictions

ENGINES = ["scipy", pytest.param("numba", marks=pytest.mark.skipif(not is_installed("numba"), reason="no numba"))]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    monkeypatch.setenv("TRUEUP_ENGINE", request.param)


def small():
    """Three items of clear majority, one tie, one without votes; four labelers, one with one class only."""
    votes = [[1, 1, 0, -1], [0, 0, 0, -1], [1, 1, -1, 1], [0, 1, -1, -1], [-1, -1, -1, -1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return tu.Labels.from_matrix(votes, items=list("abcde"), labelers=list("wxyz"), classes=[0, 1])


SCORES = np.array([[0.9, 0.1, 0.5, 0.3, 0.4], [0.2, 0.2, 0.2, 0.7, 0.1]])


def concordance_by_pairs(scores, truth):
    higher = truth[:, None] > truth[None]
    return (higher * ((scores[:, None] > scores[None]) + 0.5 * (scores[:, None] == scores[None]))).sum() / higher.sum()


def test_deterministic_by_hand():
    seen = set()
    for seed in range(30):
        result = deterministic(small(), SCORES, random_state=seed)
        assert (result.unvoted_items, result.tied_items, result.skipped_labelers) == (1, 2, 0)
        seen.add(tuple(result.values.round(12)))
    possible = {
        tuple(np.round([roc_auc_score([1, 0, 1, d, e], row) for row in SCORES], 12)) for d in (0, 1) for e in (0, 1)
    }
    assert seen == possible


def test_subjectivist_by_hand(engine):
    result = subjectivist(small(), SCORES)
    of_w = [roc_auc_score([1, 0, 1, 0], row[:4]) for row in SCORES]
    of_x = [roc_auc_score([1, 0, 1, 1], row[:4]) for row in SCORES]
    np.testing.assert_allclose(result.values, (4 * np.array(of_w) + 4 * np.array(of_x)) / 8)
    np.testing.assert_allclose(result.spread, np.abs(np.array(of_w) - of_x) / 2, atol=1e-12)
    assert (result.skipped_labelers, result.unvoted_items) == (2, 1)


def test_probabilistic_by_hand(engine):
    truth = np.array([2.5 / 4, 0.5 / 4, 3.5 / 4, 1.5 / 3, 0.5])
    result = probabilistic(small(), SCORES)
    np.testing.assert_allclose(result.values, [concordance_by_pairs(row, truth) for row in SCORES])
    assert result.unvoted_items == 1


def test_vetted_truths_stand():
    labels = small().with_gold({"d": 1, "e": 0, "b": 1})
    result = deterministic(labels, SCORES, random_state=0)
    np.testing.assert_allclose(result.values, [roc_auc_score([1, 1, 1, 1, 0], row) for row in SCORES])
    assert (result.tied_items, result.unvoted_items) == (0, 0)
    truth = np.array([2.5 / 4, 1, 3.5 / 4, 1, 0])
    np.testing.assert_allclose(
        probabilistic(labels, SCORES).values, [concordance_by_pairs(row, truth) for row in SCORES]
    )
    np.testing.assert_allclose(subjectivist(labels, SCORES).values, subjectivist(small(), SCORES).values)


def test_repeated_votes_and_abstentions(engine):
    """A vote given twice counts twice; an abstention kept as an answer is no vote for a class."""
    rows = {"item": list("aabcabc"), "labeler": list("wwwwxxx"), "label": [1, 1, 0, 1, 0, 1, "?"]}
    rows["label"] = [str(v) for v in rows["label"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        labels = tu.Labels.from_frame(rows, abstain="?", abstain_policy="answer")
    scores = np.array([[0.4, 0.3, 0.1]])
    assert labels.n_answers == 3
    of_w = (2 * 1 + 1 * 0) / 3  # a (twice) above b, c below b
    of_x = 0.0
    np.testing.assert_allclose(subjectivist(labels, scores).values, (4 * of_w + 2 * of_x) / 6)
    truth = np.array([2.5 / 4, 1.5 / 3, 1.5 / 2])
    np.testing.assert_allclose(probabilistic(labels, scores).values, concordance_by_pairs(scores[0], truth))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda labels: probabilistic(labels, np.zeros((2, 4))), InvalidPredictions, "one for each item"),
        (lambda labels: probabilistic(labels, [0, 1, 2, 3, np.nan]), InvalidPredictions, "finite"),
        (lambda labels: probabilistic(labels, np.arange(5), positive=2), InvalidParameter, "positive must be 0 or 1"),
        (lambda labels: bootstrap_view(labels, np.arange(5), view="dgt"), InvalidParameter, "`view` must be one of"),
        (lambda labels: bootstrap_view(labels, np.arange(5), n_draws=0), InvalidParameter, "n_draws"),
    ],
)
def test_bad_input_is_one_sentence(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(small())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("view", VIEWS)
def test_draws_are_repeatable_paired_and_around_the_value(view):
    data = tu.simulate.urkullu(n_items=200, n_classifiers=2, labels_per_item=9, random_state=3)
    scores = np.vstack([data.scores, -data.scores[:1]])
    draws = bootstrap_view(data.labels, scores, view=view, random_state=4)
    assert draws.shape == (3, 400)
    np.testing.assert_array_equal(draws, bootstrap_view(data.labels, scores, view=view, random_state=4))
    np.testing.assert_allclose(draws[0] + draws[2], 1, atol=1e-12)
    function = {"deterministic": deterministic, "subjectivist": subjectivist, "probabilistic": probabilistic}[view]
    options = {"random_state": 0} if view == "deterministic" else {}
    value = function(data.labels, scores, **options).values
    assert (np.abs(draws.mean(axis=1) - value) < draws.std(axis=1)).all()


def clean_crowd(rng, n_items=120, mean=1.0):
    """Three labelers who are always right, and normal scores: the AUC of the population is Φ(mean/√2)."""
    truth = rng.integers(0, 2, n_items)
    labels = tu.Labels.from_matrix(np.repeat(truth[:, None], 3, axis=1), classes=[0, 1])
    return labels, rng.normal(size=n_items) + mean * truth, norm.cdf(mean / np.sqrt(2))


def subjective_crowd(rng, n_labelers=60, votes_each=20):
    """Labelers with items of their own and tastes of their own: the population value is E Φ(taste/√2)."""
    truth = rng.integers(0, 2, (n_labelers, votes_each))
    truth[:, :2] = [0, 1]
    taste = rng.choice([0.2, 1.8], n_labelers)
    scores = rng.normal(size=truth.shape) + taste[:, None] * truth
    columns = {
        "item": np.arange(truth.size),
        "labeler": np.repeat(np.arange(n_labelers), votes_each),
        "label": truth.ravel(),
    }
    return tu.Labels.from_frame(columns), scores.ravel(), norm.cdf(np.array([0.2, 1.8]) / np.sqrt(2)).mean()


def count_covered(view, crowd, n_runs, seed):
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(n_runs):
        labels, scores, target = crowd(rng)
        draws = bootstrap_view(labels, scores, view=view, n_draws=200, random_state=rng)[0]
        low, high = np.quantile(draws, [0.025, 0.975])
        covered += low <= target <= high
    return covered


CROWDS = {"deterministic": clean_crowd, "probabilistic": clean_crowd, "subjectivist": subjective_crowd}


@pytest.mark.parametrize("view", VIEWS)
def test_intervals_cover_the_population_value(view):
    """60 runs at 95%, 93% allowed for the bootstrap's narrowness: within the 0.999 range of a binomial."""
    covered = count_covered(view, CROWDS[view], 60, seed=5)
    assert covered >= binom.ppf(0.0005, 60, 0.93)


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_intervals_cover_the_population_value_often(view):
    covered = count_covered(view, CROWDS[view], 1000, seed=6)
    low, high = binom.ppf([0.0005, 0.9995], 1000, [0.93, 0.96])
    assert low <= covered <= high
