"""Both databases, for the tests of the storage."""

from contextlib import suppress

import pytest

from trueup.storage import open_storage


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request, tmp_path):
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
        return
    server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield url
    server.drop(url)


@pytest.fixture
def storage(database):
    opened = open_storage(database)
    yield opened
    with suppress(RuntimeError):
        opened.close()
