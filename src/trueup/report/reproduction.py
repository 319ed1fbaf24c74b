"""How to get the same numbers again: settings, versions, and the command or the calls in Python."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._base.validation import RandomState
from trueup.report.sentences import plain, text

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.prepare import Settings


_PACKAGES = ("trueup", "numpy", "scipy", "scikit-learn", "numba", "narwhals", "jinja2")
_BY_COMMAND = (
    "This is the command that was run; on the same files and with the same versions it gives the same numbers."
)
_IN_PYTHON = (
    "These are the calls, with every argument that differs from its default. What was handed over as an object, such "
    "as a noise model or a function, has to be handed over again."
)


def reproduction_data(
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    seed: RandomState,
    settings: Mapping[str, Any] | None,
    unnamed: bool,
) -> dict[str, Any]:
    """Method, settings, versions, seed, and the command or else a snippet.

    A command line is exact: it names the files and every option. Only without one, in a report made from Python, is
    there a snippet; of a command it would lose how files were read.
    """
    first = next(iter(evaluations.values()), None)
    main: Any = first if first is not None else comparison
    about = {text(key): _plain(value) for key, value in (settings or {}).items()}
    command = about.pop("command", None)
    shown = main.seed if seed is None else seed
    return {
        "method": first.method if first is not None else "compare",
        "noise": text(main.noise),
        "target": main.target,
        "level": main.level,
        "seed": _plain(shown),
        "settings": about,
        "python": platform.python_version(),
        "versions": _versions(),
        "seed_words": text(shown),
        "words": _IN_PYTHON if command is None else _BY_COMMAND,
        "command": None if command is None else text(command),
        "snippet": python_snippet(evaluations, comparison, unnamed=unnamed) if command is None else None,
    }


def _plain(value: Any) -> Any:
    """A setting as JSON has it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {text(key): _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        values = sorted(value, key=str) if isinstance(value, set | frozenset) else list(value)
        return [_plain(v) for v in values]
    return text(value)


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def python_snippet(evaluations: Mapping[str, Evaluation], comparison: Comparison | None, *, unnamed: bool) -> str:
    """The calls of `evaluate` and `compare`, from the settings that their answers keep.

    Labels and predictions are those that were handed over: a report does not know where they came from.

    Parameters
    ----------
    evaluations : mapping from name to Evaluation
    comparison : Comparison or None
    unnamed : bool
        Whether the one system has no name of its own.
    """
    lines = ["import trueup as tu", "", f"# {_handed_over(evaluations, comparison, unnamed)}"]
    calls = {name: _arguments(evaluation.settings) for name, evaluation in evaluations.items()}
    alike = len({tuple(call) for call in calls.values()}) == 1
    if unnamed:
        call = next(iter(calls.values()))
        lines += ["evaluation = tu.evaluate(", "    predictions,", *call, ")", "print(evaluation)"]
    elif calls and alike and _has_the_same(evaluations, comparison):
        lines += ["evaluations = {", "    name: tu.evaluate(", "        system,"]
        lines += [f"    {line}" for line in next(iter(calls.values()))]
        lines += ["    )", "    for name, system in systems.items()", "}", "print(evaluations)"]
    elif calls:
        lines.append("evaluations = {}")
        for name, call in calls.items():
            lines += [f"evaluations[{text(name)!r}] = tu.evaluate(", f"    systems[{text(name)!r}],", *call, ")"]
        lines.append("print(evaluations)")
    if comparison is not None:
        lines += ["comparison = tu.compare(", "    systems,", *_arguments(comparison.settings), ")"]
        lines.append("print(comparison)")
    return "\n".join(lines)


def _handed_over(evaluations: Mapping[str, Evaluation], comparison: Comparison | None, unnamed: bool) -> str:
    """What the names in the calls stand for."""
    if unnamed:
        return "labels and predictions are those of the evaluation"
    whose = (
        "evaluation" if len(evaluations) == 1 and comparison is None else "evaluations" if evaluations else "comparison"
    )
    return f"labels are those of the {whose}; systems has the predictions of each system by name"


def _has_the_same(evaluations: Mapping[str, Evaluation], comparison: Comparison | None) -> bool:
    """Whether all systems that are compared are evaluated too, so that one loop over them will do."""
    return comparison is None or {text(s) for s in comparison.systems.tolist()} == {text(s) for s in evaluations}


def _arguments(settings: Settings) -> list[str]:
    """The labels and the arguments that differ from the defaults, a line each."""
    lines = ["    labels,"]
    for name, value in settings.changed().items():
        objects: list[str] = []
        code = _code(name, value, objects)
        remark = f"  # handed over again: {', '.join(objects)}" if objects else ""
        lines.append(f"    {name}={code},{remark}")
    return lines


def _code(name: str, value: Any, objects: list[str]) -> str:
    """A value as Python has it; an object is a name, which is added to `objects`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value) if not isinstance(value, float) or np.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, list | tuple):
        inside = [_code(name, one, objects) for one in value]
        return (
            f"[{', '.join(inside)}]" if isinstance(value, list) else f"({', '.join(inside)}{',' * (len(inside) == 1)})"
        )
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return f"{{{', '.join(f'{key!r}: {_code(key, one, objects)}' for key, one in value.items())}}}"
    called = getattr(value, "__name__", name)
    word = called if called.isidentifier() else name
    objects.append(word if word != name else f"{word}, {plain(repr(value))[:60]}")
    return word
