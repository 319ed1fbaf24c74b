"""Options that several commands share, bundled: a command takes one dataclass, the user sees its fields as options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

__all__ = ["unbundled"]


def unbundled(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters of a dataclass type are replaced by the fields of that dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 3
    ...     height: int = 4
    >>> def area(name: str, size: Size) -> None:
    ...     assert (name, size) == ("a", Size(3, 5))
    >>> list(inspect.signature(unbundled(area)).parameters)
    ['name', 'width', 'height']
    >>> unbundled(area)(name="a", width=3, height=5)
    """
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    bundles: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            bundles[name] = hint
            inner = get_type_hints(hint, include_extras=True)
            parameters += [_parameter(field, inner[field.name]) for field in fields(hint)]
        else:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def call(**given: Any) -> None:
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        function(**given)

    # typer reads the signature or the annotations, by its version; it must not look at the function inside.
    del call.__wrapped__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(field: Field[Any], annotation: Any) -> inspect.Parameter:
    default = field.default
    if default is MISSING:
        default = inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
