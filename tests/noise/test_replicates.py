"""Data sets of one design, drawn and fitted all at once, beside the plain way with one at a time."""

import numpy as np
import pytest

from trueup import Labels, noise, simulate
from trueup.noise.independence import (
    Rates,
    design_of,
    draw_answers,
    one_coin_rows,
    p_values,
    pooled_rows,
    refit,
    smallest_p_values,
)


@pytest.fixture(scope="module")
def labels():
    """Items with different numbers of votes, and one abstention kept as an answer."""
    votes = simulate.dawid_skene(n_items=120, n_labelers=6, n_classes=3, prior=[0.4, 0.3, 0.3], random_state=0)
    item, labeler, answer, _ = votes.labels.vote_table()
    table = np.full((120, 6), -1)
    table[item, labeler] = answer
    rng = np.random.default_rng(0)
    table[rng.random(table.shape) < 0.3] = -1
    table[rng.random(table.shape) < 0.05] = 9
    return Labels.from_matrix(table, abstain=9, abstain_policy="answer")


def start_of(model, labels, design):
    table = model.confusion_for(labels)[design.labelers].transpose(1, 0, 2)[:, None]
    return Rates(model.prior_[:, None], table)


@pytest.mark.parametrize("kind", [noise.DawidSkene, noise.OneCoin])
def test_a_refit_is_the_fit_of_the_model(labels, kind):
    model = kind(tol=1e-12, max_iter=3000).fit(labels)
    design, answers = design_of(labels, np.random.default_rng(0), n_classes=3)
    part = labels.select(items=labels.items[labels.votes_per_item > 1])
    exact = kind(tol=1e-12, max_iter=3000).fit(part)
    coin = one_coin_rows(3, right=2.0, wrong=1.0)
    maximise = coin if kind is noise.OneCoin else pooled_rows(np.full(3, 2.0))
    fitted, _ = refit(design, answers, start_of(model, labels, design), maximise, n_steps=3000)
    np.testing.assert_allclose(fitted.weights[:, 0], exact.prior_, atol=1e-4)
    np.testing.assert_allclose(fitted.table[:, 0].transpose(1, 0, 2), exact.confusion_, atol=1e-4)


def test_what_is_summed_up_is_what_loops_give(labels):
    known = labels.with_gold(dict.fromkeys(labels.items[:10].tolist(), labels.classes[1]))
    model = noise.DawidSkene().fit(known)
    design, answers = design_of(known, np.random.default_rng(0), n_classes=3)
    _, summaries = refit(design, answers, start_of(model, known, design), None, n_steps=0)
    part = known.select(items=known.items[known.votes_per_item > 1])
    posterior, confusion = model.posterior(part), model.confusion_for(part)
    item, labeler, answer, _ = part.vote_table()
    observed = expected = 0.0
    for i in range(part.n_items):
        mine = np.flatnonzero(item == i)
        gold = part.gold_codes[i]
        prior = model.prior_ if gold < 0 else np.eye(3)[gold]
        for y in range(3):
            error = 1 - confusion[labeler[mine], y, y] - confusion[labeler[mine], y, 3]
            wrong = (answer[mine] != y) & (answer[mine] < 3)
            for a in range(len(mine)):
                for b in range(a):
                    observed += posterior[i, y] * wrong[a] * wrong[b]
                    expected += prior[y] * error[a] * error[b]
    assert summaries.joint_errors[0] == pytest.approx(observed)
    assert summaries.joint_errors_expected[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_drawn_answers_have_the_rates_and_the_correlation(correlation):
    labels = simulate.dawid_skene(n_items=400, n_labelers=4, random_state=0).labels
    labels = labels.with_gold(dict.fromkeys(labels.items.tolist(), 1))
    design, _ = design_of(labels, np.random.default_rng(0), n_classes=2)
    table = np.tile([[[[0.8, 0.2]]], [[[0.3, 0.7]]]], (1, 1, 4, 1))
    rates = Rates(np.array([[0.5], [0.5]]), table)
    answers = draw_answers(design, rates, 100, np.random.default_rng(1), correlation=correlation)
    wrong = answers.reshape(100, 4, 400) == 0
    assert wrong.mean() == pytest.approx(0.3, abs=0.01)
    pairs = np.corrcoef(wrong.transpose(1, 0, 2).reshape(4, -1))[np.triu_indices(4, 1)]
    np.testing.assert_allclose(pairs, correlation, atol=0.03)


def test_the_smallest_of_two_p_values_is_held_against_the_smallest():
    rng = np.random.default_rng(0)
    statistics = rng.normal(size=(2, 2000))
    each = p_values(statistics, 999)
    both = smallest_p_values(each, 999)
    assert (each.min(axis=0)[1000:] < 0.05).mean() > 0.08
    assert (both[1000:] < 0.05).mean() == pytest.approx(0.05, abs=0.025)
    assert p_values(np.zeros((1, 50)), 49).tolist() == [[1.0] * 50]
