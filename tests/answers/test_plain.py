"""The plain answer: what it rests on, how checked items move it, and input at the edges."""

from pathlib import Path

import numpy as np
import pytest

import trueup as tu
from trueup.core.truth import TruthModel
from trueup.exceptions import DataWarning, InvalidLabels, InvalidParameter


@pytest.fixture(scope="module")
def world():
    return tu.simulate.dawid_skene(n_items=300, n_labelers=5, accuracy=0.8, random_state=3)


def predictions_of(world, accuracy: float = 0.85, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = np.asarray(world.truth)
    return np.where(rng.random(len(truth)) < accuracy, truth, 1 - truth)


def checked(world, n: int, seed: int = 0, drawn: str = "random") -> tu.Labels:
    at = np.random.default_rng(seed).choice(len(world.truth), n, replace=False)
    names, truth = world.labels.items.tolist(), np.asarray(world.truth)
    return world.labels.with_gold({names[k]: int(truth[k]) for k in at}, drawn=drawn)


def width(answer, name: str = "accuracy") -> float:
    return float(np.ptp(answer[name].interval(0.95)))


class TestBasis:
    def test_all_items_checked_is_exact(self, world) -> None:
        said, truth = predictions_of(world), np.asarray(world.truth)
        ev = tu.evaluate(said, checked(world, 300))
        assert ev["accuracy"].interval(0.95) == (np.mean(said == truth),) * 2
        assert ev["recall"].mean == pytest.approx(np.mean(said[truth == 1] == 1))

    def test_widths_fall_smoothly_with_checks(self, world) -> None:
        said = predictions_of(world)
        core = tu.evaluate(said, world.labels).core
        means = []
        for n in (0, 1, 5, 19, 20, 21, 150):
            draws = [core.with_labels(checked(world, n, seed) if n else world.labels).truth for seed in range(6)]
            ends = [np.quantile((d.truths == said).mean(axis=1), [0.025, 0.975]) for d in draws]
            means.append(np.mean(np.ptp(ends, axis=1)))
        assert abs(means[4] / means[3] - 1) < 0.1
        assert abs(means[5] / means[4] - 1) < 0.1
        assert means[0] > means[2] > means[4] > means[6]


class TestChecks:
    def test_forty_checks_correct_votes_that_are_wrong_together(self) -> None:
        """Every labeler is misled on a third of the items, twice as far as sets with truth usually are."""
        rng = np.random.default_rng(0)
        errors, held = {0: [], 40: []}, 0
        for run in range(20):
            truth = rng.integers(2, size=250)
            misled = rng.random(250) < 0.3
            seen = np.where(misled, 1 - truth, truth)
            votes = np.where(rng.random((250, 6)) < 0.9, seen[:, None], 1 - seen[:, None])
            said = np.where(rng.random(250) < 0.8, truth, 1 - truth)
            labels = tu.Labels.from_matrix(votes)
            gold = {int(k): int(truth[k]) for k in rng.choice(250, 40, replace=False)}
            for n, checked_labels in ((0, labels), (40, labels.with_gold(gold, drawn="random"))):
                ev = tu.evaluate(said, checked_labels, random_state=run, check_dependence=False)
                errors[n].append(ev["accuracy"].mean - np.mean(said == truth))
            low, high = ev["accuracy"].interval(0.95)
            held += low <= np.mean(said == truth) <= high
        assert abs(np.mean(errors[0])) > 0.12
        assert abs(np.mean(errors[40])) < 0.4 * abs(np.mean(errors[0]))
        assert held >= 15  # of 20: at 90%, fewer happen once in 90

    def test_chosen_gold_that_contradicts_the_votes_leaves_no_interval(self, world) -> None:
        names, said = world.labels.items.tolist(), predictions_of(world, 0.95)
        wrong = {names[k]: int(1 - said[k]) for k in range(25)}
        ev = tu.evaluate(said, world.labels.with_gold(wrong, drawn="chosen"))
        assert ev.refused
        assert np.isnan(ev["accuracy"].interval(0.95)).all()
        assert np.isfinite(ev["accuracy"].mean)
        assert "contradict" in ev.warnings[0]

    def test_drawn_checks_far_from_the_votes_are_noted(self, world) -> None:
        names, said = world.labels.items.tolist(), predictions_of(world, 0.95)
        wrong = {names[k]: int(1 - said[k]) for k in range(40)}
        ev = tu.evaluate(said, world.labels.with_gold(wrong, drawn="random"))
        assert not ev.refused
        assert any("far from what votes suggest" in sentence for sentence in ev.warnings)
        assert ev["accuracy"].interval(0.95)[1] < 0.45

    def test_checked_clusters_count_for_less_where_their_errors_are_alike(self, world) -> None:
        truth, rng = np.asarray(world.truth), np.random.default_rng(0)
        names, group = world.labels.items.tolist(), np.arange(300) // 5
        is_wrong = np.isin(group, rng.choice(60, 15, replace=False))  # votes and the system err on whole clusters
        seen = np.where(is_wrong, 1 - truth, truth)
        votes = np.where(rng.random((300, 5)) < 0.9, seen[:, None], 1 - seen[:, None])
        labels = tu.Labels.from_matrix(votes).with_items({"item": names, "prompt": group.tolist()})
        at = np.flatnonzero(np.isin(group, rng.choice(60, 12, replace=False)))
        labels = labels.with_gold({names[k]: int(truth[k]) for k in at}, drawn="random")
        core = tu.evaluate(seen, labels, cluster="prompt").core
        assert core.checks.weights.sum() < 0.6 * len(at)
        assert tu.evaluate(seen, labels).core.checks.weights.sum() == pytest.approx(len(at))

    def test_gold_alone_knows_no_vote(self, world) -> None:
        said, labels = predictions_of(world), checked(world, 30)
        shuffled = tu.Labels.from_matrix(np.random.default_rng(0).integers(2, size=(300, 3)))
        gold = {k: labels.gold[k] for k in labels.gold}
        other = shuffled.with_gold(gold, drawn="random")
        a, b = (tu.evaluate(said, one).gold_alone["accuracy"] for one in (labels, other))
        assert a.mean == pytest.approx(b.mean)
        truth = np.asarray(world.truth)
        at = [world.labels.items.tolist().index(k) for k in gold]
        assert a.mean == pytest.approx(np.mean(said[at] == truth[at]), abs=0.05)

    def test_a_prior_of_ones_own_narrows(self, world) -> None:
        said = predictions_of(world)
        narrow = tu.evaluate(said, world.labels, prior=tu.CrowdPrior(level_scale=0.03))
        assert width(narrow) < 0.6 * width(tu.evaluate(said, world.labels))

    def test_assume_is_refused_with_advice(self, world) -> None:
        with pytest.raises(InvalidParameter) as caught:
            tu.evaluate(predictions_of(world), world.labels, assume="real")
        assert caught.value.parameter == "assume"
        assert "leave it out" in str(caught.value)

    def test_unequal_chances_weigh(self, world) -> None:
        """Half of the items are checked rarely and are harder: a plain mean of the checks would be off."""
        truth = np.asarray(world.truth)
        rng = np.random.default_rng(1)
        is_hard = np.arange(300) < 150
        said = np.where(rng.random(300) < np.where(is_hard, 0.6, 0.95), truth, 1 - truth)
        chance = np.where(is_hard, 0.1, 0.6)
        at = np.flatnonzero(rng.random(300) < chance)
        names = world.labels.items.tolist()
        gold = {names[k]: int(truth[k]) for k in at}
        labels = world.labels.with_gold(gold, drawn={names[k]: float(chance[k]) for k in at})
        low, high = tu.evaluate(said, labels)["accuracy"].interval(0.95)
        assert low <= np.mean(said == truth) <= high


class TestSeveral:
    def test_copies_change_nobodys_interval(self, world) -> None:
        a, b = predictions_of(world, 0.85, 1), predictions_of(world, 0.7, 2)
        two = tu.compare({"a": a, "b": b}, world.labels)
        three = tu.compare({"a": a, "b": b, "copy": a}, world.labels)
        assert three["a"].interval(0.95) == two["a"].interval(0.95)
        assert three.difference("a", "copy").interval(0.95) == (0.0, 0.0)

    def test_opposites_err_by_opposite_amounts(self, world) -> None:
        a = predictions_of(world)
        cmp = tu.compare({"a": a, "not a": 1 - a}, world.labels)
        total = cmp.draws.sum(axis=1)
        np.testing.assert_allclose(total, 1.0)

    def test_labelers_are_judged_by_the_others(self, world) -> None:
        labels = world.labels
        cmp = tu.compare(labels.as_systems(), labels)
        truth = np.asarray(world.truth)
        matrix = labels.votes.toarray().reshape(300, 5, 2)
        for t, name in enumerate(labels.labelers.tolist()):
            right = matrix[np.arange(300), t, truth].sum() / matrix[:, t].sum()
            low, high = cmp[name].interval(0.95)
            assert low <= right <= high

    def test_slices_leave_the_whole_alone(self, world) -> None:
        said, names = predictions_of(world), world.labels.items.tolist()
        labels = checked(world, 40).with_items({"item": names, "topic": ["a", "b", "c"] * 100})
        plain, sliced = tu.evaluate(said, labels), tu.evaluate(said, labels, by="topic")
        assert sliced["accuracy"].mean == pytest.approx(plain["accuracy"].mean, abs=0.03)
        assert width(sliced) == pytest.approx(width(plain), rel=0.25)
        assert all(width(sliced.by[name]) > width(plain) for name in "abc")

    def test_share_is_a_constant_system(self, world) -> None:
        share = tu.share(world.labels, of=1).overall
        constant = tu.evaluate(np.ones(300, dtype=int), world.labels)["accuracy"]
        assert share.interval(0.95) == constant.interval(0.95)


class TestEdges:
    def test_one_labeler(self) -> None:
        labels = tu.Labels.from_matrix(np.arange(60)[:, None] % 2)
        ev = tu.evaluate(np.arange(60) % 2, labels)
        assert 0.3 < width(ev) <= 1.0

    def test_one_item(self) -> None:
        ev = tu.evaluate([1], tu.Labels.from_matrix([[1, 1, 0]]))
        assert set(np.unique(ev.core.truth.truths)) <= {0, 1}
        assert ev["accuracy"].interval(0.95) == (0.0, 1.0)

    def test_all_votes_equal(self) -> None:
        labels = tu.Labels.from_matrix(np.tile(np.arange(50)[:, None] % 2, 4))
        ev = tu.evaluate(np.arange(50) % 2, labels)
        assert ev["accuracy"].interval(0.95)[0] < 0.97  # unanimity proves nothing
        assert ev["accuracy"].mean > 0.85

    def test_one_class_in_the_votes(self) -> None:
        with pytest.raises(InvalidLabels):
            tu.evaluate([0, 0], tu.Labels.from_matrix([[0, 0], [0, 0]]))

    def test_items_without_votes(self, world) -> None:
        votes = world.labels.votes.toarray().reshape(300, 5, 2)
        matrix = np.where(votes.sum(axis=2) > 0, votes.argmax(axis=2), -1)
        matrix[:40] = -1
        with pytest.warns(DataWarning):
            labels = tu.Labels.from_matrix(matrix, missing=-1)
        ev = tu.evaluate(predictions_of(world), labels)
        assert np.isfinite(ev["accuracy"].interval(0.95)).all()

    def test_a_system_that_says_one_class(self, world) -> None:
        ev = tu.evaluate(np.ones(300, dtype=int), world.labels, metrics=["accuracy", "recall", "prevalence"])
        assert ev["recall"].interval(0.95) == (1.0, 1.0)
        assert ev["accuracy"].interval(0.95) == ev["prevalence"].interval(0.95)


class TestScans:
    @pytest.fixture
    def files(self, world, tmp_path: Path) -> Path:
        frame = world.labels.to_frame(backend="pandas")
        for k in range(3):
            frame[frame["item"] % 3 == k].to_csv(tmp_path / f"part{k}.csv", index=False)
        return tmp_path

    def test_the_same_as_in_memory(self, world, files: Path) -> None:
        said = dict(enumerate(predictions_of(world).tolist()))
        scan = tu.Labels.scan(str(files / "*.csv"))
        from_files, in_memory = tu.evaluate(said, scan), tu.evaluate(said, world.labels)
        assert from_files["accuracy"].mean == pytest.approx(in_memory["accuracy"].mean, abs=0.01)
        assert width(from_files) == pytest.approx(width(in_memory), rel=0.05)
        np.testing.assert_allclose(
            np.sort(from_files.core.base, axis=0), np.sort(in_memory.core.base, axis=0), atol=1e-9
        )

    def test_checked_items_and_two_systems(self, world, files: Path) -> None:
        a, b = (dict(enumerate(predictions_of(world, p, s).tolist())) for p, s in ((0.9, 1), (0.7, 2)))
        gold = checked(world, 40).gold
        scan = tu.Labels.scan(str(files / "*.csv")).with_gold(gold, drawn="random")
        cmp = tu.compare({"a": a, "b": b}, scan)
        assert cmp.basis == "votes and 40 checked items"
        truth = np.asarray(world.truth)
        low, high = cmp.difference("a", "b").interval(0.95)
        difference = np.mean([a[k] == truth[k] for k in a]) - np.mean([b[k] == truth[k] for k in b])
        assert low <= difference <= high


def test_a_look_after_new_checks_keeps_the_base(world, monkeypatch) -> None:
    ev = tu.evaluate(predictions_of(world), world.labels)
    monkeypatch.setattr("trueup.core.truth.base_of", lambda *_: pytest.fail("the base was fitted again"))
    again = ev.core.with_labels(checked(world, 5))
    assert isinstance(again, TruthModel)
    assert again.basis == "votes and 5 checked items"
    assert again.truth.truths.shape == ev.core.truth.truths.shape
