"""SQLite: the journal by the library's version, pragmas that are read back, and where a file may not lie."""

import multiprocessing
import sqlite3
import threading
import time
from contextlib import closing

import pytest
import sqlalchemy as sa

from trueup.exceptions import StorageError
from trueup.serve.card_service import request_key
from trueup.serve.guard import Person
from trueup.sessions.log import Event
from trueup.storage import open_storage
from trueup.storage.database import sqlite
from trueup.storage.database.sqlite import Journal, choose_journal, has_wal_fix, prepare

UNSAFE = [(3, 40, 1), (3, 44, 5), (3, 45, 0), (3, 50, 6), (3, 51, 0), (3, 51, 2)]
SAFE = [(3, 44, 6), (3, 50, 7), (3, 51, 3), (3, 54, 0), (4, 0, 0)]


@pytest.mark.parametrize("version", [*UNSAFE, *SAFE])
def test_a_write_ahead_log_needs_the_fix(version):
    is_safe = version in SAFE
    assert has_wal_fix(version) == is_safe
    journal = choose_journal(version)
    assert (journal.mode, sqlite._SYNCHRONOUS[journal.mode]) == (("wal", 2) if is_safe else ("delete", 3))
    assert ".".join(map(str, version)) in journal.why
    assert "\n" not in journal.why
    assert choose_journal(version, "rollback").mode == "delete"
    if not is_safe:
        with pytest.raises(StorageError, match="which can lose commits"):
            choose_journal(version, "wal")


def pragmas(path, *names):
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_every_connection_is_set_up_and_read_back(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(sqlite, "has_wal_fix", lambda version: mode == "wal")
    with closing(open_storage(f"sqlite:///{tmp_path}/a.db")) as storage:
        storage.create("q3", "active test", {}, events=[Event("ask", "a")])
        with storage._engine.connect() as one, storage._engine.connect() as two:
            for connection in (one, two):
                read = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
                ]
                assert read == [mode, {"wal": 2, "delete": 3}[mode], 1, 1]
        assert storage.claim("q3", "ann") is not None
        assert len(storage.notes) == 1
    assert pragmas(tmp_path / "a.db", "integrity_check") == ["ok"]


class Stubborn:
    """A connection that does not do what a pragma asks for."""

    def __init__(self, **answers):
        self.answers = {"journal_mode": "delete", "synchronous": 3, "foreign_keys": 1, "secure_delete": 1, **answers}

    def execute(self, text):
        self.value = self.answers[text.removeprefix("PRAGMA ").partition("=")[0]]
        return self

    def fetchone(self):
        return [self.value]


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"synchronous": 1}, "must be opened with synchronous=3, got 1 read back"),
        ({"foreign_keys": 0}, "must be opened with foreign_keys=1, got 0 read back"),
        ({"journal_mode": "memory"}, "must keep a journal on disk, got journal_mode=memory"),
        ({"journal_mode": "wal"}, "must be without a write-ahead log"),
    ],
)
def test_a_pragma_that_does_not_hold_is_refused(answers, problem):
    with pytest.raises(StorageError, match=problem):
        prepare(Stubborn(**answers), Journal("delete", "so"), "a.db")


def test_network_file_systems_are_refused_and_disks_taken(tmp_path, monkeypatch):
    for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "lustre"):
        monkeypatch.setattr(sqlite, "file_system_of", lambda path, kind=kind: kind)
        with pytest.raises(StorageError, match=f"not safe across a network, got .* on {kind}"):
            open_storage(f"sqlite:///{tmp_path}/a.db")
        assert not (tmp_path / "a.db").exists()
    for kind in (None, "ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "zfs"):
        monkeypatch.setattr(sqlite, "file_system_of", lambda path, kind=kind: kind)
        open_storage(f"sqlite:///{tmp_path}/a.db").close()
    assert (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://", "must be a file that other processes can open"),
        ("sqlite:///:memory:", "must be a file that other processes can open"),
        ("sqlite:///no/such/folder/a.db", "does not exist"),
        ("sqlite:///a.db?mode=ro", "the option 'journal' only, got 'mode'"),
        ("sqlite:///a.db?journal=off", "'wal' or 'rollback', got 'off'"),
        ("a.db", "is named by a URL"),
        ("mysql://a/b", "must be SQLite or PostgreSQL"),
    ],
)
def test_urls_that_make_no_sense(url, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=problem):
        open_storage(url)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,labeler,label\n" * 100, encoding="utf-8")
    with pytest.raises(StorageError, match="is no database"):
        open_storage(f"sqlite:///{path}")
    assert path.read_text(encoding="utf-8").startswith("item,labeler")


def test_what_many_threads_write_goes_into_one_transaction(tmp_path, monkeypatch):
    with closing(open_storage(f"sqlite:///{tmp_path}/a.db")) as storage:
        storage.create("q3", "active test", {}, events=[Event("ask", k) for k in range(20)])
        sizes, write = [], storage._writer._write
        monkeypatch.setattr(storage._writer, "_write", lambda batch: (sizes.append(len(batch)), write(batch)))
        is_writing, may_end = threading.Event(), threading.Event()

        def take_long(connection):
            is_writing.set()
            may_end.wait()

        threads = [threading.Thread(target=storage._write, args=[take_long])]
        threads[0].start()
        is_writing.wait()
        threads += [threading.Thread(target=storage.claim, args=["q3", f"expert {k}"]) for k in range(20)]
        for thread in threads[1:]:
            thread.start()
        while storage._writer._jobs.qsize() < 20:
            time.sleep(0.01)
        may_end.set()
        for thread in threads:
            thread.join()
        assert sizes == [1, 20]
        assert len({card.leased_to for card in storage.cards("q3")}) == 20


def _write_often(url, n):
    with closing(open_storage(url)) as storage:
        for k in range(n):
            storage.append("q3", [Event("comment", "a", who=str(k))])


def test_processes_take_turns(tmp_path):
    """Who comes last is let in although others never stop: each waits for its turn."""
    url = f"sqlite:///{tmp_path}/a.db"
    with closing(open_storage(url)) as storage:
        storage.create("q3", "active test", {})
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=_write_often, args=[url, 8]) for _ in range(2)]
    for process in crew:
        process.start()
    for process in crew:
        process.join()
    assert [process.exitcode for process in crew] == [0, 0]
    with closing(open_storage(url)) as storage:
        assert len(storage.events("q3")) == 16


def test_a_job_that_fails_takes_no_other_with_it(tmp_path):
    with closing(open_storage(f"sqlite:///{tmp_path}/a.db")) as storage:

        def spoil(connection):
            connection.exec_driver_sql("INSERT INTO sessions VALUES (9, 'x', '', '', '', '', '', 0, 0, 0, 0)")
            raise RuntimeError("spoiled")

        with pytest.raises(RuntimeError, match="spoiled"):
            storage._write(spoil)
        assert storage.sessions() == []
        storage.create("q3", "active test", {})
        assert len(storage.sessions()) == 1


def _answer_in_child(storage, done):
    storage.answer("q3", 1, Event("tell", None, "yes", "ann", key="k"))
    done.put(len(storage.events("q3")))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_was_forked_opens_its_own(tmp_path):
    context = multiprocessing.get_context("fork")
    with closing(open_storage(f"sqlite:///{tmp_path}/a.db")) as storage:
        storage.create("q3", "active test", {}, events=[Event("ask", "a")])
        done = context.SimpleQueue()
        child = context.Process(target=_answer_in_child, args=[storage, done])
        child.start()
        child.join()
        assert (child.exitcode, done.get()) == (0, 2)
        assert storage.claim("q3", "bob") is None


def test_a_forgotten_name_is_not_in_the_file_nor_what_is_derived_from_it(tmp_path):
    path, person = tmp_path / "a.db", Person("Rumpelstiltskin", "expert")
    storage = open_storage(f"sqlite:///{path}?journal=rollback")
    storage.create("q3", "active test", {}, events=[Event("ask", "a")])
    storage.append("q3", [Event("tell", "a", "yes", person.name, key=request_key(person, "k1"))])
    assert b"Rumpelstiltskin" in path.read_bytes()
    storage.forget(person.name)
    told = storage.events("q3")[-1]
    assert (told.who, told.key) == ("forgotten person 1", None)
    storage.close()
    storage.close()
    assert b"Rumpelstiltskin" not in path.read_bytes()
    with pytest.raises(StorageError, match="is closed"):
        storage.create("q4", "active test", {})


def test_an_answer_looks_at_few_rows_however_long_the_log_is(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/test.db")
    storage.create("q3", "active test", {})
    storage.append("q3", [Event("ask", item, propensity=0.5) for item in range(3)])
    statements = []

    def listen(connection, cursor, statement, parameters, context, many):
        if statement.startswith(("SELECT", "UPDATE")):
            statements.append((statement, parameters))

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", listen)
    try:
        card = storage.claim("q3", "ann")
        storage.answer("q3", card.number, Event("tell", None, "yes", "ann", key="k"), next_seconds=60.0)
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", listen)
    storage.close()
    with sqlite3.connect(tmp_path / "test.db") as connection:
        plans = [row[3] for one in statements for row in connection.execute(f"EXPLAIN QUERY PLAN {one[0]}", one[1])]
    connection.close()
    assert len(plans) > 10
    # The index of the open cards holds few, and the log is read from its end for the tenth outcome; any other part of a
    # table is found by more than the session.
    long = [plan for plan in plans if plan.endswith("(session=?)") and "cards_open" not in plan]
    assert len(long) <= sum("julianday" in one[0] and "OFFSET" in one[0] for one in statements)
    assert not [plan for plan in plans if plan.startswith("SCAN") and "sessions" not in plan and "CONSTANT" not in plan]
