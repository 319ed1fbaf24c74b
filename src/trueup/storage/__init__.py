"""Sessions in a database that several processes share: SQLite by default, PostgreSQL by its URL."""

from trueup.exceptions import SessionMissing, StorageError
from trueup.storage.base import CLOSING, Card, Grant, Kept, SessionRecord, Storage, Waiting
from trueup.storage.joining import back_up, copy_storage, open_session, open_storage, upgrade

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
    "back_up",
    "copy_storage",
    "open_session",
    "open_storage",
    "upgrade",
]
