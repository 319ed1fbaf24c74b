"""What the front doors share: which noise model is meant, which class is positive, which metric."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trueup._base.types import Booleans
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.labels import Labels
from trueup.estimators.system_features import system_prior
from trueup.estimators.system_values import system_values
from trueup.estimators.truth import TruthDraws, draw_truths
from trueup.exceptions import InvalidParameter, Sentence
from trueup.metrics import Metric
from trueup.noise import NoiseModel, Stack, resolve
from trueup.noise import fit as fit_noise
from trueup.posteriors import DrawnEstimate, Estimate

__all__ = [
    "NoiseChoice",
    "ScoreEstimates",
    "check_outputs",
    "choose_noise",
    "given",
    "positive_code",
    "prepared",
    "used_by",
]


@dataclass(frozen=True)
class NoiseChoice:
    """The noise model of a call.

    Attributes
    ----------
    model : NoiseModel
        One that is drawn with everything else, or a known or fitted one.
    words : str
        For people.
    is_drawn : bool
        Whether its parameters are drawn together with the truth.
    """

    model: NoiseModel
    words: str
    is_drawn: bool

    @property
    def is_learned(self) -> bool:
        """Whether it comes from the same votes."""
        return self.is_drawn or not self.model.is_known

    @property
    def caveat(self) -> str | None:
        """What to say where a fitted model is taken as known."""
        if not self.is_learned or self.is_drawn:
            return None
        return Sentence(
            f"The noise model {type(self.model).__name__} was fitted and is taken as known: its uncertainty is not in "
            'the intervals; use ⟨noise="clusters"⟩ or ⟨noise="dawid-skene"⟩ to draw it too.'
        )


def choose_noise(noise: str | NoiseModel, labels: Labels, *, drawn: bool = True) -> NoiseChoice:
    """The model behind what a user passed; with `drawn` one that can be drawn with the truth is left to that."""
    model = resolve(noise)
    words = str(noise).lower().replace("_", "-") if isinstance(noise, str) else repr(noise)
    # A fitted model that can be drawn is drawn: its matrices are no more known than those of a name.
    if drawn and model.can_be_drawn:
        return NoiseChoice(model.clone(), words, True)
    fitted = fit_noise(labels, model)
    if drawn and isinstance(fitted, Stack) and fitted.best_.can_be_drawn:
        return NoiseChoice(fitted.best_.clone(), f"auto ({fitted.best_.alias})", True)
    return NoiseChoice(fitted, f"{words} (fitted)" if isinstance(noise, str) else words, False)


def positive_code(positive: Hashable | None, labels: Labels, aligned: AlignedPredictions) -> int:
    """The position of the positive class: the one named, that of the scores, or the last."""
    if positive is None:
        return labels.n_classes - 1 if aligned.positive is None else int(aligned.positive)
    return labels.class_code(positive)


def prepared(aligned: AlignedPredictions, metric: Metric, n_classes: int, positive: int) -> AlignedPredictions:
    """The outputs as a metric wants them; see `AlignedPredictions.prepared_for`."""
    return aligned.prepared_for(metric.looks_at, positive=positive)


def used_by(metric: Metric, aligned: AlignedPredictions) -> OutputKind:
    """What of the systems' outputs the metric looks at; an error where a system does not give it."""
    aligned.outputs(metric.looks_at, needed_by=metric.name)
    return metric.looks_at


def check_outputs(aligned: AlignedPredictions, metric: Metric) -> list[str]:
    """Which systems give the same score to every item, in words."""
    return aligned.notes_on_scores() if metric.looks_at == "scores" else []


def given(aligned: AlignedPredictions, used: OutputKind) -> Booleans:
    """Which system has an output for which item, shape (n_systems, n_items)."""
    return aligned.has_output(used)


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
    _truths: dict[OutputKind, TruthDraws] = field(default_factory=dict)

    def outputs(self, metric: Metric) -> AlignedPredictions:
        """What the metric looks at; an error where it cannot be had."""
        if self.noise is None:
            raise InvalidParameter(
                f'{metric.name!r} is a metric of scores and needs ⟨method="bayes"⟩, got another; use that'
            )
        aligned = prepared(self.aligned, metric, self.labels.n_classes, self.positive)
        used_by(metric, aligned)
        check_outputs(aligned, metric)
        return aligned

    def __call__(self, metric: Metric) -> Estimate:
        """The estimate of a metric of scores or probabilities."""
        aligned = self.outputs(metric)
        assert self.noise is not None
        used = metric.looks_at
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
        return DrawnEstimate(values[:, 0], bounds=metric.bounds, name=metric.name)
