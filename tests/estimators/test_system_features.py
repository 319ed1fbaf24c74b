"""What systems say about the truth of an item before the votes speak: features and the prior of an item."""

import numpy as np
import pytest

import trueup as tu
from trueup.estimators.system_features import main_features, principal_features, system_prior


def crowd(n_items, *, accuracy=(0.9, 0.85, 0.8, 0.7)):
    rng = np.random.default_rng(0)
    truth = (rng.random(n_items) < 0.4).astype(int)
    votes = np.stack([np.where(rng.random(n_items) < a, truth, 1 - truth) for a in accuracy], axis=1)
    return tu.Labels.from_matrix(votes, classes=[0, 1]), truth, rng


def test_items_without_a_prediction_have_an_intercept_of_their_own():
    rng = np.random.default_rng(3)
    truth = (rng.random(4000) < 0.3).astype(int)
    said = np.where(truth == 1, rng.random(4000) < 0.5, rng.random(4000) < 0.02).astype(int)  # precise, but misses half
    labels = tu.Labels.from_matrix(truth[:, None], classes=[0, 1])
    aligned = tu.Predictions.from_classes(dict(enumerate(said[:800].tolist()))).align(labels, missing="ignore")
    prior = system_prior(aligned, 2, used="classes")
    log_likelihood = np.log(np.where(truth[:, None] == [0, 1], 1 - 1e-9, 1e-9))
    w = prior.draws_given_votes(log_likelihood, 200, rng).coefficients.mean(axis=0)
    p = prior.probabilities(w)[:, 1]
    for group in (np.flatnonzero(said[:800] == 1), np.flatnonzero(said[:800] == 0), np.arange(800, 4000)):
        assert p[group][0] == pytest.approx(truth[group].mean(), abs=0.03)


@pytest.mark.parametrize("used", ["classes", "scores"])
def test_copies_of_a_system_are_not_believed_more_before_the_votes_speak(used):
    labels, _, rng = crowd(50)
    output = rng.normal(size=50)
    spreads = []
    for n in (1, 3, 8):
        named = {k: tu.Predictions.from_scores(output, threshold=0.0) for k in range(n)}
        prior = system_prior(tu.Predictions.stack(named).align(labels), 2, used=used)
        x = prior._rows[:, 1] if prior._row_of is None else prior._rows[prior._row_of, 1]
        spreads.append(np.sqrt((x**2 / prior.precision).sum(axis=1)))
    np.testing.assert_allclose(spreads[1], spreads[0])
    np.testing.assert_allclose(spreads[2], spreads[0])


def test_components_do_not_depend_on_how_many_systems_are_held(monkeypatch):
    labels, truth, rng = crowd(60)
    named = {k: tu.Predictions.from_scores(truth + rng.normal(size=60)) for k in range(12)}
    aligned = tu.Predictions.stack(named).align(labels)
    whole = principal_features(aligned, 2, "scores")
    monkeypatch.setattr("trueup.estimators.system_features._BLOCK", 300)
    np.testing.assert_allclose(principal_features(aligned, 2, "scores"), whole, atol=1e-9)
    flat = main_features(aligned, 2, "scores").reshape(12, -1)
    _, _, directions = np.linalg.svd(flat, full_matrices=False)
    inside = whole.reshape(len(whole), -1) @ directions[: len(whole)].T
    np.testing.assert_allclose((inside**2).sum(), (whole**2).sum())
