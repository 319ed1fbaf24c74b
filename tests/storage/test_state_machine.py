"""Any order of calls leaves a storage where a simple model of it stands; SQLite and PostgreSQL are the same machine."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from trueup.sessions.log import Event
from trueup.storage import CLOSING, open_storage

EXPERTS = st.sampled_from(["ann", "bob", "cid"])
TRUTHS = st.sampled_from(["yes", "no"])
OVER, HELD = 0.0, 3600.0  # a lease that has ended at once, and one that lasts for the whole test


@dataclass
class ModelCard:
    """What a card must be."""

    item: int
    is_open: bool = True
    leased_to: str | None = None
    is_held: bool = False
    put_off_by: dict[str, int] = field(default_factory=dict)  # the number of the event


class Cards(RuleBasedStateMachine):
    """Questions, claims and answers, one after the other, held against a model of a few lines."""

    storage = None
    names = itertools.count()

    @initialize()
    def begin(self):
        self.name = f"session {next(self.names)}"
        self.storage.create(self.name, "active test", {})
        self.cards: dict[int, ModelCard] = {}
        self.log: list[tuple] = []
        self.answers: dict[tuple[int, str], tuple] = {}  # the last of each expert to each card
        self.keys: dict[str, int] = {}

    def best(self, who):
        """The card that an expert must get."""
        mine = [number for number, card in self.cards.items() if card.is_open and card.leased_to == who]
        if mine:
            return mine[0]
        answered = {self.cards[number].item for number, other in self.answers if other == who}
        free = [n for n, card in self.cards.items() if card.is_open and not card.is_held and card.item not in answered]
        settled = [number for number, line in enumerate(self.log, 1) if line[0] in CLOSING]
        long_ago = settled[-10] if len(settled) >= 10 else 0
        return min(
            free, key=lambda number: (self.cards[number].put_off_by.get(who, 0) > long_ago, number), default=None
        )

    def expect_claim(self, card, who, seconds):
        number = self.best(who)
        assert (card and card.number) == number
        if number is not None:
            self.cards[number].leased_to, self.cards[number].is_held = who, seconds > 0

    @rule(n=st.integers(1, 3))
    def ask(self, n):
        items = [len(self.cards) + k for k in range(n)]
        self.storage.append(self.name, [Event("ask", item) for item in items], after=len(self.log))
        for item in items:
            self.log.append(("ask", item, None, None))
            self.cards[len(self.log)] = ModelCard(item)

    @rule(who=EXPERTS, seconds=st.sampled_from([OVER, HELD]))
    def claim(self, who, seconds):
        self.expect_claim(self.storage.claim(self.name, who, seconds=seconds), who, seconds)

    @rule(who=EXPERTS, place=st.integers(0, 9))
    def renew(self, who, place):
        number = self.number(place)
        card = self.cards.get(number)
        may = card is not None and card.is_open and card.leased_to == who
        assert (self.storage.renew(self.name, who, number, seconds=HELD) is not None) == may
        if may:
            card.is_held = True

    @rule(who=EXPERTS, place=st.integers(0, 9))
    def release(self, who, place):
        number = self.number(place)
        self.storage.release(self.name, who, number)
        card = self.cards.get(number)
        if card is not None and card.leased_to == who:
            card.leased_to, card.is_held = None, False

    @rule(
        who=EXPERTS,
        place=st.integers(0, 9),
        kind=st.sampled_from(["tell", "tell", "tell", "later", "cannot tell", "none of these", "comment"]),
        truth=TRUTHS,
        key=st.integers(0, 5),
        seconds=st.sampled_from([None, OVER, HELD]),
    )
    def answer(self, who, place, kind, truth, key, seconds):
        number = self.number(place)
        if number not in self.cards:
            return
        told = truth if kind == "tell" else None
        name = f"{who} {number} {key}"
        kept = self.storage.answer(self.name, number, Event(kind, None, told, who, key=name), next_seconds=seconds)
        card, before = self.cards[number], self.answers.get((number, who))
        if name in self.keys:
            assert (kept.is_new, kept.number) == (False, self.keys[name])
        elif kind in CLOSING and before is not None and before[:2] == (kind, told):
            assert (kept.is_new, kept.number) == (False, before[2])
        else:
            is_correction = kind == "tell" and before is not None and before[1] is not None
            self.log.append(("correct" if is_correction else kind, card.item, told, who))
            assert (kept.is_new, kept.number) == (True, len(self.log))
            self.keys[name] = len(self.log)
            if kind in CLOSING:
                self.answers[number, who] = kind, told, len(self.log)
                card.is_open = False
            elif kind == "later":
                card.put_off_by[who] = len(self.log)
        if kind == "later" and card.leased_to == who:
            card.leased_to, card.is_held = None, False
        if seconds is not None:
            self.expect_claim(kept.next_card, who, seconds)

    def number(self, place):
        numbers = list(self.cards)
        return numbers[place % len(numbers)] if numbers else place

    @invariant()
    def the_log_is_the_models(self):
        log = self.storage.events(self.name)
        assert [(event.kind, event.item, event.truth, event.who) for event in log] == self.log

    @invariant()
    def the_cards_are_the_models(self):
        there = self.storage.cards(self.name, open_only=False)
        assert [(card.number, card.item, not card.closed, card.leased_to) for card in there] == [
            (number, card.item, card.is_open, card.leased_to) for number, card in self.cards.items()
        ]
        assert [card.number for card in there if card.seconds_left > 0] == [
            number for number, card in self.cards.items() if card.is_open and card.is_held
        ]
        out = [card.leased_to for card in there if not card.closed and card.leased_to]
        assert len(set(out)) == len(out), "an expert has one card at a time"


def run(database, **how):
    storage = open_storage(database)
    machine = type("CardsHere", (Cards,), {"storage": storage})
    try:
        run_state_machine_as_test(machine, settings=settings(settings.get_profile("ci"), **how))
    finally:
        storage.close()


def test_any_order_of_calls(database):
    run(database, max_examples=8, stateful_step_count=15)


@pytest.mark.slow
def test_many_orders_of_calls(database):
    run(database, max_examples=300, stateful_step_count=40)
