"""`connect`: the verbs of `ActiveTest` over a real connection."""

import numpy as np
import pytest
from vetting_server import some_data, wait_for

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.serve.client import ServerError


@pytest.fixture
def served(make_vetting, listening):
    predictions, labels, truth = some_data(100)
    rng = np.random.default_rng(2)
    worse = {item: code if rng.random() < 0.6 else 1 - code for item, code in truth.items()}
    vetting = make_vetting(data=({"good": predictions, "bad": worse}, labels, truth))
    return vetting, listening(vetting)


def tokens(vetting):
    access = vetting.services.access
    return access.give("token", "robot", "expert"), access.give("token", "owner", "owner")


def test_a_session_over_the_network_is_the_session(served):
    vetting, address = served
    robot_token, owner_token = tokens(vetting)
    robot, owner = tu.connect(address, robot_token), tu.connect(address, owner_token)
    assert (robot.who, robot.role, robot.classes, robot.n_items) == ("robot", "expert", [0, 1], 100)
    for k in range(20):
        (item,) = wait_for(lambda: robot.ask())
        if k == 5:
            robot.skip([item], later=True)
        elif k == 6:
            robot.skip([item])
        else:
            robot.tell({item: vetting.truth[item]}, seconds=1.5)
    wait_for(lambda: owner.status().get("n_events") == len(vetting.storage.events("q3")))
    # What a session in this process says of the same log.
    local = vetting.services.estimating._make().replay(vetting.storage.events("q3"))
    assert owner.log == local.log
    assert owner.n_vetted == local.n_vetted == 18
    assert owner.systems == ["good", "bad"]
    for name in owner.systems:
        assert owner.estimate(name).interval(0.9) == pytest.approx(local.estimate(name).interval(0.9))
    assert owner.difference("good", "bad").mean == pytest.approx(local.difference("good", "bad").mean)
    assert owner.n_counted == local.n_counted
    assert owner.anytime_interval("bad") == pytest.approx(local.anytime_interval("bad"))
    assert owner.anytime_interval("bad", "good") == pytest.approx(local.anytime_interval("bad", "good"))
    assert owner.prob_order("bad", "good") == pytest.approx(local.prob_order("bad", "good"))
    assert (owner.ranking, owner.finished, owner.warnings) == (local.ranking, local.finished, local.warnings)
    assert owner.misranking == pytest.approx(local.misranking)
    assert owner.history()[-1]["n"] == 18
    assert owner.age < 600
    assert "robot" in repr(robot)


def test_what_is_refused_is_said(served):
    vetting, address = served
    robot = tu.connect(address, tokens(vetting)[0])
    with pytest.raises(InvalidParameter, match="must be one of the classes"):
        robot.tell({robot.ask()[0]: "green"})
    with pytest.raises(InvalidParameter, match="no item"):
        robot.tell({"nothing": 1})
    with pytest.raises(ServerError, match="Only the owner"):
        robot.estimate()
    with pytest.raises(ServerError, match="not signed in"):
        tu.connect(address, "wrong")
    with pytest.raises(InvalidParameter, match="there is no system"):
        tu.connect(address, tokens(vetting)[1]).estimate("none")
    with pytest.raises(InvalidParameter, match="pass"):
        robot.tell([1, 2])
    with pytest.raises(InvalidParameter, match="list of items"):
        robot.skip("abc")


def test_no_server_is_said(monkeypatch):
    monkeypatch.setattr("trueup.serve.client._PAUSES", 0.0)
    with pytest.raises(ServerError, match="check the address"):
        tu.connect("http://127.0.0.1:9", "token", timeout=1)
    with pytest.raises(InvalidParameter, match="address of a server"):
        tu.connect("127.0.0.1:9", "token")
