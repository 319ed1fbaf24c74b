"""Noise models by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import psi

from trueup._base.engines import choose_engine, using_engine
from trueup._base.registry import Registry
from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.data.votes import vote_matrix
from trueup.exceptions import DataWarning, InvalidLabels, InvalidParameter, silenced_warnings
from trueup.noise.base import (
    NoiseModel,
    TableModel,
    as_table,
    class_states,
    from_table,
    normalise,
    rows_for,
    warn_if_unidentifiable,
    with_gold,
)
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.em import passes_over
from trueup.noise.glad import GLAD
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.ordinal import Ordinal
from trueup.noise.soft_truth import SoftTruth

Shape = Literal["matrix", "class", "coin"]

_WEIGHT_TOLERANCE = 1e-5  # finer steps would change no answer
_SCORED_VOTES = 20_000  # that models are compared on
_LEAST_COUNT = 0.01  # of every answer: none is impossible
_FOLDS_TO_CHOOSE = 3  # each fits every model once: without numba a fit of ratings takes seconds
_SHAPES = {"coin": "one rate a labeler", "class": "one rate a class", "matrix": "a matrix a labeler"}


@dataclass(frozen=True)
class Candidate:
    """A model that was considered."""

    model: NoiseModel
    score: float  # mean log-probability of votes the model had not seen; NaN if the time budget was spent before it
    weight: float  # its share in the stack


class Stack(NoiseModel):
    """Several models, weighted by how likely they make held-out votes [1]_, with a part of the weight shared evenly.

    No single model wins on real data, and the best by held-out votes is often ahead by less than chance. A part of the
    weights maximises Σ log Σ_m w_m p_m(vote | the item's other votes), a concave problem. The rest is shared evenly:
    held-out votes reward a model for knowing what labelers like to say, which is not yet finding the truth. The
    posterior of the truth is the same mixture of the models' posteriors. Made by ``trueup.noise.fit(labels, "auto")``.

    .. [1] Yao, Vehtari, Simpson and Gelman (2018), "Using stacking to average Bayesian predictive distributions",
       Bayesian Analysis.

    Parameters
    ----------
    models : sequence of NoiseModel, optional. The candidates, the simplest first; by default `default_candidates`.
    n_folds : int. In which votes are held out.
    even_share : float in [0, 1]. The part of the weight that all candidates share evenly.
    time_budget : float. Seconds for comparing models; what does not fit in is left out and said so in ``reason_``.

    Attributes
    ----------
    candidates_ : tuple of Candidate, the heaviest first
    best_ : NoiseModel. The model with the most weight.
    reason_ : str. What was chosen and why, in a sentence.
    """

    alias = "stack"

    def __init__(
        self,
        models: Sequence[NoiseModel] | None = None,
        *,
        n_folds: int = 3,
        even_share: float = 0.7,
        time_budget: float = 60.0,
        random_state: RandomState = 0,
    ) -> None:
        self.models = models
        self.n_folds = n_folds
        self.even_share = even_share
        self.time_budget = time_budget
        self.random_state = random_state

    def fit(self, labels: Labels) -> Self:
        models = default_candidates() if self.models is None else [model.clone() for model in self.models]
        if not models:
            raise InvalidParameter("models must hold at least one noise model, got none")
        check_number(self.time_budget, name="time_budget", low=0.0)
        check_integer(self.n_folds, name="n_folds", low=2)
        check_number(self.even_share, name="even_share", low=0.0, high=1.0)
        with silenced_warnings():  # members' warnings are summed up in `reason_`
            scores = self._scores(models, _some_items(labels))
            n_scored = scores.shape[1]
            means, weights = np.full(len(models), np.nan), np.zeros(len(models))
            if n_scored:
                stacked = (1 - self.even_share) * stacking_weights(scores, tol=_WEIGHT_TOLERANCE)
                means[:n_scored], weights[:n_scored] = np.nanmean(scores, axis=0), stacked + self.even_share / n_scored
                weights[weights < 0.01] = 0.0  # of a model that is worth fitting
                weights /= sum(weights.tolist())
            else:  # nothing could be held out, or no time at all
                weights[0] = 1.0
            made = zip(models, means.tolist(), weights.tolist(), strict=True)
            self.candidates_ = tuple(sorted((Candidate(*each) for each in made), key=lambda c: -c.weight))
            self._members = [(c.model.fit(labels), c.weight) for c in self.candidates_ if c.weight > 0]
        self.best_ = self._members[0][0]
        self.prior_ = normalise(np.sum([w * m.prior_ for m, w in self._members], axis=0))
        self.n_iter_ = max(m.n_iter_ for m, _ in self._members)
        self.converged_ = all(m.converged_ for m, _ in self._members)
        self.loss_history_ = list(self.best_.loss_history_)
        self._remember(labels)
        head, shares = self.candidates_[0], ", ".join(f"{m!r} {w:.0%}" for m, w in self._members)
        if np.isnan(head.score):
            self.reason_ = f"{shares}: no item has two votes, so models could not be compared and the first was taken."
            warnings.warn(self.reason_, DataWarning, stacklevel=3)
            return self
        skipped = len(models) - n_scored
        spent = f" {skipped} models were not tried within the time budget." if skipped else ""
        self.reason_ = (
            f"{self.even_share:.0%} of the weight is shared evenly, and under the rest held-out votes are most likely: "
            f"{shares} (the first alone: {head.score:.4f} nats a vote).{spent}"
        )
        return self

    def _scores(self, models: list[NoiseModel], labels: Labels) -> Floats:
        """Held-out scores (votes, models) of as many models as the time allows."""
        columns: list[Floats] = []
        started, longest = time.perf_counter(), 0.0
        for model in models if is_splittable(labels) else ():
            before = time.perf_counter()
            if columns and before - started + longest > self.time_budget:
                break
            columns.append(heldout_scores(model, labels, n_folds=self.n_folds, random_state=self.random_state))
            longest = max(longest, time.perf_counter() - before)
        return np.stack(columns, axis=1) if columns else np.empty((0, 0))

    def posterior(self, labels: Labels) -> Floats:
        self._check(labels)
        mixture = np.asarray(sum(w * m.posterior(labels) for m, w in self._members))
        return with_gold(mixture, labels)  # weights add up to one but for a rounding

    def _log_likelihood(self, labels: Labels) -> Floats:
        # Gold is left to `posterior`; what the votes alone say is the mixture over the common prior.
        mixture = sum(w * m.posterior(labels.without_gold()) for m, w in self._members)
        return np.asarray(np.log(np.maximum(mixture, 1e-300)) - np.log(self.prior_))

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        self._check(labels)
        return np.asarray(sum(w * m.predict_votes(labels, item, labeler) for m, w in self._members))


def default_candidates() -> list[NoiseModel]:
    """The models "auto" weighs, the simplest first: labelers differ in one number, in one for each class, or in all."""
    return [
        UncertainMatrices(shape="coin", pooling=3.0),
        UncertainMatrices(shape="class", pooling=4.0),
        UncertainMatrices(shape="matrix", pooling=1.0),
    ]


def _some_items(labels: Labels) -> Labels:
    """The labels, or as many of their items at random as have enough votes to tell models apart."""
    if labels.n_votes <= _SCORED_VOTES:
        return labels
    order = np.random.default_rng(0).permutation(labels.n_items)
    chosen = order[np.cumsum(labels.votes_per_item[order]) <= _SCORED_VOTES]
    return labels.select(items=labels.items[np.sort(chosen)]) if len(chosen) else labels


def stacking_weights(scores: Floats, *, max_iter: int = 1000, tol: float = 1e-9) -> Floats:
    """Weights that maximise the mean log of the mixture; `scores` are log-probabilities (votes, models)."""
    scores = scores[np.isfinite(scores).all(axis=1)]
    n_models = scores.shape[1]
    weights = np.full(n_models, 1 / n_models)
    likelihood = np.exp(scores - scores.max(axis=1, keepdims=True))
    for _ in range(max_iter):
        updated = weights * (likelihood.T @ (1 / (likelihood @ weights))) / len(likelihood)
        if np.abs(updated - weights).max() < tol:
            break
        weights = updated
    return normalise(weights)


def choose(
    labels: Labels,
    *,
    models: Sequence[NoiseModel] | None = None,
    time_budget: float = 60.0,
    random_state: RandomState = 0,
) -> Stack:
    """A mix of models, in part by how likely they make held-out votes; nothing of the truth is used. See `Stack`."""
    return Stack(models, time_budget=time_budget, random_state=random_state).fit(labels)


class _Rows(NamedTuple):
    """What is believed of answers, (labelers, classes, answers): mean probabilities and mean log-probabilities."""

    mean: Floats
    log_mean: Floats


class UncertainMatrices(TableModel):
    """Dawid–Skene's model by variational Bayes, for matrices of three shapes; a part of `Stack` and no model by name.

    Matrices have a distribution too (Bayesian classifier combination, Kim and Ghahramani 2012; Simpson, Roberts,
    Psorakis and Smith 2013): a vote counts by the mean of the logarithm of its probability. Labelers may differ in the
    whole matrix; in how often they are right in each class, where wrong answers are spread as those of all labelers
    are; or in how often they are right at all. The matrix of all others is worth `pooling` votes.
    """

    alias = "uncertain-matrices"

    def __init__(self, *, shape: Shape, pooling: float, max_iter: int = 200, tol: float = 1e-5) -> None:
        self.shape = shape
        self.pooling = pooling
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, labels: Labels) -> Self:
        warn_if_unidentifiable(labels, what="auto")
        self._remember(labels)
        passes, states = passes_over(labels, self.max_iter, offers=self.engines), class_states(labels.n_classes)
        counts, class_counts = passes.first_counts()
        self.loss_history_, self.converged_ = [], False
        while not self.converged_ and len(self.loss_history_) < self.max_iter:
            rows = _believed(from_table(counts, labels.n_answers), self.shape, self.pooling)
            weights = class_counts + 1.0
            step = passes.expect(as_table(np.exp(rows.log_mean)), np.exp(psi(weights) - psi(weights.sum())), states)
            change = np.abs(step.state_counts - class_counts).max() / max(labels.n_items, 1)
            self.converged_ = bool(change < self.tol)
            counts, class_counts = step.counts, step.state_counts
            self.loss_history_.append(-step.log_likelihood / max(labels.n_votes, 1))
        self.n_iter_ = len(self.loss_history_)
        self.confusion_, self._log_confusion = rows
        total = from_table(counts, labels.n_answers).sum(axis=0, keepdims=True)
        self.pooled_ = _believed(total, self.shape, self.pooling).mean[0]
        self.prior_ = normalise(class_counts + 1.0)
        return self

    def __repr__(self) -> str:
        return _SHAPES[self.shape]

    def _table_for(self, labels: Labels) -> Floats:
        """Exp of the mean log-probability."""
        stranger = np.log(np.maximum(self.pooled_, 1e-300))
        return as_table(np.exp(rows_for(labels.labelers, self.labelers_, self._log_confusion, stranger)))


def _believed(counts: Floats, shape: Shape, pooling: float) -> _Rows:
    """The labelers' matrices given expected counts (labelers, classes, answers)."""
    total = counts.sum(axis=0)
    if shape == "matrix":
        return _dirichlet_rows(counts + pooling * normalise(total + 1e-3) + _LEAST_COUNT)
    # Labelers differ in how often they are right; what they say else is shared.
    n_classes = counts.shape[1]
    classes = np.arange(n_classes)
    is_wrong = np.ones(total.shape)
    is_wrong[classes, classes] = 0.0
    spread = normalise((total + 0.5) * is_wrong if shape == "class" else is_wrong)
    right, all_votes = counts[:, classes, classes], counts.sum(axis=2)
    if shape == "coin":
        right, all_votes = (np.repeat(n.sum(axis=1, keepdims=True), n_classes, axis=1) for n in (right, all_votes))
    usual = (right.sum(axis=0) + 2.0) / (all_votes.sum(axis=0) + 3.0)
    pseudo = pooling * np.stack([usual, 1 - usual], axis=1)
    rows = _dirichlet_rows(np.stack([right, all_votes - right], axis=2) + pseudo)
    mean = rows.mean[:, :, 1:] * spread
    log_mean = rows.log_mean[:, :, 1:] + np.log(np.maximum(spread, 1e-300))
    mean[:, classes, classes], log_mean[:, classes, classes] = rows.mean[:, :, 0], rows.log_mean[:, :, 0]
    return _Rows(mean, log_mean)


def _dirichlet_rows(counts: Floats) -> _Rows:
    return _Rows(normalise(counts), np.asarray(psi(counts) - psi(counts.sum(axis=-1, keepdims=True))))


_AUTO = "auto"
DEFAULT_NOISE = DawidSkene.alias  # where one model is needed and none is named; a method that needs another says so
# Models of version 0.2: class names by alias.
REMOVED_MODELS = {
    "clusters": "Clusters",
    "shared-difficulty": "SharedDifficulty",
    "subtypes": "Subtypes",
    "variational": "Variational",
}


def _check_model(name: str, model: Any) -> None:
    is_model = isinstance(model, type) and issubclass(model, NoiseModel)
    if not (is_model and isinstance(getattr(model, "alias", None), str)):
        raise InvalidParameter(f"a subclass of NoiseModel with an alias is needed, got {model!r}")
    if model.alias == _AUTO:
        raise InvalidParameter(f"the alias of a noise model must not be {_AUTO!r}, which lets held-out votes choose")


MODELS: Registry[type[NoiseModel]] = Registry(
    "noise",
    {model.alias: model for model in (Majority, OneCoin, DawidSkene, GLAD, Difficulty, SoftTruth, Ordinal)},
    group="trueup.noise_models",
    check=_check_model,
)


def removal_of(name: str) -> str:
    """What to do where somebody asks for a model that version 0.3 removed."""
    return (
        f"{name!r} is no longer a noise model of trueup; leave `noise` out for the plain answer, which allows for "
        f"labelers who err together, or name a model such as {DEFAULT_NOISE!r}"
    )


def register_model(model: type[NoiseModel]) -> type[NoiseModel]:
    """Make a noise model known by its `alias`; usable as a class decorator."""
    return MODELS.register(str(getattr(model, "alias", "")), model)


def list_models() -> list[str]:
    """The names `fit` and `evaluate` understand, without "auto"."""
    return MODELS.names()


def get_model(name: str, **parameters: Any) -> NoiseModel:
    """A new model by name; underscores and hyphens are the same. "auto" is a `Stack`."""
    if str(name).lower() == _AUTO:
        return Stack(**parameters)
    if name not in MODELS:
        if str(name).lower().replace("_", "-") in REMOVED_MODELS:
            raise InvalidParameter(removal_of(name), parameter=MODELS.parameter)
        check_choice(name, [*MODELS, _AUTO], name=MODELS.parameter)
    return MODELS[name](**parameters)


def resolve(noise: str | NoiseModel, **parameters: Any) -> NoiseModel:
    """The model that is meant by a name or by a model, not fitted here: a model is handed back as it is."""
    if not isinstance(noise, NoiseModel):
        return get_model(noise, **parameters)
    if parameters:
        raise InvalidParameter(
            f"a noise model has its parameters already, got {sorted(parameters)} beside {noise!r}; set them when it is "
            "made",
            parameter="noise",
        )
    return noise


def fit(
    labels: Labels | LabelScan[Labels],
    model: str | NoiseModel = "auto",
    *,
    engine: str | None = None,
    **parameters: Any,
) -> NoiseModel:
    """Fit a noise model, by name or as an object.

    Parameters
    ----------
    labels : Labels or LabelScan. Scanned votes (`Labels.scan`) are for models with the engine "dask".
    model : str or NoiseModel. A name from `list_models`, "auto" (see `choose`), or a model, of which a copy is fitted.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        One of the model's ``engines``; by default as `trueup.engines` says. "torch" runs on a GPU where there is one,
        or on the device named behind it, as in "torch:cuda:0" or "torch:cpu".
    **parameters
        For the model of a name.
    """
    unfitted = resolve(model, **parameters).clone()
    is_scan = isinstance(labels, LabelScan)
    if engine is not None:
        offers = [name for name in unfitted.engines if name != "torch" or not is_scan]  # a device holds all votes
        choose_engine(engine, offers=offers, purpose=type(unfitted).__name__ + (" on a scan" if is_scan else ""))
    if is_scan and "dask" not in unfitted.engines:
        able = [name for name in list_models() if "dask" in MODELS[name].engines]
        raise InvalidParameter(
            f"votes that are scanned can be read by {', '.join(able)}, got {unfitted!r}; take one of these, or read "
            "all votes into memory with scan.read()",
            parameter="model",
        )
    with using_engine(engine):
        return unfitted.fit(labels)  # type: ignore[arg-type]


_Model = TypeVar("_Model", bound=NoiseModel)


def is_splittable(labels: Labels) -> bool:
    """Whether any vote can be held out and predicted from another vote on its item."""
    return bool((labels.votes_per_item > 1).any())


@dataclass(frozen=True)
class Fold:
    """The labels without some votes, and those votes: their place in the order of `to_frame`, and their codes."""

    rest: Labels
    held: Positions
    item: Positions
    labeler: Positions
    answer: Positions


def split_votes(labels: Labels, *, n_folds: int, random_state: RandomState) -> list[Fold]:
    """Folds of votes."""
    check_integer(n_folds, name="n_folds", low=2)
    if not is_splittable(labels):
        raise InvalidLabels("no item has two votes, so no vote can be held out and predicted from the others")
    rng = as_generator(random_state)
    *codes, counts = labels.vote_table()
    item, labeler, answer = (np.repeat(x, counts).astype(np.int64) for x in codes)
    n = len(item)
    first = np.concatenate([[0], np.cumsum(labels.votes_per_item)])[:-1]
    fold = np.empty(n, dtype=np.int64)
    order = np.lexsort((rng.random(n), item))
    fold[order] = (np.arange(n) - first[item] + rng.integers(n_folds, size=labels.n_items)[item]) % n_folds
    fold[labels.votes_per_item[item] == 1] = -1
    folds = []
    shape = (labels.n_items, labels.n_labelers, labels.n_answers)
    for k in range(n_folds):
        kept, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        rows, raters, answers = (codes[kept].astype(np.int32) for codes in (item, labeler, answer))
        votes = vote_matrix(rows, raters, answers, shape)
        folds.append(Fold(replace(labels, votes=votes), held, item[held], labeler[held], answer[held]))
    return folds


def heldout_scores(
    model: NoiseModel, labels: Labels, *, n_folds: int = 5, random_state: RandomState = 0
) -> npt.NDArray[np.float64]:
    """Log-probability of each vote under the model fitted without it, in the order of ``labels.to_frame()``.

    Votes that cannot be held out are NaN. The mean is the score; higher is better.
    """
    scores = np.full(labels.n_votes, np.nan)
    for fold in split_votes(labels, n_folds=n_folds, random_state=random_state):
        with silenced_warnings():  # the fit on all votes gives these warnings
            fitted = model.clone().fit(fold.rest)
        probability = fitted.predict_votes(fold.rest, fold.item, fold.labeler)
        scores[fold.held] = np.log(np.maximum(probability[np.arange(len(fold.held)), fold.answer], 1e-12))
    return scores


def best_of(models: Sequence[_Model], labels: Labels) -> _Model:
    """The model under which held-out votes are most likely."""
    scores = [np.nanmean(heldout_scores(model, labels, n_folds=_FOLDS_TO_CHOOSE)) for model in models]
    return models[int(np.argmax(scores))]
