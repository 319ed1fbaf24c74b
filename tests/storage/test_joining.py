"""Sessions of trueup in a storage: the first process makes one, others join it with the same data and settings."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.exceptions import InvalidParameter, StorageError
from trueup.storage import open_session, open_storage
from trueup.storage.joining import fingerprint, of_votes

DATA = tu.simulate.baseline(n_items=60, random_state=0)
TRUTH = {item: int(DATA.truth[item]) for item in range(60)}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/test.db"


def join(url, name="q3", predictions=DATA.predictions, labels=DATA.labels, **settings):
    return tu.ActiveTest(predictions, labels, **{"noise": "majority", **settings}, storage=url, name=name)


def test_a_session_that_is_shared_is_the_one_that_is_not(url):
    alone, shared = tu.ActiveTest(DATA.predictions, DATA.labels, noise="majority"), join(url)
    for test in (alone, shared):
        test.tell({item: TRUTH[item] for item in test.ask(10)})
        test.skip(test.ask(2))
    assert [event.item for event in shared.log] == [event.item for event in alone.log]
    assert shared.estimate().interval(0.95) == alone.estimate().interval(0.95)
    assert shared.restart(random_state=0).log == ()
    assert len(shared.replay(shared.log[:5]).log) == 5
    assert len(open_storage(url).events("q3")) == len(shared.log), "copies write nothing"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"predictions": 1 - DATA.predictions}, "the predictions of session 'q3'"),
        ({"labels": DATA.labels.with_gold({0: 1})}, "the votes of session 'q3'"),
        ({"metric": "f1"}, "`metric` of session 'q3' .* was 'accuracy', got 'f1'"),
        ({"random_state": 7}, "`random_state` of session 'q3' .* was 0, got 7"),
        ({"strategy": "random"}, "`strategy` of session 'q3'"),
        ({"floor": 0.9}, "`options` of session 'q3'"),
    ],
)
def test_what_is_fixed_when_a_session_begins(url, change, problem):
    join(url).ask(2)
    with pytest.raises(StorageError, match=problem) as refusal:
        join(url, **change)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("storage", "name"), [(None, "q3"), ("sqlite:///x.db", None), ("sqlite:///x.db", "")])
def test_a_storage_needs_a_name_and_a_name_a_storage(storage, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match="needs both `storage` and `name`"):
        tu.ActiveTest(DATA.predictions, DATA.labels, noise="majority", storage=storage, name=name)


def test_sessions_are_opened_by_name(url):
    test = join(url, budget=20, floor=0.7)
    test.tell({item: TRUTH[item] for item in test.ask(3)})
    again = open_session(tu.ActiveTest, url, "q3", DATA.predictions, DATA.labels)
    assert (again.budget, again.options, again.log) == (20, {"floor": 0.7}, test.log)
    with pytest.raises(StorageError, match="there is no session 'q4'"):
        open_session(tu.ActiveTest, url, "q4", DATA.predictions, DATA.labels)


def test_a_session_of_cleaning_is_shared(url):
    sim = tu.simulate.tars(n_items=120, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.1), random_state=0)

    def advisor(features=sim.features, estimator=None, **how):
        model = estimator or LogisticRegression()
        return tu.CleaningAdvisor(model, features, sim.labels, **how, storage=url, name="clean")

    here, there = advisor(), advisor()
    mine, theirs = list(here.ask(2)), list(there.ask(2))
    assert not set(mine) & set(theirs)
    here.tell({item: int(sim.truth[item]) for item in mine})
    there.refresh()
    assert (there.n_cleaned, there.log) == (2, here.log)
    with pytest.raises(StorageError, match="the features of session 'clean'"):
        advisor(features=sim.features + 1)
    with pytest.raises(StorageError, match="the estimator of session 'clean'"):
        advisor(estimator=LogisticRegression(C=7))
    with pytest.raises(StorageError, match="must be of the kind 'active test', got 'cleaning'"):
        join(url, name="clean")


def test_fingerprints_tell_data_apart():
    table = np.array([[0, 1.5], [2, 0]])
    assert fingerprint(table) == fingerprint(table.copy(order="F"))
    assert fingerprint(sparse.csr_array(table)) == fingerprint(sparse.coo_array(table))
    assert (
        len({fingerprint(part) for part in (table, table.T, table.ravel(), None, "x", ["x"], [1, 2], [1.0, 2.0])}) == 8
    )
    votes = np.arange(12).reshape(6, 2) % 2
    labels = tu.Labels.from_matrix(votes)
    others = [
        tu.Labels.from_matrix(1 - votes),
        tu.Labels.from_matrix(votes, items=list("abcdef")),
        tu.Labels.from_matrix(votes, labelers=["v", "w"]),
        labels.with_gold({0: 1}),
    ]
    assert of_votes(tu.Labels.from_matrix(votes)) == of_votes(labels)
    assert of_votes(labels) not in {of_votes(other) for other in others}
