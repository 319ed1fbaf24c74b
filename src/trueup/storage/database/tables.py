"""The tables, as they are after all migrations, and how values lie in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from trueup.exceptions import StorageError
from trueup.sessions.log import plain_name, read_name

Kind = TypeVar("Kind")


class JsonText(sa.types.TypeDecorator[Any]):
    """A value as JSON in ASCII: equal values are equal text, and no database stumbles over a character."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        """The value as text; None is no value."""
        return None if value is None else json.dumps(value, default=plain_name, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        """The value that the text stands for."""
        return None if value is None else read_name(json.loads(value))


class JsonObject(JsonText):
    """A dictionary as JSON; lists in it stay lists."""

    cache_ok = True

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        """The dictionary that the text stands for."""
        return None if value is None else json.loads(value)


class DatabaseNow(GenericFunction[float]):
    """The clock of the database at the moment of the statement, in seconds since 1970."""

    type = sa.Double()
    inherit_cache = True
    name = "database_now"


@compiles(DatabaseNow, "sqlite")
def _now_in_sqlite(element: Any, compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"  # unixepoch has fractions since 3.42 only


@compiles(DatabaseNow, "postgresql")
def _now_in_postgresql(element: Any, compiler: Any, **_: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


metadata = sa.MetaData()

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", JsonText, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("settings", JsonObject, nullable=False),
    sa.Column("options", JsonObject, nullable=False),
    sa.Column("fingerprints", JsonObject, nullable=False),
    sa.Column("source", JsonObject, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    sa.Column("n_events", sa.Integer, nullable=False),
    sa.Column("n_draws", sa.Integer, nullable=False),
)


def _of_session() -> sa.ForeignKey:
    return sa.ForeignKey("sessions.id", ondelete="CASCADE")


events = sa.Table(
    "events",
    metadata,
    sa.Column("session", sa.Integer, _of_session(), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("item", JsonText, nullable=False),
    sa.Column("truth", JsonText),
    sa.Column("who", JsonText),
    sa.Column("propensity", sa.Double),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double),
    sa.Column("blind", sa.Boolean),
    sa.Column("draw", sa.Integer),
    sa.Column("key", JsonText),
    sa.Column("card", sa.Integer),
    sa.Column("opinion", sa.Integer),
    sa.Column("purpose", JsonText),
    sa.Column("text", JsonText),
    sa.Column("why", JsonText),
    sa.Column("shown", JsonText),
    sa.Column("saw_estimate", sa.Boolean),
    sa.Index("events_key", "session", "key", unique=True),
    sa.Index("events_item", "session", "item"),
    sa.Index("events_card", "session", "card"),
)

cards = sa.Table(
    "cards",
    metadata,
    sa.Column("session", sa.Integer, _of_session(), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("item", JsonText, nullable=False),
    sa.Column("draw", sa.Integer),
    sa.Column("propensity", sa.Double),
    sa.Column("purpose", JsonText),
    sa.Column("why", JsonText),
    sa.Column("reserved_for", JsonText),
    sa.Column("closed", sa.Boolean, nullable=False),
    sa.Column("leased_to", JsonText),
    sa.Column("leased_until", sa.Double),
    sa.Index("cards_item", "session", "item"),
)
_is_open, _is_out = sa.text("NOT closed"), sa.text("NOT closed AND leased_to IS NOT NULL")
sa.Index("cards_open", cards.c.session, cards.c.number, sqlite_where=_is_open, postgresql_where=_is_open)
# An expert has one card at a time, whatever several tabs ask for at once.
sa.Index(
    "cards_one_each", cards.c.session, cards.c.leased_to, unique=True, sqlite_where=_is_out, postgresql_where=_is_out
)

# As the indexes say it: SQLite looks into one of some rows only where a query has its condition word for word.
OPEN_CARD = sa.text("NOT cards.closed")

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("session", sa.Integer, _of_session(), nullable=False),
    sa.Column("who", JsonText, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("use", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("used", sa.Double),
    sa.Column("revoked", sa.Double),
    sa.Index("grants_session", "session"),
)


def read_row(kind: type[Kind], row: Any, **more: Any) -> Kind:
    """The dataclass that a row stands for, whose columns are named as its fields are."""
    return kind(**{f.name: getattr(row, f.name) for f in fields(cast(Any, kind)) if f.name not in more}, **more)


VERSION_TABLE = "trueup_schema"
_MIGRATIONS = Path(__file__).with_name("migrations")


def known_schemas() -> list[str]:
    """All schemas that this trueup knows, from the first to its own."""
    return [revision.revision for revision in _scripts().walk_revisions()][::-1]


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))


def read_schema(connection: sa.Connection, url: str) -> str | None:
    """The schema of a database, None where it is empty; an error if this trueup does not know it."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    schema, known = context.get_current_revision(), known_schemas()
    if schema is not None and schema not in known:
        raise StorageError(
            f"the database {url} has schema {schema}, got a trueup that knows up to schema {known[-1]}; run `pip "
            "install --upgrade trueup`"
        )
    return schema


def tables_in(connection: sa.Connection) -> Sequence[str]:
    """The names of all tables but that of the version."""
    return [name for name in sa.inspect(connection).get_table_names() if name != VERSION_TABLE]


def migrate(connection: sa.Connection, schema: str = "head") -> None:
    """Bring a database from its schema, or from nothing, to another one, within the transaction that is open."""
    scripts = _scripts()

    def steps(now: Any, _: Any) -> Any:
        return scripts._upgrade_revs(schema, now)

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
        environment.run_migrations()


def check_schema(connection: sa.Connection, url: str) -> bool:
    """Whether a database has its tables; an error if they are of another trueup, or of something else."""
    schema, newest = read_schema(connection, url), known_schemas()[-1]
    if schema is None:
        others = tables_in(connection)
        if others:
            raise StorageError(
                f"the database {url} must be empty or made by trueup, got the tables {', '.join(others[:5])}; name "
                "another database"
            )
        return False
    if schema != newest:
        raise StorageError(
            f"the database {url} must have schema {newest}, got the older schema {schema}; run `trueup storage "
            f"upgrade {url}`, which makes a backup first"
        )
    return True
