"""All that a running server holds, made in one place and handed to its pages."""

from __future__ import annotations

import os
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from trueup.data.labels import Labels
from trueup.exceptions import InvalidFile, InvalidParameter
from trueup.serve.card_service import LEASE, CardMaker, CardService, Journal, Layout
from trueup.serve.estimating import LatestSnapshot
from trueup.serve.guard import Access, Address, RateLimit
from trueup.storage import Storage

Texts = Mapping[str, Mapping[str, str]]


@cache
def own_texts() -> Texts:
    """The texts that trueup brings."""
    return tomllib.loads(files("trueup.serve").joinpath("texts.toml").read_text(encoding="utf-8"))


def read_text(path: Path, kind: str) -> str:
    """A file of text that a user names; one that cannot be read is refused."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{str(path)!r} must be a file of {kind}, got {error!s:.100}; name another") from error


def read_texts(path: Path | None = None) -> Texts:
    """The texts, with those of another file in their place where it has them."""
    own = own_texts()
    if path is None:
        return own
    try:
        others: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{str(path)!r} must be a TOML file of texts, got {error!s:.100}; see texts.toml") from error
    for table, words in others.items():
        unknown = sorted(words.keys() - own[table].keys()) if table in own and isinstance(words, dict) else [table]
        if unknown:
            raise InvalidFile(f"{str(path)!r} names the text {unknown[0]!r}, got none of that name in texts.toml")
    return {table: {**words, **others.get(table, {})} for table, words in own.items()}


# What browsers draw and never run. A drawing in SVG may hold scripts: as a picture on a card they do not run, and
# opened by itself it is saved instead.
_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".svg": "image/svg+xml",
}
LARGEST_IMAGE = 50 << 20


class ImageFolder:
    """The one folder that images are read from."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidParameter(f"`images` must be a folder, got {str(root)!r}; name the folder of the images")
        self.root = Path(os.path.realpath(root))

    def find(self, name: str) -> tuple[Path, str] | None:
        """The image of this name and its type, or None: not there, no image, too large, or led out of the folder."""
        try:
            if not name or "\0" in name or Path(name).is_absolute():
                return None
            path = Path(os.path.realpath(self.root / name))
            if not path.is_relative_to(self.root) or not path.is_file() or path.stat().st_size > LARGEST_IMAGE:
                return None
        except (OSError, ValueError):
            return None
        media_type = _TYPES.get(path.suffix.lower())
        return None if media_type is None else (path, media_type)


class Estimating(Protocol):
    """What works beside the server."""

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """End."""


@dataclass(frozen=True)
class Look:
    """How cards look and what may be seen."""

    layout: Layout | None = None  # By default it follows from the columns of the items
    class_names: Mapping[Any, str] | None = None  # What the buttons say, by class
    guidelines: str = ""  # Markdown, with a heading for each class
    images: Path | None = None  # The folder of the images
    # What the system says of each item; shown on the cards, so that the session is not blind
    suggestions: list[str] | None = None
    experts_see_estimate: bool = False
    texts: Texts = field(default_factory=own_texts)

    def maker(self, labels: Labels, seed: int) -> CardMaker:
        """Makes the cards of these items; what does not fit them is refused."""
        return CardMaker(labels, self.layout, class_names=self.class_names, guidelines=self.guidelines, seed=seed)


@dataclass
class Services:
    """A server's parts, for a session that is in a storage."""

    storage: Storage
    session: str
    labels: Labels
    latest: LatestSnapshot
    estimating: Estimating
    address: Address = field(default_factory=Address)
    look: Look = field(default_factory=Look)
    seed: int = 0  # Of the order of two answers on a card
    lease: float = LEASE
    # Set when the server ends, so that streams do, too
    stopping: threading.Event = field(default_factory=threading.Event)
    # Of attempts to come in by an address, and of requests by a person
    entries: RateLimit = field(default_factory=partial(RateLimit, a_second=0.2, at_once=20.0))
    requests: RateLimit = field(default_factory=partial(RateLimit, a_second=50.0, at_once=200.0))

    def __post_init__(self) -> None:
        self.texts = self.look.texts
        self.access = Access(self.storage, self.session)
        self.journal = Journal(self.storage, self.session)
        self.images = None if self.look.images is None else ImageFolder(self.look.images)
        self.maker = self.look.maker(self.labels, self.seed)
        self.cards = CardService(
            self.storage,
            self.session,
            self.labels,
            self.maker,
            self.journal,
            suggestions=self.look.suggestions,
            lease=self.lease,
            is_over=lambda: self.latest.snapshot is not None and self.latest.snapshot.gives_no_cards,
        )
