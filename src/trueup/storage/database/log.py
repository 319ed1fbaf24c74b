"""The log in its table: events are added and read, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from trueup.exceptions import InvalidParameter, quoted
from trueup.sessions.log import KINDS, Event
from trueup.storage.base import CLOSING
from trueup.storage.database.tables import DatabaseNow, cards, event_of, events, sessions, values_of

OPINIONS = ("tell", "cannot tell", "none of these")


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
    kept = []
    number, n_draws, now = session.n_events, session.n_draws, connection.scalar(sa.select(DatabaseNow()))
    for event in new:
        if event.kind not in KINDS:
            raise InvalidParameter(f"an event must be one of {', '.join(KINDS)}, got {quoted(event.kind)}")
        before = find_key(connection, session.id, event.key)
        if before is not None:
            kept.append((before.number, event_of(before)))
            continue
        number += 1
        full = _completed(connection, session.id, event, n_draws + 1, now)
        n_draws = max(n_draws, full.draw or 0)
        connection.execute(sa.insert(events).values(session=session.id, number=number, **values_of(full)))
        if full.kind == "ask":
            _add_card(connection, session.id, number, full)
        elif full.kind in CLOSING:
            _close_card(connection, session.id, full)
        kept.append((number, full))
    connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(n_events=number, n_draws=n_draws))
    return kept


def _completed(connection: sa.Connection, session: int, event: Event, next_draw: int, now: float | None) -> Event:
    """An event with its time, its place among the draws and its opinion, where it does not say so itself."""
    draw, card, opinion = event.draw, event.card, event.opinion
    if event.kind == "ask":
        draw = draw if draw is not None or event.purpose is not None else next_draw
    else:
        first = connection.execute(
            sa.select(events.c.draw, events.c.number, events.c.kind)
            .where(events.c.session == session, events.c.item == event.item, events.c.draw.is_not(None))
            .order_by(events.c.number)
            .limit(1)
        ).one_or_none()
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


def _add_card(connection: sa.Connection, session: int, number: int, event: Event) -> None:
    connection.execute(
        sa.insert(cards).values(
            session=session,
            number=number,
            item=event.item,
            draw=event.draw,
            propensity=event.propensity,
            purpose=event.purpose,
            why=event.why,
            reserved_for=event.who,
            closed=False,
        )
    )


def _close_card(connection: sa.Connection, session: int, event: Event) -> None:
    """Settle the card that an event names, or else the first open one of its item."""
    mine = sa.and_(cards.c.session == session, cards.c.item == event.item, sa.not_(cards.c.closed))
    named = sa.select(cards.c.number).where(mine, cards.c.number == event.card).scalar_subquery()
    first = sa.select(cards.c.number).where(mine).order_by(cards.c.number).limit(1).scalar_subquery()
    number = named if event.purpose is not None else sa.func.coalesce(named, first)
    connection.execute(sa.update(cards).where(cards.c.session == session, cards.c.number == number).values(closed=True))
