"""Noise models by name."""

from __future__ import annotations

from typing import Any

from trueup._base.validation import check_choice
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise.auto import choose
from trueup.noise.base import NoiseModel
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.soft_truth import SoftTruth
from trueup.noise.subtypes import Subtypes

__all__ = ["fit", "get_model", "list_models", "register_model"]

_MODELS: dict[str, type[NoiseModel]] = {
    model.alias: model for model in (Majority, OneCoin, DawidSkene, GLAD, Difficulty, Subtypes, SoftTruth)
}


def register_model(model: type[NoiseModel]) -> type[NoiseModel]:
    """Make a noise model known by its `alias`; usable as a class decorator."""
    if not (
        isinstance(model, type) and issubclass(model, NoiseModel) and isinstance(getattr(model, "alias", None), str)
    ):
        raise InvalidParameter(f"a subclass of NoiseModel with an alias is needed, got {model!r}")
    _MODELS[model.alias] = model
    return model


def list_models() -> list[str]:
    """The names `fit` and `evaluate` understand, without "auto"."""
    return sorted(_MODELS)


def get_model(name: str, **parameters: Any) -> NoiseModel:
    """A new model by name; underscores and hyphens are the same."""
    alias = check_choice(str(name).lower().replace("_", "-"), list(_MODELS), name="noise")
    return _MODELS[alias](**parameters)


def fit(labels: Labels, model: str | NoiseModel = "auto", **parameters: Any) -> NoiseModel:
    """Fit a noise model, by name or as an object.

    Parameters
    ----------
    labels : Labels
    model : str or NoiseModel
        A name from `list_models`, "auto" (see `choose`), or a model, which is then fitted.
    **parameters
        Passed to the model, or to `choose`.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.simulate.dawid_skene(n_items=200, random_state=0).labels
    >>> tu.noise.fit(labels, "one-coin")
    OneCoin()
    """
    if isinstance(model, NoiseModel):
        return model.fit(labels)
    if str(model).lower() == "auto":
        return choose(labels, **parameters)
    return get_model(model, **parameters).fit(labels)
