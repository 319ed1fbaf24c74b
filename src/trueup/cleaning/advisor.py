"""`CleaningAdvisor`: ask which training labels an oracle should clean, tell the answers, get the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import (
    RandomState,
    check_distribution,
    check_integer,
    check_level,
    check_number,
    preview,
    seed_of,
)
from trueup.cleaning.flips import flip_candidates, predicted_codes, retrained_scores
from trueup.cleaning.problem import CleaningState, Resources, make_problem
from trueup.cleaning.strategies import STRATEGIES, CleaningStrategy, ExpectedImprovement
from trueup.data.labels import Labels
from trueup.estimators.published.tars2018.consolidation import labeler_matrices
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.noise import NoiseModel
from trueup.noise.base import normalise
from trueup.posteriors import Estimate
from trueup.posteriors.continuous import normal_estimate
from trueup.sessions.log import Event
from trueup.sessions.progress import UNKNOWN, fold
from trueup.sessions.session import Batch, Session, options_of, write_setting
from trueup.storage import Storage
from trueup.storage.joining import StoredLog, fingerprint, of_votes
from trueup.training.objectives import noise_removed, noise_tolerant


def shrunk_improvement(improvement: npt.ArrayLike, standard_error: npt.ArrayLike) -> tuple[Floats, Floats]:
    r"""Improvements drawn together towards their mean, because the largest of many estimates is too large.

    .. math:: \tau^2 = \max\Bigl(0, \operatorname{var}(d) - \overline{s^2}\Bigr), \qquad
       B_i = \frac{s_i^2}{\tau^2 + s_i^2}, \qquad \tilde d_i = \bar d + (1 - B_i)(d_i - \bar d)

    the posterior mean under a normal prior that is estimated from the improvements (empirical Bayes), with the standard
    error of Morris (1983). Improvements that are 0 without error stay as they are.

    Examples
    --------
    >>> mean, sd = shrunk_improvement([0.03, -0.01, 0.0, 0.02], [0.02, 0.02, 0.02, 0.02])
    >>> mean.round(4).tolist()
    [0.01, 0.01, 0.01, 0.01]
    """
    raw, errors = np.asarray(improvement, dtype=float), np.asarray(standard_error, dtype=float)
    if raw.ndim != 1 or raw.shape != errors.shape:
        raise InvalidParameter(
            f"improvement and standard_error must be two lists of one length, got shapes {raw.shape} and {errors.shape}"
        )
    mean, spread = raw.copy(), errors.copy()
    some = errors > 0
    if some.sum() < 2:
        return mean, spread
    apart, squares, n = raw[some] - raw[some].mean(), errors[some] ** 2, int(some.sum())
    between = max(float(raw[some].var(ddof=1)) - float(squares.mean()), 0.0)
    shrink = squares / (squares + between)
    mean[some] -= shrink * apart
    variance = squares * (1 - (n - 1) / n * shrink)
    if n > 3:
        variance += 2 / (n - 3) * shrink**2 * (squares.mean() + between) / (squares + between) * apart**2
    spread[some] = np.sqrt(variance)
    return mean, spread


def value_of_cleaning(
    improvement: npt.ArrayLike, standard_error: npt.ArrayLike, *, best: int | None = None, name: str | None = None
) -> Estimate:
    """What cleaning one label is worth, after `shrunk_improvement`.

    Parameters
    ----------
    improvement, standard_error : arrays of shape (n,). Of all labels that could be cleaned.
    best : int, optional. The position of the one that would be cleaned; by default the largest.
    """
    mean, spread = shrunk_improvement(improvement, standard_error)
    if not len(mean):
        return normal_estimate(0.0, 0.0, bounds=(-1.0, 1.0), name=name)
    at = int(mean.argmax()) if best is None else int(best)
    # Metrics such as counts have other bounds; what one label changes stays within them.
    bound = max(1.0, abs(float(mean[at])) + 10 * float(spread[at]))
    return normal_estimate(float(mean[at]), float(spread[at]), bounds=(-bound, bound), name=name)


@dataclass(frozen=True, eq=False)
class BudgetCurve:
    """What a budget is expected to buy.

    Attributes
    ----------
    order : integer array of shape (n,). The labels in the order they would be cleaned, as positions in what was passed.
    cost : array of shape (n,). The cost of the first 1, 2, … of them.
    improvement, standard_error : arrays of shape (n,)
        The expected change of the metric after each, as if changes added up.
    """

    order: Codes
    cost: Floats
    improvement: Floats
    standard_error: Floats

    def at(self, budget: float) -> float:
        """The improvement that a budget is expected to buy."""
        n = int(np.searchsorted(self.cost, check_number(budget, name="budget", low=0.0), side="right"))
        return float(self.improvement[n - 1]) if n else 0.0


def budget_curve(
    improvement: npt.ArrayLike, standard_error: npt.ArrayLike, costs: npt.ArrayLike | None = None
) -> BudgetCurve:
    """The expected improvement against the cost, the best value for money first.

    Improvements are shrunk (`shrunk_improvement`) and added up; labels that are expected to make the model worse are
    left out. Changes of nearby labels overlap, so the curve promises too much far out: compare budgets by it.

    Parameters
    ----------
    improvement, standard_error : arrays of shape (n,)
    costs : array of shape (n,), optional. By default 1 each.

    Examples
    --------
    >>> curve = budget_curve([0.02, 0.03, -0.01], [0.0, 0.0, 0.0], [1.0, 3.0, 1.0])
    >>> curve.order.tolist(), curve.cost.tolist(), curve.at(2.0)
    ([0, 1], [1.0, 4.0], 0.02)
    """
    mean, spread = shrunk_improvement(improvement, standard_error)
    prices = np.ones(len(mean)) if costs is None else np.asarray(costs, dtype=float)
    if prices.shape != mean.shape or not (prices > 0).all():
        raise InvalidParameter(f"costs must be a positive number for each of {len(mean)} labels, got {costs!r}")
    order = np.argsort(-mean / prices, kind="stable")
    order = order[mean[order] > 0].astype(np.int64)
    return BudgetCurve(order, np.cumsum(prices[order]), np.cumsum(mean[order]), np.sqrt(np.cumsum(spread[order] ** 2)))


@dataclass(frozen=True)
class CleanOrVote:
    """Whether an item should go to the oracle or back to the crowd.

    Attributes
    ----------
    clean, vote : float. The expected improvement of the metric by either.
    choice : {"clean", "vote", "neither"}. What buys more improvement for its cost.
    why : str. One sentence.
    """

    item: Hashable
    clean: float
    vote: float
    clean_cost: float
    vote_cost: float
    choice: str
    why: str


def clean_or_vote(
    gains: npt.ArrayLike,
    chances: npt.ArrayLike,
    confusion: npt.ArrayLike,
    *,
    clean_cost: float = 1.0,
    vote_cost: float = 0.1,
    item: Hashable = None,
) -> CleanOrVote:
    r"""Compare the oracle's look at an item with one more vote of the crowd.

    The oracle is worth :math:`\sum_c p_c g_c`. A vote v makes c the label with the highest :math:`p_c\, q_{cv}`, so it
    is worth :math:`\sum_v \sum_c p_c\, q_{cv}\, g_{\hat c(v)}`.

    Parameters
    ----------
    gains : array of shape (n_classes,). The change of the metric by each class; 0 for the label as it is.
    chances : array of shape (n_classes,). The probability of each class.
    confusion : array of shape (n_classes, n_classes). P(vote | truth) of the next labeler, rows the truth.
    item : hashable, optional. The item's name, for the result.
    """
    gain = np.asarray(gains, dtype=float)
    p = check_distribution(chances, name="chances", n=len(gain))
    q = check_distribution(confusion, name="confusion", n=len(gain))
    if q.shape != (len(gain), len(gain)):
        raise InvalidParameter(f"confusion must have the shape {(len(gain), len(gain))}, got {q.shape}")
    clean_cost = check_number(clean_cost, name="clean_cost", low=0.0, strict=True)
    vote_cost = check_number(vote_cost, name="vote_cost", low=0.0, strict=True)
    joint = p[:, None] * q
    clean = float(p @ gain)
    vote = float(joint.sum(axis=0) @ gain[joint.argmax(axis=0)])
    choice = "clean" if clean / clean_cost >= vote / vote_cost else "vote"
    if max(clean, vote) <= 0:
        choice = "neither"
    words = {"clean": "the oracle buys more for its cost", "vote": "a vote buys more for its cost"}
    why = (
        f"The oracle is expected to improve the metric by {clean:.5f} at a cost of {clean_cost:g}, another vote by "
        f"{vote:.5f} at {vote_cost:g}: {words.get(choice, 'neither is expected to help')}."
    )
    return CleanOrVote(item, clean, vote, clean_cost, vote_cost, choice, why)


_KEPT = 3  # states: the one now, the one before, and theirs if scores are older


class CleaningAdvisor(Session):
    """Which training label should an oracle fix next? (Dolatshah et al. 2018, Section 5)

    An answer on an item of the validation part makes the metric more certain.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``fit`` and ``predict_proba``; cloned, never changed. Logistic regression, naive Bayes and a few more
        decide at once (`flip_models`); any other is trained for each label on a shortlist.
    X : array, sparse matrix, data frame, or mapping from item to row. Features, in the order of ``labels.items``.
    labels : Labels. The crowd's votes. Gold items are clean from the start.
    noise : str or NoiseModel. With a confusion matrix for each labeler, known or fitted.
    metric : str or Metric. What the model should be good at: any metric of the confusion counts.
    strategy : str or CleaningStrategy
        "emi", "random", "noise-rate", "uncertainty", "expected-error", "activeclean" or "hung".
    split : bool. Keep a validation part, which is never asked for and never trains.
    validation : float, list of items or mask. The validation part; a share is drawn at random from each class.
    weigh : bool. Weigh by the uncertainty of the model, for "emi".
    prune : float. The share of the answers after which scores are not worked out again, below or equal to 1.
    shortlist : int. Items for which models are trained where there is no fast path.
    costs : array or mapping, optional
        What the oracle's look at each item costs; by default 1. Items rank by score for the cost.
    budget : float, optional. What may be spent.
    min_improvement : float, optional. Stop once the next label is unlikely to improve the metric by this much.
    level : float. How unlikely: 1 − level; and the level of intervals.
    n_jobs : int, optional. As for joblib; any joblib backend will do.
    memory_limit : int. Bytes for temporary arrays.
    progress : callable, optional. Called with how many models are trained, and how many there are.
    storage : str or Storage, optional
        Where the log is kept, for several processes: ``"sqlite:///test.db"`` or ``"postgresql://…"``. The first makes
        the session, the others join it with the same data and settings; see `trueup.storage`.
    name : str, optional. Of the session in the storage.
    **options
        For the strategy, e.g. ``belief="votes"`` for "emi" as published.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        labels: Labels,
        *,
        noise: str | NoiseModel = "dawid-skene",
        metric: str | Metric = "accuracy",
        strategy: str | CleaningStrategy = "emi",
        split: bool = True,
        validation: Any = 0.3,
        weigh: bool = True,
        prune: float = 0.0,
        shortlist: int = 50,
        costs: Any = None,
        budget: float | None = None,
        min_improvement: float | None = None,
        level: float = 0.95,
        positive: Hashable | None = None,
        n_jobs: int | None = None,
        memory_limit: int = 1 << 30,
        random_state: RandomState = 0,
        progress: Callable[[int, int], None] | None = None,
        storage: str | Storage | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if strategy == ExpectedImprovement.name:
            options = {"weigh": bool(weigh), **options}
        self._strategy = STRATEGIES.make(strategy, options, base=CleaningStrategy)
        if self._strategy.needs_probabilities and not hasattr(estimator, "predict_proba"):
            raise InvalidParameter(
                f"estimator must have predict_proba, got {type(estimator).__name__}; wrap it in sklearn's "
                "CalibratedClassifierCV, or pass strategy='emi' with weigh=False"
            )
        self.level = check_level(level)
        self.prune = check_number(prune, name="prune", low=0.0, high=1.0)
        self.budget = None if budget is None else check_number(budget, name="budget", low=0.0, strict=True)
        self.min_improvement = (
            None if min_improvement is None else check_number(min_improvement, name="min_improvement")
        )
        self._metric = metric
        self.noise, self.weigh, self.split, self.validation = noise, bool(weigh), bool(split), validation
        kept = None if storage is None and name is None else StoredLog(storage, name)
        self.seed = seed_of(random_state) if kept is None else kept.seed(random_state)
        memory_limit = check_integer(memory_limit, name="memory_limit", low=1)
        shortlist = check_integer(shortlist, name="shortlist", low=1)
        how: dict[str, Any] = {"split": bool(split), "validation": validation, "costs": costs, "positive": positive}
        how["resources"] = Resources(n_jobs, memory_limit, shortlist, progress)
        self.problem = make_problem(estimator, X, labels, noise=noise, metric=metric, seed=self.seed, **how)
        self._begin(labels, self._strategy.name, options_of(self._strategy, strategy, options))
        self._states: dict[bytes, CleaningState] = {}
        self._order = np.random.default_rng([self.seed, 1]).permutation(labels.n_items)
        if kept is not None:
            marks = {"votes": of_votes(labels), "features": fingerprint(self.problem.X), "estimator": repr(estimator)}
            kept.join(self, "cleaning", marks, stopping=("budget", "min_improvement"))

    def _choose(self, n: int) -> Batch:
        """The next items to clean, best first."""
        state = self._state_of(self._scored_after())
        scores = self._scores(state)
        costs = self.problem.costs[state.train]
        with np.errstate(invalid="ignore"):  # where scores are negative, dear items must not rank higher
            for_cost = np.where(scores > 0, scores / costs, scores * costs)
        ranked = np.where(self._available[state.train], for_cost, -np.inf)
        order = np.lexsort((self._order[state.train], -self._strategy.ties(state), -ranked))
        chosen = self._affordable(order[np.isfinite(ranked[order])].tolist(), state.train, n)
        reasons = self._strategy.reasons(state, scores, chosen)
        return self._batch(state.train[chosen].tolist(), scores[chosen], reasons)

    def _affordable(self, order: list[int], train: Codes, n: int) -> list[int]:
        """The first n of an order that what is left of the budget can pay for."""
        if self.budget is None:
            return order[:n]
        left = self.budget - self.spent - float(self.problem.costs[self.progress.waiting].sum())
        chosen: list[int] = []
        for k in order:
            cost = float(self.problem.costs[train[k]])
            if len(chosen) < n and cost <= left + 1e-9:
                chosen.append(k)
                left -= cost
        return chosen

    def _scores(self, state: CleaningState) -> Floats:
        key = "scores", self._strategy
        if key not in state.memo:
            state.memo[key] = self._strategy.scores(state)
        return np.asarray(state.memo[key])

    def _scored_after(self) -> int:
        """The number of events after which scores were last worked out; a share `prune` of the answers is left out."""
        if not self.prune:
            return len(self._events)
        n_scored = [math.floor(round(k * (1 - self.prune), 9)) for k in range(self.n_cleaned + 1)]
        last = n_scored.index(n_scored[-1])  # the first answer since which nothing was computed
        return self._ends_of_answers()[last] if last else 0

    @property
    def state(self) -> CleaningState:
        """The state after all answers."""
        return self._state_of(len(self._events))

    @property
    def n_cleaned(self) -> int:
        """Number of answers."""
        return self.progress.n_tells

    @property
    def spent(self) -> float:
        """The cost of the answers."""
        return float(self.problem.costs[self.progress.vetted].sum())

    @property
    def model_(self) -> Any:
        """The classifier, trained on the labels as they are now."""
        return self.state.model

    @property
    def labels_(self) -> npt.NDArray[Any]:
        """The label of each item now, None where it has none; shape (n_items,)."""
        codes = self.state.codes
        return np.array([self._names.classes[k] if k >= 0 else None for k in codes.tolist()], dtype=object)

    @property
    def score_(self) -> Estimate:
        """The metric of the model, from the noisy labels of the validation part, without bias.

        Without a split these are the labels it was trained on, and it comes out too high.
        """
        state, scorer = self.state, self.state.scorer
        codes = predicted_codes(state.model, state.validation_features, scorer.classes)
        value, error = float(scorer.scores(codes)), scorer.standard_error(codes)
        return normal_estimate(value, error, bounds=scorer.metric.bounds, name=scorer.metric.name)

    def _state_of(self, n_events: int) -> CleaningState:
        """The state after the first events of the log."""
        progress = self.progress if n_events == len(self._events) else fold(self._events[:n_events], self._names)
        # An item that is none of the classes has no label that training could use.
        truth = np.where(progress.truth < self._labels.n_classes, progress.truth, UNKNOWN)
        key = truth.tobytes()
        if key not in self._states:
            same = None
            for other in self._states.values():  # answers in the training part leave the validation as it was
                if np.array_equal(other.truth[self.problem.validates], truth[self.problem.validates]):
                    same = other.scorer
            while len(self._states) >= _KEPT:
                self._states.pop(next(iter(self._states)))
            self._states[key] = self.problem.after(truth, same)
        self._states[key] = self._states.pop(key)  # the last one used is the last one dropped
        return self._states[key]

    def _copy(self, events: Sequence[Event]) -> Self:
        other = super()._copy(events)
        other._states = dict(self._states)
        return other

    @property
    def _improvement(self) -> ExpectedImprovement:
        """What works out improvements: the strategy, or the default one beside another strategy."""
        if isinstance(self._strategy, ExpectedImprovement):
            return self._strategy
        return ExpectedImprovement(weigh=False)

    @property
    def value(self) -> Estimate:
        """What the next label is expected to improve the metric by; labels are drawn together towards their mean."""
        expected = self._improvement.improvement(self.state)
        best = None
        if self.strategy == ExpectedImprovement.name and len(expected.items):
            scores = self._scores(self.state)[expected.items]
            best = int(np.lexsort((-expected.uncertainty, -scores))[0])
        name = f"improvement of {self.problem.metric.name}"
        return value_of_cleaning(expected.improvement, expected.standard_error, best=best, name=name)

    @property
    def finished(self) -> str | None:
        """Why the session can stop, in one sentence; None while it should go on."""
        open_items = self.state.train[self.state.open]
        left = open_items[self._available[open_items]]
        if not len(left):
            return "Every training label is clean, waiting or passed."
        if self.budget is not None:
            rest = self.budget - self.spent
            if self.problem.costs[left].min() > rest + 1e-9:
                return f"The budget of {self.budget:g} is spent: {rest:g} is left, and no label is that cheap."
        if self.min_improvement is not None:
            value, metric = self.value, self.problem.metric.name
            chance = value.prob_above(self.min_improvement)
            if chance <= 1 - self.level:
                return (
                    f"The next label improves the {metric} by {value.mean:.5f}, and by more than "
                    f"{self.min_improvement:g} with probability {chance:.3f} only."
                )
        return None

    def curve(self, *, every: int = 10) -> list[dict[str, float]]:
        """The metric before any answer and after each `every`: n, cost, mean, low and high."""
        return [{"cost": then.spent} | then._row(then.score_) for then in self._after_answers(every, first=0)]

    def _history(self, every: int) -> tuple[list[dict[str, float]], str]:
        return self.curve(every=every), self.problem.metric.name

    def forecast(self) -> BudgetCurve:
        """What a budget is expected to buy from here on; `order` has positions in ``labels.items``."""
        expected = self._improvement.improvement(self.state)
        items = self.state.train[expected.items]
        curve = budget_curve(expected.improvement, expected.standard_error, self.problem.costs[items])
        return BudgetCurve(items[curve.order], curve.cost, curve.improvement, curve.standard_error)

    def clean_or_vote(
        self, item: Any, *, labeler: Any = None, labeler_error: Any = None, vote_cost: float = 0.1
    ) -> CleanOrVote:
        """Should this item go to the oracle, or back to the crowd for one more vote?

        Parameters
        ----------
        item : hashable. Of the training part, not clean yet.
        labeler : hashable, optional. The labeler who would vote; by default one as good as all of them are on average.
        labeler_error : float or array of shape (n_classes, n_classes), optional
            The error rate of the next labeler, or P(vote | truth) with rows the truth; instead of `labeler`.
        vote_cost : float. Of one vote; the oracle's cost is that of the item.
        """
        at, state = self._names.position(item), self.state
        found = np.flatnonzero(state.train[state.open] == at)
        if not len(found):
            raise InvalidParameter(
                f"item {item!r} has no label that may be wrong in the training part, got a clean or a validation item"
            )
        position = int(state.open[found[0]])
        candidates = flip_candidates(state.y, state.chances, items=[position])
        data = state.features, state.y, state.validation_features, state.scorer
        trained = retrained_scores(self.problem.estimator, *data, candidates, model=state.model)
        gains = np.zeros(self.problem.n_classes)
        gains[candidates.to] = state.scorer.sign * (trained.scores - trained.base)
        matrix, cost = self._next_labeler(labeler, labeler_error), float(self.problem.costs[at])
        return clean_or_vote(gains, state.chances[position], matrix, clean_cost=cost, vote_cost=vote_cost, item=item)

    def oracle_free(self, method: str = "noise-tolerant") -> Any:
        """A classifier from the labels as they are, without an oracle: "noise-removal" or "noise-tolerant"."""
        state, problem, names = self.state, self.problem, self.problem.labels.classes
        data = problem.estimator, state.features, state.y
        if method == "noise-tolerant":
            return noise_tolerant(*data, problem.matrices[state.group[state.train]], classes=names)
        if method != "noise-removal":
            raise InvalidParameter(f"method must be 'noise-removal' or 'noise-tolerant', got {method!r}")
        return noise_removed(*data, classes=names, keep=state.clean[state.train], random_state=self.seed)

    def _next_labeler(self, labeler: Any, error: Any) -> Floats:
        """P(vote | truth) of a labeler who is asked once more."""
        labels, c = self.problem.labels, self.problem.n_classes
        if error is None:
            matrices = labeler_matrices(labels, self.problem.noise)[0][:, :, :c]  # without abstentions
            names = labels.labelers.tolist()
            if labeler is not None and labeler not in names:
                raise InvalidParameter(f"there is no labeler {labeler!r}, got {preview(names)}")
            weights = labels.votes_per_labeler if labeler is None else np.eye(len(names))[names.index(labeler)]
            return normalise(np.einsum("t,tcv->cv", weights / max(weights.sum(), 1), matrices))
        if np.ndim(error) == 0:
            rate = check_number(error, name="labeler_error", low=0.0, high=1.0)
            return np.asarray((1 - rate) * np.eye(c) + rate / (c - 1) * (1 - np.eye(c)))
        return np.asarray(error, dtype=float)

    def __repr__(self) -> str:
        return (
            f"CleaningAdvisor({type(self.problem.estimator).__name__}, {self.problem.metric.name}, "
            f"{self.strategy}; {self.n_cleaned} of {int(self.problem.trains.sum()):,} labels cleaned)"
        )

    def _settings(self) -> dict[str, Any]:
        problem, named = self.problem, self.problem.labels.items[self.problem.validates]
        as_they_are = ("split", "weigh", "prune", "budget", "min_improvement", "level")
        return {
            **{name: getattr(self, name) for name in as_they_are},
            "noise": write_setting(self.noise),
            "metric": write_setting(self._metric, name=problem.metric.name),
            "validation": self.validation if isinstance(self.validation, float) else named.tolist(),
            "shortlist": problem.resources.shortlist,
            "costs": None if (problem.costs == 1).all() else problem.costs.tolist(),
            "positive": self._names.classes[problem.positive],
            "random_state": self.seed,
        }
