"""What an adapter is: how one tool's files are recognised, read and written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trueup.adapters.collecting import Collector
from trueup.adapters.content import Content, Head
from trueup.exceptions import InvalidParameter

Basis = Literal["real files", "files that the tool's own code wrote", "the documented layout"]


@dataclass(frozen=True)
class Answer:
    """What is said to another tool of an item.

    Attributes
    ----------
    label : hashable, optional. The class that is suggested; None where an expert should not be swayed.
    confidence : float, optional. How sure it is, from 0 to 1.
    columns : mapping. What is known of the item: its text, its system.
    """

    item: Hashable
    label: Hashable | None = None
    confidence: float | None = None
    columns: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Target:
    """How answers are named in another tool.

    Attributes
    ----------
    question : str. The question, control or score.
    agent : str. Who suggests.
    details : mapping. What else the tool needs, as in `Answers.details`.
    """

    question: str
    agent: str
    details: Mapping[str, str]


@dataclass(frozen=True)
class Adapter:
    """How the files of one tool are recognised, read and written.

    Another package adds one by an entry point of the group "trueup.adapters".

    Attributes
    ----------
    title : str. The tool and its files, for people.
    sniff : callable
        From a `Head` to the marks of this layout that it shows. Two are needed for a file to be taken for one.
    read : callable. Takes a `Content` and tells a `Collector` what is in it.
    becomes : str. What becomes votes, gold and predictions, for people.
    basis : str
        What the reader was written from: real files, files that the tool's own code wrote, or the documented layout.
    write : callable, optional. From answers and a `Target` to the text of a file that the tool takes.
    writes : str. What that is, for people.
    """

    title: str
    sniff: Callable[[Head], list[str]]
    read: Callable[[Content, Collector], None]
    becomes: str
    basis: Basis
    write: Callable[[list[Answer], Target], str] | None = None
    writes: str = ""


def marks(keys: Mapping[str, Any], *names: str) -> list[str]:
    """Those of the names that are keys."""
    return [name for name in names if name in keys]


def check_adapter(name: str, part: Any) -> None:
    """Stop what is registered and is no adapter."""
    if not isinstance(part, Adapter):
        raise InvalidParameter(f"an adapter must be a trueup.adapters.Adapter, got {type(part).__name__} for {name!r}")
