"""Which output of a system a metric looks at, and whether it is fit for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._doors import NoiseChoice
from trueup.estimators.system_features import Used, system_prior
from trueup.estimators.system_values import outputs_of, system_values
from trueup.estimators.truth_draws import TruthDraws, draw_truths
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.labels import Labels
from trueup.metrics import FunctionMetric, Metric, ScoreMetric, check_scores, get_score_metric
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.predictions import AlignedPredictions

__all__ = ["AnyMetric", "ScoreEstimates", "check_outputs", "given", "prepared", "used_by"]

AnyMetric = Metric | ScoreMetric | FunctionMetric


def prepared(aligned: AlignedPredictions, metric: AnyMetric, n_classes: int, positive: int) -> AlignedPredictions:
    """The outputs as a metric wants them: scores that grow with the positive class, and probabilities from scores."""
    if not isinstance(metric, ScoreMetric):
        return aligned
    if metric.needs == "probabilities":
        return _with_probabilities(aligned, n_classes)
    return _speaking_for(aligned, n_classes, positive)


def _speaking_for(aligned: AlignedPredictions, n_classes: int, positive: int) -> AlignedPredictions:
    """Scores of the positive class: turned around where they are of the other one, or its probability."""
    if aligned.probabilities is not None and (aligned.scores is None or aligned.positive != positive):
        return replace(aligned, scores=aligned.probabilities[:, :, positive].copy(), positive=positive)
    if aligned.scores is None or aligned.positive == positive:
        return aligned
    if n_classes == 2:
        return replace(aligned, scores=-aligned.scores, positive=positive)
    raise InvalidPredictions(
        f"scores must speak for the positive class of more than two, got {n_classes} classes and scores of "
        f"{'no class in particular' if aligned.positive is None else 'another class'}; pass positive= to compare or "
        "Predictions.from_scores, or class probabilities"
    )


def _with_probabilities(aligned: AlignedPredictions, n_classes: int) -> AlignedPredictions:
    """Scores of two classes that lie between 0 and 1 serve as probabilities where these are needed."""
    if aligned.probabilities is not None or n_classes != 2 or aligned.scores is None or aligned.positive is None:
        return aligned
    if not (np.nanmin(aligned.scores) >= 0 and np.nanmax(aligned.scores) <= 1):
        return aligned
    both = np.stack([1 - aligned.scores, aligned.scores], axis=2)
    return replace(aligned, probabilities=both if aligned.positive == 1 else both[:, :, ::-1])


def used_by(metric: AnyMetric, aligned: AlignedPredictions) -> Used:
    """What of the systems' outputs the metric looks at; an error where a system does not give it."""
    if not isinstance(metric, ScoreMetric):
        if aligned.codes is None:
            raise InvalidPredictions(
                f"{metric.name} needs classes but some systems give scores only; pass threshold= to from_scores"
            )
        return "classes"
    if metric.needs == "scores":
        if aligned.scores is None:
            raise InvalidPredictions(
                f"{metric.name} needs scores but some systems give classes only; pass Predictions.from_scores, arrays "
                "of scores, or class probabilities"
            )
        return "scores"
    if aligned.probabilities is None:
        raise InvalidPredictions(
            f"{metric.name} needs class probabilities of every system, got none for some; pass "
            "Predictions.from_probabilities, or arrays of shape (n_items, n_classes)"
        )
    return "probabilities"


def check_outputs(aligned: AlignedPredictions, metric: AnyMetric) -> list[str]:
    """Stop infinite scores; say which systems give the same score to every item."""
    if not isinstance(metric, ScoreMetric) or metric.needs != "scores":
        return []
    found = []
    for k, name in enumerate(aligned.systems.tolist()):
        scores = outputs_of(aligned, k, metric)
        sentence = check_scores(scores[~np.isnan(scores)], system=name)
        if sentence:
            found.append(sentence)
    return found


def given(aligned: AlignedPredictions, used: Used) -> npt.NDArray[np.bool_]:
    """Which system has an output for which item, shape (n_systems, n_items)."""
    if used == "classes":
        assert aligned.codes is not None
        return np.asarray(aligned.codes >= 0)
    if used == "scores":
        assert aligned.scores is not None
        return ~np.isnan(aligned.scores)
    assert aligned.probabilities is not None
    return ~np.isnan(aligned.probabilities[:, :, 0])


@dataclass(frozen=True, eq=False)
class ScoreEstimates:
    """Estimates of metrics of the scores or probabilities of one system, drawn when one is asked for."""

    labels: Labels
    aligned: AlignedPredictions
    noise: NoiseChoice | None  # None: the method of the evaluation draws no truths
    target: Literal["sample", "population"]
    positive: int
    seed: int | np.random.SeedSequence | None
    sampling: dict[str, Any]
    _truths: dict[Used, TruthDraws] = field(default_factory=dict)

    def check(self, name: str) -> bool:
        """Whether there is such a metric; an error where it cannot be had."""
        metric = get_score_metric(name, self.labels.n_classes)
        if metric is None:
            return False
        if self.noise is None:
            raise InvalidParameter(f'{name!r} is a metric of scores and needs method="bayes"; or use trueup.auc')
        aligned = prepared(self.aligned, metric, self.labels.n_classes, self.positive)
        used_by(metric, aligned)
        check_outputs(aligned, metric)
        return True

    def __call__(self, name: str) -> Estimate | None:
        """The estimate, or None if no such metric looks at scores."""
        if not self.check(name) or self.noise is None:
            return None
        metric = get_score_metric(name, self.labels.n_classes)
        assert metric is not None
        aligned = prepared(self.aligned, metric, self.labels.n_classes, self.positive)
        used = used_by(metric, aligned)
        rng = np.random.default_rng(self.seed)
        if used not in self._truths:
            prior = system_prior(aligned, self.labels.n_classes, used=used)
            self._truths[used] = draw_truths(
                self.labels, self.noise.model, item_prior=prior, random_state=rng, **self.sampling
            )
        values = system_values(
            self._truths[used].truths,
            aligned,
            metric,
            classes=self.labels.classes,
            positive=self.positive,
            target=self.target,
            random_state=rng,
        )
        return DrawnEstimate(values[:, 0], bounds=metric.bounds, name=name)
