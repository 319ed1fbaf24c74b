"""Tiles in the app: the card asks for a number, hides which tiles measure the vetter, and the answers come back."""

import re

import pytest
from tile_search_server import NAME, tile_search
from vetting_server import wait_for

from trueup.detection import read_searched

__all__ = ["tile_search"]


def test_a_tile_is_a_picture_a_question_and_a_number(tile_search):
    vetting, _, _ = tile_search
    ann = vetting.signed_in("ann")
    page = ann.get("/").text
    assert "How many objects without an outline have their centre in the frame?" in page
    assert "0–9 say how many" in page
    keys = dict(re.findall(r'<button name="choice" value="(\d+)" data-key="(\d)"', page))
    assert keys == {str(k): str(k) for k in range(10)}  # the key is the number
    assert re.findall(r'<option value="(\d+)">(\d+)</option>', page) == [(str(k), str(k)) for k in range(10, 31)]
    card = ann.get("/next").json()["card"]
    image = ann.get(f"/image?card={card}")
    assert image.headers["content-type"].startswith("image/svg+xml")
    assert "<svg xmlns" in image.text


def test_answers_move_the_estimate_and_come_back_out_of_the_storage(tile_search):
    vetting, pool, tiles = tile_search
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    for k in range(15):
        card = wait_for(lambda: ann.get("/next").json()["card"])
        html = ann.get("/next").json()["html"]
        assert "hidden" not in re.sub(r'type="hidden"|aria-hidden', "", html)
        ann.post("/reply", json={"card": card, "choice": "11" if k == 0 else "2", "key": f"{k}"})
    snapshot = wait_for(lambda: (now := vetting.services.latest.snapshot).n_answers == 15 and now)
    assert (snapshot.kind, snapshot.metric, snapshot.n_items) == ("tile search", "missed objects", 15)
    assert "All 15 tiles are searched" in snapshot.finished
    vetted = read_searched(vetting.storage, pool)
    first_is_hidden = next(iter(tiles.pictures)) in tiles.hidden
    assert vetted.missed.n_seen == 24 + (0 if first_is_hidden else 9)
    assert (vetted.missed.n_searched, vetted.n_hidden, vetted.n_noticed) == (12, 3, 3)
    assert snapshot.first.mean == pytest.approx(vetted.missed.total.mean)
    page = re.sub("[\u2068\u2069]", "", owner.get("/owner").text)
    low, high = snapshot.first.low, snapshot.first.high
    assert f"missed objects between {low:.0f} and {high:.0f}" in page
    assert "You can stop: All 15 tiles are searched." in page
    robot = vetting.program("robot owner", "owner").get("/api/estimate").json()
    assert (robot["kind"], robot["bounds"], robot["higher_is_better"]) == ("tile search", [0.0, None], False)
    chances = {event.propensity for event in vetting.storage.events(NAME) if event.kind == "ask"}
    assert chances == {12 / 40, None}
