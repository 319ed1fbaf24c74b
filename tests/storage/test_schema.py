"""Schemas: made by migrations, the same on both databases, frozen once released, refused where they are others."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from trueup.exceptions import StorageError
from trueup.sessions.log import Event
from trueup.storage import back_up, copy_storage, open_storage, upgrade
from trueup.storage.database import tables as schema
from trueup.storage.database.sqlite import make_engine
from trueup.storage.database.tables import metadata

RELEASED = sorted(Path(__file__).parent.glob("schema_*.sql"))
NEXT_SCHEMA = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{last}"


def upgrade():
    op.add_column("sessions", sa.Column("colour", sa.Text))
"""


@pytest.fixture
def released(tmp_path):
    """A file of each released schema, as it was when it was released."""

    def make(dump):
        path = tmp_path / f"{dump.stem}.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(dump.read_text(encoding="utf-8"))
        return f"sqlite:///{path}"

    return make


@pytest.fixture
def a_later_trueup(tmp_path, monkeypatch):
    """One more schema than there is."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    for script in (schema._MIGRATIONS / "versions").glob("*.py"):
        (folder / "versions" / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    code = NEXT_SCHEMA.format(last=schema.known_schemas()[-1])
    (folder / "versions" / "next.py").write_text(code, encoding="utf-8")

    def begin():
        monkeypatch.setattr(schema, "_MIGRATIONS", folder)

    return begin


def test_every_released_schema_is_kept():
    assert [dump.stem for dump in RELEASED] == [f"schema_{name}" for name in schema.known_schemas()]


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.stem)
def test_a_released_database_is_read_after_an_upgrade(released, dump):
    url = released(dump)
    upgrade(url)
    with closing(open_storage(url)) as storage:
        record = storage.open("q3")
        assert (record.kind, record.settings, record.options) == ("active test", {"metric": "accuracy"}, {"floor": 0.5})
        assert (record.fingerprints, record.paused) == ({"votes": "abc"}, False)
        log = storage.events("q3")
        assert [event.kind for event in log] == ["ask", "ask", "tell", "later", "comment", "correct"]
        assert log[2] == Event(
            "tell",
            "a",
            "yes",
            "ann",
            0.25,
            at=log[2].at,
            seconds=2.5,
            blind=True,
            draw=1,
            key="k1",
            card=1,
            opinion=1,
            shown=("no", "yes"),
            saw_estimate=False,
        )
        assert [card.item for card in storage.cards("q3")] == [("b", 2)]
        card = storage.claim("q3", "bob")
        assert (card.number, card.why) == (2, "It is uncertain.")
        assert storage.find_grant("digest", use="link").who == "ann"


def test_migrations_make_the_tables_of_the_code(database):
    open_storage(database).close()
    engine = make_engine(database)[0]
    with engine.connect() as connection:
        options = {"version_table": schema.VERSION_TABLE, "include_name": lambda name, *_: name != schema.VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_an_older_schema_is_refused_and_upgraded(storage, database, a_later_trueup, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.create("q3", "active test", {}, events=[Event("ask", "a")])
    last = schema.known_schemas()[-1]
    a_later_trueup()
    with pytest.raises(StorageError, match=f"got the older schema {last}; run `trueup storage upgrade") as refusal:
        open_storage(database)
    assert "\n" not in str(refusal.value)
    storage.close()
    kept = upgrade(database)
    assert kept is not None
    assert kept.exists()
    assert upgrade(database) is None
    with closing(open_storage(database)) as upgraded:
        assert [event.item for event in upgraded.events("q3")] == ["a"]
    engine = make_engine(f"sqlite:///{kept}")[0]
    with engine.connect() as connection:
        assert schema.read_schema(connection, database) == last, "the backup is from before"
    engine.dispose()
    copy_storage(f"sqlite:///{kept}", f"sqlite:///{tmp_path}/old-again.db")


def test_a_newer_schema_is_refused_in_a_sentence(database, a_later_trueup, monkeypatch, tmp_path):
    with monkeypatch.context():
        known = schema._MIGRATIONS
        a_later_trueup()
        open_storage(database).close()
    monkeypatch.setattr(schema, "_MIGRATIONS", known)
    for call in (open_storage, upgrade, lambda url: back_up(url, tmp_path / "b.db")):
        with pytest.raises(StorageError, match=r"has schema next, got a trueup that knows .*pip install") as refusal:
            call(database)
        assert "\n" not in str(refusal.value)
    assert not (tmp_path / "b.db").exists()


def test_copies_go_from_each_database_to_each_other(storage, database, tmp_path, request):
    asked = [Event("ask", k, propensity=0.5, why="x.") for k in range(1100)]  # more than are copied at once
    events = [*asked, Event("tell", 3, True, "ann\0", text="é")]
    storage.create("q3", "active test", {"a": [1]}, events=events)
    storage.grant("q3", "d", who="ann", role="expert", use="link", seconds=60)
    storage.claim("q3", "bob")
    there = f"sqlite:///{tmp_path}/there.db"
    assert copy_storage(database, there) == 1
    back_up(database, tmp_path / "backup.db")
    back = f"sqlite:///{tmp_path}/back.db"
    if database.startswith("postgres"):
        back = request.getfixturevalue("postgres_server").new_database()
    assert copy_storage(there, back) == 1
    for url in (there, back, f"sqlite:///{tmp_path}/backup.db"):
        with closing(open_storage(url)) as other:
            assert other.events("q3") == storage.events("q3")
            assert [(c.number, c.leased_to, c.leased_until) for c in other.cards("q3")] == [
                (c.number, c.leased_to, c.leased_until) for c in storage.cards("q3")
            ]
            assert other.grants("q3") == storage.grants("q3")
            assert other.create("q4", "cleaning", {}).name == "q4", "numbers of sessions go on"
    with pytest.raises(StorageError, match="into an empty database"):
        copy_storage(database, there)


def test_a_failed_backup_leaves_nothing(storage, database, tmp_path, monkeypatch):
    from trueup.storage.database import storage as copying

    storage.create("q3", "active test", {})

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(copying, "_back_up_file", fail)
    monkeypatch.setattr(copying, "_copy_rows", fail)
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        back_up(database, tmp_path / "backup.db")
    assert set(tmp_path.iterdir()) == before
