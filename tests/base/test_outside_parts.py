"""A package that is installed beside trueup brings parts of every kind by entry points, and each is found by name."""

import contextlib

import pytest
import typer
from typer.testing import CliRunner

from trueup import active, cleaning, estimators
from trueup.cli import COMMANDS, app
from trueup.metrics import METRICS, get_metric
from trueup.noise import get_model
from trueup.noise.registry import MODELS

REGISTRIES = (MODELS, METRICS, estimators.METHODS, active.STRATEGIES, cleaning.STRATEGIES, COMMANDS)
CODE = '''
from trueup.active.strategies import Random
from trueup.cleaning.strategies import RandomOrder
from trueup.estimators import Method, majority
from trueup.metrics import Metric
from trueup.noise import Majority


class Model(Majority):
    """A model."""

    alias = "outside-model"


class Strategy(Random):
    """A strategy."""

    name = "outside-strategy"


class Cleaning(RandomOrder):
    """A strategy."""

    name = "outside-cleaning"


HITS = Metric("outside_hits", lambda counts: counts[..., 1, 1], description="hits")
SCORES = Metric("outside_scores", lambda truths, scores, weights: truths @ scores, needs="scores", description="sum")
METHOD = Method(majority, "votes", description="the majority vote")


def command(word: str) -> None:
    """Say a word."""
    print(f"{word}!")
'''
ENTRIES = """
[trueup.noise_models]
outside-model = outside:Model
[trueup.metrics]
outside_hits = outside:HITS
outside_scores = outside:SCORES
[trueup.methods]
outside-method = outside:METHOD
[trueup.strategies]
outside-strategy = outside:Strategy
[trueup.cleaning_strategies]
outside-cleaning = outside:Cleaning
[trueup.commands]
outside-command = outside:command
"""


@pytest.fixture
def outside(install):
    """The package, and registries that forget it afterwards."""
    install("outside", CODE, ENTRIES)
    with contextlib.ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(registry.preserved())
        yield


@pytest.mark.usefixtures("outside")
def test_each_kind_is_found_by_name():
    assert type(get_model("outside-model")).__name__ == "Model"
    assert get_metric("outside_hits", [0, 1])([[3, 1], [1, 5]]) == 5
    assert get_metric("outside-scores", [0, 1]).needs == "scores"
    assert estimators.METHODS["outside_method"].sees == "votes"
    assert active.get_strategy("outside-strategy").name == "outside-strategy"
    assert cleaning.get_cleaning_strategy("outside-cleaning").name == "outside-cleaning"
    assert CliRunner().invoke(app, ["outside-command", "hello"]).output == "hello!\n"


@pytest.mark.usefixtures("outside")
def test_each_kind_is_listed():
    for registry in REGISTRIES:
        assert any(name.startswith("outside") for name in registry.names()), registry.parameter
    program = typer.main.get_command(app)
    assert "outside-command" in program.list_commands(None)


def test_what_is_not_installed_is_not_there():
    for registry in REGISTRIES:
        assert not any(name.startswith("outside") for name in registry.names())
