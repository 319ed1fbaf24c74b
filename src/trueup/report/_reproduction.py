"""How to get the same numbers again: settings, versions and a few lines of Python."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._validation import RandomState
from trueup.report._words import text

if TYPE_CHECKING:
    from trueup.comparison import Comparison
    from trueup.evaluation import Evaluation

__all__ = ["reproduction_data"]

_PACKAGES = ("trueup", "numpy", "scipy", "scikit-learn", "numba", "narwhals", "jinja2")
_VOTES = ("votes", "labels", "votes_file", "labels_file")
_PREDICTIONS = ("predictions", "systems", "predictions_file")


def reproduction_data(
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    seed: RandomState,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Method, settings, versions, seed and a snippet."""
    first = next(iter(evaluations.values()), None)
    if seed is None and first is not None:
        seed = first.seed
    given = {text(key): _plain(value) for key, value in (settings or {}).items()}
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
        "snippet": _snippet(first, comparison, seed, given),
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


def _file(settings: Mapping[str, Any], keys: tuple[str, ...], default: str) -> str:
    for key in keys:
        value = settings.get(key)
        if isinstance(value, Mapping):
            value = value.get("name", value.get("path", value.get("file")))
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return default


def _snippet(
    first: Evaluation | None, comparison: Comparison | None, seed: RandomState, settings: Mapping[str, Any]
) -> str:
    votes, predictions = _file(settings, _VOTES, "votes.csv"), _file(settings, _PREDICTIONS, "predictions.csv")
    lines = [
        "import trueup as tu",
        "",
        f"labels = tu.read_labels({votes!r})",
        f"predictions = tu.read_predictions({predictions!r})",
    ]
    random_state = int(seed) if isinstance(seed, int | np.integer) else 0
    if first is not None:
        named = [name for name in first.metrics if name not in first.functions]
        noise = "" if first.noise == "not used" else f"    noise={_noise(first.noise)},\n"
        system = "" if comparison is None else "[predictions.systems[0]]"
        lines += [
            "evaluation = tu.evaluate(",
            f"    predictions{system},",
            "    labels,",
            *noise.splitlines(),
            f"    metrics={[text(name) for name in named]!r},",
            f"    method={first.method!r},",
            f"    target={first.target!r},",
            f"    level={first.level!r},",
            f"    random_state={random_state},",
            ")",
            "print(evaluation)",
        ]
    if comparison is not None:
        lines += [
            "comparison = tu.compare(",
            "    predictions,",
            "    labels,",
            f"    metric={text(comparison.metric)!r},",
            f"    noise={_noise(comparison.noise)},",
            f"    target={comparison.target!r},",
            f"    level={comparison.level!r},",
            f"    random_state={random_state},",
            ")",
            "print(comparison)",
        ]
    return "\n".join(lines)


def _noise(words: str) -> str:
    """The name of a noise model; a model that was handed over is described, and has to be handed over again."""
    name = words.split(" ")[0].strip(",;:")
    return repr(text(name)) if name.replace("-", "").isalnum() and name.islower() else f"...,  # {text(words)[:80]}"
