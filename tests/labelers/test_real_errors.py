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


def test_moves_are_as_large_as_the_map_says(crowd):
    labels, _ = crowd
    engine = labeler_engine(labels, n_draws=500, seed=0)
    rng = np.random.default_rng(0)
    (moves,) = accuracy_moves(engine, 20_000, rng)
    spread = _spread(NamedVotes.of(labels, rng), engine.readings("classes"))
    assert moves.std(axis=0) == pytest.approx(engine.real_map.deviations(spread), rel=0.03)
    assert moves.mean(axis=0) == pytest.approx(np.zeros(5), abs=0.003)


def test_of_vetted_items_nothing_is_wrong(crowd):
    """A labeler whose items are all known is judged by counts alone, whether the gold was chosen or drawn."""
    labels, truth = crowd
    known = {item: int(truth[item]) for item in range(50)}
    for drawn in ("chosen", "random"):
        engine = labeler_engine(labels.with_gold(known, drawn=drawn), n_draws=100, seed=0)
        (moves,) = accuracy_moves(engine, 200, np.random.default_rng(0))
        assert (moves[:, 4] == 0).all()
        assert (moves[:, :4].std(axis=0) > 0.02).all()


def test_a_slice_moves_with_the_whole_and_on_its_own(crowd):
    labels, _ = crowd
    groups = (np.arange(labels.n_items) >= 75).astype(np.int32)
    engine = labeler_engine(labels, n_draws=100, seed=0, slices=groups)
    whole, *parts = accuracy_moves(engine, 20_000, np.random.default_rng(0))
    share = engine.real_map.slice_share
    for part in parts:
        # Half of the items: half of the variance that is a part's own is the whole's.
        ratio = part[:, 0].var() / whole[:, 0].var()
        assert ratio == pytest.approx(1 + share / 2, rel=0.05)
    one_slice = labeler_engine(labels, n_draws=100, seed=0, slices=np.zeros(labels.n_items, dtype=np.int32))
    whole, same = accuracy_moves(one_slice, 50, np.random.default_rng(0))
    assert same == pytest.approx(whole)


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
    # Wrong answers keep their shares among themselves.
    off = ~np.eye(3, 4, dtype=bool)
    shares = [table[..., off] / table[..., off].sum(axis=-1, keepdims=True) for table in (joint, moved)]
    assert shares[0] == pytest.approx(shares[1])


def test_assumptions_are_nested_in_what_they_allow(crowd):
    labels, _ = crowd
    widths = {}
    for assume in ("independent", "shared", "real"):
        ranking = rank(labels, assume=assume, n_draws=400, random_state=0)
        assert ranking.noise == f"all kinds of models, assuming {assume} errors"
        widths[assume] = np.mean([np.ptp(row.accuracy.interval(0.95)) for row in ranking])
    assert widths["real"] > 1.2 * widths["independent"]
    wide = rank(labels, assume=RealMap(widening=4.0, floor=0.1), n_draws=400, random_state=0)
    assert np.mean([np.ptp(row.accuracy.interval(0.95)) for row in wide]) > 1.5 * widths["real"]
    with pytest.raises(InvalidParameter, match="assume chooses between the answers of all models"):
        rank(labels, assume="real", noise="dawid-skene")


def test_progress_is_told(crowd):
    shares = []
    rank(crowd[0], n_draws=50, random_state=0, progress=shares.append)
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
    for seed in range(8):
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
