"""Labelers ranked within slices: one fit, and slices borrow from each other."""

import numpy as np
import pytest

import trueup as tu
from trueup.labelers import rank


def crowd(of_art, *, n_items=400, seed=0):
    """Six labelers right on 85%; the first on the share `of_art` of items about art, of which there are 60."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_items)
    is_art = np.arange(n_items) < 60
    skill = np.full((n_items, 6), 0.85)
    skill[is_art, 0] = of_art
    votes = np.where(rng.random((n_items, 6)) < skill, truth[:, None], 1 - truth[:, None])
    items = {"item": list(range(n_items)), "topic": np.where(is_art, "art", "law").tolist()}
    return tu.Labels.from_matrix(votes, classes=[0, 1]).with_items(items), truth, votes, is_art


@pytest.fixture(scope="module")
def differing():
    labels, *rest = crowd(0.3)
    return rank(labels, by="topic", noise="dawid-skene", n_draws=400, random_state=0), *rest


def test_a_labeler_who_fails_in_a_slice_is_seen_there(differing):
    ranking, _, _, _ = differing
    assert set(ranking.by) == {"art", "law"}
    assert ranking.by["art"][0].accuracy.mean < 0.5 < 0.7 < ranking.by["law"][0].accuracy.mean
    assert ranking.by["art"].labelers[0] != 0
    assert ranking.by["art"][0].votes == 60
    assert ranking.by["art"].sort == ranking.sort


def test_slices_that_differ_little_are_drawn_together():
    labels, truth, votes, is_art = crowd(0.85, seed=3)
    ranking = rank(labels, by="topic", noise="dawid-skene", n_draws=400, random_state=0)
    raw = (votes[is_art] == truth[is_art, None]).mean(axis=0)
    apart = [abs(ranking.by["art"][t].accuracy.mean - ranking[t].accuracy.mean) for t in range(6)]
    alone = [abs(raw[t] - ranking[t].accuracy.mean) for t in range(6)]
    assert np.mean(apart) < 0.6 * np.mean(alone)
    own = rank(labels.select(items=labels.items[is_art]), noise="dawid-skene", n_draws=400, random_state=0)
    widths = [np.diff(part[t].accuracy.interval(0.95))[0] for t in range(6) for part in (ranking.by["art"], own)]
    assert np.mean(widths[::2]) < 0.8 * np.mean(widths[1::2])


def test_vetted_items_correct_slices_together():
    labels, truth, _, is_art = crowd(0.3)
    rng = np.random.default_rng(0)
    gold = {int(item): int(truth[item]) for item in rng.choice(400, size=80, replace=False)}
    ranking = rank(labels.with_gold(gold, drawn="random"), by="topic", n_draws=200, random_state=0)
    in_art = sum(is_art[item] for item in gold)
    assert [row.vetted for row in ranking.by["art"]] == [in_art] * 6
    assert ranking.by["art"][0].basis == f"votes and {in_art} checked items"
    assert ranking.by["art"][0].accuracy.mean < ranking.by["law"][0].accuracy.mean - 0.1
