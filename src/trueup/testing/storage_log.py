"""What every storage keeps to: sessions, their log, and who may enter."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from trueup.exceptions import SessionMissing, TrueupError
from trueup.sessions.log import Event
from trueup.testing.storage_examples import NAME, ODD, Opening, ask, begin, refusal, tell


class LogTests:
    """Sessions, the log and people."""

    def test_a_session_is_made_once(self, open_again: Opening) -> None:
        """The second to come gets what the first made."""
        with closing(open_again()) as storage:
            made = storage.create(NAME, "cleaning", {"level": 0.9}, options={"a": [1]}, source={"files": {}})
            again = storage.create(NAME, "active test", {"level": 0.5})
            assert again == made == storage.open(NAME) == storage.find(NAME)
            assert (made.kind, made.settings, made.options, made.n_events) == (
                "cleaning",
                {"level": 0.9},
                {"a": [1]},
                0,
            )
            assert abs(made.created - storage.now()) < 3600
            storage.create("another", "active test", {})
            assert [record.name for record in storage.sessions()] == ["another", NAME]

    def test_a_session_that_is_not_there(self, open_again: Opening) -> None:
        """Is said in one sentence that names those that are."""
        with closing(open_again()) as storage:
            storage.create(NAME, "active test", {})
            assert storage.find("q4") is None
            for call in (
                lambda: storage.open("q4"),
                lambda: storage.append("q4", ask("a")),
                lambda: storage.events("q4"),
                lambda: storage.claim("q4", "ann"),
                lambda: storage.answer("q4", 1, tell("yes", "ann")),
                lambda: storage.delete("q4"),
                lambda: storage.pause("q4"),
            ):
                assert repr(NAME) in refusal(call, SessionMissing)

    def test_settings_can_be_changed(self, open_again: Opening) -> None:
        """Those that are named, in the settings and in the source."""
        with closing(open_again()) as storage:
            storage.create(NAME, "active test", {"budget": 10, "level": 0.9}, source={"a": 1})
            changed = storage.change(NAME, settings={"budget": 20}, source={"b": 2})
            assert (changed.settings, changed.source) == ({"budget": 20, "level": 0.9}, {"a": 1, "b": 2})

    def test_a_session_can_be_deleted(self, open_again: Opening) -> None:
        """With all that hangs on it."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.grant(NAME, "d", who="ann", role="expert", use="link", seconds=60)
            storage.delete(NAME)
            assert storage.sessions() == []
            assert storage.find_grant("d", use="link") is None
            assert begin(storage, "c").cards(NAME)[0].item == "c"

    def test_events_come_back_as_they_were(self, open_again: Opening) -> None:
        """All fields and all kinds, in order, also for another process."""
        log = [
            *ask("a", ("b", 1), 3),
            Event("tell", "a", "yes", "ann", 0.25, 12.5, 3.25, True, 1, "k1", 1, 1, shown=("yes", "no")),
            Event("later", ("b", 1), who="bob", card=2, draw=2),
            Event("cannot tell", 3, who="bob", saw_estimate=False),
            Event("none of these", ("b", 1), who="ann"),
            Event("comment", "a", who="bob", text="Why?\nSo."),
            Event("correct", "a", "no", "bob", saw_estimate=True),
            Event("pass", 3, who="ann"),
            Event("ask", "a", who="bob", purpose="repeat"),
        ]
        with closing(open_again()) as storage, closing(open_again()) as other:
            storage.create(NAME, "active test", {})
            kept = storage.append(NAME, log)
            assert kept == storage.events(NAME) == other.events(NAME)
            assert kept is not None
            for event, stored in zip(log, kept, strict=True):
                said = {name: value for name, value in vars(event).items() if value is not None}
                assert {name: getattr(stored, name) for name in said} == said
            assert other.events(NAME, since=2, most=3) == kept[2:5]
            assert other.events(NAME, since=len(kept)) == []
            assert other.open(NAME).n_events == len(log)

    def test_the_log_says_when_and_in_which_order(self, open_again: Opening) -> None:
        """Time by the database's clock, draws in the order of the questions, opinions in that of the answers."""
        with closing(begin(open_again(), "a", "b")) as storage:
            before = storage.now()
            kept = storage.append(NAME, [Event("tell", "b", "yes", "ann"), Event("tell", "b", "no", "bob")])
            assert kept is not None
            assert [(event.draw, event.card, event.opinion) for event in kept] == [(2, 2, 1), (2, 2, 2)]
            assert all(before - 1e-3 <= event.at <= storage.now() + 1e-3 for event in kept if event.at is not None)
            assert [event.draw for event in storage.append(NAME, ask("c")) or []] == [3]

    def test_answers_alone_say_the_order_of_the_draws(self, open_again: Opening) -> None:
        """A log without questions, as files of old may be."""
        with closing(open_again()) as storage:
            answers = [Event("tell", name, "yes", propensity=0.5) for name in ("c", "a")]
            storage.create(NAME, "active test", {}, events=[*answers, Event("tell", "b", "no")])
            assert [event.draw for event in storage.events(NAME)] == [1, 2, None]

    def test_who_worked_from_an_old_log_is_told(self, open_again: Opening) -> None:
        """And nothing of theirs is added."""
        with closing(begin(open_again(), "a")) as storage:
            assert storage.append(NAME, ask("b"), after=0) is None
            assert len(storage.append(NAME, ask("b"), after=1) or []) == 1
            assert len(storage.events(NAME)) == 2

    def test_the_same_key_is_the_same_event(self, open_again: Opening) -> None:
        """However often it is sent."""
        with closing(begin(open_again(), "a")) as storage:
            event = Event("tell", "a", "yes", "ann", key="k")
            first = storage.append(NAME, [event])
            assert storage.append(NAME, [event, replace(event, truth="no")]) == (first or []) * 2
            assert len(storage.events(NAME)) == 2

    def test_all_or_nothing(self, open_again: Opening) -> None:
        """A batch with a fault in it leaves nothing."""
        with closing(begin(open_again(), "a")) as storage:
            bad: Any = Event("guess", "a")  # type: ignore[arg-type]
            refusal(lambda: storage.append(NAME, [*ask("b"), bad]), TrueupError)
            assert (len(storage.events(NAME)), len(storage.cards(NAME))) == (1, 1)

    def test_odd_text_is_only_text(self, open_again: Opening) -> None:
        """In names of sessions, items, classes, experts, comments and keys."""
        with closing(open_again()) as storage:
            for odd in ODD[:-1]:
                storage.create(odd, "active test", {odd: odd})
                storage.append(odd, ask(odd))
                storage.claim(odd, odd)
                kept = storage.answer(odd, 1, tell(odd, odd, key=odd, text=odd))
                assert (kept.event.item, kept.event.truth, kept.event.who, kept.event.text) == (odd,) * 4
                assert storage.events(odd)[1] == kept.event
            assert {record.name for record in storage.sessions()} == set(ODD[:-1])

    def test_grants_end(self, open_again: Opening) -> None:
        """When they are over, revoked or, for links, used."""
        with closing(begin(open_again(), "a")) as storage:
            for digest, seconds in (("1", 600), ("2", 0), ("3", 600)):
                given = storage.grant(NAME, digest, who="ann", role="expert", use="link", seconds=seconds)
                assert (given.session, given.who, given.role, given.use) == (NAME, "ann", "expert", "link")
            storage.grant(NAME, "4", who="bob", role="owner", use="cookie", seconds=600)
            assert storage.find_grant("1", use="link") is not None
            assert storage.find_grant("1", use="cookie") is None
            assert storage.find_grant("2", use="link") is None
            assert storage.use_grant("2", use="link") is None
            used = storage.use_grant("1", use="link")
            assert used is not None
            assert used.used is not None
            assert storage.use_grant("1", use="link") is None
            assert storage.revoke(NAME, digest="3") == 1
            assert storage.use_grant("3", use="link") is None
            assert storage.revoke(NAME, who="bob") == 1
            assert storage.revoke(NAME, who="bob") == 0
            assert storage.find_grant("4", use="cookie") is None
            assert [grant.digest for grant in storage.grants(NAME)] == ["1", "2", "3", "4"]

    def test_a_person_is_forgotten(self, open_again: Opening) -> None:
        """Their name is nowhere any more; what they said stays, apart from what others said."""
        with closing(begin(open_again(), "a", "b", "c")) as storage:
            storage.answer(NAME, 1, tell("yes", "ann"), next_seconds=600)
            storage.answer(NAME, 2, tell("no", "bob"))
            storage.append(NAME, [Event("ask", "a", who="ann", purpose="repeat")])
            storage.grant(NAME, "1", who="ann", role="expert", use="link", seconds=600)
            before = storage.events(NAME)
            assert storage.forget("ann") == 2
            after = storage.events(NAME)
            assert [replace(event, who=None) for event in after] == [replace(event, who=None) for event in before]
            assert "ann" not in repr((after, storage.cards(NAME, open_only=False), storage.grants(NAME)))
            assert after[3].who not in ("ann", "bob", None)
            assert storage.forget("bob") == 1
            assert storage.events(NAME)[3].who != storage.events(NAME)[4].who
            assert storage.forget("nobody") == 0

    def test_a_judge_of_a_monitor_is_forgotten(self, open_again: Opening) -> None:
        """The batches of a monitor name judges inside their text; a name that another judge has is not taken."""
        texts = ['{"judges":["ann","bob"],"crowds":["ann"]}', '{"judges":["bob","forgotten person 1"],"crowds":[]}']
        batches = [Event("batch", f"2026-11-0{day}", text=text) for day, text in enumerate(texts, start=1)]
        with closing(open_again()) as storage:
            storage.create("watch", "monitor", {}, events=batches)
            assert storage.forget("ann") == 1
            first, second = (json.loads(event.text or "") for event in storage.events("watch"))
            assert first["crowds"] == first["judges"][:1]
            assert first["judges"][0] not in ("ann", "forgotten person 1")
            assert (first["judges"][1], second["judges"]) == ("bob", ["bob", "forgotten person 1"])
            assert storage.forget("bob") == 2
            assert "bob" not in repr(storage.events("watch"))
