"""Every strategy keeps its contract, and the checks notice what breaks it; CONTRIBUTING.md has some from outside."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from trueup.active import STRATEGIES, Strategy
from trueup.cleaning import STRATEGIES as CLEANING_STRATEGIES
from trueup.cleaning.strategies import NoiseRate
from trueup.testing.strategies import CLEANING_CHECKS, STRATEGY_CHECKS

ACTIVE = {check.__name__.removeprefix("check_"): check for check in STRATEGY_CHECKS}
CLEANING = {check.__name__.removeprefix("check_cleaning_"): check for check in CLEANING_CHECKS}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=list(ACTIVE))
def test_contract_of_active_testing(check, name):
    check(STRATEGIES[name]())


@pytest.mark.parametrize("name", sorted(CLEANING_STRATEGIES))
@pytest.mark.parametrize("check", CLEANING_CHECKS, ids=list(CLEANING))
def test_contract_of_cleaning(check, name):
    check(CLEANING_STRATEGIES[name]())


@dataclass(frozen=True)
class Lowest(Strategy):
    """The items with the least probable class; keeps the contract."""

    name: ClassVar[str] = "lowest"

    def scores(self, state):
        return np.where(state.available, 1 - state.probabilities.max(axis=1), 0.0)

    def sentences(self, state, positions):
        return ["It is not sure."] * len(positions)


@dataclass(frozen=True)
class Negative(Lowest):
    def scores(self, state):
        return -super().scores(state)


@dataclass(unsafe_hash=True)
class Changeable(Strategy):
    name: ClassVar[str] = "changeable"

    def scores(self, state):
        return np.where(state.available, 1.0, 0.0)

    def sentences(self, state, positions):
        return ["Any will do."] * len(positions)


@dataclass(frozen=True)
class Moody(Lowest):
    def scores(self, state):
        self.__dict__["calls"] = self.__dict__.get("calls", 0) + 1
        return super().scores(state) * self.__dict__["calls"]


@dataclass(frozen=True)
class ByPlace(Lowest):
    def scores(self, state):
        return np.where(state.available, np.arange(len(state.available)), 0.0)


@dataclass(frozen=True)
class Terse(Lowest):
    def sentences(self, state, positions):
        return ["unsure"] * len(positions)


@dataclass(frozen=True)
class Lottery(Lowest):
    """Says that it draws, and leaves some items without a chance."""

    is_random: ClassVar[bool] = True

    def propensities(self, state):
        weights = self.scores(state) * (np.arange(len(state.available)) % 2)
        return weights / weights.sum()


@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=list(ACTIVE))
def test_one_that_keeps_it(check):
    check(Lowest(), metric="auc")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Negative, "scores"),
        (Changeable, "stateless"),
        (Moody, "stateless"),
        (ByPlace, "order"),
        (Terse, "reasons"),
        (Lottery, "chances"),
    ],
)
def test_a_broken_contract_is_noticed(kind, name):
    with pytest.raises(AssertionError):
        ACTIVE[name](kind())


@dataclass(frozen=True)
class WantsTheKnown(NoiseRate):
    def scores(self, state):
        return np.zeros(len(state.train))


@dataclass(frozen=True)
class Silent(NoiseRate):
    def reasons(self, state, scores, positions):
        return [""] * len(positions)


@pytest.mark.parametrize(("kind", "name"), [(WantsTheKnown, "scores"), (Silent, "reasons")])
def test_a_broken_contract_of_cleaning_is_noticed(kind, name):
    with pytest.raises(AssertionError):
        CLEANING[name](kind())
