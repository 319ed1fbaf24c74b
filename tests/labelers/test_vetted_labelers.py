"""The accuracy of labelers where items were drawn at random and vetted: right where the models are wrong."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu
from trueup.labelers import rank
from trueup.labelers.as_systems import labeler_engine
from trueup.labelers.skill_draws import draw_labelers
from trueup.labelers.vetted import FEWER_SWEEPS, vetted_accuracies

N_ITEMS, N_LABELERS = 300, 5


def vetted_by_engine(labels: tu.Labels, *, n_draws: int, seed: int) -> dict:
    engine = labeler_engine(labels, n_draws=n_draws, seed=seed, sampling=FEWER_SWEEPS)
    return vetted_accuracies(engine, n_draws=n_draws)


def with_drawn_gold(labels: tu.Labels, truth: np.ndarray, n: int, seed: int) -> tu.Labels:
    drawn = np.random.default_rng(seed).choice(len(truth), n, replace=False).tolist()
    return labels.with_gold({item: int(truth[item]) for item in drawn}, drawn="random")


def own_accuracies(labels: tu.Labels, truth: np.ndarray) -> np.ndarray:
    item, labeler, answer, _ = labels.vote_table()
    right = np.bincount(labeler, weights=answer == truth[item], minlength=labels.n_labelers)
    return right / np.bincount(labeler, minlength=labels.n_labelers)


@pytest.fixture(scope="module")
def crowd():
    """Items that are hard for all labelers alike."""
    return tu.simulate.shared_difficulty(
        n_items=N_ITEMS, n_labelers=N_LABELERS, prior=(0.6, 0.4), accuracy=(0.65, 0.9), slope=2.0, random_state=3
    )


def test_accuracies_hold_where_labelers_err_together_and_the_model_is_wrong():
    """Sixty labelers of twelve crowds; of two hundred, 96% hold."""
    held: dict[str, list[bool]] = {"gold": [], "votes": []}
    for seed in range(12):
        data = tu.simulate.shared_difficulty(
            n_items=N_ITEMS, n_labelers=N_LABELERS, prior=(0.6, 0.4), accuracy=(0.65, 0.9), slope=2.0, random_state=seed
        )
        labels = with_drawn_gold(data.labels, data.truth, 30, seed)
        judged = vetted_by_engine(labels, n_draws=400, seed=seed)
        drawn = draw_labelers(
            data.labels, "dawid-skene", n_draws=400, spam_prior=0.1, rng=np.random.default_rng(seed)
        ).accuracy
        for t, true in enumerate(own_accuracies(data.labels, data.truth)):
            for name, draws in (("gold", judged[t].draws), ("votes", drawn[:, t])):
                low, high = np.quantile(draws, [0.025, 0.975])
                held[name].append(bool(low <= true <= high))
    assert np.mean(held["gold"]) >= 0.9
    assert np.mean(held["votes"]) < 0.75


def test_the_basis_goes_by_vetted_items_among_own_votes(crowd):
    """A labeler who voted on few of the vetted items is judged by votes, with what these items say beside it."""
    labels = with_drawn_gold(crowd.labels, crowd.truth, 40, seed=0)
    vetted = np.flatnonzero(labels.gold_codes >= 0)
    item, labeler, answer, _ = labels.vote_table()
    votes = np.full((N_ITEMS, N_LABELERS), -1)
    votes[item, labeler] = answer
    votes[vetted[12:], 4] = -1
    part = tu.Labels.from_matrix(votes, missing=-1)
    part = part.with_gold({int(i): int(crowd.truth[i]) for i in vetted}, drawn="random")
    ranking = rank(part, sort="accuracy", n_draws=200, random_state=0)
    assert {row.labeler: (row.basis, row.vetted) for row in ranking} == {
        **dict.fromkeys(range(4), ("gold", 40)),
        4: ("votes", 12),
    }
    low, high = ranking[4].gold_only.interval(0.95)
    assert high - low > 0.25
    assert f"{low:.3f} to {high:.3f} by 12 vetted alone" in repr(ranking)
    assert "by 40 vetted)" in repr(ranking)
    frame = ranking.to_frame()
    assert frame["vetted"].tolist().count(40) == 4
    assert frame["gold_only_low"].notna().all()
    # A model that is named answers alone.
    named = rank(part, noise="dawid-skene", n_draws=200, random_state=0)
    assert {(row.basis, row.vetted) for row in named} == {("votes", 0)}
    assert named[0].accuracy.std < 0.6 * ranking[0].accuracy.std


def test_chosen_gold_and_none_leave_the_answer_to_the_votes(crowd):
    chosen = crowd.labels.with_gold({item: int(crowd.truth[item]) for item in range(40)})
    assert vetted_by_engine(chosen, n_draws=50, seed=0) == {}
    assert vetted_by_engine(crowd.labels, n_draws=50, seed=0) == {}


def test_every_item_vetted_leaves_the_share_of_right_votes(crowd):
    """Nothing is left to a model, and the interval is that of a share of items to come."""
    labels = with_drawn_gold(crowd.labels, crowd.truth, N_ITEMS, seed=0)
    judged = vetted_by_engine(labels, n_draws=4000, seed=0)
    for t, true in enumerate(own_accuracies(crowd.labels, crowd.truth)):
        assert judged[t].draws.mean() == pytest.approx(true, abs=0.005)
        assert judged[t].draws.std() == pytest.approx(np.sqrt(true * (1 - true) / N_ITEMS), rel=0.08)


def test_it_is_said_what_the_order_rests_on(crowd):
    labels = crowd.labels
    vetted = labels.with_gold({int(i): int(crowd.truth[i]) for i in range(0, labels.n_items, 4)}, drawn="random")
    by_information = tu.labelers.rank(vetted, n_draws=100, random_state=0)
    assert any(row.basis == "gold" for row in by_information)
    assert any('sort="accuracy"' in sentence for sentence in by_information.warnings)
    assert "the order rests on votes and the noise model" in repr(by_information)
    assert "  ! The accuracies of" in repr(by_information)
    by_accuracy = tu.labelers.rank(vetted, sort="accuracy", n_draws=100, random_state=0)
    assert not any("sort=" in sentence for sentence in by_accuracy.warnings)
    assert "the order rests on vetted items drawn at random" in repr(by_accuracy)
    assert tu.labelers.rank(labels, noise="dawid-skene", n_draws=100, random_state=0).warnings == ()


@pytest.mark.filterwarnings("ignore::trueup.exceptions.ConvergenceWarning")
def test_the_twentieth_vetted_item_changes_little(crowd):
    """One item more must not make an interval jump: below twenty, vetted items have their share of the draws."""
    order = np.random.default_rng(5).permutation(N_ITEMS)
    widths = {}
    for n in (0, 10, 19, 20):
        gold = {int(item): int(crowd.truth[item]) for item in order[:n]}
        ranking = rank(
            crowd.labels.with_gold(gold, drawn="random") if gold else crowd.labels, n_draws=400, random_state=0
        )
        ends = {row.labeler: row.accuracy.interval(0.95, "equal") for row in ranking}
        widths[n] = np.array([np.ptp(ends[labeler]) for labeler in range(N_LABELERS)])
        assert {row.basis for row in ranking} == ({"gold"} if n == 20 else {"votes"})
    assert widths[20].mean() < 1.25 * widths[19].mean()
    assert widths[0].mean() < widths[10].mean()
