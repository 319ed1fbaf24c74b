"""A decision that is served: cards end by themselves, the owner sees the chance of each verdict."""

import numpy as np
import pytest
from starlette.testclient import TestClient
from vetting_server import OWN_SITE

import trueup as tu
from trueup.serve.estimating import LatestSnapshot, Watcher, take_snapshot
from trueup.serve.running import make_app
from trueup.serve.services import Services
from trueup.storage import open_storage


@pytest.fixture(scope="module")
def sim():
    return tu.simulate.baseline(n_items=150, random_state=2)


@pytest.fixture
def served(sim, tmp_path):
    """A decision in a storage with its watcher, and the services of a server, whose watcher is that one."""
    url = f"sqlite:///{tmp_path}/test.db"
    answer = tu.evaluate(sim.predictions, sim.labels)
    decision = tu.decide(answer, at_least={"accuracy": 0.4}, storage=url, name="q3")
    storage, latest = open_storage(url), LatestSnapshot()
    watcher = Watcher(decision, storage, "q3", latest.put)

    class Beside:
        def start(self):
            watcher.step()

        def stop(self):
            pass

    yield Services(storage, "q3", sim.labels, latest, Beside()), watcher
    storage.close()


def signed_in(services, name, role):
    client = TestClient(make_app(services), base_url="http://localhost")
    client.headers.update(OWN_SITE)
    client.headers["authorization"] = f"Bearer {services.access.give('token', name, role)}"
    return client


def test_cards_end_once_it_is_decided(served, sim):
    services, watcher = served
    truth = dict(zip(sim.labels.items.tolist(), sim.truth.tolist(), strict=True))
    with signed_in(services, "ann", "expert") as ann, signed_in(services, "eve", "owner") as owner:
        chances = []
        for _ in range(150):
            card = ann.post("/api/ask").json()["card"]
            if card is None:
                break
            assert "Undecided" in owner.get("/owner").text
            chances.append(services.latest.snapshot.decision.passed)
            answer = {"item": card["item"], "truth": truth[card["item"]]}
            assert ann.post("/api/tell", json={"answers": [answer]}).json() == {"n": 1}
            watcher.step()
        snapshot = services.latest.snapshot
        assert snapshot.decision.verdict == "passed"
        assert snapshot.n_answers < 150
        assert chances[-1] > 0.5
        page = owner.get("/owner").text
        assert "Passed" in page
        assert "Chance that the conditions are met" in page
        assert f"<title>{snapshot.n_answers}: {snapshot.decision.met:.2f}</title>" in page
        assert "Goal of all: reached" in ann.get("/").text
        assert [
            card for card in services.storage.cards("q3") if card.seconds_left == 0
        ]  # the cards that were drawn ahead are given to nobody


def test_the_history_has_the_chance_that_the_conditions_are_met(sim):
    decision = tu.decide(tu.evaluate(sim.predictions, sim.labels), at_least={"accuracy": 0.7})
    before = take_snapshot(decision, ())
    assert before.history == ()
    decision.tell({item: int(sim.truth[item]) for item in decision.ask(10)})
    after = take_snapshot(decision, before.history)
    assert [row.n for row in after.history] == [10]
    assert after.history[0].met == pytest.approx(decision.probability)
    assert after.to_dict()["decision"]["verdict"] == "undecided"
    assert np.isclose(after.first.mean, decision.estimates[0].mean)
