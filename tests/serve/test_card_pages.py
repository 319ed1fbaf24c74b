"""Answering: one card at a time, nothing lost, nothing doubled, everything logged."""

import re
import threading

import pytest
from vetting_server import wait_for


def events_of(vetting, *kinds):
    return [event for event in vetting.storage.events("q3") if event.kind in kinds]


def send(client, card, choice="1", key="key", **more):
    return client.post("/reply", json={"card": card, "choice": choice, "key": key, **more})


def test_an_answer_brings_the_next_card_and_is_logged_in_full(vetting):
    ann = vetting.signed_in("ann")
    first = ann.get("/next").json()["card"]
    answer = send(ann, first, seconds=2.5, comment="  sure ").json()
    assert answer["card"] not in (None, first)
    assert f'data-card="{answer["card"]}"' in answer["html"]
    (told,) = events_of(vetting, "tell")
    asked = vetting.storage.events("q3")[first - 1]
    assert (told.who, told.item, told.truth, told.card) == ("ann", asked.item, 1, first)
    assert (told.seconds, told.text, told.blind, told.saw_estimate) == (2.5, "sure", True, False)
    assert (told.draw, told.propensity) == (asked.draw, asked.propensity)
    assert told.at is not None


def test_two_experts_never_have_the_same_card(vetting):
    ann, bob = vetting.signed_in("ann"), vetting.signed_in("bob")
    a, b = (client.get("/next").json()["card"] for client in (ann, bob))
    for k in range(10):
        assert a != b
        a = send(ann, a, key=f"a{k}").json()["card"]
        b = send(bob, b, key=f"b{k}").json()["card"]
    told = events_of(vetting, "tell")
    assert len({event.item for event in told}) == len(told) == 20


def test_answers_of_two_tabs_at_once_count_once(vetting):
    ann = vetting.signed_in("ann")
    card = ann.get("/next").json()["card"]
    threads = [threading.Thread(target=send, args=(ann, card, "1", f"tab{k}")) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events_of(vetting, "tell", "correct")) == 1


@pytest.mark.parametrize(
    ("settings", "before", "after"),
    [
        ({"budget": 30}, "30 answers, 30 to go", "30 answers, 18 to go"),
        ({"half_width": 0.001}, "not known yet", r"± 0.001, about \d+ more answers"),
        ({}, "60 of 60 items to go", "48 of 60 items to go"),
    ],
)
def test_the_goal_and_what_is_left_are_on_the_card(make_vetting, settings, before, after):
    vetting = make_vetting(n_items=60, **settings)
    ann = vetting.signed_in("ann")
    wait_for(lambda: re.search(before, ann.get("/").text))
    placed = ann.get("/next").json()
    for k in range(12):
        placed = send(ann, placed["card"], key=f"{k}").json()
        assert f"{k + 1} answered by you" in placed["html"]
    wait_for(lambda: re.search(after, ann.get("/").text))


def test_the_third_expert_settles_what_two_differ_on_and_sees_both_comments(vetting):
    ann, bob, eve = (vetting.signed_in(name) for name in ("ann", "bob", "eve"))
    card = ann.get("/next").json()["card"]
    send(ann, card, "1", "a", comment="sure")
    send(bob, card, "0", "b", comment="unlikely")
    wait_for(lambda: [one for one in vetting.storage.cards("q3") if one.purpose == "settle"])
    placed = eve.get("/next").json()  # before all draws that wait
    shown = re.findall(r"<li><strong><bdi>(\d)</bdi></strong> <span[^>]*>(\w+)</span></li>", placed["html"])
    assert shown == [("0", "unlikely"), ("1", "sure")]
    assert not re.search(r"\b(ann|bob)\b", placed["html"])
    for client in (ann, bob):
        assert "differ" not in client.get("/").text
    send(eve, placed["card"], "1", "e")
    assert [(one.who, one.truth) for one in events_of(vetting, "tell") if one.purpose == "settle"] == [("eve", 1)]
    wait_for(lambda: vetting.services.latest.snapshot.n_disputed == 0)


@pytest.mark.parametrize(
    ("choice", "kind"), [("later", "later"), ("cannot-tell", "cannot tell"), ("none-of-these", "none of these")]
)
def test_the_three_keys_have_three_meanings(vetting, choice, kind):
    ann = vetting.signed_in("ann")
    card = ann.get("/next").json()["card"]
    assert send(ann, card, choice).json()["card"] != card
    (event,) = events_of(vetting, "tell", "later", "cannot tell", "none of these")
    assert (event.kind, event.truth, event.who) == (kind, None, "ann")
    still_open = card in [one.number for one in vetting.storage.cards("q3")]
    assert still_open == (kind == "later")


def test_undo_shows_the_last_answer_and_corrects_it_in_the_log(vetting):
    ann = vetting.signed_in("ann")
    first = ann.get("/next").json()["card"]
    second = send(ann, first, "1", "a").json()["card"]
    send(ann, second, "0", "b")
    back = ann.get("/previous").json()
    assert (back["card"], back["answered"]) == (second, "0")
    earlier = ann.get("/previous", params={"before": second}).json()
    assert (earlier["card"], earlier["answered"]) == (first, "1")
    send(ann, first, "0", "c")
    kinds = [(event.kind, event.truth) for event in events_of(vetting, "tell", "correct")]
    assert kinds == [("tell", 1), ("tell", 0), ("correct", 0)]
    again = ann.get("/previous", params={"before": second}).json()
    assert (again["card"], again["answered"]) == (first, "0")  # where it stood, with what was said last


def test_an_expired_lease_gives_the_card_to_another_and_keeps_the_late_answer(make_vetting):
    vetting = make_vetting(lease=0.05)
    ann, bob = vetting.signed_in("ann"), vetting.signed_in("bob")
    card = ann.get("/next").json()["card"]
    wait_for(lambda: all(one.seconds_left == 0 for one in vetting.storage.cards("q3")))
    assert bob.get("/next").json()["card"] == card
    assert not ann.post("/renew", json={"card": card}).json()["held"]
    send(bob, card, "1", "b")
    send(ann, card, "0", "a")
    told = events_of(vetting, "tell")
    assert [(event.who, event.truth, event.opinion) for event in told] == [("bob", 1, 1), ("ann", 0, 2)]


def test_an_empty_queue_tells_the_truth(make_vetting):
    vetting = make_vetting(n_items=30, budget=2)
    ann, bob, eve = (vetting.signed_in(name) for name in ("ann", "bob", "eve"))
    cards = [client.get("/next").json()["card"] for client in (ann, bob)]
    page = eve.get("/").text
    assert "2 out with others, next back in" in page
    assert re.search(r"next back in (4:\d\d|5:00) min", page)
    send(bob, cards[1])
    assert "1 out with someone else" in eve.get("/").text
    send(ann, cards[0])
    wait_for(lambda: "All done. Thank you." in eve.get("/").text)  # why tells of the estimate
    owner = vetting.signed_in("owner", "owner")
    assert "All done: The budget of 2 answers is spent." in owner.get("/").text


def test_a_paused_session_gives_out_no_new_cards(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    card = ann.get("/next").json()["card"]
    owner.post("/pause", data={"paused": "1"})
    assert ann.get("/next").json()["card"] == card  # what someone has in hand they may finish
    answer = send(ann, card).json()
    assert answer["card"] is None
    assert "paused" in answer["html"]
    owner.post("/pause", data={"paused": "0"})
    assert ann.get("/next").json()["card"] is not None


def test_the_form_works_without_a_script(vetting):
    ann = vetting.signed_in("ann")
    page = ann.get("/").text
    card, key = re.search(r'name="card" value="(\d+)"', page)[1], re.search(r'name="key" value="([^"]+)"', page)[1]
    form = {"card": card, "key": key, "choice": "0", "comment": ""}
    answer = ann.post("/answer", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    ann.post("/answer", data=form)  # sent again by the browser
    assert [(event.truth, event.card) for event in events_of(vetting, "tell", "correct")] == [(0, int(card))]


@pytest.mark.parametrize(
    "sent",
    [
        {"choice": "2"},
        {"choice": "-1"},
        {"choice": "x"},
        {"choice": ""},
        {"choice": "٣"},
        {"card": 0},
        {"card": 99999},
        {"card": "x"},
        {"card": 2**70},
        {"key": ""},
        {"key": "k" * 101},
        {"key": "\u2028"},
        {"comment": "a" * 4001},
    ],
)
def test_what_makes_no_sense_is_refused_and_not_stored(vetting, sent):
    ann = vetting.signed_in("ann")
    card = ann.get("/next").json()["card"]
    answer = ann.post("/reply", json={"card": card, "choice": "1", "key": "k", **sent})
    assert answer.status_code in (404, 422)
    assert answer.json()["error"]
    # Cards may be drawn meanwhile, since one was handed out.
    assert not [event for event in vetting.storage.events("q3") if event.kind != "ask"]


def test_the_order_of_two_answers_is_logged(make_vetting):
    import trueup as tu

    n = 40
    votes = {"item": list(range(n)) * 2, "labeler": ["x"] * n + ["y"] * n, "label": ["a", "b"] * n}
    labels = tu.Labels.from_frame(votes, classes=["a", "b"])
    labels = labels.with_items({"item": list(range(n)), "answer_a": ["A!"] * n, "answer_b": ["B!"] * n})
    vetting = make_vetting(data=(dict.fromkeys(range(n), "a"), labels, {}))
    ann = vetting.signed_in("ann")
    placed = ann.get("/next").json()
    for k in range(12):
        shown = ["a" if text == "A!" else "b" for text in re.findall(r"[AB]!", placed["html"])]
        first = re.search(r'value="(\d)" data-key="1"', placed["html"])[1]
        card = placed["card"]
        placed = send(ann, card, first, f"k{k}").json()
        event = events_of(vetting, "tell")[-1]
        assert list(event.shown) == shown
        assert event.truth == shown[0]  # the first key is what stands first
    assert {event.shown for event in events_of(vetting, "tell")} == {("a", "b"), ("b", "a")}
