"""A session from the first question to the last: the cycle, the log, the rules to stop, and hostile input."""

import re

import numpy as np
import pytest

import trueup as tu
from trueup.active import ESTIMATORS, STRATEGIES, Event
from trueup.exceptions import InvalidParameter

N = 60
COUNTED = ("accuracy", "error_rate", "precision", "recall", "f1")
DESIGN_BASED = ("ppi++", "lure")
SCORED = ("auc", "average_precision", "precision@5")


class World:
    """Votes of four labelers, two systems, and the truth of every item."""

    def __init__(self, seed=0, n=N, n_classes=2):
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(n_classes, size=n)
        other = rng.integers(n_classes, size=(n, 4))
        self.votes = np.where(rng.random((n, 4)) < 0.7, self.truth[:, None], other)
        self.labels = tu.Labels.from_matrix(self.votes)
        self.classes, self.scores, self.chances = {}, {}, {}
        for k, quality in enumerate((0.8, 0.5)):
            guess = rng.integers(n_classes, size=n)
            self.classes[f"s{k}"] = np.where(rng.random(n) < quality, self.truth, guess)
            self.scores[f"s{k}"] = (self.truth == n_classes - 1) * 2 * quality + rng.normal(size=n)
            rough = np.exp(np.eye(n_classes)[self.truth] * 2 * quality + rng.normal(size=(n, n_classes)))
            self.chances[f"s{k}"] = rough / rough.sum(axis=1, keepdims=True)

    def outputs(self, metric):
        return self.chances if metric == "log_loss" else self.scores if metric in SCORED else self.classes

    def test(self, *, metric="accuracy", n_systems=1, labels=None, **settings):
        outputs = self.outputs(metric)
        given = outputs["s0"] if n_systems == 1 else outputs
        labels = self.labels if labels is None else labels
        return tu.ActiveTest(given, labels, metric=metric, **{"noise": "majority", **settings})  # quick to fit

    def answer(self, test, n=1, **more):
        asked = test.ask(n)
        test.tell({item: int(self.truth[item]) for item in asked}, **more)
        return asked


@pytest.fixture(scope="module")
def world():
    return World()


def same(one, other):
    """Bit for bit: log, state, draws and the next question."""
    assert one.log == other.log
    np.testing.assert_array_equal(one.state.probabilities, other.state.probabilities)
    np.testing.assert_array_equal(one._estimated().values, other._estimated().values)
    assert one.warnings == other.warnings
    a, b = one.replay(one.log), other.replay(other.log)
    assert a.ask(5).details == b.ask(5).details


# ---------------------------------------------------------------------- the cycle


def test_cycle(world):
    test = world.test(noise="soft-truth")
    batch = test.ask(5)
    assert len(batch) == len(set(batch)) == 5 == len(test.waiting)
    assert all(one.why and 0 < one.propensity <= 1 for one in batch.details)
    assert not set(batch) & set(test.ask(5)), "items that wait are not asked again"
    test.tell({item: int(world.truth[item]) for item in batch}, who="ann")
    assert test.n_vetted == 5
    assert len(test.waiting) == 5
    low, high = test.estimate().interval(0.95)
    assert 0 <= low < test.estimate().mean < high <= 1
    assert "5 of 60" in repr(test)


@pytest.mark.parametrize("strategy", ["propensity", "random", "uncertainty"])
def test_replay_and_json_are_bit_for_bit(world, strategy):
    test = world.test(
        noise="soft-truth", strategy=strategy, n_systems=2, budget=np.int64(40), half_width=0.01, random_state=7
    )
    world.answer(test, 12, who="ann")
    first = test.log[0].item
    test.tell({first: 1 - int(world.truth[first])}, who="bob", correct=True)
    test.skip(test.ask(2)[:1], who="bob")
    free = int(np.flatnonzero(test.state.available)[0])
    test.tell({free: int(world.truth[free])})
    same(test, test.replay(test.log))
    same(test, test.replay(test.to_json()))
    back = tu.ActiveTest.from_json(test.to_json(), world.classes, world.labels)
    same(test, back)
    assert back.to_json() == test.to_json()


def test_json_keeps_a_noise_model_or_asks_for_it_again(world):
    test = world.test(noise=tu.noise.SoftTruth(shape=1.4))
    world.answer(test, 12)
    back = tu.ActiveTest.from_json(test.to_json(), world.classes["s0"], world.labels)
    assert repr(back.noise) == "SoftTruth(shape=1.4)"
    same(test, back)
    known = tu.noise.Confusion([[0.8, 0.2], [0.3, 0.7]])
    text = world.test(noise=known).to_json()
    with pytest.raises(InvalidParameter, match=r"a noise that text cannot hold.* pass `noise=…` to from_json"):
        tu.ActiveTest.from_json(text, world.classes["s0"], world.labels)
    assert tu.ActiveTest.from_json(text, world.classes["s0"], world.labels, noise=known).noise is known


def test_history_is_what_was_estimated_then(world):
    test = world.test()
    then = []
    for _ in range(2):
        world.answer(test, 10, who="ann")
        then.append(test.estimate().mean)
    first = test.log[0].item
    test.tell({first: int(world.truth[first])}, who="bob")
    rows = test.history(every=10)
    assert [row["n"] for row in rows] == [10, 20]
    assert [row["mean"] for row in rows] == then
    with pytest.raises(InvalidParameter, match="every"):
        test.history(every=0)
    pytest.importorskip("matplotlib").use("Agg")
    assert test.plot().get_xlabel() == "vetted items"


def test_old_names_work_for_one_more_version_and_say_so(world):
    from trueup import storage

    test = world.test()
    with pytest.warns(DeprecationWarning, match="status"):
        assert test.standing() == test.status()
    with pytest.warns(DeprecationWarning, match="Accepted"):
        assert storage.Kept is storage.Accepted


# ---------------------------------------------------------------------- experts


def test_an_answer_is_changed_only_on_purpose(world):
    test = world.test()
    (item,) = test.ask()
    test.tell({item: 0}, who="ann")
    with pytest.raises(InvalidParameter, match="correct=True"):
        test.tell({item: 1}, who="bob")
    assert test.progress.truth[item] == 0
    assert len(test.log) == 2
    test.tell({item: 1}, who="bob", correct=True)
    assert test.progress.truth[item] == 1
    assert test.n_vetted == 1
    assert test.log[-1].kind == "correct"
    assert test.log[-1].who == "bob"


def test_a_pass_is_not_asked_again_and_can_be_answered(world):
    test = world.test(budget=3)
    (item,) = test.ask()
    test.skip([item], who="ann")
    assert test.n_vetted == 0
    assert item not in test.waiting
    assert any("1 items that were drawn have no valid answer (nobody could tell: 1)" in s for s in test.warnings)
    rest = test.ask(10)
    assert len(rest) == 3, "a pass costs no answer"
    assert item not in rest
    test.tell({item: 1}, who="bob")
    assert not any("nobody could tell" in sentence for sentence in test.warnings)
    length = len(test.log)
    test.skip([item])
    assert len(test.log) == length
    assert test.progress.truth[item] == 1


# ---------------------------------------------------------------------- when to stop


def test_half_width(world):
    wide = world.test(half_width=0.5)
    world.answer(wide, 9)
    assert wide.finished is None, "never by luck on the first few"
    world.answer(wide, 13)
    assert "at most 0.5" in wide.finished
    narrow = world.test(half_width=0.001)
    world.answer(narrow, 12)
    assert narrow.finished is None
    both = world.test(half_width=0.2, n_systems=2)
    world.answer(both, 30)
    widths = [np.ptp(both.estimate(s).interval(0.95)) / 2 for s in ("s0", "s1")]
    assert (both.finished is not None) == (max(widths) <= 0.2)
    bare = world.test(half_width=0.5, estimator="naive")
    world.answer(bare, 12)
    assert bare.finished is None, "a number without an interval is never narrow enough"


def test_prob_better(world):
    sure = world.test(n_systems=2, prob_better=0.6)
    world.answer(sure, 30)
    assert sure.finished.startswith("'s0' is better than 's1' with probability")
    equal = tu.ActiveTest({"a": world.classes["s0"], "b": world.classes["s0"]}, world.labels, prob_better=0.6)
    world.answer(equal, 30)
    assert equal.prob_order("a", "b") == 0.5
    assert equal.finished is None


# ---------------------------------------------------------------------- metrics, systems, categories


def reference(metric, truth, outputs):
    """The same metrics by scikit-learn."""
    from sklearn import metrics

    if metric == "precision@5":
        return truth[np.argsort(-outputs)[:5]].mean()
    if metric == "error_rate":
        return 1 - metrics.accuracy_score(truth, outputs)
    name = {"auc": "roc_auc_score", "log_loss": "log_loss"}.get(metric, f"{metric}_score")
    return getattr(metrics, name)(truth, outputs)


@pytest.mark.parametrize("metric", [*COUNTED, *SCORED, "log_loss"])
@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_when_all_is_vetted_the_metric_is_exact(world, metric, estimator):
    if (estimator == "learned") if metric in COUNTED else (estimator in DESIGN_BASED):
        with pytest.raises(InvalidParameter, match=re.escape(estimator)):
            world.test(metric=metric, estimator=estimator)
        return
    gold = {k: int(world.truth[k]) for k in range(10)}
    test = world.test(metric=metric, estimator=estimator, strategy="random", labels=world.labels.with_gold(gold))
    assert not set(world.answer(test, N)) & set(gold)
    exact = reference(metric, world.truth, world.outputs(metric)["s0"])
    assert test.n_vetted == N - 10
    assert test.estimate().mean == pytest.approx(exact, abs=1e-6)
    np.testing.assert_allclose(test.estimate().interval(0.95), exact, atol=1e-6)


@pytest.mark.parametrize("estimator", ["rectified", "bayes"])
def test_drawn_gold_is_known_and_not_asked(world, estimator):
    gold = {k: int(world.truth[k]) for k in range(10)}
    answers = []
    for drawn in ("random", "chosen"):
        labels = world.labels.with_gold(gold, drawn=drawn)
        test = world.test(metric="accuracy", estimator=estimator, strategy="random", labels=labels)
        assert not set(world.answer(test, 10)) & set(gold)
        test.tell({0: 1 - gold[0]}, correct=True)  # an expert may overrule gold
        low, high = test.estimate().interval(0.95)
        assert 0 < low < high < 1
        answers.append(test.log)
    assert answers[0] == answers[1]


def test_systems(world):
    test = world.test(n_systems=2, strategy="separate")
    world.answer(test, 30)
    assert test.ranking == ["s0", "s1"]
    apart = test.difference("s0", "s1")
    assert apart.mean == pytest.approx(test.estimate("s0").mean - test.estimate("s1").mean)
    assert apart.mean == pytest.approx(-test.difference("s1", "s0").mean)
    assert test.prob_order("s0", "s1") + test.prob_order("s1", "s0") == pytest.approx(1.0)
    assert test.misranking == pytest.approx(1 - test.prob_order("s0", "s1"))
    errors = world.test(n_systems=2, metric="error_rate")
    world.answer(errors, N)
    assert errors.ranking == ["s0", "s1"]
    assert errors.prob_order("s0", "s1") == 1.0
    assert errors.misranking == 0.0
    assert world.test().misranking == 0.0
    with pytest.raises(InvalidParameter, match="no system 'x'"):
        test.estimate("x")


@pytest.mark.parametrize("metric", ["accuracy", "average_precision"])
@pytest.mark.parametrize("strategy", ["stratified", "propensity"])
def test_categories_are_the_mean_of_sessions(world, metric, strategy):
    groups = np.arange(N) % 3
    test = world.test(metric=metric, categories=groups, strategy=strategy)
    world.answer(test, 20)
    assert np.isfinite(test.estimate().interval(0.95)).all()
    world.answer(test, N)
    apart = [reference(metric, world.truth[groups == g], world.outputs(metric)["s0"][groups == g]) for g in range(3)]
    assert test.estimate().mean == pytest.approx(np.mean(apart))


def test_names_do_not_matter(world):
    """String items and classes give the very numbers of integer ones."""
    items = np.array([f"item {k:02d}" for k in range(N)])
    words = np.array(["no", "yes"])
    named = tu.Labels.from_matrix(words[world.votes], missing="", items=items.tolist())
    test = tu.ActiveTest(
        dict(zip(items, words[world.classes["s0"]], strict=True)), named, noise="soft-truth", random_state=0
    )
    asked = test.ask(15)
    test.tell({item: str(words[world.truth[int(item[-2:])]]) for item in asked})
    plain = world.test(noise="soft-truth", random_state=0)
    assert [int(item[-2:]) for item in asked] == list(world.answer(plain, 15))
    assert test.estimate().mean == plain.estimate().mean
    same(test, test.replay(test.to_json()))


@pytest.mark.parametrize(
    ("strategy", "estimator"),
    [(s, e) for s in sorted(STRATEGIES) for e in sorted(ESTIMATORS) if e == "rectified" or s in ("random", "meec")],
)
def test_every_strategy_with_every_estimator(world, strategy, estimator):
    metric = "precision" if estimator in DESIGN_BASED else "precision@5"
    if estimator in DESIGN_BASED and strategy == "meec-paper":
        pytest.skip("the paper's formula is for lists, these estimators are for counts")
    test = world.test(metric=metric, n_systems=2, strategy=strategy, estimator=estimator)
    world.answer(test, 20)
    assert 0 <= test.estimate().mean <= 1
    unwarranted = any("may not hold" in sentence for sentence in test.warnings)
    assert unwarranted == (not test._strategy.is_random)


# ---------------------------------------------------------------------- gold


def test_gold_is_known_from_the_start(world):
    gold = {k: int(world.truth[k]) for k in range(50)}
    labels = world.labels.with_gold(gold)
    test = world.test(labels=labels)
    assert set(test.ask(100)) == set(range(50, 60))
    length = len(test.log)
    test.tell({0: gold[0]})
    assert len(test.log) == length
    assert test.n_vetted == 0
    with pytest.raises(InvalidParameter, match="correct=True"):
        test.tell({0: 1 - gold[0]})
    test.tell({0: 1 - gold[0]}, correct=True)
    assert test.state.probabilities[0, gold[0]] == 0.0
    assert test.n_vetted == 0
    with pytest.raises(InvalidParameter, match="at most the 10 items"):
        world.test(labels=labels, budget=11)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"budget": N + 1}, "at most the 60 items"),
        ({"budget": 0}, "budget"),
        ({"half_width": -1}, "half_width"),
        ({"prob_better": 0.9}, "two systems"),
        ({"prob_better": 0.2}, "prob_better"),
        ({"level": 1.0}, "level"),
        ({"target": "all"}, "target"),
        ({"strategy": "magic"}, "strategy"),
        ({"estimator": "magic"}, "estimator"),
        ({"metric": "precision@61"}, "at least 61 items"),
        ({"metric": "precision@21", "categories": np.arange(N) % 3}, "got one of 20"),
        ({"categories": [1, 2]}, "categories"),
        ({"categories": {0: "a"}}, "categories"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": True}, "random_state"),
        ({"floor": 2.0}, "floor"),
        ({"flor": 0.2}, "takes the options floor, n_positives, got 'flor'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_bad_settings(world, settings, words):
    metric = settings.get("metric", "accuracy")
    outputs = world.scores["s0"] if "@" in metric else world.classes["s0"]
    with pytest.raises(InvalidParameter, match=words) as caught:
        tu.ActiveTest(outputs, world.labels, noise="majority", **settings)  # quick to fit
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda test: test.tell({0: 7}), "must be one of the classes"),
        (lambda test: test.tell({0: None}), "must be one of the classes"),
        (lambda test: test.tell({0: [1]}), "must be one of the classes"),
        (lambda test: test.tell({"zero": 1}), "there is no item 'zero'"),
        (lambda test: test.tell({0: 1, 99: 1}), "there is no item 99"),
        (lambda test: test.tell([(0, 1)]), "must map items to classes"),
        (lambda test: test.skip([99]), "there is no item 99"),
        (lambda test: test.skip([[0]]), "there is no item"),
        (lambda test: test.skip("ab"), "a list of items"),
        (lambda test: test.skip(3), "a list of items"),
        (lambda test: test.ask(0), "`n` must be"),
        (lambda test: test.ask(1.5), "`n` must be"),
        (lambda test: test.replay("{"), "no JSON"),
        (lambda test: test.replay([{"kind": "tell"}]), "must hold events"),
        (lambda test: test.replay([Event("tell", 99, 1)]), "names item 99"),
    ],
    ids=[
        *("class", "none", "list", "item", "one-of-two", "pairs", "pass-item", "pass-list", "pass-text", "pass-number"),
        *("zero", "float", "broken", "record", "event"),
    ],
)
def test_bad_calls_leave_the_session_alone(world, call, words):
    test = world.test()
    with pytest.raises(InvalidParameter, match=words):
        call(test)
    assert test.log == ()
