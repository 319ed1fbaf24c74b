"""Sessions in a database that several processes share: SQLite by default, PostgreSQL by its URL."""

from trueup.exceptions import SessionMissing, StorageError
from trueup.storage.base import CLOSING, Accepted, Card, Grant, SessionRecord, Storage, Waiting
from trueup.storage.joining import back_up, copy_storage, open_session, open_storage, upgrade

__all__ = [
    "CLOSING",
    "Accepted",
    "Card",
    "Grant",
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
