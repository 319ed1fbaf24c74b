"""What is taken away is exact for programs and inert in spreadsheets; hostile text does nothing anywhere."""

import csv
import io
import json
import re

import pytest
from test_owner_pages import answer_some, wait_for_answers

import trueup as tu
from trueup.sessions.log import events_from_json

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    *("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", '=HYPERLINK("http://evil")'),
    *("{{ 7777 * 7 }}", "{% raw %}", "{0.__class__}", "{name.__class__}", "${7777*7}", "#{7777*7}", "%s%n"),
    "../../etc/passwd",
    "</script><script>alert(1)",
    "javascript:alert(1)",
    "a\x00b\x1b]0;x\x07",
    "\u202egnp.exe",
    "שלום",
    "x" * 1_000_000,
]
CLASSES = ["<b>yes</b>", "=no()"]


@pytest.fixture
def hostile(make_vetting):
    n = len(HOSTILE)
    items = [text[:200] + f" {k}" for k, text in enumerate(HOSTILE)]
    votes = {"item": items * 3, "labeler": ["x"] * n + ["y"] * n + ["z"] * n, "label": (CLASSES * 3 * n)[: 3 * n]}
    labels = tu.Labels.from_frame(votes, classes=CLASSES).with_items({"item": items, "text": HOSTILE})
    predictions = {item: CLASSES[k % 2] for k, item in enumerate(items)}
    return make_vetting(data=(predictions, labels, dict.fromkeys(items, 1)), n_items=n)


def test_the_exact_file_is_gold_for_evaluate(vetting, tmp_path):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 20)
    answer = owner.get("/export-answers.csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    file = tmp_path / "answers.csv"
    file.write_bytes(answer.content)
    gold = tu.read_gold(file, labels=vetting.services.labels)
    told = [event for event in vetting.storage.events("q3") if event.kind == "tell"]
    assert gold == {event.item: event.truth for event in told}
    labels = vetting.services.labels.with_gold(gold)
    assert int((labels.gold_codes >= 0).sum()) == 20


def test_the_log_replays_to_the_same_session(vetting):
    ann, owner = vetting.signed_in("ann"), vetting.signed_in("owner", "owner")
    answer_some(vetting, ann, 12)
    wait_for_answers(vetting, 12)
    records = json.loads(owner.get("/export-log.json").content)
    assert events_from_json(records) == vetting.storage.events("q3")[: len(records)]


def answer_hostile_cards(client):
    """Answer cards with hostile comments; what was shown."""
    placed, pages = client.get("/next").json(), []
    for k in range(len(HOSTILE) - 1):  # the last is too long for a comment
        if placed["card"] is None:
            break
        pages.append(placed["html"])
        sent = {"card": placed["card"], "choice": "1", "key": f"k{k}", "comment": HOSTILE[k]}
        placed = client.post("/reply", json=sent).json()
    return pages


def test_hostile_text_is_inert_on_cards(hostile):
    pages = answer_hostile_cards(hostile.signed_in("ann"))
    assert len(pages) > 5
    for html in pages:
        assert not any(text in html for text in ("<script", "<img", "<b>yes", "\x00", "\x1b"))
        assert "54439" not in html


def test_hostile_text_is_inert_on_the_owners_page_and_in_exports(hostile):
    owner = hostile.signed_in("owner", "owner")
    for name in ("<script>eve</script>", "=1+1", "{{7777*7}}"):
        card = hostile.signed_in(name).get("/next").json()["card"]
        hostile.storage.release("q3", name, card)
    owner.post("/link", data={"name": "{person.__class__}"})
    answer_hostile_cards(hostile.signed_in("=1+1"))
    key = hostile.services.access.give("link", "{t.errors}", "expert")
    live = re.compile(r"<script>(alert|eve)|<img|</script><script>|href=.{1,2}javascript|<b>yes|54439|(<|&lt;)class")
    for path in ("/owner", "/export-report.html", "/owner-state", f"/enter?key={key}"):
        assert not live.search(owner.get(path).text.replace("\\u003c", "<"))
    sheet = list(csv.reader(io.StringIO(owner.get("/export-sheet.csv").text)))
    assert len(sheet) > 8
    for row in sheet[1:]:
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r", "\uff1d"))
            assert not (cell.startswith("-") and not re.fullmatch(r"-?[\d.e-]+", cell))
    exact = list(csv.reader(io.StringIO(owner.get("/export-answers.csv").text)))
    assert {row[1] for row in exact[1:]} == {"=no()"}  # as it is named: programs read it
