"""What every storage keeps to: cards and their leases."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

from trueup.exceptions import TrueupError
from trueup.sessions.log import Event
from trueup.testing.storage_examples import NAME, Opening, ask, begin, numbers, refusal, tell


class CardTests:
    """Cards and leases."""

    def test_cards_are_given_out_in_the_order_of_the_draws(self, open_again: Opening) -> None:
        """Each to one expert, and the same again to who asks again, also from elsewhere."""
        with closing(begin(open_again(), "a", "b")) as storage, closing(open_again()) as other:
            first = storage.claim(NAME, "ann", seconds=600)
            assert first is not None
            assert (first.number, first.item, first.draw, first.propensity, first.leased_to) == (1, "a", 1, 0.25, "ann")
            assert first.why == "It is uncertain."
            assert 500 < first.seconds_left <= 600
            again = other.claim(NAME, "ann", seconds=600)
            assert again is not None
            assert again.number == 1
            second = other.claim(NAME, "bob")
            assert second is not None
            assert second.number == 2
            assert storage.claim(NAME, "cid") is None
            out = storage.waiting(NAME, "cid")
            assert (out.n_open, out.n_out) == (2, 2)
            assert out.next_back is not None
            assert 0 < out.next_back <= 600
            assert storage.waiting(NAME, "ann").n_out == 1

    def test_a_lease_that_has_ended_is_claimed_like_a_free_card(self, open_again: Opening) -> None:
        """By the clock of the database; until then it is not, and who had it gets it again if nobody came."""
        with closing(begin(open_again(), "a")) as storage:
            storage.claim(NAME, "ann", seconds=0)
            mine = storage.claim(NAME, "ann", seconds=0)
            assert mine is not None
            assert mine.seconds_left == 0
            taken = storage.claim(NAME, "bob", seconds=600)
            assert taken is not None
            assert taken.leased_to == "bob"
            assert storage.claim(NAME, "ann") is None
            assert storage.renew(NAME, "ann", 1) is None

    def test_a_lease_can_be_renewed_and_given_back(self, open_again: Opening) -> None:
        """By who has it."""
        with closing(begin(open_again(), "a")) as storage:
            storage.claim(NAME, "ann", seconds=1)
            longer = storage.renew(NAME, "ann", 1, seconds=600)
            assert longer is not None
            assert longer.seconds_left > 500
            assert storage.renew(NAME, "bob", 1) is None
            storage.release(NAME, "bob", 1)
            assert storage.claim(NAME, "bob") is None
            storage.release(NAME, "ann", 1)
            assert storage.claim(NAME, "bob") is not None

    def test_an_answer_brings_the_next_card(self, open_again: Opening) -> None:
        """And is kept with all that is known of it."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            said = tell("yes", "ann", "k", seconds=2.5, blind=True, shown=("no", "yes"), saw_estimate=False)
            kept = storage.answer(NAME, 1, said, next_seconds=600)
            assert kept.is_new
            assert (kept.event.item, kept.event.draw, kept.event.propensity, kept.event.card) == ("a", 1, 0.25, 1)
            assert (kept.event.seconds, kept.event.blind, kept.event.shown) == (2.5, True, ("no", "yes"))
            assert kept.next_card is not None
            assert (kept.next_card.number, kept.next_card.leased_to) == (2, "ann")
            assert storage.events(NAME)[kept.number - 1] == kept.event
            assert numbers(storage.cards(NAME)) == [2]
            assert numbers(storage.cards(NAME, open_only=False)) == [1, 2]
            again = storage.answer(NAME, 1, said, next_seconds=600)
            assert replace(again, next_card=None) == replace(kept, next_card=None, is_new=False)
            assert again.next_card is not None
            assert again.next_card.number == 2
            assert storage.answer(NAME, 2, tell("no", "ann"), next_seconds=600).next_card is None

    def test_a_late_answer_is_kept(self, open_again: Opening) -> None:
        """As the first if nobody else has answered, else as a further opinion."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann", seconds=0)
            storage.claim(NAME, "bob")
            first = storage.answer(NAME, 1, tell("yes", "ann"))
            second = storage.answer(NAME, 1, tell("no", "bob"))
            assert (first.event.opinion, second.event.opinion) == (1, 2)
            assert [event.truth for event in storage.events(NAME)[2:]] == ["yes", "no"]
            assert numbers(storage.cards(NAME)) == [2]

    def test_a_second_answer_of_the_same_expert_is_a_correction(self, open_again: Opening) -> None:
        """Unless it says the same: then another tab has sent it twice."""
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
        """And comes back to who put it off when nothing else is there."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            kept = storage.answer(NAME, 1, tell(None, "ann", "1", "later"), next_seconds=600)
            assert kept.next_card is not None
            assert kept.next_card.number == 2
            back = storage.answer(NAME, 2, tell("yes", "ann", "2"), next_seconds=0).next_card
            assert back is not None
            assert back.number == 1
            other = storage.claim(NAME, "bob")
            assert other is not None
            assert other.number == 1
            assert storage.events(NAME)[2].kind == "later"

    def test_what_is_put_off_comes_back_to_who_works_alone(self, open_again: Opening) -> None:
        """After ten others, however many wait: all that was drawn after it waits for it."""
        items = [f"item {k}" for k in range(20)]
        with closing(begin(open_again(), *items)) as storage:
            storage.claim(NAME, "ann")
            card = storage.answer(NAME, 1, tell(None, "ann", "later", "later"), next_seconds=600).next_card
            order = []
            for k in range(11):
                assert card is not None
                order.append(card.number)
                card = storage.answer(NAME, card.number, tell("yes", "ann", str(k)), next_seconds=600).next_card
            assert order == [*range(2, 12), 1]

    def test_three_keys_settle_or_leave_a_card(self, open_again: Opening) -> None:
        """Cannot tell and none of these are outcomes, a comment is not."""
        with closing(begin(open_again(), "a", "b", "c")) as storage:
            storage.answer(NAME, 1, tell(None, "ann", None, "cannot tell"))
            storage.answer(NAME, 2, tell(None, "ann", None, "none of these"))
            storage.answer(NAME, 3, tell(None, "ann", None, "comment", text="Hm."))
            storage.answer(NAME, 3, tell(None, "ann", None, "comment", text="Hm."))
            assert numbers(storage.cards(NAME)) == [3]
            assert [event.kind for event in storage.events(NAME)[5:]] == ["comment", "comment"]

    def test_an_answer_needs_a_card_and_an_expert(self, open_again: Opening) -> None:
        """Else it is refused and nothing is kept."""
        with closing(begin(open_again(), "a")) as storage:
            assert "card 9" in refusal(lambda: storage.answer(NAME, 9, tell("yes", "ann")), TrueupError)
            nobody: Any = None
            refusal(lambda: storage.answer(NAME, 1, tell("yes", nobody)), TrueupError)
            refusal(lambda: storage.answer(NAME, 1, tell(None, "ann", None, "ask")), TrueupError)
            assert len(storage.events(NAME)) == 1

    def test_second_opinions_come_from_others(self, open_again: Opening) -> None:
        """And repeated cards from the expert whom they are reserved for."""
        with closing(begin(open_again(), "a")) as storage:
            storage.append(NAME, [Event("ask", "a", purpose="overlap")])
            assert storage.answer(NAME, 1, tell("yes", "ann"), next_seconds=600).next_card is None
            second = storage.claim(NAME, "bob")
            assert second is not None
            assert (second.number, second.purpose, second.draw) == (2, "overlap", None)
            kept = storage.answer(NAME, 2, tell("no", "bob"))
            assert (kept.event.purpose, kept.event.opinion) == ("overlap", 2)
            storage.append(NAME, [Event("ask", "a", who="ann", purpose="repeat")])
            assert storage.claim(NAME, "cid") is None
            again = storage.claim(NAME, "ann")
            assert again is not None
            assert again.purpose == "repeat"
            assert [event.draw for event in storage.append(NAME, ask("b")) or []] == [2]

    def test_a_session_can_be_paused(self, open_again: Opening) -> None:
        """No new cards; who has one keeps it."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.claim(NAME, "ann")
            storage.pause(NAME)
            assert storage.open(NAME).paused
            mine = storage.claim(NAME, "ann")
            assert mine is not None
            assert mine.number == 1
            assert storage.claim(NAME, "bob") is None
            storage.pause(NAME, paused=False)
            assert storage.claim(NAME, "bob") is not None

    def test_what_is_told_elsewhere_settles_the_card(self, open_again: Opening) -> None:
        """An answer that comes through the log, as of `ActiveTest.tell`."""
        with closing(begin(open_again(), "a", "b")) as storage:
            storage.append(NAME, [Event("tell", "a", "yes", "ann")])
            card = storage.claim(NAME, "bob")
            assert card is not None
            assert card.item == "b"
