"""What every storage keeps to, as tests that anyone can run on a new one.

    from trueup.testing import StorageTests

    class TestMyStorage(StorageTests):
        @pytest.fixture
        def open_again(self, tmp_path):
            return lambda: MyStorage(tmp_path)

The fixture `open_again` returns a function that opens the same place, empty at first, as another process would.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from trueup.active import ActiveTest
from trueup.exceptions import SessionMissing, TrueupError
from trueup.sessions.log import Event, Kind
from trueup.storage import Storage
from trueup.testing.noise import example_labels, refusal

# ------------------ What the tests of storages share.

Opening = Callable[[], Any]  # a `Storage`; what it gives may be None, and then a test fails

NAME = "q3"
ODD = (
    "<script>alert(1)</script>",
    "=cmd()",
    "../../etc/passwd",
    "a\0b",
    "\u202eright to left",
    "\ud800",
    "'; DROP TABLE events; --",
    "x" * 100_000,
    "",
)


def ask(*items: Any, **about: Any) -> list[Event]:
    """Items that are drawn, each with a chance."""
    return [Event("ask", item, propensity=0.25, why="It is uncertain.", **about) for item in items]


def tell(truth: Any, who: str, key: str | None = None, kind: Kind = "tell", **about: Any) -> Event:
    """What an expert says about a card."""
    return Event(kind, None, truth, who, key=key, **about)


def begin(storage: Storage, *items: Any) -> Any:
    """A session with items that were drawn."""
    storage.create(NAME, "active test", {"metric": "accuracy"}, fingerprints={"votes": "1"})
    storage.append(NAME, ask(*items))
    return storage


def numbers(cards: Iterable[Any]) -> list[int]:
    """The numbers of cards."""
    return [card.number for card in cards]


def all_at_once(job: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
    """What a job gives for each of some arguments, in threads that start at the same moment."""
    start = threading.Barrier(len(arguments))

    def wait_and_run(argument: Any) -> Any:
        start.wait()
        return job(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(wait_and_run, arguments))


# ------------------ What every storage keeps to: sessions, their log, and who may enter.


class LogTests:
    """Sessions, the log and people."""

    def test_a_session_is_made_once(self, open_again: Opening) -> None:
        with closing(open_again()) as storage:
            made = storage.create(NAME, "cleaning", {"level": 0.9}, options={"a": [1]}, source={"files": {}})
            again = storage.create(NAME, "active test", {"level": 0.5})
            assert again == made == storage.open(NAME) == storage.find(NAME)
            assert (made.kind, made.n_events) == ("cleaning", 0)
            assert (made.settings, made.options) == ({"level": 0.9}, {"a": [1]})
            assert abs(made.created - storage.now()) < 3600
            storage.create("another", "active test", {})
            assert [record.name for record in storage.sessions()] == ["another", NAME]

    def test_a_session_that_is_not_there(self, open_again: Opening) -> None:
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
        with closing(open_again()) as storage:
            storage.create(NAME, "active test", {"budget": 10, "level": 0.9}, source={"a": 1})
            changed = storage.change(NAME, settings={"budget": 20}, source={"b": 2})
            assert (changed.settings, changed.source) == ({"budget": 20, "level": 0.9}, {"a": 1, "b": 2})

    def test_a_session_can_be_deleted(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.grant(NAME, "d", who="ann", role="expert", use="link", seconds=60)
            storage.delete(NAME)
            assert storage.sessions() == []
            assert storage.find_grant("d", use="link") is None
            assert begin(storage, "c").cards(NAME)[0].item == "c"

    def test_events_come_back_as_they_were(self, open_again: Opening) -> None:
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
            for event, stored in zip(log, kept, strict=True):
                said = {name: value for name, value in vars(event).items() if value is not None}
                assert {name: getattr(stored, name) for name in said} == said
            assert other.events(NAME, since=2, most=3) == kept[2:5]
            assert other.events(NAME, since=len(kept)) == []
            assert other.open(NAME).n_events == len(log)

    def test_the_log_says_when_and_in_which_order(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            before = storage.now()
            kept = storage.append(NAME, [Event("tell", "b", "yes", "ann"), Event("tell", "b", "no", "bob")])
            assert [(event.draw, event.card, event.opinion) for event in kept] == [(2, 2, 1), (2, 2, 2)]
            assert all(before - 1e-3 <= event.at <= storage.now() + 1e-3 for event in kept if event.at is not None)
            assert [event.draw for event in storage.append(NAME, ask("c")) or []] == [3]

    def test_answers_alone_say_the_order_of_the_draws(self, open_again: Opening) -> None:
        with closing(open_again()) as storage:
            answers = [Event("tell", name, "yes", propensity=0.5) for name in ("c", "a")]
            storage.create(NAME, "active test", {}, events=[*answers, Event("tell", "b", "no")])
            assert [event.draw for event in storage.events(NAME)] == [1, 2, None]

    def test_who_worked_from_an_old_log_is_told(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            assert storage.append(NAME, ask("b"), after=0) is None
            assert len(storage.append(NAME, ask("b"), after=1) or []) == 1
            assert len(storage.events(NAME)) == 2

    def test_the_same_key_is_the_same_event(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            event = Event("tell", "a", "yes", "ann", key="k")
            first = storage.append(NAME, [event])
            assert storage.append(NAME, [event, replace(event, truth="no")]) == (first or []) * 2
            assert len(storage.events(NAME)) == 2

    def test_all_or_nothing(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            bad: Any = Event("guess", "a")  # type: ignore[arg-type]
            refusal(lambda: storage.append(NAME, [*ask("b"), bad]), TrueupError)
            assert (len(storage.events(NAME)), len(storage.cards(NAME))) == (1, 1)

    def test_odd_text_is_only_text(self, open_again: Opening) -> None:
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
        with closing(begin(open_again(), "a")) as storage:
            for digest, seconds in (("1", 600), ("2", 0), ("3", 600)):
                given = storage.grant(NAME, digest, who="ann", role="expert", use="link", seconds=seconds)
                assert (given.session, given.who, given.role, given.use) == (NAME, "ann", "expert", "link")
            storage.grant(NAME, "4", who="bob", role="owner", use="cookie", seconds=600)
            assert storage.find_grant("1", use="link") is not None
            assert storage.find_grant("1", use="cookie") is None
            assert storage.find_grant("2", use="link") is None
            assert storage.use_grant("2", use="link") is None
            assert storage.use_grant("1", use="link").used is not None
            assert storage.use_grant("1", use="link") is None
            assert storage.revoke(NAME, digest="3") == 1
            assert storage.use_grant("3", use="link") is None
            assert storage.revoke(NAME, who="bob") == 1
            assert storage.revoke(NAME, who="bob") == 0
            assert storage.find_grant("4", use="cookie") is None
            assert [grant.digest for grant in storage.grants(NAME)] == ["1", "2", "3", "4"]

    def test_a_person_is_forgotten(self, open_again: Opening) -> None:
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


# ------------------ What every storage keeps to: cards and their leases.


class CardTests:
    """Cards and leases."""

    def test_cards_are_given_out_in_the_order_of_the_draws(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage, closing(open_again()) as other:
            first = storage.claim(NAME, "ann", seconds=600)
            assert (first.number, first.item, first.draw, first.propensity, first.leased_to) == (1, "a", 1, 0.25, "ann")
            assert first.why == "It is uncertain."
            assert 500 < first.seconds_left <= 600
            again = other.claim(NAME, "ann", seconds=600)
            assert again.number == 1
            second = other.claim(NAME, "bob")
            assert second.number == 2
            assert storage.claim(NAME, "cid") is None
            out = storage.waiting(NAME, "cid")
            assert (out.n_open, out.n_out) == (2, 2)
            assert 0 < out.next_back <= 600
            assert storage.waiting(NAME, "ann").n_out == 1

    def test_a_lease_that_has_ended_is_claimed_like_a_free_card(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            storage.claim(NAME, "ann", seconds=0)
            mine = storage.claim(NAME, "ann", seconds=0)
            assert mine.seconds_left == 0
            taken = storage.claim(NAME, "bob", seconds=600)
            assert taken.leased_to == "bob"
            assert storage.claim(NAME, "ann") is None
            assert storage.renew(NAME, "ann", 1) is None

    def test_a_lease_can_be_renewed_and_given_back(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            storage.claim(NAME, "ann", seconds=1)
            longer = storage.renew(NAME, "ann", 1, seconds=600)
            assert longer.seconds_left > 500
            assert storage.renew(NAME, "bob", 1) is None
            storage.release(NAME, "bob", 1)
            assert storage.claim(NAME, "bob") is None
            storage.release(NAME, "ann", 1)
            assert storage.claim(NAME, "bob") is not None

    def test_an_answer_brings_the_next_card(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            said = tell("yes", "ann", "k", seconds=2.5, blind=True, shown=("no", "yes"), saw_estimate=False)
            kept = storage.answer(NAME, 1, said, next_seconds=600)
            assert kept.is_new
            assert (kept.event.item, kept.event.draw, kept.event.propensity, kept.event.card) == ("a", 1, 0.25, 1)
            assert (kept.event.seconds, kept.event.blind, kept.event.shown) == (2.5, True, ("no", "yes"))
            assert (kept.next_card.number, kept.next_card.leased_to) == (2, "ann")
            assert storage.events(NAME)[kept.number - 1] == kept.event
            assert numbers(storage.cards(NAME)) == [2]
            assert numbers(storage.cards(NAME, open_only=False)) == [1, 2]
            again = storage.answer(NAME, 1, said, next_seconds=600)
            assert replace(again, next_card=None) == replace(kept, next_card=None, is_new=False)
            assert again.next_card.number == 2
            assert storage.answer(NAME, 2, tell("no", "ann"), next_seconds=600).next_card is None

    def test_a_late_answer_is_kept(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann", seconds=0)
            storage.claim(NAME, "bob")
            first = storage.answer(NAME, 1, tell("yes", "ann"))
            second = storage.answer(NAME, 1, tell("no", "bob"))
            assert (first.event.opinion, second.event.opinion) == (1, 2)
            assert [event.truth for event in storage.events(NAME)[2:]] == ["yes", "no"]
            assert numbers(storage.cards(NAME)) == [2]

    def test_a_second_answer_of_the_same_expert_is_a_correction(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            first = storage.answer(NAME, 1, tell("yes", "ann", "1"))
            same = storage.answer(NAME, 1, tell("yes", "ann", "2"))
            other = storage.answer(NAME, 1, tell("no", "ann", "3"))
            assert (same.is_new, same.number) == (False, first.number)
            assert (other.event.kind, other.event.opinion) == ("correct", 1)
            unsure = storage.answer(NAME, 1, tell(None, "ann", "4", "cannot tell"))
            assert (unsure.event.kind, unsure.event.opinion) == ("cannot tell", 1)
            assert storage.answer(NAME, 1, tell("no", "ann", "5")).event.kind == "tell"

    def test_what_is_put_off_goes_to_another_expert_first(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            kept = storage.answer(NAME, 1, tell(None, "ann", "1", "later"), next_seconds=600)
            assert kept.next_card.number == 2
            back = storage.answer(NAME, 2, tell("yes", "ann", "2"), next_seconds=0).next_card
            assert back.number == 1
            other = storage.claim(NAME, "bob")
            assert other.number == 1
            assert storage.events(NAME)[2].kind == "later"

    def test_what_is_put_off_comes_back_to_who_works_alone(self, open_again: Opening) -> None:
        items = [f"item {k}" for k in range(20)]
        with closing(begin(open_again(), *items)) as storage:
            storage.claim(NAME, "ann")
            card = storage.answer(NAME, 1, tell(None, "ann", "later", "later"), next_seconds=600).next_card
            order = []
            for k in range(11):
                order.append(card.number)
                card = storage.answer(NAME, card.number, tell("yes", "ann", str(k)), next_seconds=600).next_card
            assert order == [*range(2, 12), 1]

    def test_three_keys_settle_or_leave_a_card(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b", "c")) as storage:
            storage.answer(NAME, 1, tell(None, "ann", None, "cannot tell"))
            storage.answer(NAME, 2, tell(None, "ann", None, "none of these"))
            storage.answer(NAME, 3, tell(None, "ann", None, "comment", text="Hm."))
            storage.answer(NAME, 3, tell(None, "ann", None, "comment", text="Hm."))
            assert numbers(storage.cards(NAME)) == [3]
            assert [event.kind for event in storage.events(NAME)[5:]] == ["comment", "comment"]

    def test_an_answer_needs_a_card_and_an_expert(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            assert "card 9" in refusal(lambda: storage.answer(NAME, 9, tell("yes", "ann")), TrueupError)
            nobody: Any = None
            refusal(lambda: storage.answer(NAME, 1, tell("yes", nobody)), TrueupError)
            refusal(lambda: storage.answer(NAME, 1, tell(None, "ann", None, "ask")), TrueupError)
            assert len(storage.events(NAME)) == 1

    def test_second_opinions_come_from_others(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage:
            storage.append(NAME, [Event("ask", "a", purpose="overlap")])
            assert storage.answer(NAME, 1, tell("yes", "ann"), next_seconds=600).next_card is None
            second = storage.claim(NAME, "bob")
            assert (second.number, second.purpose, second.draw) == (2, "overlap", None)
            kept = storage.answer(NAME, 2, tell("no", "bob"))
            assert (kept.event.purpose, kept.event.opinion) == ("overlap", 2)
            storage.append(NAME, [Event("ask", "a", who="ann", purpose="repeat")])
            assert storage.claim(NAME, "cid") is None
            again = storage.claim(NAME, "ann")
            assert again.purpose == "repeat"
            assert [event.draw for event in storage.append(NAME, ask("b")) or []] == [2]

    def test_a_session_can_be_paused(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            storage.pause(NAME)
            assert storage.open(NAME).paused
            mine = storage.claim(NAME, "ann")
            assert mine.number == 1
            assert storage.claim(NAME, "bob") is None
            storage.pause(NAME, paused=False)
            assert storage.claim(NAME, "bob") is not None

    def test_what_is_told_elsewhere_settles_the_card(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.append(NAME, [Event("tell", "a", "yes", "ann")])
            card = storage.claim(NAME, "bob")
            assert card.item == "b"


class StorageTests(LogTests, CardTests):
    """The contract of `trueup.storage.Storage`: the log, the cards, and many who use them at once."""

    def test_many_claim_at_once(self, open_again: Opening) -> None:
        items = [f"item {k}" for k in range(30)]

        def work(place: tuple[Storage, str]) -> list[tuple[str, int]]:
            storage, expert = place
            answered = []
            card = storage.claim(NAME, expert, seconds=600)
            while card is not None:
                answered.append((expert, card.number))
                said = tell("yes", expert, f"{expert} {card.number}")
                card = storage.answer(NAME, card.number, said, next_seconds=600).next_card
            return answered

        with closing(begin(open_again(), *items)) as storage, closing(open_again()) as other:
            places = [((storage, other)[k % 2], f"expert {k}") for k in range(6)]
            answered = [card for cards in all_at_once(work, places) for card in cards]
            assert sorted(number for _, number in answered) == list(range(1, len(items) + 1))
            tells = storage.events(NAME, since=len(items))
            assert sorted((event.who, event.card) for event in tells) == sorted(answered)
            assert {event.opinion for event in tells} == {1}

    def test_two_tabs_at_once_get_one_card(self, open_again: Opening) -> None:
        with closing(begin(open_again(), *range(8))) as storage, closing(open_again()) as other:
            cards = all_at_once(lambda one: one.claim(NAME, "ann"), (storage, other) * 3)
            assert len({None if card is None else card.number for card in cards}) == 1

    def test_the_same_answer_sent_at_once_is_kept_once(self, open_again: Opening) -> None:
        with closing(begin(open_again(), "a")) as storage, closing(open_again()) as other:
            kept = all_at_once(lambda one: one.answer(NAME, 1, tell("yes", "ann", "k")), (storage, other) * 3)
            assert sorted(one.is_new for one in kept) == [False] * 5 + [True]
            assert len(storage.events(NAME)) == 2

    def test_writers_of_a_log_take_turns(self, open_again: Opening) -> None:
        def add(place: tuple[Storage, int]) -> None:
            one, writer = place
            for k in range(5):
                while one.append(NAME, ask(f"{writer} {k}"), after=len(one.events(NAME))) is None:
                    pass

        with closing(begin(open_again())) as storage, closing(open_again()) as other:
            all_at_once(add, [((storage, other)[k % 2], k) for k in range(4)])
            log = storage.events(NAME)
            assert [event.draw for event in log] == list(range(1, 21))
            assert numbers(storage.cards(NAME)) == list(range(1, 21))
            for k in range(4):
                assert [e.item for e in log if str(e.item).startswith(str(k))] == [f"{k} {n}" for n in range(5)]

    def test_a_link_is_used_once(self, open_again: Opening) -> None:
        with closing(begin(open_again())) as storage, closing(open_again()) as other:
            storage.grant(NAME, "1", who="ann", role="expert", use="link", seconds=600)
            used = all_at_once(lambda one: one.use_grant("1", use="link"), (storage, other) * 3)
            assert sum(grant is not None for grant in used) == 1

    def test_processes_share_a_session(self, open_again: Opening) -> None:
        labels, truth = example_labels(n_items=40, n_classes=2)
        said = np.where(np.arange(40) % 5, truth, 1 - truth)
        known = dict(zip(labels.items.tolist(), truth.tolist(), strict=True))
        with closing(open_again()) as storage, closing(open_again()) as other:
            how: Any = {"noise": "majority", "name": NAME}
            one, two = (ActiveTest(said, labels, storage=place, **how) for place in (storage, other))
            mine, theirs = list(one.ask(5)), list(two.ask(5))
            assert not set(mine) & set(theirs)
            one.tell({item: known[item] for item in mine}, who="ann")
            two.tell({item: known[item] for item in theirs}, who="bob")
            one.refresh()
            assert one.log == two.log == tuple(storage.events(NAME))
            alone = ActiveTest(said, labels, noise="majority").replay(one.log)
            assert one.estimate().interval(0.95) == two.estimate().interval(0.95) == alone.estimate().interval(0.95)
