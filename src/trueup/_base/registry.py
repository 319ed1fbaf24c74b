"""Parts by name: one way to list them, to find them, to add to them, from inside trueup or from outside.

Each kind of part (noise models, metrics, methods, strategies, commands) has one `Registry`. A package outside of trueup
adds a part by an entry point of the registry's group, which is loaded when a name is looked up or the names are listed:

    [project.entry-points."trueup.noise_models"]
    my-model = "my_package:MyModel"
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from trueup.exceptions import InvalidParameter, TrueupWarning

Part = TypeVar("Part")
Made = TypeVar("Made")


class Registry(Generic[Part]):
    """Parts of one kind, by name; underscores, hyphens and case make no difference."""

    def __init__(
        self,
        parameter: str,
        parts: Mapping[str, Part],
        *,
        aliases: Mapping[str, str] | None = None,
        group: str | None = None,
        check: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.parameter = parameter
        self.group = group or f"trueup.{parameter}"
        self._parts: dict[str, Part] = {_plain(name): part for name, part in parts.items()}
        self._aliases = {_plain(alias): _plain(name) for alias, name in (aliases or {}).items()}
        self._check = check
        self._outside_loaded = False
        self._loading_outside = False
        self._lock = RLock()

    def register(self, name: str, part: Part, *, aliases: tuple[str, ...] = ()) -> Part:
        """Add a part, or put another in the place of one; returns it, so that it serves as a decorator's end."""
        if self._check is not None:
            self._check(name, part)
        plain, others = _plain(name), [_plain(alias) for alias in aliases]
        for taken in (plain, *others):
            behind = self._aliases.get(taken, taken if taken in self._parts else plain)
            if behind != plain or (taken == plain and taken in self._aliases):
                raise InvalidParameter(
                    f"a {self.parameter} must be known by names that no other has, got {taken!r}, which means "
                    f"{behind!r}; choose another"
                )
        self._parts[plain] = part
        self._aliases |= {alias: plain for alias in others if alias != plain}
        return part

    def names(self) -> list[str]:
        """All names, sorted, without aliases."""
        self._load_outside()
        return sorted(self._parts)

    def resolve(self, name: object) -> str:
        """The listed name behind a name or an alias; an error that suggests one where there is none."""
        plain = _plain(name)
        plain = self._aliases.get(plain, plain)
        if plain not in self._parts and plain not in self.names():
            from trueup._base.validation import check_choice  # takes numpy along

            check_choice(name, self.names(), name=self.parameter)
        return plain

    def make(self, choice: str | Made, options: Mapping[str, Any], *, base: type[Made]) -> Made:
        """A part that is a frozen dataclass, by name with its options; one that is made already is given back."""
        if not isinstance(choice, str) and isinstance(choice, base):
            if options:
                raise InvalidParameter(
                    f"a {self.parameter} has its options already, got {sorted(options)}; set them when it is made"
                )
            return choice
        name = self.resolve(choice)
        kind: Any = self._parts[name]
        takes = [option.name for option in fields(kind)] if is_dataclass(kind) else []
        for option in options:
            if option not in takes:
                allowed = f"the options {', '.join(takes)}" if takes else "no option"
                raise InvalidParameter(f"{self.parameter} {name!r} takes {allowed}, got {option!r}")
        made: Made = kind(**options)
        return made

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """After the block the parts are those of before, for tests and examples; others are asked anew in it."""
        before = dict(self._parts), dict(self._aliases), self._outside_loaded
        self._outside_loaded = False
        try:
            yield
        finally:
            self._parts, self._aliases, self._outside_loaded = before

    def __getitem__(self, name: str) -> Part:
        return self._parts[self.resolve(name)]

    def __contains__(self, name: object) -> bool:
        plain = _plain(name)
        return self._aliases.get(plain, plain) in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _load_outside(self) -> None:
        """The parts of other packages; one that cannot be loaded must not take the rest along."""
        if self._outside_loaded:
            return
        with self._lock:
            if self._outside_loaded or self._loading_outside:  # a package may look up names while it is loaded
                return
            self._loading_outside = True
            try:
                for entry in entry_points(group=self.group):
                    if _plain(entry.name) not in self._parts:
                        self._load_entry(entry)
                self._outside_loaded = True  # last, so that no other thread looks before all are there
            finally:
                self._loading_outside = False

    def _load_entry(self, entry: EntryPoint) -> None:
        try:
            self.register(entry.name, entry.load())
        except Exception as error:
            warnings.warn(
                f"the {self.parameter} {entry.name!r} of {entry.value!r} cannot be loaded, got "
                f"{type(error).__name__}: {error}; mend or uninstall that package",
                TrueupWarning,
                stacklevel=3,
            )


def _plain(name: object) -> str:
    return str(name).lower().replace("_", "-")
