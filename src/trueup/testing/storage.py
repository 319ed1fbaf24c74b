"""What every storage keeps to, as tests that anyone can run on a new one.

    from trueup.testing import StorageTests

    class TestMyStorage(StorageTests):
        @pytest.fixture
        def open_again(self, tmp_path):
            return lambda: MyStorage(tmp_path)

The fixture `open_again` returns a function that opens the same place, empty at first, as another process would.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial

import numpy as np

from trueup.active import ActiveTest
from trueup.storage import Grant, Kept, Storage
from trueup.testing.noise import example_labels
from trueup.testing.storage_cards import CardTests
from trueup.testing.storage_examples import NAME, Opening, all_at_once, ask, begin, numbers, tell
from trueup.testing.storage_log import LogTests


class StorageTests(LogTests, CardTests):
    """The contract of `trueup.storage.Storage`: the log, the cards, and many who use them at once."""

    def test_many_claim_at_once(self, open_again: Opening) -> None:
        """No card is out twice, every card is answered once, and each expert has one at a time."""
        n_experts, items = 6, [f"item {k}" for k in range(30)]
        answered: list[tuple[str, int]] = []
        problems: list[BaseException] = []

        def work(storage: Storage, who: str) -> None:
            try:
                card = storage.claim(NAME, who, seconds=600)
                while card is not None:
                    answered.append((who, card.number))
                    key = f"{who} {card.number}"
                    card = storage.answer(NAME, card.number, tell("yes", who, key), next_seconds=600).next_card
            except BaseException as error:
                problems.append(error)

        with closing(begin(open_again(), *items)) as storage, closing(open_again()) as other:
            all_at_once([partial(work, (storage, other)[k % 2], f"expert {k}") for k in range(n_experts)])
            assert problems == []
            assert sorted(number for _, number in answered) == list(range(1, len(items) + 1))
            tells = storage.events(NAME, since=len(items))
            assert sorted((event.who, event.card) for event in tells) == sorted(answered)
            assert {event.opinion for event in tells} == {1}

    def test_two_tabs_at_once_get_one_card(self, open_again: Opening) -> None:
        """Although both look before either has one."""
        with closing(begin(open_again(), *range(8))) as storage, closing(open_again()) as other:
            numbers: list[int | None] = []

            def look(one: Storage) -> None:
                card = one.claim(NAME, "ann")
                numbers.append(None if card is None else card.number)

            all_at_once([partial(look, one) for one in (storage, other) * 3])
            assert len(numbers) == 6
            assert len(set(numbers)) == 1

    def test_the_same_answer_sent_at_once_is_kept_once(self, open_again: Opening) -> None:
        """With one key."""
        with closing(begin(open_again(), "a")) as storage, closing(open_again()) as other:
            kept: list[Kept] = []

            def send(one: Storage) -> None:
                kept.append(one.answer(NAME, 1, tell("yes", "ann", "k")))

            all_at_once([partial(send, one) for one in (storage, other) * 3])
            assert sorted(one.is_new for one in kept) == [False] * 5 + [True]
            assert len(storage.events(NAME)) == 2

    def test_writers_of_a_log_take_turns(self, open_again: Opening) -> None:
        """Each adds to the log that it has seen, and numbers have no gaps."""
        with closing(begin(open_again())) as storage, closing(open_again()) as other:

            def add(one: Storage, who: int) -> None:
                for k in range(5):
                    while one.append(NAME, ask(f"{who} {k}"), after=len(one.events(NAME))) is None:
                        pass

            all_at_once([partial(add, (storage, other)[k % 2], k) for k in range(4)])
            log = storage.events(NAME)
            assert [event.draw for event in log] == list(range(1, 21))
            assert numbers(storage.cards(NAME)) == list(range(1, 21))
            for who in range(4):
                assert [e.item for e in log if str(e.item).startswith(str(who))] == [f"{who} {k}" for k in range(5)]

    def test_a_link_is_used_once(self, open_again: Opening) -> None:
        """However many try at the same moment."""
        with closing(begin(open_again())) as storage, closing(open_again()) as other:
            storage.grant(NAME, "1", who="ann", role="expert", use="link", seconds=600)
            got: list[Grant | None] = []

            def use(one: Storage) -> None:
                got.append(one.use_grant("1", use="link"))

            all_at_once([partial(use, one) for one in (storage, other) * 3])
            assert sum(one is not None for one in got) == 1

    def test_processes_share_a_session(self, open_again: Opening) -> None:
        """Two sessions on one log ask for different items, and say the same once both have read it."""
        labels, truth = example_labels(n_items=40, n_classes=2)
        said = np.where(np.arange(40) % 5, truth, 1 - truth)
        known = dict(zip(labels.items.tolist(), truth.tolist(), strict=True))
        with closing(open_again()) as storage, closing(open_again()) as other:
            one, two = (
                ActiveTest(said, labels, noise="majority", storage=place, name=NAME) for place in (storage, other)
            )
            mine, theirs = list(one.ask(5)), list(two.ask(5))
            assert not set(mine) & set(theirs)
            one.tell({item: known[item] for item in mine}, who="ann")
            two.tell({item: known[item] for item in theirs}, who="bob")
            one.refresh()
            assert one.log == two.log == tuple(storage.events(NAME))
            alone = ActiveTest(said, labels, noise="majority").replay(one.log)
            assert one.estimate().interval(0.95) == two.estimate().interval(0.95) == alone.estimate().interval(0.95)
