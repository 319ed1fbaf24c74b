"""Forgetting a person: their name is replaced, what they said stays."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from trueup.sessions.log import people_of_batch, rename_in_batch
from trueup.storage.database.tables import cards, events, grants

_NEUTRAL = "forgotten person"


def forget(connection: sa.Connection, who: str) -> int:
    """Put a neutral name in the place of another one everywhere; returns how many events carried it."""
    known = set(connection.scalars(sa.select(events.c.who).where(events.c.who.is_not(None)).distinct()))
    batches = {
        (row.session, row.number): row.text
        for row in connection.execute(
            sa.select(events.c.session, events.c.number, events.c.text).where(
                events.c.kind == "batch", events.c.text.is_not(None)
            )
        )
    }
    judges = {place: set(map(str, people_of_batch(text))) for place, text in batches.items()}
    known = known.union(*judges.values())
    number = 1
    while f"{_NEUTRAL} {number}" in known:
        number += 1
    name = f"{_NEUTRAL} {number}"
    connection.execute(sa.delete(grants).where(grants.c.who == who))
    connection.execute(sa.update(cards).where(cards.c.leased_to == who).values(leased_to=name))
    connection.execute(sa.update(cards).where(cards.c.reserved_for == who).values(reserved_for=name))
    # The keys of their requests begin with a digest of the name, which whoever knows the names could read.
    n_told = connection.execute(sa.update(events).where(events.c.who == who).values(who=name, key=None)).rowcount
    return n_told + _rename_judge(
        connection, {place: batches[place] for place in judges if who in judges[place]}, who, name
    )


def _rename_judge(connection: sa.Connection, batches: Mapping[tuple[int, int], str], who: str, name: str) -> int:
    """Rename somebody in the batches of monitors, by session and number of the event; returns how many these are."""
    for (session, number), text in batches.items():
        connection.execute(
            sa.update(events)
            .where(events.c.session == session, events.c.number == number)
            .values(text=rename_in_batch(text, who, name))
        )
    return len(batches)
