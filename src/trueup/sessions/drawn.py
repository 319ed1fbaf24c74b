"""Sessions that draw items by chance: second opinions, budgets, and the answers that count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from trueup.sessions.log import Event
from trueup.sessions.progress import (
    Answers,
    Card,
    Counted,
    SessionStatus,
    Shares,
    count_answers,
    new_cards,
    open_cards,
    overlap_of_draws,
    status_of,
)
from trueup.sessions.session import Session

T = TypeVar("T")


class DrawnSession(Session):
    """A session in which items are drawn, experts see some of them twice, and answers count in the order of the draws.

    A subclass sets `budget`, `seed` and `shares` before it begins.
    """

    budget: int | None
    seed: int
    shares: Shares

    def _cards_for(self, who: str | None) -> list[Card]:
        """What an expert gets before anything new is drawn."""
        cards = super()._cards_for(who)
        if who is None:
            return cards  # it cannot be told who is who
        due = new_cards(self.progress, self.shares, self._labels.gold_codes, self.seed)
        spoke = {at for at, each in self.progress.opinions.items() if any(one.who == who for one in each)}
        mine = [
            card
            for card in due
            if card.reserved_for == who or (card.reserved_for is None and card.position not in spoke)
        ]
        return [*cards, *_first(mine, self._room()), *open_cards(self.progress, who)]

    def _room(self, cards: Sequence[Card] = ()) -> float:
        """What the budget leaves when all that is out, also second opinions that wait for somebody, was paid for."""
        if self.budget is None:
            return math.inf
        progress = self.progress
        n_new = sum(card.purpose is not None and card[:2] not in progress.cards for card in cards)
        return max(self.budget - self.n_paid - int(progress.waiting.sum()) - len(progress.cards) - n_new, 0)

    def _follow_ups(self, items: Sequence[Any], who: str | None, room: float) -> list[Event]:
        """Where a storage hands them out, cards that have become due, and the second cards of new draws."""
        due: list[Card] = []
        if self._log is not None:
            due = _first(new_cards(self.progress, self.shares, self._labels.gold_codes, self.seed), room)
        twice = overlap_of_draws(self.progress, who, len(items), self.shares, self.seed, self.budget)
        again = _first(
            [item for item, is_seen_twice in zip(items, twice, strict=True) if is_seen_twice], room - len(due)
        )
        return [
            *(Event("ask", item, purpose="overlap") for item in again),
            *(Event("ask", self._names.items[at], who=name, purpose=purpose) for at, purpose, name in due),
        ]

    @property
    def n_vetted(self) -> int:
        """Number of items with an answer, whether it counts yet or not."""
        return self.progress.n_tells

    @property
    def n_counted(self) -> int:
        """Number of answers that the estimate rests on: those of the completed prefix of the draws."""
        return int(self._counted().progress.vetted.sum())

    @property
    def n_paid(self) -> int:
        """What the budget counts: answers to draws, second opinions, repeats and known items that were asked."""
        extra = sum(one.purpose is not None for each in self.progress.opinions.values() for one in each)
        return self.progress.n_tells + extra

    def status(self) -> SessionStatus:
        """What came in, what counts and what waits, and how well the experts agree."""
        return status_of(
            self.progress,
            self._labels.gold_codes,
            n_items=self._labels.n_items,
            n_classes=self._labels.n_classes,
            level=self.level,
        )

    def _counted(self, answers: Answers = "valid") -> Counted:
        if ("counted", answers) not in self._memo:
            self._memo["counted", answers] = count_answers(self.progress, answers)
        counted: Counted = self._memo["counted", answers]
        return counted


def _first(cards: Sequence[T], n: float) -> list[T]:
    """As many as can be paid for."""
    return [card for k, card in enumerate(cards) if k < n]
