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
from trueup.noise import Confusion, Difficulty, NoiseModel, Stack
from trueup.noise import fit as fit_noise
from trueup.noise.sampling import MODELS as DRAWN_MODELS
from trueup.posteriors import DrawnEstimate, Estimate

__all__ = [
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
        return Sentence(
            f"The noise model {type(self.model).__name__} was fitted and is taken as known: its uncertainty is not in "
            'the intervals; use ⟨noise="subtypes"⟩ or ⟨noise="dawid-skene"⟩ to draw it too.'
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
