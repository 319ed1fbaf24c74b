"""Forgetting a person: their name is replaced, what they said stays."""

from __future__ import annotations

import sqlalchemy as sa

from trueup.storage.database.tables import cards, events, grants

_NEUTRAL = "forgotten person"


def forget(connection: sa.Connection, who: str) -> int:
    """Put a neutral name in the place of another one everywhere; returns how many events carried it."""
    known = set(connection.scalars(sa.select(events.c.who).where(events.c.who.is_not(None)).distinct()))
    number = 1
    while f"{_NEUTRAL} {number}" in known:
        number += 1
    name = f"{_NEUTRAL} {number}"
    connection.execute(sa.delete(grants).where(grants.c.who == who))
    connection.execute(sa.update(cards).where(cards.c.leased_to == who).values(leased_to=name))
    connection.execute(sa.update(cards).where(cards.c.reserved_for == who).values(reserved_for=name))
    return connection.execute(sa.update(events).where(events.c.who == who).values(who=name)).rowcount
