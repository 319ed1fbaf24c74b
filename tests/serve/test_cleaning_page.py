"""A cleaning session in the app: its cards, and the expected gain in place of what stopping would give."""

import re
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threaded import InThread
from vetting_server import Vetting, wait_for

import trueup as tu
from trueup._base.wording import interval
from trueup.serve.estimating import LatestSnapshot
from trueup.serve.running import make_app
from trueup.serve.services import Services
from trueup.storage import open_storage


@pytest.fixture
def cleaning(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 2))
    truth = (features[:, 0] > 0).astype(int)
    votes = np.where(rng.random((80, 3)) < 0.75, truth[:, None], 1 - truth[:, None])
    labels = tu.Labels.from_matrix(votes)
    storage, latest = open_storage(f"sqlite:///{tmp_path}/clean.db"), LatestSnapshot()
    make = partial(tu.CleaningAdvisor, LogisticRegression(), features, labels, noise="majority", random_state=0)
    make(storage=storage, name="q3")
    estimating = InThread(partial(make().replay, []), storage, "q3", latest)
    services = Services(storage, "q3", labels, latest, estimating)
    estimating.start()
    wait_for(lambda: (storage.cards("q3") and latest.snapshot) or latest.problem)
    assert latest.problem is None, latest.problem
    yield Vetting(storage, services, make_app(services), dict(enumerate(truth.tolist())))
    estimating.stop()
    storage.close()


def test_the_expected_gain_is_shown_and_moves_with_answers(cleaning):
    ann, owner = cleaning.signed_in("ann"), cleaning.signed_in("owner", "owner")
    for k in range(3):
        card = wait_for(lambda: ann.get("/next").json()["card"])
        item = cleaning.storage.events("q3")[card - 1].item
        ann.post("/reply", json={"card": card, "choice": str(cleaning.truth[item]), "key": f"{k}"})
    snapshot = wait_for(lambda: (now := cleaning.services.latest.snapshot).n_answers == 3 and now)
    assert snapshot.kind == "cleaning"
    page = re.sub("[\u2068\u2069]", "", owner.get("/owner").text)
    assert "Expected gain" in page
    assert "If you stop now" not in page
    assert interval(snapshot.gain.low, snapshot.gain.high) in page
    robot = cleaning.program("robot owner", "owner").get("/api/estimate").json()
    assert (robot["kind"], robot["gain"]["mean"]) == ("cleaning", pytest.approx(snapshot.gain.mean))
    assert len(robot["draws"]["model"]) >= 1
