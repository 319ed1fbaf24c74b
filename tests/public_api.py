"""The public API as lines of text: every name with its kind, its signature and its types.

    python tests/public_api.py     renews tests/public_api.txt after a change that was meant

A line is added for each public name of each public module, and one for each public member that a class of trueup
brings along. What comes from other packages (dict, Protocol, scikit-learn's bases) is theirs to keep.
"""

import enum
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, get_origin

FILE = Path(__file__).with_suffix(".txt")
COMMAND = "python tests/public_api.py"
NEEDS = {"trueup.training.torch": "torch"}  # modules that cannot be imported without an extra
OPERATORS = {"__call__", "__contains__", "__getitem__", "__iter__", "__len__"}  # what is public without a name
_MARKERS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def public_modules() -> list[str]:
    """trueup, its public packages that export names, and those that need an extra which is here."""
    import trueup

    folder = Path(trueup.__file__).parent
    names = {f"trueup.{path.parent.name}" for path in folder.glob("[!_]*/__init__.py")} | {"trueup.exceptions"}
    names |= {name for name, extra in NEEDS.items() if importlib.util.find_spec(extra)}
    return ["trueup", *sorted(name for name in names if hasattr(importlib.import_module(name), "__all__"))]


def lines() -> list[str]:
    """The API of this checkout; a thing that is exported twice is told once, and its second place points there."""
    told: dict[int, str] = {}
    return [line for module in public_modules() for line in of_module(module, told)]


def expected() -> list[str]:
    """The API as it was frozen, of the modules that can be imported here."""
    known = FILE.read_text(encoding="utf-8").splitlines()
    absent = tuple(f"{name}." for name, extra in NEEDS.items() if importlib.util.find_spec(extra) is None)
    return [line for line in known if not line.startswith(absent)] if absent else known


def of_module(name: str, told: dict[int, str]) -> Iterator[str]:
    """The lines of a module; `told` has the places of classes and functions by their id, and gets new ones."""
    module = importlib.import_module(name)
    for export in sorted(module.__all__):
        value = getattr(module, export)
        path = f"{name}.{export}"
        is_thing = inspect.isclass(value) or inspect.isfunction(value)
        if inspect.ismodule(value):
            yield f"{path}: module"
        elif is_thing and told.setdefault(id(value), path) != path:
            yield f"{path} is {told[id(value)]}"
        elif inspect.isclass(value):
            yield from of_class(path, value)
        elif callable(value) and hasattr(value, "__name__"):
            yield f"{path}{signature(value)}"
        else:
            yield f"{path}: {type(value).__name__}"


def of_class(path: str, cls: type) -> Iterator[str]:
    """The line of a class and those of its public members."""
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"class {path}({bases})"
    if issubclass(cls, enum.Enum):
        yield from (f"{path}.{member.name} = {member.value!r}" for member in cls)
        return
    if "__init__" in vars(cls) or any("__init__" in vars(base) and _ours(base) for base in cls.__mro__):
        yield f"{path}.__init__{signature(cls.__init__)}"
    annotations = {
        name: kind for base in reversed(cls.__mro__) if _ours(base) for name, kind in _annotations(base).items()
    }
    members = {name for base in cls.__mro__ if _ours(base) for name in vars(base)} | annotations.keys()
    for name in sorted(name for name in members if name in OPERATORS or not name.startswith("_")):
        yield f"{path}.{name}{_member(cls, name, annotations.get(name))}"


def _ours(base: type) -> bool:
    return base.__module__.split(".")[0] == "trueup"


def _annotations(base: type) -> dict[str, Any]:
    return dict(inspect.get_annotations(base))


def _member(cls: type, name: str, annotation: Any) -> str:
    """What a member is, without evaluating it."""
    missing = object()
    value = inspect.getattr_static(cls, name, missing)
    if isinstance(value, property):
        return f": property -> {_type(_returned(value.fget))}"
    if isinstance(value, cached_property):
        return f": property -> {_type(_returned(value.func))}"
    if isinstance(value, classmethod | staticmethod):
        return f"{signature(value.__func__)} [{type(value).__name__}]"
    if inspect.isfunction(value):
        return signature(value)
    if annotation is not None:
        return f": {_type(annotation)}"
    return f": {type(value).__name__}"


def _returned(function: Any) -> Any:
    return inspect.signature(function).return_annotation


def signature(function: Any) -> str:
    """Parameters with types and defaults, and what is returned; the same on every version of Python."""
    try:
        told = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not say
        return "(…)"
    parts, keyword_only = [], False
    for parameter in told.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        text = _MARKERS.get(parameter.kind, "") + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_type(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        parts.append(text)
    returned = "" if told.return_annotation is told.empty else f" -> {_type(told.return_annotation)}"
    return f"({', '.join(parts)}){returned}"


def _type(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return "untyped"
    if isinstance(annotation, str):
        return " ".join(annotation.split())
    if get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__qualname__
    return str(annotation).replace("typing.", "")


def _default(value: Any) -> str:
    """A default as it is written, or the kind of thing that it is."""
    if value is None or isinstance(value, bool | int | float | str | tuple | frozenset):
        return repr(value)
    if isinstance(value, type) or inspect.isfunction(value):
        return str(value.__qualname__)
    name = type(value).__name__
    return "<factory>" if name == "_HAS_DEFAULT_FACTORY_CLASS" else f"<{name}>"


def main() -> int:
    """Write the file; what was frozen of modules that cannot be imported here would be lost, so that is an error."""
    absent = [extra for extra in NEEDS.values() if importlib.util.find_spec(extra) is None]
    if absent:
        sys.stderr.write(f"{', '.join(absent)} must be installed, or its part of the API would be lost\n")
        return 1
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
