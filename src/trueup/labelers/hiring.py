"""The cheapest set of labelers that tells enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import RandomState, check_integer, check_number, preview
from trueup.data.frames import make_frame
from trueup.exceptions import InvalidParameter
from trueup.labelers.channel import Channel, Noise, Outcomes, channel_of, list_outcomes
from trueup.labelers.information import Information, check_model_error, information_of, item_variance, width_of

Counts = tuple[int, ...]  # how many of each kind are hired
Measure = Callable[[Counts], float]
_MOST_SETS = 2**14  # looked through exactly
_TIE = 1e-9


@dataclass(frozen=True)
class LabelerSet:
    """Labelers to hire.

    Attributes
    ----------
    labelers : tuple. Their names; a name occurs as often as the labeler is to vote.
    prices : tuple of float. The price of a vote of each.
    information : Information. What they tell together of an item.
    width : float or None. The expected width of the interval, where one was asked for.
    exact : bool. Whether no cheaper set exists; else it was found by a greedy search with local improvements.
    """

    labelers: tuple[Hashable, ...]
    prices: tuple[float, ...]
    information: Information
    width: float | None
    exact: bool

    @property
    def price(self) -> float:
        """What an item costs."""
        return float(sum(self.prices))

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a labeler: labeler, price."""
        return make_frame({"labeler": list(self.labelers), "price": list(self.prices)}, backend=backend)

    def __repr__(self) -> str:
        reached = f"{self.information.bits:.4f} bits"
        if self.width is not None:
            reached += f", width {self.width:.4f}"
        how = "the cheapest" if self.exact else "found greedily"
        names = [repr(name) if n == 1 else f"{n} × {name!r}" for name, n in Counter(self.labelers).items()]
        return f"LabelerSet({', '.join(names)}; price {self.price:g} an item, {reached}, {how})"


def cheapest_set(
    noise: Noise,
    prices: npt.ArrayLike | Mapping[Any, float],
    *,
    information: float | None = None,
    width: float | None = None,
    n_items: int | None = None,
    model_error: float | None = None,
    level: float = 0.95,
    copies: int = 1,
    prior: npt.ArrayLike | None = None,
    random_state: RandomState = 0,
) -> LabelerSet:
    r"""The cheapest labelers whose votes on every item reach a target.

    .. math::

        \min_{S} \sum_{t \in S} \text{price}_t \quad \text{such that} \quad I(Z_S; Y) \ge \text{information}
        \quad \text{or} \quad \text{width}(S) \le \text{width}

    Labelers of the same matrix and price are exchangeable, so sets are counts of kinds. Up to 16384 of them are all
    looked through, the dear ones first: what a set does not reach, no part of it does. Beyond that labelers are added
    by gain per price, and then dropped and exchanged while that is cheaper.

    Parameters
    ----------
    noise : NoiseModel or array of shape (n_labelers, n_classes, n_answers)
    prices : float, array of shape (n_labelers,) or mapping from labeler. The price of a vote.
    information : float, optional. Bits that are wanted of each item.
    width : float, optional
        In its place: the width that the interval of a model's accuracy may have, from `n_items` items and a model that
        errs with about `model_error`; see `expected_width` for what it assumes.
    level : float. Of that interval.
    copies : int
        How often a labeler can be asked about one item, if the matrix stands for a kind of labelers: 3 for "up to three
        of each kind".
    prior : array of shape (n_classes,), optional. P(class) where `noise` is an array.
    random_state : int, Generator or None. Where the information must be drawn.
    """
    channel = channel_of(noise, prior=prior)
    price = _price_of_each(prices, channel)
    target = _target(channel, information, width, n_items, model_error, level)
    kinds = _Kinds.of(channel, price, check_integer(copies, name="copies", low=1))
    measure = _measure(channel, kinds, target.reward, random_state)
    if not target.met(measure(kinds.available)):
        raise InvalidParameter(
            f"the target cannot be reached: all labelers together give {target.words(measure(kinds.available))}, "
            f"asked was {target.words(target.least)}; ask for less, or find more labelers"
        )
    counts = _improved(_greedy(kinds, measure, target.met), kinds, measure, target.met)
    exact = kinds.n_sets <= _MOST_SETS
    if exact:
        counts = _searched(counts, kinds, measure, target.met)
    hired = channel.at(kinds.positions(counts))
    outcomes = list_outcomes(hired, random_state=random_state)
    return LabelerSet(
        hired.names,
        tuple(float(price[k]) for k in kinds.positions(counts)),
        information_of(hired, outcomes),
        None if information is not None else _width(measure(counts)),
        exact and outcomes.method != "monte-carlo",
    )


def _price_of_each(prices: npt.ArrayLike | Mapping[Any, float], channel: Channel) -> Floats:
    names = channel.names
    if isinstance(prices, Mapping):
        missing = [name for name in names if name not in prices]
        if missing:
            raise InvalidParameter(f"prices must name every labeler, got none for {preview(missing)}; add it")
        prices = [prices[name] for name in names]
    try:
        each = np.asarray(prices, dtype=float)
    except (TypeError, ValueError):
        each = np.array([np.nan])
    each = np.full(len(names), each) if each.ndim == 0 else each
    if each.shape != (len(names),):
        raise InvalidParameter(f"prices must be one for each of {len(names)} labelers, got shape {each.shape}")
    if not (np.isfinite(each) & (each > 0)).all():
        raise InvalidParameter(f"prices must be positive numbers, got {preview(each)}")
    return each


@dataclass(frozen=True)
class _Target:
    """What must be reached, as a reward that grows with every vote: bits, or 1/width²."""

    least: float
    reward: Callable[[Channel, Outcomes], float]
    unit: str

    def met(self, reward: float) -> bool:
        return reward >= self.least * (1 - _TIE)

    def words(self, reward: float) -> str:
        return f"{reward:.4g} bits" if self.unit == "bits" else f"a width of {_width(reward):.4g}"


def _width(reward: float) -> float:
    return float(1 / np.sqrt(reward)) if reward > 0 else float("inf")


def _target(
    channel: Channel,
    information: float | None,
    width: float | None,
    n_items: int | None,
    model_error: float | None,
    level: float,
) -> _Target:
    if (information is None) == (width is None):
        got = "both" if width is not None else "neither"
        raise InvalidParameter(f"information or width must be given, got {got}; pass e.g. `information=0.8`")
    if information is not None:
        bits = check_number(float(information), name="information", low=0.0, strict=True)
        return _Target(bits, lambda panel, outcomes: information_of(panel, outcomes).bits, "bits")
    if n_items is None or model_error is None:
        raise InvalidParameter("a width needs n_items and model_error, got not both; pass the model's rough error")
    assert width is not None
    most = check_number(width, name="width", low=0.0, strict=True)
    n = check_integer(n_items, name="n_items", low=1)
    rate = check_model_error(model_error, channel.state_class.shape[1])
    return _Target(most**-2, lambda _, outcomes: width_of(item_variance(outcomes, rate), n, level) ** -2, "width")


@dataclass(frozen=True)
class _Kinds:
    """Labelers of the same matrix and price, who need not be told apart."""

    members: tuple[tuple[int, ...], ...]  # positions of the labelers of each kind, repeated by `copies`
    prices: Floats

    @classmethod
    def of(cls, channel: Channel, price: Floats, copies: int) -> _Kinds:
        key = np.column_stack([channel.matrices.reshape(len(price), -1), price])
        _, first, kind = np.unique(key, axis=0, return_index=True, return_inverse=True)
        members = tuple(
            tuple(int(t) for _ in range(copies) for t in np.flatnonzero(kind.ravel() == k)) for k in range(len(first))
        )
        return cls(members, price[first])

    @property
    def available(self) -> Counts:
        return tuple(len(m) for m in self.members)

    @property
    def n_sets(self) -> int:
        return prod(n + 1 for n in self.available)

    def positions(self, counts: Counts) -> list[int]:
        return sorted(t for m, n in zip(self.members, counts, strict=True) for t in m[:n])

    def price(self, counts: Counts) -> float:
        return float(np.dot(self.prices, counts))


def _measure(
    channel: Channel, kinds: _Kinds, reward: Callable[[Channel, Outcomes], float], random_state: RandomState
) -> Measure:
    """The reward of a set, remembered."""

    @cache
    def measure(counts: Counts) -> float:
        if not any(counts):
            return 0.0
        panel = channel.at(kinds.positions(counts))
        return reward(panel, list_outcomes(panel, random_state=random_state))

    return measure


def _changed(counts: Counts, kind: int, by: int) -> Counts:
    return (*counts[:kind], counts[kind] + by, *counts[kind + 1 :])


def _greedy(kinds: _Kinds, measure: Measure, met: Callable[[float], bool]) -> Counts:
    """Add the labeler with the most gain per price until the target is met."""
    counts: Counts = (0,) * len(kinds.members)
    while not met(measure(counts)):
        now, paid = measure(counts), kinds.price(counts)
        more = [_changed(counts, k, 1) for k in range(len(counts)) if counts[k] < kinds.available[k]]
        counts = max(((measure(m) - now) / (kinds.price(m) - paid), m) for m in more)[1]
    return counts


def _improved(counts: Counts, kinds: _Kinds, measure: Measure, met: Callable[[float], bool]) -> Counts:
    """Drop a labeler, or exchange one for a cheaper one, while the target stays met."""
    while True:
        less = [_changed(counts, k, -1) for k in range(len(counts)) if counts[k]]
        other = [_changed(c, k, 1) for c in less for k in range(len(counts)) if c[k] < kinds.available[k]]
        cheaper = sorted((kinds.price(c), c) for c in {*less, *other} if kinds.price(c) < kinds.price(counts) - _TIE)
        better = next((c for _, c in cheaper if met(measure(c))), None)
        if better is None:
            return counts
        counts = better


def _searched(best: Counts, kinds: _Kinds, measure: Measure, met: Callable[[float], bool]) -> Counts:
    """The cheapest of all sets, the most telling one of those that cost the same."""
    shape = tuple(n + 1 for n in kinds.available)
    sets = np.indices(shape).reshape(len(shape), -1).T
    price = sets @ kinds.prices
    ruled_out = np.zeros(shape, dtype=bool)
    for k in np.argsort(-price, kind="stable"):
        if price[k] > kinds.price(best) + _TIE:
            continue
        counts = tuple(int(c) for c in sets[k])
        if ruled_out[counts] or not any(counts):
            continue
        if not met(measure(counts)):
            ruled_out[tuple(slice(0, c + 1) for c in counts)] = True
        elif price[k] < kinds.price(best) - _TIE or measure(counts) > measure(best):
            best = counts
    return best
