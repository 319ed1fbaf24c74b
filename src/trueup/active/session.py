r"""`ActiveTest`: ask which items to vet, tell the answers, get the estimate.

An interval of a fixed number of answers holds in 95 of 100 sessions *at that number*. Who looks after every answer and
stops when it is narrow, or when one system is ahead, stops more readily on an interval that is off. The estimates here
are means of what the draws add, each of mean zero given all before it, so that a mixture over the martingale
:math:`\exp(\lambda S_t - \lambda^2 V_t / 2)` bounds all looks at once (Robbins 1970); with estimated variances it holds
as the answers grow in number (Waudby-Smith et al. 2024). Against :math:`z_{1 - \alpha/2}` of one look that is

.. math:: c_n = \sqrt{2 \frac{n\rho^2 + 1}{n\rho^2} \log\frac{\sqrt{n\rho^2 + 1}}{\alpha}},

where :math:`\rho` is chosen to be narrowest near a planned number of answers; far from it little is lost.

References
----------
H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41,
1970. I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy, A. Ramdas, "Time-uniform central limit theory and asymptotic
confidence sequences", Annals of Statistics 52, 2024.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy

from trueup._base.types import Floats, Target
from trueup._base.validation import (
    RandomState,
    check_choice,
    check_integer,
    check_level,
    check_number,
    preview,
    seed_of,
)
from trueup.active.estimators import (
    ENOUGH_DRAWS,
    ESTIMATORS,
    Estimated,
    MetricEstimator,
    Request,
    as_estimate,
    estimate_metric,
    pool_with_outside,
    share_better,
    two_worlds,
)
from trueup.active.fallible import ExpertErrors
from trueup.active.influence import Pool, State, make_pool
from trueup.active.rectified import PoolModel, model_of
from trueup.active.strategies import STRATEGIES, Strategy
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import DEFAULT_NOISE, NoiseModel
from trueup.posteriors import Estimate
from trueup.sessions.progress import ANSWERS, UNKNOWN, Answers, Counted, Progress, SessionStatus, Shares
from trueup.sessions.session import Batch, DrawnSession, draw_in_turn, options_of, write_setting
from trueup.storage import Storage
from trueup.storage.joining import StoredLog, of_predictions, of_votes

_N_DRAWS = 1024
Experts = Literal["right", "fallible"]
EXPERTS: tuple[Experts, ...] = get_args(Experts)


@dataclass(frozen=True, eq=False)
class Estimation:
    """How a metric is estimated on a pool; what does not depend on the answers is worked out once."""

    pool: Pool
    estimator: MetricEstimator
    noise: str | NoiseModel
    target: Target = "sample"
    experts: Experts = "right"

    @cached_property
    def model(self) -> PoolModel:
        """How answers correct what the votes say."""
        return model_of(self.pool)

    @cached_property
    def _with_outside(self) -> Estimation:
        """The same with one more class, for sessions with items that are none of the classes."""
        return replace(self, pool=pool_with_outside(self.pool))

    def after(
        self, counted: Counted, *, systems: Sequence[int] = (0,), category: int | None = None, seed: int = 0
    ) -> Estimated:
        """Draws for all systems, given the answers that count."""
        has_outside = bool((counted.progress.truth == self.pool.n_classes).any())
        setting = self._with_outside if has_outside else self
        if not counted.undecided.any():
            return self._estimate(setting, counted.progress, category, seed)
        worlds = two_worlds(setting.pool, counted, systems)
        lowest, highest = (self._estimate(setting, world, category, seed) for world in worlds)
        if len(lowest.values) == 1:  # two numbers without a spread are no interval either
            return replace(lowest, values=(lowest.values + highest.values) / 2)
        return replace(lowest, values=np.concatenate([lowest.values, highest.values]), n_worlds=2)

    def _estimate(self, setting: Estimation, progress: Progress, category: int | None, seed: int) -> Estimated:
        rng = np.random.default_rng([seed, int(progress.vetted.sum()), 1])  # no news, no other number
        request = Request(
            setting.pool, progress, setting.model, self.noise, self.target, _N_DRAWS, rng, category, self.pool
        )
        if self.experts == "fallible":
            request = replace(request, errors=ExpertErrors.known_from(progress, self.pool.labels.gold_codes))
        return estimate_metric(self.estimator, request)


PLANNED = 200  # answers near which the intervals are narrowest, where there is no budget
_LEVEL = 0.95  # of the interval that the spread of an estimate is taken from


def anytime_bound(n: int, *, level: float, planned: int = PLANNED) -> float:
    """How many standard deviations an interval must reach to either side to hold at every look at once."""
    alpha = 1 - level
    rho_squared = (1 - 2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / planned
    time = max(n, 1) * rho_squared
    return math.sqrt(2 * (time + 1) / time * math.log(math.sqrt(time + 1) / alpha))


def anytime_interval(
    worlds: Sequence[Estimate], n: int, *, level: float, planned: int = PLANNED
) -> tuple[float, float]:
    """The interval that holds at every look at once."""
    reach = anytime_bound(n, level=level, planned=planned) / float(scipy.stats.norm.ppf((1 + _LEVEL) / 2))
    ends = np.array([world.interval(_LEVEL) for world in worlds])
    middle, half = ends.mean(axis=1), np.ptp(ends, axis=1) / 2
    least, most = worlds[0].bounds
    return max(float((middle - reach * half).min()), least), min(float((middle + reach * half).max()), most)


def answer_notes(progress: Progress, counted: Counted, answers: Answers, *, by_chance: bool) -> list[str]:
    """What of the way the answers came in makes an estimate less sure than it looks."""
    was_drawn, undecided = progress.draw > 0, counted.undecided
    n_chosen = int((progress.vetted & was_drawn & np.isnan(progress.propensity)).sum())
    n_told = int((progress.vetted & ~was_drawn).sum())
    n_after = int((progress.vetted & ~was_drawn & (progress.told_after >= max(counted.n_draws, 1))).sum())
    n_ahead, n_undecided = int(counted.ahead.sum()), int(undecided.sum())
    n_doubted, n_disputed = int((undecided & progress.cannot_tell).sum()), int((undecided & progress.disputed).sum())
    reasons = {"nobody could tell": n_doubted, "experts differ": n_disputed}
    reasons["the prediction was in sight"] = n_undecided - n_doubted - n_disputed
    listed = ", ".join(f"{reason}: {n}" for reason, n in reasons.items() if n)
    n_changed = int((progress.truth != progress.unswayed).sum())
    notes = {
        "Most answers are on items that were not drawn by chance: the interval may not hold as often as it says; ask "
        'with a strategy that draws, such as "propensity" or "random".': not by_chance,
        f"{n_chosen} items were chosen and not drawn by chance: an interval from them may not hold as often as it "
        "says.": by_chance and n_chosen,
        f"{counted.n_draws} draws count so far: before there are {ENOUGH_DRAWS} the interval is a rough one.": by_chance
        and 0 < counted.n_draws < ENOUGH_DRAWS,
        f"{n_told} items were answered without being asked for: their chance to be drawn is unknown, so they count for "
        "themselves and correct nothing else.": n_told,
        f"{n_after} items were answered after the draws that represent them, so they change nothing yet.": (
            by_chance and n_after
        ),
        f"{n_ahead} answers wait to count: an item that was drawn before them has none yet, and those that are "
        "answered first are the easy ones.": n_ahead,
        f"{n_undecided} items that were drawn have no valid answer ({listed}): the interval is wide enough for each of "
        "them to be right or wrong.": n_undecided,
        f"{n_changed} answers were given or corrected with the prediction or the estimate in sight: an interval from "
        "them may not hold as often as it says.": n_changed and answers == "all",
    }
    return [note for note, applies in notes.items() if applies]


STOPPING = ("budget", "half_width", "prob_better")  # what may change while a session goes on


class ActiveTest(DrawnSession):
    """The fewest expert answers for the truest number.

    Ask which items to vet, tell the answers, and get an estimate whose interval holds although the items were chosen.

    Parameters
    ----------
    predictions : array, mapping or Predictions. Of one system or of several, as in `trueup.compare`.
    labels : Labels. The noisy votes. Gold items are known from the start and are not asked.
    metric : str or callable. As in `trueup.compare`.
    strategy : str or Strategy
        "propensity" and "random" draw by chance, with "stratified" (by category) and "separate" (to tell systems
        apart); "uncertainty", "meec", "meec-paper" and "most-confident-mistake" take the highest score and so allow no
        valid interval.
    estimator : str or MetricEstimator
        "rectified" (default): the noise model corrected by the answers, each weighted by the inverse of its chance.
        "bayes": the noise model with the answers as gold. "learned": Nguyen et al. (2018), whose probabilities the
        strategy then sees too. "ppi++" and "lure": as published, for metrics of counts. "naive", "vetted-only".
    noise : str or NoiseModel. What the votes say before anyone looked.
    categories : mapping or sequence, optional. The category of each item; the metric is then the mean over categories.
    budget : int, optional. Answers that can be paid for, with second opinions and all else that measures experts.
    half_width : float, optional. Stop once half of the interval, of every system, is at most this wide.
    prob_better : float, optional. Stop once the better of two systems is better with this probability, at every look.
    target : {"sample", "population"}. The metric on the items of the pool, or on the distribution they came from.
    experts : {"right", "fallible"}
        "fallible" counts an answer by the error rate of its expert, with `estimator="rectified"`: by second
        opinions, settled items and gold among their cards, and 5% of wrong answers before any is known.
    blind : bool
        Whether experts answer without a prediction in sight. Answers of a session that is not blind are kept out of
        the valid interval.
    overlap : float
        The share of draws that a second expert sees too, from two named experts on, and with a budget at least 30;
        where they differ a third settles it.
    repeat : float
        The share of draws that the same expert sees again, at least 50 cards later, while there is only one.
    checks : float. The share of cards with an item of known class, where there is gold.
    storage : str or Storage, optional
        Where the log is kept, for several processes: ``"sqlite:///test.db"`` or ``"postgresql://…"``. The first makes
        the session, the others join it with the same data and settings; see `trueup.storage`.
    name : str, optional. Of the session in the storage.
    **options
        For the strategy, e.g. ``floor=0.5``.
    """

    def __init__(
        self,
        predictions: Any,
        labels: Labels,
        *,
        metric: Any = "accuracy",
        strategy: str | Strategy = "propensity",
        estimator: str | MetricEstimator = "rectified",
        noise: str | NoiseModel = DEFAULT_NOISE,
        categories: Any = None,
        budget: int | None = None,
        half_width: float | None = None,
        prob_better: float | None = None,
        target: Target = "sample",
        level: float = 0.95,
        positive: Hashable | None = None,
        experts: Experts = "right",
        blind: bool = True,
        overlap: float = 0.1,
        repeat: float = 0.05,
        checks: float = 0.05,
        random_state: RandomState = 0,
        storage: str | Storage | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._strategy = STRATEGIES.make(strategy, options, base=Strategy)
        self._estimator = ESTIMATORS.make(estimator, {}, base=MetricEstimator)
        self.estimator, self.noise, self.positive = self._estimator.name, noise, positive
        self._metric = metric
        self.target: Target = check_choice(target, ("sample", "population"), name="target")
        self.level = check_level(level)
        self.pool = make_pool(predictions, labels, metric, noise, categories, positive)
        refusal = self._estimator.refusal(self.pool)
        if refusal is not None:
            raise InvalidParameter(refusal, parameter="estimator")
        n_open = int((labels.gold_codes < 0).sum())
        if budget is not None and check_integer(budget, name="budget", low=1) > n_open:
            raise InvalidParameter(f"`budget` must be at most the {n_open} items that can be checked, got {budget}")
        self.budget = None if budget is None else int(budget)
        self.half_width = None if half_width is None else check_number(half_width, name="half_width", low=0.0)
        self.prob_better = (
            None if prob_better is None else check_number(prob_better, name="prob_better", low=0.5, high=1)
        )
        if prob_better is not None and self.pool.n_systems < 2:
            raise InvalidParameter("`prob_better` needs two systems, got one; pass a dict")
        self.experts: Experts = check_choice(experts, EXPERTS, name="experts")
        if experts == "fallible" and self.estimator != "rectified":
            raise InvalidParameter(
                f'`experts="fallible"` needs `estimator="rectified"`, got {self.estimator!r}; leave one of them out',
                parameter="experts",
            )
        self._estimation = Estimation(self.pool, self._estimator, noise, self.target, self.experts)
        self.blind = self._blind = bool(blind)
        self.shares = Shares(overlap, repeat, checks)
        kept = None if storage is None and name is None else StoredLog(storage, name)
        self.seed = seed_of(random_state) if kept is None else kept.seed(random_state)
        self._begin(labels, self._strategy.name, options_of(self._strategy, strategy, options))
        if kept is not None:
            marks = {"votes": of_votes(labels), "predictions": of_predictions(self.pool.aligned)}
            kept.join(self, "active test", marks, stopping=STOPPING)

    def _choose(self, n: int) -> Batch:
        """The next items to vet."""
        state = self.state
        n = min(n, int(state.available.sum()))
        if n == 0:
            return Batch([])
        scores = self._strategy.scores(state)
        chosen: list[int]
        chances: list[float | None] | None = None
        if self._strategy.is_random:  # the score of an item is its chance
            chosen, chances = draw_in_turn(scores, n, np.random.default_rng([self.seed, len(self._events)]))
        else:
            order = np.lexsort((np.arange(len(scores)), -np.where(state.available, scores, -np.inf)))
            chosen = order[:n].tolist()
        return self._batch(chosen, scores[chosen], self._strategy.reasons(state, chosen), chances)

    @property
    def state(self) -> State:
        """What the strategy sees: every answer, also those that wait to count."""
        if "state" not in self._memo:
            known = np.where(self.progress.truth < self.pool.n_classes, self.progress.truth, UNKNOWN)
            progress = replace(self.progress, truth=known)
            believed = self._estimator.believed(self.pool, progress, self._estimation.model)
            self._memo["state"] = State(self.pool, believed, self._known, self._available)
        found: State = self._memo["state"]
        return found

    def standing(self) -> SessionStatus:
        """`status`, by the name that it had until version 0.2."""
        warnings.warn("standing() is now status(); call that", DeprecationWarning, stacklevel=2)
        return self.status()

    @property
    def finished(self) -> str | None:
        if not self._available.any():
            return "Every item is checked, waiting or passed."
        if self._room() == 0 and not self.progress.waiting.any():
            n_open = len(self.progress.cards)
            rest = f", but for {n_open} that another look at an item waits for" if n_open else ""
            return f"The budget of {self.budget} answers is spent{rest}."
        if self._counted().n_draws < ENOUGH_DRAWS:  # never by luck on the first few
            return None
        if self.half_width is not None:
            ends = [self.estimate(system).interval(self.level) for system in self._systems]
            half = float(np.max([(high - low) / 2 for low, high in ends]))
            if half <= self.half_width:
                return f"Half of the interval is {half:.4f} wide, at most {self.half_width:g}."
        if self.prob_better is not None:
            a, b = self.ranking[:2]
            # One look after the other finds a better system where there is none, so the interval must hold at all
            # of them; of one with as much on either side, one end may be wrong.
            low, high = self.anytime_interval(a, b, level=min(2 * self.prob_better - 1, 1 - 1e-9))
            if self._sign * (low if self._sign > 0 else high) > 0:
                chance = self.prob_order(a, b)
                return (
                    f"{a!r} is better than {b!r} with probability {chance:.3f}, and with at least "
                    f"{self.prob_better:g} at every look."
                )
        return None

    def _estimated(
        self, systems: tuple[int, ...] = (0,), category: int | None = None, answers: Answers = "valid"
    ) -> Estimated:
        """Draws for all systems; where draws are undecided, half of them at worst and half at best for `systems`."""
        counted = self._counted(answers)

        def work() -> Estimated:
            estimated = self._estimation.after(counted, systems=systems, category=category, seed=self.seed)
            notes = answer_notes(self.progress, counted, answers, by_chance=estimated.by_chance)
            return replace(estimated, notes=(*estimated.notes, *notes))

        return self._once(("estimated", systems if counted.undecided.any() else (), category, answers), work)

    def estimate(self, system: Any = None, *, category: Any = None, answers: Answers = "valid") -> Estimate:
        """The metric of a system, by default the first; the mean over categories, or that of one.

        Parameters
        ----------
        answers : {"valid", "all"}
            "valid" leaves out answers given with a prediction in sight, and corrections by someone who had seen the
            estimate. "all" takes every answer as it stands: where the two differ, that interval may not hold as often
            as it says.
        """
        check_choice(answers, ANSWERS, name="answers")
        names = self.pool.category_names
        if category is not None and category not in names:
            raise InvalidParameter(f"there is no category {category!r}, got {preview(list(names), most=10)}")
        code = None if category is None else names.index(category)
        metric, at = self.pool.metric, self._at(system)
        estimated = self._estimated((at,), code, answers)
        return as_estimate(estimated.values[:, at], metric.bounds, metric.name, estimated.n_worlds)

    def difference(self, a: Any, b: Any) -> Estimate:
        """The metric of system a minus that of b, on the same draws."""
        low, high = self.pool.metric.bounds
        name, n_worlds = f"{self.pool.metric.name} {a} minus {b}", self._estimated((self._at(a), self._at(b))).n_worlds
        return as_estimate(self._apart(a, b), (low - high, high - low), name, n_worlds)

    def _apart(self, a: Any, b: Any) -> Floats:
        one, other = self._at(a), self._at(b)
        values = self._estimated((one, other)).values
        return np.asarray(values[:, one] - values[:, other])

    def anytime_interval(self, a: Any = None, b: Any = None, *, level: float | None = None) -> tuple[float, float]:
        """An interval that holds at every look at once, and so wherever the session is stopped; wider than others.

        Parameters
        ----------
        a : system, optional. By default the first.
        b : system, optional. Then for the metric of a minus that of b.
        level : float, optional. By default that of the session.
        """
        low, high = self.pool.metric.bounds
        if b is not None and self._at(a) > self._at(b):  # of equally short intervals the lower is taken, so turn it
            least, most = self.anytime_interval(b, a, level=level)
            return -most, -least
        systems = (self._at(a),) if b is None else (self._at(a), self._at(b))
        estimated = self._estimated(systems)
        values = estimated.values[:, systems[0]]
        if b is not None:
            values, low, high = self._apart(a, b), low - high, high - low
        worlds = [as_estimate(part, (low, high), "") for part in np.split(values, estimated.n_worlds)]
        n_draws, wanted = self._counted().n_draws, self.level if level is None else level
        return anytime_interval(worlds, n_draws, level=wanted, planned=self.budget or PLANNED)

    def prob_order(self, a: Any, b: Any) -> float:
        """P(a is better than b), ties counted half."""
        return share_better(self._apart(a, b), higher_is_better=self._sign > 0)

    @property
    def ranking(self) -> list[Any]:
        """The systems from the best to the worst, by the mean of the estimate."""
        mean = np.array([self.estimate(system).mean for system in self._systems])
        return [self._systems[k] for k in np.argsort(-self._sign * mean, kind="stable")]

    @property
    def misranking(self) -> float:
        """The expected share of pairs of systems that the ranking has in the wrong order."""
        wrong = [1 - self.prob_order(a, b) for a, b in combinations(self.ranking, 2)]
        return float(np.mean(wrong)) if wrong else 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences to read before trusting the estimate."""
        return tuple(self._estimated().notes)

    def history(self, *, every: int = 10) -> list[dict[str, float]]:
        """The estimate after each `every` answers: n, mean, low and high."""
        return [then._row(then.estimate()) for then in self._after_answers(every, first=every)]

    def _history(self, every: int) -> tuple[list[dict[str, float]], str]:
        return self.history(every=every), self.pool.metric.name

    def _at(self, system: Any) -> int:
        if system is None:
            return 0
        if system not in self._systems:
            raise InvalidParameter(f"there is no system {system!r}, got {preview(self._systems, most=10)}")
        return self._systems.index(system)

    @property
    def _sign(self) -> float:
        """1 if more of the metric is better, else −1."""
        return -1.0 if self.pool.metric.higher_is_better is False else 1.0

    @property
    def _systems(self) -> list[Any]:
        return list(self.pool.aligned.systems.tolist())

    def __repr__(self) -> str:
        return (
            f"ActiveTest({self.pool.metric.name}, {self.strategy}, {self.estimator}; {self.n_vetted} of "
            f"{self.pool.n_items:,} items checked)"
        )

    def restart(self, *, random_state: RandomState = None) -> Self:
        """The same pool and fitted noise with an empty log and another seed: a fresh session at no cost.

        Parameters
        ----------
        random_state : int, Generator or None. With that of this session the first question is the same.
        """
        other = self._copy([])
        other.seed = seed_of(random_state)
        return other

    def _settings(self) -> dict[str, Any]:
        codes = self.pool.categories
        return {
            "metric": write_setting(self._metric, name=self.pool.metric.name),
            "estimator": self.estimator,
            "noise": write_setting(self.noise),
            "categories": None if codes is None else [self.pool.category_names[k] for k in codes.tolist()],
            "target": self.target,
            "level": self.level,
            "budget": self.budget,
            "half_width": self.half_width,
            "prob_better": self.prob_better,
            "positive": self.positive,
            "experts": self.experts,
            "blind": self.blind,
            **vars(self.shares),
            "random_state": self.seed,
        }
