"""Sessions in a database that several processes share: SQLite by default, PostgreSQL by its URL."""

import warnings
from typing import Any

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


def __getattr__(name: str) -> Any:
    """`Accepted`, by the name that it had until version 0.2."""
    if name != "Kept":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("trueup.storage.Kept is now Accepted; import that", DeprecationWarning, stacklevel=2)
    return Accepted
