"""How to spend a labeling budget: how many items, how many votes on each, how many vetted by an expert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from math import comb, prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from trueup._base.types import Floats, Positions
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_level,
    check_number,
    check_prior,
    preview,
)
from trueup.data.encoding import Vocabulary, is_null
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.pairs import Contest, Pairs
from trueup.data.slices import values_of
from trueup.exceptions import InvalidParameter
from trueup.labelers.information import (
    Channel,
    Information,
    Noise,
    Outcomes,
    channel_of,
    check_model_error,
    explained_share,
    information_of,
    item_variance,
    learned_variance,
    list_outcomes,
    votes_channel,
    width_of,
)
from trueup.posteriors.estimate import new_axes

DesignKind = Literal["votes", "vetted", "both"]
KINDS: tuple[DesignKind, ...] = ("votes", "vetted", "both")
_COLUMNS = ("kind", "n_items", "votes_per_item", "n_vettings", "half_width", "cost")
_LEAST_VETTED = 30  # below that neither the regression on the votes nor a normal interval can be relied on
_MOST_COUNTS = 20_000  # outcomes of the votes on an item that are worth looking through
_LEAST_ERRORS = 5.0  # of the model among the vetted items, for a normal interval to be more than rough
_COLOURS = {"votes": "tab:blue", "vetted": "tab:orange", "both": "tab:green"}


@dataclass(frozen=True)
class Design:
    """One way to spend a budget."""

    kind: DesignKind
    n_items: int  # items with a prediction that are looked at, by the crowd or by the expert
    votes_per_item: int
    n_vettings: int  # of the items, those that the expert looks at
    half_width: float  # expected half-width of the interval of the model's accuracy
    cost: float


@dataclass(frozen=True)
class Frontier:
    """The best design of each kind, at each of many budgets."""

    budgets: tuple[float, ...]
    designs: tuple[Design, ...] = field(repr=False)  # aligned with `budgets`, which repeat for each kind

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a budget and kind: budget, kind, n_items, votes_per_item, n_vettings, half_width, cost, best."""
        least = self._narrowest()
        pairs = zip(self.budgets, self.designs, strict=True)
        best = [design.half_width == least[budget].half_width for budget, design in pairs]
        return make_frame({"budget": list(self.budgets), **_columns(self.designs), "best": best}, backend=backend)

    def best(self) -> tuple[Design, ...]:
        """The best design at each budget, from the least budget to the largest."""
        return tuple(design for _, design in sorted(self._narrowest().items()))

    def _narrowest(self) -> dict[float, Design]:
        """The first of the narrowest designs at each budget."""
        narrowest: dict[float, Design] = {}
        for budget, design in zip(self.budgets, self.designs, strict=True):
            if design.half_width < narrowest.get(budget, _NOTHING).half_width:
                narrowest[budget] = design
        return narrowest


_NOTHING = Design("votes", 0, 0, 0, np.inf, 0.0)


@dataclass(frozen=True, repr=False)
class Plan(Design):
    """What to buy, and what else could be bought."""

    budget: float
    level: float
    alternatives: tuple[Design, ...]
    frontier: Frontier  # what other budgets would buy
    notes: tuple[str, ...]  # what the numbers rest on

    @property
    def design(self) -> Design:
        """What is recommended."""
        return self.alternatives[0]

    def to_frame(self, *, backend: str | None = None) -> Any:
        """The alternatives at this budget, one row each, the narrowest first."""
        return make_frame(_columns(self.alternatives), backend=backend)

    def plot(self, ax: Any = None) -> Any:
        """Half-width against budget, a line for each kind of design; returns the Axes."""
        ax = new_axes(ax, purpose="Plan.plot()")
        pairs = list(zip(self.frontier.budgets, self.frontier.designs, strict=True))
        for kind in KINDS:
            points = [(budget, design.half_width) for budget, design in pairs if design.kind == kind]
            if points:
                ax.loglog(*zip(*points, strict=True), color=_COLOURS[kind], label=kind)
        ax.plot(self.budget, self.half_width, "o", color="black", label="recommended")
        ax.set_xlabel("budget")
        ax.set_ylabel(f"half-width of the {self.level:.0%} interval of accuracy")
        ax.legend(frameon=False)
        ax.grid(alpha=0.3, which="both")
        return ax

    def __repr__(self) -> str:
        crowd = f" × {self.votes_per_item} votes" if self.votes_per_item else ""
        expert = f", {self.n_vettings:,} checked" if self.n_vettings else ""
        worth = f"accuracy ± {self.half_width:.4f} at {self.level:.0%}, cost {self.cost:,.6g}"
        lines = [f"Plan({self.n_items:,} items{crowd}{expert}; {worth})"]
        return "\n".join(lines + [f"  ! {note}" for note in self.notes])


def plan(
    *,
    budget: float,
    labeler_accuracy: float | Sequence[float],
    error: float,
    vote_price: float | None = None,
    expert_price: float | None = None,
    item_price: float = 0.0,
    n_classes: int = 2,
    prior: npt.ArrayLike | None = None,
    correlation: float = 0.0,
    noise_known: bool = False,
    max_items: int | None = None,
    max_votes: int = 15,
    designs: Sequence[DesignKind] | None = None,
    level: float = 0.95,
) -> Plan:
    """How many items, votes on each and vettings give the narrowest interval of a model's accuracy.

    Three kinds of design are compared, for every number of votes. With e the model's error, z the normal quantile:

    - *votes*: n items, k votes on each, nobody vets. The half-width is z √(v_k/n), v_k the inverse Fisher information
      of an item about e. It rests on errors of labelers and model that are independent given the class. Unless the
      noise is known, the labelers' error and the prior are learned from the same votes, which takes two votes an item.
    - *vetted*: an expert looks at m items, who is always right. The half-width is z √(e(1 − e)/m).
    - *both*: k votes on n items, m of them vetted at random. With ρ² the share of variance of the model's errors that
      the votes explain, the half-width is z √(e(1 − e)((1 − ρ²)/m + ρ²/n)), whether or not errors are independent.

    Lam and Stork (2003), "Evaluating classifiers by means of test data with noisy labels", IJCAI (the value of a noisy
    label); Angelopoulos, Duchi and Zrnic (2023), "PPI++: Efficient prediction-powered inference".

    Parameters
    ----------
    labeler_accuracy : float or sequence. Rough accuracy of a labeler; of several their mean.
    error : float. The model's rough error.
    vote_price, expert_price : float, optional. Of a vote and of a vetting; what has no price cannot be bought.
    item_price : float. Of an item itself, beyond votes and vettings: collecting it, running the model on it.
    prior : array of shape (n_classes,), optional. P(class); even by default.
    correlation : float
        Of the errors of two votes on an item given its class, e.g. ``tu.noise.effective_labelers(labels).correlation``.
        Above 0 "votes" is not offered: the mean of labelers who err together is wrong, however many they are.
    noise_known : bool. Whether the labelers' error is known from elsewhere.
    max_items : int, optional. The items there are; without it there are as many as can be paid for.
    max_votes : int. The most votes on an item.
    designs : sequence of {"votes", "vetted", "both"}, optional. The kinds to choose from; all by default.
    level : float. Of the interval.
    """
    vote, expert = (
        None if price is None else check_number(price, name=name, low=0.0, strict=True)
        for name, price in (("vote_price", vote_price), ("expert_price", expert_price))
    )
    setting = _Setting(
        vote_price=vote,
        expert_price=expert,
        item_price=check_number(item_price, name="item_price", low=0.0),
        labeler_error=_labeler_error(labeler_accuracy, n_classes),
        error=check_model_error(error, check_integer(n_classes, name="n_classes", low=2)),
        prior=check_prior(prior, n_classes=n_classes, positive=True),
        correlation=check_number(correlation, name="correlation", low=0.0, high=1.0),
        noise_known=bool(noise_known),
        max_items=np.inf if max_items is None else check_integer(max_items, name="max_items", low=1),
        z=float(ndtri((1 + check_level(level)) / 2)),
    )
    if correlation == 1:
        raise InvalidParameter("correlation must be below 1, got 1; labelers who always agree are one labeler")
    money = check_number(budget, name="budget", low=0.0, strict=True)
    asked = KINDS if designs is None else tuple(check_choice(kind, KINDS, name="designs") for kind in designs)
    kinds = [kind for kind in KINDS if kind in asked and setting.can_buy(kind)]
    if not kinds:
        raise InvalidParameter(
            f"none of the designs {list(asked)} can be bought with `vote_price={vote}`, `expert_price={expert}`"
            f" and correlation {correlation:g}; give the prices it needs"
        )
    candidates = setting.candidates(kinds, check_integer(max_votes, name="max_votes", low=1))
    affordable = setting.affordable(candidates, money)
    if not affordable:
        raise InvalidParameter(
            f"budget must pay for at least {_LEAST_VETTED} items of one design, got {money:g} at these prices; raise it"
        )
    frontier = [
        (float(other), best)
        for other in money * np.geomspace(0.1, 10, 41)
        for kind in kinds
        for best in setting.affordable([c for c in candidates if c[0] == kind], float(other))[:1]
    ]
    return Plan(
        **asdict(affordable[0]),
        budget=money,
        level=level,
        alternatives=tuple(affordable),
        frontier=Frontier(*map(tuple, zip(*frontier, strict=True))),
        notes=setting.notes(affordable[0], money),
    )


def _columns(designs: Sequence[Design]) -> dict[str, list[Any]]:
    return {name: [getattr(design, name) for design in designs] for name in _COLUMNS}


def _labeler_error(accuracy: float | Sequence[float], n_classes: int) -> float:
    """The mean error of labelers, below that of guesses."""
    each = [accuracy] if isinstance(accuracy, int | float | np.number) else list(accuracy)
    if not each:
        raise InvalidParameter("labeler_accuracy must be one number or several, got none")
    mean = float(np.mean([check_number(a, name="labeler_accuracy", low=0.0, high=1.0) for a in each]))
    if mean <= 1 / check_integer(n_classes, name="n_classes", low=2):
        raise InvalidParameter(f"labeler_accuracy must be above {1 / n_classes:.3g}, that of guesses, got {mean:.3g}")
    return 1 - mean


# A kind of design, a number of votes, and v_k for votes or ρ² for both; see `plan`.
_Candidate = tuple[DesignKind, int, float]


@dataclass(frozen=True, eq=False)
class _Setting:
    """The checked parameters of a plan, and what they let be bought."""

    vote_price: float | None
    expert_price: float | None
    item_price: float
    labeler_error: float
    error: float
    prior: Floats
    correlation: float
    noise_known: bool
    max_items: float
    z: float

    def can_buy(self, kind: DesignKind) -> bool:
        """Whether a kind of design has its prices, and labelers who err independently if votes alone count."""
        has_votes, has_expert = self.vote_price is not None, self.expert_price is not None
        return {"votes": has_votes and self.correlation == 0, "vetted": has_expert, "both": has_votes and has_expert}[
            kind
        ]

    def candidates(self, kinds: Sequence[DesignKind], max_votes: int) -> list[_Candidate]:
        """All kinds with all numbers of votes up to `max_votes`."""
        candidates: list[_Candidate] = [("vetted", 0, 1.0)] if "vetted" in kinds else []
        for k in range(1, max_votes + 1) if {"votes", "both"} & set(kinds) else ():
            if comb(k + len(self.prior) - 1, k) > _MOST_COUNTS:
                break
            outcomes = list_outcomes(votes_channel(k, self.labeler_error, self.prior, self.correlation))
            if "votes" in kinds:
                # A rate of 0 lies at the edge, where there is no Fisher information; a tiny one is as good.
                rate = max(self.labeler_error, 1e-6)
                variance = (
                    item_variance(outcomes, self.error)
                    if self.noise_known
                    else learned_variance(n_votes=k, labeler_error=rate, error=self.error, prior=self.prior)
                )
                candidates += [("votes", k, variance)] if np.isfinite(variance) else []
            if "both" in kinds:
                candidates.append(("both", k, explained_share(outcomes, self.error)))
        return candidates

    def affordable(self, candidates: list[_Candidate], budget: float) -> list[Design]:
        """The narrowest designs of candidates that the budget pays for, the narrowest first, the cheaper of equals."""
        designs = [design for candidate in candidates if (design := self._design(*candidate, budget))]
        return sorted(designs, key=lambda design: (design.half_width, design.cost))

    def _design(self, kind: DesignKind, n_votes: int, factor: float, budget: float) -> Design | None:
        """The narrowest such design that the budget pays for, or None."""
        each = self.item_price + n_votes * (self.vote_price or 0.0)
        vetting = 0.0 if kind == "votes" else self.expert_price or 0.0
        spread = self.error * (1 - self.error)
        most = min(np.floor(budget / (each + vetting) + 1e-9), self.max_items)  # with all of them vetted
        if most < _LEAST_VETTED:
            return None
        n: Any = np.array([most])
        m: Any = np.array([0 if kind == "votes" else most])
        if kind == "both":
            m = np.unique(np.linspace(_LEAST_VETTED, int(most), 4001).astype(np.int64))
            n = np.minimum(np.floor((budget - m * vetting) / each + 1e-9), self.max_items)
            variance = spread * ((1 - factor) / m + factor / n)
        else:
            variance = factor / n if kind == "votes" else spread / m
        k = int(np.argmin(variance))
        half_width, cost = self.z * np.sqrt(variance[k]), n[k] * each + m[k] * vetting
        return Design(kind, int(n[k]), n_votes, int(m[k]), float(half_width), float(cost))

    def notes(self, design: Design, budget: float) -> tuple[str, ...]:
        """What the numbers of a design rest on."""
        notes = []
        n_errors = design.n_vettings * self.error
        if design.kind == "votes":
            notes.append(
                "Votes alone: the interval holds only if labelers and model err independently given the class; "
                'check some items (`designs=["both"]`) where that is in doubt.'
            )
        elif n_errors < _LEAST_ERRORS:
            notes.append(
                f"Only about {n_errors:.1f} errors of the model will be seen among the checked items, so the true "
                "interval will be lopsided and its width rough."
            )
        if design.n_items >= self.max_items and design.cost < 0.99 * budget:
            notes.append("All items there are have been used; what is left of the budget buys nothing more.")
        return tuple(notes)


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
    """The cheapest labelers whose votes on every item reach a target.

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
    price = _price_of_each(prices, channel.names)
    least, reward, words = _target(information, width, n_items, model_error, level, channel.state_class.shape[1])
    search = _Search(channel, price, check_integer(copies, name="copies", low=1), least, reward, random_state)
    most = search.measure(search.available)
    if not search.is_met(search.available):
        raise InvalidParameter(
            f"the target cannot be reached: all labelers together give {words(most)}, asked was {words(least)}; ask "
            "for less, or find more labelers"
        )
    counts = search.improved(search.greedy())
    exact = prod(n + 1 for n in search.available) <= _MOST_SETS
    if exact:
        counts = search.cheapest(counts)
    positions = search.positions(counts)
    hired = channel.at(positions)
    outcomes = list_outcomes(hired, random_state=random_state)
    return LabelerSet(
        hired.names,
        tuple(float(price[k]) for k in positions),
        information_of(hired, outcomes),
        None if information is not None else _width(search.measure(counts)),
        exact and outcomes.method != "monte-carlo",
    )


def _price_of_each(prices: npt.ArrayLike | Mapping[Any, float], names: Sequence[Hashable]) -> Floats:
    """The price of a vote of each labeler."""
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


def _width(reward: float) -> float:
    return float(1 / np.sqrt(reward)) if reward > 0 else float("inf")


Reward = Callable[[Channel, Outcomes], float]  # what votes give: bits, or 1/width², which grow with every vote


def _target(
    information: float | None,
    width: float | None,
    n_items: int | None,
    model_error: float | None,
    level: float,
    n_classes: int,
) -> tuple[float, Reward, Callable[[float], str]]:
    """The least reward that is wanted, the reward of a set, and a reward in words."""
    if (information is None) == (width is None):
        got = "both" if width is not None else "neither"
        raise InvalidParameter(f"information or width must be given, got {got}; pass e.g. `information=0.8`")
    if information is not None:
        bits = check_number(float(information), name="information", low=0.0, strict=True)
        return bits, lambda panel, outcomes: information_of(panel, outcomes).bits, lambda reward: f"{reward:.4g} bits"
    if n_items is None or model_error is None or width is None:
        raise InvalidParameter("a width needs n_items and model_error, got not both; pass the model's rough error")
    most = check_number(width, name="width", low=0.0, strict=True)
    n, rate = check_integer(n_items, name="n_items", low=1), check_model_error(model_error, n_classes)
    return (
        most**-2,
        lambda _, outcomes: width_of(item_variance(outcomes, rate), n, level) ** -2,
        lambda reward: f"a width of {_width(reward):.4g}",
    )


Counts = tuple[int, ...]  # how many labelers of each kind are hired


class _Search:
    """A search among counts of kinds of labelers: those of the same matrix and price."""

    def __init__(
        self, channel: Channel, price: Floats, copies: int, least: float, reward: Reward, random_state: RandomState
    ) -> None:
        key = np.column_stack([channel.matrices.reshape(len(price), -1), price])
        _, first, kind = np.unique(key, axis=0, return_index=True, return_inverse=True)
        self._members = [np.tile(np.flatnonzero(kind.ravel() == k), copies).tolist() for k in range(len(first))]
        self._prices, self._least = price[first], least
        self.available: Counts = tuple(map(len, self._members))

        @cache
        def measure(counts: Counts) -> float:
            """The reward of a set, remembered."""
            if not any(counts):
                return 0.0
            panel = channel.at(self.positions(counts))
            return reward(panel, list_outcomes(panel, random_state=random_state))

        self.measure = measure

    def positions(self, counts: Counts) -> list[int]:
        """The labelers of a set."""
        return sorted(t for members, n in zip(self._members, counts, strict=True) for t in members[:n])

    def is_met(self, counts: Counts) -> bool:
        """Whether a set reaches the target."""
        return self.measure(counts) >= self._least * (1 - _TIE)

    def _price(self, counts: Counts) -> float:
        return float(np.dot(self._prices, counts))

    def _with_one_more(self, counts: Counts) -> list[Counts]:
        """The sets with one more labeler of some kind."""
        kinds = [k for k, n in enumerate(counts) if n < self.available[k]]
        return [(*counts[:k], counts[k] + 1, *counts[k + 1 :]) for k in kinds]

    def greedy(self) -> Counts:
        """Add the labeler with the most gain per price until the target is met."""
        counts: Counts = (0,) * len(self.available)
        while not self.is_met(counts):
            now, paid = self.measure(counts), self._price(counts)
            more = self._with_one_more(counts)
            counts = max(((self.measure(c) - now) / (self._price(c) - paid), c) for c in more)[1]
        return counts

    def improved(self, counts: Counts) -> Counts:
        """Drop a labeler, or exchange one for a cheaper one, while the target stays met."""
        while True:
            less = [(*counts[:k], n - 1, *counts[k + 1 :]) for k, n in enumerate(counts) if n]
            others = {*less, *(other for c in less for other in self._with_one_more(c))}
            cheaper = sorted((self._price(c), c) for c in others if self._price(c) < self._price(counts) - _TIE)
            better = next((c for _, c in cheaper if self.is_met(c)), None)
            if better is None:
                return counts
            counts = better

    def cheapest(self, best: Counts) -> Counts:
        """The cheapest of all sets, and of those that cost the same the one with the most reward."""
        shape = tuple(n + 1 for n in self.available)
        sets = np.indices(shape).reshape(len(shape), -1).T
        price = sets @ self._prices
        ruled_out = np.zeros(shape, dtype=bool)
        for k in np.argsort(-price, kind="stable"):
            counts = tuple(sets[k].tolist())
            if price[k] > self._price(best) + _TIE or ruled_out[counts] or not any(counts):
                continue
            if not self.is_met(counts):
                ruled_out[tuple(slice(0, c + 1) for c in counts)] = True
            elif price[k] < self._price(best) - _TIE or self.measure(counts) > self.measure(best):
                best = counts
        return best


# ------------------ Which items to check so that they stand for all: a random sample, with the chance of each item

Allocation = Literal["equal", "proportional"]
ALLOCATIONS: tuple[Allocation, ...] = ("equal", "proportional")


@dataclass(frozen=True, eq=False)
class Sample:
    """Items to vet, drawn at random, in the order in which they were drawn.

    Attributes
    ----------
    chances : float array. The chance of each to be drawn: its inclusion probability.
    strata : list or None. The stratum of each item of a stratified sample.
    known : dict. The truths of those of the items that are gold already.
    """

    items: Vocabulary = field(repr=False)
    chances: Floats = field(repr=False)
    strata: list[Hashable] | None = field(repr=False)
    known: dict[Hashable, Hashable] = field(repr=False)

    def __len__(self) -> int:
        """How many items were drawn."""
        return len(self.items)

    def __repr__(self) -> str:
        groups = "" if self.strata is None else f", {len(set(self.strata))} strata"
        return f"Sample({len(self)} items{groups}, {len(self.known)} of them known)"

    @property
    def drawn(self) -> dict[Hashable, float]:
        """The chance of each item, as `Labels.with_gold` takes it."""
        return dict(zip(self.items.tolist(), self.chances.tolist(), strict=True))

    def columns(self) -> dict[str, list[Any]]:
        """A row for each item: item, label (None where it is to be filled in), chance and, if stratified, stratum."""
        items = self.items.tolist()
        columns = {"item": items, "label": [self.known.get(item) for item in items], "chance": self.chances.tolist()}
        return columns if self.strata is None else {**columns, "stratum": list(self.strata)}

    def to_frame(self, *, backend: str | None = None) -> Any:
        """`columns` as a frame; a file of it, its labels filled in, is what `trueup.read_gold` reads."""
        return make_frame(self.columns(), backend=backend)


def draw_sample(
    labels: Labels,
    n: int,
    *,
    by: str | Mapping[Any, Hashable] | Sequence[Hashable] | npt.NDArray[Any] | None = None,
    allocation: Allocation = "equal",
    random_state: RandomState = 0,
) -> Sample:
    """Draw items for an expert to vet, so that what they find holds for all items.

    Items that are gold already may be drawn like any others; `Sample.known` has their truths.

    Parameters
    ----------
    labels : Labels. The items to draw from: all of them.
    n : int. How many.
    by : str, mapping or sequence, optional
        Draw from each stratum by itself: "votes" for the class that most votes name, the name of an item column, or a
        value for each item, such as a system's predictions, by name or in the order of ``labels.items``. Items without
        a value are a stratum too. By default a simple random sample.
    allocation : {"equal", "proportional"}
        How many from each stratum: the same number, as far as it has so many items, so that rare ones are seen too; or
        in proportion to its items. At least one from each.
    random_state : int, Generator or None. The same seed draws the same items.
    """
    n = check_integer(n, name="n", low=1)
    check_choice(allocation, ALLOCATIONS, name="allocation")
    if n > labels.n_items:
        raise InvalidParameter(f"`n` must be at most the {labels.n_items} items there are, got {n}")
    values = [None] * labels.n_items if by is None else _strata(labels, by)
    code_of = {name: code for code, name in enumerate(dict.fromkeys(values))}
    codes = np.array([code_of[value] for value in values], dtype=np.int64)
    sizes = np.bincount(codes)
    rng = as_generator(random_state)
    counts = _allocate(n, sizes, np.ones(len(sizes)) if allocation == "equal" else sizes.astype(np.float64))
    drawn = [rng.choice(np.flatnonzero(codes == code), size, replace=False) for code, size in enumerate(counts)]
    at = rng.permutation(np.concatenate(drawn))
    truth = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes)[at]
    known = np.flatnonzero(truth >= 0)
    return Sample(
        labels.items[at],
        (counts / sizes)[codes[at]],
        None if by is None else [values[k] for k in at],
        dict(zip(labels.items[at[known]].tolist(), labels.classes[truth[known]].tolist(), strict=True)),
    )


def draw_contests(pairs: Pairs, n: int, *, random_state: RandomState = 0) -> list[Contest]:
    """Draw contests for people to judge, so that what they find holds for all contests.

    Returns a list of (item, first, second); which system is shown first is by chance.

    Parameters
    ----------
    pairs : Pairs. The contests to draw from: all with a verdict that counts.
    n : int. How many.
    random_state : int, Generator or None. The same seed draws the same contests.
    """
    n = check_integer(n, name="n", low=1)
    n_contests = pairs.labels.n_items
    if n > n_contests:
        raise InvalidParameter(f"`n` must be at most the {n_contests} contests there are, got {n}")
    rng = as_generator(random_state)
    drawn = [pairs.contests[contest] for contest in draw_sample(pairs.labels, n, random_state=rng).items.tolist()]
    return [
        (item, second, first) if is_turned else (item, first, second)
        for (item, first, second), is_turned in zip(drawn, rng.random(n) < 0.5, strict=True)
    ]


def _strata(labels: Labels, by: Any) -> list[Hashable]:
    """The stratum of each item; None where it has no value."""
    if isinstance(by, str) and by == "votes":
        voted = labels.votes_per_item > 0
        majority = labels.classes[labels.answer_counts[:, : labels.n_classes].argmax(axis=1)].tolist()
        return [name if there else None for name, there in zip(majority, voted, strict=True)]
    if isinstance(by, Mapping):
        labels.item_codes(by)  # a name that is no item is an error
    if isinstance(by, str | Mapping):
        values = values_of(labels, by, "by")[0]
    else:
        values = by.tolist() if isinstance(by, np.ndarray) else list(by)
    if len(values) != labels.n_items:
        raise InvalidParameter(
            f"`by` must have a value for each of the {labels.n_items} items, got {len(values)}; pass {{item: value}}",
        )
    if not all(isinstance(value, Hashable) for value in values):
        raise InvalidParameter("`by` must have one value for each item, got several; pass a flat list")
    return [None if is_null(value) else value for value in values]


def _allocate(n: int, sizes: Positions, shares: Floats) -> Positions:
    """How many of `n` items each stratum gives: by its share, at least one, at most all it has."""
    if n < len(sizes):
        raise InvalidParameter(
            f"`n` must be at least the {len(sizes)} strata, got {n}; draw more, or take fewer strata"
        )
    counts = np.ones(len(sizes), dtype=np.int64)
    for _ in range(n - len(sizes)):  # the next goes where it is most due, as seats go to parties (Sainte-Laguë)
        due = np.where(counts < sizes, shares / (2 * counts + 1), -1.0)
        counts[int(due.argmax())] += 1
    return counts
