"""Answers for slices of the items, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from trueup._base.types import Booleans
from trueup.data.slices import Slicing

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class BySlice(Mapping[Any, Part], Generic[Part]):
    """An answer by the name of a slice."""

    slicing: Slicing
    answer_on: Callable[[Booleans], Part] = field(repr=False)  # from which items are in a slice to the answer on these

    @cached_property
    def _parts(self) -> dict[Hashable, Part]:
        return {}

    def __getitem__(self, name: Hashable) -> Part:
        if name not in self._parts:
            self._parts[name] = self.answer_on(self.slicing.members(name))
        return self._parts[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.slicing.names.tolist())

    def __len__(self) -> int:
        return self.slicing.n_slices
