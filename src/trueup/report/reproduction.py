"""How to get the same numbers again: settings, versions, and the command or the calls in Python."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._base.validation import RandomState
from trueup.exceptions import TrueupError
from trueup.metrics import get_metric
from trueup.report.sentences import plain, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels


__all__ = ["python_snippet", "reproduction_data"]

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


_BY_NAME = re.compile(r"([a-z][a-z0-9-]*)( \([^()]*\))?")  # "clusters", "auto (clusters)", "glad (fitted)"


def python_snippet(
    evaluations: Mapping[str, Evaluation],
    comparison: Comparison | None,
    *,
    seed: RandomState,
    positive: int | None,
    unnamed: bool,
) -> str:
    """The calls of `evaluate` and `compare`.

    Labels and predictions are those that were handed over: a report does not know where they came from.

    Parameters
    ----------
    evaluations : mapping from name to Evaluation
    comparison : Comparison or None
    seed : int or None
        As the caller of the report gave it; by default an evaluation's own, while a comparison keeps none.
    positive : int or None
        The code of the comparison's positive class, where it is known.
    unnamed : bool
        Whether the one system has no name of its own.
    """
    lines = ["import trueup as tu", "", f"# {_handed_over(evaluations, comparison, unnamed)}"]
    calls = {name: _evaluate(evaluation, seed) for name, evaluation in evaluations.items()}
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
        lines += ["comparison = tu.compare(", "    systems,", *_compare(comparison, seed, positive), ")"]
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


def _evaluate(evaluation: Evaluation, seed: RandomState) -> list[str]:
    """The arguments of evaluate, a line each."""
    functions = {name for name, metric in evaluation.task.metrics.items() if metric.needs == "labels"}
    metrics = [_function(name) if name in functions else repr(text(name)) for name in evaluation.metrics]
    own = [plain(name) for name in evaluation.metrics if name in functions]
    remark = f"  # your function{'s' if len(own) > 1 else ''} {', '.join(own)}" if own else ""
    return [
        "    labels,",
        *_noise(evaluation.noise),
        f"    metrics=[{', '.join(metrics)}],{remark}",
        f"    method={evaluation.method!r},",
        *(["    truth=truth,  # the true classes"] if evaluation.method == "ideal" else []),
        f"    target={evaluation.target!r},",
        f"    level={evaluation.level!r},",
        *_positive(evaluation.labels, evaluation.positive),
        *_random_state(evaluation.seed if seed is None else seed),
    ]


def _compare(comparison: Comparison, seed: RandomState, positive: int | None) -> list[str]:
    """The arguments of compare, a line each."""
    name, classes = text(comparison.metric), comparison.labels.classes.tolist()
    metric = (
        f"    metric={name!r},"
        if _is_known(comparison.metric, classes)
        else f"    metric={_function(name)},  # your function {plain(name)}"
    )
    return [
        "    labels,",
        metric,
        *_noise(comparison.noise),
        f"    target={comparison.target!r},",
        f"    level={comparison.level!r},",
        *_positive(comparison.labels, positive),
        *(
            ["    # random_state as in the call: a comparison does not keep it"]
            if seed is None
            else _random_state(seed)
        ),
    ]


def _function(name: str) -> str:
    """A name that a function can have in Python."""
    return name if name.isidentifier() else "function"


def _is_known(metric: str, classes: Sequence[Any]) -> bool:
    """Whether there is a metric of this name; else it was a function."""
    try:
        return bool(get_metric(metric, classes))
    except TrueupError:
        return False


def _noise(words: str) -> list[str]:
    """The noise model by its name; one that was handed over has to be handed over again."""
    if words == "not used":
        return []
    named = _BY_NAME.fullmatch(words)
    if named is not None:
        return [f"    noise={named[1]!r},"]
    return [f"    noise=noise,  # the model that was handed over: {plain(words)[:80]}"]


def _positive(labels: Labels, code: int | None) -> list[str]:
    """The positive class, where there are two."""
    if code is None or labels.n_classes != 2:
        return []
    return [f"    positive={labels.classes.tolist()[code]!r},"]


def _random_state(seed: RandomState) -> list[str]:
    if seed is None:
        return ["    random_state=None,  # another run gives slightly other numbers"]
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return [f"    random_state={int(seed)},"]
    return ["    random_state=random_state,  # the generator that was handed over"]
