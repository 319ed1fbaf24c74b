"""Checks shared by all public functions; each failure is one sentence: what, got, do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from trueup.exceptions import InvalidParameter

RandomState = int | np.random.Generator | np.random.SeedSequence | None
_Name = TypeVar("_Name", bound=str)


def as_generator(random_state: RandomState) -> np.random.Generator:
    """One `numpy.random.Generator` from a seed, a generator (used as it is) or ``None``."""
    kinds = (int, np.integer, np.random.Generator, np.random.SeedSequence, type(None))
    if isinstance(random_state, bool) or not isinstance(random_state, kinds):
        raise InvalidParameter(
            f"random_state must be an integer, a Generator or None, got {random_state!r}; pass e.g. 0"
        )
    if isinstance(random_state, int | np.integer) and random_state < 0:
        raise InvalidParameter(f"random_state must not be negative, got {random_state}; pass e.g. 0")
    return np.random.default_rng(random_state)


def _marked(name: str) -> str:
    """The name of a parameter, marked so that each interface can spell it; other names as they are."""
    return f"`{name}`" if name.isidentifier() else name


def check_level(level: float, *, name: str = "level") -> float:
    """A probability strictly between 0 and 1."""
    return check_number(level, name=name, low=0.0, high=1.0, strict=True)


def check_number(value: float, *, name: str, low: float = -np.inf, high: float = np.inf, strict: bool = False) -> float:
    """A finite number within [low, high], or within (low, high) if `strict`."""
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else np.nan
    inside = low < number < high if strict else low <= number <= high
    if not (np.isfinite(number) and inside):
        brackets = "()" if strict else "[]"
        raise InvalidParameter(
            f"{_marked(name)} must be a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}, got {value!r}",
            parameter=name,
        )
    return number


def check_integer(value: int, *, name: str, low: int) -> int:
    """An integer that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise InvalidParameter(f"{_marked(name)} must be an integer of at least {low}, got {value!r}", parameter=name)
    return int(value)


def check_choice(value: object, choices: Collection[_Name], *, name: str) -> _Name:
    """One of the named choices; the error suggests the nearest."""
    for choice in choices:
        if value == choice:
            return choice
    listed = ", ".join(repr(c) for c in sorted(choices))
    raise InvalidParameter(
        f"{_marked(name)} must be one of {listed}, got {value!r}{did_you_mean(value, choices)}", parameter=name
    )


def check_options(
    options: Iterable[str], work: Callable[..., Any], *, name: str, taken: Collection[str] = ("random_state",)
) -> None:
    """Raise if `work` has no keyword of the name of an option; those in `taken` are not for the caller to give."""
    parameters = inspect.signature(work).parameters.values()
    given = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in taken]
    for option in options:
        if option not in given:
            listed = f"takes the options {', '.join(given)}" if given else "takes no options"
            raise InvalidParameter(
                f"{name} {listed}, got `{option}`{did_you_mean(option, given) or '; leave it out'}", parameter=option
            )


def refuse_options(options: Mapping[str, Any], taken: Collection[str] = ()) -> None:
    """Stop options that are not taken; those of version 0.2 with what to do instead."""
    for name, value in options.items():
        if name == "assume":
            refuse_assumption(name, value)
        if name in ("n_chains", "n_warmup") and name not in taken:
            raise InvalidParameter(
                f"`{name}` is for a `noise` model that is drawn by chains, got it for the plain answer, which draws "
                "none; leave it out",
            )
        if name not in taken:
            hint = did_you_mean(name, taken) or "; leave it out"
            raise InvalidParameter(f"there is no option `{name}` here, got {value!r} for it{hint}", parameter=name)


def refuse_assumption(name: str, value: object) -> NoReturn:
    """Stop what version 0.2 took to choose among three answers, and say what to do instead."""
    raise InvalidParameter(
        f"there is one plain answer since version 0.3, got `{name}={value!r}`; leave it out, and pass as `prior` what "
        '`trueup.calibrate` makes of sets of your own, or name a `noise` such as "dawid-skene" for independent errors',
        parameter=name,
    )


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """A hint such as ``; did you mean 'item'?``, or nothing."""
    written = {str(choice).casefold(): str(choice) for choice in choices}
    near = get_close_matches(str(value).casefold(), written, n=1)
    return f"; did you mean {written[near[0]]!r}?" if near else ""


def check_distribution(
    values: npt.ArrayLike, *, name: str, n: int | None = None, positive: bool = False
) -> npt.NDArray[np.float64]:
    """Probabilities along the last axis: not negative, summing to one, `n` of them."""
    array = np.array(values, dtype=float, ndmin=1)
    if n is not None and array.shape[-1] != n:
        raise InvalidParameter(f"{name} must have {n} probabilities, one for each class, got {array.shape[-1]}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InvalidParameter(f"{name} must hold probabilities, got {preview(array.ravel())}")
    if positive and (array == 0).any():
        raise InvalidParameter(
            f"{name} must be positive for every class, got {preview(array.ravel())}; "
            "a class that cannot occur should be left out of the classes"
        )
    total = array.sum(axis=-1)
    if not np.allclose(total, 1.0, atol=1e-6):
        worst = float(np.asarray(total).ravel()[np.argmax(np.abs(np.asarray(total).ravel() - 1))])
        raise InvalidParameter(f"{name} must sum to 1, got a sum of {worst:.6g}; divide by the sum if that is meant")
    return np.asarray(array / total[..., None])


def check_numbers(values: Any, *, name: str) -> npt.NDArray[np.float64]:
    """Finite numbers as an array of their own."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"{_marked(name)} must hold numbers in rows of one length, got {values!r:.60}", parameter=name
        ) from None
    if not np.isfinite(array).all():
        raise InvalidParameter(
            f"{_marked(name)} must hold finite numbers, got {preview(array[~np.isfinite(array)])}", parameter=name
        )
    return array


def check_prior(
    prior: npt.ArrayLike | None, *, n_classes: int | None = None, positive: bool = False
) -> npt.NDArray[np.float64]:
    """P(class) of at least two classes; even by default, over two classes if their number is not known."""
    if prior is None:
        return np.full(n_classes or 2, 1 / (n_classes or 2))
    array = check_numbers(prior, name="prior")
    if array.ndim != 1 or len(array) < 2:
        raise InvalidParameter(
            f"`prior` must be a probability for each of at least two classes, got {prior!r:.60}; pass e.g. [0.6, 0.4]",
        )
    return check_distribution(array, name="prior", n=n_classes, positive=positive)


def preview(values: Sequence[Any] | npt.NDArray[Any], *, most: int = 3) -> str:
    """The first few values, for an error message."""
    shown = [v.item() if isinstance(v, np.generic) else v for v in list(values[:most])]
    more = ", …" if len(values) > most else ""
    return "[" + ", ".join(map(repr, shown)) + more + "]"


def kind_of(value: object) -> str:
    """The family of names a value belongs to; names of one column must share it."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, int | float | np.number):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def kind_hint(got: object, given: Sequence[Any] | npt.NDArray[Any], *, what: str) -> str:
    """What to do where names do not match because their types differ (1 and "1"), or nothing."""
    if not len(given):
        return ""
    got, sample = (v.item() if isinstance(v, np.generic) else v for v in (got, given[0]))
    mine, theirs = kind_of(got), kind_of(sample)
    if mine == theirs:
        return ""
    how = {"number": "int(…)", "text": "str(…)", "bool": "bool(…)"}.get(theirs, f"{theirs}(…)")
    return (
        f"; the {what} of the labels are of type {theirs} (e.g. {sample!r}) and these of type {mine} (e.g. "
        f"{got!r}): name them alike, in Python e.g. with {how}"
    )


def seed_of(random_state: RandomState) -> int:
    """A number that JSON can hold: the seed itself, or one that is drawn."""
    rng = as_generator(random_state)
    return int(random_state) if isinstance(random_state, int | np.integer) else int(rng.integers(2**31))


def numbers_of(labels: Sequence[Any]) -> tuple[float, ...] | None:
    """The finite numbers that all classes are, also where they are written as text; None where some is none."""
    if any(isinstance(label, bool | np.bool_) for label in labels):
        return None
    try:
        values = tuple(float(label) for label in labels)
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None
