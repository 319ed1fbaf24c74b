"""Images below one folder: what a path or a link leads out of it is not shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trueup.exceptions import InvalidParameter

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


@dataclass(frozen=True)
class Image:
    """A file that may be sent."""

    path: Path
    media_type: str
    is_attachment: bool


class ImageFolder:
    """The one folder that images are read from.

    Parameters
    ----------
    root : Path
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InvalidParameter(f"⟨images⟩ must be a folder, got {str(root)!r}; name the folder of the images")
        self.root = Path(os.path.realpath(root))

    def find(self, name: str) -> Image | None:
        """The image of this name, or None: not there, no image, too large, or led out of the folder."""
        try:
            if not name or "\0" in name or Path(name).is_absolute():
                return None
            path = Path(os.path.realpath(self.root / name))
            if not path.is_relative_to(self.root) or not path.is_file() or path.stat().st_size > LARGEST_IMAGE:
                return None
        except (OSError, ValueError):
            return None
        media_type = _TYPES.get(path.suffix.lower())
        return None if media_type is None else Image(path, media_type, media_type == "image/svg+xml")
