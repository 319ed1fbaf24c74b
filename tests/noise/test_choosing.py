"""Held-out votes, stacks of models, and models by name."""

import numpy as np
import pytest

from trueup import Labels, noise, simulate
from trueup.exceptions import DataWarning, InvalidLabels, InvalidParameter, NotFitted
from trueup.noise.registry import best_of, split_votes, stacking_weights

# ---------------------------------------------------------------------- held-out votes


def a_crowd():
    counts = [[4, 1], [0, 3], [1, 0], [2, 2], [7, 6]] * 3
    return Labels.from_counts(counts)


def some_votes():
    return simulate.dawid_skene(n_items=40, n_labelers=6, votes_per_item=3, random_state=0).labels


@pytest.mark.parametrize("make", [a_crowd, some_votes])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_each_vote_is_held_out_once(make, n_folds):
    labels = make()
    folds = split_votes(labels, n_folds=n_folds, random_state=0)
    assert len(folds) == n_folds
    held = np.sort(np.concatenate([fold.held for fold in folds]))
    alone = int((labels.votes_per_item == 1).sum())
    assert len(held) == labels.n_votes - alone
    assert len(np.unique(held)) == len(held)
    frame = labels.to_frame(backend="pandas")
    for fold in folds:
        assert fold.rest.n_votes == labels.n_votes - len(fold.held)
        # What is held out and what is left make up all votes.
        column = fold.labeler * labels.n_answers + fold.answer
        back = fold.rest.votes.toarray()
        np.add.at(back, (fold.item, column), 1)
        np.testing.assert_array_equal(back, labels.votes.toarray())
        # Each held-out vote is at its place in the frame, and something is left to predict it from.
        assert (labels.items[fold.item] == frame["item"].to_numpy()[fold.held]).all()
        assert (labels.answers[fold.answer] == frame["label"].to_numpy()[fold.held]).all()
        assert (fold.rest.votes_per_item[fold.item] >= 1).all()


def test_scores_are_log_probabilities_given_the_other_votes():
    labels = some_votes()
    matrices = np.array([[[p, 1 - p], [0.4, 0.6]] for p in np.linspace(0.6, 0.95, 6)])
    prior = np.array([0.3, 0.7])
    scores = noise.heldout_scores(noise.Confusion(matrices, prior=prior), labels, n_folds=3, random_state=1)
    item, labeler, answer, _ = labels.vote_table()
    for k in range(0, len(item), 7):
        joint = prior.copy()
        for j in np.flatnonzero(item == item[k]):
            if j != k:
                joint = joint * matrices[labeler[j], :, answer[j]]
        expected = np.log(joint / joint.sum() @ matrices[labeler[k], :, answer[k]])
        assert scores[k] == pytest.approx(expected, rel=1e-9)


def test_held_out_votes_prefer_the_model_that_made_them():
    data = simulate.dawid_skene(n_items=600, n_labelers=8, accuracy=(0.5, 0.95), random_state=0)
    models = [noise.Majority(), noise.DawidSkene()]
    assert best_of(models, data.labels) is models[1]


def test_single_votes_are_not_scored():
    assert np.isnan(noise.heldout_scores(noise.Majority(), a_crowd())).sum() == 3
    labels = Labels.from_matrix([[0, -1], [-1, 1], [1, -1]])
    with pytest.raises(InvalidLabels, match="no item has two votes"):
        noise.heldout_scores(noise.Majority(), labels)
    with pytest.raises(InvalidParameter, match="n_folds"):
        noise.heldout_scores(noise.Majority(), some_votes(), n_folds=1)
    with pytest.warns(DataWarning, match="no item has two votes"):
        stack = noise.choose(labels, models=[noise.Majority(), noise.OneCoin()])
    assert isinstance(stack.best_, noise.Majority)
    assert "could not be compared" in stack.reason_


def objective(scores, weights):
    return np.log(np.exp(scores) @ weights).mean()


def test_weights_maximise_the_stacked_score():
    rng = np.random.default_rng(0)
    scores = np.log(rng.beta(2, 2, size=(500, 4)))
    scores[:, 3] -= 2.0
    weights = stacking_weights(scores)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    assert weights[3] < 0.01
    best = objective(scores, weights)
    others = np.vstack([rng.dirichlet(np.ones(4), size=300), rng.dirichlet(np.full(4, 0.2), size=300), np.eye(4)])
    assert best >= max(objective(scores, w) for w in others) - 1e-9
    # Kuhn and Tucker: no model would gain by more weight.
    slope = (np.exp(scores) / (np.exp(scores) @ weights)[:, None]).mean(axis=0)
    assert slope.max() == pytest.approx(1.0, abs=1e-3)


def test_a_stack_mixes_its_members_and_says_so():
    labels = simulate.dawid_skene(n_items=300, n_labelers=6, accuracy=(0.5, 0.95), random_state=2).labels
    stack = noise.fit(labels, "auto", models=[noise.Majority(), noise.OneCoin(), noise.DawidSkene()])
    assert isinstance(stack, noise.Stack)
    weights = [c.weight for c in stack.candidates_]
    assert sum(weights) == pytest.approx(1.0)
    assert weights == sorted(weights, reverse=True)
    assert stack.best_ is stack.candidates_[0].model
    assert not isinstance(stack.best_, noise.Majority)
    assert type(stack.best_).__name__ in stack.reason_
    assert f"{weights[0]:.0%}" in stack.reason_
    mixture = sum(c.weight * c.model.posterior(labels) for c in stack.candidates_ if c.weight > 0)
    np.testing.assert_allclose(stack.posterior(labels), mixture)
    np.testing.assert_allclose(stack.prior_.sum(), 1.0)
    joint = np.exp(stack.log_likelihood(labels)) * stack.prior_
    np.testing.assert_allclose(joint / joint.sum(axis=1, keepdims=True), mixture, atol=1e-9)


def test_without_time_only_the_first_is_tried():
    labels = some_votes()
    stack = noise.choose(labels, models=[noise.OneCoin(), noise.DawidSkene(), noise.GLAD()], time_budget=0.0)
    assert isinstance(stack.best_, noise.OneCoin)
    assert [c.weight for c in stack.candidates_] == [1.0, 0.0, 0.0]
    assert np.isnan([c.score for c in stack.candidates_]).tolist() == [False, True, True]
    assert "2 models were not tried within the time budget" in stack.reason_


def test_models_by_name():
    names = noise.list_models()
    assert set(names) >= {"majority", "one-coin", "dawid-skene", "glad", "difficulty"}
    assert names == sorted(names)
    for name in names:
        model = noise.resolve(name)
        assert model.alias == name
        assert type(model) is type(noise.get_model(name))
        assert noise.resolve(model) is model
        assert not model.is_fitted
        assert not model.is_known
    assert isinstance(noise.resolve("AUTO"), noise.Stack)
    assert isinstance(noise.get_model("Dawid_Skene", pooling=0), noise.DawidSkene)
    assert noise.get_model("one_coin", right=5.0).right == 5.0


@pytest.mark.parametrize("name", ["clusters", "Subtypes", "shared_difficulty", "variational"])
def test_a_removed_model_says_what_to_do_instead(name):
    for ask in (noise.get_model, noise.resolve, lambda name: noise.fit(some_votes(), name)):
        with pytest.raises(InvalidParameter, match="no longer a noise model of trueup; leave `noise` out") as error:
            ask(name)
        assert error.value.parameter == "noise"


def test_bad_models_get_a_sentence():
    with pytest.raises(InvalidParameter, match="at least one"):
        noise.Stack([]).fit(some_votes())
    with pytest.raises(InvalidParameter, match=r"has its parameters already, got \['right'\]"):
        noise.fit(some_votes(), noise.OneCoin(), right=3.0)


@pytest.mark.parametrize(
    "model", [noise.GLAD(max_iter=7, tol=0), noise.DawidSkene(pooling=3.0), noise.Stack([noise.OneCoin(right=3.0)])]
)
def test_a_model_that_is_passed_stays_as_it_was(model):
    """Whether it was fitted on these labels, on others or on none."""
    labels = simulate.dawid_skene(n_items=60, n_labelers=5, random_state=0).labels
    other = simulate.dawid_skene(n_items=40, n_labelers=5, random_state=1).labels
    fitted = noise.fit(labels, model)
    assert fitted is not model
    assert not model.is_fitted
    assert fitted.parameters() == model.parameters()
    before = fitted.posterior(labels)
    again = noise.fit(other, fitted)
    assert again is not fitted
    np.testing.assert_array_equal(fitted.posterior(labels), before)
    with pytest.raises(NotFitted):
        fitted.clone().posterior(labels)
