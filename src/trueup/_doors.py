"""What the front doors share: which noise model is meant, which class is positive, which metric."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from trueup.exceptions import InvalidParameter
from trueup.labels import Labels
from trueup.noise import Confusion, Difficulty, NoiseModel, Stack
from trueup.noise import fit as fit_noise
from trueup.noise.gibbs import MODELS as DRAWN_MODELS
from trueup.predictions import AlignedPredictions

__all__ = ["NoiseChoice", "choose_noise", "is_known", "positive_code"]


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
