"""The JSON API: what programs may do, what is refused, and that no request whatever breaks it."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_owner_pages import answer_some, wait_for_answers


def told(vetting):
    return [event for event in vetting.storage.events("q3") if event.kind not in ("ask",)]


def test_ask_and_tell_in_turn(vetting):
    program = vetting.program("robot")
    first = program.post("/api/ask").json()["card"]
    assert first["fields"] == {"text": f"What is item {first['item']}?"}
    assert program.post("/api/ask").json()["card"]["number"] == first["number"]
    answers = [{"item": first["item"], "truth": 1, "seconds": 0.5, "comment": "sure"}]
    assert program.post("/api/tell", json={"answers": answers, "key": "k"}).json() == {"n": 1}
    assert program.post("/api/tell", json={"answers": answers, "key": "k"}).json() == {"n": 1}  # sent again
    (event,) = told(vetting)
    assert (event.kind, event.item, event.truth, event.who, event.card) == (
        "tell",
        first["item"],
        1,
        "robot",
        first["number"],
    )
    assert program.post("/api/ask").json()["card"]["number"] != first["number"]
    assert program.get("/api/status").json()["n_answered"] == 1


def test_all_answers_are_checked_before_any_counts(vetting):
    program = vetting.program("robot")
    items = [card.item for card in vetting.storage.cards("q3")][:2]
    good, bad = {"item": items[0], "truth": 1}, {"item": items[1], "truth": "green"}
    answer = program.post("/api/tell", json={"answers": [good, bad]})
    assert answer.status_code == 422
    assert "must be one of the classes" in answer.json()["error"]
    assert told(vetting) == []


def test_correct_changes_ones_own_answers_and_the_owner_those_of_all(vetting):
    robot, other, owner = vetting.program("robot"), vetting.program("other"), vetting.program("owner", "owner")
    item = robot.post("/api/ask").json()["card"]["item"]
    robot.post("/api/tell", json={"answers": [{"item": item, "truth": 1}]})
    change = {"answers": [{"item": item, "truth": 0}]}
    assert other.post("/api/correct", json=change).status_code == 422
    assert robot.post("/api/correct", json=change).json() == {"n": 1}
    assert owner.post("/api/correct", json={"answers": [{"item": item, "truth": 1}]}).json() == {"n": 1}
    assert [(event.kind, event.who, event.truth, event.saw_estimate) for event in told(vetting)] == [
        ("tell", "robot", 1, False),
        ("correct", "robot", 0, False),
        ("correct", "owner", 1, True),
    ]


def test_the_estimate_is_that_of_the_session(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.program("owner", "owner")
    answer_some(vetting, ann, 12)
    wait_for_answers(vetting, 12)
    estimate = owner.get("/api/estimate").json()
    assert (estimate["ready"], estimate["n_answers"], estimate["metric"]) == (True, 12, "accuracy")
    (one,) = estimate["ranges"].values()
    assert 0 <= one["low"] <= one["mean"] <= one["high"] <= 1
    assert len(next(iter(estimate["draws"].values()))) >= 500
    log = owner.get("/api/log", params={"since": 3}).json()
    assert log["n"] == len(log["events"]) + 3


def test_nothing_is_told_to_anybody(vetting, monkeypatch):
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    from trueup.serve.running import make_app

    app = make_app(vetting.services)._app
    settings_of_app = getattr(app, "_telemetry", {})
    assert not any(settings_of_app.get(name) for name in ("tracing", "metrics", "logs", "auto_configure"))


@pytest.mark.parametrize("verb", ["ask", "tell", "skip", "correct"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"answers": []}',
        b'{"answers": [{"item": {}, "truth": []}]}',
        b"\xff\xfe",
        b"1" * 5000,
    ],
)
def test_bodies_that_make_no_sense_are_refused(vetting, verb, body):
    program = vetting.program("robot")
    answer = program.post(f"/api/{verb}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in ((200,) if verb == "ask" else (400, 422))
    assert told(vetting) == []


def test_requests_made_from_the_schema_break_nothing(vetting, listening):
    schemathesis = pytest.importorskip("schemathesis", reason="it is part of trueup[dev]")
    program = vetting.program("owner", "owner")
    vetting.services.requests.at_once = vetting.services.requests.a_second = 1e9
    schema = schemathesis.openapi.from_dict(program.get("/api/openapi.json").json())
    address = listening(vetting)
    codes = []

    @settings(max_examples=12, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(data=st.data())
    def send_one(operation, data):
        case = data.draw(operation.as_strategy())
        answer = case.call(base_url=address, headers={"authorization": program.headers["authorization"]}, timeout=30)
        codes.append(answer.status_code)
        assert answer.status_code < 500, answer.text
        assert "Traceback" not in answer.text

    for found in schema.get_all_operations():
        send_one(found.ok())
    assert len(codes) > 40
    assert 422 in codes
