"""Labels that are probably wrong, the problem and the state of an advisor, and checks until labels are good enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, check_number, preview, seed_of
from trueup.cleaning.emi import EMI, expected_improvement
from trueup.cleaning.flips import UnbiasedScorer, count_metric, fitted, true_class_probabilities
from trueup.core.base import base_of
from trueup.core.truth import labels_of_base
from trueup.data.encoding import Vocabulary, vocabulary_from
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.estimators.published.tars2018.consolidation import consolidate, labeler_matrices
from trueup.estimators.truth import settle_noise
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.metrics import Metric
from trueup.noise import NoiseModel, fit, resolve
from trueup.noise.em import partitions_over
from trueup.training.copies import aligned_columns, take


@dataclass(frozen=True, eq=False)
class LikelyWrong:
    """Labels from the likeliest wrong to the least likely.

    Attributes
    ----------
    items : array of shape (n,)
    labels : array of shape (n,). The consolidated label of each.
    chances : array of shape (n,). The probability that it is wrong.
    """

    items: Vocabulary = field(repr=False)
    labels: Vocabulary = field(repr=False)
    chances: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.items.tolist())

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row an item: item, label, chance."""
        return make_frame({"item": self.items, "label": self.labels, "chance": self.chances}, backend=backend)

    def __repr__(self) -> str:
        shown = zip(self.items.tolist()[:10], self.labels.tolist(), self.chances.tolist(), strict=False)
        lines = [f"LikelyWrong of {len(self):,} labels"]
        lines += [f"  {item!r}: {label!r} is wrong with probability {chance:.3f}" for item, label, chance in shown]
        return "\n".join(lines)


def likely_wrong(
    labels: Labels | LabelScan[Labels],
    *,
    noise: str | NoiseModel = "dawid-skene",
    most: int = 1000,
    random_state: RandomState = 0,
    engine: str | None = None,
) -> LikelyWrong:
    """The consolidated labels that are most likely wrong, whatever they mean for a model.

    The scores are those of the strategy "noise-rate" of `CleaningAdvisor` and need no features: a first list for an
    oracle where there are more votes than memory holds.

    Parameters
    ----------
    labels : Labels or LabelScan. Gold items are right and are left out, and so are items without votes.
    noise : str or NoiseModel. With a confusion matrix for each labeler, known or fitted.
    most : int. Number of labels; of equal ones those whose items come first.
    random_state : int, Generator or None. For matrices of labels that can only be drawn.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        What works it out, "torch" for votes in memory, "dask" for votes that are scanned; see `trueup.engines`.
    """
    if not isinstance(labels, Labels | LabelScan):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="cleaning.likely_wrong")
    check_integer(most, name="most", low=1)
    seed, model = seed_of(random_state), resolve(noise)
    with using_engine(engine), silenced_warnings():
        fitted = model if model.is_known else fit(labels, model)
        if isinstance(labels, Labels):
            return worst_of(labels, fitted, most, seed)
        join = partial(_joined, most=most)
        return partitions_over(labels, join, worst_of, fitted, most, seed)  # type: ignore[no-any-return]


def worst_of(labels: Labels, model: NoiseModel, most: int, seed: int) -> LikelyWrong:
    """The labels of some items that are most likely wrong."""
    codes, group, matrices, prior = consolidated_labels(labels, model, seed).values()
    at = np.flatnonzero((codes >= 0) & (labels.gold_codes < 0))
    codes = codes[at]
    own = true_class_probabilities(codes, matrices[group[at]], prior)[np.arange(len(at)), codes]
    return _sorted(LikelyWrong(labels.items[at], labels.classes[codes], 1 - own), most)


def _joined(first: LikelyWrong, second: LikelyWrong, *, most: int) -> LikelyWrong:
    items = vocabulary_from([*first.items.tolist(), *second.items.tolist()])
    labels = vocabulary_from([*first.labels.tolist(), *second.labels.tolist()])
    return _sorted(LikelyWrong(items, labels, np.concatenate([first.chances, second.chances])), most)


def _sorted(labels: LikelyWrong, most: int) -> LikelyWrong:
    """The likeliest first, equal ones by their items, whatever the order they came in."""
    chances = labels.chances.round(12)
    least = np.partition(chances, -most)[-most] if len(chances) > most else 0.0
    kept = np.flatnonzero(chances >= least)
    names = labels.items.tolist()
    order = np.array(sorted(kept.tolist(), key=lambda k: (-chances[k], names[k]))[:most], dtype=np.int64)
    return LikelyWrong(labels.items[order], labels.labels[order], labels.chances[order])


@dataclass(frozen=True)
class Resources:
    """How much may be computed, and where."""

    n_jobs: int | None = None  # as for joblib
    memory_limit: int = 1 << 30  # bytes for temporary arrays
    shortlist: int = 50  # items for which models are trained where there is no fast path
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True, eq=False)
class CleaningProblem:
    """The data of an advisor, in the order of ``labels.items``.

    Attributes
    ----------
    estimator : scikit-learn classifier. Not fitted, with a seed of its own.
    noise : NoiseModel. Fitted.
    codes : integer array of shape (n_items,). The consolidated label of each item; -1 for an item without votes.
    group : integer array of shape (n_items,). Which of `matrices` is the item's.
    matrices : array of shape (n_groups, n_classes, n_classes)
        P(consolidated label | truth), rows the truth. The last one is the identity, for clean items.
    prior : array of shape (n_classes,)
    trains, validates : boolean arrays of shape (n_items,). The two parts; without a split both are all items.
    costs : array of shape (n_items,). What the oracle's look at each item costs.
    positive : int. Code of the positive class.
    """

    estimator: Any
    X: Any
    labels: Labels
    noise: NoiseModel
    codes: Codes
    group: Codes
    matrices: Floats
    prior: Floats
    trains: Booleans
    validates: Booleans
    costs: Floats
    metric: Metric
    positive: int
    resources: Resources = field(default_factory=Resources)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.codes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.prior)

    @property
    def split(self) -> bool:
        """Whether the two parts share no item."""
        return not (self.trains & self.validates).any()

    def scorer(self, truth: Codes) -> UnbiasedScorer:
        """The unbiased metric on the validation part, where `truth` (-1: unknown) holds what an oracle said."""
        return self.after(truth).scorer

    def after(self, truth: Codes, scorer: UnbiasedScorer | None = None) -> CleaningState:
        """The state once these truths are known (-1: unknown), perhaps with a scorer that another state has made."""
        return CleaningState(self, truth, scorer)


class CleaningState:
    """The labels after some answers, and the model they give; what a strategy sees.

    Positions "in the training part" count the items of `train` only.

    Attributes
    ----------
    codes : integer array of shape (n_items,)
        The labels as they are: the oracle's where it spoke, else the consolidated votes.
    clean : boolean array of shape (n_items,). Items whose truth is known.
    train, validation : integer arrays. The items of each part that have a label.
    memo : dict. What strategies have worked out for this state.
    """

    def __init__(self, problem: CleaningProblem, truth: Codes, scorer: UnbiasedScorer | None = None) -> None:
        self.problem, self.truth = problem, truth
        self.memo: dict[Hashable, Any] = {}
        self.clean = (truth >= 0) | (problem.labels.gold_codes >= 0)
        self.codes = np.where(truth >= 0, truth, problem.codes)
        self.group = np.where(truth >= 0, len(problem.matrices) - 1, problem.group)
        self.train = np.flatnonzero(problem.trains & (self.codes >= 0))
        self.validation = np.flatnonzero(problem.validates & (self.codes >= 0))
        if scorer is not None:
            self.__dict__["scorer"] = scorer

    @property
    def y(self) -> Codes:
        """The training labels, as codes."""
        return self.codes[self.train]

    @cached_property
    def features(self) -> Any:
        """The features of the training part."""
        return take(self.problem.X, self.train)

    @cached_property
    def validation_features(self) -> Any:
        """The features of the validation part."""
        return take(self.problem.X, self.validation)

    @cached_property
    def model(self) -> Any:
        """The classifier trained on the labels as they are."""
        return fitted(self.problem.estimator, self.features, self.problem.labels.classes[self.y])

    @cached_property
    def scorer(self) -> UnbiasedScorer:
        """The unbiased metric on the validation part."""
        problem, matrices = self.problem, self.problem.matrices[self.group[self.validation]]
        names = problem.labels.classes
        return UnbiasedScorer(self.codes[self.validation], matrices, metric=problem.metric, classes=names)

    @cached_property
    def chances(self) -> Floats:
        """P(truth = c | label) in the training part, from the votes alone; shape (n_train, n_classes)."""
        problem = self.problem
        return true_class_probabilities(self.y, problem.matrices[self.group[self.train]], problem.prior)

    @cached_property
    def model_chances(self) -> Floats:
        """P(class | features) of the model in the training part; shape (n_train, n_classes)."""
        chances, names = self.model.predict_proba(self.features), self.problem.labels.classes
        return aligned_columns(chances, np.asarray(self.model.classes_), names)

    def improvement(
        self, scorer: UnbiasedScorer, chances: Floats, *, items: Codes | None = None, **options: Any
    ) -> EMI:
        """The improvement by each label that may be wrong, as `expected_improvement` gives it with these options."""
        items = self.open if items is None else items
        data = self.features, self.y, self.validation_features, scorer, chances
        options |= vars(self.problem.resources)
        return expected_improvement(self.problem.estimator, *data, items=items, model=self.model, **options)

    @cached_property
    def open(self) -> Codes:
        """The positions in the training part whose label may be wrong."""
        of_label = self.chances[np.arange(len(self.train)), self.y]
        return np.flatnonzero(~self.clean[self.train] & (of_label < 1))


def consolidated_labels(labels: Labels, model: NoiseModel, seed: int) -> dict[str, Any]:
    """The codes, group, matrices and prior of a `CleaningProblem`, under a fitted model."""
    consolidated = consolidate(labels, model, random_state=seed)
    return {
        "codes": consolidated.codes.astype(np.int64),
        "group": np.where(labels.gold_codes >= 0, len(consolidated.matrices), consolidated.group).astype(np.int64),
        "matrices": np.concatenate([consolidated.matrices, np.eye(labels.n_classes)[None]]),
        "prior": labeler_matrices(labels, model)[1],
    }


def make_problem(
    estimator: Any,
    X: Any,
    labels: Labels,
    *,
    noise: str | NoiseModel,
    metric: str | Metric,
    split: bool,
    validation: Any,
    costs: Any,
    positive: Hashable | None,
    seed: int,
    resources: Resources,
) -> CleaningProblem:
    """Check what a user passed, fit the noise, consolidate the votes and split the items."""
    if not isinstance(labels, Labels):
        raise InvalidLabels(
            f"`labels` must be Labels, got {type(labels).__name__}; make them with Labels.from_frame or from_matrix, "
            "or read a scan with scan.read(); a first list from votes alone is cleaning.likely_wrong",
        )
    rows = _rows(X, labels)
    with silenced_warnings():
        model = settle_noise(resolve(noise), labels, draw=False)
    consolidated = consolidated_labels(labels, model, seed)
    codes = consolidated["codes"]
    validates = _validation_part(validation, codes, labels, seed) if split else np.ones(labels.n_items, dtype=bool)
    names = labels.classes.tolist()
    code = labels.n_classes - 1 if positive is None else labels.class_code(positive)
    problem = CleaningProblem(
        estimator=_seeded(estimator, seed),
        X=rows,
        labels=labels,
        noise=model,
        **consolidated,
        trains=~validates if split else validates,
        validates=validates,
        costs=_costs(costs, labels),
        metric=count_metric(metric, names, names[code]),
        positive=code,
        resources=resources,
    )
    seen = np.unique(codes[codes >= 0])
    for part, mask in (("validation", problem.validates), ("training", problem.trains)):
        lost = np.setdiff1d(seen, codes[mask])
        if len(lost) or not len(seen):
            raise InvalidLabels(
                f"the {part} part must have labels of every class, got none of "
                f"{preview(labels.classes[lost], most=10)}; change `validation`, pass `split=False`, or add items"
            )
    if len(seen) < 2:
        shown = preview(labels.classes[seen])
        raise InvalidLabels(f"a classifier needs labels of two classes, got {shown} only; add items")
    state = problem.after(np.full(problem.n_items, -1, dtype=np.int64))
    if not len(state.open):
        raise InvalidLabels(
            f"every training label is already clean, got {int(state.clean.sum())} gold items and no label that may be "
            "wrong; train the classifier on them"
        )
    return problem


def _rows(X: Any, labels: Labels) -> Any:
    """The features in the order of the items."""
    if isinstance(X, Mapping):
        names = labels.items.tolist()
        missing = [item for item in names if item not in X]
        if missing or len(X) != len(names):
            wrong = f"none for {preview(missing)}" if missing else f"{len(X)} rows for {len(names)} items"
            raise InvalidParameter(f"X must have a row for each item of the labels and no others, got {wrong}")
        return np.asarray([X[item] for item in names])
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not hasattr(X, "iloc"):
        X = np.asarray(X)
    if X.ndim < 1 or X.shape[0] != labels.n_items:
        n = X.shape[0] if X.ndim else 0
        raise InvalidParameter(
            f"X and labels must be of the same items, got {n} rows for {labels.n_items} items; pass the rows in the "
            "order of labels.items, or a mapping from item to row"
        )
    return X


def _seeded(estimator: Any, seed: int) -> Any:
    """A clone whose random parts are the same at every fit, so that a log can be replayed."""
    from sklearn.base import clone

    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise InvalidParameter(
            f"estimator must be a scikit-learn classifier with fit and predict_proba, got {estimator!r}; pass e.g. "
            "LogisticRegression()"
        )
    cloned = clone(estimator)
    options = cloned.get_params(deep=True)
    unset = {k: seed for k, v in options.items() if v is None and k.split("__")[-1] == "random_state"}
    return cloned.set_params(**unset)


def _validation_part(validation: Any, codes: Codes, labels: Labels, seed: int) -> Booleans:
    """Which items evaluate: a share of each class drawn at random, or those that were named."""
    part = np.zeros(len(codes), dtype=bool)
    if isinstance(validation, int | float) and not isinstance(validation, bool):
        share = check_number(validation, name="validation", low=0.0, high=1.0, strict=True)
        rng = np.random.default_rng([seed, 0])
        for code in range(labels.n_classes):
            at = rng.permutation(np.flatnonzero(codes == code))
            part[at[: round(share * len(at))]] = True
        return part
    if isinstance(validation, str) or not hasattr(validation, "__len__"):
        raise InvalidParameter(
            f"`validation` must be a share of the items, a list of items or a mask, got {validation!r}; pass e.g. 0.3"
        )
    mask = np.asarray(validation)
    if mask.dtype == bool:
        if mask.shape != part.shape:
            raise InvalidParameter(f"`validation` must be a mask of {len(codes)} items, got shape {mask.shape}")
        return mask.copy()
    part[labels.item_codes(list(validation))] = True
    return part


def _costs(costs: Any, labels: Labels) -> Floats:
    if costs is None:
        return np.ones(labels.n_items)
    if isinstance(costs, Mapping):
        missing = [item for item in labels.items.tolist() if item not in costs]
        if missing:
            raise InvalidParameter(f"costs must name every item, got none for {preview(missing)}")
        costs = [costs[item] for item in labels.items.tolist()]
    prices = np.asarray(costs, dtype=float)
    if prices.shape != (labels.n_items,) or not np.isfinite(prices).all() or not (prices > 0).all():
        raise InvalidParameter(
            f"`costs` must be a positive number for each of {labels.n_items} items, got {preview(prices.ravel())}",
        )
    return prices


_MOST_AFFORDED = 10  # wrong labels in the sample with which all others may still go unchecked
_AFFORDED_ELSE = 2  # where votes suggest more: then only the surest can go unchecked


def check_until(
    labels: Labels,
    *,
    error: float = 0.02,
    confidence: float = 0.95,
    n_sample: int | None = None,
    random_state: RandomState = None,
) -> CheckUntil:
    """Which items to check so that the labels of all items are wrong for a share of `error` at most.

    Parameters
    ----------
    labels : Labels. Checked items among them are right.
    error : float. The share of all items whose label may be wrong in the end.
    confidence : float. With which this holds, over the draw of the sample; whatever the votes are.
    n_sample : int, optional
        How many items are drawn at random and checked first; by default as many as afford the wrong
        labels that votes suggest among them.
    """
    return CheckUntil(labels, error=error, confidence=confidence, n_sample=n_sample, random_state=random_state)


class CheckUntil:
    """A check of labels that ends when they are good enough; see `check_until`."""

    def __init__(
        self, labels: Labels, *, error: float, confidence: float, n_sample: int | None, random_state: RandomState
    ) -> None:
        if not isinstance(labels, Labels):
            raise InvalidLabels(f"`labels` must be Labels, got {type(labels).__name__}; make them with trueup.Labels")
        self.error = check_number(error, low=0, high=1, strict=True, name="error")
        self.confidence = check_number(confidence, low=0, high=1, strict=True, name="confidence")
        self._votes = labels
        truth = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes).astype(np.int32)
        self._given, self._truth = truth >= 0, truth.copy()
        chances = base_of(labels_of_base(labels))
        self._proposed = chances.argmax(axis=1).astype(np.int32)
        open_items = np.flatnonzero(~self._given)
        self._n_open = len(open_items)
        self._wrong_at_first = int(np.floor(self.error * labels.n_items)) + 1  # the fewest wrong ones that are too many
        sure = chances[open_items].max(axis=1)
        size = self._size_of_sample(float(1 - sure.mean())) if n_sample is None else n_sample
        rng = as_generator(random_state)
        self._sample = np.sort(
            rng.choice(open_items, min(check_integer(size, name="n_sample", low=1), self._n_open), replace=False)
        )
        # The surest first; those that are equally sure in an order of chance, the same each time.
        order = np.lexsort((rng.random(self._n_open), -sure))
        self._surest = open_items[order]
        self._place = {name: k for k, name in enumerate(labels.items.tolist())}

    def _size_of_sample(self, expected_error: float) -> int:
        """The smallest sample that affords the wrong labels that votes suggest in it."""
        n, wrong = self._n_open, min(self._wrong_at_first, self._n_open)

        def is_enough(size: int, n_seen: int) -> bool:
            return bool(scipy.stats.hypergeom.cdf(n_seen, n, wrong, size) <= 1 - self.confidence)

        sizes = [bisect_left(range(n), True, key=partial(is_enough, n_seen=k)) for k in range(_MOST_AFFORDED + 1)]
        afforded = [size for n_seen, size in enumerate(sizes) if expected_error * size <= n_seen]
        return max(1, afforded[0] if afforded else sizes[_AFFORDED_ELSE])

    @property
    def n_checked(self) -> int:
        """Items that were checked here."""
        return int(((self._truth >= 0) & ~self._given).sum())

    def _sampled_wrong(self) -> Booleans:
        """Of the surest items in order, which are in the sample and have a wrong label."""
        is_wrong = (self._truth != self._proposed)[self._surest]
        return np.asarray(np.isin(self._surest, self._sample) & is_wrong)

    def _left(self) -> Codes:
        """The items that are still to be checked, those of the sample first, then the least sure."""
        waiting = self._sample[self._truth[self._sample] < 0]
        if len(waiting):
            return np.asarray(waiting)
        n_unchecked = self._n_open  # of the surest
        if self._wrong_at_first <= self._n_open:  # else not even all of them wrong are too many
            counts, sample_size = np.arange(len(self._sample) + 1), len(self._sample)
            chance = scipy.stats.hypergeom.cdf(counts, self._n_open, self._wrong_at_first, sample_size)
            n_unchecked = int((chance[np.cumsum(self._sampled_wrong())] <= 1 - self.confidence).sum())
        rest = self._surest[n_unchecked:][::-1]
        return np.asarray(rest[self._truth[rest] < 0])

    @property
    def finished(self) -> bool:
        """Whether the labels are as good as was asked for."""
        return not len(self._left())

    def ask(self, n: int = 10) -> list[Hashable]:
        """The next items to check, as many as are left at most."""
        chosen = self._left()[: check_integer(n, name="n", low=1)]
        return [self._votes.items[k] for k in chosen.tolist()]

    def tell(self, answers: Mapping[Any, Any]) -> None:
        """True classes of items; of any items, asked or not."""
        codes = {}
        for item, name in answers.items():
            if item not in self._place:
                raise InvalidParameter(f"the items must be among the labels, got {item!r}", parameter="answers")
            codes[self._place[item]] = self._votes.class_code(name, parameter="answers")
        self._truth[list(codes)] = list(codes.values())

    @property
    def labels(self) -> dict[Hashable, Hashable]:
        """The label of each item: what was checked, and for all others what votes say."""
        final = np.where(self._truth >= 0, self._truth, self._proposed)
        return dict(zip(self._votes.items.tolist(), self._votes.classes[final].tolist(), strict=True))

    @property
    def bound(self) -> float:
        """The share of wrong labels that is not exceeded with the confidence, if checking ends now.

        It is 1 until the sample is checked. It is for one look: who stops where it pleases has less confidence.
        """
        if (self._truth[self._sample] < 0).any():
            return 1.0
        is_unchecked = self._truth[self._surest] < 0
        n_surest = int(np.flatnonzero(is_unchecked)[-1]) + 1 if is_unchecked.any() else 0
        if not n_surest:
            return 0.0
        seen = int(self._sampled_wrong()[:n_surest].sum())
        wrong = np.arange(seen, self._n_open + 1)
        likely = scipy.stats.hypergeom.cdf(seen, self._n_open, wrong, len(self._sample)) > 1 - self.confidence
        most = int(wrong[likely][-1]) - seen
        return min(most, int(is_unchecked.sum())) / self._votes.n_items

    def __repr__(self) -> str:
        what = "finished" if self.finished else f"{len(self._left()):,} to check now"
        return f"CheckUntil({self.n_checked:,} of {self._n_open:,} checked, {what}, error at most {self.bound:.3g})"
