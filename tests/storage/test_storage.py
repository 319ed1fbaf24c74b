"""The contract of storages, on SQLite and on PostgreSQL."""

import pytest

from trueup.storage import open_storage
from trueup.testing import StorageTests


class TestDatabases(StorageTests):
    @pytest.fixture
    def open_again(self, database):
        return lambda: open_storage(database)
