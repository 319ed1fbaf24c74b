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
import scipy

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
        least: dict[float, float] = {}
        for budget, design in zip(self.budgets, self.designs, strict=True):
            least[budget] = min(least.get(budget, np.inf), design.half_width)
        best = [d.half_width == least[b] for b, d in zip(self.budgets, self.designs, strict=True)]
        return make_frame({"budget": list(self.budgets), **_columns(self.designs), "best": best}, backend=backend)

    def best(self) -> tuple[Design, ...]:
        """The best design at each budget, from the least budget to the largest."""
        narrowest: dict[float, Design] = {}
        for budget, design in zip(self.budgets, self.designs, strict=True):
            if budget not in narrowest or design.half_width < narrowest[budget].half_width:
                narrowest[budget] = design
        return tuple(narrowest[budget] for budget in sorted(narrowest))


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
        for kind in KINDS:
            points = [
                (budget, design.half_width)
                for budget, design in zip(self.frontier.budgets, self.frontier.designs, strict=True)
                if design.kind == kind
            ]
            if points:
                ax.loglog(*zip(*points, strict=True), color=_COLOURS[kind], label=kind)
        ax.plot(self.budget, self.half_width, "o", color="black", label="recommended")
        ax.set_xlabel("budget")
        ax.set_ylabel(f"half-width of the {self.level:.0%} interval of accuracy")
        ax.legend(frameon=False)
        ax.grid(alpha=0.3, which="both")
        return ax

    def __repr__(self) -> str:
        d = self.design
        crowd = f"{d.n_items:,} items × {d.votes_per_item} votes" if d.votes_per_item else f"{d.n_items:,} items"
        expert = f", {d.n_vettings:,} checked" if d.n_vettings else ""
        lines = [f"Plan({crowd}{expert}; accuracy ± {d.half_width:.4f} at {self.level:.0%}, cost {d.cost:,.6g})"]
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
    r"""How many items, votes on each and vettings give the narrowest interval of a model's accuracy.

    Three kinds of design are compared, for every number of votes. With e the model's error, z the normal quantile:

    - *votes*: n items, k votes on each, nobody vets. The half-width is z √(v_k/n), v_k the inverse Fisher information
      of an item about e. It rests on errors of labelers and model that are independent given the class. Unless the
      noise is known, the labelers' error and the prior are learned from the same votes, and v_k counts that in; then at
      least two votes are needed, the model being the third rater.
    - *vetted*: an expert looks at m items, who is always right. The half-width is z √(e(1 − e)/m). It rests on nothing.
    - *both*: k votes on n items, m of them vetted at random, and the mean of what votes say corrected by the vetted
      (PPI++, the two-phase regression estimator). With ρ² the share of variance of the model's errors that the votes
      explain,

      .. math::

          \text{half-width} = z \sqrt{e (1 - e) \left(\frac{1 - \rho_k^2}{m} + \frac{\rho_k^2}{n}\right)}.

      It is right whether or not errors are independent; if they are not, ρ² is smaller than thought (`correlation`).

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
    setting = _Setting(
        vote_price=_price(vote_price, "vote_price"),
        expert_price=_price(expert_price, "expert_price"),
        item_price=check_number(item_price, name="item_price", low=0.0),
        labeler_error=_labeler_error(labeler_accuracy, n_classes),
        error=check_model_error(error, check_integer(n_classes, name="n_classes", low=2)),
        prior=check_prior(prior, n_classes=n_classes, positive=True),
        correlation=check_number(correlation, name="correlation", low=0.0, high=1.0),
        noise_known=bool(noise_known),
        max_items=np.inf if max_items is None else check_integer(max_items, name="max_items", low=1),
        z=float(scipy.stats.norm.ppf((1 + check_level(level)) / 2)),
    )
    if correlation == 1:
        raise InvalidParameter("correlation must be below 1, got 1; labelers who always agree are one labeler")
    money = check_number(budget, name="budget", low=0.0, strict=True)
    kinds = _kinds(designs, setting)
    candidates = _candidates_of(kinds, setting, check_integer(max_votes, name="max_votes", low=1))
    affordable = _affordable(candidates, money, setting)
    if not affordable:
        raise InvalidParameter(
            f"budget must pay for at least {_LEAST_VETTED} items of one design, got {money:g} at these prices; raise it"
        )
    budgets: list[float] = []
    designs_at: list[Design] = []
    for other in money * np.geomspace(0.1, 10, 41):
        for kind in kinds:
            best = _affordable([c for c in candidates if c.kind == kind], float(other), setting)[:1]
            budgets += [float(other)] * len(best)
            designs_at += best
    return Plan(
        **asdict(affordable[0]),
        budget=money,
        level=level,
        alternatives=tuple(affordable),
        frontier=Frontier(tuple(budgets), tuple(designs_at)),
        notes=_notes(affordable[0], money, setting),
    )


def _columns(designs: Sequence[Design]) -> dict[str, list[Any]]:
    names = ("kind", "n_items", "votes_per_item", "n_vettings", "half_width", "cost")
    return {name: [getattr(design, name) for design in designs] for name in names}


def _notes(design: Design, budget: float, s: _Setting) -> tuple[str, ...]:
    notes = []
    if design.kind == "votes":
        notes.append(
            "Votes alone: the interval holds only if labelers and model err independently given the class; "
            'check some items (`designs=["both"]`) where that is in doubt.'
        )
    elif design.n_vettings * s.error < _LEAST_ERRORS:
        notes.append(
            f"Only about {design.n_vettings * s.error:.1f} errors of the model will be seen among the checked items, "
            "so the true interval will be lopsided and its width rough."
        )
    if design.n_items >= s.max_items and design.cost < 0.99 * budget:
        notes.append("All items there are have been used; what is left of the budget buys nothing more.")
    return tuple(notes)


def _price(price: float | None, name: str) -> float | None:
    return None if price is None else check_number(price, name=name, low=0.0, strict=True)


def _labeler_error(accuracy: float | Sequence[float], n_classes: int) -> float:
    each = [accuracy] if isinstance(accuracy, int | float | np.number) else list(accuracy)
    if not each:
        raise InvalidParameter("labeler_accuracy must be one number or several, got none")
    mean = float(np.mean([check_number(a, name="labeler_accuracy", low=0.0, high=1.0) for a in each]))
    if mean <= 1 / check_integer(n_classes, name="n_classes", low=2):
        raise InvalidParameter(f"labeler_accuracy must be above {1 / n_classes:.3g}, that of guesses, got {mean:.3g}")
    return 1 - mean


def _kinds(designs: Sequence[DesignKind] | None, s: _Setting) -> tuple[DesignKind, ...]:
    """The kinds that were asked for and can be bought."""
    asked = KINDS if designs is None else tuple(check_choice(kind, KINDS, name="designs") for kind in designs)
    needs = {
        "votes": s.vote_price is not None and s.correlation == 0,
        "vetted": s.expert_price is not None,
        "both": s.vote_price is not None and s.expert_price is not None,
    }
    kinds = tuple(kind for kind in KINDS if kind in asked and needs[kind])
    if not kinds:
        raise InvalidParameter(
            f"none of the designs {list(asked)} can be bought with `vote_price={s.vote_price}`, "
            f"`expert_price={s.expert_price}`"
            f" and correlation {s.correlation:g}; give the prices it needs"
        )
    return kinds


@dataclass(frozen=True, eq=False)
class _Setting:
    """What was told, checked."""

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


@dataclass(frozen=True)
class _Candidate:
    """A kind of design and a number of votes; `factor` is v_k for votes and ρ² for both; see `trueup.plan`."""

    kind: DesignKind
    n_votes: int
    factor: float

    def design(self, budget: float, s: _Setting) -> Design | None:
        """The narrowest such design that the budget pays for, or None."""
        each = s.item_price + self.n_votes * (s.vote_price or 0.0)
        vetting = s.expert_price or 0.0
        spread = s.error * (1 - s.error)
        if self.kind == "votes":
            n = min(np.floor(budget / each + 1e-9), s.max_items)
            return self._made(n, 0, s.z * np.sqrt(self.factor / n), n * each) if n >= _LEAST_VETTED else None
        if self.kind == "vetted":
            m = min(np.floor(budget / (each + vetting) + 1e-9), s.max_items)
            cost = m * (each + vetting)
            return self._made(m, m, s.z * np.sqrt(spread / m), cost) if m >= _LEAST_VETTED else None
        most = int(min(budget / (each + vetting) + 1e-9, s.max_items))  # then all items are vetted
        if most < _LEAST_VETTED:
            return None
        m = np.unique(np.linspace(_LEAST_VETTED, most, 4001).astype(np.int64))
        n = np.minimum(np.floor((budget - m * vetting) / each + 1e-9), s.max_items)
        variance = spread * ((1 - self.factor) / m + self.factor / n)
        k = int(np.argmin(variance))
        return self._made(n[k], m[k], s.z * np.sqrt(variance[k]), n[k] * each + m[k] * vetting)

    def _made(self, n: float, m: float, half_width: float, cost: float) -> Design:
        return Design(self.kind, int(n), self.n_votes, int(m), float(half_width), float(cost))


def _candidates_of(kinds: Sequence[DesignKind], s: _Setting, max_votes: int) -> list[_Candidate]:
    """All kinds with all numbers of votes up to `max_votes`."""
    candidates = [_Candidate("vetted", 0, 1.0)] if "vetted" in kinds else []
    for k in range(1, max_votes + 1) if {"votes", "both"} & set(kinds) else ():
        if comb(k + len(s.prior) - 1, k) > _MOST_COUNTS:
            break
        outcomes = list_outcomes(votes_channel(k, s.labeler_error, s.prior, s.correlation))
        if "votes" in kinds:
            # A rate of 0 lies at the edge, where there is no Fisher information; a tiny one tells what is meant.
            rates: Any = {"labeler_error": max(s.labeler_error, 1e-6), "error": s.error, "prior": s.prior}
            variance = item_variance(outcomes, s.error) if s.noise_known else learned_variance(n_votes=k, **rates)
            if np.isfinite(variance):
                candidates.append(_Candidate("votes", k, variance))
        if "both" in kinds:
            candidates.append(_Candidate("both", k, explained_share(outcomes, s.error)))
    return candidates


def _affordable(candidates: list[_Candidate], budget: float, s: _Setting) -> list[Design]:
    """The designs that the budget pays for, the narrowest first, the cheaper one of equals."""
    designs = [design for candidate in candidates if (design := candidate.design(budget, s))]
    return sorted(designs, key=lambda design: (design.half_width, design.cost))


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


# ------------------ Which items to check so that they stand for all: a random sample, with the chance of each item

Allocation = Literal["equal", "proportional"]
ALLOCATIONS: tuple[Allocation, ...] = ("equal", "proportional")


@dataclass(frozen=True, eq=False)
class Sample:
    """Items to vet, drawn at random, in the order in which they were drawn.

    Attributes
    ----------
    chances : float array. The chance of each to be drawn: its inclusion probability.
    strata : list or None. What the items of a stratified sample were told apart by.
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
    names = list(dict.fromkeys(values))
    code_of = {name: code for code, name in enumerate(names)}
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

    Returns a list of (item, first, second), which system is shown first is by chance, so that nobody's liking for a
    place favours one of them.

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
