"""A PostgreSQL server of the tests' own: in a folder under the system's temporary one, reached by a socket only."""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

VARIABLE = "TRUEUP_TEST_POSTGRES"
DEBIAN = Path("/usr/lib/postgresql")  # <version>/bin, which is on nobody's path
UNPRIVILEGED = ("postgres", "nobody")
HINT = f"install one (apt-get install postgresql) or name the URL of a server in {VARIABLE}"


class NoPostgres(Exception):
    """There is no server that starts; the text says what was tried and what to do."""


def start_postgres(*, settings: tuple[str, ...] = ("fsync=off",)) -> "Postgres":
    """The server that the variable names, or one of our own that runs until it is closed."""
    named = os.environ.get(VARIABLE)
    return Postgres(named) if named else OwnPostgres(binaries(), settings)


def binaries() -> Path:
    """The folder of the newest PostgreSQL of this machine."""
    if sys.platform == "win32":
        raise NoPostgres(f"a server with a socket only needs another system: name the URL of one in {VARIABLE}")
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    on_path = shutil.which("initdb")
    places = [*versions[::-1], *([Path(on_path)] if on_path else [])]
    if not places:
        raise NoPostgres(f"there is no PostgreSQL here: {HINT}")
    return places[0].resolve().parent


class Postgres:
    """A server in which databases can be made; `url` is that of one that is there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._made: list[str] = []
        try:
            self.execute("SELECT 1")
        except Exception as problem:
            raise NoPostgres(f"{VARIABLE} names a server that does not answer ({problem}): {HINT}") from problem

    def execute(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        import psycopg

        with psycopg.connect(self._plain(self.url), autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)

    @staticmethod
    def _plain(url: str) -> str:
        return url.replace("postgresql+psycopg:", "postgresql:")

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"trueup_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name}")
        self._made.append(name)
        before, mark, options = self._plain(self.url).partition("?")
        return f"{before.rsplit('/', 1)[0]}/{name}{mark}{options}"

    def drop(self, url: str) -> None:
        """Remove a database that `new_database` made."""
        name = url.partition("?")[0].rsplit("/", 1)[1]
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")
        self._made.remove(name)

    def close(self) -> None:
        """Remove what is left of the databases."""
        for name in self._made:
            with suppress(Exception):
                self.execute(f"DROP DATABASE {name} WITH (FORCE)")


class OwnPostgres(Postgres):
    """A server that was started here from a folder of programs, as a user who may do nothing else."""

    def __init__(self, folder: Path, settings: tuple[str, ...]) -> None:
        self._programs = folder
        # Directly under the temporary folder: the name of a socket may have about 100 characters only.
        self.place = Path(tempfile.mkdtemp(prefix="trueup-pg-"))
        self._as = _unprivileged() if hasattr(os, "geteuid") and os.geteuid() == 0 else {}
        options = ("listen_addresses=", f"unix_socket_directories={self.place}", *settings)
        self._options = " ".join(f"-c {option}" for option in options)
        try:
            if self._as:
                shutil.chown(self.place, self._as["user"], self._as["group"])
                self.place.chmod(0o755)
            self._call("initdb", "-U", "trueup", "-A", "trust", "-E", "UTF8", "--no-sync")
            self.start()
            super().__init__(f"postgresql://trueup@/postgres?host={self.place}")
        except BaseException:
            shutil.rmtree(self.place, ignore_errors=True)
            raise

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.place / "data"), *arguments]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        with (self.place / "said").open("w+", encoding="utf-8") as said:  # no pipe, which the server would keep open
            done = subprocess.run(
                command,
                stdout=said,
                stderr=said,
                cwd="/",
                env=environment,
                check=False,
                start_new_session=True,
                **self._as,
            )
            said.seek(0)
            if done.returncode:
                raise NoPostgres(f"{program} fails ({said.read().strip()[-300:]}): {HINT}")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._call("pg_ctl", "start", "-w", "-t", "120", "-o", self._options)

    def kill(self) -> None:
        """End the server at once, so that it has to recover as after a crash."""
        self._call("pg_ctl", "stop", "-m", "immediate")

    def close(self) -> None:
        """Stop the server and remove all it had."""
        with suppress(NoPostgres):  # it runs no more
            self._call("pg_ctl", "stop", "-m", "fast", "-t", "60")
        shutil.rmtree(self.place, ignore_errors=True)


def _unprivileged() -> dict[str, object]:
    """The user that a server runs as where the tests run as root, for `subprocess`."""
    import pwd

    for name in UNPRIVILEGED:
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise NoPostgres(f"there is no user to run PostgreSQL as, which refuses to run as root: {HINT}")
