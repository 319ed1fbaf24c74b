"""The estimate beside the server: in its own process, drawing ahead, and gone when the server is."""

from functools import partial
from multiprocessing import Pipe

import pytest
from vetting_server import fitted, plain_data, wait_for

import trueup as tu
from trueup.exceptions import StorageError
from trueup.serve.estimating import (
    FEWEST_AHEAD,
    FollowedLog,
    InProcess,
    LatestSnapshot,
    Watcher,
    _watch,
    append_cards,
    take_snapshot,
)
from trueup.sessions.log import Event
from trueup.storage import open_storage


def test_a_process_makes_the_session_draws_and_estimates(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEUP_ENGINE", "scipy")  # nothing to compile
    url = f"sqlite:///{tmp_path}/test.db"
    predictions, labels, truth = plain_data(120)
    make = partial(tu.ActiveTest, predictions, labels, noise="dawid-skene", storage=url, name="q3")
    storage, latest = open_storage(url), LatestSnapshot()
    estimating = InProcess(make, storage, url, "q3", latest)
    estimating.start()
    estimating.start()  # once is enough
    try:
        estimating.wait_until_ready()
        wait_for(lambda: latest.problem or len(storage.cards("q3")) >= FEWEST_AHEAD)
        assert latest.problem is None
        card = storage.claim("q3", "ann")
        storage.answer("q3", card.number, Event("tell", card.item, truth[card.item], "ann"))
        wait_for(lambda: latest.snapshot is not None and latest.snapshot.n_answers == 1)
        wait_for(lambda: len(storage.cards("q3")) >= FEWEST_AHEAD)  # the one that went is made good
    finally:
        estimating.stop()
        storage.close()
    assert not estimating._process.is_alive()


def test_what_is_wrong_with_a_session_comes_out_of_the_process(tmp_path):
    url = f"sqlite:///{tmp_path}/test.db"
    predictions, labels, _ = plain_data(120)
    make = partial(tu.ActiveTest, predictions, labels, noise="majority", storage=url, name="q3")
    make()
    here, there = Pipe()
    with here, there:
        _watch(there, partial(make, metric="f1"), url, "q3")  # what the process does, in this one
        what, failure = here.recv()
    assert (what, type(failure)) == ("failure", StorageError)
    assert "is fixed when it begins" in str(failure)


def test_cards_are_added_after_answers_and_never_after_cards_of_others(vetting):
    storage = vetting.storage
    vetting.services.estimating.stop()
    n = len(storage.events("q3"))
    card = storage.claim("q3", "ann")
    storage.answer("q3", card.number, Event("tell", card.item, 1, "ann"))
    new = next(item for item in vetting.truth if item not in {event.item for event in storage.events("q3")})
    tail = append_cards(storage, "q3", [Event("ask", new, propensity=0.1)], n)
    assert [event.kind for event in tail] == ["tell", "ask"]
    assert append_cards(storage, "q3", [Event("ask", new, propensity=0.1)], n) is None
    assert [event.kind for event in storage.events("q3", since=n)] == ["tell", "ask"]


def test_answers_that_come_while_cards_are_written_are_followed_up(vetting):
    storage = vetting.storage
    vetting.services.estimating.stop()
    card = storage.claim("q3", "ann").number
    clients = [(vetting.signed_in("ann"), "1"), (vetting.signed_in("bob"), "0")]

    def write(events, after):
        while clients:
            client, choice = clients.pop()
            client.post("/reply", json={"card": card, "choice": choice, "key": choice})
        return append_cards(storage, "q3", events, after)

    session = fitted(120).restart(random_state=0)
    session.follow(FollowedLog(storage, "q3", write))
    watcher = Watcher(session, storage, "q3", vetting.services.latest.put)
    while watcher.step():
        pass
    assert not clients
    assert [one.purpose for one in storage.cards("q3")].count("settle") == 1


@pytest.mark.parametrize("estimator", ["vetted-only", "ppi++", "lure"])
def test_estimators_that_need_answers_say_so_until_there_are_some(estimator):
    predictions, labels, truth = plain_data(120)
    test = tu.ActiveTest(predictions, labels, noise="majority", estimator=estimator, random_state=0)
    before = take_snapshot(test, ())
    assert (before.first, before.history, before.finished) == (None, (), None)
    assert "answers" in before.warnings[0]
    test.tell({item: truth[item] for item in test.ask(12)})
    after = take_snapshot(test, before.history)
    assert 0 <= after.first.low <= after.first.mean <= after.first.high <= 1
    assert [row.n for row in after.history] == [12]
