"""Damaged exports: bytes flipped, keys removed, types changed, ends cut off, nested deeply, or lying of their sizes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

DEEP = 10_000
CLAIMED = 10 * 2**30
_STRANGE: tuple[Any, ...] = (None, 7, -1.5, 1e308, True, "", "x", [], {}, [[]], {"a": None}, "`x`", "\ud800", 10**30)

Mutation = Callable[[bytes, np.random.Generator], bytes]


def flip_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes become others."""
    damaged = bytearray(content)
    for at in rng.integers(len(damaged), size=int(rng.integers(1, 20))):
        damaged[at] = int(rng.integers(256))
    return bytes(damaged)


def cut_off(content: bytes, rng: np.random.Generator) -> bytes:
    """The end is missing."""
    return content[: int(rng.integers(len(content)))]


def nest_deeply(content: bytes, rng: np.random.Generator) -> bytes:
    """A value is a list in a list, ten thousand times."""
    mark = "\ufffenest here\ufffe"
    marked = _changed(content, rng, lambda inside, key, rng: inside.__setitem__(key, mark))
    return marked.replace(json.dumps(mark).encode(), b"[" * DEEP + b"]" * DEEP)


def claim_much(content: bytes, rng: np.random.Generator) -> bytes:
    """A zip whose members claim to unpack to ten gigabytes each; of other files, a zip that holds them."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        for name, text in _members(content).items():
            archive.writestr(name, text)
        for info in archive.infolist():
            info.file_size = CLAIMED
    return stream.getvalue()


MUTATIONS: dict[str, Mutation] = {
    "bytes flipped": flip_bytes,
    "keys removed": lambda content, rng: _changed(content, rng, _remove),
    "types changed": lambda content, rng: _changed(content, rng, _replace),
    "cut off": cut_off,
    "nested deeply": nest_deeply,
    "sizes claimed": claim_much,
}


def _members(content: bytes) -> dict[str, bytes]:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return {"summaries.json": content, "header.json": b"{}", "_journal/start.json": b"{}"}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        packed = [
            info for info in archive.infolist() if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        ]
        return {info.filename: archive.read(info) for info in packed} or {"header.json": b"{}", "summaries.json": b"[]"}


def _replace(inside: Any, key: Any, rng: np.random.Generator) -> None:
    """Some values are of other types."""
    inside[key] = deepcopy(_STRANGE[rng.integers(len(_STRANGE))])  # a list that is shared could come to hold itself


def _remove(inside: Any, key: Any, rng: np.random.Generator) -> None:
    """Some members of objects, or elements of lists, are missing."""
    del inside[key]


def _changed(
    content: bytes, rng: np.random.Generator, change: Callable[[Any, Any, np.random.Generator], None]
) -> bytes:
    """The content with some places changed: of JSON, of lines of JSON, of a table, of a member of a zip."""
    if content[:2] == b"PK":
        members = _members(content)
        name = list(members)[rng.integers(len(members))]
        members[name] = _changed(members[name], rng, change)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in members.items():
                archive.writestr(member, text)
        return stream.getvalue()
    try:
        document: Any = json.loads(content)
        as_lines = False
    except ValueError:
        try:
            document, as_lines = [json.loads(line) for line in content.splitlines() if line.strip()], True
        except ValueError:
            return _changed_table(content, rng)
    holder = [document]
    for _ in range(int(rng.integers(1, 6))):
        places = _places(holder[0])
        if places:
            inside, key = places[rng.integers(len(places))]
            change(inside, key, rng)
    written = "\n".join(map(json.dumps, holder[0])) if as_lines else json.dumps(holder[0])
    return written.encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All members and elements below a value, each with what holds it."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else []
        places += [(inside, key) for key in keys]
        waiting += [inside[key] for key in keys]
    return places


def _changed_table(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    at = int(rng.integers(len(lines)))
    cells = lines[at].split(b",")
    del cells[int(rng.integers(len(cells)))]
    lines[at] = b",".join(cells)
    return b"\n".join(lines)
