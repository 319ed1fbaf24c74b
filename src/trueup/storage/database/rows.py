"""Sessions, their log, and cards with who has them, in their tables; a card is claimed in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from trueup.exceptions import InvalidParameter, SessionMissing
from trueup.sessions.log import KINDS, Event
from trueup.sessions.progress import CARDS_BEFORE_AN_OWN_DELAY
from trueup.storage.base import CLOSING, Accepted, Card, SessionRecord, Waiting
from trueup.storage.database.tables import OPEN_CARD, DatabaseNow, JsonText, cards, events, read_row, sessions

OPINIONS = ("tell", "cannot tell", "none of these")


# What most calls need of a session; settings can be long, and are read where they are asked for.
_STATE = sessions.c.id, sessions.c.paused, sessions.c.n_events, sessions.c.n_draws


def find_record(connection: sa.Connection, name: str) -> SessionRecord | None:
    """A session; None if there is none."""
    row = connection.execute(sa.select(sessions).where(sessions.c.name == name)).one_or_none()
    return None if row is None else read_row(SessionRecord, row)


def open_record(connection: sa.Connection, name: str) -> SessionRecord:
    """A session; an error if there is none."""
    return read_row(SessionRecord, open_row(connection, name, columns=tuple(sessions.columns)))


def open_row(connection: sa.Connection, name: str, *, lock: bool = False, columns: tuple[Any, ...] = _STATE) -> Any:
    """The state of a session, locked against other writers on request; an error if there is none."""
    query = sa.select(*columns).where(sessions.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        names = list(map(repr, connection.scalars(sa.select(sessions.c.name).order_by(sessions.c.name))))
        there = f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}" or "none"
        raise SessionMissing(f"there is no session {name!r} in this storage, got {there}; use one of its names")
    return row


def read_events(connection: sa.Connection, session: Any, since: int, most: int | None) -> list[Event]:
    """The log after the first `since` events."""
    if session.n_events <= since:
        return []
    query = sa.select(events).where(events.c.session == session.id, events.c.number > since).order_by(events.c.number)
    return [read_row(Event, row) for row in connection.execute(query.limit(most))]


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
        to_insert: list[tuple[int, Event]] = []
        for event in events_alike:
            before = find_key(connection, session.id, event.key)
            if before is not None:
                kept.append((before.number, read_row(Event, before)))
                continue
            number += 1
            full = _completed(connection, session.id, event, n_draws + 1, now)
            n_draws = max(n_draws, full.draw or 0)
            kept.append((number, full))
            to_insert.append((number, full))
            if not are_questions:  # these come by thousands; the next of all others may rest on this one
                _insert(connection, session.id, to_insert)
                to_insert = []
                if full.kind in CLOSING:
                    _close_card(connection, session.id, full)
        if to_insert:
            _insert(connection, session.id, to_insert)
    connection.execute(sa.update(sessions).where(sessions.c.id == session.id).values(n_events=number, n_draws=n_draws))
    return kept


def _insert(connection: sa.Connection, session: int, numbered: Sequence[tuple[int, Event]]) -> None:
    """Add events to the log as they are, and a card for each question."""
    connection.execute(
        sa.insert(events), [{"session": session, "number": number, **vars(event)} for number, event in numbered]
    )
    new_cards = []
    for number, event in numbered:
        if event.kind == "ask":
            shared = {name: getattr(event, name) for name in ("item", "draw", "propensity", "purpose", "why")}
            new_cards.append(
                {"session": session, "number": number, **shared, "reserved_for": event.who, "closed": False}
            )
    if new_cards:
        connection.execute(sa.insert(cards), new_cards)


def _completed(connection: sa.Connection, session: int, event: Event, next_draw: int, now: float | None) -> Event:
    """An event with its time, its place among the draws and its opinion, where it does not say so itself."""
    at, draw, card, opinion = now if event.at is None else event.at, event.draw, event.card, event.opinion
    if event.kind == "ask":
        return replace(event, at=at, draw=next_draw if draw is None and event.purpose is None else draw)
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
        before = sa.select(sa.func.max(events.c.opinion)).where(
            events.c.session == session, events.c.item == event.item, events.c.kind.in_(OPINIONS)
        )
        opinion = 1 + (connection.scalar(before) or 0)
    return replace(event, at=at, draw=draw, card=card, opinion=opinion)


def _close_card(connection: sa.Connection, session: int, event: Event) -> None:
    """Settle the card that an event names, or else the first open one of its item."""
    mine = sa.and_(cards.c.session == session, cards.c.item == event.item, OPEN_CARD)
    named = sa.select(cards.c.number).where(mine, cards.c.number == event.card).scalar_subquery()
    first = sa.select(cards.c.number).where(mine).order_by(cards.c.number).limit(1).scalar_subquery()
    number = named if event.purpose is not None else sa.func.coalesce(named, first)
    connection.execute(sa.update(cards).where(cards.c.session == session, cards.c.number == number).values(closed=True))


_ATTEMPTS = 5  # of two tabs that claim at the same moment
_ANSWERS = (*OPINIONS, "correct")
_FROM_EXPERTS = (*CLOSING, "correct", "later", "comment")


def card_of(row: Any) -> Card:
    """What a row with the column `now` stands for."""
    left = 0.0 if row.leased_until is None or row.closed else max(row.leased_until - row.now, 0.0)
    return read_row(Card, row, seconds_left=left)


def read_cards(connection: sa.Connection, session: int, open_only: bool) -> list[Card]:
    """Cards in the order of their numbers."""
    query = sa.select(cards, DatabaseNow().label("now")).where(cards.c.session == session).order_by(cards.c.number)
    return [card_of(row) for row in connection.execute(query.where(OPEN_CARD) if open_only else query)]


def claim(connection: sa.Connection, session: Any, who: str, seconds: float) -> Card | None:
    """The card for an expert, leased to them; the one they have if they have one."""
    sought = {"at_session": session.id, "expert": who}
    for _ in range(_ATTEMPTS):
        try:
            with connection.begin_nested():
                statement = _claim_statement(is_paused=session.paused)
                row = connection.execute(statement, {**sought, "for_seconds": seconds}).one_or_none()
        except sa.exc.IntegrityError:
            continue  # another tab of theirs was quicker; the next look sees what it got
        if row is not None:
            return card_of(row)
        if connection.scalar(sa.select(_best_card(is_paused=session.paused)), sought) is None:
            return None
    return None


_SESSION = sa.bindparam("at_session", type_=sa.Integer)
_WHO = sa.bindparam("expert", type_=JsonText)


@cache  # the most frequent statement, and the longest: to put it together takes as long as to run it
def _claim_statement(*, is_paused: bool) -> Any:
    # The conditions of the row itself are checked again on the version that is locked, where there are several writers.
    seconds = sa.bindparam("for_seconds", type_=sa.Double)
    return (
        sa.update(cards)
        .where(cards.c.session == _SESSION, cards.c.number == _best_card(is_paused=is_paused), OPEN_CARD)
        .where(sa.or_(cards.c.leased_to == _WHO, _is_free()))
        .values(leased_to=_WHO, leased_until=DatabaseNow() + seconds)
        .returning(cards, DatabaseNow().label("now"))
    )


def _is_free() -> Any:
    return sa.or_(cards.c.leased_until.is_(None), cards.c.leased_until <= DatabaseNow())


@cache
def _best_card(*, is_paused: bool) -> Any:
    """The number of the card an expert has, else of the first that is free, those that they have just put off last."""
    mine = (
        sa.select(cards.c.number)
        .where(cards.c.session == _SESSION, OPEN_CARD, cards.c.leased_to == _WHO)
        .limit(1)
        .scalar_subquery()
    )
    if is_paused:
        return mine
    said = sa.select(events.c.number).where(events.c.session == _SESSION, events.c.who == _WHO)
    answered = said.where(events.c.item == cards.c.item, events.c.kind.in_(OPINIONS)).correlate(cards)
    # Without that one who works alone would never see it again, and all that was drawn after it would wait to count.
    latest = (
        sa.select(events.c.number)
        .where(events.c.session == _SESSION, events.c.kind.in_(CLOSING))
        .order_by(events.c.number.desc())
        .limit(1)
        .offset(CARDS_BEFORE_AN_OWN_DELAY - 1)
        .scalar_subquery()
    )
    later = said.where(events.c.card == cards.c.number, events.c.kind == "later").correlate(cards)
    put_off = later.where(events.c.number > sa.func.coalesce(latest, 0))
    free = (
        sa.select(cards.c.number)
        .where(cards.c.session == _SESSION, OPEN_CARD, _is_free())
        .where(sa.or_(cards.c.reserved_for.is_(None), cards.c.reserved_for == _WHO))
        .where(sa.or_(cards.c.purpose == "repeat", ~answered.exists()))
        .order_by(cards.c.number)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    # Two experts differ: it goes first to whoever has not answered it; once put off it waits among the others.
    settle = free.where(cards.c.purpose == "settle", ~later.exists())
    wanted = free.where(~put_off.exists())
    return sa.func.coalesce(mine, *(query.scalar_subquery() for query in (settle, wanted, free)))


def renew(connection: sa.Connection, session: int, who: str, number: int, seconds: float) -> Card | None:
    """Hold a card for longer if it is still theirs."""
    row = connection.execute(
        sa.update(cards)
        .where(cards.c.session == session, cards.c.number == number)
        .where(cards.c.leased_to == who, OPEN_CARD)
        .values(leased_until=DatabaseNow() + seconds)
        .returning(cards, DatabaseNow().label("now"))
    ).one_or_none()
    return None if row is None else card_of(row)


def release(connection: sa.Connection, session: int, who: str, number: int) -> None:
    """Give a card back."""
    connection.execute(
        sa.update(cards)
        .where(cards.c.session == session, cards.c.number == number, cards.c.leased_to == who)
        .values(leased_to=None, leased_until=None)
    )


def waiting(connection: sa.Connection, session: int, who: str) -> Waiting:
    """What is out with others."""
    now = connection.scalar(sa.select(DatabaseNow())) or 0.0
    is_out = sa.and_(cards.c.leased_until > now, cards.c.leased_to != who)
    row = connection.execute(
        sa.select(
            sa.func.count(), sa.func.count(sa.case((is_out, 1))), sa.func.min(sa.case((is_out, cards.c.leased_until)))
        ).where(cards.c.session == session, OPEN_CARD)
    ).one()
    return Waiting(row[0], row[1], None if row[2] is None else max(row[2] - now, 0.0))


def answer(connection: sa.Connection, name: str, number: int, event: Event, next_seconds: float | None) -> Accepted:
    """Keep an answer to a card, and lease the next one to the same expert."""
    if event.who is None or event.kind not in _FROM_EXPERTS:
        raise InvalidParameter(
            f"an answer must be one of {', '.join(_FROM_EXPERTS)} and name an expert, got {event.kind!r} of "
            f"{event.who!r}; pass `who`"
        )
    session = open_row(connection, name, lock=True)
    card = connection.execute(
        sa.select(cards).where(cards.c.session == session.id, cards.c.number == number)
    ).one_or_none()
    if card is None:
        raise InvalidParameter(f"there is no card {number} in session {name!r}, got it; claim one first")
    earlier = None
    if event.kind in _ANSWERS:
        # Ordered here, where there are few: for the last one alone SQLite would go through the whole log from its end.
        by_expert = sa.and_(events.c.session == session.id, events.c.card == number, events.c.who == event.who)
        answers = connection.execute(sa.select(events).where(by_expert, events.c.kind.in_(_ANSWERS)))
        earlier = max(answers, key=lambda row: row.number, default=None)
    before = find_key(connection, session.id, event.key)
    if before is None and earlier is not None and earlier.truth == event.truth:
        kinds = {earlier.kind, event.kind}
        if len(kinds) == 1 or kinds == {"tell", "correct"}:  # another tab has sent it
            before = earlier
    if before is not None:
        kept, is_new = (before.number, read_row(Event, before)), False
    else:
        full = replace(
            event, item=card.item, draw=card.draw, propensity=card.propensity, purpose=card.purpose, card=number
        )
        if earlier is not None:
            kind = "correct" if event.kind == "tell" and earlier.truth is not None else event.kind
            full = replace(full, kind=kind, opinion=earlier.opinion)
        kept, is_new = add_events(connection, session, [full])[0], True
    if event.kind == "later":
        release(connection, session.id, event.who, number)
    next_card = None if next_seconds is None else claim(connection, session, event.who, next_seconds)
    return Accepted(*kept, is_new, next_card)
