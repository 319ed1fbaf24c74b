"""The owner's page: what it says, what it lets change, and that it moves by itself."""

import json
import re
from dataclasses import replace

from vetting_server import wait_for

from trueup.serve.card_service import Journal


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
    assert '<path class="mean"' in page
    assert re.search(r'<th scope="row"><bdi>ann</bdi></th><td>25</td>', page)
    assert "with an expert most" in page  # each labeler is held against the 25 answers


def test_experts_are_compared_where_both_answered(vetting):
    ann, bob = vetting.signed_in("ann"), vetting.signed_in("bob")
    card = ann.get("/next").json()["card"]
    ann.post("/reply", json={"card": card, "choice": "1", "key": "a"})
    bob.post("/reply", json={"card": card, "choice": "0", "key": "b"})
    owner = vetting.signed_in("owner", "owner")
    assert "0% (0/1)" in owner.get("/owner").text


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


def test_the_journal_reads_a_long_log_in_parts(vetting, monkeypatch):
    monkeypatch.setattr("trueup.serve.card_service._MOST_AT_ONCE", 5)
    journal = Journal(vetting.storage, "q3")
    assert journal.refresh() == len(vetting.storage.events("q3")) > 5
