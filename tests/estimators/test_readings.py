"""Three answers from votes, nested in what they assume."""

from dataclasses import replace

import numpy as np
import pytest

import trueup as tu
from trueup.estimators.kinds import (
    DIFFICULTY,
    INDEPENDENT,
    KINDS,
    KindDraws,
    Kinds,
    different_systems,
    means_of,
    witness_weights,
)
from trueup.estimators.readings import blind_correlations, without_part
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.exceptions import InvalidParameter

FAST = {"n_warmup": 100, "n_draws": 200, "check_dependence": False}


@pytest.fixture(scope="module")
def dependent():
    return tu.simulate.shared_difficulty(n_items=250, slope=2.0, random_state=3)


@pytest.fixture(scope="module")
def evaluation(dependent):
    return tu.evaluate(dependent.predictions, dependent.labels, **FAST)


def width(estimate):
    low, high = estimate.interval(0.95)
    return high - low


def test_answers_widen_with_what_they_allow(evaluation):
    widths = [width(evaluation.assuming(name)["accuracy"]) for name in ("independent", "shared", "real")]
    assert widths[0] < 0.5 * widths[1]
    assert widths[0] < 0.5 * widths[2]
    assert evaluation.basis == "votes"
    assert evaluation["accuracy"].mean == evaluation.assuming("real")["accuracy"].mean


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_classes_are_no_evidence_of_shared_errors(seed):
    """That errors spread over classes as a model of difficulty has it is not that items differ in difficulty."""
    sim = tu.simulate.dawid_skene(n_items=250, n_classes=6, n_labelers=8, votes_per_item=3, random_state=seed)
    ev = tu.evaluate(sim.predictions, sim.labels, **FAST)
    assert ev.engine.readings("classes").kinds.evidence < 0.1  # it was .33, .29 and .05; by chance it varies by .06


def test_shared_errors_are_found_with_many_classes():
    sim = tu.simulate.dependent(n_items=400, n_labelers=6, prior=np.full(5, 0.2), random_state=0)
    ev = tu.evaluate(sim.predictions, sim.labels, **FAST)
    assert "independent" not in ev.engine.readings("classes").kinds.shares


def test_the_real_answer_is_as_wide_as_its_map_says(evaluation):
    """The spread within and between the models, with the floor, times the widening; and no narrower after tilting."""
    readings, real_map = evaluation.engine.readings("classes"), shipped_map()
    spread = readings.kinds.spread(readings.part)[0]
    expected = np.sqrt(spread**2 + real_map.floor**2) * real_map.widening / 1.96
    assert evaluation.assuming("real")["accuracy"].std == pytest.approx(expected, rel=0.12)
    assert expected > 1.5 * evaluation.assuming("independent")["accuracy"].std


def class_features(codes, n_classes):
    """Of systems, then the shares of the classes."""
    shares = np.broadcast_to(np.eye(n_classes)[:, None, :], (n_classes, codes.shape[1], n_classes))
    return np.concatenate([(codes[:, :, None] == np.arange(n_classes)).astype(float), shares])


def test_blind_spots_are_shared_as_far_as_systems_agree():
    rng = np.random.default_rng(0)
    one = rng.integers(2, size=1000)
    other = np.where(rng.random(1000) < 0.2, 1 - one, one)
    alike = blind_correlations(class_features(np.stack([one, one, 1 - one, other, np.ones_like(one)]), 2))
    np.testing.assert_allclose(np.diag(alike), 1.0)
    np.testing.assert_allclose(alike[0, :3], [1.0, 1.0, -1.0], atol=1e-9)  # itself, a copy and the opposite
    assert alike[0, 3] == pytest.approx(1 - 2 * (one != other).mean())
    np.testing.assert_allclose(alike[4, 5:], [-1.0, 1.0], atol=1e-9)  # who names one class, and the share of it


def test_no_blind_spot_moves_what_cannot_move():
    """The shares of three classes add up to one, however much each of them is off."""
    codes = np.random.default_rng(0).integers(3, size=(2, 500))
    alike = blind_correlations(class_features(codes, 3))
    total = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    assert total @ alike @ total == pytest.approx(0.0, abs=1e-9)
    assert np.linalg.eigvalsh(alike).min() > -1e-9


def test_the_share_of_a_class_is_as_uncertain_as_the_accuracy_of_who_names_it(dependent):
    """They are one number: asked for twice, they must not hold each other back."""
    share = tu.share(dependent.labels, of=1, **FAST)
    engine = share.evaluation.engine
    readings = engine.readings("classes")
    expected = shipped_map().deviations(readings.kinds.spread(readings.part))[0]
    assert share.evaluation["accuracy"].std == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("n_systems", [2, 20])
def test_systems_beside_it_make_no_system_more_certain(dependent, n_systems):
    rng = np.random.default_rng(0)
    truth = dependent.truth
    systems = {k: np.where(rng.random(len(truth)) < 0.8, truth, 1 - truth) for k in range(1, n_systems)}
    cmp = tu.compare({0: dependent.predictions, **systems}, dependent.labels, **FAST)
    readings = cmp.engine.readings("classes")
    asked = shipped_map().deviations(readings.kinds.spread(readings.part)[:n_systems])
    assert np.mean([cmp[k].std for k in range(n_systems)] / asked) > 0.85


def test_from_votes_alone_means_without_the_vetted_items(dependent, evaluation):
    """What vetted items say is in the headline; beside it stands what votes alone would have said."""
    system = dependent.predictions
    wrong = np.flatnonzero(system != dependent.truth)[:18]
    truths = {int(item): int(dependent.truth[item]) for item in wrong}
    labels = dependent.labels.with_gold(truths, drawn=dict.fromkeys(truths, 0.07))
    ev = tu.evaluate(system, labels, metrics=["accuracy"], **FAST)
    assert ev.basis == "votes"
    rest = np.setdiff1d(np.arange(250), wrong)
    centre = evaluation.assuming("real").engine.readings("classes").centre
    expected = np.mean(centre[rest, system[rest]]) * len(rest) / 250
    assert ev.assuming("real")["accuracy"].mean == pytest.approx(expected, abs=0.02)
    assert ev["accuracy"].mean < expected - 0.1


def test_means_are_inside_their_intervals(evaluation):
    for name in ("independent", "shared", "real"):
        for metric, estimate in evaluation.assuming(name).items():
            low, high = estimate.interval(0.95)
            assert low <= estimate.mean <= high, (name, metric)


def test_a_named_model_gives_its_answer_alone(dependent):
    ev = tu.evaluate(dependent.predictions, dependent.labels, noise="dawid-skene", **FAST)
    with pytest.raises(InvalidParameter, match="there is one answer here, that of a noise model"):
        ev.assuming("real")
    with pytest.raises(InvalidParameter, match="assume"):
        tu.evaluate(dependent.predictions, dependent.labels, noise="dawid-skene", assume="real")
    with pytest.raises(InvalidParameter, match="assume must be one of"):
        tu.evaluate(dependent.predictions, dependent.labels, assume="none")


def test_a_copy_of_a_system_changes_nothing(dependent):
    a = dependent.predictions
    few = np.random.default_rng(0).choice(250, 3, replace=False)
    altered = a.copy()
    altered[few] = 1 - altered[few]
    evaluation = tu.evaluate(a, dependent.labels, check_dependence=False)
    same, nearly = (tu.compare({"a": a, "b": b}, dependent.labels, check_dependence=False) for b in (a, altered))
    for cmp in (same, nearly):
        # These votes admit several readings, so that the width of the shared answer moves by chance.
        for name, tolerance in (("independent", 0.2), ("shared", 0.5), ("real", 0.3)):
            alone = evaluation.assuming(name)["accuracy"]
            beside = cmp.assuming(name)["a"]
            assert width(beside) == pytest.approx(width(alone), rel=tolerance), name
            assert beside.mean == pytest.approx(alone.mean, abs=0.25 * width(alone)), name
    assert same.difference("a", "b").std == 0


def test_a_map_of_ones_own_is_the_headline(dependent, evaluation):
    narrow = RealMap(widening=0.5, floor=0.01)
    ev = tu.evaluate(dependent.predictions, dependent.labels, assume=narrow, **FAST)
    assert ev.assumption == "real"
    assert width(ev["accuracy"]) < 0.6 * width(evaluation["accuracy"])


def test_the_shipped_map_says_what_is_unlike_its_sets():
    labels = tu.Labels.from_matrix(np.random.default_rng(0).integers(0, 40, size=(50, 3)))
    said = [str(sentence) for sentence in shipped_map().doubts(labels)]
    assert any("classes" in sentence for sentence in said)
    few = tu.simulate.baseline(n_items=100, random_state=0).labels
    assert not shipped_map().doubts(few)


def test_witnesses_that_say_the_same_share_one_vote():
    rng = np.random.default_rng(0)
    one, other = rng.integers(2, size=(2, 400))
    np.testing.assert_allclose(witness_weights(np.stack([one, one])), [0.5, 0.5])
    weights = witness_weights(np.stack([one, other]))
    assert (weights > 0.85).all()
    family = np.where(rng.random((20, 400)) < 0.05, 1 - one, one)
    assert witness_weights(family).sum() < 1.5
    assert len(different_systems(np.stack([one, one, other]))) == 2


def test_large_data_are_read_from_some_items(monkeypatch):
    sim = tu.simulate.dawid_skene(n_items=1500, n_labelers=8, votes_per_item=4, random_state=0)
    whole = tu.evaluate(sim.predictions, sim.labels, **FAST).assuming("independent")["accuracy"]
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 5_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 2_500)
    part = tu.evaluate(sim.predictions, sim.labels, **FAST)
    some = part.assuming("independent")["accuracy"]
    assert part.engine.readings("classes").some.sum() < 1500
    assert abs(some.mean - whole.mean) < 0.2 * width(whole)
    assert width(some) == pytest.approx(width(whole), rel=0.25)
    low, high = part["accuracy"].interval(0.95)
    assert low < np.mean(sim.predictions == sim.truth) < high


def test_versions_of_one_system_do_not_outvote_labelers_in_large_data(monkeypatch):
    """Each was one more labeler there: a system and its version agreed, and were right on .95 instead of .84."""
    crowd = tu.simulate.dependent(n_items=1500, n_labelers=5, random_state=0)
    own = np.asarray(crowd.predictions)
    rng = np.random.default_rng(0)
    systems = {"one": own, **{f"version {k}": np.where(rng.random(1500) < 0.04, 1 - own, own) for k in range(3)}}
    whole, some = [], []
    for answers in (whole, some):
        cmp = tu.compare(systems, crowd.labels, random_state=0, **FAST)
        answers += [cmp.assuming(name)["one"] for name in ("independent", "shared", "real")]
        monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 5_000)
        monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 5_000)
    for mine, theirs in zip(whole, some, strict=True):
        assert mine.mean == pytest.approx(theirs.mean, abs=0.15 * width(mine) + 0.01)


@pytest.fixture
def drawn_on_some_items(monkeypatch):
    """Readings of 1,500 items that were drawn on some of them, and the system's classes."""
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 5_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 2_500)
    sim = tu.simulate.dawid_skene(n_items=1500, n_labelers=8, votes_per_item=4, random_state=0)
    return tu.evaluate(sim.predictions, sim.labels, **FAST).engine.readings("classes"), np.asarray(sim.predictions)


def kind_of_accuracy(accuracy, deviation, codes, rng, n_draws=400):
    """Draws in which a system is right as often as said, more or less often in each."""
    rates = rng.normal(accuracy, deviation, size=(n_draws, 1))
    truths = np.where(rng.random((n_draws, len(codes))) < rates, codes, 1 - codes).astype(np.int8)
    posterior = np.where(codes[:, None] == np.arange(2), accuracy, 1 - accuracy)
    return KindDraws(truths, posterior, np.zeros(len(codes)))


def accuracies(draws, codes):
    return (draws.truths == codes).mean(axis=1)


def test_kinds_that_disagree_stay_apart_in_large_data(drawn_on_some_items):
    """Their distance was taken for the deviation of one normal law, whose ends lay far beyond both."""
    readings, codes = drawn_on_some_items
    rng, on_some = np.random.default_rng(0), codes[readings.some]
    means = {INDEPENDENT: 0.8, DIFFICULTY: 0.86, KINDS: 0.7}
    draws = {name: kind_of_accuracy(mean, 0.005, on_some, rng) for name, mean in means.items()}
    as_drawn = means_of(readings.part, draws[INDEPENDENT].posterior)
    apart = replace(readings, kinds=Kinds(draws, {DIFFICULTY: 0.5, KINDS: 0.5}, 1.0), base=as_drawn)
    whole = float(np.take_along_axis(readings.posterior, codes[:, None], axis=1).mean())
    values = accuracies(apart.assuming("shared"), codes) - whole
    low, high = values[values < -0.02], values[values >= -0.02]
    assert len(low) == pytest.approx(len(high), rel=0.01)
    assert [low.mean(), high.mean()] == pytest.approx([-0.1, 0.06], abs=0.01)
    assert max(low.std(), high.std()) < 0.02


@pytest.mark.parametrize("name", [INDEPENDENT, KINDS])
def test_large_data_are_as_uncertain_as_the_draws_on_some_items(drawn_on_some_items, name):
    """What labelers are like is known better the more items there are, what kinds of items there are is not."""
    readings, codes = drawn_on_some_items
    rng, on_some = np.random.default_rng(0), codes[readings.some]
    draws = {INDEPENDENT: kind_of_accuracy(0.8, 0.03, on_some, rng), KINDS: kind_of_accuracy(0.8, 0.03, on_some, rng)}
    as_drawn = means_of(readings.part, draws[INDEPENDENT].posterior)
    apart = replace(readings, kinds=Kinds(draws, {KINDS: 1.0}, 1.0), base=as_drawn)
    found = accuracies(apart.assuming("independent" if name == INDEPENDENT else "shared"), codes)
    right = np.take_along_axis(readings.posterior, codes[:, None], axis=1)[:, 0]
    chance = np.sum(right * (1 - right)) / len(codes) ** 2
    share = readings.some.mean() if name == INDEPENDENT else 1.0
    assert found.std() == pytest.approx(np.sqrt(0.03**2 * share + chance), rel=0.15)


@pytest.mark.parametrize("assumption", ["independent", "shared"])
def test_a_few_draws_that_exchange_classes_change_nothing_in_large_data(drawn_on_some_items, assumption):
    """In data with many labelers one draw of a thousand made intervals five times too wide."""
    readings, codes = drawn_on_some_items
    rng, on_some = np.random.default_rng(0), codes[readings.some]
    usual = kind_of_accuracy(0.8, 0.01, on_some, rng)
    turned = replace(usual, truths=np.where(np.arange(400)[:, None] % 200 == 7, 1 - usual.truths, usual.truths))
    ends = []
    for drawn in (usual, turned):
        of_one = replace(readings, kinds=Kinds({INDEPENDENT: drawn}, {INDEPENDENT: 1.0}, 0.0))
        ends.append(np.quantile(accuracies(of_one.assuming(assumption), codes), [0.025, 0.975]))
    np.testing.assert_allclose(ends[1], ends[0], atol=0.25 * (ends[0][1] - ends[0][0]))


def test_a_small_part_moves_large_data_no_further_than_they_say(monkeypatch):
    """What chains on one part of the items were off by was carried to all of them, where intervals are narrow."""
    sim = tu.simulate.dawid_skene(n_items=8000, n_labelers=6, votes_per_item=4, random_state=0)
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 5_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 2_400)
    answers = [tu.evaluate(sim.predictions, sim.labels, metrics=["accuracy"], random_state=k, **FAST) for k in range(5)]
    found = [one.assuming("independent")["accuracy"] for one in answers]
    means = [one.mean for one in found]
    assert np.std(means) < 0.4 * found[0].std
    assert abs(np.mean(means) - sim.accuracy) < 3 * found[0].std


@pytest.mark.parametrize("gold", ["none", "all"])
def test_large_data_that_all_agree_on_are_not_certain(gold, monkeypatch):
    """A fit was certain of every item, as if each were vetted, and the headline had no width."""
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 2_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 1_500)
    truth = np.arange(700) % 2
    labels = tu.Labels.from_matrix(np.repeat(truth[:, None], 5, axis=1))
    if gold == "all":
        labels = labels.with_gold(dict(zip(labels.items.tolist(), truth.tolist(), strict=True)), drawn="chosen")
    ev = tu.evaluate(np.where(np.arange(700) % 10 == 0, 1 - truth, truth), labels, metrics=["accuracy"], **FAST)
    widths = {name: width(ev.assuming(name)["accuracy"]) for name in ("independent", "shared", "real")}
    assert widths["independent"] < 0.02
    assert (widths["real"] > 0.05) == (gold == "none")


def test_a_part_is_taken_out_of_a_covariance():
    rng = np.random.default_rng(0)
    own = rng.normal(size=(4000, 1)) @ [[1.0, 1.0, -1.0]] + 0.3 * rng.normal(size=(4000, 3)) * [1.0, 1.0, 0.0]
    part = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 0.5]])
    values = own + rng.multivariate_normal(np.zeros(3), part, size=4000)
    left = without_part(values, part)
    np.testing.assert_allclose(np.cov(left.T), np.cov(own.T), atol=0.15)
    np.testing.assert_allclose(left.mean(axis=0), values.mean(axis=0), atol=0.02)
    difference = left[:, 0] - left[:, 1]
    assert difference.std() == pytest.approx((own[:, 0] - own[:, 1]).std(), rel=0.2)
    assert np.abs(without_part(values, 10 * np.eye(3)) - values.mean(axis=0)).max() < 0.02


@pytest.mark.parametrize(
    ("n_classes", "most_lost"),
    [(2, 0.08), (4, 0.047), *(pytest.param(*many, marks=pytest.mark.slow) for many in ((8, 0.045), (10, 0.05)))],
)
def test_moving_shares_leaves_a_good_system_where_it_is(n_classes, most_lost):
    """A system that is nearly always right leaves shares little room, and they took six hundredths off it."""
    sim = tu.simulate.dawid_skene(n_items=300, n_classes=n_classes, n_labelers=12, votes_per_item=5, random_state=0)
    good = np.where(np.arange(300) % 50 == 0, (sim.truth + 1) % n_classes, sim.truth)
    ev = tu.evaluate(good, sim.labels, **FAST)
    assert ev["accuracy"].mean > ev.assuming("independent")["accuracy"].mean - most_lost
    low, high = ev["accuracy"].interval(0.95)
    assert low < 0.98 < high
    assert high > 0.99


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_few_predictions_are_judged_by_many_votes_as_by_their_own(seed, monkeypatch):
    """Beside thousands of items without a prediction the answer on eighty could be anything from 0 to 1."""
    sim = tu.simulate.dawid_skene(n_items=2000, n_classes=3, n_labelers=40, votes_per_item=5, random_state=seed)
    few = sim.predictions[:80]
    own = tu.evaluate(few, sim.labels.select(items=sim.labels.items[:80]), **FAST)
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 4_000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 2_500)
    predictions = dict(zip(sim.labels.items[:80].tolist(), few.tolist(), strict=True))
    ev = tu.evaluate(predictions, sim.labels, missing="ignore", **FAST)
    accuracy = float(np.mean(few == sim.truth[:80]))
    for name in ("independent", "shared", "real"):
        assert ev.assuming(name)["accuracy"].mean == pytest.approx(accuracy, abs=0.06), name
    assert ev["accuracy"].std == pytest.approx(own["accuracy"].std, rel=0.3)


def test_gold_that_was_drawn_comes_first_and_says_how_far_votes_go(dependent):
    rng = np.random.default_rng(0)
    truth = dependent.truth
    drawn = rng.choice(250, 60, replace=False).tolist()

    def answer(n):
        gold = {i: int(truth[i]) for i in drawn[:n]}
        return tu.evaluate(dependent.predictions, dependent.labels.with_gold(gold, drawn="random"), **FAST)

    nearly, enough = answer(19), answer(21)
    assert (nearly.basis, enough.basis) == ("votes", "gold")
    assert 0.6 < width(enough["accuracy"]) / width(nearly["accuracy"]) < 1.6
    assert any("19 vetted items were drawn at random; from 20 on" in sentence for sentence in nearly.warnings)
    sixty = answer(60)
    assert sixty.basis_of("accuracy") == "gold"
    assert width(sixty["accuracy"]) < 0.85 * width(enough["accuracy"])
    low, high = sixty["accuracy"].interval(0.99)
    assert low <= np.mean(dependent.predictions == truth) <= high
    assert sixty.assuming("real").basis == "votes"


@pytest.fixture(scope="module")
def anonymous_crowd():
    """Counts of three good anonymous votes on items of ten classes, a good system, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(10, size=600)

    def say(skill):
        return np.where(rng.random(600) < skill, truth, rng.integers(10, size=600))

    counts = np.sum([np.eye(10, dtype=int)[say(0.94)] for _ in range(3)], axis=0)
    return tu.Labels.from_counts(counts, classes=range(10)), say(0.93), truth


@pytest.mark.parametrize(("noise", "most_off"), [("dawid-skene", 0.02), ("subtypes", 0.08)])
def test_classes_of_a_crowd_and_a_system_that_agree_are_not_exchanged(anonymous_crowd, noise, most_off):
    """Two raters hardly say which class is which: a system that is right on 93% was thought to be on 84% and 40%."""
    labels, said, truth = anonymous_crowd
    ev = tu.evaluate(said, labels, noise=noise, metrics=["accuracy"], **FAST)
    accuracy = ev["accuracy"]
    low, high = accuracy.interval(0.95)
    assert ev.solution.diagnostics["r_hat"] < 1.1
    assert low <= np.mean(said == truth) <= high
    assert accuracy.mean == pytest.approx(np.mean(said == truth), abs=most_off)


def test_a_plain_answer_about_an_anonymous_crowd_of_ten_classes_says_something(anonymous_crowd):
    labels, said, truth = anonymous_crowd
    low, high = tu.evaluate(said, labels, metrics=["accuracy"], **FAST)["accuracy"].interval(0.95)
    assert low < np.mean(said == truth) < high
    assert high - low < 0.32
