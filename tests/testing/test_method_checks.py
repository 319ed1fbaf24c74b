"""Every method keeps the contract of trueup.testing.methods, and the checks find what breaks it."""

import pytest

from trueup.estimators import METHODS
from trueup.testing.methods import METHOD_CHECKS, check_gold, check_intervals

OPTIONS = {
    "ideal": lambda example: {"truth": example.truth},
    "noise-removal": lambda example: {"features": example.features},
    "prior-average": lambda example: {"n_draws": 2000},
}


# What a method is for goes before the contract: there the truth is known, here each labeler is taken for it.
EXEMPT = {("ideal", check_intervals), ("labeler-mean", check_gold), ("labeler-median", check_gold)}
CASES = [(name, check) for name in METHODS for check in METHOD_CHECKS if (name, check) not in EXEMPT]


def options_of(name):
    return [OPTIONS[name]] if name in OPTIONS else []


@pytest.mark.parametrize(("name", "check"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_contract(name, check):
    check(METHODS[name], *options_of(name))


def test_a_method_that_overlooks_gold_is_told():
    with pytest.raises(AssertionError, match="although every truth is known"):
        check_gold(METHODS["labeler-mean"])


def test_a_method_that_is_surer_than_it_can_be_is_told():
    with pytest.raises(AssertionError, match="has width zero"):
        check_intervals(METHODS["ideal"], OPTIONS["ideal"])
