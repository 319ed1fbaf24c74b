"""The advisor: ask and tell, its log, its parts, what it costs, and what it refuses."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import trueup as tu
from trueup.cleaning import CleaningAdvisor
from trueup.cleaning.strategies import STRATEGIES
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions

MATRIX = np.array([[0.6, 0.4], [0.1, 0.9]])


def simulation(n=300, seed=0, **options):
    return tu.simulate.tars(n_items=n, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.1), random_state=seed, **options)


def advisor(sim, estimator=None, **options):
    noise = options.pop("noise", tu.noise.Confusion(MATRIX))
    return CleaningAdvisor(
        LogisticRegression() if estimator is None else estimator, sim.features, sim.labels, noise=noise, **options
    )


def clean(session, truth, n, *, batch=1):
    while session.n_cleaned < n:
        session.tell({item: int(truth[item]) for item in session.ask(batch)})


def test_an_answer_becomes_a_training_label_and_is_never_asked_again():
    sim = simulation()
    session = advisor(sim)
    batch = session.ask(5)
    assert len(set(batch)) == 5
    assert session.waiting == sorted(batch)
    assert not set(session.ask(5)) & set(batch)
    session.tell({item: int(sim.truth[item]) for item in batch}, who="ann")
    assert session.n_cleaned == 5
    assert [session.labels_[item] for item in batch] == [sim.truth[item] for item in batch]
    assert session.state.chances[np.searchsorted(session.state.train, sorted(batch))].max(axis=1).tolist() == [1.0] * 5
    rest = session.ask(1000)
    assert not set(rest) & set(batch)
    assert session.finished == "Every training label is clean, waiting or passed."
    assert len(session.ask(3)) == 0


def test_the_model_is_the_estimator_trained_on_the_labels_as_they_are():
    sim = simulation()
    session = advisor(sim)
    clean(session, sim.truth, 10)
    train = np.flatnonzero(session.problem.trains)
    y = session.labels_[train].astype(int)
    by_hand = LogisticRegression().fit(sim.features[train], y)
    assert np.allclose(session.model_.coef_, by_hand.coef_)
    assert session.model_ is session.model_  # fitted once


def test_an_answer_can_be_corrected():
    sim = simulation()
    session = advisor(sim)
    (item,) = session.ask()
    session.tell({item: 0})
    with pytest.raises(InvalidParameter, match="correct=True"):
        session.tell({item: 1})
    session.tell({item: 1}, correct=True)
    assert session.labels_[item] == 1
    assert session.n_cleaned == 1


def test_a_validation_item_is_never_asked_but_can_be_told():
    sim = simulation()
    session = advisor(sim)
    validation = np.flatnonzero(session.problem.validates)
    assert not set(validation.tolist()) & set(session.ask(1000))
    before = session.score_
    session.tell({int(item): int(sim.truth[item]) for item in validation})
    assert session.score_.std < 0.7 * before.std
    right = (session.model_.predict(sim.features[validation]) == sim.truth[validation]).mean()
    assert session.score_.mean == pytest.approx(right, abs=0.01)  # nothing is noisy any more


def test_items_without_votes_wait_for_an_oracle():
    sim = simulation(60)
    votes = np.full((61, 1), -1)
    votes[:60, 0] = sim.labels.vote_table()[2]
    with pytest.warns(tu.exceptions.DataWarning, match="no votes"):
        labels = tu.Labels.from_matrix(votes, missing=-1, classes=[0, 1])
    X = np.concatenate([sim.features, [[9.0, 9.0]]])
    session = CleaningAdvisor(LogisticRegression(), X, labels, noise=tu.noise.Confusion(MATRIX))
    assert session.labels_[60] is None
    assert 60 not in session.ask(100)
    before = len(session.state.train)
    session.tell({60: 1})
    assert len(session.state.train) == before + 1
    assert session.labels_[60] == 1


def test_replay_of_500_tells_gives_the_same_next_choice():
    sim = simulation(1200, seed=3)
    session = advisor(sim, strategy="emi")
    clean(session, sim.truth, 500, batch=50)
    assert sum(event.kind == "tell" for event in session.log) == 500
    again = CleaningAdvisor.from_json(
        session.to_json(), LogisticRegression(), sim.features, sim.labels, noise=tu.noise.Confusion(MATRIX)
    )
    replayed = advisor(sim).replay(session.log)
    expected = session.ask(10)
    assert [list(other.ask(10)) for other in (again, replayed)] == [list(expected)] * 2
    assert again.log == session.log == replayed.log
    assert again.score_.mean == session.score_.mean


def test_settings_survive_json():
    sim = simulation(100)
    costs = np.linspace(1, 2, 100)
    session = advisor(
        sim,
        strategy="emi",
        metric="f1",
        validation=list(range(40)),
        weigh=False,
        prune=0.5,
        costs=costs,
        budget=30.0,
        min_improvement=1e-4,
        level=0.9,
        positive=0,
        random_state=9,
        belief="votes",
    )
    text = session.to_json()
    assert json.loads(text)["settings"]["random_state"] == 9
    again = CleaningAdvisor.from_json(
        text, LogisticRegression(), sim.features, sim.labels, noise=tu.noise.Confusion(MATRIX)
    )
    assert again.to_json() == text
    other = CleaningAdvisor.from_json(
        text, LogisticRegression(), sim.features, sim.labels, noise=tu.noise.Confusion(MATRIX), strategy="random"
    )
    assert other.strategy == "random"


def test_names_do_not_matter():
    sim = simulation(150)
    votes = sim.labels.vote_table()[2]
    names = [f"item-{k:03d}" for k in range(150)]
    words = np.array(["a no", "b yes"])
    labels = tu.Labels.from_frame(
        {"item": names, "labeler": ["w"] * 150, "label": words[votes].tolist()},
        item="item",
        labeler="labeler",
        label="label",
    )
    rows = dict(zip(names, sim.features, strict=True))
    named = CleaningAdvisor(LogisticRegression(), rows, labels, noise=tu.noise.Confusion(MATRIX))
    plain = advisor(sim)
    for _ in range(5):
        (item,), (k,) = named.ask(), plain.ask()
        assert item == names[k]
        named.tell({item: words[sim.truth[k]]})
        plain.tell({k: int(sim.truth[k])})


def test_the_budget_is_kept():
    sim = simulation(200)
    costs = np.where(np.arange(200) % 2, 2.0, 5.0)
    session = advisor(sim, costs=costs, budget=21.0)
    while session.finished is None:
        session.tell({item: int(sim.truth[item]) for item in session.ask(2)})
    assert 19 < session.spent <= 21
    assert "budget of 21 is spent" in session.finished
    assert len(session.ask()) == 0


def test_the_curve_is_what_replaying_gives():
    sim = simulation(200)
    session = advisor(sim, strategy="noise-rate")
    clean(session, sim.truth, 9)
    rows = session.curve(every=3)
    assert [row["n"] for row in rows] == [0, 3, 6, 9]
    assert rows[-1]["mean"] == session.score_.mean
    assert rows[0]["mean"] == advisor(sim).score_.mean
    assert rows[-1]["cost"] == 9


def three_classes(n=240, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[truth]
    matrix = 0.55 * np.eye(3) + 0.15
    votes = np.array([[rng.choice(3, p=matrix[t]) for _ in range(3)] for t in truth])
    return X, truth, tu.Labels.from_matrix(votes, classes=[0, 1, 2])


def test_sparse_features_and_pipelines():
    X, _, labels = three_classes()
    dense = CleaningAdvisor(LogisticRegression(), X, labels, strategy="activeclean").ask(20)
    thin = CleaningAdvisor(LogisticRegression(), sparse.csr_array(X), labels, strategy="activeclean").ask(20)
    assert list(dense) == list(thin)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for name in STRATEGIES:
        assert len(CleaningAdvisor(model, X, labels, strategy=name).ask(2)) == 2


def test_a_model_without_probabilities_can_rank_by_improvement_alone():
    session = advisor(simulation(100), LinearSVC(), weigh=False)
    assert len(session.ask(2)) == 2


def test_the_score_is_unbiased_and_its_interval_holds():
    inside, errors = 0, []
    for seed in range(40):
        sim = simulation(300, seed=seed)
        session = advisor(sim, validation=0.6, random_state=seed)
        fresh = simulation(4000, seed=1000 + seed)
        target = session.model_.score(fresh.features, fresh.truth)
        low, high = session.score_.interval(0.95)
        inside += low <= target <= high
        errors.append(session.score_.mean - target)
    assert inside >= 34  # of 40 at 95%: fewer has a chance below 1 in 1000
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(40) + 0.01


class OnlyFit:
    def fit(self, X, y):
        return self

    def get_params(self, deep=True):
        return {}


def sentence(error) -> str:
    text = str(error.value)
    assert ". " not in text.replace("e.g. ", "")
    assert "got" in text
    return text


def of_codes(is_validation):
    return advisor(SMALL, validation=is_validation(advisor(SMALL).problem.codes))


SMALL = simulation(60)
TRUTH = {k: int(v) for k, v in enumerate(SMALL.truth)}
ROWS = {k: row for k, row in enumerate(SMALL.features) if k != 7}


def of(features, labels=SMALL.labels):
    return CleaningAdvisor(LogisticRegression(), features, labels, noise=tu.noise.Confusion(MATRIX))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: advisor(SMALL, LinearSVC()), "must have predict_proba.*LinearSVC"),
        (lambda: advisor(SMALL, OnlyFit()), "must have predict_proba.*OnlyFit"),
        *(
            (lambda e=e: CleaningAdvisor(e, SMALL.features, SMALL.labels, strategy="random"), "estimator must.*got")
            for e in (None, "logistic", LogisticRegression)
        ),
        (lambda: of(SMALL.features[:50]), "same items.*got 50 rows for 60 items"),
        (lambda: of(ROWS), r"a row for each item.*got.*\[7\]"),
        (lambda: of(3.0), "same items.*got"),
        (lambda: of(SMALL.features, SMALL.truth), "must be Labels.*got"),
        (lambda: of_codes(lambda codes: codes == 1), r"the validation part must .* every class.*got none of \[0\]"),
        (
            lambda: of_codes(lambda codes: (codes == 0) | (np.arange(60) == np.flatnonzero(codes == 1)[0])),
            "the training part must have labels of every class.*got",
        ),
        (lambda: of(SMALL.features, SMALL.labels.with_gold(TRUTH)), "already clean.*got 60 gold items"),
        (lambda: advisor(SMALL, noise=tu.noise.Confusion(np.eye(2))), "already clean"),
    ],
)
def test_what_cannot_be_cleaned_is_one_sentence(call, words):
    with pytest.raises((InvalidParameter, InvalidLabels), match=words) as error:
        call()
    assert ". " not in str(error.value).replace("e.g. ", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "best"}, "`strategy` must be one of"),
        ({"strategy": "random", "belief": "votes"}, "takes no option, got 'belief'"),
        ({"belief": "stars"}, "`belief` must be one of"),
        ({"prune": 1.5}, "`prune` must be"),
        ({"validation": 1.2}, "`validation` must be"),
        ({"validation": "third"}, "`validation` must be"),
        ({"validation": np.ones(7, dtype=bool)}, "mask of 60 items"),
        ({"costs": np.zeros(60)}, "`costs` must be a positive number"),
        ({"costs": {0: 1.0}}, "costs must name every item"),
        ({"budget": -1.0}, "`budget` must be"),
        ({"shortlist": 0}, "`shortlist` must be"),
        ({"level": 1.0}, "`level` must be"),
        ({"random_state": "x"}, "random_state must be"),
        ({"positive": "maybe"}, r"`positive` must be one of the classes .* got 'maybe'"),
        ({"noise": tu.noise.Difficulty()}, "confusion matrix for each labeler"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value).split()[0],
)
def test_settings_that_make_no_sense(options, words):
    with pytest.raises((InvalidParameter, InvalidLabels, InvalidPredictions), match=words) as error:
        advisor(simulation(60), **options)
    sentence(error)


@pytest.mark.parametrize(("prune", "n_scored"), [(0.5, 6), (0.9, 2), (0.0, 11), (0.8, 3)])
def test_pruning_leaves_out_its_share_of_the_answers(monkeypatch, prune, n_scored):
    """Whether or not the model is looked at in between."""
    counted, scored = [], STRATEGIES["noise-rate"].scores
    monkeypatch.setattr(STRATEGIES["noise-rate"], "scores", lambda *given: counted.append(1) or scored(*given))
    sim = simulation(100)
    session = advisor(sim, prune=prune, strategy="noise-rate")
    for _ in range(11):
        session.tell({item: int(sim.truth[item]) for item in session.ask()})
        assert session.model_ is not None
    assert len(counted) == n_scored


@pytest.mark.parametrize(
    "metric", ["precision", *(pytest.param(name, marks=pytest.mark.slow) for name in ("recall", "f1"))]
)
def test_the_positive_class_is_the_last_whatever_its_name(metric):
    """With all truth known the metric is that of `evaluate`, for classes whose order is not that of the alphabet."""
    sim = simulation(300)
    names = np.array(["yes", "no"])
    codes = sim.labels.vote_table()[2]
    item = sim.labels.vote_table()[0]
    columns = {"item": item, "labeler": np.zeros(len(item)), "label": names[codes]}
    labels = tu.Labels.from_frame(columns, item="item", labeler="labeler", label="label", classes=names.tolist())
    truths = dict(enumerate(names[sim.truth].tolist()))
    settings = {"noise": tu.noise.Confusion(MATRIX), "metric": metric, "split": False}
    for positive in (None, "yes"):
        session = CleaningAdvisor(LogisticRegression(), sim.features, labels, **settings, positive=positive)
        session.tell(truths)
        said = dict(enumerate(session.model_.predict(sim.features).tolist()))
        direct = tu.evaluate(said, labels.with_gold(truths), metrics=[metric], positive=positive)[metric].mean
        # The estimate is of a normal law that is cut at 1.
        assert session.score_.mean == pytest.approx(direct, abs=1e-3)
        again = CleaningAdvisor.from_json(
            session.to_json(), LogisticRegression(), sim.features, labels, noise=settings["noise"]
        )
        assert again.score_.mean == session.score_.mean
