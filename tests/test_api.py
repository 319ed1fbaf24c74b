"""The public API: what is exported exists, and the way it is called stays the same."""

import importlib
import inspect
import pkgutil

import pytest

import trueup

TOP_LEVEL = [
    "ActiveTest",
    "CleaningAdvisor",
    "Comparison",
    "CrowdPrior",
    "Decision",
    "Evaluation",
    "GateReport",
    "Labels",
    "Monitor",
    "Pairs",
    "Predictions",
    "Preferences",
    "__version__",
    "active",
    "adapters",
    "agreement",
    "auc",
    "calibrate",
    "cleaning",
    "compare",
    "connect",
    "decide",
    "decisions",
    "detection",
    "engines",
    "estimators",
    "evaluate",
    "exceptions",
    "gate",
    "labelers",
    "may_replace",
    "mean_score",
    "metrics",
    "monitor",
    "noise",
    "plan",
    "posteriors",
    "preferences",
    "rates",
    "read_export",
    "read_gold",
    "read_items",
    "read_labels",
    "read_pairs",
    "read_predictions",
    "report",
    "scorer",
    "share",
    "simulate",
    "training",
    "write_labels",
]


def modules() -> list[str]:
    """All packages that are public all the way down and hand names on."""
    public = [info.name for info in pkgutil.walk_packages(trueup.__path__, "trueup.") if "._" not in info.name]
    return ["trueup", *(name for name in public if hasattr(importlib.import_module(name), "__all__"))]


def test_the_top_level_is_what_is_promised():
    assert sorted(trueup.__all__) == sorted(TOP_LEVEL)
    assert set(dir(trueup)) == set(trueup.__all__)


@pytest.mark.parametrize("name", modules())
def test_every_exported_name_exists(name):
    module = importlib.import_module(name)
    missing = [export for export in module.__all__ if not hasattr(module, export)]
    assert not missing
    assert len(set(module.__all__)) == len(module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evaluat_'"):
        trueup.evaluat_  # noqa: B018


def callables() -> list[tuple[str, object]]:
    found = []
    for where in (trueup, trueup.labelers, trueup.noise, trueup.rates, trueup.simulate):
        for name in where.__all__:
            value = getattr(where, name)
            model = inspect.isclass(value) and issubclass(value, trueup.noise.NoiseModel)
            if inspect.isfunction(value) or model:
                found.append((f"{where.__name__}.{name}", value))
    return found


@pytest.mark.parametrize(("name", "function"), callables())
def test_everything_after_the_data_is_keyword_only(name, function):
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= 2, f"{name} takes {positional} by position; the data comes first and the rest by name"


def test_version_is_a_plain_release():
    assert [part.isdigit() for part in trueup.__version__.split(".")] == [True] * 3
