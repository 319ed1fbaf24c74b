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
    "=cmd|' /C calc'!A0",
    "+1",
    "@SUM(A1)",
    "\t=1",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "</script><script>alert(1)",
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
    for k in range(12):
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
        assert "49" not in re.sub(r"\d{2,}", "", html)


def test_hostile_text_is_inert_on_the_owners_page_and_in_exports(hostile):
    ann, owner = hostile.signed_in("ann"), hostile.signed_in("owner", "owner")
    hostile.services.access.give("link", "<script>eve</script>", "expert")
    answer_hostile_cards(ann)
    for path in ("/owner", "/export-report.html"):
        page = owner.get(path).text
        assert not any(text in page for text in ("<script>alert", "<script>eve", "<img", "<b>yes"))
    sheet = list(csv.reader(io.StringIO(owner.get("/export-sheet.csv").text)))
    assert len(sheet) > 8
    for row in sheet[1:]:
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r"))
            assert not (cell.startswith("-") and not re.fullmatch(r"-?[\d.e-]+", cell))
    exact = list(csv.reader(io.StringIO(owner.get("/export-answers.csv").text)))
    assert {row[1] for row in exact[1:]} == {"=no()"}  # as it is named: programs read it
