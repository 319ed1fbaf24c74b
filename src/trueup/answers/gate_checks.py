"""What gates may ask for: systems that are there, and bounds that can be met and missed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trueup._base.validation import check_number, did_you_mean, preview
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric


def candidates_among(systems: Sequence[Any], named: Hashable | None, references: Sequence[Hashable]) -> list[Any]:
    """Whom gates are about: the one who is named, or all but those they are held against; strangers are errors.

    Examples
    --------
    >>> candidates_among(["old", "new", "cheap"], None, ["old"])
    ['new', 'cheap']
    """
    known = [system for system in systems if system is not None]
    for name in [*references, *([] if named is None else [named])]:
        if name not in known:
            hint = did_you_mean(name, known) or "; name one of these"
            raise InvalidParameter(
                f"there is no system or group {name!r} to judge here, got {preview(known, most=10)}{hint}"
                if known
                else f"there are no groups to judge here, got {name!r}; name their column by ⟨by⟩",
                parameter="candidate",
            )
    if named in references and named is not None:
        raise InvalidParameter(
            f"⟨candidate⟩ must be another than the system it is held against, got {named!r} for both; name another",
            parameter="candidate",
        )
    return [system for system in systems if system not in references] if named is None else [named]


def check_bound(metric: Metric, bound: float, *, name: str) -> None:
    """Stop a bound that a metric cannot have.

    Examples
    --------
    >>> from trueup.metrics import get_metric
    >>> check_bound(get_metric("accuracy", [0, 1]), 90, name="at_least")
    Traceback (most recent call last):
    ...
    trueup.exceptions.InvalidParameter: at_least must be a value that accuracy can have, 0 to 1, got 90; name such a one
    """
    check_number(bound, name=name)
    low, high = metric.bounds
    if not low <= bound <= high:
        raise InvalidParameter(
            f"⟨{name}⟩ must be a value that {metric.name} can have, {low:g} to {high:g}, got {bound:g}; name such a "
            "one",
            parameter=name,
        )


def check_together(at_least: Mapping[str, float], at_most: Mapping[str, float]) -> None:
    """Stop bounds that no number can meet."""
    for metric in at_least.keys() & at_most.keys():
        if at_least[metric] > at_most[metric]:
            raise InvalidParameter(
                f"⟨at_least⟩ must not be above ⟨at_most⟩, got {at_least[metric]:g} and {at_most[metric]:g} for "
                f"{metric}, which no number meets; change one of them",
                parameter="at_least",
            )


def check_margin(margin: float, bounds: tuple[float, float], *, largest: float | None = None) -> None:
    """Stop a margin that allows everything, as 2 does where two points of a share are meant.

    Parameters
    ----------
    bounds : (float, float)
        Of the metric.
    largest : float, optional
        From which on everything is allowed; by default the whole range.
    """
    low, high = bounds
    if margin >= (high - low if largest is None else largest):
        raise InvalidParameter(
            f"⟨margin⟩ is in the units of the metric, which goes from {low:g} to {high:g}, got {margin:g}, which "
            "allows everything; two points of a share are 0.02",
            parameter="margin",
        )
