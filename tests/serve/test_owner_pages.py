"""The owner's page: what it says, what it lets change, and that it moves by itself."""

import json
import re
from dataclasses import replace

import pytest
from vetting_server import wait_for

from trueup.serve.card_service import Entry, Journal
from trueup.serve.estimating import Row
from trueup.serve.status_words import agreement_of, chart, pace_of
from trueup.sessions.log import Event


def answer_some(vetting, client, n, choose=None):
    """Answer n cards, truly unless told otherwise."""
    placed = client.get("/next").json()
    for k in range(n):
        if placed["card"] is None:
            placed = wait_for(lambda: (now := client.get("/next").json())["card"] and now)
        item = vetting.storage.events("q3")[placed["card"] - 1].item
        choice = vetting.truth[item] if choose is None else choose(item)
        placed = client.post(
            "/reply", json={"card": placed["card"], "choice": str(choice), "key": f"{id(client)} {k}", "seconds": 2.0}
        ).json()


def wait_for_answers(vetting, n):
    wait_for(lambda: vetting.services.latest.snapshot and vetting.services.latest.snapshot.n_answers == n)


def test_the_figures_are_those_of_the_session(make_vetting):
    vetting = make_vetting(half_width=0.01, budget=60)
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 25)
    wait_for_answers(vetting, 25)
    snapshot = vetting.services.latest.snapshot
    page = re.sub("[\u2068\u2069]", "", owner.get("/owner").text)
    low, high = snapshot.first.low, snapshot.first.high
    assert f"{low:.3f} to {high:.3f}" in page
    assert "25 of 60 answers" in page
    assert "About 95 more answers to ± 0.01" in page  # all that are left, which its square root would go beyond
    assert "Not yet: no rule of stopping is met." in page
    assert re.search(r"as of \d+ s ago", page)
    assert "<polyline" in page
    assert re.search(r'<th scope="row"><bdi>ann</bdi></th><td>25</td>', page)
    assert "with an expert most" in page  # each labeler is held against the 25 answers


def test_experts_are_compared_where_both_answered(vetting):
    ann, bob = vetting.signed_in("ann"), vetting.signed_in("bob")
    card = ann.get("/next").json()["card"]
    ann.post("/reply", json={"card": card, "choice": "1", "key": "a"})
    bob.post("/reply", json={"card": card, "choice": "0", "key": "b"})
    owner = vetting.signed_in("owner", "owner")
    assert "0% (0/1)" in owner.get("/owner").text


def test_agreement_counts_each_pair_of_opinions_once_for_each_expert():
    def told(who, item, truth, **more):
        return Entry(0, Event("tell", item, truth, who, **more))

    entries = [told("ann", 1, "x"), told("bob", 1, "x"), told("ann", 2, "x"), told("bob", 2, "y"), told("eve", 3, "x")]
    assert agreement_of(entries) == {"ann": (1, 2), "bob": (1, 2), "eve": (0, 0)}
    assert agreement_of([*entries, told("eve", 1, "y", purpose="check")])["ann"] == (1, 2)


def test_an_answer_is_corrected_and_marked_and_the_estimate_given_with_and_without(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 12)
    page = owner.get("/owner").text
    number, key = re.search(
        r'name="event" value="(\d+)"><input type="hidden" name="key" value="([^"]+)"', page
    ).groups()
    before = vetting.storage.events("q3")[int(number) - 1]
    other = str(1 - before.truth)
    form = {"event": number, "key": key, "choice": other}
    assert owner.post("/correct", data=form, follow_redirects=False).headers["location"] == "owner"
    last = vetting.storage.events("q3")[-1]
    said = next(event for event in reversed(vetting.storage.events("q3")) if event.kind == "correct")
    assert last is not None
    assert (said.item, said.truth, said.who, said.saw_estimate) == (before.item, int(other), "owner", True)
    wait_for(lambda: vetting.services.latest.snapshot.with_all is not None)
    page = owner.get("/owner").text
    assert "saw the interval" in page
    assert "corrections by someone who saw the interval" in page


def test_a_rare_class_is_warned_of(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 21, choose=lambda item: 1)
    wait_for_answers(vetting, 21)
    assert "of the cards are" in owner.get("/owner").text


def test_a_problem_of_the_estimate_is_shown(make_vetting):
    vetting = make_vetting(wait=False)
    vetting.services.latest.put(problem="the votes of session 'q3' must be as they were")
    owner, ann = vetting.signed_in("owner", "owner"), vetting.signed_in("ann")
    assert "must be as they were" in owner.get("/owner").text
    assert "Something went wrong on the server" in ann.get("/").text


def test_links_and_tokens_are_made_shown_once_and_work(vetting):
    owner = vetting.signed_in("owner", "owner")
    page = owner.post("/link", data={"name": "ann", "role": "expert", "use": "link"}).text
    link = re.search(r"http://localhost/enter\?key=([\w-]+)", page)
    assert link
    assert link[1] not in owner.get("/owner").text
    client = vetting.client()
    assert client.post("/enter", data={"key": link[1]}, follow_redirects=False).status_code == 303
    page = owner.post("/link", data={"name": "ann", "use": "token"}).text
    token = re.search(r'class="secret">([\w-]+)<', page)[1]
    assert vetting.client().get("/api/status", headers={"authorization": f"Bearer {token}"}).json()["name"] == "ann"
    refused = owner.post("/link", data={"name": "ann", "role": "owner"}).text
    assert "one name has one role" in refused


def test_experts_see_the_estimate_where_they_are_allowed(vetting):
    services = replace(vetting.services, look=replace(vetting.services.look, experts_see_estimate=True))
    from trueup.serve.running import make_app

    vetting.app, vetting.services = make_app(services), services
    ann = vetting.signed_in("ann")
    assert ann.get("/owner").status_code == 200
    assert "Recent answers" not in ann.get("/owner").text
    assert set(ann.get("/owner-state").json()) == {"live"}
    card = ann.get("/next").json()["card"]
    ann.post("/reply", json={"card": card, "choice": "1", "key": "k"})
    told = [event for event in vetting.storage.events("q3") if event.kind == "tell"]
    assert told[0].saw_estimate is True


def test_the_stream_says_what_is_new_and_ends_with_the_server(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 3)
    states = []
    with owner.stream("GET", "/owner-events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                states.append(json.loads(line[6:]))
                vetting.services.stopping.set()
    assert "Recent answers" in states[0]["recent"]
    assert states[0].keys() == owner.get("/owner-state").json().keys()


def test_the_chart_has_room_for_what_it_shows():
    rows = [Row(10, 0.8, 0.6, 0.95), Row(20, 0.82, 0.7, 0.9), Row(30, float("nan"), float("nan"), float("nan"))]
    drawn = chart(rows, (0.0, 1.0))
    heights = [float(point.split(",")[1]) for point in drawn["band"].split()]
    assert drawn["rules"][-1]["y"] <= min(heights)
    assert max(heights) <= drawn["rules"][0]["y"]
    assert [row["n"] for row in drawn["rows"]] == [10, 20]
    assert chart([], (0.0, 1.0)) is None
    assert chart([Row(1, 1.0, 1.0, 1.0)], (0.0, 1.0))["mean"]


def test_the_pace_is_that_of_people_at_work():
    def told(who, at):
        return Entry(0, Event("tell", 1, "x", who, at=at))

    entries = [told("ann", 0.0), told("ann", 10.0), told("ann", 20.0), told("ann", 5000.0), told("bob", 5001.0)]
    pace = pace_of(entries, 5010.0)
    assert (pace.seconds, pace.n_active, pace.per_hour) == (10.0, 2, 720.0)
    assert pace.minutes(72) == pytest.approx(6.0)
    assert pace_of(entries[:1], 0.0) is None


def test_the_journal_reads_a_long_log_in_parts(vetting, monkeypatch):
    monkeypatch.setattr("trueup.serve.card_service._MOST_AT_ONCE", 5)
    journal = Journal(vetting.storage, "q3")
    assert journal.refresh() == len(vetting.storage.events("q3")) > 5
