"""Sessions in a database that several processes share: SQLite by default, PostgreSQL by its URL."""

from trueup.storage.base import (
    CLOSING,
    Card,
    Grant,
    Kept,
    SessionMissing,
    SessionRecord,
    Storage,
    StorageError,
    Waiting,
)
from trueup.storage.opening import open_storage

__all__ = [
    "CLOSING",
    "Card",
    "Grant",
    "Kept",
    "SessionMissing",
    "SessionRecord",
    "Storage",
    "StorageError",
    "Waiting",
    "open_storage",
]
