"""Which schema a database has, making it and bringing it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from trueup.exceptions import StorageError

VERSION_TABLE = "trueup_schema"
_MIGRATIONS = Path(__file__).with_name("migrations")


def known_schemas() -> list[str]:
    """All schemas that this trueup knows, from the first to its own."""
    return [revision.revision for revision in _scripts().walk_revisions()][::-1]


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(_MIGRATIONS))


def schema_of(connection: sa.Connection) -> str | None:
    """The schema of a database; None where it is empty."""
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def read_schema(connection: sa.Connection, url: str) -> str | None:
    """The schema of a database, None where it is empty; an error if this trueup does not know it."""
    schema, known = schema_of(connection), known_schemas()
    if schema is not None and schema not in known:
        raise StorageError(
            f"the database {url} has schema {schema}, got a trueup that knows up to schema {known[-1]}; run `pip "
            "install --upgrade trueup`"
        )
    return schema


def tables_in(connection: sa.Connection) -> Sequence[str]:
    """The names of all tables."""
    return sa.inspect(connection).get_table_names()


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
        others = [name for name in tables_in(connection) if name != VERSION_TABLE]
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
