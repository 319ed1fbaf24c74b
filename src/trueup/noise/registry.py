"""Noise models by name."""

from __future__ import annotations

from typing import Any

from trueup._base.engines import choose_engine, using_engine
from trueup._base.registry import Registry
from trueup._base.validation import check_choice
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.exceptions import InvalidParameter, Sentence
from trueup.noise.auto import Stack
from trueup.noise.base import NoiseModel
from trueup.noise.dawid_skene import DawidSkene
from trueup.noise.difficulty import Difficulty
from trueup.noise.glad import GLAD
from trueup.noise.majority import Majority
from trueup.noise.one_coin import OneCoin
from trueup.noise.ordinal import Ordinal
from trueup.noise.soft_truth import SoftTruth

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
    if not (
        isinstance(model, type) and issubclass(model, NoiseModel) and isinstance(getattr(model, "alias", None), str)
    ):
        raise InvalidParameter(f"a subclass of NoiseModel with an alias is needed, got {model!r}")
    if model.alias == _AUTO:
        raise InvalidParameter(f"the alias of a noise model must not be {_AUTO!r}, which lets held-out votes choose")


MODELS: Registry[type[NoiseModel]] = Registry(
    "noise",
    {
        model.alias: model
        for model in (
            Majority,
            OneCoin,
            DawidSkene,
            GLAD,
            Difficulty,
            SoftTruth,
            Ordinal,
        )
    },
    group="trueup.noise_models",
    check=_check_model,
)


def removal_of(name: str) -> Sentence:
    """What to do where somebody asks for a model that version 0.3 removed."""
    return Sentence(
        f"{name!r} is no longer a noise model of trueup; leave ⟨noise⟩ out for the plain answer, which allows for "
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
    """The model that is meant by a name or by a model, not fitted here: a model is handed back as it is.

    Parameters
    ----------
    noise : str or NoiseModel
        A name from `list_models`, "auto", or a model.
    **parameters
        For the model of a name.
    """
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
    labels : Labels or LabelScan
        Votes that are scanned (`Labels.scan`) for models that can be fitted on a cluster, which pass over the files.
    model : str or NoiseModel
        A name from `list_models`, "auto" (see `choose`), or a model, of which a copy is fitted.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        What works it out, one of the model's ``engines``; by default as `trueup.engines` says. "torch" runs on a GPU
        where there is one, or on the device named behind it, as in "torch:cuda:0" or "torch:cpu".
    **parameters
        For the model of a name.

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.simulate.dawid_skene(n_items=200, random_state=0).labels
    >>> tu.noise.fit(labels, "one-coin")
    OneCoin()
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
