"""A scorer for scikit-learn's cross-validation and searches that needs votes and no truth."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, preview
from trueup.core.base import base_of
from trueup.core.truth import TruthModel, labels_of_base
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.system_features import system_prior
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import draw_truths
from trueup.exceptions import InvalidLabels, InvalidPredictions
from trueup.metrics import Metric, MetricLike, as_metric
from trueup.noise import NoiseModel
from trueup.noise import fit as fit_noise
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.training.copies import aligned_columns, as_rows, n_rows_of, take
from trueup.training.votes import positions_of


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
        estimator : fitted classifier
            Whose ``classes_`` are those of the labels.
        X : array, sparse matrix or frame
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
        values = system_values(
            self._truths(labels, at, aligned, used, rng),
            aligned,
            self.metric,
            classes=labels.classes,
            positive=self.positive,
            random_state=rng,
        )[:, 0]
        return DrawnEstimate(values, bounds=self.metric.bounds, name=self.metric.name)

    def _truths(
        self, labels: Labels, at: Codes, aligned: AlignedPredictions, used: OutputKind, rng: np.random.Generator
    ) -> Codes:
        """Truths of the items, given votes and what the classifier says."""
        if self.noise is not None:
            prior = system_prior(aligned, labels.n_classes, used=used)
            return draw_truths(labels, self.noise, item_prior=prior, n_draws=self.n_draws, random_state=rng).truths
        assert self.base is not None
        codes = aligned.codes
        if codes is None and aligned.probabilities is not None:
            codes = aligned.probabilities.argmax(axis=2).astype(np.int32)
        nobody = np.empty((0, len(at)), dtype=np.int32)
        model = TruthModel(
            labels,
            self.base[at],
            nobody if codes is None else codes,
            aligned.scores,
            self.positive,
            may_sample=False,
            n_draws=self.n_draws,
            seed=int(rng.integers(2**31)),
        )
        return model.truth.truths

    def _outputs(self, estimator: Any, X: Any) -> tuple[AlignedPredictions, OutputKind]:
        names = self.labels.classes.tolist()
        known = np.asarray(getattr(estimator, "classes_", []))
        strange = [name for name in known.tolist() if name not in names]
        if strange or not len(known):
            raise InvalidPredictions(
                f"the estimator must predict the classes of the labels, {preview(names, most=6)}, got "
                f"{preview(known, most=6)}; wrap it in trueup.training.NoisyLabelClassifier(…, labels=labels)"
            )
        codes = scores = probabilities = None
        used: OutputKind = self.metric.looks_at
        if used == "classes":
            position = {name: k for k, name in enumerate(names)}
            codes = np.array([[position[name] for name in np.asarray(estimator.predict(X)).tolist()]], dtype=np.int32)
        elif used == "scores" and len(names) == 2 and hasattr(estimator, "decision_function"):
            given = np.asarray(estimator.decision_function(X), dtype=float)
            scores = (given if known[1] == names[self.positive] else -given)[None]
        elif hasattr(estimator, "predict_proba"):
            table = aligned_columns(estimator.predict_proba(X), known, np.asarray(names))
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

    The score of a fold is the posterior mean of the metric on its held-out items,

    .. math:: E[\,m(y, f(x)) \mid z, f(x)\,]

    by draws of the truth y given the votes z and what the classifier says, as in `trueup.evaluate`. What votes say is
    fitted once, here, to those on all items; it sees neither features nor classifiers. Held-out items without votes do
    not count.

    Parameters
    ----------
    metric : str or callable
        As for `trueup.evaluate`: "accuracy", "f1", "auc", "log_loss", … A metric of which less is better is negated,
        so that a search maximises.
    labels : Labels
        The votes on all items. The y of the cross-validation is then ``np.arange(labels.n_items)``: the position of
        each row of X in ``labels.items``. Pass folds as a splitter, ``cv=KFold(5, shuffle=True, random_state=0)``: a
        mere number asks scikit-learn to balance classes over the folds, and it would take positions for classes.
    noise : str or NoiseModel, optional
        By default none, as in `trueup.evaluate`; a model that is named is taken as known once it is fitted.
    positive : class, optional
        The positive class; the last by default.
    n_draws : int
        Truths drawn for a score. The same seed serves every fold and every candidate.
    random_state : int or None

    Returns
    -------
    VoteScorer
        Call it, or ask it for the whole posterior with ``estimate(estimator, X, y)``.

    Notes
    -----
    Without ``noise`` a classifier is expected to be right as often as votes say that its classes are: classifiers and
    votes of real sets err together, and there this is right on average. Where votes leave much open, since they are few
    or weak, a good classifier whose errors are independent of theirs is better than that: its score is too low, and the
    interval may end below the truth. The order of classifiers does not suffer. ``noise="dawid-skene"`` gives the level
    if errors are independent; only checked items can show whether they are.

    Examples
    --------
    >>> import trueup as tu
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from trueup.training import NoisyLabelClassifier, scorer
    >>> sim = tu.simulate.tars(n_items=400, n_labelers=5, noise_rates=0.2, means=[[0, 0], [3, 0]], random_state=0)
    >>> model = NoisyLabelClassifier(LogisticRegression(), labels=sim.labels)
    >>> y = np.arange(sim.labels.n_items)
    >>> judge = scorer("auc", sim.labels, noise="dawid-skene")
    >>> scores = cross_val_score(model, sim.features, y, scoring=judge, cv=KFold(3))
    >>> bool(abs(scores.mean() - 0.98) < 0.03)
    True
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
