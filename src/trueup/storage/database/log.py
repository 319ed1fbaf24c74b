"""Sessions and their log in their tables: events are added and read, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from trueup.exceptions import InvalidParameter, SessionMissing
from trueup.sessions.log import KINDS, Event
from trueup.storage.base import CLOSING, SessionRecord
from trueup.storage.database.tables import OPEN_CARD, DatabaseNow, cards, event_of, events, read_row, sessions

OPINIONS = ("tell", "cannot tell", "none of these")


# What most calls need of a session; settings can be long, and are read where they are asked for.
_STATE = sessions.c.id, sessions.c.paused, sessions.c.n_events, sessions.c.n_draws


def find_record(connection: sa.Connection, name: str) -> SessionRecord | None:
    """A session; None if there is none."""
    row = connection.execute(sa.select(sessions).where(sessions.c.name == name)).one_or_none()
    return None if row is None else read_row(SessionRecord, row)


def open_record(connection: sa.Connection, name: str) -> SessionRecord:
    """A session; an error if there is none."""
    record = find_record(connection, name)
    if record is None:
        raise _missing(connection, name)
    return record


def open_row(connection: sa.Connection, name: str, *, lock: bool = False) -> Any:
    """The state of a session, locked against other writers on request; an error if there is none."""
    query = sa.select(*_STATE).where(sessions.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise _missing(connection, name)
    return row


def _missing(connection: sa.Connection, name: str) -> SessionMissing:
    names = [repr(one) for one in connection.scalars(sa.select(sessions.c.name).order_by(sessions.c.name))]
    there = "none" if not names else f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}"
    return SessionMissing(f"there is no session {name!r} in this storage, got {there}; use one of its names")


def read_events(connection: sa.Connection, session: int, since: int, most: int | None) -> list[Event]:
    """The log after the first `since` events."""
    query = sa.select(events).where(events.c.session == session, events.c.number > since).order_by(events.c.number)
    return [event_of(row) for row in connection.execute(query.limit(most))]


def find_key(connection: sa.Connection, session: int, key: str | None) -> Any:
    """The row of the event that a request brought before."""
    if key is None:
        return None
    return connection.execute(sa.select(events).where(events.c.session == session, events.c.key == key)).one_or_none()


def add_events(connection: sa.Connection, session: Any, new: Sequence[Event]) -> list[tuple[int, Event]]:
    """Add events to the log of a session whose row is locked; returns their numbers and what is kept."""
    odd = next((event.kind for event in new if event.kind not in KINDS), None)
    if odd is not None:
        raise InvalidParameter(f"an event must be one of {', '.join(KINDS)}, got {odd!r}")
    kept: list[tuple[int, Event]] = []
    number, n_draws, now = session.n_events, session.n_draws, connection.scalar(sa.select(DatabaseNow()))
    for are_questions, events_alike in groupby(new, key=lambda event: event.kind == "ask" and event.key is None):
        if are_questions:  # thousands at once
            questions = []
            for event in events_alike:
                number += 1
                full = _dated(event, now, n_draws + 1)
                n_draws = max(n_draws, full.draw or 0)
                questions.append((number, full))
            _insert(connection, session.id, questions)
            kept += questions
            continue
        for event in events_alike:
            before = find_key(connection, session.id, event.key)
            if before is not None:
                kept.append((before.number, event_of(before)))
                continue
            number += 1
            full = _completed(connection, session.id, event, n_draws + 1, now)
            n_draws = max(n_draws, full.draw or 0)
            _insert(connection, session.id, [(number, full)])
            if full.kind in CLOSING:
                _close_card(connection, session.id, full)
            kept.append((number, full))
    connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(n_events=number, n_draws=n_draws))
    return kept


def _dated(event: Event, now: float | None, next_draw: int) -> Event:
    """A question with its time and its place among the draws, where it does not say so itself."""
    draw = event.draw if event.draw is not None or event.purpose is not None else next_draw
    return replace(event, at=now if event.at is None else event.at, draw=draw)


def _insert(connection: sa.Connection, session: int, numbered: Sequence[tuple[int, Event]]) -> None:
    """Add events to the log as they are, and a card for each question."""
    connection.execute(
        sa.insert(events), [{"session": session, "number": number, **vars(event)} for number, event in numbered]
    )
    new_cards = [
        {
            "session": session,
            "number": number,
            "item": event.item,
            "draw": event.draw,
            "propensity": event.propensity,
            "purpose": event.purpose,
            "why": event.why,
            "reserved_for": event.who,
            "closed": False,
        }
        for number, event in numbered
        if event.kind == "ask"
    ]
    if new_cards:
        connection.execute(sa.insert(cards), new_cards)


def _completed(connection: sa.Connection, session: int, event: Event, next_draw: int, now: float | None) -> Event:
    """An event with its time, its place among the draws and its opinion, where it does not say so itself."""
    if event.kind == "ask":
        return _dated(event, now, next_draw)
    draw, card, opinion = event.draw, event.card, event.opinion
    # Ordered here, where there are few: for the first one alone SQLite would go through the whole log.
    drawn: Any = connection.execute(
        sa.select(events.c.draw, events.c.number, events.c.kind).where(
            events.c.session == session, events.c.item == event.item, events.c.draw.is_not(None)
        )
    )
    first = min(drawn, key=lambda row: row.number, default=None)
    if draw is None and first is not None:
        draw = first.draw
    elif draw is None and event.propensity is not None:
        draw = next_draw  # a log of answers alone still says in which order items were drawn
    if card is None and first is not None and first.kind == "ask":
        card = first.number
    if event.kind in OPINIONS and opinion is None:
        opinion = 1 + n_opinions(connection, session, event.item)
    return replace(event, at=now if event.at is None else event.at, draw=draw, card=card, opinion=opinion)


def n_opinions(connection: sa.Connection, session: int, item: Any) -> int:
    """How many answers there are for an item, without corrections."""
    query = sa.select(sa.func.max(events.c.opinion)).where(
        events.c.session == session, events.c.item == item, events.c.kind.in_(OPINIONS)
    )
    return connection.scalar(query) or 0


def _close_card(connection: sa.Connection, session: int, event: Event) -> None:
    """Settle the card that an event names, or else the first open one of its item."""
    mine = sa.and_(cards.c.session == session, cards.c.item == event.item, OPEN_CARD)
    named = sa.select(cards.c.number).where(mine, cards.c.number == event.card).scalar_subquery()
    first = sa.select(cards.c.number).where(mine).order_by(cards.c.number).limit(1).scalar_subquery()
    number = named if event.purpose is not None else sa.func.coalesce(named, first)
    connection.execute(sa.update(cards).where(cards.c.session == session, cards.c.number == number).values(closed=True))
