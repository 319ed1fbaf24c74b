"""A call as data: which door was used, with which arguments; reports and the command line read it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Settings:
    """Every keyword argument of a call, as it was passed.

    Attributes
    ----------
    door : str
        The name of the function or class.
    arguments : mapping
        All keywords with their values, options included; `random_state` as the seed that gives the same numbers.
    defaults : mapping
        What the door takes where nothing is passed; options have none.
    """

    door: str
    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of_call(cls, door: Callable[..., Any], values: Mapping[str, Any]) -> Settings:
        """From the local variables of a door at its start, that is its parameters.

        Examples
        --------
        >>> def door(data, *, level=0.95, seed=0, **options):
        ...     return Settings.of_call(door, locals())
        >>> settings = door([1, 2], level=0.9, n_draws=100)
        >>> settings.arguments, settings.changed()
        ({'level': 0.9, 'seed': 0, 'n_draws': 100}, {'level': 0.9, 'n_draws': 100})
        """
        parameters = inspect.signature(door).parameters.values()
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "progress"]
        arguments = {p.name: _kept(values[p.name]) for p in keywords}
        for options in (p.name for p in parameters if p.kind is p.VAR_KEYWORD):
            arguments |= {name: _kept(value) for name, value in values[options].items()}
        return cls(door.__name__, arguments, {p.name: p.default for p in keywords})

    def changed(self) -> dict[str, Any]:
        """The arguments that differ from the defaults."""
        return {
            name: value
            for name, value in self.arguments.items()
            if name not in self.defaults or not _same(value, self.defaults[name])
        }

    def with_seed(self, seed: int) -> Settings:
        """With the seed behind the `random_state` that was passed."""
        return Settings(self.door, {**self.arguments, "random_state": seed}, self.defaults)


def _kept(value: Any) -> Any:
    """A copy of what the caller may change later."""
    return copy.copy(value) if isinstance(value, list | dict | set | np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)
