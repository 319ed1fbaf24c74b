"""How to get the same numbers again: settings, versions, and the command or the calls in Python."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._validation import RandomState
from trueup.report._snippet import python_snippet
from trueup.report.words import text

if TYPE_CHECKING:
    from trueup.comparison import Comparison
    from trueup.evaluation import Evaluation

__all__ = ["reproduction_data"]

_PACKAGES = ("trueup", "numpy", "scipy", "scikit-learn", "numba", "narwhals", "jinja2")
_BY_COMMAND = (
    "This is the command that was run; on the same files and with the same versions it gives the same numbers."
)
_NO_SEED = "It was given no seed, so another run gives slightly other numbers."
_IN_PYTHON = (
    "These are the calls with the settings that an answer keeps. What it does not keep has to be given as before: a "
    "random generator, options of the sampler (n_draws, n_warmup, n_chains), and what to do about items that are "
    "missing or unknown."
)


def reproduction_data(
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    seed: RandomState,
    settings: Mapping[str, Any] | None,
    positive: int | None,
    unnamed: bool,
) -> dict[str, Any]:
    """Method, settings, versions, seed, and the command or else a snippet.

    A command line is exact: it names the files and every option. Only without one, in a report made from Python, is
    there a snippet; of a command it would lose how files were read.
    """
    first = next(iter(evaluations.values()), None)
    asked = seed
    if seed is None and first is not None:
        seed = first.seed
    given = {text(key): _plain(value) for key, value in (settings or {}).items()}
    command = given.pop("command", None)
    main: Any = first if first is not None else comparison
    return {
        "method": first.method if first is not None else "compare",
        "noise": text(main.noise),
        "target": main.target,
        "level": main.level,
        "seed": None
        if seed is None
        else seed
        if isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        else text(seed),
        "settings": given,
        "python": platform.python_version(),
        "versions": _versions(),
        "seed_words": _seed_words(seed, kept=first is not None),
        "words": _IN_PYTHON if command is None else _BY_COMMAND if seed is not None else f"{_BY_COMMAND} {_NO_SEED}",
        "command": None if command is None else text(command),
        "snippet": python_snippet(evaluations, comparison, seed=asked, positive=positive, unnamed=unnamed)
        if command is None
        else None,
    }


def _seed_words(seed: RandomState, *, kept: bool) -> str:
    if seed is not None:
        return text(seed)
    return "none: another run gives slightly other numbers" if kept else "as in the call: a comparison does not keep it"


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
