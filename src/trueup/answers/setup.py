"""What the front doors share: which noise model is meant, which class is positive, which metric."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup.data.labels import Labels
from trueup.data.predictions import AlignedPredictions
from trueup.estimators.system_features import Used, system_prior
from trueup.estimators.system_values import outputs_of, system_values
from trueup.estimators.truth import TruthDraws, draw_truths
from trueup.exceptions import InvalidParameter, InvalidPredictions
from trueup.metrics import FunctionMetric, Metric, ScoreMetric, check_scores, get_score_metric
from trueup.noise import Confusion, Difficulty, NoiseModel, Stack
from trueup.noise import fit as fit_noise
from trueup.noise.sampling import MODELS as DRAWN_MODELS
from trueup.posteriors import DrawnEstimate, Estimate

__all__ = [
    "AnyMetric",
    "NoiseChoice",
    "ScoreEstimates",
    "check_outputs",
    "choose_noise",
    "given",
    "is_known",
    "positive_code",
    "prepared",
    "used_by",
]


@dataclass(frozen=True)
class NoiseChoice:
    """The noise model of a call.

    Attributes
    ----------
    model : str or NoiseModel
        The name of a model that is drawn with everything else, or a known or fitted one.
    words : str
        For people.
    """

    model: str | NoiseModel
    words: str

    @property
    def is_drawn(self) -> bool:
        """Whether its parameters are drawn together with the truth."""
        return isinstance(self.model, str)

    @property
    def is_learned(self) -> bool:
        """Whether it comes from the same votes."""
        return isinstance(self.model, str) or not is_known(self.model)

    @property
    def caveat(self) -> str | None:
        """What to say where a fitted model is taken as known."""
        if isinstance(self.model, str) or is_known(self.model):
            return None
        return (
            f"The noise model {type(self.model).__name__} was fitted and is taken as known: its uncertainty is not in "
            'the intervals; use noise="subtypes" or "dawid-skene" to draw it too.'
        )


def choose_noise(noise: str | NoiseModel, labels: Labels, *, drawn: bool = True) -> NoiseChoice:
    """The model behind what a user passed; with `drawn` one that can be drawn with the truth is left to that."""
    if isinstance(noise, NoiseModel):
        # A fitted model that can be drawn is drawn: its matrices are no more known than those of a name.
        if drawn and noise.alias in DRAWN_MODELS:
            return NoiseChoice(noise.alias, noise.alias)
        return NoiseChoice(noise.fit(labels), repr(noise))
    name = str(noise).lower().replace("_", "-")
    if drawn and name in DRAWN_MODELS:
        return NoiseChoice(name, name)
    model = fit_noise(labels, name)
    if isinstance(model, Stack) and drawn and model.best_.alias in DRAWN_MODELS:
        return NoiseChoice(model.best_.alias, f"auto ({model.best_.alias})")
    return NoiseChoice(model, f"{name} (fitted)")


def is_known(model: NoiseModel) -> bool:
    """Whether a model was given and not learned from the votes."""
    return isinstance(model, Confusion) or (isinstance(model, Difficulty) and model.difficulty is not None)


def positive_code(positive: Hashable | None, labels: Labels, aligned: AlignedPredictions) -> int:
    """The position of the positive class: the one named, that of the scores, or the last."""
    if positive is None:
        return labels.n_classes - 1 if aligned.positive is None else int(aligned.positive)
    names = labels.classes.tolist()
    if positive not in names:
        raise InvalidParameter(f"positive must be a class, got {positive!r}; the classes are {names}")
    return int(names.index(positive))


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
