r"""How a metric is estimated after some answers: from the pool and the progress to draws for every system.

Nobody can tell the class of some items, and these are not like the others, so no model of the others says what they
are. Each is given the class that lowers the metric most, then the one that raises it most. Half of the draws of the
estimate come from either world. The ends of an interval of such draws with as much on either side solve

.. math:: \Phi(-c) + \Phi(-c - \Delta/\sigma) = 1 - \text{level},

where :math:`\Delta` is what lies between the two worlds: the interval of Imbens and Manski (2004) for a number that is
known up to bounds. It holds the truth whatever the undecided items are. The shortest interval does not: it takes from
the end where draws lie farther apart.

References
----------
G. Imbens, C. Manski, "Confidence intervals for partially identified parameters", Econometrica 72, 2004.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.registry import Registry
from trueup._base.types import Booleans, Codes, Floats, Positions, Target
from trueup._base.validation import check_number, preview
from trueup.active.fallible import ExpertErrors, draw_truths_of_fallible
from trueup.active.influence import Pool, count_slopes, expected_counts, influence
from trueup.active.rectified import (
    Drawn,
    PoolModel,
    corrected_probabilities,
    draw_rectified,
    drawn_items,
    known_classes,
    weighted_answers,
)
from trueup.data.encoding import vocabulary_from
from trueup.data.votes import recoded
from trueup.estimators.system_values import Population, population_for, system_values
from trueup.estimators.truth import settle_noise, truths_given_outputs
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, silenced_warnings
from trueup.metrics import check_scores
from trueup.noise import NoiseModel, resolve
from trueup.posteriors import DrawnEstimate, Estimate, IntervalKind, PointEstimate
from trueup.sessions.progress import Counted, Progress

_PRIOR_RIGHT = 0.75  # before anything is vetted a label is worth something, but is not taken for the truth


def learned_probabilities(
    noisy: npt.ArrayLike,
    scores: npt.ArrayLike,
    vetted: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    categories: npt.ArrayLike | None = None,
    classifier: Any = None,
    smoothing: float = 1.0,
) -> Floats:
    r"""P(positive) given the noisy label and the system's score, fitted on the vetted items.

    .. math:: p(z_i | s_i, y_i) = \frac{p(y_i | z_i)\, p(z_i | s_i)}{\sum_v p(y_i | z_i = v)\, p(z_i = v | s_i)}

    The flip rates :math:`p(y | z)` are counted and :math:`p(z | s)` is a classifier of the truth by the score. The
    label and the score are taken for independent given the truth. **Items that were chosen by their label and score
    are no fair sample for the counts**: the rates are then biased. Where the vetted items do not yet hold both classes,
    the classifier is fitted on the noisy labels of all items instead.

    Returns an array of shape (n_items,), the truth of vetted items, and P(positive) of others.

    P. Nguyen, D. Ramanan, C. Fowlkes, "Active testing: an efficient and robust framework for estimating accuracy",
    ICML 2018, equation 13.

    Parameters
    ----------
    noisy : array of shape (n_items,). The noisy label, 1 for positive and 0 for negative.
    scores : array of shape (n_items,). Those of the system under test.
    vetted : boolean array of shape (n_items,)
    truth : array of shape (n_items,). 1 or 0 where vetted; anything elsewhere.
    categories : integer array of shape (n_items,), optional
        Each category has flip rates of its own, drawn towards those of all, and its own intercept in the classifier.
    classifier : scikit-learn classifier, optional
        With ``predict_proba``; a logistic regression by default. It sees one column, the standardised score, and with
        categories an indicator column for each of them, as a sparse matrix.
    smoothing : float. How many items the prior of the rates of each true class is worth; see `flip_rates`.
    """
    from scipy.sparse import csr_array, hstack

    labels, seen, known = np.asarray(noisy), np.asarray(vetted, dtype=bool), np.asarray(truth)
    if labels.ndim != 1 or not len(labels) or seen.shape != labels.shape or known.shape != labels.shape:
        raise InvalidParameter(
            "noisy, vetted and truth must be one for each item, got the shapes "
            f"{labels.shape}, {seen.shape} and {known.shape}"
        )
    known = np.where(seen, known, 0)
    for codes, name in ((labels, "noisy"), (known, "truth")):
        wrong = codes[(codes != 0) & (codes != 1)]
        if wrong.size:
            raise InvalidLabels(
                f"{name} must be 1 for positive items and 0 for others, got {preview(wrong)}; "
                "compare class codes with the positive one first"
            )
    labels, known = labels.astype(np.intp), known.astype(np.intp)
    n, values = len(labels), check_scores(scores)
    if values.shape != (n,):
        raise InvalidPredictions(f"scores must be one for each of {n} items, got shape {values.shape}; pass one system")
    groups = np.zeros(n, dtype=np.intp) if categories is None else np.asarray(categories)
    if groups.shape != (n,) or groups.dtype.kind not in "iu" or int(groups.min()) < 0:
        raise InvalidParameter(
            f"categories must be codes from 0, one for each of {n} items, got {groups.dtype} of shape {groups.shape}"
        )
    worth = check_number(smoothing, name="smoothing", low=0.0)
    rates = flip_rates(labels, seen, known, groups, smoothing=worth)
    of_item = rates[groups, :, labels]  # p(label of the item | truth), shape (n_items, 2)
    features: Any = ((values - values.mean()) / (values.std() or 1.0))[:, None]
    if categories is not None:
        features = hstack([csr_array(features), csr_array((np.ones(n), (np.arange(n), groups)))], format="csr")
    chance = _positive_given_score(features, labels, seen, known, classifier)
    joint = of_item * np.stack([1 - chance, chance], axis=1)
    total = joint.sum(axis=1)
    learned = np.divide(joint[:, 1], total, out=chance.copy(), where=total > 0)
    return np.where(seen, known, learned)


def flip_rates(labels: Codes, seen: Booleans, known: Codes, groups: Codes, *, smoothing: float) -> Floats:
    r"""P(noisy label | truth) in each category, by counting on the items that were seen.

    .. math:: \hat p_c(y | z) = \frac{n_{czy} + m\, \hat p(y | z)}{n_{cz} + m}, \qquad
        \hat p(y | z) = \frac{n_{zy} + m\, \pi(y | z)}{n_z + m}

    where *c* is the category, *m* the `smoothing`, and :math:`\pi` calls three labels in four right. With
    ``smoothing=0`` it is the maximum likelihood of the paper, with the prior where a class was not seen.
    """
    n_groups = int(groups.max()) + 1
    cell = 4 * groups + 2 * known + labels
    counts = np.bincount(cell[seen], minlength=4 * n_groups).reshape(n_groups, 2, 2).astype(float)
    rates = np.array([[_PRIOR_RIGHT, 1 - _PRIOR_RIGHT], [1 - _PRIOR_RIGHT, _PRIOR_RIGHT]])
    for level in (counts.sum(axis=0), counts):
        total = level.sum(axis=-1, keepdims=True) + smoothing
        before = np.broadcast_to(rates, level.shape).copy()
        rates = np.divide(level + smoothing * rates, total, out=before, where=total > 0)
    return np.asarray(rates)


def _positive_given_score(features: Any, labels: Any, seen: Booleans, known: Any, classifier: Any) -> Floats:
    """P(z = 1 | s) of all items."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    if classifier is not None and not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InvalidParameter(
            f"classifier must be a scikit-learn classifier with predict_proba, got {classifier!r}; "
            "e.g. sklearn.linear_model.LogisticRegression()"
        )
    n = len(labels)
    rows, target = np.flatnonzero(seen), known[seen]
    if len(np.unique(target)) < 2:
        rows, target = np.arange(n), np.where(seen, known, labels)
    if len(np.unique(target)) < 2:
        # Nothing tells the classes apart: the share of positives, kept from certainty as by half an item of each.
        return np.full(n, (target.sum() + 0.5) / (n + 1))
    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    model.fit(features[rows], target)
    column = int(np.flatnonzero(np.asarray(model.classes_) == 1)[0])
    return np.asarray(model.predict_proba(features)[:, column], dtype=float)


class UndecidedEstimate(DrawnEstimate):
    """Draws of which half have the undecided items at worst, and half at best."""

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal") -> tuple[float, float]:
        """An interval that holds whatever the undecided items are, by default with as much on either side."""
        return super().interval(level, kind)


def two_worlds(pool: Pool, counted: Counted, systems: Sequence[int]) -> tuple[Progress, Progress]:
    """The answers with the undecided draws at worst and at best."""
    effect = influence(pool, pool.prior, system=systems[0])
    for other in systems[1:]:
        effect = effect.minus(influence(pool, pool.prior, system=other))
    effects = effect.effects[counted.undecided]
    lowest, highest = counted.progress.truth.copy(), counted.progress.truth.copy()
    lowest[counted.undecided], highest[counted.undecided] = effects.argmin(axis=1), effects.argmax(axis=1)
    return replace(counted.progress, truth=lowest), replace(counted.progress, truth=highest)


def pool_with_outside(pool: Pool) -> Pool:
    """The pool with one more class, for items that are none of the classes; no vote and no system names it."""
    old, names, tables = pool.labels, pool.labels.classes.tolist(), pool.aligned.probabilities
    outside: Any = "none of these"
    if all(isinstance(name, int) for name in names):  # of the kind of the others, so that users' functions compare them
        outside = max(names) + 1
    while outside in names:
        outside += "_"
    classes = vocabulary_from([*names, outside])
    labels = recoded(old, old.items, old.labelers, classes, old.answers[old.n_classes :].tolist())
    tables = None if tables is None else np.pad(tables, [(0, 0), (0, 0), (0, 1)])
    aligned = replace(pool.aligned, n_classes=labels.n_classes, probabilities=tables)
    return replace(pool, labels=labels, aligned=aligned, prior=np.pad(pool.prior, [(0, 0), (0, 1)]))


ENOUGH_DRAWS = 20  # from which an interval was measured to hold, and a rule may stop a session
_FEWEST = 2  # answers that have a spread
_ROUNDING = 1e-12  # of a spread: all answers are alike


@dataclass(frozen=True, eq=False)
class Request:
    """What an estimator is given.

    Attributes
    ----------
    model : PoolModel. How the noise model can be corrected.
    category : int, optional. One only, in place of the mean over all.
    voted : Pool, optional. The pool without the class of items that are none of the classes, where `pool` has it.
    errors : ExpertErrors, optional. How often experts err; without it every answer is right.
    """

    pool: Pool
    progress: Progress
    model: PoolModel
    noise: str | NoiseModel
    target: Target
    n_draws: int
    rng: np.random.Generator
    category: int | None = None
    voted: Pool | None = None
    errors: ExpertErrors | None = None


@dataclass(frozen=True, eq=False)
class Estimated:
    """The metric of every system, shape (n_draws, n_systems); a single row is a number without a spread.

    Attributes
    ----------
    notes : tuple of str. Sentences a user should read.
    by_chance : bool. Whether the items the interval rests on were drawn by chance; if not, nothing warrants it.
    n_worlds : int. 2 where draws are undecided: the first half of the values has these at worst, the other at best.
    """

    values: Floats
    notes: tuple[str, ...] = ()
    by_chance: bool = True
    n_worlds: int = 1


def as_estimate(values: Floats, bounds: tuple[float, float], name: str, n_worlds: int = 1) -> Estimate:
    """One number without a spread, or draws of a distribution, or of two where draws are undecided."""
    if len(values) == 1:
        return PointEstimate(float(values[0]), bounds=bounds, name=name)
    return (DrawnEstimate if n_worlds == 1 else UndecidedEstimate)(values, bounds=bounds, name=name)


def share_better(apart: Floats, *, higher_is_better: bool) -> float:
    """P(the first of two systems is better) from draws of their difference, ties counted half."""
    apart = apart[~np.isnan(apart)]  # draws on which the metric has no value for both say nothing
    share = 0.5 + 0.5 * np.sign(apart).mean() if len(apart) else 0.5
    return float(share if higher_is_better else 1 - share)


class TooFewAnswers(InvalidParameter):
    """An estimator that rests on answers alone has too few of them yet."""


class MetricEstimator(ABC):
    """How a metric is estimated after some answers.

    A frozen dataclass of its options that keeps nothing else: what it says is a function of the request.

    Attributes
    ----------
    is_warranted : bool
        Whether its interval holds by the chances of the draws, whatever the votes are. One that believes a model has no
        such warrant, and is not shown to people who decide by it when to stop.
    """

    name: ClassVar[str]
    is_warranted: ClassVar[bool] = True

    def refusal(self, pool: Pool) -> str | None:
        """Why it cannot work on a pool, in one sentence, before anyone is paid to look at it; None if it can."""
        return None

    def believed(self, pool: Pool, progress: Progress, model: PoolModel) -> Floats:
        """P(class) of every item, as a strategy then sees it; by default those of the corrected noise model."""
        return corrected_probabilities(model, pool, progress)

    @abstractmethod
    def estimate(self, request: Request) -> Estimated:
        """The metric of every system."""


@dataclass(frozen=True)
class Rectified(MetricEstimator):
    """The core: what votes say, corrected by the answers from the first on."""

    name: ClassVar[str] = "rectified"

    def estimate(self, request: Request) -> Estimated:
        pool, progress = request.pool, request.progress
        answers = weighted_answers(pool, progress)
        truths = draw_rectified(request.model, pool, progress, n_draws=request.n_draws, rng=request.rng)
        values = _values(request, truths)
        if request.errors is None:
            return Estimated(values, (), answers.by_chance)
        truths = draw_truths_of_fallible(
            request.model, pool, progress, request.errors, n_draws=request.n_draws, rng=request.rng
        )
        allowing = _values(request, truths)
        spread, without = np.nanstd(allowing, axis=0)[0], np.nanstd(values, axis=0)[0]
        note = request.errors.sentence(spread / without if without > 0 else np.inf)
        return Estimated(allowing, (note,), answers.by_chance)


@dataclass(frozen=True)
class Bayes(MetricEstimator):
    """The noise model with the answers as gold."""

    name: ClassVar[str] = "bayes"
    is_warranted: ClassVar[bool] = False

    def estimate(self, request: Request) -> Estimated:
        pool, truth = request.voted or request.pool, request.progress.truth
        labels, vetted = pool.labels, np.flatnonzero((truth >= 0) & (truth < pool.n_classes))
        if len(vetted):
            classes = labels.classes[truth[vetted]].tolist()
            labels = labels.with_gold(dict(zip(labels.items[vetted].tolist(), classes, strict=True)), correct=True)
        with silenced_warnings():
            draws = truths_given_outputs(
                labels,
                settle_noise(resolve(request.noise), labels, draw=True),
                pool.aligned,
                used=pool.used,
                n_draws=request.n_draws,
                random_state=request.rng,
            )
        truths = np.where(truth >= pool.n_classes, truth, draws.truths)  # none of these is what no vote can say
        notes = ("The noise model is believed: nothing corrects it where labelers err together.", *draws.notes)
        return Estimated(_values(request, truths), notes)


@dataclass(frozen=True)
class Learned(MetricEstimator):
    """P(positive) as each system's scores teach it, by equation 13 of Nguyen et al. (2018)."""

    name: ClassVar[str] = "learned"
    is_warranted: ClassVar[bool] = False

    def refusal(self, pool: Pool) -> str | None:
        if pool.n_classes == 2 and pool.aligned.scores is not None:
            return None
        outputs = "no scores" if pool.aligned.scores is None else "scores"
        return (
            f'`estimator="learned"` is for two classes and systems that give scores, got {pool.n_classes} classes and '
            f'{outputs}; use "rectified"'
        )

    def believed(self, pool: Pool, progress: Progress, model: PoolModel) -> Floats:
        """With several systems it believes something else for each; the strategy sees the mean."""
        positive = np.mean(self._of_systems(pool, progress), axis=0)
        table = np.empty((pool.n_items, 2))
        table[:, pool.positive], table[:, 1 - pool.positive] = positive, 1 - positive
        return table

    def estimate(self, request: Request) -> Estimated:
        pool = request.pool
        columns = []
        for system, p in enumerate(self._of_systems(pool, request.progress)):
            drawn = request.rng.random((min(request.n_draws, 400), pool.n_items)) < p
            truths = np.where(drawn, pool.positive, 1 - pool.positive)
            columns.append(_values(request, truths)[:, system])
        notes = ("The learned estimator takes the vetted items for a random sample, and its probabilities for known.",)
        return Estimated(np.stack(columns, axis=1), notes)

    def _of_systems(self, pool: Pool, progress: Progress) -> list[Floats]:
        assert pool.aligned.scores is not None
        known = known_classes(pool, progress)
        noisy = pool.noisy == pool.positive
        return [
            learned_probabilities(noisy, scores, known >= 0, known == pool.positive, categories=pool.categories)
            for scores in pool.aligned.scores
        ]


@dataclass(frozen=True)
class Naive(MetricEstimator):
    """The noisy labels, with the answers in the place of theirs."""

    name: ClassVar[str] = "naive"
    is_warranted: ClassVar[bool] = False

    def estimate(self, request: Request) -> Estimated:
        known = known_classes(request.pool, request.progress)
        truth = np.where(known >= 0, known, request.pool.noisy)
        return Estimated(_values(request, truth[None]), ("The noisy labels are taken for true where nobody looked.",))


@dataclass(frozen=True)
class VettedOnly(MetricEstimator):
    """The answers alone, each weighted by the inverse of its chance; on the sample, beside what counts for itself."""

    name: ClassVar[str] = "vetted-only"

    def estimate(self, request: Request) -> Estimated:
        pool, answers = request.pool, weighted_answers(request.pool, request.progress)
        n = len(answers.positions)
        if n < _FEWEST:
            raise TooFewAnswers(
                f'`estimator="vetted-only"` needs at least {_FEWEST} answers that count, got {n}; tell more, the first '
                "draws first"
            )
        at, population = answers.positions, Population(weights=answers.weights)
        if request.target == "sample":
            aside = np.flatnonzero(answers.own > 0)
            at = np.concatenate([at, aside])
            weights = np.concatenate([answers.weights * answers.n_pool / n, answers.own[aside]])
            left = np.sqrt(max(1 - n / answers.n_pool, _ROUNDING))  # those that were looked at have no uncertainty
            population = Population(weights=weights, spread=np.where(np.arange(len(at)) < n, left, 0.0))
        known = known_classes(pool, request.progress)
        truths = np.broadcast_to(known[at], (request.n_draws, len(at)))
        if pool.categories is None:
            values = _values(request, truths, at, population=population)
        else:  # what is unseen would weigh too much in categories of a few answers
            values = _values(request, truths, at, weights=population.masses(truths.shape, request.rng))
        return Estimated(values, by_chance=answers.by_chance)


@dataclass(frozen=True)
class Lure(MetricEstimator):
    """The answers with weights that make their mean unbiased, as published."""

    name: ClassVar[str] = "lure"
    uses_model: ClassVar[bool] = False

    def refusal(self, pool: Pool) -> str | None:
        if pool.metric.needs == "counts" and pool.categories is None:
            return None
        got = "categories" if pool.metric.needs == "counts" else f"metric {pool.metric.name!r}"
        return (
            f'`estimator="{self.name}"` is for metrics of the confusion counts of the whole pool, got {got}; use '
            '"rectified"'
        )

    def estimate(self, request: Request) -> Estimated:
        pool, rng = request.pool, request.rng
        assert pool.aligned.codes is not None
        drawn, answers = drawn_items(pool, request.progress), weighted_answers(pool, request.progress)
        drawn = drawn if answers.by_chance else answers
        n, n_pool = len(drawn.positions), drawn.n_pool
        if n < _FEWEST:
            raise TooFewAnswers(
                f"at least {_FEWEST} answers that count are needed for this estimator, got {n}; tell more, the first "
                "draws first"
            )
        known = known_classes(pool, request.progress)
        parts = [weighted_metric(pool, codes, known, drawn, tuned=self.uses_model) for codes in pool.aligned.codes]
        values = np.array([part.value for part in parts])
        # Those that were looked at have no uncertainty on the sample; the others are what the drawn ones stand for.
        scale = np.sqrt((n_pool - n) / n_pool / (n * (n - 1)))
        normal = _normal_sums(np.stack([part.influence_values for part in parts]) * scale, request)
        if request.target == "population":  # another pool would have had other items
            normal += _normal_sums(np.stack([part.pool_pulls for part in parts]), request)
        student = normal * np.sqrt((n - 1) / rng.chisquare(n - 1, size=(request.n_draws, 1)))
        worth = n * n_pool / (n_pool - n + 1)
        return Estimated(_within_bounds(values, student, worth, pool.metric.bounds), by_chance=answers.by_chance)


@dataclass(frozen=True)
class PredictionPowered(Lure):
    """PPI++: as `Lure`, with the noise model added by the weight of least variance."""

    name: ClassVar[str] = "ppi++"
    uses_model: ClassVar[bool] = True


ESTIMATORS: Registry[type[MetricEstimator]] = Registry(
    "estimator",
    {kind.name: kind for kind in (Rectified, Bayes, Learned, Naive, VettedOnly, PredictionPowered, Lure)},
    group="trueup.test_estimators",
)


def estimate_metric(estimator: MetricEstimator, request: Request) -> Estimated:
    """The metric of every system, with all there is to say of it; where every item is known, the metric itself."""
    known = known_classes(request.pool, request.progress)
    if request.target == "sample" and known.min() >= 0 and request.errors is None:
        return Estimated(np.repeat(_values(request, known[None]), request.n_draws, axis=0))
    return estimator.estimate(request)


def _values(
    request: Request,
    truths: Codes,
    positions: Positions | None = None,
    *,
    population: Population | None = None,
    weights: npt.NDArray[np.float32] | None = None,
) -> Floats:
    """The metric of every system on every draw; with categories, the mean over those where it is defined."""
    pool = request.pool
    at = np.arange(pool.n_items) if positions is None else positions
    if population is None and weights is None:
        population = population_for(request.target)
    groups = [group for category, group in pool.by_category(at) if request.category in (None, category)]
    if not groups:
        return np.full((len(truths), pool.n_systems), np.nan)
    parts = [
        system_values(
            truths if len(group) == truths.shape[1] else truths[:, group],  # all of them stand in their order
            pool.aligned.at_items(at[group]),
            pool.metric,
            classes=pool.labels.classes,
            positive=pool.positive,
            random_state=request.rng,
            population=population,
            weights=None if weights is None else weights[:, group],
        )
        for group in groups
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that no category defines is nan
        return np.asarray(np.nanmean(parts, axis=0))


def _normal_sums(influence_values: Floats, request: Request) -> Floats:
    """Sums of pulls, of shape (n_systems, n), each times a normal number: draws of shape (n_draws, n_systems)."""
    root = np.linalg.qr(influence_values.T, mode="r")  # of their covariance: as many normal numbers as systems will do
    return np.asarray(request.rng.standard_normal((request.n_draws, len(root))) @ root)


def _within_bounds(values: Floats, student: Floats, n: float, bounds: tuple[float, float]) -> Floats:
    """Draws around values of a metric between two bounds, shape (n_draws, n_systems).

    Student's law has no bounds, and no spread where all of a few answers are right. Where the metric is a share, each
    draw keeps its place among the others, under a beta law of the same spread with half an answer added to either side,
    as Jeffreys' prior does: what that adds goes as one by the number of answers.
    """
    low, high = bounds
    if not np.isfinite(high - low):
        return values + student
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    spread = share * (1 - share)
    variance = student.var(axis=0) / (high - low) ** 2
    worth = np.full(len(share), n)
    np.divide(spread, variance, out=worth, where=(variance > _ROUNDING * spread) & (spread > 0))
    places = (scipy.stats.rankdata(student, axis=0, method="ordinal") - 0.5) / len(student)
    drawn = scipy.stats.beta.ppf(places, share * worth + 0.5, (1 - share) * worth + 0.5)
    return np.asarray(low + (high - low) * drawn)


@dataclass(frozen=True, eq=False)
class WeightedMetric:
    """The metric of one system, and what the items do to it."""

    value: float
    # shape (n_drawn,), of mean zero: for the chance by which these items were drawn and not others of the pool
    influence_values: Floats
    # shape (n_known,); of each item whose class is known, for the chance by which the pool holds these items and not
    # others. The sum of their squares is the variance of the metric over such pools
    pool_pulls: Floats


def weighted_metric(pool: Pool, codes: Codes, known: Codes, drawn: Drawn, *, tuned: bool) -> WeightedMetric:
    """The metric of one system from the drawn items, beside what counts for itself."""
    metric, n_classes, has_output, at = pool.metric, pool.n_classes, codes >= 0, drawn.positions
    aside, n = np.flatnonzero(drawn.own > 0), len(at)
    with_output = aside[has_output[aside]]
    known_counts = np.zeros((n_classes, n_classes))
    np.add.at(known_counts, (known[with_output], codes[with_output]), drawn.own[with_output])
    modelled = expected_counts(((1 - drawn.own)[:, None] * pool.prior)[has_output], codes[has_output])
    mine = np.flatnonzero(has_output[at])
    seen = np.zeros((n, n_classes, n_classes))
    expected = np.zeros_like(seen)
    seen[mine, known[at[mine]], codes[at[mine]]] = 1.0
    expected[mine, :, codes[at[mine]]] = pool.prior[at[mine]]
    each = drawn.weights * drawn.n_pool  # what one drawn item stands for, times their number
    weight, pull_seen, pull_expected = 0.0, np.zeros(n), np.zeros(n)
    counts, slopes = known_counts, np.zeros((n_classes, n_classes))
    for _ in range(3 if tuned else 1):
        rest = np.einsum("n,nyp->yp", each, seen - weight * expected) / n
        counts = np.maximum(known_counts + weight * modelled + rest, 0.0)
        slopes = count_slopes(metric, counts)
        pull_seen = each * np.einsum("yp,nyp->n", slopes, seen)
        pull_expected = each * np.einsum("yp,nyp->n", slopes, expected)
        if tuned:
            spread = float(np.var(pull_expected))  # the weight of least variance, between nothing and all of the model
            shared = np.mean((pull_seen - pull_seen.mean()) * (pull_expected - pull_expected.mean()))
            weight = float(np.clip(shared / spread, 0.0, 1.0)) if spread > 0 else 0.0
    pull = pull_seen - weight * pull_expected
    if tuned:  # the weight was learned from the same answers; what each would be without itself (the jackknife)
        apart = pull_expected - pull_expected.mean()
        leverage = 1 / n + np.divide(apart**2, (apart**2).sum(), out=np.zeros_like(apart), where=apart != 0)
        pull = (pull - pull.mean()) / (1 - np.minimum(leverage, 0.8))
    items = np.concatenate([at, aside])
    stands_for = np.concatenate([np.maximum(each, 0.0) / n, drawn.own[aside]])
    slope = np.where(has_output[items], slopes[known[items], codes[items]], 0.0)
    centred = slope - np.average(slope, weights=stands_for)
    return WeightedMetric(float(metric(counts)), pull - pull.mean(), np.sqrt(stands_for) * centred)
