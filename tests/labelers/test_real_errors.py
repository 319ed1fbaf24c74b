"""How far off what votes say of labelers may be: the size of the moves, and what they have in common."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu
from trueup.estimators.readings import blind_correlations, direction_features
from trueup.estimators.real_map import RealMap
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers import rank
from trueup.labelers import skill_draws as draws
from trueup.labelers.as_systems import labeler_engine
from trueup.labelers.real_errors import NamedVotes, _blind_moves, _spread, accuracy_moves


@pytest.fixture(scope="module")
def crowd():
    """Five labelers, of whom the last votes on a third of the items only; three classes."""
    data = tu.simulate.dawid_skene(
        n_items=150, n_classes=3, n_labelers=5, accuracy=[0.9, 0.8, 0.7, 0.7, 0.6], random_state=4
    )
    frame = data.labels.to_frame()
    return tu.Labels.from_frame(frame[(frame["labeler"] != 4) | (frame["item"] < 50)]), data.truth


def every_item(n_items):
    return [np.ones(n_items, dtype=bool)]


def test_moves_have_in_common_what_those_of_systems_have(crowd):
    """A second implementation: the matrix that `compare` takes for the same labelers as systems."""
    labels, _ = crowd
    rng = np.random.default_rng(0)
    votes = NamedVotes.of(labels, rng)
    (blind,) = _blind_moves(votes, every_item(labels.n_items), labels.n_classes, 40_000, rng)
    outputs = labels.as_systems().align(labels, missing="ignore")
    uniform = np.full((labels.n_items, 3), 1 / 3)
    expected = blind_correlations(direction_features(outputs, 3, "classes", uniform)[:5])
    assert np.corrcoef(blind.values.T) == pytest.approx(expected, abs=0.02)
    assert blind.values.std(axis=0) == pytest.approx(1, abs=0.02)


def test_variances_are_those_of_drawn_truths(crowd):
    labels, _ = crowd
    rng = np.random.default_rng(1)
    votes = NamedVotes.of(labels, rng)
    posterior = rng.dirichlet(np.ones(3), size=labels.n_items)
    upto = posterior.cumsum(axis=1)
    truths = (rng.random((20_000, labels.n_items, 1)) > upto[None, :, :2]).sum(axis=2)
    right = np.array([votes.sums(truth[votes.item] == votes.answer) for truth in truths])
    assert right.var(axis=0) == pytest.approx(votes.variances(posterior), rel=0.05)
    assert right.mean(axis=0) / votes.sums() == pytest.approx(votes.right_by(posterior), abs=0.01)


def test_an_anonymous_crowd_weighs_its_answers_by_their_number():
    labels = tu.Labels.from_counts([[3, 1], [0, 4], [2, 2]])
    votes = NamedVotes.of(labels, np.random.default_rng(0))
    posterior = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert votes.right_by(posterior) == pytest.approx([(3 + 4 + 2) / 12])
    # Of the last item two of four votes are right, whatever its class.
    assert votes.variances(posterior) == pytest.approx([0.0])


def moves_of(engine, n_draws=None, seed=0):
    truths = engine.readings("classes").of_all_kinds().truths
    truths = truths if n_draws is None else np.resize(truths, (n_draws, truths.shape[1]))
    return accuracy_moves(engine, truths, np.random.default_rng(seed))


def test_accuracies_are_off_by_what_the_map_says(crowd):
    """Moved, the share of right votes is normal, with the deviation of the map and the chance of each item's class."""
    labels, _ = crowd
    engine = labeler_engine(labels, n_draws=500, seed=0)
    readings, votes = engine.readings("classes"), NamedVotes.of(labels, np.random.default_rng(0))
    truths = np.resize(readings.of_all_kinds().truths, (20_000, labels.n_items))
    (moves,) = accuracy_moves(engine, truths, np.random.default_rng(0))
    values = votes.right_given(truths) + moves
    wanted = engine.real_map.deviations(_spread(votes, readings))
    wanted = np.sqrt(wanted**2 + votes.variances(readings.centre) / votes.sums() ** 2)
    assert values.std(axis=0) == pytest.approx(wanted, rel=0.03)
    assert values.mean(axis=0) == pytest.approx(votes.right_by(readings.centre), abs=0.02)
    assert np.quantile(values, 0.975, axis=0) - values.mean(axis=0) == pytest.approx(1.96 * wanted, rel=0.05)


def test_a_ranking_is_as_wide_as_the_map_says():
    """End to end: intervals a fifth too narrow fail. Items to come add the chance of votes."""
    labels = tu.simulate.dawid_skene(n_items=400, n_labelers=5, accuracy=0.75, random_state=1).labels
    ranking = rank(labels, n_draws=4000, random_state=0)
    engine = labeler_engine(labels, n_draws=4000, seed=1)
    readings, votes = engine.readings("classes"), NamedVotes.of(labels, np.random.default_rng(0))
    by_map = engine.real_map.deviations(_spread(votes, readings))
    right, n_votes = votes.right_by(readings.centre), votes.sums()
    wanted = np.sqrt(by_map**2 + votes.variances(readings.centre) / n_votes**2 + right * (1 - right) / n_votes)
    found = np.array([ranking[labeler].accuracy.std for labeler in range(5)])
    assert found.mean() == pytest.approx(wanted.mean(), rel=0.13)


def test_of_vetted_items_nothing_is_wrong(crowd):
    """A labeler whose items are all known is judged by counts alone; so is a slice of known items."""
    labels, truth = crowd
    vetted = labels.with_gold({item: int(truth[item]) for item in range(50)})
    is_vetted = (np.arange(labels.n_items) >= 50).astype(np.int32)
    engine = labeler_engine(vetted, n_draws=100, seed=0, slices=is_vetted)
    whole, known, unknown = moves_of(engine)
    assert (whole[:, 4] == 0).all()
    assert (whole[:, :4].std(axis=0) > 0).all()
    assert (known == 0).all()
    assert (unknown[:, :4].std(axis=0) > whole[:, :4].std(axis=0)).all()


def test_a_slice_moves_with_the_whole_and_on_its_own(crowd):
    labels, _ = crowd
    halves = [np.arange(labels.n_items) < 75, np.arange(labels.n_items) >= 75]
    everything = np.ones(labels.n_items, dtype=bool)
    votes = NamedVotes.of(labels, np.random.default_rng(0))
    whole, *parts = _blind_moves(votes, [everything, *halves], 3, 20_000, np.random.default_rng(0))
    for part in parts:
        assert np.corrcoef(part.values[:, 0], whole.values[:, 0])[0, 1] == pytest.approx(np.sqrt(0.5), abs=0.02)
        assert part.deviations[0] / whole.deviations[0] == pytest.approx(np.sqrt(0.5))
    one_slice = labeler_engine(labels, n_draws=100, seed=0, slices=np.zeros(labels.n_items, dtype=np.int32))
    everywhere, same = moves_of(one_slice, 2000)
    assert same.std(axis=0) == pytest.approx(everywhere.std(axis=0), rel=0.1)
    assert np.corrcoef(same[:, 0], everywhere[:, 0])[0, 1] > 0.7


def test_drawn_gold_tells_who_is_right_as_chosen_gold_does():
    """Three of five are wrong more often than right: votes alone take the wrong side, and vetted items turn it."""
    data = tu.simulate.dawid_skene(
        n_items=300, n_labelers=5, accuracy=[0.25, 0.25, 0.25, 0.8, 0.8], prior=[0.5, 0.5], random_state=3
    )
    gold = {item: int(data.truth[item]) for item in range(150)}
    for drawn in ("chosen", "random"):
        ranking = rank(data.labels.with_gold(gold, drawn=drawn), n_draws=200, random_state=0)
        assert ranking[3].information.mean == pytest.approx(0.23, abs=0.08)
        assert ranking[0].spam_probability < 0.05


def test_bias_holds_where_labelers_share_difficulty():
    """Class shares are as uncertain as the models are; a bias is what is answered less what is true."""
    held = []
    for seed in range(4):
        data = tu.simulate.shared_difficulty(
            n_items=400, n_labelers=5, prior=(0.6, 0.4), accuracy=(0.65, 0.9), slope=2.0, random_state=seed
        )
        _, labeler, answer, _ = data.labels.vote_table()
        answered = np.bincount(labeler, answer == 1) / np.bincount(labeler)
        ranking = rank(data.labels, n_draws=400, random_state=seed)
        for row in ranking:
            low, high = row.bias.interval(0.95)
            held.append(bool(low <= answered[row.labeler] - data.truth.mean() <= high))
    assert np.mean(held) >= 0.85


def test_large_data_do_not_depend_on_names(monkeypatch):
    """Models are drawn on some of the items then, whoever comes first by name."""
    from trueup.estimators import readings

    monkeypatch.setattr(readings, "MOST_VOTES", 1000)
    monkeypatch.setattr(readings, "_SOME_VOTES", 600)
    monkeypatch.setattr(readings, "_LEAST_ITEMS", 50)
    data = tu.simulate.dawid_skene(n_items=600, n_labelers=5, accuracy=[0.9, 0.8, 0.8, 0.7, 0.7], random_state=0)
    frame = data.labels.to_frame()
    frame = frame[(frame["labeler"] > 0) | (frame["item"] < 100)]
    found = []
    for first in ("a", "z"):
        names = {0: first, 1: "b", 2: "c", 3: "d", 4: "e"}
        labels = tu.Labels.from_frame(frame.assign(labeler=frame["labeler"].map(names)))
        assert not labeler_engine(labels, n_draws=100, seed=0).readings("classes").some.all()
        ranking = rank(labels, n_draws=300, random_state=0)
        found.append([ranking[name].accuracy.mean for name in (first, "b", "c", "d", "e")])
    assert found[0] == pytest.approx(found[1], abs=0.04)
    assert found[0] == pytest.approx([0.9, 0.8, 0.8, 0.7, 0.7], abs=0.25)


def test_a_table_is_tilted_until_the_accuracy_is_off_by_the_move():
    rng = np.random.default_rng(2)
    joint = draws._joint(rng.dirichlet(np.ones(4), size=(6, 5, 3)), rng.dirichlet(np.ones(3), size=6))
    before, _ = draws._accuracy_and_bias(joint)
    moves = rng.uniform(-1, 1, before.shape)
    moved = draws._moved(joint, moves)
    after, _ = draws._accuracy_and_bias(moved)
    assert after == pytest.approx(np.clip(before + moves, 0, 1), abs=2e-6)
    assert moved.sum(axis=(-2, -1)) == pytest.approx(1)
    assert draws._moved(joint, np.zeros(before.shape)) == pytest.approx(joint)
    # What is answered stays, and so do shares among wrong classes of an answer.
    assert moved.sum(axis=-2) == pytest.approx(joint.sum(axis=-2))
    assert moved[..., 1, 0] / moved[..., 2, 0] == pytest.approx(joint[..., 1, 0] / joint[..., 2, 0])


def test_an_assumption_can_be_named(crowd):
    labels, _ = crowd
    widths = {}
    for assume in ("independent", "shared", "real"):
        ranking = rank(labels, assume=assume, n_draws=400, random_state=0)
        assert ranking.noise == f"all kinds of models, assuming {assume} errors"
        widths[assume] = np.mean([np.ptp(row.accuracy.interval(0.95)) for row in ranking])
    assert widths["real"] > 1.2 * max(widths["independent"], widths["shared"])
    wide = rank(labels, assume=RealMap(widening=4.0, floor=0.1), n_draws=400, random_state=0)
    assert np.mean([np.ptp(row.accuracy.interval(0.95)) for row in wide]) > 1.5 * widths["real"]
    with pytest.raises(InvalidParameter, match="assume chooses between the answers of all models"):
        rank(labels, assume="real", noise="dawid-skene")


@pytest.mark.parametrize("noise", [None, "dawid-skene", "clusters"])
def test_progress_is_told(crowd, noise):
    shares = []
    rank(crowd[0], noise=noise, n_draws=50, random_state=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_votes_that_name_no_class_are_an_error():
    frame = {"item": [1, 1, 2, 2], "labeler": ["a", "b", "a", "b"], "label": ["?", "?", "yes", "no"]}
    votes = tu.Labels.from_frame(frame, abstain="?", abstain_policy="answer")
    with pytest.raises(InvalidLabels, match="votes that name a class"):
        rank(votes.select(items=[1]))


def test_intervals_of_accuracy_hold_where_labelers_share_difficulty():
    """Labelers who err together: the default holds where a model of independent errors does not."""
    held: dict[str, list[bool]] = {"real": [], "dawid-skene": []}
    for seed in range(5):
        data = tu.simulate.shared_difficulty(
            n_items=300, n_labelers=5, prior=(0.6, 0.4), accuracy=(0.65, 0.9), slope=2.0, random_state=seed
        )
        item, labeler, answer, _ = data.labels.vote_table()
        true = np.bincount(labeler, answer == data.truth[item]) / np.bincount(labeler)
        for name, options in (("real", {}), ("dawid-skene", {"noise": "dawid-skene"})):
            ranking = rank(data.labels, n_draws=400, random_state=seed, **options)
            for row in ranking:
                low, high = row.accuracy.interval(0.95)
                held[name].append(bool(low <= true[row.labeler] <= high))
    assert np.mean(held["real"]) >= 0.9
    assert np.mean(held["dawid-skene"]) < 0.75
