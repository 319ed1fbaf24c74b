"""Rows to train on, how often and as which class, and classifiers fitted to them."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, preview
from trueup.core.base import base_of
from trueup.core.truth import TruthModel, labels_of_base
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import truths_given_outputs
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, silenced_warnings
from trueup.metrics import Metric, MetricLike, as_metric
from trueup.noise import Confusion, NoiseModel
from trueup.noise import fit as fit_noise
from trueup.noise.base import with_gold
from trueup.posteriors import DrawnEstimate, Estimate


@dataclass(frozen=True, eq=False)
class VoteScorer:
    """``scorer(estimator, X, y)`` with y the positions of the rows of X in ``labels.items``; made by `scorer`."""

    metric: Metric
    labels: Labels
    noise: NoiseModel | None
    base: Floats | None
    positive: int
    n_draws: int
    seed: int | np.random.SeedSequence | None

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """The posterior mean of the metric, its negative if less of it is better."""
        value = self.estimate(estimator, X, y).mean
        return -value if self.metric.higher_is_better is False else value

    def estimate(self, estimator: Any, X: Any, y: Any = None) -> Estimate:
        """The posterior of the metric on these items.

        Parameters
        ----------
        estimator : fitted classifier. Whose ``classes_`` are those of the labels.
        y : integer array of shape (n_rows,), optional
            Positions in ``labels.items``; by default X has all items in order.
        """
        rows = as_rows(X)
        every = np.arange(self.labels.n_items) if y is None else y
        at = positions_of(every, self.labels, n_rows_of(rows))
        voted = (self.labels.votes_per_item > 0) | (self.labels.gold_codes >= 0)
        # An item without votes would be judged by the model's own word.
        at, first = np.unique(at, return_index=True)
        at, first = at[voted[at]], first[voted[at]]
        if not len(at):
            raise InvalidLabels("a score needs an item with votes, got none; leave such items out of X and y")
        labels = self.labels.select(items=self.labels.items[at])
        aligned, used = self._outputs(estimator, take(rows, first))
        rng = as_generator(self.seed)
        how: dict[str, Any] = {"n_draws": self.n_draws}
        if self.noise is not None:
            truths = truths_given_outputs(labels, self.noise, aligned, used=used, random_state=rng, **how).truths
        else:
            assert self.base is not None
            codes = aligned.codes
            if codes is None and aligned.probabilities is not None:
                codes = aligned.probabilities.argmax(axis=2).astype(np.int32)
            if codes is None:
                codes = np.empty((0, len(at)), dtype=np.int32)
            how |= {"may_sample": False, "seed": int(rng.integers(2**31))}
            model = TruthModel(labels, self.base[at], codes, aligned.scores, self.positive, **how)
            truths = model.truth.truths
        how = {"classes": labels.classes, "positive": self.positive, "random_state": rng}
        values = system_values(truths, aligned, self.metric, **how)[:, 0]
        return DrawnEstimate(values, bounds=self.metric.bounds, name=self.metric.name)

    def _outputs(self, estimator: Any, X: Any) -> tuple[AlignedPredictions, OutputKind]:
        names = self.labels.classes.tolist()
        classes = np.asarray(getattr(estimator, "classes_", []))
        if not len(classes) or not set(classes.tolist()) <= set(names):
            raise InvalidPredictions(
                f"the estimator must predict the classes of the labels, {preview(names, most=6)}, got "
                f"{preview(classes, most=6)}; wrap it in trueup.training.NoisyLabelClassifier(…, labels=labels)"
            )
        codes = scores = probabilities = None
        used: OutputKind = self.metric.looks_at
        if used == "classes":
            codes = codes_of(estimator.predict(X), names)[None].astype(np.int32)
        elif used == "scores" and len(names) == 2 and hasattr(estimator, "decision_function"):
            given = np.asarray(estimator.decision_function(X), dtype=float)
            scores = (given if classes[1] == names[self.positive] else -given)[None]
        elif hasattr(estimator, "predict_proba"):
            table = aligned_columns(estimator.predict_proba(X), classes, np.asarray(names))
            if used == "scores":
                scores = table[None, :, self.positive]
            else:
                probabilities = table[None]
        else:
            raise InvalidPredictions(
                f"{self.metric.name} needs predict_proba or, for two classes, decision_function, got "
                f"{type(estimator).__name__} without; pass another estimator or a metric of classes"
            )
        none = np.zeros(1, dtype=np.int64)
        system = np.array(["model"], dtype=object)
        aligned = AlignedPredictions(system, codes, scores, probabilities, self.positive, none, none, none, len(names))
        return aligned, used


def scorer(
    metric: MetricLike,
    labels: Labels,
    *,
    noise: str | NoiseModel | None = None,
    positive: Hashable | None = None,
    n_draws: int = 512,
    random_state: RandomState = 0,
) -> VoteScorer:
    r"""A scorer for ``cross_val_score`` and ``GridSearchCV`` that estimates a metric from votes.

    The score of a fold is the posterior mean of the metric on its held-out items, by draws of the truth given the votes
    and the outputs of the classifier, as in `trueup.evaluate`. The model of the votes is fitted once, here, to those on
    all items. Held-out items without votes do not count. ``estimate(estimator, X, y)`` gives the whole posterior.

    Parameters
    ----------
    metric : str or callable
        As for `trueup.evaluate`: "accuracy", "f1", "auc", "log_loss", … A metric of which less is better is negated,
        so that a search maximises.
    labels : Labels
        The votes on all items. The y of the cross-validation is then ``np.arange(labels.n_items)``: the position of
        each row of X in ``labels.items``. Pass folds as a splitter, ``cv=KFold(5, shuffle=True, random_state=0)``: a
        number alone asks scikit-learn to balance classes over the folds, and it would take positions for classes.
    noise : str or NoiseModel, optional
        By default none, as in `trueup.evaluate`; a model that is named is taken as known once it is fitted.
    positive : class, optional. The positive class; the last by default.
    n_draws : int. Truths drawn for a score. The same seed serves every fold and every candidate.

    Notes
    -----
    Without ``noise`` a classifier is expected to be right as often as votes say that its classes are, which is right on
    average where both err together. Where votes are few or weak, a good classifier whose errors are independent of
    theirs is better than that: its score is too low, and the interval may end below the truth. The order of classifiers
    does not suffer. ``noise="dawid-skene"`` gives the level if errors are independent; only checked items can show
    that.
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(f"labels must be Labels, got {type(labels).__name__}; make them with tu.Labels.from_frame")
    check_integer(n_draws, name="n_draws", low=10)
    names = labels.classes.tolist()
    code = labels.n_classes - 1 if positive is None else labels.class_code(positive)
    measured = as_metric(metric, names, positive=names[code])
    if isinstance(random_state, np.random.Generator):  # every candidate must meet the same draws
        random_state = int(random_state.integers(2**31))
    as_generator(random_state)
    seed = 0 if random_state is None else random_state
    if noise is None:
        return VoteScorer(measured, labels, None, base_of(labels_of_base(labels)), code, n_draws, seed)
    model = copy.deepcopy(noise) if isinstance(noise, NoiseModel) else noise
    return VoteScorer(measured, labels, fit_noise(labels, model), None, code, n_draws, seed)


Unlabelled = Literal["drop", "prior", "error"]


@dataclass(frozen=True, eq=False)
class TrainingVotes:
    """The votes behind the rows of X."""

    labels: Labels  # of the items that X has, each once
    rows: Positions  # (n_rows,): which of those items each row of X is
    classes: npt.NDArray[Any]  # (n_classes,)
    perfect: bool = False  # whether the votes are a plain y, which is taken for the truth

    def noise(self, model: str | NoiseModel) -> NoiseModel:
        """The noise model fitted to these votes; what a user passed is not changed."""
        if self.perfect:
            share = self.labels.answer_counts.sum(axis=0)
            perfect = Confusion(np.eye(len(self.classes)), prior=share / share.sum())
            perfect._remember(self.labels)  # as `fit` of a learned model would
            return perfect
        return fit_noise(self.labels, copy.deepcopy(model) if isinstance(model, NoiseModel) else model)

    def log_likelihood(self, noise: NoiseModel) -> Floats:
        """Log p(votes | class) of each item, shape (n_items, n_classes); where the truth is known, of it alone."""
        table = np.array(noise.log_likelihood(self.labels), dtype=float)
        if not self.perfect:
            return with_gold(table, self.labels, others=-np.inf, own=0.0)
        truth = self.labels.answer_counts.argmax(axis=1)
        return np.where(np.arange(table.shape[1]) == truth[:, None], 0.0, -np.inf)

    def used(self, unlabelled: str) -> Positions:
        """The rows of X to train on."""
        how = check_choice(unlabelled, get_args(Unlabelled), name="unlabelled")
        silent = (self.labels.votes_per_item == 0) & (self.labels.gold_codes < 0)
        if how == "error" and silent.any():
            raise InvalidLabels(
                f'every item must have a vote with unlabelled="error", got {int(silent.sum())} without, e.g. '
                f'{preview(self.labels.items[silent])}; pass unlabelled="drop" or "prior"'
            )
        keep = np.ones(len(self.rows), dtype=bool) if how == "prior" else ~silent[self.rows]
        if not keep.any():
            raise InvalidLabels("training needs an item with a vote, got none; check that labels are of these items")
        return np.flatnonzero(keep)


def gather(y: Any, labels: Labels | None, n_rows: int) -> TrainingVotes:
    """Bring what `fit` was given to one form."""
    if isinstance(y, Labels):
        if y.n_items != n_rows:
            raise InvalidLabels(
                f"X must have a row for each item of the labels, got {n_rows} rows and {y.n_items} items; "
                "select the items with labels.select(items=…), or the rows of X in the order of labels.items"
            )
        return _checked(TrainingVotes(y, np.arange(n_rows), np.asarray(y.classes.tolist())))
    if y is None:
        raise InvalidParameter("the estimator requires y to be passed, but the target y is None; pass Labels")
    if labels is not None:
        distinct, rows = np.unique(positions_of(y, labels, n_rows), return_inverse=True)
        part = labels.select(items=labels.items[distinct])
        return _checked(TrainingVotes(part, rows.ravel().astype(np.int64), np.asarray(labels.classes.tolist())))
    return _as_truth(y, n_rows)


def positions_of(y: Any, labels: Labels, n_rows: int) -> Positions:
    """Check positions of items, one for each row of X."""
    at = np.asarray(y)
    if at.ndim != 1 or at.dtype.kind not in "iu" or (len(at) and not 0 <= at.min() <= at.max() < labels.n_items):
        raise InvalidParameter(
            f"with labels= given, y must hold positions in labels.items (0 to {labels.n_items - 1}), got "
            f"{preview(at.ravel())}; pass np.arange(labels.n_items)"
        )
    if len(at) != n_rows:
        raise InvalidLabels(
            f"X must have a row for each position in y, got {n_rows} rows and {len(at)} positions; "
            "pass y=np.arange(labels.n_items) with one row of X for each item"
        )
    return at.astype(np.int64)


def _as_truth(y: Any, n_rows: int) -> TrainingVotes:
    from sklearn.utils import assert_all_finite, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    column = column_or_1d(y, warn=True)
    assert_all_finite(column, input_name="y")
    check_classification_targets(column)
    if len(column) != n_rows:
        raise InvalidLabels(
            f"X and y must have the same number of rows, got inconsistent numbers of samples: {n_rows} and "
            f"{len(column)}; pass one class for each row"
        )
    classes, codes = np.unique(column, return_inverse=True)
    if len(classes) < 2:
        raise InvalidLabels(f"training needs at least two classes, got one class, {preview(classes)}; add another")
    with silenced_warnings():  # one labeler with a vote an item is what is meant
        labels = Labels.from_matrix(codes.reshape(-1, 1), classes=range(len(classes)), labelers=["y"])
    return TrainingVotes(labels, np.arange(n_rows), classes, perfect=True)


def _checked(votes: TrainingVotes) -> TrainingVotes:
    labels = votes.labels
    counts = labels.answer_counts[:, : labels.n_classes].sum(axis=0)
    counts += np.bincount(labels.gold_codes[labels.gold_codes >= 0], minlength=labels.n_classes)
    if not counts.all():
        raise InvalidLabels(
            f"every class needs a vote to be learned, got none for {preview(labels.classes[counts == 0])}; "
            "read the votes with classes= of those that occur, or add gold of that class"
        )
    return votes


def as_rows(X: Any) -> Any:
    """X as something whose rows can be picked: an array, sparse matrix or frame; a list of texts stays one of texts."""
    if hasattr(X, "shape") and hasattr(X, "__getitem__"):
        return X
    return np.asarray(X)


def n_rows_of(X: Any) -> int:
    """The number of rows."""
    if not len(X.shape):
        raise InvalidParameter(f"X must have rows, got a single value {X!r}; pass an array of rows")
    return int(X.shape[0])


def take(X: Any, rows: Positions) -> Any:
    """Some rows, in any order and any number of times; X itself where these are all of them in order."""
    if len(rows) == X.shape[0] and np.array_equal(rows, np.arange(len(rows))):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.tocsr()[rows] if hasattr(X, "tocsr") else X[rows]


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """The steps before the last of a pipeline, or None, and the last."""
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return (estimator[:-1] if len(estimator.steps) > 1 else None), estimator.steps[-1][1]
    return None, estimator


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows to train on: which item, as which class, with which weight (None: all count alike)."""

    item: Positions
    code: Positions
    weight: Floats | None


def hard_copies(codes: npt.ArrayLike) -> Copies:
    """Each item once."""
    code = np.asarray(codes, dtype=np.int64)
    return Copies(np.arange(len(code)), code, None)


def weighted_copies(shares: Floats, *, min_weight: float, max_copies: int | None = None) -> Copies:
    r"""A copy of item i for each class with a weight, so that weighted losses add up to the MMSE risk.

    .. math:: \sum_i \sum_y p(y \mid z_i)\, L(f(x_i), y)

    Weights below `min_weight` are left out and the others of the item scaled up, so each item still counts 1.
    """
    kept = np.where(shares >= min_weight, shares, 0.0)
    first = shares.argmax(axis=1)
    every = np.arange(len(shares))
    kept[every, first] = shares[every, first]
    if max_copies is not None and max_copies < shares.shape[1]:
        least = np.argsort(-kept, axis=1, kind="stable")[:, max_copies:]
        np.put_along_axis(kept, least, 0.0, axis=1)
    kept /= kept.sum(axis=1, keepdims=True)
    code, item = np.nonzero(kept.T)  # class by class: blocks of X in its own order
    weight = kept[item, code]
    return Copies(item, code, None if (weight == 1).all() else weight)


def quantised_copies(shares: Floats, n_copies: int) -> Copies:
    """Each item `n_copies` times, shared out to classes by the largest remainders."""
    exact = shares * n_copies
    counts = np.floor(exact + 1e-9).astype(np.int64)
    rest = n_copies - counts.sum(axis=1)
    order = np.argsort(-(exact - counts), axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    counts += rank < rest[:, None]
    counts //= np.gcd.reduce(counts, axis=None)
    item, code = np.nonzero(counts)
    times = counts[item, code]
    return Copies(np.repeat(item, times), np.repeat(code, times), None)


def fit_copies(estimator: Any, X: Any, hard: Positions, copies: Copies, names: npt.NDArray[Any]) -> Any:
    """A clone of the estimator fitted to the copies."""
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.utils.validation import has_fit_parameter

    model = clone(estimator)
    head, last = split_pipeline(model)
    once = copies.weight is None and np.array_equal(copies.item, np.arange(len(hard)))
    if head is not None and not once:
        features = head.fit_transform(X, names[hard])
        model.steps = [*head.steps, (model.steps[-1][0], fit_copies(last, features, hard, copies, names))]
        return model
    rows = take(X, copies.item)
    if copies.weight is None:
        each = len(copies.item) // max(len(hard), 1)
        if each > 1 and isinstance(model, KNeighborsClassifier):  # which then looks at as many items as before
            model.set_params(n_neighbors=model.n_neighbors * each)
        return model.fit(rows, names[copies.code])
    if not has_fit_parameter(model, "sample_weight"):
        raise InvalidParameter(
            f"weighted labels need an estimator whose fit takes sample_weight, got {type(model).__name__}, which "
            'ignores it; pass another, or in NoisyLabelClassifier `strategy="replication"`, which copies items instead'
        )
    if model.get_params().get("class_weight") != "balanced":
        return model.fit(rows, names[copies.code], sample_weight=copies.weight)
    # Some estimators would balance the numbers of copies.
    share = np.bincount(copies.code, weights=copies.weight, minlength=len(names))
    weight = copies.weight * (share.sum() / (np.count_nonzero(share) * share[copies.code]))
    model.set_params(class_weight=None).fit(rows, names[copies.code], sample_weight=weight)
    return model.set_params(class_weight="balanced")


def aligned_columns(values: Any, have: npt.NDArray[Any], want: npt.NDArray[Any], *, fill: float = 0.0) -> Floats:
    """Columns by class in another order, `fill` for a class that was never seen."""
    table = np.asarray(values, dtype=float)
    if np.array_equal(have, want):
        return table
    out = np.full((len(table), len(want)), fill)
    out[:, codes_of(have, want)] = table
    return out


def codes_of(values: npt.ArrayLike, classes: npt.ArrayLike) -> Positions:
    """The position of each value among the classes."""
    position = {name: k for k, name in enumerate(np.asarray(classes).tolist())}
    return np.array([position[name] for name in np.asarray(values).tolist()], dtype=np.int64)
