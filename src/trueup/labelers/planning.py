"""How to spend a labeling budget: how many items, how many votes on each, how many vetted by an expert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import comb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats
from trueup._base.validation import check_choice, check_integer, check_level, check_number, check_prior
from trueup.data.frames import make_frame
from trueup.exceptions import InvalidParameter
from trueup.labelers.channel import list_outcomes
from trueup.labelers.information import (
    check_model_error,
    explained_share,
    item_variance,
    learned_variance,
    votes_channel,
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
        correlation=_correlation(correlation),
        noise_known=bool(noise_known),
        max_items=np.inf if max_items is None else check_integer(max_items, name="max_items", low=1),
        z=float(scipy.stats.norm.ppf((1 + check_level(level)) / 2)),
    )
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


def _correlation(value: float) -> float:
    checked = check_number(value, name="correlation", low=0.0, high=1.0)
    if checked == 1:
        raise InvalidParameter("correlation must be below 1, got 1; labelers who always agree are one labeler")
    return checked


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
            variance = item_variance(outcomes, s.error) if s.noise_known else _learned(k, s)
            if np.isfinite(variance):
                candidates.append(_Candidate("votes", k, variance))
        if "both" in kinds:
            candidates.append(_Candidate("both", k, explained_share(outcomes, s.error)))
    return candidates


def _learned(n_votes: int, s: _Setting) -> float:
    # A rate of 0 lies at the edge, where there is no Fisher information; a tiny one tells what is meant.
    rate = max(s.labeler_error, 1e-6)
    return learned_variance(n_votes=n_votes, labeler_error=rate, error=s.error, prior=s.prior)


def _affordable(candidates: list[_Candidate], budget: float, s: _Setting) -> list[Design]:
    """The designs that the budget pays for, the narrowest first, the cheaper one of equals."""
    designs = [design for candidate in candidates if (design := candidate.design(budget, s))]
    return sorted(designs, key=lambda design: (design.half_width, design.cost))
