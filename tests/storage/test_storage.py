"""The storage in SQLite."""

import pytest

from trueup.sessions.log import Event
from trueup.storage import open_storage


@pytest.fixture
def storage(tmp_path):
    opened = open_storage(f"sqlite:///{tmp_path}/test.db")
    yield opened
    opened.close()


def test_an_answer_and_the_next_card_come_together(storage):
    storage.create("q3", "active test", {"metric": "accuracy"})
    storage.append("q3", [Event("ask", name, propensity=0.5) for name in ("a", "b", "c")], after=0)
    card = storage.claim("q3", "ann")
    assert storage.claim("q3", "ann").number == card.number == 1
    assert storage.claim("q3", "bob").number == 2
    kept = storage.answer("q3", 1, Event("tell", None, "yes", "ann", key="k"), next_seconds=60)
    assert (kept.event.item, kept.event.draw, kept.event.propensity, kept.next_card.item) == ("a", 1, 0.5, "c")
    again = storage.answer("q3", 1, Event("tell", None, "yes", "ann", key="k"), next_seconds=60)
    assert (again.is_new, again.number, again.next_card.number) == (False, kept.number, 3)
    assert [event.kind for event in storage.events("q3")] == ["ask", "ask", "ask", "tell"]
