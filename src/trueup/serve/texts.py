"""The words of the app, read from one file so that they can be put into another language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from trueup.exceptions import InvalidFile

Texts = Mapping[str, Mapping[str, str]]


@cache
def own_texts() -> Texts:
    """The texts that trueup brings."""
    return tomllib.loads(files("trueup.serve").joinpath("texts.toml").read_text(encoding="utf-8"))


def read_texts(path: Path | None = None) -> Texts:
    """The texts, with those of another file in their place where it has them.

    Parameters
    ----------
    path : Path, optional
        A file with the tables and keys of ``trueup/serve/texts.toml``, or some of them.
    """
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
