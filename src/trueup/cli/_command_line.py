"""The command line that was typed, for reports: whoever runs it again gets the same numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields
from typing import Any

__all__ = ["command_line", "options_said", "remembered"]

_ARGUMENTS: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


@contextmanager
def remembered(arguments: Sequence[str]) -> Iterator[None]:
    """Inside, `command_line` is of these arguments."""
    token = _ARGUMENTS.set(tuple(arguments))
    try:
        yield
    finally:
        _ARGUMENTS.reset(token)


def command_line() -> str:
    """The command as a shell takes it.

    Examples
    --------
    >>> with remembered(["evaluate", "my votes.csv", "p.csv"]):
    ...     command_line()
    "trueup evaluate 'my votes.csv' p.csv"
    """
    return shlex.join(["trueup", *_ARGUMENTS.get()])


def options_said(*bundles: Any, **single: tuple[Any, Any]) -> dict[str, Any]:
    """The options that are not as by default, by name; files are left out, which are told with their hashes.

    Parameters
    ----------
    *bundles : dataclass instances
        Such as `VoteOptions`.
    **single : tuple
        Of an option by itself: its value and its default.

    Examples
    --------
    >>> from trueup.cli._options import SamplerOptions
    >>> options_said(SamplerOptions(draws=100), target=("sample", "sample"), level=(0.9, 0.95))
    {'draws': 100, 'level': 0.9}
    """
    found = {}
    for bundle in bundles:
        for field in fields(bundle):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            value = getattr(bundle, field.name)
            if value != default and field.name != "gold":
                found[field.name] = value
    return found | {name: value for name, (value, default) in single.items() if value != default}
